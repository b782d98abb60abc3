"""Accuracy without labels: by hand, in fractions, and by simulation with and without a change of the map."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.metrics.label_free import accuracy_map, cbpe, label_free_accuracy, label_free_auc
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import equal_edges, graded_edges

COUNTS = st.one_of(st.integers(0, 2), st.integers(0, 30))
BINS = st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=10)


def arrays(bins: list[tuple[int, int, int]]) -> tuple[I64, I64, I64]:
    """Labelled, correct and unlabelled events, shape (1, n_bins), from (correct, wrong, unlabelled)."""
    right, wrong, unlabelled = (np.array([[row[column] for row in bins]]) for column in range(3))
    return right + wrong, right, unlabelled


def test_by_hand() -> None:
    """Maps 3.5/5 and 1/2 (nothing known); three and one unlabelled events."""
    found = label_free_accuracy(np.array([[4, 0]]), np.array([[3, 0]]), np.array([[3, 1]]))
    assert accuracy_map(np.array([4, 0]), np.array([3, 0])).tolist() == [0.7, 0.5]
    assert found.estimate == pytest.approx([(3 * 0.7 + 0.5) / 4])
    outcomes, own_map = (3 * 0.21 + 0.25) / 16, (9 * 0.21 / 5 + 0.25 / 1) / 16
    assert found.sd == pytest.approx([math.sqrt(outcomes + own_map)])
    assert found.unsupported_share.tolist() == [0.25]


@given(bins=BINS)
def test_equals_fractions(bins: list[tuple[int, int, int]]) -> None:
    total = sum(row[2] for row in bins)
    estimate, variance, unsupported = Fraction(0), Fraction(0), Fraction(0)
    for right, wrong, unlabelled in bins:
        share = Fraction(2 * right + 1, 2 * (right + wrong) + 2)
        if total:
            estimate += unlabelled * share / total
            variance += unlabelled * share * (1 - share) / total**2
            variance += Fraction(unlabelled, total) ** 2 * share * (1 - share) / (right + wrong + 1)
            unsupported += Fraction(unlabelled * (right + wrong == 0), total)
    found = label_free_accuracy(*arrays(bins))
    wanted = [float(estimate), math.sqrt(variance), float(unsupported)] if total else [math.nan] * 3
    np.testing.assert_allclose([found.estimate[0], found.sd[0], found.unsupported_share[0]], wanted, rtol=1e-12, atol=1e-15)


@given(bins=BINS)
def test_auc_equals_counted_pairs(bins: list[tuple[int, int, int]]) -> None:
    """Every unlabelled event is a positive of weight m and a negative of weight 1 - m."""
    shares = [(Fraction(2 * right + 1, 2 * (right + wrong) + 2), unlabelled) for right, wrong, unlabelled in bins]
    pairs, right_order, inside = Fraction(0), Fraction(0), Fraction(0)
    for high, (first, count) in enumerate(shares):
        for low, (second, other) in enumerate(shares):
            weight = count * first * other * (1 - second)
            pairs += weight
            right_order += weight * (Fraction(high > low) + Fraction(high == low, 2))
            inside += weight * (high == low)
    for tied in (False, True):
        value, bound = label_free_auc(*arrays(bins), np.full(len(bins), tied))
        if pairs:
            assert value == pytest.approx([float(right_order / pairs)], abs=1e-12)
            assert bound == pytest.approx([0.0 if tied else float(inside / pairs / 2)], abs=1e-12)
        else:
            assert np.isnan([value, bound]).all()


def coverage(seed: int, before: float, after: float, shape: float) -> tuple[float, float]:
    """Share of 400 pairs of windows whose true accuracy is within 1.96 sd; and the mean error.

    Accuracy at confidence c is c^before in the labelled window and c^after in the next; confidences are Beta(3, 2) in the labelled one and
    Beta(shape, 2) in the next.
    """
    rng = np.random.default_rng(seed)
    inside, error = 0, 0.0
    for _ in range(400):
        known: F64 = rng.beta(3, 2, 1500)
        coming: F64 = rng.beta(shape, 2, 1500)
        found = cbpe(known, (rng.random(1500) < known**before).astype(np.int64), coming, equal_edges(30))
        truth = (rng.random(1500) < coming**after).mean()
        inside += abs(found.estimate[0] - truth) <= 1.96 * found.sd[0]
        error += float(found.estimate[0] - truth) / 400
    return inside / 400, error


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_the_interval_covers_while_the_map_holds(seed: int) -> None:
    same, error = coverage(seed, before=1.5, after=1.5, shape=3)
    assert 0.92 <= same <= 0.99, seed
    assert abs(error) < 0.005, seed
    shifted, _ = coverage(seed, before=1.5, after=1.5, shape=4)
    assert 0.90 <= shifted <= 0.99, seed


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_after_concept_drift_it_is_wrong_and_cannot_know(seed: int) -> None:
    inside, error = coverage(seed, before=1.5, after=3.0, shape=3)
    assert inside <= 0.01, seed
    assert error > 0.1, seed


def test_raw_events_on_the_default_grid() -> None:
    """Confidences of 3/4 share a bin, whatever the grid; 1/4 is another bin."""
    found = cbpe(np.array([0.75] * 4), np.array([1, 1, 0, 1]), np.array([0.75] * 3 + [0.25]))
    assert (found.estimate.tolist(), found.unsupported_share.tolist()) == ([pytest.approx((3 * 0.7 + 0.5) / 4)], [0.25])
    seed = 3
    rng = np.random.default_rng(seed)
    known, coming = rng.random(300), rng.random(200)
    right = (rng.random(300) < known).astype(np.int64)
    assert cbpe(known, right, coming) == cbpe(known, right, coming, graded_edges(8)), seed


def test_nothing_is_undefined_and_nothing_known_is_one_half() -> None:
    none, some = np.zeros((1, 3), dtype=np.int64), np.array([[1, 2, 3]])
    empty = label_free_accuracy(some, none, none)
    assert np.isnan([empty.estimate, empty.sd, empty.unsupported_share]).all()
    unknown = label_free_accuracy(none, none, some)
    assert (unknown.estimate.tolist(), unknown.unsupported_share.tolist()) == ([0.5], [1.0])
