"""The public names, and docstrings that say what the signatures say."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys

import pytest

import crowdwise

NAMES = [
    "CrowdClassifier",
    "CrowdLabels",
    "CrowdLogisticClassifier",
    "CrowdRidgeClassifier",
    "CrowdRidgeClassifierCV",
    "CrowdRidgeRegressor",
    "Session",
    "aggregate",
    "agreement",
    "align",
    "diagnose",
    "error_correlation",
    "load",
    "rate",
    "read_blocks",
    "read_labels",
    "report",
    "simulate_annotators",
    "slice_accuracy",
    "suggest_labels",
]
ROOMS = {
    "crowd": [
        "alternative_annotator_test",
        "cohen_kappas",
        "disagreement",
        "easiness",
        "krippendorff_alpha",
    ],
    "em": ["Confusion", "OneCoin", "Ordinal", "Shared"],
    "model_selection": ["balanced_subsample", "crowd_scorer"],
    "weights": ["Curriculum", "Fading", "Fixed", "SelfPaced", "Smooth"],
}
# Of other modules that users import from; some of these are everyday names, too.
FURTHER = {
    "datasets": ["CROWD_NAMES", "LIBSVM_NAMES", "data_directory", "fetch_crowd", "fetch_libsvm"],
    "formats": [
        "CONSENSUS_FORMATS",
        "FORMATS",
        "LABEL_FORMATS",
        "LabelFile",
        "convert",
        "read",
        "write",
        "write_labels",
    ],
    "paper.reproduce": ["EXPERIMENTS", "PROTOCOL", "Options", "Report", "reproduce"],
    "paper.theory": [
        "EasyFirstPerceptron",
        "MarginEstimates",
        "MistakeBound",
        "Regions",
        "alignment_expertise",
        "ball_averages",
        "ball_radii",
        "break_even_spread",
        "count_regions",
        "deviation",
        "equal_mistakes_bound",
        "estimate_labels",
        "estimate_margins",
        "feed",
        "improvement",
        "label_signs",
        "laguerre_samuelson",
        "margin_upper_bounds",
        "mistake_bound",
        "nested_ball_margins",
        "noise_factors",
        "noisy_bound",
        "novikoff_bound",
        "progress",
        "regions",
        "simulate_ball_annotators",
        "spread_bound",
        "weighted_majority",
    ],
    "plots": [
        "AccuracyDisplay",
        "AnnotatorsDisplay",
        "ConfusionDisplay",
        "DisagreementDisplay",
        "EasyToHardDisplay",
        "KappaDisplay",
        "MarginDisplay",
    ],
    "results": [
        "Choice",
        "Comparison",
        "Consensus",
        "ErrorCorrelation",
        "FitResults",
        "NextLabels",
        "RatingConsensus",
        "compare",
        "error_correlation",
        "suggest_labels",
    ],
    "session": ["Journal", "Session"],
}
# Not em: the methods of models of annotators are described once, in `em.confusion.AnnotatorModel`.
MODULES = ["crowdwise", "crowdwise.crowd", "crowdwise.model_selection", "crowdwise.paper.theory", "crowdwise.weights"]
OPTIONAL = ["pandas", "polars", "matplotlib", "dask", "click", "pyarrow", "jinja2", "skops"]


def written_function(member):
    """The function behind a method, class method or property; None for anything else."""
    for inside in ("__func__", "fget", "func"):
        member = getattr(member, inside, member)
    return member if inspect.isfunction(member) else None


def public_objects(module_name):
    """(path, object) of every public name, and of every public method written in this project."""
    module = importlib.import_module(module_name)
    for name in getattr(module, "__all__", []):
        thing = getattr(module, name)
        yield f"{module_name}.{name}", thing
        if inspect.isclass(thing):
            for attribute in dir(thing):
                function = written_function(inspect.getattr_static(thing, attribute))
                if function and not attribute.startswith("_") and function.__module__.startswith("crowdwise"):
                    yield f"{module_name}.{name}.{attribute}", function


OBJECTS = {path: thing for module in MODULES for path, thing in public_objects(module)}
TOP_LEVEL = {path: thing for path, thing in OBJECTS.items() if path.rsplit(".", 1)[0] in MODULES}
CALLABLES = {path: thing for path, thing in OBJECTS.items() if callable(thing)}


def section(docstring, title):
    """The lines of one section of a numpydoc docstring."""
    lines = inspect.cleandoc(docstring).splitlines()
    for i in range(len(lines) - 1):
        if lines[i] == title and set(lines[i + 1]) == {"-"}:
            start = i + 2
            ends = (j - 1 for j in range(start + 1, len(lines)) if lines[j] and set(lines[j]) == {"-"})
            return lines[start : next(ends, len(lines))]
    return []


def documented_parameters(docstring):
    """{name: (description of the type, text of the default or None)}, in order."""
    found = {}
    for line in section(docstring, "Parameters"):
        header = re.fullmatch(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)", line)
        if header:
            kind, _, default = header[2].partition(", default=")
            for name in header[1].split(", "):
                found[name.lstrip("*")] = (kind, default or None)
    return found


def real_parameters(thing):
    """Parameters of a signature without self and cls."""
    parameters = inspect.signature(thing).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in ("self", "cls")}


def says_the_value(text, value, names):
    """Whether the text after "default=" is the value, as Python writes it or by a name of its module."""
    if text == "nan":
        return value != value
    if text in names:
        return names[text] is value
    try:
        written = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return written == value and type(written) is type(value)


def test_the_public_names_are_these_and_can_be_imported():
    assert sorted(crowdwise.__all__) == list(crowdwise.__all__)
    assert list(crowdwise.__all__) == NAMES
    for name in NAMES:
        assert getattr(crowdwise, name).__module__.startswith("crowdwise."), name


@pytest.mark.parametrize("room", ROOMS)
def test_the_names_of_a_subject_are_these_and_none_is_a_module(room):
    module = getattr(crowdwise, room)
    assert list(module.__all__) == ROOMS[room]
    for name in ROOMS[room]:
        assert not inspect.ismodule(getattr(module, name)), name
        assert not (hasattr(module, "__path__") and importlib.util.find_spec(f"crowdwise.{room}.{name}")), name
        assert name not in crowdwise.__all__


@pytest.mark.parametrize("module", FURTHER)
def test_the_names_of_other_modules_are_these(module):
    assert list(importlib.import_module(f"crowdwise.{module}").__all__) == FURTHER[module]


def test_the_version_is_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", crowdwise.__version__)


@pytest.mark.parametrize("path", OBJECTS)
def test_everything_public_says_what_it_is(path):
    docstring = OBJECTS[path].__doc__
    assert docstring
    first = inspect.cleandoc(docstring).splitlines()[0]
    assert first.endswith((".", ":"))
    assert len(first) > 10


@pytest.mark.parametrize("path", TOP_LEVEL)
def test_every_public_name_has_an_example_that_runs(path):
    examples = doctest.DocTestParser().get_examples("\n".join(section(TOP_LEVEL[path].__doc__, "Examples")))
    assert examples
    assert any(example.want for example in examples)


@pytest.mark.parametrize("path", CALLABLES)
def test_docstrings_and_signatures_have_the_same_parameters_and_defaults(path):
    documented = documented_parameters(CALLABLES[path].__doc__)
    real = real_parameters(CALLABLES[path])
    assert list(documented) == list(real)
    for name, default in real.items():
        kind, text = documented[name]
        assert kind, name
        if default is inspect.Parameter.empty:
            assert text is None, name
        else:
            assert text is not None, f"{name} has a default that the docstring does not say"
            assert says_the_value(text, default, vars(sys.modules[CALLABLES[path].__module__])), (
                f"{name}: {text} is not {default!r}"
            )


def test_the_comparison_would_notice():
    def example(first, second=2.0, *, third="x", fourth=None):
        """An example.

        Parameters
        ----------
        first : int
            Meaning.
        second : float, default=2.0
            Meaning: with a colon : and more.
        third : {"x", "y"}, default="x"
            Meaning.
        fourth : object, default=None
            Meaning.

        Returns
        -------
        nothing : None
        """

    documented = documented_parameters(example.__doc__)
    assert list(documented) == ["first", "second", "third", "fourth"]
    assert documented["third"] == ('{"x", "y"}', '"x"')
    assert documented["first"] == ("int", None)
    names = {"GRID": (grid := (1, 2))}
    right = [("2.0", 2.0), ("nan", float("nan")), ("GRID", grid), ("(1, 2)", grid), ("None", None)]
    wrong = [("2", 2.0), ("True", 1), ("3.0", 2.0), ("None", 0), ("some words", grid), ("GRID", (1, 3)), ("nan", 1.0)]
    assert all(says_the_value(text, value, names) for text, value in right)
    assert not any(says_the_value(text, value, names) for text, value in wrong)


def printed_by(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_optional():
    # scikit-learn 1.9 itself imports pandas where it is installed.
    code = f"""
import sys, sklearn.base
there = set(sys.modules)
import crowdwise
print([name for name in {OPTIONAL!r} if name in sys.modules and name not in there])
"""
    assert printed_by(code) == "[]"


def test_the_package_works_where_nothing_optional_is_installed():
    code = f"""
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nothing())
import numpy as np
import crowdwise
X = np.arange(8.0).reshape(4, 2)
table = {{"task": [0, 1, 2, 3] * 2, "worker": [0] * 4 + [1] * 4, "label": [0, 0, 1, 1] * 2}}
print(crowdwise.CrowdRidgeClassifier().fit(X, crowdwise.CrowdLabels.from_table(table)).predict(X).tolist())
"""
    assert printed_by(code) == "[0, 0, 1, 1]"
