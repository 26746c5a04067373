"""Sessions with simulated people: easy examples first, the most uncertain ones, or any; and when to stop.

People answer by how easy an example is and by how much they have learned: the probability of a wrong answer is half of
exp(-skill * distance from the boundary). Half of the answers get feedback, and each of these raises the skill, most on
examples that are neither trivial nor out of reach. Five people answer 200 examples, ten at a time until accuracies have
been measured and forty at a time from then on, where only the stop line is watched; every rule meets the same people,
examples and answers to come. People are weak at first, or able.

--seeds N is the number of sessions per row, --first S the first seed, --jobs the number of processes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from tables import Place, Run, bold_best, parser

from crowdwise import CrowdRidgeClassifier, Session
from crowdwise.exceptions import CrowdWarning

SKILLS = {"weak": (0.5, 2.5), "able": (2.0, 6.0)}
RULES = ("random", "easy", "uncertain")
ANSWERS = (50, 100, 400)
N_EXAMPLES, N_PEOPLE, N_FEATURES, BATCH, LATE_BATCH = 200, 5, 10, 10, 40
# Whether to stop is asked every so many answers, once there is one for each example.
STOP_BELOW, STOP_EVERY = 1 / 200, 40
LEARNING = Place("docs/guide/session.md", "session rules")


@dataclass
class Person:
    """Answers that get better with feedback, and worse with difficulty."""

    skill: float
    gain: float
    rng: np.random.Generator
    n_answers: int = field(default=0, init=False)

    def answer(self, truth: int, distance: float) -> int:
        wrong = 0.5 * np.exp(-self.skill * distance)
        self.n_answers += 1
        answer = 1 - truth if self.rng.random() < wrong else truth
        if self.n_answers % 2 == 0:  # feedback, from which one learns where one is neither sure nor lost
            self.skill += self.gain * 8 * wrong * (0.5 - wrong)
        return answer


@dataclass(frozen=True)
class Crowd:
    """Examples of two classes, and others that the classifier is tried on."""

    X: np.ndarray
    truth: np.ndarray
    distance: np.ndarray
    X_test: np.ndarray
    truth_test: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Crowd:
        direction = rng.normal(size=N_FEATURES)
        direction /= np.linalg.norm(direction)
        X, X_test = rng.normal(size=(N_EXAMPLES, N_FEATURES)), rng.normal(size=(5000, N_FEATURES))
        scores, of_test = X @ direction, X_test @ direction
        return cls(X, (scores > 0).astype(int), np.abs(scores), X_test, (of_test > 0).astype(int))


def run_session(seed: int, rule: str, people_are: str, *, classifier: bool) -> tuple[list[float], float | None]:
    """Accuracy of the consensus, or of the classifier, by number of answers, and what became of the stop line.

    That is the share of labels that a further answer for each example changed; None if it was never time to stop.
    """
    warnings.simplefilter("ignore", CrowdWarning)
    rng = np.random.default_rng([seed, 17])
    crowd = Crowd.drawn(rng)
    skills = rng.uniform(*SKILLS[people_are], size=N_PEOPLE)
    people = {f"p{j}": Person(skills[j], 0.02, np.random.default_rng([seed, j])) for j in range(N_PEOPLE)}
    model = CrowdRidgeClassifier(2.0, l2=1.0) if classifier else None
    X = crowd.X if classifier else None
    session = Session(X=X, model=model, texts=None if classifier else ["?"] * N_EXAMPLES, classes=[0, 1])
    accuracies: list[float] = []
    stopped: tuple[int, np.ndarray] | None = None
    changed = None
    n_answers, turn = 0, 0
    while n_answers < N_EXAMPLES * N_PEOPLE:
        name = f"p{turn % N_PEOPLE}"
        turn += 1
        n_asked = BATCH if n_answers < ANSWERS[-1] else LATE_BATCH
        for example in session.next(name, n=n_asked, rule=rule):
            session.answer(example, name, people[name].answer(int(crowd.truth[example]), crowd.distance[example]))
            n_answers += 1
        if n_answers in ANSWERS:
            right = _predicted(session, crowd) if classifier else session.result.label == crowd.truth
            accuracies.append(float(right.mean()))
        if n_answers < N_EXAMPLES or n_answers % STOP_EVERY:
            continue  # a random order needs no model
        if stopped is None and session.expected_changes() < STOP_BELOW:
            stopped = n_answers, session.result.codes.copy()
        elif stopped is not None and n_answers == stopped[0] + N_EXAMPLES:
            changed = float((session.result.codes != stopped[1]).mean())
    return accuracies, changed


def _predicted(session: Session, crowd: Crowd) -> np.ndarray:
    """Which of the examples that nobody labelled the classifier is right about."""
    return session.fitted.predict(crowd.X_test) == crowd.truth_test


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--jobs", type=int, default=1)
    options = arguments.parse_args()
    run, n_seeds = Run(options, [LEARNING]), 1 if options.quick else options.seeds
    seeds = range(options.first, options.first + n_seeds)
    learning, stops = [], []
    for people_are, classifier in ((people, by) for people in SKILLS for by in (False, True)):
        by_rule = []
        for rule in RULES:
            jobs = (delayed(run_session)(seed, rule, people_are, classifier=classifier) for seed in seeds)
            sessions = Parallel(options.jobs)(jobs)
            by_rule.append(100 * np.array([accuracies for accuracies, _ in sessions]))
            stops += [changed for _, changed in sessions if changed is not None]
        for k, n_answers in enumerate(ANSWERS):
            means = bold_best([f"{accuracies[:, k].mean():.1f}" for accuracies in by_rule])
            gaps = [accuracies[:, k] - by_rule[0][:, k] for accuracies in by_rule[1:]]
            spread = ["", *(f" ({gap.mean():+.1f}±{gap.std() / n_seeds**0.5:.1f})" for gap in gaps)]
            cells = [mean + gap for mean, gap in zip(means, spread, strict=True)]
            learning.append([f"{people_are}, {'classifier' if classifier else 'consensus'}", f"{n_answers}", *cells])
    right = sum(changed < STOP_BELOW for changed in stops)
    n_sessions = n_seeds * len(SKILLS) * 2 * len(RULES)
    note = (
        f"{n_seeds} sessions per cell; {N_PEOPLE} people, {N_EXAMPLES} examples. In brackets: less the random order, ± "
        f"a standard error. Fewer than 1 in 200 labels were expected to change in {len(stops)} of {n_sessions} "
        f"sessions, rightly in {right}."
    )
    columns = ("accuracy (%) of", "answers", *RULES)
    run.table(LEARNING, columns, learning, note)


if __name__ == "__main__":
    main()
