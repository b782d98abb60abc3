"""DeLong's standard error from a histogram, against the placements of raw scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from monitor.metrics.delong import auc_standard_error
from monitor.statistics.fixed_point import F64


def raw_delong(positives: F64, negatives: F64) -> float:
    """From the matrix of all pairs, with the sample variances of the method's paper."""
    above = (positives[:, None] > negatives[None, :]) + (positives[:, None] == negatives[None, :]) / 2
    return math.sqrt(above.mean(axis=1).var(ddof=1) / len(positives) + above.mean(axis=0).var(ddof=1) / len(negatives))


@pytest.mark.parametrize("seed", range(10))
def test_equals_the_raw_placements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(2, 60))
    positives = rng.binomial(kinds - 1, 0.6, int(rng.integers(2, 300)))
    negatives = rng.binomial(kinds - 1, 0.4, int(rng.integers(2, 300)))
    found = auc_standard_error(np.bincount(positives, minlength=kinds)[None], np.bincount(negatives, minlength=kinds)[None])
    assert found == pytest.approx([raw_delong(positives.astype(np.float64), negatives.astype(np.float64))], abs=1e-12), seed


def test_by_hand() -> None:
    # Positives score 2, 3 and negatives 1, 2: placements 3/4, 1 of positives and 1, 3/4 of negatives; each variance is 1/32.
    found = auc_standard_error(np.array([[0, 1, 1]]), np.array([[1, 1, 0]]))
    assert found == pytest.approx([math.sqrt(1 / 32 / 2 + 1 / 32 / 2)])


def test_it_is_how_far_the_auc_scatters() -> None:
    seed = 7
    rng = np.random.default_rng(seed)
    size = 1500
    positives = rng.multinomial(120, [0.1, 0.2, 0.3, 0.4], size)
    negatives = rng.multinomial(80, [0.3, 0.3, 0.2, 0.2], size)
    below = np.cumsum(negatives, axis=1) - negatives / 2
    scatter = ((positives * below).sum(axis=1) / (120 * 80)).std()
    assert auc_standard_error(positives, negatives).mean() == pytest.approx(scatter, rel=0.07), seed


def test_undefined_below_two_of_a_class() -> None:
    two, one, none = np.array([[1, 1]]), np.array([[1, 0]]), np.array([[0, 0]])
    for positives, negatives in ((one, two), (two, one), (none, two), (two, none), (none, none)):
        assert np.isnan(auc_standard_error(positives, negatives)).all()
    assert auc_standard_error(np.array([[0, 3]]), np.array([[2, 0]])) == pytest.approx([0.0])


def test_many_events_do_not_overflow() -> None:
    few, many = np.array([[1, 2, 3]]), np.array([[1, 2, 3]]) * (1 << 27)
    other_few, other_many = np.array([[3, 2, 1]]), np.array([[3, 2, 1]]) * (1 << 27)
    expected = raw_delong(np.array([1.0, 2, 2, 3, 3, 3]), np.array([1.0, 1, 1, 2, 2, 3])) ** 2 * 5  # variances of six, not of a sample
    assert auc_standard_error(few, other_few) ** 2 * 5 == pytest.approx([expected])
    assert auc_standard_error(many, other_many) ** 2 * (6 * (1 << 27) - 1) == pytest.approx([expected])
