"""The rounds over labels: a slow twin of the default, Dawid and Skene to convergence, chunks, and one label each."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from crowds import HeldCrowd, crowd, labels_of
from hypothesis import assume, example, given
from hypothesis import strategies as st
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, norm

from crowdwise import CrowdLabels, aggregate
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.labels_only import annotator_merit, fit_labels, usual_answers, votes_part
from crowdwise.em.posterior import Counting
from crowdwise.exceptions import CrowdWarning
from crowdwise.rows.chunks import Chunk, MemoryChunks, Sums

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")

# ---------------------------------------------------------------------- the slow twin of the default


def twin_copies(shared, differ, often, n_pairs):
    """The probability of near copies, who disagree at most one in twenty times as often as independent ones would.

    Before, one pair of all depends on each other, and half of such pairs are near copies.
    """
    of_rate = beta(differ + 1, shared - differ + 1)
    near = of_rate.cdf(0.05 * often) / (0.05 * often)
    other = (of_rate.cdf(often) - of_rate.cdf(0.05 * often)) / (0.95 * often)
    return near / (near + other + 2 * (n_pairs - 1) * of_rate.pdf(often))


def twin_shares(rows, n_annotators, n_classes):
    """{(one, other): how much of the other's vote each is}, for pairs that hardly ever disagree."""
    shares, pairs = {}, combinations(range(n_annotators), 2)
    n_pairs = sum(any(a in row and b in row for row in rows) for a, b in pairs)
    for a in range(n_annotators):
        for b in range(a + 1, n_annotators):
            both = [row for row in rows if a in row and b in row]
            differ = sum(row[a] != row[b] for row in both)
            if len(both) < 10:
                continue
            often = [sum(list(row.values()).count(k) for row in both) for k in range(n_classes)]
            others = []
            for row in both:
                votes = [1e-3 * often[k] / sum(often) for k in range(n_classes)]
                for j, label in row.items():
                    votes[label] += j not in (a, b)
                others.append([vote / sum(votes) for vote in votes])
            given_of = {}
            for who in (a, b):
                for k in range(n_classes):
                    total = sum(other[k] for other in others)
                    for c in range(n_classes):
                        said = sum(other[k] for other, row in zip(others, both, strict=True) if row[who] == c)
                        given_of[who, k, c] = said / (total or 1)  # nobody may have given a class
            same = 0.0
            for other in others:
                for c in range(n_classes):
                    one, two = (sum(other[k] * given_of[who, k, c] for k in range(n_classes)) for who in (a, b))
                    same += one * two
            proba = twin_copies(len(both), differ, max(1 - same / len(both), 1e-12), n_pairs)
            if proba > 0.5:
                shares[a, b] = shares[b, a] = proba
    return shares


def twin_others(row, own, shares, j):
    """{annotator: what the label counts} of those who labelled an example beside j, copies as far as they are none."""
    return {i: own[i] * (1 - shares.get((i, j), 0.0)) for i in row if i != j}


def twin_merit(rows, weight, shares, vote_weight, n_annotators, n_classes):
    """Agreement with others beyond that of everybody's usual answers, shrunk towards the mean."""
    answers, seen, agreed, chance = np.zeros((n_annotators, n_classes)), *np.zeros((3, n_annotators))
    for row, own in zip(rows, weight, strict=True):
        for j, label in row.items():
            answers[j, label] += own[j]
    often = answers.sum(axis=0) / answers.sum()
    usual = []
    for j in range(n_annotators):
        of_annotator = answers[j] / vote_weight[j]
        usual.append((of_annotator + 4 * often) / (of_annotator.sum() + 4))
    for row, own in zip(rows, weight, strict=True):
        for j, label in row.items():
            for i, counts in twin_others(row, own, shares, j).items():
                counted = own[j] * counts / sum(own.values())
                seen[j] += counted
                agreed[j] += counted * (row[i] == label)
                chance[j] += counted * usual[i][label]
    by_chance = sum(chance) / sum(seen)
    beyond, possible = agreed - chance, (1 - by_chance) * seen
    mean = max(sum(beyond) / sum(possible), 1e-3)
    more = (1 - by_chance) / mean**2
    merit = []
    for j in range(n_annotators):
        agreement, comparisons = beyond[j] / vote_weight[j], possible[j] / vote_weight[j]
        merit.append(max((agreement + more * mean) / (comparisons + more), 1e-3))
    return merit


def twin_m_step(rows, weight, shares, posterior, n_annotators, n_classes):
    """Counts of labels, each as far as others say something about the example, and of examples."""
    counts, mass = np.zeros((n_annotators, n_classes, n_classes)), np.zeros(n_classes)
    for row, own, proba in zip(rows, weight, posterior, strict=True):
        mass += proba
        for j, label in row.items():
            others = sum(twin_others(row, own, shares, j).values())
            for k in range(n_classes):
                counts[j, k, label] += proba[k] * own[j] * others / sum(own.values())
    return counts, mass


def twin_matrices(counts, given, vote_weight):
    """Matrices shrunk towards the crowd's by four labels, and the crowd's by five that are right in 0.8 and a guess.

    A guess is a class as often as labels were given for it, on examples with others' labels or without.
    """
    n_annotators, n_classes = counts.shape[:2]
    total = counts.sum(axis=0)
    often = [(given[c] + 1 / n_classes) / (sum(given) + 1) for c in range(n_classes)]
    found = np.zeros_like(counts)
    for k in range(n_classes):
        row = [total[k, c] + 5 * (0.8 * (c == k) + 0.2 * often[c]) for c in range(n_classes)]
        for j in range(n_annotators):
            own = [counts[j, k, c] / vote_weight[j] + 4 * row[c] / sum(row) for c in range(n_classes)]
            found[j, k] = [one / sum(own) for one in own]
    return found


def twin_residuals(rows, weight, shares, posterior, confusion):
    """The correlation of the residuals of two labels given the class, and its standard error."""
    product, scale, square = 0.0, 0.0, 0.0
    n_classes = confusion.shape[1]
    for row, own, proba in zip(rows, weight, posterior, strict=True):
        of_row = 0.0
        for k in range(n_classes):
            for i in row:
                for j in row:
                    if i != j:
                        one, other = (np.eye(n_classes)[row[a]] - confusion[a, k] for a in (i, j))
                        counts = proba[k] * own[i] * own[j] * (1 - shares.get((i, j), 0.0))
                        of_row += counts * (one @ other)
                        spread = [np.sqrt(1 - (confusion[a, k] ** 2).sum()) for a in (i, j)]
                        scale += counts * spread[0] * spread[1]
        product, square = product + of_row, square + of_row**2
    return product / scale, np.sqrt(square) / scale


def twin_common(shown, error, labels_per_class):
    """Bayes: a correlation around 0.04, or none; as far as labels are many enough."""
    grid = np.linspace(0, 0.04 * 60, 400_001)
    density = np.exp(-grid / 0.04) / 0.04 * norm.pdf(shown, grid, error)
    step = grid[1] - grid[0]
    if_some = ((density[1:] + density[:-1]) / 2).sum() * step
    relative = density * np.minimum(grid / 0.04, 1)
    shown_some = ((relative[1:] + relative[:-1]) / 2).sum() * step / (if_some + norm.pdf(shown, 0, error))
    return 1 - (1 - shown_some) * labels_per_class / (30 + labels_per_class)


def twin(matrix, n_classes, common=None):
    """The consensus of labels by default; `common` is how far errors are, if it is not to be found by integration."""
    rows = [{j: label for j, label in enumerate(row) if label is not None} for row in matrix.tolist()]
    n_annotators = matrix.shape[1]
    shares = twin_shares(rows, n_annotators, n_classes)
    weight = [{j: 1 / (1 + sum(shares.get((i, j), 0.0) for i in row if i != j)) for j in row} for row in rows]
    vote_weight = [np.mean([own[j] for own in weight if j in own]) for j in range(n_annotators)]
    merit = twin_merit(rows, weight, shares, vote_weight, n_annotators, n_classes)
    votes, posterior = [], []
    for row, own in zip(rows, weight, strict=True):
        plain = np.array([sum(own[j] for j in row if row[j] == k) for k in range(n_classes)])
        good = np.array([sum(own[j] * merit[j] for j in row if row[j] == k) for k in range(n_classes)])
        votes.append(plain / plain.sum())
        squared = (good / good.sum()) ** 2
        posterior.append(squared / squared.sum())
    given = [
        sum(own[j] for row, own in zip(rows, weight, strict=True) for j in row if row[j] == k) for k in range(n_classes)
    ]
    of_votes, anchor = twin_m_step(rows, weight, shares, votes, n_annotators, n_classes), 0.0
    for _ in range(2):
        sums = twin_m_step(rows, weight, shares, posterior, n_annotators, n_classes)
        counts, mass = ((1 - anchor) * one + anchor * other for one, other in zip(sums, of_votes, strict=True))
        confusion, frequency = twin_matrices(counts, given, vote_weight), mass / mass.sum()
        posterior = []
        for row, own in zip(rows, weight, strict=True):
            joint = frequency.copy()
            for j, label in row.items():
                for k in range(n_classes):
                    joint[k] *= confusion[j, k, label] ** own[j]
            posterior.append(joint / joint.sum())
        shown, error = twin_residuals(rows, weight, shares, posterior, confusion)
        last_anchor, anchor = anchor, max(shown, 0) / (max(shown, 0) + 0.04)
    n_labels = sum(sum(own.values()) for own in weight)
    by_bayes = twin_common(shown, error, n_labels / (sum(vote_weight) * n_classes))
    common = by_bayes if common is None else common
    proba = []
    for row, own, one in zip(rows, weight, posterior, strict=True):
        n_votes = sum(own[j] * merit[j] for j in row) ** 2 / sum(own[j] * merit[j] ** 2 for j in row)
        tempered = one ** (n_votes ** (-0.7 * common))
        proba.append(tempered / tempered.sum())
    return {
        "proba": np.array(proba), "confusion": confusion, "frequency": frequency, "merit": np.array(merit),
        "correlation": shown, "anchor": last_anchor, "common": by_bayes,
        "vote_weight": vote_weight,
    }  # fmt: skip


def copied_crowd(seed, n_classes, missing):
    """A crowd with an exact and a near copy."""
    _, matrix = crowd(seed, n_examples=60, n_classes=n_classes, missing=missing)
    near = matrix[:, 1].copy()
    near[7] = None if near[7] is None else (near[7] + 1) % n_classes
    return np.column_stack([matrix, matrix[:, 0], near])


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.4, 0.7])
@pytest.mark.parametrize("seed", [0, in_slow_run(9)])
def test_the_default_equals_the_slow_twin(seed, missing, n_classes, copies):
    matrix = copied_crowd(seed, n_classes, missing) if copies else crowd(seed, n_classes=n_classes, missing=missing)[1]
    found = aggregate(labels_of(matrix, n_classes))
    slow = twin(matrix, n_classes, common=found.fitted.discount.common)
    assert found.n_rounds == 2
    assert_allclose(found.vote_weight, slow["vote_weight"], atol=1e-10)
    assert (found.vote_weight < 1).any() == copies
    assert_allclose(found.fitted.merit, slow["merit"], atol=1e-10)
    assert_allclose(found.confusion, slow["confusion"], atol=1e-10)
    assert_allclose(found.class_prior, slow["frequency"], atol=1e-10)
    assert_allclose(found.proba, slow["proba"], atol=1e-10)
    assert_allclose(found.fitted.discount.common, slow["common"], rtol=1e-6)
    choices = {choice.name: choice for choice in found.choices}
    assert_allclose(choices["discount for correlated errors"].score, slow["correlation"], atol=1e-10)
    assert_allclose(choices["weight of the vote shares"].chosen, slow["anchor"], atol=1e-10)


def test_the_twin_sees_errors_in_common():
    """The crowds above have an anchor and a copy, so that the comparison is not of zeros."""
    found = twin(copied_crowd(9, 3, 0.0), 3)
    assert found["anchor"] > 0.05
    assert_allclose(found["vote_weight"][:2], 0.5, atol=0.2)


# ---------------------------------------------------------------------- Dawid and Skene


def dawid_skene(matrix, n_classes, n_rounds=3000, strength=4.0):
    """Their method with loops over labels, every row of a matrix with `strength` labels spread evenly."""
    given = [(i, j, label) for (i, j), label in np.ndenumerate(matrix) if label is not None]
    posterior = np.zeros((len(matrix), n_classes))
    for i, _, label in given:
        posterior[i, label] += 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    for _ in range(n_rounds):
        frequency, last = posterior.mean(axis=0), posterior
        confusion = np.full((matrix.shape[1], n_classes, n_classes), strength / n_classes)
        for i, j, label in given:
            confusion[j, :, label] += posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        posterior = np.tile(frequency, (len(matrix), 1))
        for i, j, label in given:
            posterior[i] *= confusion[j, :, label]
        posterior /= posterior.sum(axis=1, keepdims=True)
        if np.abs(posterior - last).max() < 1e-14:
            break
    return posterior, confusion, frequency


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_independent_errors_are_dawid_and_skene_at_convergence(n_classes, missing):
    _, matrix = crowd(1, n_classes=n_classes, missing=missing, n_examples=60)
    posterior, confusion, frequency = dawid_skene(matrix, n_classes)
    settings = {"annotator_model": Confusion(), "errors_in_common": False, "max_rounds": 3000, "tol": 1e-15}
    found = aggregate(labels_of(matrix, n_classes), **settings)
    assert found.converged
    assert_allclose(found.proba, posterior, atol=1e-10)
    assert_allclose(found.confusion, confusion, atol=1e-10)
    assert_allclose(found.class_prior, frequency, atol=1e-10)
    accuracy = np.einsum("lkk,k->l", confusion, frequency)
    assert_allclose(found.accuracy, accuracy, atol=1e-10)
    assert_allclose(found.expertise, 1 / (4 * (1 - accuracy)), rtol=1e-8)


def test_independent_errors_converge_by_default_and_others_have_two_rounds():
    _, matrix = crowd(missing=0.3)
    plain, few = aggregate(labels_of(matrix), errors_in_common=False), aggregate(labels_of(matrix))
    assert plain.n_rounds > 5 > few.n_rounds == 2
    assert plain.converged
    assert few.converged  # as many as were meant to be
    assert plain.choices == ()


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), HeldCrowd(Shared())], ids=repr)
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]), steepness=st.sampled_from([0.0, 3.0]))
@quiet
def test_the_objective_never_falls(model, seed, n_classes, steepness):
    _, matrix = crowd(seed, n_classes=n_classes, missing=0.3)
    given_settings = {"annotator_model": model, "steepness": steepness, "max_rounds": 200}
    result = aggregate(labels_of(matrix, n_classes), errors_in_common=False, **given_settings)
    assert (np.diff(result.objective) >= -1e-8).all()


@quiet
@given(seed=st.integers(0, 10**6), anchor=st.sampled_from([0.1, 0.5]))
def test_with_a_fixed_anchor_and_crowd_the_objective_never_falls(seed, anchor):
    """What the M-step gets of votes and posterior maximises the sum of both parts."""
    _, matrix = crowd(seed, n_classes=3, missing=0.3, n_annotators=6)
    full = (np.array([[v is not None for v in row] for row in matrix])).sum(axis=1)
    assume((full > 1).all())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crowdwise.em.labels_only.votes_part", lambda correlation: anchor)
        # All labels count alike, so that the E-step and the M-step have the same objective.
        patch.setattr(Counting, "judged", Counting.incidence)
        result = aggregate(labels_of(matrix, 3), annotator_model=HeldCrowd(Shared()), max_rounds=40)
    assert (np.diff(result.objective[1:]) >= -1e-8).all()  # the first round has no anchor


# ---------------------------------------------------------------------- parts


def test_the_votes_part_by_hand():
    assert votes_part(-0.3) == votes_part(0.0) == 0.0
    assert votes_part(0.04) == 0.5
    assert votes_part(0.12) == pytest.approx(0.75)


def test_merit_by_hand():
    # By chance half of the others agree. One always does, one mostly, one is unseen.
    seen = np.array([10.0, 10.0, 0.0])
    merit, comparable = annotator_merit(
        Sums(compared=seen, seen=seen, chance=seen / 2, agreed=np.array([10.0, 7.0, 0.0])), np.ones(3)
    )
    mean = (5 + 2) / (5 + 5)
    more = 0.5 / mean**2
    assert_allclose(merit, [(5 + more * mean) / (5 + more), (2 + more * mean) / (5 + more), mean])
    assert comparable


def test_no_merit_is_less_than_a_thousandth():
    seen = np.array([1e4, 1e4])
    merit, _ = annotator_merit(Sums(compared=seen, seen=seen, chance=seen / 2, agreed=np.array([1e4, 0.0])), np.ones(2))
    assert merit[1] == 1e-3


def test_where_nobody_shares_an_example_all_have_the_same_merit():
    none = np.zeros(2)
    merit, comparable = annotator_merit(Sums(compared=none, seen=none, chance=none, agreed=none), np.ones(2))
    assert merit.tolist() == [1.0, 1.0]
    assert comparable is False


def test_usual_answers_by_hand():
    # Classes are equally frequent, and four labels of the crowd are added to those of each.
    assert_allclose(
        usual_answers(np.array([[4.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), np.ones(3)),
        [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]],
    )


def test_more_annotators_who_always_give_one_class_change_little():
    # Six honest annotators, and one or seven who always give the first class: they show nothing about each other.
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=400)
    honest = np.where(rng.random((400, 6)) < 0.75, truth[:, None], 1 - truth[:, None])
    right = [(aggregate(np.column_stack([honest, np.zeros((400, n))])).label == truth).mean() for n in (1, 7)]
    assert right[1] > right[0] - 0.02


# ---------------------------------------------------------------------- chunks


def chunks_of_rows(labels, weight, n_rows):
    """Chunks of so many rows; the last has fewer."""
    parts = [slice(start, start + n_rows) for start in range(0, len(labels), n_rows)]
    return MemoryChunks([Chunk(labels[at], weight[at], memo={}) for at in parts])


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("n_rows", [1, 7, 64])
def test_many_small_chunks_give_what_one_gives(n_rows, independent, rng):
    labels = labels_of(copied_crowd(4, 3, 0.4), 3)
    weight = rng.uniform(0.5, 2, len(labels))
    sharing = VoteSharing.none() if independent else VoteSharing.of_copies(labels)
    assert independent or len(sharing)

    def fit(chunks):
        return fit_labels(chunks, Counting(3, sharing, independent=independent), Shared())

    many, whole = chunks_of_rows(labels, weight, n_rows), MemoryChunks.of(labels, weight, whole=True)
    assert (len(many.chunks), len(whole.chunks)) == (-(-60 // n_rows), 1)
    one, other = fit(whole), fit(many)
    assert_allclose(other.posterior.annotators.confusion, one.posterior.annotators.confusion, rtol=1e-12)
    assert_allclose(other.class_prior, one.class_prior, rtol=1e-12)
    assert_allclose(other.merit, one.merit, rtol=1e-12)
    assert_allclose(other.objective, one.objective, rtol=1e-12)
    assert_allclose([other.correlation, other.anchor], [one.correlation, one.anchor], rtol=1e-10, atol=1e-14)
    proba = whole.gather(lambda chunk: one.posterior(chunk)[0])
    assert_allclose(many.gather(lambda chunk: other.posterior(chunk)[0]), proba, atol=1e-12)


def test_a_weight_of_two_is_the_row_twice():
    labels, weight = labels_of(copied_crowd(4, 3, 0.4), 3), np.ones(60)
    weight[:20] = 2
    sharing = VoteSharing.of_copies(labels)
    twice = np.concatenate([np.arange(60), np.arange(20)])
    one, other = (
        fit_labels(MemoryChunks.of(some, own), Counting(3, sharing), Shared())
        for some, own in ((labels, weight), (labels[twice], np.ones(80)))
    )
    assert_allclose(other.posterior.annotators.confusion, one.posterior.annotators.confusion, rtol=1e-12)
    assert_allclose(other.merit, one.merit, rtol=1e-12)
    assert_allclose(other.class_prior, one.class_prior, rtol=1e-12)
    assert_allclose(other.correlation, one.correlation, rtol=1e-10)
    assert_allclose(other.class_counts, one.class_counts)


# ---------------------------------------------------------------------- one label per example


def one_label_each(seed, n_examples, n_annotators, n_classes, overlap):
    """Labels that are right in nine of ten cases: one per example, and a second on a share of them; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_examples, p=rng.dirichlet(3 * np.ones(n_classes)))
    skill = rng.uniform(0.8, 1.0, n_annotators)
    matrix = np.full((n_examples, n_annotators), None, dtype=object)
    for i in range(n_examples):
        for j in rng.permutation(n_annotators)[: 1 + (i < overlap * n_examples)]:
            wrong = (truth[i] + rng.integers(1, n_classes)) % n_classes
            matrix[i, j] = truth[i] if rng.random() < skill[j] else wrong
    return matrix, truth


# What may be asked for: the default, other models of annotators, the published method.
ASKED = {
    "default": {},
    "confusion": {"annotator_model": Confusion()},
    "one coin": {"annotator_model": OneCoin()},
    "independent": {"errors_in_common": False},
    "Dawid and Skene": {"errors_in_common": False, "annotator_model": Confusion()},
    "independent, one coin": {"errors_in_common": False, "annotator_model": OneCoin()},
}


@pytest.mark.parametrize("settings", ASKED.values(), ids=ASKED)
@example(seed=290, n_annotators=1, n_classes=3)  # classes so rare that errors would be more frequent
@example(seed=484, n_annotators=5, n_classes=3)
@given(seed=st.integers(0, 10**6), n_annotators=st.sampled_from([1, 2, 5, 20]), n_classes=st.sampled_from([2, 3, 8]))
def test_without_shared_examples_the_consensus_is_the_label_and_nobody_can_be_compared(
    settings, seed, n_annotators, n_classes
):
    matrix, _ = one_label_each(seed, 60, n_annotators, n_classes, 0.0)
    given_labels = np.array([next(v for v in row if v is not None) for row in matrix])
    assume(len(set(given_labels)) > 1)
    labels = CrowdLabels.from_matrix(matrix, classes=range(n_classes + 1))  # one that nobody gave
    found = aggregate(labels, **settings)
    assert_array_equal(found.label, given_labels)
    assert np.isnan(found.accuracy).all()
    active = np.array([any(v is not None for v in column) for column in matrix.T])
    assert_array_equal(found.expertise[active], 1.0)
    assert not any("worse than chance" in flags for flags in found.annotator_flags.values())
    assert "no two share an example" in repr(found)


@pytest.mark.parametrize("settings", ASKED.values(), ids=ASKED)
def test_who_shares_no_example_answers_as_the_crowd_does(settings, rng):
    truth = rng.integers(0, 3, 200)
    matrix = np.where(rng.random((200, 4)) < 0.85, truth[:, np.newaxis], rng.integers(0, 3, (200, 4))).astype(object)
    matrix[150:, :3], matrix[:150, 3] = None, None  # the last one is alone
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = aggregate(CrowdLabels.from_matrix(matrix), **settings)
    assert_array_equal(found.label[150:], matrix[150:, 3].astype(int))
    assert_allclose(found.fitted.confusion[3], found.fitted.answers.crowd, rtol=1e-12)
    others = aggregate(CrowdLabels.from_matrix(matrix[:150, :3]), **settings)
    assert (found.label[:150] == others.label).mean() > 0.97  # classes have another frequency


def test_few_shared_examples_and_independent_errors_are_warned_about():
    matrix, _ = one_label_each(0, 100, 5, 3, 0.1)
    with pytest.warns(CrowdWarning, match="only 18% of the labels"):
        aggregate(CrowdLabels.from_matrix(matrix), errors_in_common=False)


@pytest.mark.parametrize("overlap", [in_slow_run(0.02), 0.05, in_slow_run(0.1)])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_annotators", [3, 12])
@pytest.mark.parametrize("name", ["default", "confusion", "one coin"])
def test_with_some_shared_examples_the_consensus_is_as_right_as_the_labels(name, n_annotators, n_classes, overlap):
    gains = []
    for seed in range(6):
        matrix, truth = one_label_each(seed, 400, n_annotators, n_classes, overlap)
        found = aggregate(CrowdLabels.from_matrix(matrix, classes=range(n_classes)), **ASKED[name])
        alone = np.array([sum(v is not None for v in row) == 1 for row in matrix])
        first = np.array([next(v for v in row if v is not None) for row in matrix])
        gains.append((found.label == truth).mean() - (first == truth).mean())
        assert (found.label == first)[alone].mean() > 0.97  # unless shared examples show that the annotator errs
        assert np.isfinite(found.accuracy).all()
    assert min(gains) > -0.01
