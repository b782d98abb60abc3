"""Tests of calibration against raw events, scipy, and perfect models."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from monitor.metrics import significance
from monitor.metrics.exact import binomial_p
from monitor.statistics.fixed_point import F64
from tests.doubles.raw_sums import Events, RawSums

EDGES = [k / 15 for k in range(16)]
SEEDS = range(4)


def events(seed: int, size: int) -> Events:
    """Over-confident events with ties, with confidences on edges, and 0 and 1."""
    rng = np.random.default_rng(seed)
    special = rng.choice([0.0, 1.0, 0.5, 0.8, 1 / 3, 0.6], size)
    confidences = np.where(rng.random(size) < 0.3, special, rng.beta(4, 1.5, size))
    return confidences, rng.random(size) < confidences**1.3


def series(seed: int) -> list[Events]:
    return [events(seed * 100 + size, size) for size in (1, 2, 5, 40, 300, 3000)]


def one(confidences: Sequence[float], correct: Sequence[bool], edges: Sequence[float] = EDGES) -> RawSums:
    return RawSums([(np.array(confidences, dtype=np.float64), np.array(correct, dtype=np.bool_))], edges)


def raw_chi2(confidences: F64, correct: F64) -> tuple[float, int]:
    """As the words say: bins from the top, a group is full at variance 5, the rest joins the last group."""
    groups: list[list[float]] = []
    gap = variance = 0.0
    for low, high in zip(reversed(EDGES[:-1]), reversed(EDGES[1:]), strict=True):
        inside = (confidences >= low) & ((confidences < high) | (high == 1))
        gap += math.fsum(confidences[inside] - correct[inside])
        variance += math.fsum(confidences[inside] * (1 - confidences[inside]))
        if variance >= 5:
            groups.append([gap, variance])
            gap = variance = 0.0
    if not groups:
        groups.append([0.0, 0.0])
    groups[-1] = [groups[-1][0] + gap, groups[-1][1] + variance]
    return math.fsum(gap * gap / variance for gap, variance in groups), len(groups)


@pytest.mark.parametrize("seed", SEEDS)
def test_against_raw_events(seed: int) -> None:
    many = series(seed)
    sums = RawSums(many, EDGES)
    z, spiegelhalter = significance.overconfidence_z(sums), significance.spiegelhalter_z(sums)
    chi2, df, p = significance.chi2(sums), significance.chi2_df(sums), significance.chi2_p(sums)
    for row, (c, correct) in enumerate(many):
        y = correct.astype(np.float64)
        variance = math.fsum(c * (1 - c))
        if variance == 0:
            assert np.isnan([z[row], spiegelhalter[row], chi2[row], df[row], p[row]]).all()
            continue
        assert z[row] == pytest.approx(math.fsum(c - y) / math.sqrt(variance), rel=1e-7, abs=1e-7)
        known = math.fsum((1 - 2 * c) ** 2 * c * (1 - c))
        if known > 1e-6:
            assert spiegelhalter[row] == pytest.approx(math.fsum((y - c) * (1 - 2 * c)) / math.sqrt(known), rel=1e-6, abs=1e-6)
        else:
            assert np.isnan(spiegelhalter[row])
        want, groups = raw_chi2(c, y)
        assert (chi2[row], df[row]) == (pytest.approx(want, rel=1e-7, abs=1e-7), groups)
        assert p[row] == pytest.approx(stats.chi2.sf(want, groups), rel=1e-5)
    assert np.nanmax(df) > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_bins_have_exact_p_values_and_holm_counts_those_that_hold_an_event(seed: int) -> None:
    sums = RawSums(series(seed), EDGES)
    p, adjusted = significance.bin_p(sums), significance.bin_p_holm(sums)
    empty = sums.bins("labelled") == 0
    assert np.array_equal(np.isnan(p), empty)
    assert np.array_equal(np.isnan(adjusted), empty)
    np.testing.assert_array_equal(p, binomial_p(sums.bins("labelled"), sums.bins("correct"), sums.bins("confidence")))
    smallest = np.nanmin(p, axis=1)
    np.testing.assert_allclose(np.nanmin(adjusted, axis=1), np.minimum(1, smallest * (~empty).sum(axis=1)))
    np.testing.assert_array_equal(significance.bin_p_holm_min(sums), np.nanmin(adjusted, axis=1))


def test_chi2_by_hand() -> None:
    # 25 events of 0.9 (V 2.25), 25 of 0.5 (V 6.25), 8 of 0.3 (V 1.68): the top two bins are one group, the rest joins it.
    sums = one([0.9] * 25 + [0.5] * 25 + [0.3] * 8, [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15 + [False] * 8)
    assert significance.chi2_df(sums).tolist() == [1]
    assert significance.chi2(sums)[0] == pytest.approx((2.5 + 2.5 + 2.4) ** 2 / (2.25 + 6.25 + 1.68))
    # 30 events of 0.7 (V 6.3) and 25 of 0.5 (V 6.25) are a group each, 8 of 0.3 join the lower one.
    sums = one([0.7] * 30 + [0.5] * 25 + [0.3] * 8, [True] * 20 + [False] * 10 + [True] * 10 + [False] * 15 + [False] * 8)
    assert significance.chi2_df(sums).tolist() == [2]
    assert significance.chi2(sums)[0] == pytest.approx(1 / 6.3 + (2.5 + 2.4) ** 2 / (6.25 + 1.68))
    # Variance 5 is enough: 20 events of 0.5.
    assert significance.chi2_df(one([0.75] * 80 + [0.5] * 20, [True] * 100)).tolist() == [2]


def test_undefined() -> None:
    functions = (
        significance.overconfidence_z,
        significance.spiegelhalter_z,
        significance.chi2,
        significance.chi2_df,
        significance.chi2_p,
    )
    for sums in (one([], []), one([0.0, 1.0, 1.0], [False, True, False])):
        for function in functions:
            assert np.isnan(function(sums)).all(), function
    assert np.isnan(significance.bin_p_holm_min(one([], []))).all()
    assert significance.bin_p_holm_min(one([1.0, 1.0], [True, False])).tolist() == [0.0]
    assert significance.bin_p_holm_min(one([1.0, 1.0], [True, True])).tolist() == [1.0]


def test_what_rounding_makes_of_no_variance_is_no_z() -> None:
    # All but 0.5 in the last place, and so near to 1 that 32 bits do not show it.
    for confidence in (0.5 + 1e-10, 0.5 - 3e-10, 1 - 1e-11, 1e-11):
        assert np.isnan(significance.spiegelhalter_z(one([confidence] * 1000, [True, False] * 500))).all(), confidence
    assert np.isfinite(significance.spiegelhalter_z(one([0.501] * 1000, [True, False] * 500))).all()


def test_sums_of_a_billion_events_do_not_overflow() -> None:
    for confidence, correct in ((0.25, True), (1.0, False), (0.75, False), (0.0, True)):
        few = one([confidence, 0.3], [correct, True])
        many = one([confidence, 0.3], [correct, True])
        factor = 1 << 29
        for name in ("labelled", "correct", "confidence", "confidence_square", "correct_confidence"):
            many.bins(name)[:] *= factor
        for name in ("confidence_cube", "confidence_fourth"):
            many.count(name)[:] *= factor
        for function in (significance.overconfidence_z, significance.spiegelhalter_z):
            assert function(many)[0] == pytest.approx(function(few)[0] * math.sqrt(factor), rel=1e-12), (function, confidence)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_perfect_model_is_rejected_about_as_often_as_said(seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidences = rng.beta(3, 1, (1000, 400))
    sums = RawSums(list(zip(confidences, rng.random(confidences.shape) < confidences, strict=True)), EDGES)
    z = stats.norm.ppf(0.975)
    # 5 % of 1000 has a standard deviation of 0.7 %.
    for values in (significance.overconfidence_z(sums), significance.spiegelhalter_z(sums)):
        assert 0.028 < np.mean(np.abs(values) > z) < 0.075
    assert 0.028 < np.mean(significance.chi2_p(sums) < 0.05) < 0.08
    assert np.mean(significance.bin_p_holm_min(sums) < 0.05) < 0.07
