"""
How far can a consensus be trusted?
===================================

74 people were asked of 2,040 pairs of a name and a web address whether they belong together (Demartini et al. 2012).
The consensus has a confidence for each pair. Pairs of low confidence are those to look at again.
"""

# %%
# Labels alone, and labels with a classifier of the texts: groups of two to four letters, weighted by TF-IDF.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from crowdwise import CrowdLogisticClassifier, aggregate
from crowdwise.datasets import fetch_crowd

crowd = fetch_crowd("zencrowd_us")
labels, truth = crowd.labels, crowd.truth
X = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=3, sublinear_tf=True).fit_transform(crowd.texts)
model = CrowdLogisticClassifier().fit(X, labels)
alone = aggregate(labels)

# %%
# For the majority vote, the share of votes takes the place of the confidence.

votes = labels.counts()
answers = {
    "labels and texts": (model.consensus_, model.consensus_confidence_),
    "labels alone": (alone.label, alone.confidence),
    "majority vote": (labels.majority(), votes.max(axis=1) / votes.sum(axis=1)),
}
for name, (answer, confidence) in answers.items():
    print(f"{name:<18}accuracy {np.mean(answer == truth):.3f}, mean confidence {confidence.mean():.3f}")

# %%
# Take the most confident pairs first. How many of those taken are wrong? At the right end all pairs are taken. On this
# crowd the majority vote is more accurate than the consensus; known answers would show it.

taken = np.arange(1, len(truth) + 1)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, (answer, confidence)), style in zip(answers.items(), ("-", "--", ":"), strict=True):
    surest = np.argsort(-confidence, kind="stable")
    wrong = np.cumsum(answer[surest] != truth[surest]) / taken
    axes.plot(100 * taken[100:] / len(truth), 100 * wrong[100:], style, linewidth=2, label=name)
axes.set(xlabel="pairs taken, most confident first (%)", ylabel="wrong among these (%)", ylim=(0, None))
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
