import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.em import Shared
from crowdwise.em.confusion import pooled
from crowdwise.em.posterior import Annotators


def test_unknown_annotators_and_those_without_labels_answer_as_the_crowd_does(rng):
    confusion, crowd = rng.dirichlet(np.ones(3), size=(2, 3)), rng.dirichlet(np.ones(3), size=3)
    annotators = Annotators(confusion, crowd).among(np.array([True, False, True]))
    assert_array_equal(annotators.confusion[[0, 2]], confusion)
    assert np.isnan(annotators.confusion[1]).all()
    wanted = annotators.at(np.array([2, -1, 1, 0]))
    assert_array_equal(wanted.confusion, np.stack([confusion[1], crowd, crowd, confusion[0]]))
    assert_array_equal(wanted.crowd, crowd)


def test_where_all_take_part_nothing_is_copied(rng):
    annotators = Annotators(rng.dirichlet(np.ones(2), size=(3, 2)), np.eye(2))
    assert annotators.among(np.ones(3, dtype=bool)) is annotators


def test_matrices_of_labels_leave_abstentions_out():
    answers = Annotators(np.array([[[0.4, 0.1, 0.5], [0.1, 0.8, 0.1]]]), np.full((2, 3), 1 / 3))
    assert answers.has_abstentions
    assert_allclose(answers.labels[0], [[0.8, 0.2], [1 / 9, 8 / 9]])
    plain = Annotators(np.eye(2)[np.newaxis], np.eye(2))
    assert not plain.has_abstentions
    assert plain.labels is plain.confusion


def test_annotators_of_counts_have_the_models_matrices(rng):
    counts = rng.gamma(1.0, 3.0, size=(4, 3, 3))
    found = Annotators.of_counts(counts, Shared(2.0), np.ones(len(counts)))
    assert_array_equal(found.crowd, pooled(counts))
    assert_array_equal(found.confusion, Shared(2.0).estimate(counts, found.crowd))
