"""
Which annotators can you trust?
===============================

110 people judged the sentiment of tweets about the weather, 20 of them per tweet (Venanzi et al. 2015). How
accurate is each of them? It can be estimated from their agreement with each other, without any truth.
"""

# %%
# The crowd comes with crowdwise, and so does its truth, which is used only to judge the result.

import matplotlib.pyplot as plt
import numpy as np

from crowdwise import aggregate
from crowdwise.datasets import fetch_crowd

crowd = fetch_crowd("weather")
labels = crowd.labels
found = aggregate(labels)
print(f"majority vote accuracy: {np.mean(labels.majority() == crowd.truth):.3f}")
print(f"consensus accuracy:     {np.mean(found.label == crowd.truth):.3f}")

# %%
# All that is known about the annotators, as a table; the best come first.

frame = found.annotators_frame().sort_values("accuracy", ascending=False)
print(frame.head(5).to_string(index=False))
print(frame.tail(5).to_string(index=False))

# %%
# Estimates against the truth. People with few labels (small dots) are drawn towards the crowd's average, since little
# is known about them.

given = labels.to_matrix()
right = np.nanmean(np.where(np.isnan(given), np.nan, given == crowd.truth[:, np.newaxis]), axis=0)
flagged = np.array([name in found.annotator_flags for name in found.annotators])

figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
axes.axline((0.5, 0.5), slope=1, color="0.8", linewidth=1, zorder=0)
for which, colour, name in (
    (~flagged, "tab:blue", "annotator"),
    (flagged, "tab:orange", "flagged: few labels"),
):
    size = 2 + labels.labels_per_annotator[which] / 2
    axes.scatter(right[which], found.accuracy[which], s=size, color=colour, alpha=0.6, linewidths=0, label=name)
axes.set(xlabel="accuracy", ylabel="estimated accuracy, without the truth")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
