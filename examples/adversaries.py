"""Twelve simulated annotators, one of them an adversary, and a classifier that learns from them.

``python examples/adversaries.py`` prints a table and draws a picture. The crowd is as misleading as the paper makes it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.classifier_cv import PAPER_L2S, CrowdRidgeClassifierCV
from crowdwise.simulate import simulate_annotators

METHODS = ("majority vote", "all labels", "all labels, easy first", "the truth itself")


@dataclass(frozen=True)
class Trial:
    """One simulated crowd: features, truth and labels, and how each method did with them."""

    X: Floats
    truth: NDArray[Any]
    labels: CrowdLabels
    model: CrowdRidgeClassifierCV
    auc: dict[str, float]
    consensus_accuracy: dict[str, float]

    def annotator_accuracy(self) -> Floats:
        """The share of labels of each annotator that are right."""
        return np.asarray((self.labels.to_matrix() == self.truth[:, np.newaxis]).mean(axis=0))


def run_trial(seed: int) -> Trial:
    """Split the data, simulate the crowd, and learn from it in four ways."""
    data = load_breast_cancer()
    X, X_test, truth, truth_test = train_test_split(
        data.data, data.target, test_size=0.5, stratify=data.target, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=seed)
    majority = labels.majority()
    plain = CrowdRidgeClassifierCV((0.0,)).fit(X, labels)
    weighted = CrowdRidgeClassifierCV((2.0,)).fit(X, labels)
    scores = (
        RidgeCV(alphas=PAPER_L2S).fit(X, 2.0 * majority - 1).predict(X_test),
        plain.decision_function(X_test),
        weighted.decision_function(X_test),
        RidgeCV(alphas=PAPER_L2S).fit(X, 2.0 * truth - 1).predict(X_test),
    )
    consensus = (majority, plain.consensus_, weighted.consensus_, truth)
    return Trial(
        X=X,
        truth=truth,
        labels=labels,
        model=weighted,
        auc={name: float(roc_auc_score(truth_test, f)) for name, f in zip(METHODS, scores, strict=True)},
        consensus_accuracy={name: float(np.mean(c == truth)) for name, c in zip(METHODS, consensus, strict=True)},
    )


def summary(trials: list[Trial]) -> str:
    """The table that is printed."""
    first = trials[0]
    best, worst = first.model.expertise_.argmax(), first.model.expertise_.argmin()
    accuracy = first.annotator_accuracy()
    lines = [
        f"Breast cancer data, {len(first.X)} examples to learn from, 12 annotators: ten who err near the decision",
        f"boundary, one expert, one adversary. Means over {len(trials)} simulated crowds (standard deviation).",
        "",
        f"  {'learnt from':<24}{'test AUC':>16}{'consensus is right':>22}",
    ]
    for name in METHODS:
        auc = np.array([trial.auc[name] for trial in trials])
        right = np.array([trial.consensus_accuracy[name] for trial in trials])
        consensus = "" if name == METHODS[-1] else f"{100 * right.mean():.0f} %"
        lines.append(f"  {name:<24}{f'{auc.mean():.3f} ({auc.std():.3f})':>16}{consensus:>22}")
    lines += [
        "",
        "In the first crowd, without ever seeing the truth:",
        f"  best annotator found:  {first.model.annotators_[best]} (right on {100 * accuracy[best]:.0f} %)",
        f"  worst annotator found: {first.model.annotators_[worst]} (right on {100 * accuracy[worst]:.0f} %)",
        "",
        "This crowd is as misleading as the paper makes it: about half of all labels are wrong, so that the majority",
        "is no better than a coin. No vote recovers the truth, but easy examples are enough to learn from.",
    ]
    return "\n".join(lines)


def draw(trials: list[Trial], path: Path) -> None:
    """The picture that is drawn."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("The picture needs matplotlib: pip install 'crowdwise[plot]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(13.5, 4.4), layout="constrained", width_ratios=(1.25, 1, 1)
    )
    _draw_examples(left, trials[0])
    _draw_annotators(middle, trials[0])
    _draw_methods(right, trials)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _draw_examples(axes: Any, trial: Trial) -> None:
    """Examples along the direction that separates the classes, faint where annotators disagree."""
    direction = RidgeCV(alphas=PAPER_L2S).fit(trial.X, 2.0 * trial.truth - 1).coef_
    along = trial.X @ direction / np.linalg.norm(direction)
    rest = trial.X - np.outer(along, direction / np.linalg.norm(direction))
    across = rest @ np.linalg.svd(rest - rest.mean(axis=0), full_matrices=False)[2][0]
    easiness = trial.model.easiness_
    strength = (easiness - easiness.min()) / np.ptp(easiness)
    for value, marker, colour in ((0, "o", "tab:orange"), (1, "^", "tab:blue")):
        of_class = trial.truth == value
        name = load_breast_cancer().target_names[value]
        size, alpha = 6 + 60 * strength[of_class], 0.1 + 0.85 * strength[of_class]
        axes.scatter(along[of_class], across[of_class], s=size, c=colour, alpha=alpha, marker=marker, linewidths=0)
        axes.scatter([], [], s=40, c=colour, marker=marker, linewidths=0, label=str(name))
    axes.set(title="1. Annotators disagree near the boundary:\nsmall, faint examples count less",
             xlabel="direction that separates the classes", ylabel="main other direction")  # fmt: skip
    axes.legend(title="truth (never seen)", frameon=False, loc="best")
    axes.set(xticks=[], yticks=[])


def _draw_annotators(axes: Any, trial: Trial) -> None:
    """The expertise found for each annotator, against how often they are right."""
    accuracy = 100 * trial.annotator_accuracy()
    expertise = trial.model.expertise_ / trial.model.expertise_.mean()
    axes.plot(accuracy, expertise, "o", color="0.4", markersize=7)
    for i, name in enumerate(trial.labels.annotators):
        if not name.startswith("annotator"):
            side = "left" if accuracy[i] < 50 else "right"
            axes.annotate(name.split()[0], (accuracy[i], expertise[i]), xytext=(0, 9), textcoords="offset points",
                          ha=side, fontsize=10)  # fmt: skip
    axes.margins(x=0.1, y=0.15)
    axes.set(title="2. Without the truth, it finds\nthe expert and the adversary",
             xlabel="how often an annotator is right, in %", ylabel="expertise found (1 = average)")  # fmt: skip


def _draw_methods(axes: Any, trials: list[Trial]) -> None:
    """Test AUC of every method in every trial."""
    for place, name in enumerate(reversed(METHODS)):
        auc = np.array([trial.auc[name] for trial in trials])
        jitter = np.linspace(-0.15, 0.15, len(auc))
        axes.plot(auc, place + jitter, ".", color="0.6", markersize=5)
        axes.plot([auc.mean()], [place], "D", color="black", markersize=7)
        axes.text(auc.mean(), place + 0.24, f"{auc.mean():.2f}", ha="center", fontsize=9)
    axes.set_yticks(range(len(METHODS)), [f"learnt from\n{name}" for name in reversed(METHODS)], fontsize=9)
    axes.set_ylim(-0.5, len(METHODS) - 0.35)
    axes.axvline(0.5, color="0.8", linewidth=1, zorder=0)
    axes.text(0.5, -0.45, " chance", color="0.5", fontsize=8)
    axes.set(title="3. And learns a better classifier",
             xlabel=f"test AUC (dots: {len(trials)} crowds, diamonds: mean)")  # fmt: skip


def main() -> None:
    """Simulate, learn, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="simulated crowds to average over (default: 20)")
    parser.add_argument("--out", type=Path, default=Path("adversaries.png"), help="the picture (default: adversaries.png)")
    options = parser.parse_args()
    if options.trials < 1:
        parser.error("--trials must be at least 1")
    if not options.out.parent.is_dir():
        parser.error(f"there is no folder {options.out.parent} for the picture")
    trials = [run_trial(seed) for seed in range(options.trials)]
    print(summary(trials))
    draw(trials, options.out)
    print(f"\nPicture: {options.out}")


if __name__ == "__main__":
    main()
