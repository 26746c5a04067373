"""CrowdClassifier around several classifiers: is its consensus better than the majority's, and which steepness?

python benchmarks/any_classifier.py real          real crowds: consensus and test accuracy
python benchmarks/any_classifier.py simulated     the paper's simulated crowds: AUC on unseen examples
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from crowd_sets import WITH_FEATURES, load, simulated_crowd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from crowdwise import CrowdClassifier
from crowdwise.exceptions import CrowdWarning

CLASSIFIERS = {
    "logistic": LogisticRegression(C=0.1, max_iter=2000),
    "linear svc": LinearSVC(C=0.01),
    "forest": RandomForestClassifier(50, min_samples_leaf=5),
}
STEEPNESS = (0.0, 2.0, 5.0)


def real(names: tuple[str, ...]) -> None:
    for name in names:
        data = load(name)
        majority = data.labels.majority()
        print(f"{name}: majority vote {np.mean(majority == data.truth):.3f}")
        for title, classifier in CLASSIFIERS.items():
            plain = clone(classifier).fit(data.X, majority)
            for steepness in STEEPNESS if title != "forest" else STEEPNESS[:1]:  # forests take minutes
                start = time.perf_counter()
                model = CrowdClassifier(classifier, steepness=steepness).fit(data.X, data.labels)
                seconds = time.perf_counter() - start
                line = f"  {title:10} steepness {steepness:g}: consensus {np.mean(model.consensus_ == data.truth):.3f}"
                if data.test is not None:
                    X, truth = data.test
                    line += f", test {model.score(X, truth):.3f} (majority {np.mean(plain.predict(X) == truth):.3f})"
                print(f"{line}, {model.n_rounds_} rounds, settled {model.converged_}, {seconds:.0f} s", flush=True)


def simulated(n_trials: int = 30) -> None:
    for clarity in (1.0, 2.0, 5.0):
        for missing in (0.0, 0.7):
            auc = np.array([_trial(seed, clarity, missing) for seed in range(n_trials)])
            means = ", ".join(f"{s:g}: {mean:.3f}" for s, mean in zip(STEEPNESS, auc.mean(axis=0), strict=True))
            wins = (auc[:, 1:] > auc[:, :1]).sum(axis=0).tolist()
            print(
                f"clarity {clarity:g}, missing {missing:g}: mean AUC at steepness {means}; wins over 0 {wins}",
                flush=True,
            )


def _trial(seed: int, clarity: float, missing: float) -> list[float]:
    X, truth, labels = simulated_crowd(seed, clarity, missing)
    models = [CrowdClassifier(steepness=steepness).fit(X[:500], labels) for steepness in STEEPNESS]
    return [roc_auc_score(truth[500:], model.predict_proba(X[500:])[:, 1]) for model in models]


if __name__ == "__main__":
    warnings.simplefilter("ignore", CrowdWarning)
    if sys.argv[1:2] == ["real"]:
        real(tuple(sys.argv[2:]) or WITH_FEATURES)
    elif sys.argv[1:] == ["simulated"]:
        simulated()
    else:
        sys.exit(__doc__)
