"""
Does it help a perceptron to see the easiest examples first?
============================================================

The paper's theorem 2 bounds the mistakes of a perceptron by how they are spread over the margins of the examples. It
holds for any order; does the order matter all the same?
"""

# %%
# Two Gaussian clouds as in the paper. Labels are the sign of a linear model, examples next to its boundary are left
# out, and the order goes by true margins: the theorem applies to the letter.

import matplotlib.pyplot as plt
import numpy as np

from crowdwise.paper.theory import EasyFirstPerceptron

ORDERS = ("easiest first", "random", "hardest first")


def one_pass(rng):
    """Mistakes in one pass, and the two bounds, for each order."""
    X = rng.normal(size=(1000, 10)) + 0.5 * np.repeat([-1, 1], 500)[:, np.newaxis]
    u = np.append(np.ones(10) / np.sqrt(10), 0.0)  # no intercept
    score = X @ u[:-1]
    far = np.abs(score) >= 0.02 * np.linalg.norm(X, axis=1).max()
    X, score = X[far], score[far]
    easiest = np.argsort(-np.abs(score))
    rows = []
    for order in (easiest, rng.permutation(easiest), easiest[::-1]):
        model = EasyFirstPerceptron("given", n_epochs=1, max_regions=1000)
        model.fit(X, np.sign(score).astype(int), curriculum=order)
        bound = model.bound(X, u=u)
        rows.append((model.n_mistakes_, bound.value, bound.novikoff))
    return rows


trials = np.array([one_pass(np.random.default_rng(seed)) for seed in range(15)])
for name, (mistakes, theorem, novikoff) in zip(ORDERS, trials.mean(axis=0), strict=True):
    print(f"{name:<14}{mistakes:5.1f} mistakes; at most {theorem:5.0f} by theorem 2, {novikoff:5.0f} by Novikoff")

# %%
# Fewer mistakes *during* the pass, and a smaller bound. With noisy labels little of this is left: :doc:`/paper` has
# the whole measurement.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
mistakes, theorem, novikoff = trials.transpose(2, 1, 0)  # order by trial
places = np.arange(3)
axes.plot(places[:, np.newaxis] + np.linspace(-0.2, 0.2, len(trials)), mistakes, "o", color="0.7", markersize=4)
axes.plot(places, mistakes.mean(axis=1), "D", color="tab:blue", label="mistakes, mean (dots: trials)")
axes.plot(places, theorem.mean(axis=1), "^", color="tab:orange", label="theorem 2, mean")
axes.plot(places, novikoff.mean(axis=1), "_", color="black", markersize=25, label="Novikoff, mean")
axes.set_yscale("log")
axes.set_xticks(places, ORDERS)
axes.set(ylabel="mistakes in one pass", ylim=(10, 20_000))
axes.legend(frameon=False, ncols=3, loc="upper center")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
