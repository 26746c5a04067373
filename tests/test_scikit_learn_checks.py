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
)
from crowdwise.weights import Fading, SelfPaced

pytestmark = [
    pytest.mark.filterwarnings("ignore:there is one annotator"),  # the checks give one-dimensional y
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning"),
    pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:nearly all weight"),
]


@parametrize_with_checks(
    [
        CrowdClassifier(),
        CrowdLogisticClassifier(),
        CrowdRidgeClassifier(),
        CrowdRidgeClassifierCV(),
        CrowdRidgeRegressor(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        # The check of class_weight sets this too, on a tree that it finds bare: small pure leaves ignore weights.
        CrowdClassifier(DecisionTreeClassifier(min_weight_fraction_leaf=0.01)),
        CrowdClassifier(GaussianNB()),
        CrowdClassifier(curriculum=SelfPaced(), class_weight="balanced", steepness=1.0),
        CrowdLogisticClassifier(cross_fit=0),
        CrowdLogisticClassifier(curriculum=Fading(), class_weight="balanced", steepness=1.0),
        CrowdRidgeClassifier(class_weight="balanced", curriculum=SelfPaced()),
        CrowdRidgeClassifierCV(class_weight="balanced"),
        CrowdRidgeRegressor(curriculum=SelfPaced()),
    ]
)
def test_scikit_learn_contract_with_other_settings(estimator, check):
    check(estimator)
