import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

from crowdwise.exceptions import DataError
from crowdwise.paper.reproduce import Options, reproduce
from crowdwise.paper.reproduce.draws import benchmark, draw_usable, measure
from crowdwise.paper.reproduce.protocol import read_data
from crowdwise.paper.reproduce.table2 import effect
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.paper.reproduce.wins import Wins, count_wins


@pytest.fixture
def examples():
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(240) % 3 == 0, 1, -1)
    return rng.normal(size=(240, 4)).round(3) + 0.5 * truth[:, np.newaxis], truth


@pytest.fixture
def libsvm(examples, tmp_path):
    path = tmp_path / "mine.libsvm"
    dump_svmlight_file(*examples, str(path), zero_based=False)
    return path


@pytest.fixture
def table(examples, tmp_path):
    X, truth = examples
    rows = [
        f"{i},{','.join(map(str, row))},{'spam' if t > 0 else 'ham'}"
        for i, (row, t) in enumerate(zip(X, truth, strict=True))
    ]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["id,a,b,c,d,class", *rows]) + "\n")
    return path


def test_wins_are_those_of_versions_drawn_one_by_one(libsvm, tmp_path):
    options = Options(out=tmp_path, data=libsvm, trials=3, seed=5, steepnesses=(2.0,))
    report = reproduce("protocol", options)
    data = read_data(libsvm, None)
    areas = []
    for trial in range(3):
        rng = np.random.default_rng(trial_seed(5, trial))
        drawn = draw_usable(lambda rng: benchmark(rng, data, 1.0), rng, redraw=True)
        assert drawn.labels.shape == (
            2 * (drawn.labels.to_matrix()[:, 10] > 0).sum(),
            12,
        )  # balanced, twelve annotators
        assert len(drawn.truth_test) == 60  # a quarter
        areas.append([row["roc"] for row in measure(drawn, [2.0])])
    plain, weighted = np.transpose(areas)
    (setting,) = report.summary["settings"]
    assert setting["roc"] == count_wins(weighted, plain).as_dict()
    assert setting["paper"] is None
    assert "| α=2, p=1 |" in report.as_text()
    assert "positive class: 1" in report.as_text()
    assert "paper" not in report.as_text()
    assert json.loads((tmp_path / "protocol" / "run.json").read_text())["data"] == "mine.libsvm"


def test_a_table_gives_its_columns_and_classes(table, examples):
    data = read_data(table, None)
    np.testing.assert_array_equal(data.truth, examples[1])
    assert pytest.approx((examples[0] - examples[0].mean(axis=0)) / examples[0].std(axis=0)) == data.X
    assert data.note.startswith("classes: column 'class'; features: 'a', 'b', 'c', 'd' as numbers")
    np.testing.assert_array_equal(read_data(table, "class").truth, data.truth)


def test_numbers_are_classes_in_their_order_and_mostly_zero_features_stay_sparse(tmp_path):
    truth = np.repeat([-1, 1], 50)
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"{i},{t:+d}\n" for i, t in enumerate(truth)))
    np.testing.assert_array_equal(read_data(tmp_path / "t.csv", None).truth, truth)
    X = np.zeros((100, 8))
    X[:, 7], X[::2, 0] = 1.0, 2.0
    dump_svmlight_file(X, truth, str(tmp_path / "sparse"), zero_based=False)
    data = read_data(tmp_path / "sparse", None)
    assert isinstance(data.X, csr_array)
    np.testing.assert_array_equal(data.X.toarray(), X)


def test_several_clarities_share_their_splits_and_go_on_after_a_stop(table, tmp_path):
    first = Options(out=tmp_path / "both", data=table, trials=1, steepnesses=(2.0,), clarities=(1.0, 5.0))
    reproduce("protocol", first)
    options = Options(out=tmp_path / "both", data=table, trials=2, steepnesses=(2.0,), clarities=(1.0, 5.0))
    settings = reproduce("protocol", options).summary["settings"]
    assert [setting["clarity"] for setting in settings] == [1.0, 5.0]
    alone = Options(out=tmp_path / "alone", data=table, trials=2, steepnesses=(2.0,), clarities=(5.0,))
    assert reproduce("protocol", alone).summary["settings"] == settings[1:]


@pytest.mark.parametrize(
    ("name", "content", "truth", "message"),
    [
        ("t.csv", "a,b\n1,2\n", None, r"the true classes\? Name it: --truth COLUMN. Its columns are a, b"),
        ("t.csv", "a,b\n1,2\n", "c", "which column holds the true classes"),
        ("t.csv", "a,label\n1,yes\n2,\n", None, "row 2 has no class in the column 'label'"),
        ("t.csv", "a,label\n1,yes\n2,no\n", None, "two classes with 40 examples or more each; found 1 of no, 1 of yes"),
        ("t.svm", "1 1:2\n2 1:3\n3 1:1\n", None, "found 1 of 1, 1 of 2, 1 of 3"),
        ("t.svm", "1 1:2\n2 1:x\n", None, "is not in LIBSVM format"),
        ("t.svm", "1 1:2\n2 1:3\n", "label", "first number is the class: leave out --truth"),
    ],
)  # fmt: skip
def test_data_that_do_not_do_are_described(name, content, truth, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        reproduce("protocol", Options(out=tmp_path / "out", data=tmp_path / name, truth=truth))
    assert not (tmp_path / "out").exists()


def test_without_data_there_is_no_protocol():
    with pytest.raises(ValueError, match="the protocol needs data"):
        reproduce("protocol")


def wins(count, p_value):
    return Wins(count, 0, 100, p_value, 0.9, 0.9)


@pytest.mark.parametrize(
    ("roc", "prc", "expected"),
    [
        (wins(70, 1e-4), wins(80, 1e-9), "better"),
        (wins(20, 1e-4), wins(30, 1e-9), "worse"),
        (wins(20, 1e-4), wins(80, 1e-9), "mixed"),
        (wins(70, 0.02), wins(80, 1e-9), "not significant"),
    ],
)
def test_the_effect_is_what_both_measures_show(roc, prc, expected):
    assert effect(roc, prc) == expected
