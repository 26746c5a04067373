"""Small crowds for tests."""

import unicodedata

import numpy as np

from crowdwise import CrowdLabels


def crowd(seed=0, *, n_examples=40, n_features=3, n_annotators=6, n_classes=2, missing=0.0):
    """Features and a matrix of labels, None where there is none; every example and annotator has a label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_examples, n_features)) + 1
    direction = rng.normal(size=(n_features, n_classes))
    truth = ((X - 1) @ direction).argmax(axis=1)
    skill = rng.uniform(0.1, 0.9, n_annotators)
    guess = rng.integers(0, n_classes, (n_examples, n_annotators))
    matrix = np.where(rng.random(guess.shape) < skill, truth[:, None], guess).astype(object)
    absent = rng.random(guess.shape) < missing
    absent[np.arange(n_examples), rng.integers(0, n_annotators, n_examples)] = False
    absent[rng.integers(0, n_examples, n_annotators), np.arange(n_annotators)] = False
    matrix[absent] = None
    return X, matrix


def labels_of(matrix, n_classes=2, **kwargs):
    return CrowdLabels.from_matrix(matrix, classes=range(n_classes), **kwargs)


def rare_crowd(seed=0, *, n_examples=400, n_annotators=6, share=0.08):
    """Features, labels and truth of two classes that overlap, the second of them rare."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_examples) < share).astype(int)
    X = rng.normal(size=(n_examples, 3)) + 1.3 * truth[:, None]
    right = rng.random((n_examples, n_annotators)) < rng.uniform(0.75, 0.95, n_annotators)
    return X, np.where(right, truth[:, None], 1 - truth[:, None]), truth


def clear_crowd(seed=0, *, n_examples=150, n_annotators=7, n_classes=2, missing=0.3):
    """Features, labels and truth of annotators who are mostly right, but for annotator 2, who is always wrong."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_examples)
    X = np.eye(n_classes)[truth] + 0.6 * rng.normal(size=(n_examples, n_classes))
    guess = rng.integers(0, n_classes, (n_examples, n_annotators))
    matrix = np.where(rng.random(guess.shape) < 0.7, truth[:, None], guess).astype(object)
    matrix[:, 2] = (truth + 1) % n_classes
    absent = rng.random(guess.shape) < missing
    absent[np.arange(n_examples), rng.integers(0, n_annotators, n_examples)] = False
    matrix[absent] = None
    names = [f"annotator {i}" for i in range(n_annotators)]
    return X, CrowdLabels.from_matrix(matrix, annotators=names, classes=range(n_classes)), truth


# Weights of a round as a slow twin finds them, from (t, easiness, losses, likeliest class).


def smooth_twin(t, easy, losses, likeliest):
    """Smooth(c=1), one example after the other."""
    return np.array([value / t + (1 - 1 / t) for value in easy])


def paced_twin(t, easy, losses, likeliest):
    """SelfPaced(start=0.37, growth=1.43): the best explained of every class; in the first round the easiest of all."""
    share = min(1.0, 0.37 * 1.43 ** (t - 1))
    hardness = -easy if losses is None else losses
    group = np.zeros(len(easy)) if losses is None else likeliest
    weights = np.zeros(len(easy))
    for name in set(group.tolist()):
        ranked = sorted(hardness[group == name].tolist())
        last = next(value for place, value in enumerate(ranked, 1) if place / len(ranked) >= share)
        for i in range(len(easy)):
            if group[i] == name and hardness[i] <= last:
                weights[i] = easy[i]
    return weights


def balanced_twin(posterior, weight):
    """Class weights that give every class the same total."""
    mass = [sum(weight[i] * posterior[i][k] for i in range(len(weight))) for k in range(len(posterior[0]))]
    return np.array([sum(mass) / len(mass) / one for one in mass])


def with_copies(seed, **kwargs):
    """A crowd in which four annotators are copies of a bad one."""
    X, labels, _ = clear_crowd(seed, **kwargs)
    rows, names = labels.to_matrix(), [*labels.annotators, *(f"copy {j}" for j in range(3))]
    return X, CrowdLabels.from_matrix(np.column_stack([rows, *[rows[:, 3]] * 3]), annotators=names)


class HeldCrowd:
    """A model of annotators whose crowd is the same in every round: the objective then never falls."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        return getattr(self.model, name)

    def __repr__(self):
        return f"HeldCrowd({self.model!r})"

    def crowd(self, counts, given=None):
        n_states, n_classes = counts.shape[1:]
        rows = np.full((n_classes, n_classes), 0.4 / n_classes) + 0.6 * np.eye(n_classes)
        return np.tile(rows, (n_states // n_classes, 1))


def odd_ids(longest):
    """Ids that are easily taken for one another, for numbers or for nothing, and one that is very long."""
    accents = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    return ["1", "01", "1.0", "1e0", *accents, "x" * longest, " 1", "1\n", "ﬁ", "\u202eid", "😀", "None", "nan"]
