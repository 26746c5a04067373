import importlib
import sys

import numpy as np
import pytest
from all_models import fit_quietly
from crowds import clear_crowd
from test_public import documented_parameters, real_parameters

import crowdwise
from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeRegressor, aggregate
from crowdwise.crowd import disagreement
from crowdwise.exceptions import LabelError, MissingExtraError

plots = importlib.import_module("crowdwise.plots")


@pytest.fixture(scope="module")
def data():
    X, labels, truth = clear_crowd(n_classes=3)
    return X, labels, truth, fit_quietly(CrowdLogisticClassifier(steepness=2.0), X, labels)


@pytest.fixture
def ax():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_every_display_draws_on_the_axes_that_it_is_given(data, ax):
    X, labels, truth, model = data
    extra = {"MarginDisplay": (X,)}
    named = {"ConfusionDisplay": {"annotator": "annotator 2"}, "AccuracyDisplay": {"truth": truth}}
    for name in plots.__all__:
        kind = getattr(plots, name)
        ax.clear()
        if name == "KappaDisplay":
            display = kind.from_labels(labels, ax=ax)
        else:
            display = kind.from_model(model, labels, *extra.get(name, ()), ax=ax, **named.get(name, {}))
        assert isinstance(display, kind), name
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
        assert ax.has_data(), name
        again = display.plot()
        assert again is display
        assert again.ax_ is not ax


def test_the_histogram_counts_every_example_of_two_labels(data, ax):
    _, labels, _, model = data
    part = plots.DisagreementDisplay.from_model(model, labels, ax=ax).part
    assert sum(part["counts"]) == (labels.labels_per_example > 1).sum()
    assert part["curve"][0] == [0.0, 1.0]
    assert part["curve"][-1][1] == pytest.approx(2 / (1 + np.e**2), abs=1e-4)


def test_annotators_are_drawn_with_their_intervals_best_first(data, ax):
    _, labels, _, model = data
    plots.AnnotatorsDisplay.from_model(model, labels, ax=ax)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[-1] == "annotator 2"
    assert ax.yaxis_inverted()  # the best on top
    values = ax.lines[0].get_xdata()
    assert (np.diff(values) <= 0).all()
    segments = ax.collections[0].get_segments()
    assert all(low[0] <= value <= high[0] for (low, high), value in zip(segments, values, strict=True))


def test_the_order_is_that_of_disagreement(data, ax):
    _, labels, _, _ = data
    display = plots.EasyToHardDisplay.from_model(aggregate(labels), labels, ax=ax)
    np.testing.assert_array_equal(display.disagreement, np.sort(disagreement(labels)))


def test_what_cannot_be_drawn_is_an_error(data, ax):
    X, labels, _, model = data
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    regressor = fit_quietly(CrowdRidgeRegressor(), X, ratings)
    assert plots.AnnotatorsDisplay.from_model(regressor, ratings, ax=ax).ax_.get_xlabel() == "expertise"
    with pytest.raises(LabelError, match="MarginDisplay needs classes"):
        plots.MarginDisplay.from_model(regressor, ratings, X)
    with pytest.raises(LabelError, match="no annotator 'nobody'"):
        plots.ConfusionDisplay.from_model(model, labels, annotator="nobody")
    with pytest.raises(LabelError, match="ten examples"):
        plots.KappaDisplay.from_labels([[0, 1], [1, 1]])


@pytest.mark.parametrize("name", plots.__all__)
def test_docstrings_of_displays_have_the_parameters_of_their_signatures(name):
    kind = getattr(crowdwise.plots, name)
    maker = kind.from_labels if name == "KappaDisplay" else kind.from_model
    for thing in (kind, maker, kind.plot):
        assert list(documented_parameters(thing.__doc__)) == list(real_parameters(thing))


def test_without_matplotlib_an_error_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="plots need matplotlib"):
        plots.DisagreementDisplay.from_model(data[3], data[1])
