"""The alternative annotator test: by hand, as published, against a slow twin, and where it cannot be done."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from crowdwise import CrowdLabels
from crowdwise.crowd import alternative_annotator_test
from crowdwise.exceptions import CrowdWarning, LabelError


def slow_test(rows, candidate, humans, epsilon, fdr, min_examples, *, ratings):
    """The procedure of the paper, one label after the other; rows are dicts from annotator to label."""

    def score(label, others):
        if ratings:
            return -np.sqrt(np.mean([(label - other) ** 2 for other in others]))
        return np.mean([label == other for other in others])

    p_values, advantages = {}, {}
    for person in humans:
        ours, theirs = [], []
        for row in rows:
            others = [row[name] for name in humans if name in row and name != person]
            if person in row and candidate in row and others:
                a, b = score(row[candidate], others), score(row[person], others)
                close = abs(a - b) < 1e-9
                ours.append(float(a > b or close))
                theirs.append(float(b > a or close))
        if len(ours) >= min_examples:
            worse = np.subtract(theirs, ours)
            constant = np.ptp(worse) == 0
            certain = float(worse[0] >= epsilon) if constant else None
            p_values[person] = certain if constant else stats.ttest_1samp(worse, epsilon, alternative="less").pvalue
            advantages[person] = np.mean(ours)
    ranked = sorted(p_values, key=p_values.get)
    harmonic = sum(1 / i for i in range(1, len(ranked) + 1))
    passed = [i for i, name in enumerate(ranked, 1) if p_values[name] <= i / len(ranked) * fdr / harmonic]
    return set(ranked[: max(passed, default=0)]), p_values, advantages


def panel(seed, *, n=60, missing=0.2, scale="nominal"):
    """Four people and a model; every annotator has a skill."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, (n, 1))
    skill = rng.uniform(0.3, 0.95, 5)
    said = np.where(rng.random((n, 5)) < skill, truth, rng.integers(0, 4, (n, 5))).astype(float)
    said[rng.random((n, 5)) < missing] = np.nan
    return CrowdLabels.from_matrix(said, annotators=["a", "b", "c", "d", "model"], scale=scale)


@pytest.mark.parametrize("scale", ["nominal", "interval"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([0.0, 0.1, 0.2]), missing=st.sampled_from([0.0, 0.5]))
def test_it_equals_the_slow_twin(scale, seed, epsilon, missing):
    labels = panel(seed, missing=missing, scale=scale)
    rows = [dict(given) for _, given in labels]
    wins, p_values, advantages = slow_test(
        rows, "model", list("abcd"), epsilon, 0.05, 2, ratings=scale == "interval"
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        found = alternative_annotator_test(labels, "model", epsilon=epsilon, min_examples=2)
    assert found.humans[found.tested].tolist() == list(p_values)
    assert_allclose(found.p_value[found.tested], list(p_values.values()), atol=1e-12)
    assert_allclose(found.advantage[found.tested], list(advantages.values()))
    assert set(found.humans[found.wins].tolist()) == wins
    assert found.winning_rate == len(wins) / len(p_values)


def test_known_answer_by_hand():
    # Three people; the model differs from person a only, on 8 of 40 examples where a differs from b and c.
    people = np.zeros((40, 3), dtype=int)
    people[:8, 0] = 1
    model = np.zeros((40, 1), dtype=int)
    labels = CrowdLabels.from_matrix(np.hstack([people, model]), annotators=["a", "b", "c", "model"])
    found = alternative_annotator_test(labels, "model")
    # Against a: closer on 8, tied on 32. Against b: the others are a and c, and the model says what b says: tied on 40.
    assert_array_equal(found.n_examples, [40, 40, 40])
    assert_array_equal(found.advantage, [1, 1, 1])
    assert_allclose(found.human_advantage, [0.8, 1, 1])
    t = (-0.2 - 0.2) / np.sqrt(40 * 0.2 * 0.8 / 39 / 40)
    assert_allclose(found.p_value, [stats.t.cdf(t, 39), 0, 0])
    assert found.passed
    assert (found.winning_rate, found.advantage_probability) == (1, 1)
    assert found.to_frame()["wins"].tolist() == [True, True, True]
    # A tie on every example is worse by exactly nothing: not clearly less than an epsilon of nothing.
    strict = alternative_annotator_test(labels, "model", epsilon=0)
    assert_allclose(strict.p_value[1:], 1)
    assert strict.winning_rate == pytest.approx(1 / 3)
    assert not strict.passed


def test_ratings_that_are_equally_far_tie_whatever_is_rounded():
    # The others of the first person are 0.2 and 0.4; 0.5 and 0.1 are equally far from them.
    labels = CrowdLabels.from_matrix([[0.5, 0.2, 0.4, 0.1]] * 40, annotators=["a", "b", "c", "model"], scale="interval")
    found = alternative_annotator_test(labels, "model")
    assert (found.advantage[0], found.human_advantage[0]) == (1, 1)


def test_the_correction_is_that_of_benjamini_and_yekutieli():
    found = alternative_annotator_test(panel(1, missing=0), "model", epsilon=0.1)
    expected = stats.false_discovery_control(found.p_value, method="by")
    assert_allclose(found.p_adjusted, expected)
    assert (found.p_adjusted > found.p_value).any()


PUBLISHED = {  # winning rate and advantage probability, as printed in the notebook of the authors' repository
    "framing": (0.15, "nominal", {"gpt-4o": (1.00, 0.92), "llama-31": (0.50, 0.80), "mistral-v03": (0.25, 0.80)}),
    "mtbench": (0.20, "nominal", {"gpt-4o": (0.00, 0.77), "gemini_flash": (0.00, 0.72)}),
    "10k_prompts": (0.15, "interval", {"gpt-4o-mini": (0.92, 0.80), "gemini_pro": (0.08, 0.63)}),
    "cebab_stars": (0.10, "interval", {"gpt-4o": (0.90, 0.90), "llama-31": (0.60, 0.85)}),
}


@pytest.mark.filterwarnings("ignore:.*left out of the test:crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_results(name, data_home):
    if not (place := data_home / "judges" / name / "labels.csv").exists():
        pytest.skip("needs the judges' labels: a directory judges/ in CROWDWISE_DATA")
    epsilon, scale, results = PUBLISHED[name]
    table = pd.read_csv(place, dtype={"worker": str})
    humans = table.loc[table["kind"] == "human", "worker"].unique()
    labels = CrowdLabels.from_table(table[["task", "worker", "label"]], scale=scale)
    for model, expected in results.items():
        found = alternative_annotator_test(labels, model, humans, epsilon=epsilon)
        assert (round(found.winning_rate, 2), round(found.advantage_probability, 2)) == expected


@pytest.mark.parametrize("scale", ["nominal", "interval"])
def test_order_and_names_change_nothing(scale):
    labels = panel(3, missing=0.1, scale=scale)
    rng = np.random.default_rng(0)
    matrix, who = labels.to_matrix(), np.array([2, 4, 0, 1, 3])
    names = np.array(["p", "q", "r", "s", "judge"], dtype=object)[who]
    moved = CrowdLabels.from_matrix(matrix[rng.permutation(60)][:, who], annotators=names, scale=scale)
    one, other = alternative_annotator_test(labels, "model"), alternative_annotator_test(moved, "judge")
    order = np.argsort(other.humans.astype(str))
    for name in ("n_examples", "advantage", "human_advantage", "p_value", "p_adjusted"):
        assert_allclose(getattr(one, name), getattr(other, name)[order], atol=1e-12)


def test_other_models_in_the_table_take_no_part():
    labels = panel(2)
    matrix = np.column_stack([labels.to_matrix(), np.zeros(60)])
    more = CrowdLabels.from_matrix(matrix, annotators=[*labels.annotators, "other model"])
    one = alternative_annotator_test(labels, "model")
    other = alternative_annotator_test(more, "model", humans=["d", "a", "b", "c"])
    assert_array_equal(one.p_value, other.p_value)


def test_a_perfect_model_passes_and_a_random_one_does_not():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (200, 1))
    people = np.where(rng.random((200, 4)) < 0.8, truth, rng.integers(0, 3, (200, 4)))
    said = np.hstack([people, truth, rng.integers(0, 3, (200, 1))])
    labels = CrowdLabels.from_matrix(said, annotators=["a", "b", "c", "d", "perfect", "random"])
    assert alternative_annotator_test(labels, "perfect", humans=list("abcd")).passed
    found = alternative_annotator_test(labels, "random", humans=list("abcd"))
    assert found.winning_rate == 0
    assert "'random' may not replace a person (epsilon 0.2)" in repr(found)
    assert "wins over 0 of 4 people: winning rate 0.00" in repr(found)


def test_people_with_few_examples_are_left_out_with_a_note():
    labels = panel(4, n=60, missing=0)
    matrix = labels.to_matrix().astype(float)
    matrix[20:, 0] = np.nan
    labels = CrowdLabels.from_matrix(matrix, annotators=labels.annotators)
    with pytest.warns(CrowdWarning, match="1 of 4 people are"):
        found = alternative_annotator_test(labels, "model")
    assert found.tested.tolist() == [False, True, True, True]
    assert np.isnan(found.p_value[0])
    assert found.n_examples[0] == 20
    with pytest.warns(CrowdWarning, match="too few for a reliable t-test"):
        found = alternative_annotator_test(labels, "model", min_examples=20)
    assert found.tested.all()


def test_what_cannot_be_tested_is_an_error():
    labels = panel(0)
    with pytest.raises(LabelError, match="candidate: no annotator is called"):
        alternative_annotator_test(labels, "gpt")
    with pytest.raises(LabelError, match="humans: no annotator is called 'z'"):
        alternative_annotator_test(labels, "model", humans=["a", "b", "z"])
    with pytest.raises(LabelError, match="at least 3 people beside"):
        alternative_annotator_test(labels, "model", humans=["a", "b"])
    with pytest.raises(LabelError, match="'model' cannot be one of"):
        alternative_annotator_test(labels, "model", humans=["a", "b", "c", "model"])
    with pytest.raises(LabelError, match="humans must be a list"):
        alternative_annotator_test(labels, "model", humans="abc")
    with pytest.raises(LabelError, match="no person has 30 examples"):
        alternative_annotator_test(labels[:25], "model")
    with pytest.raises(ValueError, match="epsilon must be a finite"):
        alternative_annotator_test(labels, "model", epsilon=-0.1)
    with pytest.raises(ValueError, match="min_examples must be a whole"):
        alternative_annotator_test(labels, "model", min_examples=1)


def test_a_frame_with_a_column_per_annotator_will_do():
    labels = panel(5, missing=0)
    frame = pd.DataFrame(labels.to_matrix(), columns=labels.annotators)
    one, other = alternative_annotator_test(labels, "model"), alternative_annotator_test(frame, "model")
    assert_array_equal(one.p_value, other.p_value)
