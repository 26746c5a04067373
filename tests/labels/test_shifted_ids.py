import numpy as np
import pytest

from crowdwise import CrowdLabels, aggregate, align
from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.labels._mistakes import ids_shifted, ids_spelt_otherwise
from crowdwise.runs import read_inputs


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    return truth, np.where(rng.random((60, 5)) < 0.85, truth[:, np.newaxis], 1 - truth[:, np.newaxis])


@pytest.mark.parametrize(("shift", "some"), [(1, slice(5, 50)), (-1, slice(5, 50))])
def test_answers_of_the_next_example_are_refused_with_both_ids(crowd, shift, some):
    truth, matrix = crowd
    answers = {i + shift: answer for i, answer in enumerate(truth.tolist())}
    known = dict(list(answers.items())[some])
    cure = "Subtract 1 from" if shift > 0 else "Add 1 to"
    with pytest.raises(LabelError, match=rf"the answer of {5 + shift} fits the labels of 5, .*{cure} the ids"):
        aggregate(matrix, truth=known)


def test_answers_of_the_examples_themselves_are_not(crowd):
    truth, matrix = crowd
    assert aggregate(matrix, truth=dict(enumerate(truth.tolist()))).truth_check.n == 60
    blocks = np.repeat([0, 1], 30)  # neighbours of one class say nothing
    matrix = np.where(crowd[1] == truth[:, np.newaxis], blocks[:, np.newaxis], 1 - blocks[:, np.newaxis])
    assert aggregate(matrix, truth=dict(enumerate(blocks.tolist()))).truth_check.n == 60


def test_of_a_file_a_few_answers_are_enough_where_an_id_is_not_known(crowd, tmp_path):
    truth, matrix = crowd
    rows = [f"{i},w{j},{matrix[i, j]}\n" for i in range(60) for j in range(5)]
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + "".join(rows))
    (tmp_path / "truth.csv").write_text("task,label\n" + "".join(f"{i + 1},{truth[i]}\n" for i in range(50, 60)))
    with pytest.raises(LabelError, match="the answer of 51 fits"):
        read_inputs(tmp_path / "labels.csv", truth=tmp_path / "truth.csv")
    (tmp_path / "features.csv").write_text("id,size\n" + "".join(f"{i + 1},{i / 7}\n" for i in range(60)))
    with pytest.raises(AlignmentError, match="The ids look shifted by") as error:
        read_inputs(tmp_path / "labels.csv", tmp_path / "features.csv")
    assert "--join" not in str(error.value)


def test_a_shift_is_the_advice_in_python_too(crowd):
    pandas = pytest.importorskip("pandas")
    labels = CrowdLabels.from_matrix(crowd[1], examples=np.arange(60))
    with pytest.raises(AlignmentError, match="look shifted by one") as error:
        align(pandas.DataFrame({"size": np.arange(60.0)}, index=np.arange(1, 61)), labels)
    assert "inner" not in str(error.value)
    assert ids_shifted(np.array([0, 1, 2]), np.array([0, 1, 2, 3])) == ""
    assert ids_shifted(np.array(["a", "b"]), np.array(["b", "c"])) == ""


def test_a_decimal_point_is_named():
    advice = ids_spelt_otherwise(np.array(["0.0", "1.0"]), np.array([0, 1]))
    assert advice.startswith("2 ids would match but for a decimal point")
    assert "such as '0.0' and 0" in advice
