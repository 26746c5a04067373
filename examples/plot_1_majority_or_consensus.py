"""
When is a consensus better than the majority vote?
==================================================

39 people said of 108 photographs whether the bird is an indigo bunting or a blue grosbeak. The two are easily confused,
and some people are much better at it than others. The consensus weights annotators by their estimated reliability,
without knowing any truth. How many people have to be asked until that pays?
"""

# %%
# The crowd comes with crowdwise (Welinder et al. 2010). Every annotator labelled every photograph.

import matplotlib.pyplot as plt
import numpy as np

from crowdwise import aggregate
from crowdwise.datasets import fetch_crowd

crowd = fetch_crowd("bluebirds")
labels, truth = crowd.labels, crowd.truth
print(labels)

# %%
# Ask some of the annotators, drawn at random, and compare both answers with the truth. Even numbers would make ties, so
# only odd ones are tried.

numbers = [3, 5, 9, 15, 21, 29, 39]
rng = np.random.default_rng(0)
right = {"majority vote": [], "consensus": []}
for n in numbers:
    draws = [labels.select_annotators(rng.permutation(labels.n_annotators) < n) for _ in range(20)]
    right["majority vote"].append([np.mean(few.majority() == truth) for few in draws])
    right["consensus"].append([np.mean(aggregate(few).label == truth) for few in draws])

# %%
# The majority does not get better with more people: on some photographs most of them make the same mistake. The
# consensus does, as soon as there are enough labels to estimate how reliable each annotator is.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, shares), marker, colour in zip(right.items(), "os", ("tab:orange", "tab:blue"), strict=True):
    low, middle, high = np.quantile(shares, [0.1, 0.5, 0.9], axis=1)
    axes.fill_between(numbers, low, high, alpha=0.15, color=colour, linewidth=0)
    axes.plot(numbers, middle, marker=marker, color=colour, label=name)
axes.set(xlabel="annotators asked", ylabel="accuracy")
axes.legend(title="median, and 80% of 20 draws", frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
