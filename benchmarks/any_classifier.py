"""CrowdClassifier around several classifiers: is its consensus better than the majority's, and which steepness?

python benchmarks/any_classifier.py               both
python benchmarks/any_classifier.py real          real crowds: consensus and test accuracy
python benchmarks/any_classifier.py simulated     the paper's simulated crowds: AUC on unseen examples
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from crowd_sets import SIMULATED, WITH_FEATURES, CrowdSet, load, missing_text, simulated_crowd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC
from tables import Place, Run, parser

from crowdwise import CrowdClassifier
from crowdwise.exceptions import CrowdWarning

CLASSIFIERS = {
    "logistic": LogisticRegression(C=0.1, max_iter=2000),
    "linear SVC": LinearSVC(C=0.01),
    "forest": RandomForestClassifier(50, min_samples_leaf=5),
}
STEEPNESS = (0.0, 2.0, 5.0)
PLACES = {part: Place("docs/evidence/diagnosis.md", f"any_classifier {part}") for part in ("real", "simulated")}


def real(run: Run, names: tuple[str, ...], classifiers: tuple[str, ...]) -> None:
    """A row per crowd and classifier: how often the consensus and, for unseen examples, the classifier are right."""
    columns = ("crowd", "classifier", "majority vote", *(f"steepness {steepness:g}" for steepness in STEEPNESS))
    rows = []
    for name in names:
        data = load(name)
        majority = data.labels.majority()
        for title in classifiers:
            plain = clone(CLASSIFIERS[title]).fit(data.X, majority)
            row = [name, title, both(majority, plain, data)]
            for steepness in STEEPNESS:
                if title == "forest" and steepness > 0:  # forests take minutes
                    row.append("")
                    continue
                model = CrowdClassifier(CLASSIFIERS[title], steepness=steepness).fit(data.X, data.labels)
                row.append(both(model.consensus_, model, data))
            rows.append(row)
    run.table(PLACES["real"], columns, rows, "Consensus / unseen examples, where the crowd has some.")


def both(consensus: np.ndarray, classifier: Any, data: CrowdSet) -> str:
    """Shares that are right."""
    shown = f"{np.mean(consensus == data.truth):.3f}"
    if data.test is None:
        return shown
    X, truth = data.test
    return f"{shown} / {np.mean(classifier.predict(X) == truth):.3f}"


def simulated(run: Run, n_trials: int) -> None:
    """A row per level of noise and share of missing labels."""
    names = [f"{steepness:g}" for steepness in STEEPNESS]
    columns = ("p", "labels missing", *(f"AUC at steepness {name}" for name in names))
    columns += tuple(f"{name} better than 0" for name in names[1:])
    rows = []
    for clarity, missing in SIMULATED:
        auc = np.array([_trial(seed, clarity, missing) for seed in range(n_trials)])
        wins = (auc[:, 1:] > auc[:, :1]).sum(axis=0)
        means = [f"{mean:.3f}" for mean in auc.mean(axis=0)]
        rows.append([f"{clarity:g}", missing_text(missing), *means, *(str(count) for count in wins)])
    run.table(PLACES["simulated"], columns, rows, f"`CrowdClassifier()`, {n_trials} crowds per row.")


def _trial(seed: int, clarity: float, missing: float) -> list[float]:
    X, truth, labels = simulated_crowd(seed, clarity, missing)
    models = [CrowdClassifier(steepness=steepness).fit(X[:500], labels) for steepness in STEEPNESS]
    return [roc_auc_score(truth[500:], model.predict_proba(X[500:])[:, 1]) for model in models]


def main() -> None:
    arguments = parser(__doc__, PLACES)
    arguments.add_argument("--classifiers", nargs="+", choices=CLASSIFIERS, default=list(CLASSIFIERS))
    arguments.add_argument("--trials", type=int, default=30, help="simulated crowds per row: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    if "real" in options.parts:
        quick = ("medical_cause",), ("logistic",)
        real(run, *(quick if options.quick else (WITH_FEATURES, tuple(options.classifiers))))
    if "simulated" in options.parts:
        simulated(run, 2 if options.quick else options.trials)


if __name__ == "__main__":
    main()
