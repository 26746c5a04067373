"""
Can one learn from a crowd that is wrong half of the time?
==========================================================

Twelve simulated annotators, as in the paper: ten who err near the decision boundary, an expert who is always right, and
an adversary who is always wrong. About half of all labels are wrong, and no vote recovers the truth. Easy examples, on
which annotators agree, are enough to learn a classifier from.
"""

# %%
# Breast cancer data of scikit-learn, half of it to learn from. The truth is used to simulate annotators and to judge.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from crowdwise import CrowdRidgeClassifierCV, simulate_annotators

METHODS = ("the majority vote", "all labels", "all labels, easy first", "the truth itself")
L2 = 2.0 ** np.arange(-14, 15, 2)


def one_crowd(seed):
    """Labels, their truth, the model with easy examples first, and the test AUC of four ways to learn."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, truth, truth_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=seed)
    plain, easy_first = (CrowdRidgeClassifierCV((steepness,)).fit(X, labels) for steepness in (0.0, 2.0))
    scores = (
        RidgeCV(L2).fit(X, labels.majority()).predict(X_test),
        plain.decision_function(X_test),
        easy_first.decision_function(X_test),
        RidgeCV(L2).fit(X, truth).predict(X_test),
    )
    return labels, truth, easy_first, [roc_auc_score(truth_test, score) for score in scores]


crowds = [one_crowd(seed) for seed in range(20)]
auc = np.array([found for *_, found in crowds])
for name, values in zip(METHODS, auc.T, strict=True):
    print(f"fitted to {name:<24}test AUC {values.mean():.3f} ({values.std():.3f})")

# %%
# The consensus is no better than a coin. That is what half of the labels being wrong means: the weights make a better
# classifier, not better labels.

for name, answers in (
    ("majority vote", [labels.majority() for labels, *_ in crowds]),
    ("consensus", [model.consensus_ for _, _, model, _ in crowds]),
):
    right = [np.mean(answer == truth) for answer, (_, truth, *_) in zip(answers, crowds, strict=True)]
    print(f"{name:<14}accuracy {100 * np.mean(right):.0f}%")

# %%
# Left: in the first crowd the expert is found without the truth. Right: every crowd is a dot, the diamonds are means.

labels, truth, model, _ = crowds[0]
accuracy = 100 * np.mean(labels.to_matrix() == truth[:, np.newaxis], axis=0)
expertise = model.expertise_ / model.expertise_.mean()

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(accuracy, expertise, "o", color="tab:blue")
for i, name in enumerate(labels.annotators):
    if not name.startswith("annotator"):
        left.annotate(name.split()[0], (accuracy[i], expertise[i]), xytext=(0, 8), textcoords="offset points",
                      ha="left" if accuracy[i] < 50 else "right")  # fmt: skip
left.margins(x=0.1, y=0.15)
left.set(xlabel="accuracy of an annotator (%)", ylabel="expertise found (1 is average)")
for place, values in enumerate(auc.T):
    right.plot(values, place + np.linspace(-0.15, 0.15, len(values)), ".", color="0.6")
    right.plot(values.mean(), place, "D", color="tab:blue")
right.axvline(0.5, color="0.8", linewidth=1, zorder=0)
right.set_yticks(range(len(METHODS)), METHODS)
right.invert_yaxis()
right.set(xlabel="test AUC (0.5 is chance)", title="fitted to")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
