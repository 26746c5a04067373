import json

import numpy as np
import pandas as pd
import pytest
from all_models import crowd, fit_quietly
from sklearn.linear_model import LogisticRegression

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeRegressor,
    aggregate,
    error_correlation,
    load,
)
from crowdwise.exceptions import AlignmentError, CrowdWarning, DataError, LabelError
from crowdwise.reporting import annotators as annotators_section
from crowdwise.reporting import summarize, summary_lines
from crowdwise.reporting.agreement import pairs
from crowdwise.reporting.annotators import annotator_columns
from crowdwise.reporting.consensus import quality_sentence
from crowdwise.reporting.examples import consensus_columns
from crowdwise.reporting.fit import Fit

MODELS = {
    "ridge": CrowdRidgeClassifier(),
    "logistic": CrowdLogisticClassifier(),
    "any": CrowdClassifier(LogisticRegression()),
}


def as_ratings(labels):
    return CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval", annotators=labels.annotators)


@pytest.fixture(scope="module")
def data():
    return crowd(n=90, n_classes=3, missing=0.4)


@pytest.fixture(scope="module")
def found(data):
    return aggregate(data[2])


@pytest.mark.parametrize("name", MODELS)
def test_a_summary_of_every_classifier_is_plain_and_complete(name, data):
    X, truth, labels = data
    model = fit_quietly(MODELS[name], X, labels)
    summary = summarize(model, labels, X=X, texts=[f"text {i}" for i in range(90)], truth=truth, command="again")
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["version"] == 1
    assert summary["command"] == "again"
    assert len(summary["headline"]) == 3
    assert len(summary["numbers"]) == 4
    assert summary["margin"]["correlation"]["low"] <= summary["margin"]["correlation"]["value"]
    row = summary["annotators"]["rows"][0]
    assert {"accuracy", "accuracy_low", "agrees_with_consensus", "agrees_with_model", "confusion"} <= set(row)
    np.testing.assert_allclose(np.sum(row["confusion"], axis=1), 1.0, atol=0.002)


@pytest.mark.parametrize("name", MODELS)
def test_the_classifier_is_judged_by_the_consensus_and_by_known_answers(name, data):
    X, truth, labels = data
    model = fit_quietly(MODELS[name], X, labels)
    part = summarize(model, labels, truth=dict(enumerate(truth[:30].tolist())))["classifier"]
    predicted = model.classes_[model.results_.model_proba.argmax(axis=1)]
    labelled = labels.labels_per_example > 0
    np.testing.assert_allclose(part["consensus"]["value"], (predicted == model.consensus_)[labelled].mean())
    np.testing.assert_allclose(part["truth"]["value"], (predicted == truth)[:30][labelled[:30]].mean())
    assert (part["n_truths"], part["out_of_fold"]) == (labelled[:30].sum(), True)
    assert summarize(aggregate(labels), labels)["classifier"] is None


def test_a_summary_of_ratings_has_no_classes_and_no_accuracy(data):
    X, truth, labels = data
    ratings = as_ratings(labels)
    model = fit_quietly(CrowdRidgeRegressor(), X, ratings)
    summary = summarize(model, ratings, X=X, truth=truth.astype(float))
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["classes"] is None
    assert summary["pairs"] is None
    assert summary["margin"] is None
    assert "accuracy" not in summary["annotators"]["rows"][0]
    labelled = labels.labels_per_example > 0
    expected = np.sqrt(((model.consensus_ - truth)[labelled] ** 2).mean())
    np.testing.assert_allclose(summary["quality"]["known"]["consensus"], expected)


def test_the_order_is_from_easy_to_hard(data, found):
    rows = summarize(found, data[2])["order"]["rows"]
    keys = [(row["disagreement"], -row["sure"]) for row in rows]
    assert keys == sorted(keys)
    assert [row["order"] for row in rows] == list(range(1, 91))


def test_the_least_certain_example_comes_first_with_who_said_what(data, found):
    labels = data[2]
    row = summarize(found, labels)["next"]["rows"][0]
    at = int(row["example"])
    entropy = -(found.proba * np.log(found.proba)).sum(axis=1)
    assert entropy[at] == entropy.max()
    given = dict(labels)[at]
    said = {(name, answer["label"]) for answer in row["said"] for name in answer["annotators"]}
    assert said == {(str(name), str(label)) for name, label in given.items()}
    assert [answer["n"] for answer in row["said"]] == sorted((a["n"] for a in row["said"]), reverse=True)


def test_annotators_stand_alone_where_nobody_else_gave_their_answer(data, found):
    labels = data[2]
    expected = dict.fromkeys(map(str, labels.annotators), 0)
    for _, given in labels:
        for name, said in given.items():
            alone = len(given) > 2 and list(given.values()).count(said) == 1
            expected[str(name)] += alone
    rows = summarize(found, labels)["annotators"]["rows"]
    assert {row["annotator"]: row["alone"]["total"] for row in rows} == expected


def test_what_is_as_long_as_all_labels_is_not_made_for_each_one_that_is_listed(data, found, monkeypatch):
    fit, made, whole = Fit.of(found, data[2]), [], CrowdLabels.example_index

    def example_index(labels):
        made.append(labels)
        return whole.fget(labels)

    monkeypatch.setattr(CrowdLabels, "example_index", property(example_index))
    rows = annotators_section.data(fit)["annotators"]["rows"]
    assert sum(row["alone"]["shown"] for row in rows) > 10
    assert len(made) < 10


def test_annotators_are_listed_from_the_highest_expertise(found, data):
    summary = summarize(found, data[2])
    expertise = [row["expertise"] for row in summary["annotators"]["rows"]]
    assert expertise == sorted(expertise, reverse=True)
    assert max(row["bar"] for row in summary["annotators"]["rows"]) == 1.0


def test_long_lists_are_cut_and_say_so():
    rng = np.random.default_rng(0)
    n = 6000
    truth = rng.integers(0, 2, n)
    matrix = np.where(rng.random((n, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    summary = summarize(aggregate(labels), labels, texts=["x" * 100_000] * 2 + ["short"] * (n - 2))
    assert (summary["order"]["total"], summary["order"]["shown"]) == (6000, 5000)
    assert summary["next"]["shown"] == 60 < summary["next"]["total"]
    assert len(json.dumps(summary)) < 2_000_000
    place = [row["order"] for row in summary["order"]["rows"]]
    assert (place[0], place[-1]) == (1, 6000)


def test_long_names_that_begin_alike_stay_different():
    names = [f"paper--2017-06-01--{'a very long headline ' * 5}.txt__{question}" for question in ("co1", "ec2", "re1")]
    labels = CrowdLabels.from_matrix([["a", "b"], ["a", "a"], ["b", "b"]], examples=names)
    shown = [row["example"] for row in summarize(aggregate(labels), labels)["order"]["rows"]]
    assert len(set(shown)) == 3
    assert max(map(len, shown)) <= 80
    assert all(name.startswith("paper--2017-06-01--a very") and "…" in name for name in shown)


def test_many_annotators_are_cut_to_the_flagged_and_the_busiest(set_constants):
    set_constants("crowdwise.reporting.annotators", MOST_ANNOTATORS=3)
    _, _, labels = crowd(n=120, n_annotators=8, adversaries=1)
    found = aggregate(labels)
    flagged = [name for name, flags in found.annotator_flags.items() if "worse than chance" in flags]
    part = summarize(found, labels)["annotators"]
    assert (part["total"], part["shown"]) == (labels.n_annotators, 3)
    assert {str(name) for name in flagged[:3]} <= {row["annotator"] for row in part["rows"]}


def test_of_many_classes_only_what_is_mixed_up_most_is_listed():
    _, _, labels = crowd(n=200, n_features=12, n_classes=10)
    rows = summarize(aggregate(labels), labels)["annotators"]["rows"]
    assert "confusion" not in rows[0]
    assert len(rows[0]["mixed_up"]) == 6
    shares = [one["share"] for one in rows[0]["mixed_up"]]
    assert shares == sorted(shares, reverse=True)


def test_texts_and_truth_are_matched_by_id(data):
    _, truth, labels = data
    ids = [f"e{i}" for i in range(90)]
    table = labels.to_table()
    named = CrowdLabels.from_table(table | {"example": np.array(ids)[table["example"]]}, examples=ids)
    found = aggregate(named)
    texts = pd.Series([f"text of {name}" for name in ids], index=ids)[::-1]
    known = dict(zip(ids, truth.tolist(), strict=True))
    summary = summarize(found, named, texts=texts, truth=known)
    assert all(row["text"] == f"text of {row['example']}" for row in summary["order"]["rows"])
    assert all(row["truth"] == str(known[row["example"]]) for row in summary["order"]["rows"])
    right = np.mean([found.label[i] == truth[i] for i in range(90) if named.labels_per_example[i]])
    np.testing.assert_allclose(summary["quality"]["known"]["consensus"]["value"], right)


def test_few_known_answers_are_enough(data, found):
    summary = summarize(found, data[2], truth={3: data[1][3], 5: data[1][5]})
    assert summary["quality"]["known"]["n"] == 2


def test_columns_for_tables_have_a_value_per_example_and_per_annotator(data):
    X, _, labels = data
    fit = Fit.of(fit_quietly(CrowdLogisticClassifier(), X, labels), labels)
    columns = consensus_columns(fit)
    expected = ["example", "label", "confidence", "p(0)", "p(1)", "p(2)", "labels", "majority", "disagreement"]
    assert list(columns) == [*expected, "easiness", "order"]
    assert {len(column) for column in columns.values()} == {90}
    assert sorted(columns["order"]) == list(range(1, 91))
    by_annotator = annotator_columns(fit)
    assert list(by_annotator)[-3:] == ["agrees_with_consensus", "agrees_with_model", "flags"]
    table = labels.to_table()
    mine = table["annotator"] == labels.annotators[2]
    same = table["label"][mine] == fit.results.label[table["example"][mine]]
    np.testing.assert_allclose(by_annotator["agrees_with_consensus"][2], same.mean())


@pytest.mark.parametrize("name", MODELS)
def test_predictions_of_unseen_examples_are_out_of_fold(name, data):
    X, truth, labels = data
    model = fit_quietly(MODELS[name], X, labels)
    assert (model.classes_[model.results_.model_proba.argmax(axis=1)] == truth).mean() > 0.75
    noise = np.random.default_rng(0).normal(size=(len(X), 300))  # to be overfitted, with nothing to learn from it
    model = fit_quietly(MODELS[name], noise, labels)
    assert (model.classes_[model.results_.model_proba.argmax(axis=1)] == labels.majority()).mean() < 0.5
    if name != "logistic":  # which chooses a penalty that leaves nothing
        assert (model.predict(noise) == labels.majority()).mean() > 0.8
    assert (
        np.average(annotator_columns(Fit.of(model, labels))["agrees_with_model"], weights=labels.labels_per_annotator)
        < 0.5
    )


def test_a_fit_from_a_file_gives_the_same_summary(data, found, tmp_path):
    X, _, labels = data
    model = fit_quietly(CrowdLogisticClassifier(), X, labels)
    model.save(tmp_path / "model.crowdwise")
    assert summarize(load(tmp_path / "model.crowdwise"), labels, X=X) == summarize(model, labels, X=X)
    found.save(tmp_path / "found.crowdwise")
    assert summarize(load(tmp_path / "found.crowdwise"), labels) == summarize(found, labels)


def test_pairs_of_a_part_of_many_labels_are_close_to_those_of_all(set_constants):
    _, _, labels = crowd(n=2000, n_annotators=6)
    whole = pairs(labels)
    set_constants("crowdwise.reporting.agreement", _MOST_LABEL_PAIRS=6000)
    part = pairs(labels)
    assert whole["share"] == 1.0 > part["share"] > 0
    assert part["median"] == pytest.approx(whole["median"], abs=0.05)
    set_constants("crowdwise.reporting.agreement", _MOST_COMPARED=4)
    busiest = pairs(labels)
    assert busiest["annotators"] == 4
    assert busiest["total"] == 6


def test_one_annotator_and_single_labels_are_summed_up_too():
    with pytest.warns(CrowdWarning):
        alone = aggregate(np.array([[0], [1], [1]]), steepness=1.0)
    summary = summarize(alone, [[0], [1], [1]])
    assert "one annotator" in summary["headline"][0]
    assert "the label of the only annotator" in "\n".join(summary_lines(summary))
    single = [["a", None], [None, "b"], ["b", None]]
    found = aggregate(single)
    assert "their accuracies cannot be compared" in summarize(found, single)["headline"][0]
    assert json.dumps(summarize(found, single), allow_nan=False)


def test_wrong_features_texts_and_truth_are_errors(data, found):
    X, _, labels = data
    with pytest.raises(DataError, match="10 rows and the fit 90"):
        summarize(found, labels, X=X[:10])
    with pytest.raises(DataError, match="texts must be one per"):
        summarize(found, labels, texts=["a", "b"])
    with pytest.raises(LabelError, match="truth"):
        summarize(found, labels, truth=["strange"] * 90)
    with pytest.raises(AlignmentError, match="90"):
        summarize(found, labels[:5])


def test_a_consensus_that_goes_beyond_what_was_given_is_counted_by_class():
    # Mallory swaps the classes, which others show; the last forty examples have nobody but Mallory, who says "b".
    both = [["a", "a", "b"], ["b", "b", "a"]] * 15
    alone = [[None, None, "b"]] * 40
    labels = CrowdLabels.from_matrix(both + alone, missing=None)
    model = aggregate(labels)
    chosen = int((np.asarray(model.consensus.label) == "a").sum())
    given = int((labels._tally[:, 0] > 0).sum())
    assert chosen > given == 30
    found = summarize(model, labels)["quality"]["more_than_given"]
    assert found == [{"name": "a", "given": given, "consensus": chosen}]


def test_independent_votes_are_counted_by_known_answers_where_there_are_enough(data, found):
    _, truth, labels = data
    by_labels = summarize(found, labels)["votes"]
    assert by_labels["truths"] == 0
    shared = np.flatnonzero(labels.labels_per_example > 1)[:20]
    known = {int(example): truth[example] for example in shared}
    few = {int(example): truth[example] for example in shared[1:]}
    assert summarize(found, labels, truth=few)["votes"] == by_labels
    for votes in (
        summarize(found, labels, truth=known)["votes"],  # they judge
        summarize(aggregate(labels, truth=known), labels)["votes"],  # they calibrate
    ):
        assert votes["truths"] == 20
    errors = error_correlation(found, labels, truth)
    assert summarize(found, labels, truth=truth)["votes"]["effective"] == pytest.approx(errors.effective_votes)


def test_truths_of_the_fit_judge_held_out_and_others_as_ever(data):
    X, truth, labels = data
    known = [*truth[:20].tolist(), *[None] * (len(truth) - 20)]
    found = aggregate(labels, truth=known)
    summary = summarize(found, labels, truth=known)
    assert summary["quality"]["known"] is None
    check = summary["truth_check"]
    assert check == found.truth_check.plain() | {"unknown": 70, "majority": check["majority"]}
    votes = labels._tally[:20]
    right = votes[np.arange(20), truth[:20]] == votes.max(axis=1)
    assert check["majority"] == pytest.approx((right / (votes == votes.max(axis=1, keepdims=True)).sum(axis=1)).mean())
    assert f"{100 * found.truth_check.accuracy:.1f}%" in quality_sentence(summary)
    assert "Calibrated with 20 known answers: held-out accuracy" in " ".join(summary_lines(summary))
    assert "have an expert check the" in summary["headline"][2]
    assert summary_lines(summary)[-1].startswith("Next        have an expert check: ")
    others = summarize(found, labels, truth=truth)["quality"]["known"]["n"]
    assert others == int((labels.labels_per_example[20:] > 0).sum())
    ratings = as_ratings(labels)
    model = CrowdRidgeRegressor().fit(X, ratings, truth=[None if value is None else float(value) for value in known])
    summary = summarize(model, ratings, X=X)
    assert f"held-out error {model.truth_check_.error:.3g} (95% interval" in quality_sentence(summary)
