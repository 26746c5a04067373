"""Progress: every fit reports its rounds, prints as much as it is asked to, and is none the worse for it."""

import io
import time
from contextlib import redirect_stderr

import numpy as np
import pytest
from all_models import LEARNERS, data_for, fit_quietly, new
from numpy.testing import assert_array_equal

from crowdwise import aggregate, diagnose
from crowdwise._progress import Reporter, Round

pytestmark = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")


@pytest.mark.parametrize("name", LEARNERS)
def test_every_fit_reports_its_rounds_and_ends_with_the_same_bits(name):
    X, y = data_for(name, missing=0.3)
    seen = []
    plain, told = new(name).fit(X, y), new(name).fit(X, y, on_round=seen.append)
    assert_array_equal(plain.predict(X), told.predict(X))
    assert_array_equal(plain.coef_ if hasattr(plain, "coef_") else plain.consensus_proba_,
                       told.coef_ if hasattr(told, "coef_") else told.consensus_proba_)  # fmt: skip
    stages = {}
    for done in seen:
        assert isinstance(done, Round)
        assert np.isfinite(done.objective)
        assert done.change >= 0
        stages.setdefault(done.stage, []).append(done.number)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in stages.values())
    last = [done for done in seen if done.stage == seen[-1].stage]
    expected = plain.n_epochs_ if name.startswith("perceptron") else plain.n_rounds_
    if name != "ridge cv":  # whose stages are one per steepness
        assert len(last) == expected
    assert [done.seconds for done in last] == sorted(done.seconds for done in last)


def test_the_last_objective_reported_is_that_of_the_fit():
    X, y = data_for("logistic")
    seen = []
    model = new("logistic").fit(X, y, on_round=seen.append)
    assert [done.objective for done in seen if done.stage == "labels and features"] == model.objective_.tolist()


def test_a_tuned_path_reports_every_steepness():
    X, y = data_for("ridge cv")
    seen = []
    new("ridge cv", steepnesses=(0.0, 2.0, 5.0)).fit(X, y, on_round=seen.append)
    assert {done.stage for done in seen} == {"steepness 0", "steepness 2", "steepness 5"}


@pytest.mark.parametrize("verbose", [0, 1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_verbose_prints_nothing_a_line_or_a_line_per_round(name, verbose, capsys):
    X, y = data_for(name)
    seen = []
    new(name, verbose=verbose).fit(X, y, on_round=seen.append)
    printed = capsys.readouterr()
    assert printed.out == ""
    lines = printed.err.splitlines()
    assert len(lines) == [0, 1, 1 + len(seen)][verbose]
    if verbose:
        kind = type(new(name)).__name__
        assert lines[-1].startswith(f"{kind}: {len(seen)} rounds, ")
    if verbose == 2:
        assert lines[:-1] == [f"{kind}: {done}" for done in seen]


def test_aggregate_and_diagnose_report_too(capsys):
    X, y = data_for("logistic")
    seen = []
    assert_array_equal(aggregate(y, verbose=1, on_round=seen.append).proba, aggregate(y).proba)
    assert {done.stage for done in seen} == {"labels"}
    assert capsys.readouterr().err.startswith(f"aggregate: {len(seen)} rounds, ")
    steps = []
    diagnose(X, y, verbose=2, on_round=steps.append)
    assert steps[: len(seen)] == [Round(d.number, d.objective, d.change, s.seconds, d.stage)
                                  for d, s in zip(seen, steps, strict=False)]  # fmt: skip
    assert [done.stage for done in steps[len(seen) :]] == ["margins out of fold", "steepness"]
    assert "diagnose: steepness, " in capsys.readouterr().err


@pytest.mark.parametrize("name", LEARNERS)
def test_an_interrupt_between_rounds_leaves_the_estimator_as_it_was(name):
    X, y = data_for(name)
    model = fit_quietly(new(name), X, y)
    before = dict(vars(model))

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(X[::2], y[::2], on_round=interrupt)
    assert vars(model) == before or all(vars(model)[key] is value for key, value in before.items())


@pytest.mark.parametrize("verbose", [-1, 1.5, "yes", None, True])
def test_an_odd_verbose_is_refused_by_name(verbose):
    X, y = data_for("ridge")
    with pytest.raises(ValueError, match="verbose must be a whole"):
        new("ridge", verbose=verbose).fit(X, y)


def test_a_callback_that_cannot_be_called_is_refused():
    X, y = data_for("ridge")
    with pytest.raises(TypeError, match="on_round must be a function"):
        new("ridge").fit(X, y, on_round=3)


def test_seconds_count_from_the_start_of_the_fit():
    seen = []
    reporter = Reporter("it", on_round=seen.append)
    time.sleep(0.01)
    reporter.rounds("a")(1, 2.0, 3.0)
    reporter.step("b")
    assert (seen[0].number, seen[0].objective, seen[0].change, seen[0].stage) == (1, 2.0, 3.0, "a")
    assert 0.01 <= seen[0].seconds <= seen[1].seconds
    assert str(seen[1]).startswith("b, ")


def test_a_reporter_without_listeners_has_no_work():
    assert Reporter("it").rounds("a") is None
    with redirect_stderr(io.StringIO()) as printed:
        Reporter("it").done()
    assert printed.getvalue() == ""
