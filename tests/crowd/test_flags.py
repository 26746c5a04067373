import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
from crowdwise.crowd.flags import same_answer


def twin(matrix):
    """Annotator by annotator, example by example."""
    rows, found = matrix.tolist(), []
    for j in range(matrix.shape[1]):
        given_by = [(row[j], [v for i, v in enumerate(row) if i != j and v is not None]) for row in rows]
        mine = [(own, others) for own, others in given_by if own is not None]
        beside = [(own, other) for own, others in mine for other in others]
        differ = sum(own != other for own, other in beside)
        always = len({own for own, _ in mine}) == 1 and len(mine) >= 20
        found.append(always and len(beside) >= 20 and differ >= 0.25 * len(beside))
    return found


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 3), st.sampled_from([0.0, 0.4]))
def test_who_gives_always_the_same_answer_is_found_as_by_the_slow_twin(seed, n_annotators, n_classes, missing):
    rng = np.random.default_rng(seed)
    often = rng.dirichlet(np.ones(n_classes) / 2, n_annotators)  # many give one class, or nearly
    matrix = np.array([rng.choice(n_classes, 40, p=share) for share in often]).T.astype(object)
    matrix[rng.random(matrix.shape) < missing] = None
    labels = CrowdLabels.from_matrix(matrix, classes=range(n_classes))
    assert same_answer(labels).tolist() == twin(matrix)


def test_the_same_answer_where_all_others_give_it_is_no_fault():
    said = np.zeros((40, 3), dtype=int)
    said[:5, 0] = 1
    said[:9, 1] = 1
    assert same_answer(CrowdLabels.from_matrix(said)).tolist() == [False, False, False]  # 14 of 80 differ
    said[:15, :2] = 1
    assert same_answer(CrowdLabels.from_matrix(said)).tolist() == [False, False, True]
    assert same_answer(CrowdLabels.from_matrix(said[10:29])).tolist() == [False, False, False]  # too few


def test_who_differs_late_only_is_not_taken_to_give_always_the_same():
    said = np.column_stack([np.arange(60) % 2, np.zeros(60, dtype=int)])
    said[-1, 1] = 1
    assert same_answer(CrowdLabels.from_matrix(said)).tolist() == [False, False]
    assert same_answer(CrowdLabels.from_matrix(said[:-1])).tolist() == [False, True]
