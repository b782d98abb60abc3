"""AUC from histograms: against scikit-learn, against counted pairs, and its bound against what the bins cannot see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from monitor.metrics.rank import auc, auc_calibration_gain
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index, equal_edges, graded_edges

EDGES = {"graded": graded_edges(32), "fifteen": equal_edges(15), "two": equal_edges(2), "one": equal_edges(1)}
SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.501, 0.5011, 0.9, 1.0]))
EVENTS = st.lists(st.tuples(SCORES, st.booleans(), st.integers(0, 1 << 32)), min_size=1, max_size=40)


def histogram(edges: F64, scores: F64, weights: I64) -> I64:
    """Integer weights per bin, shape (1, n_bins)."""
    found = np.zeros((1, len(edges) - 1), dtype=np.int64)
    np.add.at(found[0], bin_index(edges, scores), weights)
    return found


def counted(scores: F64, positive: I64, weights: I64) -> float:
    """Pairs in the right order, ties as one half, over all pairs; NaN without a pair."""
    right, pairs = Fraction(0), Fraction(0)
    for high, first in zip(scores[positive == 1].tolist(), weights[positive == 1].tolist(), strict=True):
        for low, second in zip(scores[positive == 0].tolist(), weights[positive == 0].tolist(), strict=True):
            pairs += first * second
            right += first * second * (Fraction(high > low) + Fraction(high == low) / 2)
    return float(right / pairs) if pairs else np.nan


def tied_bins(edges: F64, scores: F64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Bins in which no two scores differ."""
    place = bin_index(edges, scores)
    return np.array([len(set(scores[place == number].tolist())) <= 1 for number in range(len(edges) - 1)])


@pytest.mark.parametrize("seed", range(8))
def test_equals_scikit_learn_where_every_bin_is_one_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 30, 400) / 29
    positive = (rng.random(400) < scores).astype(np.int64)
    confidence = np.maximum(scores, 1 - scores)
    edges = np.append(np.unique(scores), 2.0)
    tied = np.ones(len(edges) - 1, dtype=np.bool_)
    weights = np.rint(confidence * 2**32).astype(np.int64)
    ones = np.ones(400, dtype=np.int64)
    plain = auc(histogram(edges, scores, positive), histogram(edges, scores, 1 - positive), tied)
    weighted = auc(histogram(edges, scores, weights * positive), histogram(edges, scores, weights * (1 - positive)), tied)
    gain = auc_calibration_gain(plain, weighted)
    want, want_weighted = roc_auc_score(positive, scores), roc_auc_score(positive, scores, sample_weight=weights)
    assert plain[0] == pytest.approx([want], abs=1e-12), seed
    assert plain[0] == pytest.approx([counted(scores, positive, ones)], abs=1e-12), seed
    assert weighted[0] == pytest.approx([want_weighted], abs=1e-12), seed
    assert gain[0] == pytest.approx([want_weighted - want], abs=1e-12), seed
    assert [plain[1], weighted[1], gain[1]] == [0.0, 0.0, 0.0]


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
@example(events=[(0.1, False, 1), (0.2, True, 1)], edges="one")
@example(events=[(0.1, True, 1), (0.2, False, 1 << 32)], edges="one")
def test_the_bound_holds(events: list[tuple[float, bool, int]], edges: str) -> None:
    grid = EDGES[edges]
    scores, positive, weights = np.array([e[0] for e in events]), np.array([int(e[1]) for e in events]), np.array([e[2] for e in events])
    tied = tied_bins(grid, scores)
    estimates = []
    for weight in (np.ones(len(events), dtype=np.int64), weights):
        value, bound = auc(histogram(grid, scores, weight * positive), histogram(grid, scores, weight * (1 - positive)), tied)
        want = counted(scores, positive, weight)
        if np.isnan(want):
            assert np.isnan([value, bound]).all()
        else:
            assert abs(value[0] - want) <= bound[0] + 1e-12
        estimates.append((value, bound, want))
    gain, bound = auc_calibration_gain(estimates[0][:2], estimates[1][:2])
    if not np.isnan(gain[0]):
        assert abs(gain[0] - (estimates[1][2] - estimates[0][2])) <= bound[0] + 1e-12


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
def test_the_bound_is_nothing_where_bins_are_tied(events: list[tuple[float, bool, int]], edges: str) -> None:
    grid = EDGES[edges]
    snapped = grid[bin_index(grid, np.array([e[0] for e in events]))]
    positive = np.array([int(e[1]) for e in events])
    tied = np.ones(len(grid) - 1, dtype=np.bool_)
    value, bound = auc(histogram(grid, snapped, positive), histogram(grid, snapped, 1 - positive), tied)
    want = counted(snapped, positive, np.ones(len(events), dtype=np.int64))
    np.testing.assert_allclose(value, [want], atol=1e-12)
    assert bound[0] == 0 or np.isnan(want)


def test_by_hand() -> None:
    positives, negatives = np.array([[1, 2, 3], [0, 0, 2], [1, 1, 1]]), np.array([[4, 1, 1], [3, 0, 0], [0, 0, 0]])
    value, bound = auc(positives, negatives, np.array([False, True, False]))
    # Row 0: 1*(4/2) + 2*(4 + 1/2) + 3*(5 + 1/2) = 27.5 of 36 pairs; untied pairs 1*4 + 3*1 = 7, of which half may be wrong.
    np.testing.assert_allclose(value, [27.5 / 36, 1.0, np.nan])
    np.testing.assert_allclose(bound, [3.5 / 36, 0.0, np.nan])


def test_sums_of_two_to_the_thirty_events_do_not_overflow() -> None:
    full = 1 << 62
    positives, negatives = np.array([[full // 4, full // 4, full // 2 - 1]]), np.array([[full // 2 - 1, full // 4, full // 4]])
    value, bound = auc(positives, negatives, np.zeros(3, dtype=np.bool_))
    rows = [(int(p), int(n)) for p, n in zip(positives[0], negatives[0], strict=True)]
    pairs = sum(p for p, _ in rows) * sum(n for _, n in rows)
    right = sum(p * (Fraction(n, 2) + sum(m for _, m in rows[:k])) for k, (p, n) in enumerate(rows))
    assert value[0] == pytest.approx(float(right / pairs), abs=1e-15)
    assert bound[0] == pytest.approx(float(Fraction(sum(p * n for p, n in rows), 2 * pairs)), abs=1e-15)


def test_undefined_without_both_classes() -> None:
    nothing, something = np.zeros((1, 4), dtype=np.int64), np.ones((1, 4), dtype=np.int64)
    tied = np.ones((1, 4), dtype=np.bool_)
    for positives, negatives in ((nothing, nothing), (something, nothing), (nothing, something)):
        assert np.isnan(auc(positives, negatives, tied)).all()
