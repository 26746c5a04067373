import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from crowdwise import CrowdLogisticClassifier, CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor


@pytest.mark.filterwarnings("ignore:there is one annotator")  # the checks give one-dimensional y
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")
@pytest.mark.filterwarnings("ignore:nearly all weight")
@parametrize_with_checks(
    [
        CrowdLogisticClassifier(),
        CrowdLogisticClassifier(cross_fit=0),
        CrowdRidgeClassifier(),
        CrowdRidgeClassifierCV(),
        CrowdRidgeRegressor(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
