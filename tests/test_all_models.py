"""What all models promise alike: the same attributes, and a consensus on any examples."""

import numpy as np
import pytest
from all_models import (
    CLASSIFIERS,
    EVERYTHING,
    LOGISTIC,
    MODELS,
    RIDGE,
    crowd,
    data_for,
    fit_quietly,
    labels_for,
    new,
    over,
    quiet,
    scores_of,
    sure,
    sure_of,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from crowdwise.crowd import easiness
from crowdwise.exceptions import LabelError

# ---------------------------------------------------------------------- attributes

OF_EXAMPLES = ["examples_", "disagreement_", "consensus_"]
OF_ANNOTATORS = ["annotators_", "expertise_"]
OF_CLASSES = ["consensus_proba_", "consensus_confidence_", "accuracy_", "classes_"]


@over(MODELS, variants=True)
def test_every_model_has_the_same_attributes_about_its_examples_and_annotators(fitted, name):
    _, labels, model = fitted[name]
    shared = model.results_.attributes()
    assert {*OF_EXAMPLES, *OF_ANNOTATORS, "annotator_flags_", "n_rounds_", "converged_", "objective_"} <= set(shared)
    assert set(OF_CLASSES) <= set(shared) or (name == "regressor" and "consensus_std_" in shared)
    for attribute, value in shared.items():
        assert np.array_equal(getattr(model, attribute), value) or attribute in ("expertise_", "accuracy_"), attribute
    for attribute in OF_EXAMPLES:
        assert shared[attribute].shape == (len(labels),), attribute
    for attribute in OF_ANNOTATORS:
        assert shared[attribute].shape == (labels.n_annotators,), attribute
    assert model.objective_.shape == (model.n_rounds_,)
    assert isinstance(model.converged_, bool)
    assert model.n_features_in_ == 3


@over(EVERYTHING, variants=True)
def test_results_carry_the_ids_of_the_user_in_the_order_of_the_user(fitted, name):
    _, labels, model = fitted[name]
    assert model.examples_.tolist() == labels.examples.tolist()
    assert model.annotators_.tolist() == labels.annotators.tolist()
    frame = model.consensus_frame()
    assert frame["example"].tolist() == labels.examples.tolist()
    assert frame["label"].tolist() == model.consensus_.tolist()
    crowd_frame = model.annotators_frame()
    assert crowd_frame["annotator"].tolist() == labels.annotators.tolist()
    assert crowd_frame["labels"].tolist() == labels.labels_per_annotator.tolist()
    assert crowd_frame["flags"].map(bool).sum() == len(model.annotator_flags_)


@over([*CLASSIFIERS, "aggregate"], variants=True)
def test_probabilities_are_probabilities_and_the_consensus_is_the_likeliest_class(fitted, name):
    _, labels, model = fitted[name]
    for proba, label in (
        (model.consensus_proba_, model.consensus_),
        (model.results_.label_consensus.proba, model.results_.label_consensus.label),
    ):
        assert proba.shape == (len(labels), 2)
        assert np.allclose(proba.sum(axis=1), 1, atol=1e-12)
        assert proba.min() >= 0
        assert np.array_equal(label, model.classes_[proba.argmax(axis=1)])
    assert np.array_equal(model.consensus_confidence_, model.consensus_proba_.max(axis=1))
    assert model.classes_.tolist() == [0, 1]
    assert model.accuracy_.shape == (5,)
    assert ((model.accuracy_ > 0) & (model.accuracy_ < 1)).all()


def test_ratings_have_a_standard_deviation_and_no_probabilities(fitted):
    _, _, model = fitted["regressor"]
    assert (model.consensus_std_ > 0).all()
    assert not any(hasattr(model, attribute) for attribute in OF_CLASSES)
    assert model.consensus_frame()["std"].tolist() == model.consensus_std_.tolist()


@over([*MODELS, "aggregate"], variants=True)
def test_expertise_easiness_and_flags_mean_the_same_in_every_model(fitted, name):
    _, _, model = fitted[name]
    assert (model.expertise_ > 0).all()
    assert isinstance(model.annotator_flags_, dict)
    assert all(isinstance(flags, tuple) for flags in model.annotator_flags_.values())
    assert set(model.annotator_flags_) <= set(model.annotators_.tolist())
    assert np.array_equal(model.results_.easiness, easiness(model.disagreement_, model.steepness_))


@over([*MODELS, "perceptron by margin", "aggregate"])
def test_expertise_is_larger_for_the_annotator_who_is_right_more_often(name):
    X, truth, _ = crowd(n=150)
    rng = np.random.default_rng(1)
    error = np.array([0.02, 0.2, 0.4])
    matrix = np.where(rng.random((150, 3)) < error, 1 - truth[:, None], truth[:, None])
    model = fit_quietly(new(name), X, labels_for(name, matrix.astype(float)))
    assert np.argsort(-model.expertise_).tolist() == [0, 1, 2]
    if hasattr(model, "accuracy_"):
        assert np.argsort(-model.accuracy_).tolist() == [0, 1, 2]
        assert np.allclose(model.accuracy_, 1 - error, atol=0.12)


@over([*RIDGE, *LOGISTIC, "any"], variants=True)
def test_linear_models_have_coefficients(fitted, name):
    X, _, model = fitted[name]
    inner = model.estimator_ if name == "any" else model
    assert inner.coef_.shape == ((3,) if name == "regressor" else (1, 3))
    expected = X @ np.ravel(inner.coef_) + np.ravel(inner.intercept_)
    assert np.allclose(scores_of(model, X), expected, atol=1e-12)


@over(CLASSIFIERS)
def test_more_than_two_classes_have_a_column_each(name):
    X, y = data_for(name, n_classes=3, missing=0.2, clarity=3.0)
    names = np.array(["ant", "bee", "cat"], dtype=object)[y.values]
    matrix = np.full(y.shape, None, dtype=object)
    matrix[y.example_index, y.annotator_index] = names
    model = fit_quietly(new(name), X, matrix)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.consensus_proba_.shape == model.results_.label_consensus.proba.shape == (80, 3)
    assert scores_of(model, X).shape == (80, 3)
    assert set(model.predict(X)) <= {"ant", "bee", "cat"}
    assert model.accuracy_.shape == (5,)


@quiet
@over(MODELS, variants=True)
def test_the_labels_alone_do_not_know_the_features_and_the_consensus_does(fitted, name):
    X, labels, model = fitted[name]
    order = np.random.default_rng(0).permutation(len(X))
    alone = model.consensus(X, labels, use_model=False)
    assert np.array_equal(model.consensus(X[order], labels, use_model=False).label, alone.label)
    assert np.allclose(
        sure_of(alone),
        model.results_.label_consensus.label if name == "regressor" else model.results_.label_consensus.proba,
    )
    assert np.abs(sure_of(model.consensus(X[order], labels)) - sure_of(model.consensus(X, labels))).max() > 0.01
    clear, y = data_for(name, clarity=5.0)
    one, other = fit_quietly(new(name), clear, y), fit_quietly(new(name), clear[order], y)
    if name == "regressor":  # weighted by expertise, which features decide
        assert np.array_equal(one.results_.label_consensus.label > 0.5, other.results_.label_consensus.label > 0.5)
    else:
        assert np.array_equal(one.results_.label_consensus.label, other.results_.label_consensus.label)
    assert np.abs(sure(one) - sure(other)).max() > 0.01


MEMORISERS = {
    "ridge": {"l2": 1e-6},
    "ridge cv": {"l2s": (1e-6,)},
    "regressor": {"l2": 1e-6},
    "logistic": {"l2": 1e-6},
    "any": {"estimator": LogisticRegression(C=1e6, max_iter=10_000), "errors_in_common": False},
    "any tree": {"estimator": DecisionTreeClassifier(), "errors_in_common": False},
}


@quiet
@over(MEMORISERS)
def test_the_consensus_is_out_of_fold_so_a_model_that_memorises_does_not_confirm_the_labels(name):
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(60, 150)), np.arange(60) % 2  # features that say nothing
    matrix = np.where(rng.random((60, 5)) < 0.25, 1 - truth[:, None], truth[:, None]).astype(float)
    labels = labels_for(name, matrix)
    model = new(name, steepness=0.0, **MEMORISERS[name]).fit(X, labels)
    alone, in_sample = model.results_.label_consensus.label, model.consensus(X, labels)
    if name == "regressor":  # a model that has seen the ratings has nothing to add to them
        assert np.abs(in_sample.label - alone).mean() < 1e-3
        assert np.abs(model.consensus_ - alone).mean() > 0.05
        return
    assert np.mean(model.predict(X) == alone) > 0.8
    by_seen, by_unseen = (
        confirmed(alone, model.results_.label_consensus.proba, p) for p in (in_sample.proba, model.consensus_proba_)
    )
    assert by_seen > 0.75  # scores of labels that were seen, with the temperature of unseen ones
    assert by_unseen < by_seen
    assert by_unseen < 0.75


def confirmed(label, before, after):
    """How often a model makes the class of the labels more probable, of two."""
    return np.mean(np.where(label == 1, 1, -1) * (after - before)[:, 1] > 0)


# ---------------------------------------------------------------------- the consensus on other examples


@quiet
@over(MODELS, variants=True)
def test_the_consensus_is_that_of_the_features_and_labels_given_not_of_the_fit(fitted, name):
    X, labels, model = fitted[name]
    here = sure_of(model.consensus(X, labels))
    assert np.abs(sure_of(model.consensus(-X, labels)) - here).max() > 0.05
    opposite = labels_for(name, 1 - labels.to_matrix().astype(float), annotators=labels.annotators)
    assert np.abs(sure_of(model.consensus(X, opposite)) - here).max() > 0.5
    # With the codes of the fit, but other names of classes or annotators, it is another question.
    renamed = labels_for(name, labels.to_matrix().astype(float), annotators=labels.annotators[::-1])
    assert np.abs(sure_of(model.consensus(X, renamed)) - here).max() > 1e-3


@quiet
@over(MODELS, variants=True)
def test_annotators_are_matched_by_name_in_the_consensus(fitted, name):
    X, labels, model = fitted[name]
    matrix, order = labels.to_matrix().astype(float), np.array([3, 1, 4, 0, 2])
    here = sure_of(model.consensus(X, labels))
    moved = labels_for(name, matrix[:, order], annotators=labels.annotators[order])
    assert np.allclose(sure_of(model.consensus(X, moved)), here, atol=1e-12)
    fewer = np.where(np.arange(5) == 2, np.nan, matrix)
    by_four = labels_for(name, np.delete(matrix, 2, axis=1), annotators=np.delete(labels.annotators, 2))
    blanked = labels_for(name, fewer, annotators=labels.annotators)
    found = [sure_of(model.consensus(X, each)) for each in (by_four, blanked)]
    assert np.allclose(found[0], found[1], atol=1e-12)
    assert np.abs(found[0] - here).max() > 0.01


@quiet
@over(MODELS, variants=True)
def test_an_unknown_annotator_counts_as_the_average_of_the_crowd_and_a_crowd_of_unknown_ones_is_an_error(fitted, name):
    X, labels, model = fitted[name]
    matrix = labels.to_matrix().astype(float)
    more = labels_for(name, np.column_stack([matrix, np.ones(80)]), annotators=[*labels.annotators, "zoe"])
    found, before = model.consensus(X, more), model.consensus(X, labels)
    assert np.isfinite(sure_of(found)).all()
    towards = sure_of(found)[..., -1] - sure_of(before)[..., -1] if name != "regressor" else found.label - before.label
    assert (towards >= -1e-12 if name != "regressor" else (towards >= -1e-12) | (before.label > 1)).all()
    with pytest.raises(LabelError, match="none of the 5 annotators"):
        model.consensus(X, labels_for(name, matrix, annotators=list("vwxyz")))


@quiet
@over(MODELS, variants=True)
def test_examples_without_labels_have_the_models_score_in_the_consensus(fitted, name):
    X, labels, model = fitted[name]
    matrix = labels.to_matrix().astype(float)
    matrix[[3, 7]] = np.nan
    for use_model in (True, False):
        found = model.consensus(X, labels_for(name, matrix, annotators=labels.annotators), use_model=use_model)
        nothing = labels_for(name, np.full((80, 5), np.nan), annotators=labels.annotators)
        nothing = nothing._with_classes(model.classes_) if name != "regressor" else nothing
        predicted = model.consensus(X, nothing, use_model=use_model)
        if name in ("regressor", *LOGISTIC):
            assert np.allclose(np.asarray(found.label[[3, 7]], dtype=float), model.predict(X[[3, 7]]))
            assert np.allclose(np.asarray(predicted.label, float), model.predict(X))
        if name != "regressor":  # with temperature and offsets, which `predict` of ridge and other estimators has not
            assert np.allclose(found.proba[[3, 7]], np.exp(model.fitted_.log_prior(X))[[3, 7]])
            assert np.allclose(predicted.proba, np.exp(model.fitted_.log_prior(X)))
            assert np.mean(predicted.label == model.predict(X)) > 0.8


@quiet
@over(MODELS, variants=True)
def test_what_the_consensus_gives_is_not_the_models_own(fitted, name):
    X, labels, model = fitted[name]
    found = model.consensus(X, labels)
    before = sure_of(found).copy()
    with pytest.raises(ValueError, match="read-only"):
        found.label[:] = found.label[::-1]
    with pytest.raises(ValueError, match="read-only"):
        model.consensus_[:] = model.consensus_[::-1]
    assert np.array_equal(sure_of(model.consensus(X, labels)), before)
