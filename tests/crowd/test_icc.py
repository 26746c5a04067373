"""Intraclass correlations: published values, an ANOVA written out, and chance."""

from __future__ import annotations

import numpy as np
import pytest

from crowdwise import CrowdLabels
from crowdwise.crowd.coefficients import Estimate
from crowdwise.crowd.icc import intraclass_correlations

# Six targets and four judges: Shrout and Fleiss (1979), table 2; forms in table 4.
PUBLISHED = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)


def forms(matrix: np.ndarray) -> dict[str, Estimate]:
    labels = CrowdLabels.from_matrix(matrix, scale="interval")
    return intraclass_correlations(labels, labels.values)


def test_published_values() -> None:
    values = {name: round(form.value, 2) for name, form in forms(PUBLISHED).items()}
    assert values == {
        "ICC(1,1)": 0.17,
        "ICC(2,1)": 0.29,
        "ICC(3,1)": 0.71,
        "ICC(1,k)": 0.44,
        "ICC(2,k)": 0.62,
        "ICC(3,k)": 0.91,
    }


def test_offsets_count_in_the_second_form_and_not_in_the_third() -> None:
    shifted = PUBLISHED + np.array([0, 0, 30, 0])
    assert forms(shifted)["ICC(3,1)"].value == pytest.approx(forms(PUBLISHED)["ICC(3,1)"].value)
    assert forms(shifted)["ICC(2,1)"].value < 0.05


def test_missing_ratings_leave_the_one_way_form() -> None:
    matrix = PUBLISHED.copy()
    matrix[np.arange(6), [0, 1, 2, 3, 0, 1]] = np.nan
    assert list(forms(matrix)) == ["ICC(1,1)", "ICC(1,k)"]
    matrix[:, 3] = np.nan
    matrix[0] = [1.0, np.nan, np.nan, np.nan]
    few = forms(matrix)["ICC(1,1)"]
    rows = [row[~np.isnan(row)] for row in matrix if (~np.isnan(row)).sum() > 1]
    sizes = np.array([len(row) for row in rows])
    mean = np.concatenate(rows).mean()
    between = sum(len(row) * (row.mean() - mean) ** 2 for row in rows) / (len(rows) - 1)
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / (sizes.sum() - len(rows))
    k = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(rows) - 1)
    assert few.value == pytest.approx((between - within) / (between + (k - 1) * within))


def test_intervals_cover() -> None:
    """19 in 20 within what 400 draws can show; the true correlation is 1 / (1 + .5 + 1) or 1 / 2."""
    rng = np.random.default_rng(0)
    truth = {"ICC(1,1)": 1 / 2.5, "ICC(2,1)": 1 / 2.5, "ICC(3,1)": 1 / 2}
    covered = dict.fromkeys(truth, 0)
    for _ in range(400):
        independent = rng.normal(size=(30, 1)) + np.sqrt(1.5) * rng.normal(size=(30, 5))
        crossed = rng.normal(size=(30, 1)) + np.sqrt(0.5) * rng.normal(size=5) + rng.normal(size=(30, 5))
        found = {"ICC(1,1)": forms(independent)["ICC(1,1)"]} | {
            name: form for name, form in forms(crossed).items() if name in ("ICC(2,1)", "ICC(3,1)")
        }
        for name, form in found.items():
            covered[name] += form.low <= truth[name] <= form.high
    assert {name: 0.92 < number / 400 < 0.98 for name, number in covered.items()} == dict.fromkeys(truth, True), covered


def test_perfect_and_undefined() -> None:
    same = np.repeat(np.arange(5.0)[:, np.newaxis], 3, axis=1)
    assert forms(same)["ICC(1,1)"].value == 1.0
    assert np.isnan(forms(np.full((5, 3), 2.0))["ICC(1,1)"].value)
    assert forms(np.array([[1.0, 2.0]])) == {}
