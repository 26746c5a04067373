"""What people see in notebooks: frames of the library that came in, and labels and fits as HTML."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from all_models import fit_quietly
from crowds import clear_crowd
from sklearn import config_context

from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeClassifier, aggregate, suggest_labels


@pytest.fixture(scope="module")
def data():
    X, labels, _ = clear_crowd(n_examples=60, missing=0.2)
    return X, labels


def table_in(library, labels):
    return library.DataFrame({name: column.tolist() for name, column in labels.to_table().items()})


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_of_the_library_that_the_labels_came_in(library, data):
    X, labels = data
    came = CrowdLabels.from_table(table_in(library, labels), examples=labels.examples)
    found = aggregate(came)
    model = fit_quietly(CrowdRidgeClassifier(), X, came)
    frames = [found.consensus_frame(), found.annotators_frame(), model.consensus_frame()]
    frames += [model.annotators_frame(), suggest_labels(found, came, n=3).to_frame()]
    assert all(isinstance(frame, library.DataFrame) for frame in frames)
    assert list(frames[0].columns) == ["example", "label", "confidence", "p(0)", "p(1)"]


def test_features_in_polars_or_a_wide_frame_of_it_are_enough(data):
    X, labels = data
    features = pl.DataFrame(X, schema=["a", "b"])
    assert isinstance(fit_quietly(CrowdRidgeClassifier(), features, labels).consensus_frame(), pl.DataFrame)
    wide = pl.DataFrame({str(i): column for i, column in enumerate(labels.to_matrix().T.tolist())})
    assert isinstance(aggregate(wide).consensus_frame(), pl.DataFrame)


def test_without_a_frame_pandas_is_taken_and_polars_where_there_is_none(data, monkeypatch):
    X, labels = data
    assert isinstance(aggregate(labels).consensus_frame(), pd.DataFrame)
    assert isinstance(fit_quietly(CrowdRidgeClassifier(), X, labels).consensus_frame(), pd.DataFrame)
    found = aggregate(labels)  # earlier versions of scikit-learn stumble over a pandas that is None
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(found.consensus_frame(), pl.DataFrame)


def test_labels_are_shown_with_their_first_examples_and_hostile_ones_as_text():
    labels = CrowdLabels.from_matrix([["<b>", None], ["x", "<b>"]], annotators=["<script>", "é"], examples=["&", "2"])
    page = labels._repr_html_()
    assert "CrowdLabels: 2 examples" in page
    assert "<th>&lt;script&gt;</th>" in page
    assert "<td>&amp;</td><td>&lt;b&gt;</td><td></td>" in page
    assert "<b>" not in page
    many = CrowdLabels.from_matrix(np.zeros((100, 50), dtype=int))._repr_html_()
    assert many.count("<tr>") == 6


def test_a_fit_is_shown_below_the_diagram_of_its_model(data):
    X, labels = data
    model = CrowdLogisticClassifier()
    before = model._repr_mimebundle_()["text/html"]
    fit_quietly(model, X, labels)
    after = model._repr_mimebundle_()["text/html"]
    assert "60 examples" not in before
    assert "60 examples" in after
    assert "annotator 2" in after
    assert "worse than chance" in after
    assert model._repr_html_() == after or "60 examples" in model._repr_html_()
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


def test_an_aggregation_is_shown_with_the_best_and_the_worst_annotators(data):
    found = aggregate(data[1])
    page = found._repr_html_()
    assert page.count("<tr>") == 3 + 1 + 6
    assert "annotator 2" in page
