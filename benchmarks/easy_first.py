"""Does it help a perceptron to see the easiest examples first?

Counts the mistakes of one pass from the easiest example to the hardest, in random order, and from the hardest to the
easiest, beside the bounds of Novikoff and of theorem 2; and draws how that bound depends on the spread of the mistakes.

    python benchmarks/easy_first.py [--figures docs/figures] [--write]

The LIBSVM sets are read from the folder ``libsvm`` in the directory that CROWDWISE_DATA names; those that
are not there are left out.
"""

# Data: two Gaussian clouds as in the paper, and three sets of the LIBSVM collection.

import lzma
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import wilcoxon
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import RidgeClassifier
from tables import Place, Run
from tables import parser as benchmark_parser

from crowdwise import simulate_annotators
from crowdwise.paper.theory import EasyFirstPerceptron, improvement

LIBSVM = ("breast-cancer_scale", "german.numer_scale", "a1a")
ORDERS = ("easiest first", "random", "hardest first")
MEASURES = ("mistakes", "until settled", "theorem", "novikoff", "spread", "regions", "accuracy", "averaged")
MARGINS = (0.4, 0.3, 0.2, 0.1, 0.05)
# Examples nearer to the boundary than this share of the radius are left out where a bound needs a margin.
SMALLEST_MARGIN = 0.02


def two_clouds(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    truth = np.repeat([-1, 1], 500)
    return rng.normal(size=(1000, 10)) + 0.5 * truth[:, np.newaxis], truth


def libsvm_set(path: Path) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    X, truth = X.toarray(), np.where(y == y.max(), 1, -1)

    def three_quarters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.permutation(len(X))[: 3 * len(X) // 4]
        return X[rows], truth[rows]

    return three_quarters


def data_sets() -> dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]]:
    found = {"two clouds": two_clouds}
    for name in LIBSVM:
        path = Path(os.environ.get("CROWDWISE_DATA", "data")) / "libsvm" / f"{name}.xz"
        if path.exists():
            found[name] = libsvm_set(path)
        else:
            print(f"{name} is left out: {path} does not exist; set CROWDWISE_DATA.")
    return found


# Three situations. "Known margins": labels are the sign of a linear model, examples next to its boundary are left
# out, and the order goes by true margins, so the theorem applies to the letter. "Little noise" and "much noise": the
# labels are the majority of twelve annotators as in the paper's simulator (p = 5 and p = 1, one always right, one
# always wrong), and the order goes by disagreement.


def hyperplane(X: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A unit vector, the intercept last."""
    ridge = RidgeClassifier().fit(X, truth)
    u = np.append(np.ravel(ridge.coef_), ridge.intercept_)
    return u / np.linalg.norm(u)


def known_margins(X: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> list[dict]:
    rows = np.column_stack([X, np.ones(len(X))])
    u = hyperplane(X, truth)
    keep = np.abs(rows @ u) >= SMALLEST_MARGIN * np.linalg.norm(rows, axis=1).max()
    X, score = X[keep], (rows @ u)[keep]
    easiest = np.argsort(-np.abs(score), kind="stable")
    return measure(X, np.sign(score).astype(int), np.sign(score), easiest, u, rng, max_regions=1000)


def twelve_annotators(X: np.ndarray, truth: np.ndarray, rng: np.random.Generator, clarity: float) -> list[dict]:
    labels = simulate_annotators(X, truth, 10, clarity=clarity, experts=1, adversaries=1, random_state=rng)
    shuffled = rng.permutation(len(X))  # equally disputed examples in random order
    disputed = EasyFirstPerceptron(n_epochs=1).fit(X, labels).disagreement_
    easiest = shuffled[np.argsort(disputed[shuffled], kind="stable")]
    return measure(X, labels, truth, easiest, hyperplane(X, truth), rng, max_regions=9)


def measure(X, labels, truth, easiest, u, rng, max_regions) -> list[dict]:
    orders = (easiest, rng.permutation(easiest), easiest[::-1])
    found = []
    for name, order in zip(ORDERS, orders, strict=True):
        model = EasyFirstPerceptron("given", n_epochs=1, max_regions=max_regions).fit(X, labels, curriculum=order)
        bound = model.bound(X, u=u)
        averaged = EasyFirstPerceptron("given", n_epochs=1, average=True).fit(X, labels, curriculum=order)
        settled = EasyFirstPerceptron("given", n_epochs=1000, max_regions=max_regions) if max_regions > 9 else None
        found.append(
            {
                "order": name,
                "mistakes": model.n_mistakes_,
                "until settled": settled.fit(X, labels, curriculum=order).n_mistakes_ if settled else np.nan,
                "theorem": bound.value,
                "novikoff": bound.novikoff,
                "spread": bound.spread,
                "regions": bound.n_regions,
                "accuracy": float((model.predict(X) == truth).mean()),
                "averaged": float((averaged.predict(X) == truth).mean()),
            }
        )
    return found


SITUATIONS = {
    "known margins": known_margins,
    "little noise": partial(twelve_annotators, clarity=5.0),
    "much noise": partial(twelve_annotators, clarity=1.0),
}


NOISY = ("mistakes", "theorem 3", "Novikoff (noisy)", "smaller", "last", "averaged", "wins")
# The columns of the table of each situation.
TABLES = {
    "known margins": ("mistakes", "until settled", "theorem 2", "Novikoff", *NOISY[3:]),
    "little noise": NOISY,
    "much noise": NOISY,
}
PLACES = {situation: Place("docs/theory.md", f"easy_first {situation}") for situation in TABLES}


def trials(n_trials: int, seed: int = 0) -> list[dict]:
    rows = []
    for data, draw in data_sets().items():
        for situation, trial in SITUATIONS.items():
            for number, spawned in enumerate(np.random.SeedSequence(seed).spawn(n_trials)):
                rng = np.random.default_rng(spawned)
                X, truth = draw(rng)
                for row in trial(X, truth, rng):
                    rows.append({"data": data, "situation": situation, "trial": number, **row})
    return rows


# Results first, pictures second.


def column(rows: list[dict], name: str, **where: str) -> np.ndarray:
    return np.array([row[name] for row in rows if all(row[key] == value for key, value in where.items())], dtype=float)


def write_tables(run: Run, rows: list[dict]) -> None:
    """One table per situation: means over trials."""
    n_trials = len({row["trial"] for row in rows})
    for situation, columns in TABLES.items():
        lines = []
        for data in dict.fromkeys(row["data"] for row in rows):
            for order in ORDERS:
                at = {"data": data, "situation": situation}
                chosen = {name: column(rows, name, order=order, **at) for name in MEASURES}
                cells = summary(chosen, column(rows, "mistakes", order="random", **at))
                lines.append([data, order, *(cells[name] for name in columns)])
        regions = column(rows, "regions", situation=situation)
        span = f"{regions.min():.0f} to {regions.max():.0f} regions, mean {regions.mean():.0f}"
        note = f"Means of {n_trials} trials; {span if np.ptp(regions) else f'{regions[0]:.0f} regions'}."
        run.table(PLACES[situation], ("data", "order", *columns), lines, note)


def summary(chosen: dict[str, np.ndarray], random: np.ndarray) -> dict[str, str]:
    """Means, in how many trials the theorem is below Novikoff, and the comparison with the random order."""
    if not (chosen["mistakes"] <= np.minimum(chosen["theorem"], chosen["novikoff"])).all():
        raise AssertionError("a bound was exceeded")
    mean = {name: values.mean() for name, values in chosen.items()}
    difference = chosen["mistakes"] - random
    wins = f"{int((difference < 0).sum())}, p={wilcoxon(difference).pvalue:.0e}" if difference.any() else ""
    theorem, novikoff = f"{mean['theorem']:.0f}", f"{mean['novikoff']:.0f}"
    return {
        "mistakes": f"{mean['mistakes']:.1f}",
        "until settled": f"{mean['until settled']:.1f}",
        "theorem 2": theorem,
        "theorem 3": theorem,
        "Novikoff": novikoff,
        "Novikoff (noisy)": novikoff,
        "smaller": f"{int((chosen['theorem'] < chosen['novikoff']).sum())}/{len(random)}",
        "last": f"{mean['accuracy']:.3f}",
        "averaged": f"{mean['averaged']:.3f}",
        "wins": wins,
    }


def draw_improvement() -> plt.Figure:
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    spread = np.linspace(0, 10, 201)
    for margin, style, shade in zip(MARGINS, ("-", "--", "-.", ":", "-"), (0.0, 0.15, 0.3, 0.4, 0.6), strict=True):
        axes.plot(spread, improvement(margin, spread), style, color=str(shade), lw=1.8, label=f"{margin:g}")
    axes.axhline(1.0, color="0.5", lw=1, ls=(0, (6, 4)))
    axes.set(xlabel="spread of mistakes over the regions (standard deviation)", yscale="log", xlim=(0, 10))
    axes.set_ylabel("theorem 2 / Novikoff\n(below 1: the smaller bound)")
    axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"])
    axes.minorticks_off()
    axes.legend(title="margin / radius", frameon=False, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_mistakes(rows: list[dict]) -> plt.Figure:
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, grid = plt.subplots(
        len(SITUATIONS),
        len(names),
        figsize=(2.7 * len(names) + 1, 8.6),
        layout="constrained",
        sharey="row",
        squeeze=False,
    )
    for line, situation, lowest in zip(list(grid), SITUATIONS, (1, 10, 100), strict=True):
        for axes, data in zip(line, names, strict=True):
            for x, order in enumerate(ORDERS):
                at = {"data": data, "situation": situation, "order": order}
                counted = column(rows, "mistakes", **at)
                jitter = np.linspace(-0.22, 0.22, len(counted))
                axes.plot(x + jitter, counted, "o", ms=3, color="0.35", alpha=0.6, mew=0)
                axes.plot(x, counted.mean(), "D", ms=7, color="black", mfc="white", mew=1.5)
                axes.plot(x, column(rows, "theorem", **at).mean(), "^", ms=8, color="black")
                axes.plot(x, column(rows, "novikoff", **at).mean(), "_", ms=22, color="black", mew=2)
            axes.set_yscale("log")
            axes.set_xticks(range(3), ["easiest\nfirst", "random", "hardest\nfirst"])
            axes.set_xlim(-0.6, 2.6)
            axes.set_ylim(lowest, 10_000)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_minor_formatter(plt.NullFormatter())
            if situation == "known margins":
                axes.set_title(data, fontsize=11)
            axes.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel(f"{situation}\nmistakes in one pass", fontsize=10)
    handles = [
        plt.Line2D([], [], marker="o", ls="", ms=4, color="0.35", label="mistakes of one trial"),
        plt.Line2D([], [], marker="D", ls="", ms=7, color="black", mfc="white", mew=1.5, label="their mean"),
        plt.Line2D([], [], marker="^", ls="", ms=8, color="black", label="theorem 2 (theorem 3 if noisy), mean"),
        plt.Line2D(
            [],
            [],
            marker="_",
            ls="",
            ms=18,
            mew=2,
            color="black",
            label="Novikoff (Freund and Schapire if noisy), mean",
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return figure


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--figures", type=Path, default=None, help="folder for the figures")
    parser.add_argument("--trials", type=int, default=30)
    options = parser.parse_args()
    run = Run(options, PLACES.values())
    rows = trials(2 if options.quick else options.trials)
    write_tables(run, rows)
    if options.figures is None:
        return
    options.figures.mkdir(parents=True, exist_ok=True)
    for name, figure in (("bound_improvement", draw_improvement()), ("easy_first_mistakes", draw_mistakes(rows))):
        figure.savefig(options.figures / f"{name}.png", dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    main()
