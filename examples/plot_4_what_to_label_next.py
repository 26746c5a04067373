"""
What should be labelled next?
=============================

Labels cost money. Is it better to collect them where one more answer is expected to help most, or anywhere? A real
crowd is replayed: 300 tweets of which 20 people each gave the sentiment (Venanzi et al. 2015). To begin with, three
labels per tweet are shown; then 60 more at a time.
"""

# %%

import matplotlib.pyplot as plt
import numpy as np

from crowdwise import CrowdLabels, aggregate, suggest_labels
from crowdwise.datasets import fetch_crowd

crowd = fetch_crowd("weather")
matrix = crowd.labels.to_matrix()  # NaN where there is no label
given = ~np.isnan(matrix)


def replay(by_gain, rng, start=3, batch=60, n_rounds=10):
    """The share of tweets that are right, after each round of labelling."""
    shown = np.argsort(np.argsort(np.where(given, rng.random(given.shape), 2.0), axis=1), axis=1) < start
    right = []
    for _ in range(n_rounds + 1):
        labels = CrowdLabels.from_matrix(np.where(shown, matrix, np.nan), classes=crowd.labels.classes)
        found = aggregate(labels)
        right.append(np.mean(found.label == crowd.truth))
        wanted = (
            suggest_labels(found, labels, n=len(matrix), crowd=True).examples
            if by_gain
            else rng.permutation(len(matrix))
        )
        for row in [row for row in wanted if (given & ~shown)[row].any()][:batch]:
            shown[row, rng.choice(np.flatnonzero((given & ~shown)[row]))] = True
    return right


# %%
# Five replays each. Whoever answers is drawn at random from those who did answer.

ways = {"where an answer is expected to help most": True, "anywhere": False}
found = {name: [replay(by_gain, np.random.default_rng(seed)) for seed in range(5)] for name, by_gain in ways.items()}

# %%
# In these replays, 120 further labels where they are expected to help most are worth as much as 600 anywhere.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
further = 60 * np.arange(11)
for (name, right), style, colour in zip(found.items(), ("o-", "s--"), ("tab:blue", "tab:orange"), strict=True):
    axes.plot(further, 100 * np.transpose(right), color=colour, linewidth=0.5, alpha=0.4)
    axes.plot(further, 100 * np.mean(right, axis=0), style, color=colour, linewidth=2, label=name)
axes.set(xlabel="further labels, after three per tweet", ylabel="accuracy of the consensus (%)")
axes.legend(title="label next", frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
