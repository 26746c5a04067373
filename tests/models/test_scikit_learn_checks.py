import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from crowdwise import (
    CrowdClassifier,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    SelfPaced,
)


@pytest.mark.filterwarnings("ignore:there is one annotator")  # the checks give one-dimensional y
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")
@pytest.mark.filterwarnings("ignore:nearly all weight")
@parametrize_with_checks(
    [
        CrowdClassifier(),
        CrowdClassifier(DecisionTreeClassifier()),
        CrowdClassifier(GaussianNB()),
        CrowdLogisticClassifier(),
        CrowdLogisticClassifier(cross_fit=0),
        CrowdRidgeClassifier(),
        CrowdRidgeClassifierCV(),
        CrowdRidgeRegressor(),
        CrowdRidgeClassifier(class_weight="balanced", curriculum=SelfPaced()),
        CrowdRidgeClassifierCV(class_weight="balanced"),
        CrowdRidgeRegressor(curriculum=SelfPaced()),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
