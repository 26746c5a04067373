import copy
import dataclasses
import pickle
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from crowdwise import CrowdLabels
from crowdwise.exceptions import CrowdWarning, LabelError

CLASS_KINDS = [st.integers(-3, 3), st.sampled_from(["a", "b", "c"]), st.booleans(), st.integers(2**60, 2**60 + 3)]

pytestmark = pytest.mark.filterwarnings("ignore:-1 counts as a class")  # which matrices that are drawn may have


@st.composite
def matrices(draw, *, max_examples=8, max_annotators=5, kinds=CLASS_KINDS):
    """Lists of lists of one kind of label, None where there is none."""
    kind = draw(st.sampled_from(kinds))
    n_annotators = draw(st.integers(1, max_annotators))
    cell = st.one_of(st.none(), kind) if draw(st.booleans()) else kind
    row = st.lists(cell, min_size=n_annotators, max_size=n_annotators)
    return draw(st.lists(row, min_size=1, max_size=max_examples))


def as_lists(matrix):
    """A matrix with None for every kind of missing."""
    return [[None if value != value else value for value in row] for row in matrix.tolist()]


# ---------------------------------------------------------------------- round trips


@given(matrices())
def test_a_matrix_comes_back_as_it_was(matrix):
    labels = CrowdLabels.from_matrix(matrix)
    assert as_lists(labels.to_matrix()) == matrix
    assert CrowdLabels.from_matrix(labels.to_matrix()) == labels


@given(matrices())
def test_matrix_and_table_make_the_same_labels(matrix):
    labels = CrowdLabels.from_matrix(matrix)
    declared = {"examples": labels.examples, "annotators": labels.annotators, "classes": labels.classes}
    assert CrowdLabels.from_table(labels.to_table(), **declared) == labels


@given(matrices(), st.randoms(use_true_random=False))
def test_the_order_of_a_table_does_not_matter(matrix, random):
    labels = CrowdLabels.from_matrix(matrix)
    table = labels.to_table()
    order = random.sample(range(labels.n_labels), labels.n_labels)
    shuffled = {name: column[order] for name, column in table.items()}
    assert CrowdLabels.from_table(shuffled) == CrowdLabels.from_table(table)


@given(matrices(kinds=[st.floats(-1e6, 1e6)]))
def test_ratings_come_back_as_they_were(matrix):
    labels = CrowdLabels.from_matrix(matrix, scale="interval")
    assert as_lists(labels.to_matrix()) == matrix
    declared = {"examples": labels.examples, "annotators": labels.annotators, "scale": "interval"}
    assert CrowdLabels.from_table(labels.to_table(), **declared) == labels


@given(matrices(), st.data())
def test_permuting_annotators_permutes_columns_and_nothing_else(matrix, data):
    order = data.draw(st.permutations(range(len(matrix[0]))))
    labels = CrowdLabels.from_matrix(matrix)
    permuted = CrowdLabels.from_matrix([[row[j] for j in order] for row in matrix], annotators=order)
    assert np.array_equal(permuted.counts(), labels.counts())
    assert as_lists(permuted.majority()[np.newaxis]) == as_lists(labels.majority()[np.newaxis])
    assert permuted.labels_per_annotator.tolist() == labels.labels_per_annotator[order].tolist()


@given(matrices())
def test_iteration_gives_the_labels_of_each_example_by_annotator(matrix):
    labels = CrowdLabels.from_matrix(matrix)
    expected = [(i, {j: label for j, label in enumerate(row) if label is not None}) for i, row in enumerate(matrix)]
    assert list(labels) == expected
    named = CrowdLabels.from_matrix(matrix, examples=[f"e{i}" for i in range(len(matrix))])
    assert dict(named) == {f"e{i}": given for i, given in expected}


def test_an_array_of_labels_has_to_copy():
    with pytest.raises(ValueError, match="has to copy"):
        np.array(CrowdLabels.from_matrix([[1, 2], [2, 1]]), copy=False)


def test_an_array_of_labels_is_not_the_labels_themselves():
    labels = CrowdLabels.from_matrix([[1, 2], [2, 1]], scale="interval")
    labels.to_matrix()[0, 0] = 9
    np.asarray(labels)[0] = 9
    assert labels.to_matrix()[0, 0] == 1


# ---------------------------------------------------------------------- selection


@given(matrices(), st.data())
def test_selecting_examples_equals_selecting_rows(matrix, data):
    labels, n = CrowdLabels.from_matrix(matrix), len(matrix)
    index = data.draw(st.lists(st.integers(-n, n - 1), max_size=2 * n))
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    cut = data.draw(st.slices(n))
    dense = labels.to_matrix()
    for rows in (index, mask, cut, np.array(index, dtype=int), (cut, ...)):
        plain = rows[0] if isinstance(rows, tuple) else rows
        chosen = np.arange(n)[plain]
        assert as_lists(labels[rows].to_matrix()) == as_lists(dense[chosen])
        assert labels[rows].examples.tolist() == chosen.tolist()
        assert labels[rows].to_table()["annotator"].tolist() == [
            j for i in chosen for j, label in enumerate(matrix[i]) if label is not None
        ]
        assert labels[rows].classes is labels.classes
        assert labels[rows].labels_per_example.tolist() == labels.labels_per_example[chosen].tolist()


@given(matrices(), st.data())
def test_selecting_annotators_equals_selecting_columns(matrix, data):
    labels = CrowdLabels.from_matrix(matrix)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(matrix[0]), max_size=len(matrix[0]))))
    chosen = labels.select_annotators(keep)
    assert as_lists(chosen.to_matrix()) == as_lists(labels.to_matrix()[:, keep])
    assert chosen.annotators.tolist() == labels.annotators[keep].tolist()


def test_selections_that_make_no_sense_are_errors():
    labels = CrowdLabels.from_matrix([[1, 2], [2, 1], [1, 1]])
    with pytest.raises(IndexError, match=r"labels\[\[1\]\], not labels\[1\]"):
        labels[1]
    with pytest.raises(IndexError, match="one list of examples; got"):
        labels[[[0, 1]]]
    with pytest.raises(IndexError, match="one list of examples"):
        labels[np.array(1)]
    with pytest.raises(IndexError, match="boolean index did not match"):
        labels[[True, False]]
    with pytest.raises(IndexError, match="out of bounds"):
        labels[[3]]
    with pytest.raises(IndexError, match="by example only"):
        labels[:, 0]
    for keep in ([True], ["a", "b"], [0], [[True, True]]):
        with pytest.raises(LabelError, match="mask with True or False"):
            labels.select_annotators(keep)


# ---------------------------------------------------------------------- counting


def naive_counts(matrix, classes):
    return [[sum(label == k for label in row if label is not None) for k in classes] for row in matrix]


@given(matrices())
def test_counts_and_majority_equal_those_counted_by_hand(matrix):
    labels = CrowdLabels.from_matrix(matrix)
    classes = sorted({label for row in matrix for label in row if label is not None})
    counts = naive_counts(matrix, classes)
    assert labels.counts().tolist() == counts
    majority = [classes[row.index(max(row))] if any(row) else None for row in counts]
    assert [None if value != value else value for value in labels.majority().tolist()] == majority
    drawn = labels.majority("random", random_state=0).tolist()
    for choice, row in zip(drawn, counts, strict=True):
        tied = [k for k, n in zip(classes, row, strict=True) if n == max(row)] if any(row) else [None]
        assert (None if choice != choice else choice) in tied


def test_random_ties_are_even_and_seeded():
    labels = CrowdLabels.from_matrix([["a", "b", "c"]] * 3000)
    drawn = labels.majority("random", random_state=1)
    assert np.array_equal(drawn, labels.majority("random", random_state=1))
    assert all(900 < (drawn == k).sum() < 1100 for k in "abc")


@given(matrices(), st.data())
def test_sums_per_example_and_annotator_equal_loops(matrix, data):
    labels = CrowdLabels.from_matrix(matrix)
    amounts = data.draw(st.lists(st.integers(-9, 9), min_size=labels.n_labels, max_size=labels.n_labels))
    per_example, per_annotator = [0] * labels.n_examples, [0] * labels.n_annotators
    given = iter(amounts)
    for i, row in enumerate(matrix):
        for j, label in enumerate(row):
            if label is not None:
                amount = next(given)
                per_example[i] += amount
                per_annotator[j] += amount
    assert labels._sum_per_example(np.array(amounts, dtype=int)).tolist() == per_example
    assert labels._sum_per_annotator(np.array(amounts, dtype=float)).tolist() == per_annotator
    as_sparse = labels._as_sparse(np.array(amounts, dtype=float))
    assert (as_sparse.sum(axis=1).tolist(), as_sparse.sum(axis=0).tolist()) == (per_example, per_annotator)
    assert as_sparse.indices.dtype == as_sparse.indptr.dtype == np.int32


def test_more_labels_on_one_example_than_a_byte_can_count():
    labels = CrowdLabels.from_matrix([[1] * 200 + [0] * 100, [0] * 300])
    assert labels.counts().tolist() == [[100, 200], [300, 0]]


def test_sizes_are_what_they_say():
    labels = CrowdLabels.from_matrix([[1, None, 2], [None, None, 1]])
    assert (len(labels), labels.shape, labels.n_labels, labels.scale.name) == (2, (2, 3), 3, "nominal")
    assert not labels.is_complete
    assert labels.labels_per_example.tolist() == [2, 1]
    assert labels.labels_per_annotator.tolist() == [1, 0, 2]
    assert labels.example_index.tolist() == [0, 0, 1]
    assert labels.annotator_index.tolist() == [0, 2, 2]


# ---------------------------------------------------------------------- what it is


def test_equality_sees_labels_names_and_classes():
    labels = CrowdLabels.from_matrix([[1, 2], [2, None]])
    assert labels == CrowdLabels.from_matrix([[1.0, 2.0], [2.0, np.nan]])
    assert labels != CrowdLabels.from_matrix([[1, 2], [None, 2]])
    assert labels != CrowdLabels.from_matrix([[1, 2], [2, None]], annotators=["a", "b"])
    assert labels != CrowdLabels.from_matrix([[1, 2], [2, None]], examples=["a", "b"])
    assert labels != CrowdLabels.from_matrix([[1, 2], [2, None]], classes=[1, 2, 3])
    assert labels != CrowdLabels.from_matrix([["1", "2"], ["2", None]])
    assert labels != CrowdLabels.from_matrix([[1, 2], [2, None]], scale="interval")
    nothing = np.full((2, 2), np.nan)
    assert CrowdLabels.from_matrix(nothing) != CrowdLabels.from_matrix(nothing, scale="interval")
    assert labels != "labels"
    with pytest.raises(TypeError, match="unhashable"):
        hash(labels)


def test_labels_are_frozen_also_when_copied_or_pickled():
    labels = CrowdLabels.from_matrix([[1, 2], [2, None]])
    with pytest.raises(AttributeError):
        labels.classes = np.array([3, 4])
    assert labels._tally is not None
    changed = dataclasses.replace(labels, values=labels.values.copy(), classes=np.array([8, 9]))
    recoded = labels._with_classes(np.array([2, 1]))
    chosen = labels.select_annotators([True, False])
    for same in (
        labels,
        labels[:1],
        changed,
        recoded,
        chosen,
        pickle.loads(pickle.dumps(labels)),
        copy.deepcopy(labels),
    ):
        with pytest.raises(ValueError, match="read-only"):
            same._tally[:1] = 0
        for part in (same.indptr, same.annotator_index, same.values, same.annotators, same.examples, same.classes):
            with pytest.raises(ValueError, match="read-only"):
                part[:1] = 0
    assert pickle.loads(pickle.dumps(labels)) == labels


def test_arrays_given_to_the_record_itself_stay_writable():
    classes = np.array([8, 9])
    labels = dataclasses.replace(CrowdLabels.from_matrix([[1, 2]]), classes=classes)
    assert classes.flags.writeable
    assert not labels.classes.flags.writeable


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.float64, bool])
def test_the_input_is_not_changed_frozen_or_shared(kind):
    matrix, names = np.array([[1, 0], [0, 1]], dtype=kind), np.array([5, 6])
    before = matrix.copy()
    scale = "nominal" if kind is bool else "interval"
    for labels in (
        CrowdLabels.from_matrix(matrix, annotators=names, examples=names),
        CrowdLabels.from_matrix(matrix, scale=scale),
    ):
        matrix[0, 0] = 0
        names[0] = 9
        assert labels.to_matrix()[0, 0] == 1
        assert 9 not in labels.annotators
        matrix[0, 0], names[0] = 1, 5
    assert np.array_equal(matrix, before)


def test_read_only_and_strided_input_is_fine():
    matrix = np.arange(24).reshape(4, 6)
    matrix.setflags(write=False)
    assert CrowdLabels.from_matrix(matrix[::2, ::-2]).to_matrix().tolist() == matrix[::2, ::-2].tolist()
    assert CrowdLabels.from_matrix(np.asfortranarray(matrix)).to_matrix().tolist() == matrix.tolist()


def test_the_picture_of_labels_fits_on_a_screen():
    labels = CrowdLabels.from_matrix([["x" * 5000, "b"], ["b", None]])
    assert max(map(len, repr(labels).splitlines())) < 120
    assert "2 examples, 2 annotators, 3 labels of 2 classes" in repr(labels)
    assert "1 to 2, mean 1.5; missing: 25.0%" in repr(labels)
    assert repr(CrowdLabels.from_matrix([list(range(20))])).endswith("6, 7, ...")
    assert "range: 0.5 to 2" in repr(CrowdLabels.from_matrix([[0.5, 2.0]], scale="interval"))
    assert "no rating" in repr(CrowdLabels.from_matrix([[np.nan]], scale="interval"))


def test_labels_take_no_more_than_a_few_bytes_each():
    rng = np.random.default_rng(0)
    n_examples, n_annotators = 50_000, 10_000
    table = {
        "example": np.repeat(np.arange(n_examples), 5),
        "annotator": (rng.integers(0, n_annotators, n_examples)[:, np.newaxis] + np.arange(5)).ravel() % n_annotators,
        "label": rng.integers(0, 2, 5 * n_examples),
    }
    labels = CrowdLabels.from_table(table)
    parts = (labels.indptr, labels.annotator_index, labels.values, labels.annotators, labels.examples, labels.classes)
    # 2 bytes for the annotator and 1 for the class of a label; 16 for an example; 8 for an annotator.
    assert sum(part.nbytes for part in parts) <= 3 * labels.n_labels + 16 * n_examples + 8 * n_annotators + 100
    assert sys.getsizeof(labels) < 200


# ---------------------------------------------------------------------- what is not there


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_matrices_are_labels_without_labels(shape):
    labels = CrowdLabels.from_matrix(np.zeros(shape))
    assert labels.shape == shape
    assert labels.n_labels == 0
    assert labels.to_matrix().shape == shape
    assert labels.counts().shape == (shape[0], 0)
    assert labels.majority().tolist() == [None] * shape[0]
    assert labels[:0].shape == (0, shape[1])
    assert repr(labels).startswith("CrowdLabels: ")


def test_all_missing_is_labels_without_labels():
    labels = CrowdLabels.from_matrix([[None, np.nan], [None, None]])
    assert (labels.shape, labels.n_labels, labels.majority().tolist()) == ((2, 2), 0, [None, None])
    assert CrowdLabels.from_matrix(np.full((2, 2), np.nan), classes=["a", "b"]).counts().tolist() == [[0, 0], [0, 0]]
    assert CrowdLabels.from_table({"task": [], "worker": [], "label": []}).shape == (0, 0)


def test_declared_examples_and_annotators_stay_without_labels():
    table = {"task": ["b", "a"], "worker": [2, 1], "label": ["x", "y"]}
    labels = CrowdLabels.from_table(table, examples=["c", "b", "a"], annotators=[3, 2, 1])
    assert labels.to_matrix().tolist() == [[None, None, None], [None, "x", None], [None, None, "y"]]


def test_minus_one_and_the_empty_string_are_missing_only_on_demand():
    assert CrowdLabels.from_matrix([[1, -1]]).n_labels == 2
    assert CrowdLabels.from_matrix([[1, -1]], missing=-1).n_labels == 1
    assert CrowdLabels.from_matrix([["", "a"]]).n_labels == 2
    assert CrowdLabels.from_matrix([["", "a"]], missing="").n_labels == 1
    assert CrowdLabels.from_matrix([[-1.0, None, np.nan]], missing=-1).n_labels == 0
    with pytest.raises(LabelError, match="missing must be a single value"):
        CrowdLabels.from_matrix([[1, -1]], missing=[-1, -9])


def test_a_table_has_one_more_value_for_missing_on_demand():
    table = {"task": ["a", "a", "b"], "worker": [0, 1, 0], "label": [1, -1, -1]}
    assert CrowdLabels.from_table(table).n_labels == 3
    labels = CrowdLabels.from_table(table, missing=-1, examples=["a", "b"])
    assert labels.classes.tolist() == [1]
    assert as_lists(labels.to_matrix()) == [[1], [None]]
    texts = {**table, "label": ["yes", "", None]}
    assert CrowdLabels.from_table(texts, missing="").n_labels == 1
    with pytest.raises(LabelError, match="missing must be a single value"):
        CrowdLabels.from_table(table, missing=[-1])


def test_objects_with_nan_are_read_without_a_warning():
    for nothing in (np.nan, float("nan"), np.float32("nan"), None):
        values = np.array([["a", nothing], ["b", "a"]], dtype=object)
        assert CrowdLabels.from_matrix(values).n_labels == 3


def test_masked_labels_are_missing():
    labels = CrowdLabels.from_matrix(np.ma.array([[1, 2], [2, 1]], mask=[[False, True], [False, False]]))
    assert as_lists(labels.to_matrix()) == [[1, None], [2, 1]]


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("values", "shape"),
    [([1, 2], r"\(2,\)"), ([[1, 2], [1]], r"\(2,\)"), ([], r"\(0,\)"), (np.zeros((1, 1, 1)), "1, 1, 1")],
)
def test_what_is_no_matrix_is_an_error(values, shape):
    with pytest.raises(LabelError, match=f"row per example and a column per annotator; got shape .*{shape}"):
        CrowdLabels.from_matrix(values)


def test_sparse_matrices_are_refused_because_zero_is_ambiguous():
    with pytest.raises(LabelError, match="sparse matrix does not say"):
        CrowdLabels.from_matrix(sparse.csr_matrix([[1, 0]]))


@pytest.mark.parametrize("scale", ["nominal", "interval"])
@pytest.mark.parametrize(
    "array", [np.array([[0.5, np.inf]]), np.array([[0.5, np.inf]], dtype=object)], ids=["float", "object"]
)
def test_infinity_is_an_error_with_its_place(array, scale):
    with pytest.raises(LabelError, match=r"infinity.*example 'u', annotator 7"):
        CrowdLabels.from_matrix(array, annotators=[3, 7], examples=["u"], scale=scale)


@pytest.mark.parametrize("value", ["1.5", "nan", np.datetime64("2020-01-01"), (1, 2)], ids=repr)
def test_ratings_that_are_no_numbers_are_errors_with_their_place(value):
    table = {"task": ["a", "b"], "worker": ["w", "w"], "label": [1.0, value]}
    with pytest.raises(LabelError, match="ratings must be numbers; found"):
        CrowdLabels.from_table(table, scale="interval")


def test_ratings_may_be_any_real_number():
    values = [[True, 2, 2.5, Decimal("0.5"), np.float32(4)]]
    assert CrowdLabels.from_matrix(values, scale="interval").values.tolist() == [1.0, 2.0, 2.5, 0.5, 4.0]
    with pytest.raises(LabelError, match="too large"):
        CrowdLabels.from_matrix([[10**400, 1]], scale="interval")
    with pytest.raises(LabelError, match="ratings have no classes"):
        CrowdLabels.from_matrix([[1, 2]], scale="interval", classes=[1, 2])
    for ask in ("counts", "majority"):
        with pytest.raises(LabelError, match=f"{ask} needs classes"):
            getattr(CrowdLabels.from_matrix([[1.5]], scale="interval"), ask)()


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match='scale must be "nominal", "ordinal"'):
        CrowdLabels.from_matrix([[1]], scale="x")
    with pytest.raises(ValueError, match='tie must be "first" or'):
        CrowdLabels.from_matrix([[1]]).majority("last")
    with pytest.raises(ValueError, match='on_duplicate must be "error", "first"'):
        CrowdLabels.from_table({"task": [1], "worker": [1], "label": [1]}, on_duplicate="mean")


def test_names_must_fit_the_matrix():
    with pytest.raises(LabelError, match="there are 2 annotators in"):
        CrowdLabels.from_matrix([[1, 2]], annotators=["a", "b", "c"])
    with pytest.raises(LabelError, match="there are 1 examples in"):
        CrowdLabels.from_matrix([[1, 2]], examples=["a", "b"])
    with pytest.raises(LabelError, match="annotators must not be missing"):
        CrowdLabels.from_matrix([[1, 2]], annotators=["a", None])


def test_tables_with_holes_say_where():
    with pytest.raises(LabelError, match="every label needs its annotator;"):
        CrowdLabels.from_table({"task": ["a", "b"], "worker": ["w", None], "label": [1, 2]})
    with pytest.raises(LabelError, match="one length; got 1, 2"):
        CrowdLabels.from_table({"task": ["a"], "worker": ["w", "v"], "label": [1, 2]})
    with pytest.raises(LabelError, match="2 labels are of an"):
        CrowdLabels.from_table({"task": ["a", "b", "c"], "worker": [1, 1, 1], "label": [1, 2, 1]}, examples=["a"])


def test_declared_classes_keep_their_order_and_must_be_real():
    labels = CrowdLabels.from_matrix([["low", "high"]], classes=["low", "medium", "high"])
    assert labels.classes.tolist() == ["low", "medium", "high"]
    assert labels.counts().tolist() == [[1, 0, 1]]
    with pytest.raises(LabelError, match="classes must not be missing"):
        CrowdLabels.from_matrix([[0, 1]], classes=[0, 1, np.nan])
    with pytest.raises(LabelError, match="classes must be different"):
        CrowdLabels.from_matrix([[0, 1]], classes=[0, 1, 1.0])


def test_repeated_answers_are_settled_as_asked():
    table = {"task": ["a", "a", "b", "a"], "worker": ["w", "w", "w", "w"], "label": ["x", "y", "x", "y"]}
    for which, expected in (("first", "x"), ("last", "y")):
        with pytest.warns(CrowdWarning, match=f"2 labels repeat .* 1 of them different: the {which} was kept"):
            labels = CrowdLabels.from_table(table, on_duplicate=which)
        assert labels.to_matrix().tolist() == [[expected], ["x"]]


@pytest.mark.parametrize("most", [1, 7, 10**6])
def test_sums_in_blocks_are_sums_over_the_labels_of_each_annotator(most, set_constants):
    set_constants("crowdwise.labels._label_rows", _MOST_STORED=most)
    matrix = [[1, None, 2], [None] * 3, [2, 2, 1], [None, None, 1]]
    labels = CrowdLabels.from_matrix(matrix)
    found = labels._sum_in_blocks(lambda at, example: (example + 1) * (labels.values[at] + 1.0))
    by_hand = [sum((i + 1) * row[j] for i, row in enumerate(matrix) if row[j] is not None) for j in range(3)]
    assert found.tolist() == by_hand
