"""Does the end of the paper's rounds depend on their start? If not, weights that fade leave the unweighted method.

python benchmarks/starts.py fixed_points     random starts on the paper's synthetic data, at fixed l2 and steepness
python benchmarks/starts.py camps            a crowd in two camps: two ends, and which start leads to which

With complete labels, coefficients are linear in the consensus, so a round is a map of the annotators' shares of
expertise: shares -> mean of the annotators' own ridge predictions -> mean squared errors -> shares in proportion to
one over these. Everything it needs is kept in sums of size (annotators, annotators), so a start costs microseconds.
Its derivative in the logarithms of shares has rows r_l that sum to 0; if half the largest difference of two rows
(sum of absolute values) is below 1 everywhere, rounds contract (Hilbert's metric, Dobrushin's coefficient) and there is
one fixed point. It is enough if that holds where two rounds can lead, since fixed points are there too. Of every data
set, one end is compared with that of `CrowdRidgeClassifier(init=...)`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise.crowd import disagreement, easiness
from crowdwise.exceptions import CrowdWarning
from crowdwise.paper.reproduce.draws import Draw, synthetic
from crowdwise.weights import Smooth

PLACES = {part: Place("docs/evidence/weighting.md", f"starts {part}") for part in ("fixed_points", "camps")}
N_SETS, N_STARTS, MAX_ROUNDS, TOL = 15, 400, 5000, 1e-11
# Clarity, steepness and l2; then a share of missing labels, whose rounds are those of the model itself.
SETTINGS = ((1.0, 0.0, 1.0), (1.0, 2.0, 1.0), (1.0, 2.0, 1e-3), (2.0, 2.0, 100.0), (5.0, 0.0, 1.0))
MISSING, N_STARTS_OF_MODELS = 0.5, 40
# The starts of Dirichlet draws: near corners, where one annotator has nearly all expertise, and in the middle.
CONCENTRATIONS = (0.05, 1.0)


@dataclass(frozen=True)
class Rounds:
    """Sums of a crowd with complete labels, from which every round follows.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, n_annotators)
        Ridge predictions from the labels of each annotator.
    weight : ndarray of shape (n_examples,)
        Of examples; sums to 1.
    votes : ndarray of shape (n_examples, n_annotators)
    """

    scores: np.ndarray
    weight: np.ndarray
    votes: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, votes: np.ndarray, weight: np.ndarray, l2: float) -> Rounds:
        share = weight / weight.sum()
        X, middle = X - share @ X, share @ votes
        coef = np.linalg.solve((X.T * weight) @ X + l2 * np.eye(X.shape[1]), (X.T * weight) @ (votes - middle))
        return cls(X @ coef + middle, share, votes)

    def errors(self, shares: np.ndarray) -> np.ndarray:
        """Mean squared error of every annotator at every start, from products that are kept."""
        gram, cross = ((left.T * self.weight) @ self.scores for left in (self.scores, self.votes))
        own = np.einsum("sk,kj,sj->s", shares, gram, shares)
        return self.weight @ self.votes**2 - 2 * shares @ cross.T + own[:, np.newaxis]

    def next(self, shares: np.ndarray) -> np.ndarray:
        expertise = 1 / self.errors(shares)
        return expertise / expertise.sum(axis=1, keepdims=True)

    def settle(self, shares: np.ndarray) -> np.ndarray:
        """The ends of some starts."""
        for _ in range(MAX_ROUNDS):
            before, shares = shares, self.next(shares)
            if np.abs(shares / before - 1).max() < TOL:
                return shares
        raise AssertionError("rounds did not settle")

    def slopes(self, shares: np.ndarray) -> np.ndarray:
        """Derivative of log errors by log shares, of shape (n_annotators, n_annotators); rows sum to 0."""
        score = self.scores @ shares
        gradient = -2 * ((self.votes - score[:, np.newaxis]).T * self.weight) / self.errors(shares[np.newaxis]).T
        return gradient @ ((self.scores - score[:, np.newaxis]) * shares)

    def contraction(self, shares: np.ndarray) -> float:
        """How much nearer a round brings two near starts, in Hilbert's metric; at most."""
        rows = self.slopes(shares)
        return float(0.5 * np.abs(rows[:, np.newaxis] - rows).sum(axis=2).max())

    def radius(self, shares: np.ndarray) -> float:
        """The same in the long run: the largest eigenvalue of the derivative of a round."""
        rows = self.slopes(shares)
        return float(np.abs(np.linalg.eigvals(rows - shares @ rows)).max())


def random_starts(n_annotators: int, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    half = [rng.dirichlet(np.full(n_annotators, c), n_starts // len(CONCENTRATIONS)) for c in CONCENTRATIONS]
    return np.maximum(np.vstack(half), 1e-12)


def n_ends(shares: np.ndarray) -> int:
    """How many ends differ by more than the tolerance of rounds explains."""
    return len(np.unique(shares.round(6), axis=0))


def is_same_as_the_model(drawn: Draw, steepness: float, l2: float, end: np.ndarray, rng: np.random.Generator) -> bool:
    """Whether the estimator with a random first consensus ends there too."""
    init = rng.choice([-1, 1], len(drawn.X))
    model = CrowdRidgeClassifier(steepness, l2=l2, init=init, tol=1e-9, max_rounds=MAX_ROUNDS)
    expertise = model.fit(drawn.X, drawn.labels).expertise_
    return bool(np.allclose(expertise / expertise.sum(), end, rtol=1e-5))


def setting_row(setting: tuple[float, float, float], n_sets: int, n_starts: int) -> list[str]:
    """Starts of one setting, data set by data set."""
    clarity, steepness, l2 = setting
    found = []
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, round(clarity)])
        drawn = synthetic(rng, clarity)
        weight = easiness(disagreement(drawn.labels), steepness)
        rounds = Rounds.of(drawn.X, drawn.labels.to_matrix().astype(float), weight, l2)
        starts = random_starts(drawn.labels.n_annotators, n_starts, rng)
        ends = rounds.settle(starts)
        if not is_same_as_the_model(drawn, steepness, l2, ends[0], rng):
            raise AssertionError("the map of shares and the model end at different points")
        seen = max(rounds.contraction(shares) for shares in rounds.next(rounds.next(starts)))
        found.append([n_ends(ends), rounds.radius(ends[0]), seen])
    n, radius, seen = np.array(found).T
    return [
        f"p = {clarity:g}, steepness {steepness:g}, l2 {l2:g}",
        f"{n_sets} x {n_starts}",
        f"{n.max():.0f}",
        f"{radius.max():.2f}",
        f"{seen.max():.2f}",
    ]


def missing_row(n_sets: int, n_starts: int) -> list[str]:
    """The model itself on labels of which some are missing, from random classes as first consensus."""
    found = []
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, 1])
        drawn = synthetic(rng, 1.0)
        labels = CrowdLabels.from_matrix(np.where(rng.random((500, 12)) < MISSING, np.nan, drawn.labels.to_matrix()))
        ends = []
        for _ in range(n_starts):
            init = rng.choice([-1.0, 1.0], 500)
            model = CrowdRidgeClassifier(2.0, l2=1.0, init=init, tol=1e-9, max_rounds=MAX_ROUNDS).fit(drawn.X, labels)
            ends.append(model.expertise_ / model.expertise_.sum())
        found.append(n_ends(np.array(ends).round(5)))
    name = f"p = 1, steepness 2, l2 1, {MISSING:.0%} of labels missing"
    return [name, f"{n_sets} x {n_starts}", f"{max(found)}", "", ""]


def fixed_points(run: Run) -> None:
    """All settings."""
    n_sets, n_starts = (2, 10) if run.quick else (N_SETS, N_STARTS)
    rows = [setting_row(setting, n_sets, n_starts) for setting in SETTINGS]
    rows.append(missing_row(n_sets, 2 if run.quick else N_STARTS_OF_MODELS))
    columns = ("setting", "data sets x starts", "ends", "largest eigenvalue", "largest contraction")
    run.table(PLACES["fixed_points"], columns, rows)


# ---------------------------------------------------------------------- two camps

N_EXAMPLES, N_RIGHT, N_MISLED = 500, 5, 7
CONTESTED = 0.3  # share of examples in which the two cues point to different classes
STEEPNESSES = (0.0, 2.0, 5.0, 10.0)


def two_camps(error: float, rng: np.random.Generator) -> tuple[np.ndarray, CrowdLabels, np.ndarray]:
    """Five annotators follow a cue that is always right, seven one that is salient where it is wrong."""
    truth, contested = rng.choice([-1, 1], N_EXAMPLES), rng.random(N_EXAMPLES) < CONTESTED
    cues = np.column_stack([truth, np.where(contested, -truth, 0)]) + 0.05 * rng.normal(size=(N_EXAMPLES, 2))
    X = np.hstack([cues, rng.normal(size=(N_EXAMPLES, 3))])
    answers = np.repeat([truth, np.where(contested, -truth, truth)], [N_RIGHT, N_MISLED], axis=0).T
    flips = rng.random(answers.shape) < error
    return X, CrowdLabels.from_matrix(np.where(flips, -answers, answers)), truth


def ends_right(X: np.ndarray, labels: CrowdLabels, truth: np.ndarray, steepness: float) -> list[bool]:
    """Whether most expertise goes to those who are right: with weights, after them without, and with fading ones."""
    settings = {"l2": 1.0, "max_rounds": 500, "tol": 1e-8}
    first = CrowdRidgeClassifier(steepness, **settings).fit(X, labels)
    after = CrowdRidgeClassifier(0.0, init=first.predict(X), **settings).fit(X, labels)
    faded = CrowdRidgeClassifier(steepness, curriculum=Smooth(2.0), **settings).fit(X, labels)
    shares = (model.expertise_ / model.expertise_.sum() for model in (first, after, faded))
    return [float(share[:N_RIGHT].sum()) > 0.5 for share in shares]


def camps(run: Run) -> None:
    """How often each start leads to the camp that is right."""
    n_sets, rows = 2 if run.quick else 100, []
    for error in (0.01, 0.05):
        sets = [two_camps(error, np.random.default_rng([seed, round(100 * error)])) for seed in range(n_sets)]
        several = 0
        for seed, (X, labels, _) in enumerate(sets):
            rounds = Rounds.of(X, labels.to_matrix().astype(float), np.ones(len(X)), 1.0)
            starts = random_starts(labels.n_annotators, 100, np.random.default_rng(seed))
            several += n_ends(rounds.settle(starts)) > 1
        for steepness in STEEPNESSES:
            found = np.mean([ends_right(*each, steepness) for each in sets], axis=0)
            rows.append([f"{error:.0%}, {several} of {n_sets}", f"{steepness:g}", *(f"{share:.0%}" for share in found)])
    columns = ("errors, sets with two ends", "steepness", "weights kept", "then without weights", "`Smooth(2)`")
    run.table(PLACES["camps"], columns, rows)


PARTS = {"fixed_points": fixed_points, "camps": camps}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run)


if __name__ == "__main__":
    main()
