"""A session: what is offered, what counts, and a model that is always that of a new fit."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeClassifier, CrowdRidgeClassifierCV, aggregate
from crowdwise.exceptions import CrowdWarning, DataError, LabelError
from crowdwise.ridge.data import RidgeData
from crowdwise.session import Session
from crowdwise.session.offer import change_probability

session_module = import_module("crowdwise.session.session")
TEXTS = {f"t{i}": f"text {i}" for i in range(12)}
CLASSES = ["bad", "good"]


def session(**given: object) -> Session:
    return Session(texts=TEXTS, classes=CLASSES, **given)


def features(n: int = 60, n_features: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 0] > 0).astype(int)


def random_answers(talk: Session, truth: np.ndarray, n: int, seed: int = 0) -> None:
    """Answers of ten people who are right on four of five, now and then undone."""
    rng = np.random.default_rng(seed)
    people = [f"p{i}" for i in range(10)]
    for _ in range(n):
        person = people[rng.integers(10)]
        if rng.random() < 0.15 and talk._done.get(person):
            talk.undo(person)
            continue
        for example in talk.next(person, rule="random"):
            talk.answer(example, person, int(truth[example] if rng.random() < 0.8 else 1 - truth[example]))


def test_zero_one_and_more_answers() -> None:
    talk = session()
    assert talk.result is None
    assert len(talk.next("ann", n=20)) == 12
    talk.answer("t3", "ann", "good")
    assert talk.result is not None
    assert talk.result.label[3] == "good"
    talk.answer("t4", "bob", "bad")
    assert talk.result.label[[3, 4]].tolist() == ["good", "bad"]


def test_result_is_that_of_a_new_fit() -> None:
    talk = session()
    rng = np.random.default_rng(0)
    for person in ("ann", "bob", "cat"):
        for example in talk.next(person, n=8, rule="random"):
            talk.answer(example, person, CLASSES[rng.integers(2)])
    assert talk.result is not None
    with pytest.warns(CrowdWarning) if (talk.labels.labels_per_example == 0).any() else _nothing():
        assert_array_equal(talk.result.proba, aggregate(talk.labels).proba)


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize(
    "model", [CrowdRidgeClassifier(2.0), CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.1, 10.0), cv=3)], ids=["plain", "cv"]
)
def test_ridge_follows_as_a_new_fit_would(model) -> None:
    X, truth = features()
    talk = Session(X=X, model=model, classes=[0, 1])
    for seed in range(4):
        random_answers(talk, truth, 25, seed)
        result = talk.result
        again = type(model)(**(model.get_params() | talk.settings)).fit(X, talk.labels)
        assert result is not None
        assert_allclose(result.proba, again.results_.proba, atol=1e-8)
        assert not talk.is_pending


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_ridge_reads_the_rows_once_and_then_those_that_were_answered(monkeypatch) -> None:
    X, truth = features()
    talk = Session(X=X, model=CrowdRidgeClassifier(2.0), classes=[0, 1])
    for person in ("ann", "bob", "cid"):
        for row in range(40):
            talk.answer(row, person, int(truth[row]))
    assert talk.result is not None
    monkeypatch.setattr(RidgeData, "sums", None)  # a pass over all rows
    for row, label in ((3, 0), (7, 1), (3, 1)):
        talk.answer(row, "ann", label)
        assert_allclose(talk.fitted.results_.n_labels, [40, 40, 40])
        talk.undo("ann")
        assert talk.result is not None


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_a_logistic_model_comes_later_and_is_marked_until_then() -> None:
    X, truth = features()
    with Session(X=X, model=CrowdLogisticClassifier(), classes=[0, 1]) as talk:
        random_answers(talk, truth, 80)
        before = talk.result
        assert before is not None
        assert talk.wait(60)
        assert not talk.is_pending
        assert talk.result is not None
        assert talk.result.model_proba is not None
        assert set(talk.settings) == {"l2"}
        new = CrowdLogisticClassifier(l2=talk.settings["l2"]).fit(X, talk.labels)
        talk.retune()
        assert talk.settings == {}
        assert talk.result is not None
        talk.wait(60)
        assert_allclose(talk.result.proba, new.results_.proba, atol=1e-6)


def test_nothing_is_offered_twice_and_everybody_shares_examples() -> None:
    talk = session()
    for example in list(TEXTS)[:6]:
        talk.answer(example, "ann", "good")
    offered = []
    for _ in range(12):
        (example,) = talk.next("bob", rule="random")
        offered.append(example)
        if len(offered) % 4 == 0:
            talk.skip(example, "bob")
        else:
            talk.answer(example, "bob", "bad")
    assert sorted(offered) == sorted(TEXTS)
    assert talk.next("bob") == []
    assert {offered[4], offered[9]} & set(list(TEXTS)[:6])


@pytest.mark.parametrize("rule", ["uncertain", "easy", "random"])
def test_every_fifth_example_is_one_that_others_have_answered(rule) -> None:
    examples = {f"e{i}": "" for i in range(200)}
    talk = Session(texts=examples, classes=CLASSES)
    for example in list(examples)[:40]:
        talk.answer(example, "ann", "good" if example < "e2" else "bad")
    offered = talk.next("bob", n=50, rule=rule)
    assert len(set(offered)) == 50
    assert sum(example in list(examples)[:40] for example in offered) >= 10


def test_easy_ones_come_first_and_harder_ones_with_success() -> None:
    labels = CrowdLabels.from_matrix(
        [[1, 1, 1, 1]] * 20 + [[0, 0, 0, 0]] * 20 + [[1, 1, 1, 0]] * 20 + [[0, 1, 1, 0]] * 20
    )
    talk = Session(labels)
    assert talk.result is not None
    confidence = dict(zip(labels.examples.tolist(), talk.result.confidence.tolist(), strict=True))
    first = talk.next("new", rule="easy")[0]
    assert confidence[first] == max(confidence.values())
    for _ in range(40):
        (example,) = talk.next("new", rule="easy")
        talk.answer(example, "new", talk.result.label[example])
    last = talk.next("new", rule="easy")[0]
    assert confidence[last] < confidence[first]


def test_uncertain_ones_come_first_by_default() -> None:
    labels = CrowdLabels.from_matrix([[1, 1, 1]] * 10 + [[0, 0, 0]] * 10 + [[0, 1, None]])
    assert Session(labels, overlap=0).next("new") == [20]


def test_the_answers_of_experts_are_known_answers() -> None:
    talk = session(experts=["eve"])
    for person, label in (("ann", "good"), ("bob", "good"), ("cat", "bad")):
        for example in ("t0", "t1"):
            talk.answer(example, person, label)
    talk.answer("t0", "eve", "bad")
    assert talk.result is not None
    assert talk.result.label[0] == "bad"
    assert talk.result.has_truth.tolist() == [True] + [False] * 11
    assert "t0" not in talk.next("eve", n=20)
    assert talk.checked("ann") == {"answers": 2, "checked": 1, "right": 0, "accuracy": 0.0} | {
        key: talk.checked("ann")[key] for key in ("low", "high")
    }
    assert talk.next("dan", rule="check") == ["t0"]
    assert talk.next("dan", n=4, check=0.5)[1] == "t0"
    talk.undo("eve")
    assert not talk.result.has_truth.any()


def test_undo_gives_back_what_was_there() -> None:
    talk = session()
    talk.answer("t0", "ann", "good")
    before = talk.labels.to_matrix().tolist()
    talk.answer("t0", "ann", "bad")
    talk.skip("t1", "ann")
    assert talk.undo("ann") == "t1"
    assert "t1" in talk.next("ann", n=12)
    assert talk.undo("ann") == "t0"
    assert talk.labels.to_matrix().tolist() == before
    talk.undo("ann")
    assert talk.labels.n_labels == 0
    with pytest.raises(DataError, match="ann has nothing to undo"):
        talk.undo("ann")


def test_a_session_goes_on_from_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with session(journal=path, experts=["eve"]) as talk:
        talk.answer("t0", "ann", "good")
        talk.answer("t0", "ann", "bad")
        talk.skip("t1", "ann")
        talk.answer("t2", "eve", "good")
        talk.answer("t3", "bob", "good")
        talk.undo("bob")
        matrix, offered = talk.labels.to_matrix().tolist(), talk.next("ann", n=12)
    with session(journal=path, experts=["eve"]) as talk:
        assert talk.labels.to_matrix().tolist() == matrix
        assert talk.next("ann", n=12) == offered
        assert talk.result is not None
        assert talk.result.has_truth.sum() == 1
    talk.save(tmp_path / "labels.csv")
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert lines == ["example,annotator,label", "t0,ann,bad", "t2,eve,good"]


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with session(journal=path) as talk:
        for wrong in (("nobody", "ann", "good"), ("t0", "ann", "maybe")):
            with pytest.raises(LabelError, match=r"is not among|must be one of"):
                talk.answer(*wrong)
        with pytest.raises(ValueError, match="person must be a name"):
            talk.answer("t0", "", "good")
        with pytest.raises(ValueError, match='rule="classifier" needs'):
            talk.next("ann", rule="classifier")
        assert talk.labels.n_labels == 0
    assert path.read_bytes() == b""
    with pytest.raises(ValueError, match="a session needs examples"):
        Session()
    with pytest.raises(ValueError, match="a session without labels needs classes"):
        Session(texts=TEXTS)
    with pytest.raises(ValueError, match="a model learns from features"):
        Session(texts=TEXTS, classes=CLASSES, model=CrowdRidgeClassifier())


def test_the_probability_that_an_answer_changes_the_label() -> None:
    confusion = np.array([[0.9, 0.1], [0.1, 0.9]])
    proba = np.array([[0.6, 0.4], [0.99, 0.01], [0.5, 0.5]])
    # Only the other answer changes the first label: 0.6 * 0.1 + 0.4 * 0.9; a tie is broken by half of the answers.
    assert_allclose(change_probability(proba, confusion), [0.42, 0.0, 0.5])
    talk = session()
    assert talk.expected_changes() == 1.0
    for person in ("ann", "bob", "cat"):
        for example in TEXTS:
            talk.answer(example, person, "good" if int(example[1:]) % 2 else "bad")
    assert talk.expected_changes() < 0.05


def test_other_settings_and_fewer_annotators_are_what_a_new_fit_gives() -> None:
    X, truth = features()
    talk = Session(X=X, model=CrowdRidgeClassifier(2.0), classes=[0, 1])
    random_answers(talk, truth, 120)
    found = talk.fit_at(steepness=5.0, l2=0.3).results_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        again = CrowdRidgeClassifier(5.0, l2=0.3).fit(X, talk.labels).results_
        fewer = talk.labels.select_annotators(talk.labels.annotators != "p3")
        without = CrowdRidgeClassifier(2.0).fit(X, fewer).results_
    assert_allclose(found.proba, again.proba, atol=1e-8)
    assert_allclose(talk.fit_at(without="p3").results_.proba, without.proba, atol=1e-8)
    assert "p3" in talk.labels.annotators.tolist()
    with pytest.raises(ValueError, match="has no l2"):
        session().fit_at(l2=1.0)


@pytest.mark.parametrize("n_answers", [20, in_slow_run(200)])
def test_every_one_of_many_random_answers_and_undos_gives_the_scores_of_a_new_fit(n_answers: int) -> None:
    X, truth = features(150, 100)
    talk = Session(X=X, model=CrowdRidgeClassifier(2.0), classes=[0, 1])
    random_answers(talk, truth, 30)
    for step in range(n_answers):
        random_answers(talk, truth, 1, seed=step + 1)
        _ = talk.result
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)
            again = CrowdRidgeClassifier(2.0).fit(X, talk.labels)
        assert_allclose(talk.fitted.decision_function(X), again.decision_function(X), rtol=1e-8, atol=1e-8)
        assert_allclose(talk.fitted.results_.proba, again.results_.proba, atol=1e-8)
    assert len(talk.people) == 10


def test_a_random_draw_is_another_for_everybody_and_stays_the_same():
    session, again = (Session(texts=["?"] * 50, classes=[0, 1]) for _ in range(2))
    orders = {person: session.next(person, n=50, rule="random") for person in ("ann", "bob")}
    assert sorted(orders["ann"]) == sorted(orders["bob"]) == list(range(50))
    assert orders["ann"] != orders["bob"]
    assert again.next("ann", n=50, rule="random") == orders["ann"]


@pytest.mark.parametrize("kind", ["labels", "ridge"])
def test_answers_do_not_wait_for_a_fit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, truth = features()
    began, may_end, results = Event(), Event(), []
    target, name = (session_module, "aggregate") if kind == "labels" else (CrowdRidgeClassifier, "fit")
    fit = getattr(target, name)

    def slow_fit(*given: object, **settings: object) -> object:
        began.set()
        assert may_end.wait(20)
        return fit(*given, **settings)

    monkeypatch.setattr(target, name, slow_fit)
    model = None if kind == "labels" else CrowdRidgeClassifier()
    talk = Session([[label, label, None] for label in truth.tolist()], X, model=model, classes=[0, 1])
    fitting = Thread(target=lambda: results.append(talk.result))
    answering = Thread(target=talk.answer, args=(3, "ann", 1))
    fitting.start()
    assert began.wait(20)
    answering.start()
    answering.join(20)
    is_answered = talk.version == 1
    may_end.set()
    fitting.join()
    answering.join()
    assert is_answered
    assert talk.labels.n_labels == 121
    talk.retune()
    assert talk.result is not None
    assert len(results[0].annotators) == 3
    assert "ann" in talk.result.annotators.tolist()
