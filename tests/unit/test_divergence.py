"""Drift of histograms, against scipy, against raw values and by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from monitor.metrics.divergence import jensen_shannon, ks_lower, ks_p, ks_upper, psi, psi_floor, psi_p
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index, equal_edges

ALL = (psi, psi_floor, psi_p, jensen_shannon, ks_lower, ks_upper, ks_p)
COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=12).filter(
    lambda pairs: any(a for a, _ in pairs) and any(b for _, b in pairs)
)


def columns(pairs: list[tuple[int, int]]) -> tuple[I64, I64]:
    return np.array([[a for a, _ in pairs]]), np.array([[b for _, b in pairs]])


def binned(values: F64, bins: int) -> I64:
    return np.bincount(bin_index(equal_edges(bins), values), minlength=bins)[None]


@given(pairs=COUNTS)
def test_psi_is_its_definition(pairs: list[tuple[int, int]]) -> None:
    n, m, size = sum(a for a, _ in pairs), sum(b for _, b in pairs), len(pairs)
    want = 0.0
    for a, b in pairs:
        p, q = Fraction(2 * a + 1, 2 * n + size), Fraction(2 * b + 1, 2 * m + size)
        want += float(p - q) * (math.log(p) - math.log(q))
    assert psi(*columns(pairs)) == pytest.approx([want], abs=1e-12)
    noise = Fraction(1, n) + Fraction(1, m)
    assert psi_floor(*columns(pairs)) == pytest.approx([float((size - 1) * noise)], rel=1e-14)
    assert psi_p(*columns(pairs)) == pytest.approx([stats.chi2.sf(want / float(noise), size - 1)], abs=1e-9)


@given(pairs=COUNTS)
def test_jensen_shannon_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    current, reference = columns(pairs)
    want = jensenshannon(current[0], reference[0], base=2) ** 2
    assert jensen_shannon(current, reference) == pytest.approx([want], abs=1e-12)


@given(
    current=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    reference=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    bins=st.sampled_from([1, 2, 5, 40]),
)
def test_ks_brackets_the_statistic_of_raw_values(current: list[float], reference: list[float], bins: int) -> None:
    first, second = np.array(current), np.array(reference)
    raw = max(abs((first <= x).mean() - (second <= x).mean()) for x in (*current, *reference))
    histograms = binned(first, bins), binned(second, bins)
    lower, upper = ks_lower(*histograms)[0], ks_upper(*histograms)[0]
    assert lower - 1e-12 <= raw <= upper + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_ks_equals_scipy_where_every_bin_is_one_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 12, 300), rng.integers(0, 11, 200)
    histograms = np.bincount(first, minlength=12)[None], np.bincount(second, minlength=12)[None]
    want = stats.ks_2samp(first, second).statistic
    assert ks_lower(*histograms) == pytest.approx([want], abs=1e-12), seed
    assert ks_p(*histograms) == pytest.approx([stats.kstwobign.sf(want * math.sqrt(300 * 200 / 500))], abs=1e-12), seed


def test_ks_upper_is_reached() -> None:
    """In one bin, all of one side may come before the other: 1. In two bins that differ by 1/4: 3/4 + 1/2 - 1/2 at most."""
    assert ks_upper(np.array([[4]]), np.array([[4]])) == pytest.approx([1.0])
    assert ks_upper(np.array([[3, 1]]), np.array([[2, 2]])) == pytest.approx([0.75])


def test_two_histograms_by_hand() -> None:
    current, reference = np.array([10, 20, 30, 0, 40]), np.array([25, 25, 25, 5, 20])
    shares = [(10.5, 25.5), (20.5, 25.5), (30.5, 25.5), (0.5, 5.5), (40.5, 20.5)]
    assert psi(current, reference) == pytest.approx(sum((a - b) / 102.5 * math.log(a / b) for a, b in shares), abs=1e-12)
    assert psi_floor(current, reference) == pytest.approx(0.08, abs=1e-15)
    assert ks_lower(current, reference) == pytest.approx(0.2)
    assert ks_upper(current, reference) == pytest.approx(0.45)  # third bin: 0.2 behind at its left edge, 0.25 of the reference in it
    assert ks_p(current, reference) == pytest.approx(0.03663105270711945, abs=1e-12)  # golden case p27


def test_extremes() -> None:
    same, left, right = np.array([5, 5]), np.array([7, 0]), np.array([0, 9])
    assert [float(function(same, same)) for function in (jensen_shannon, psi, ks_lower, ks_p, psi_p)] == [0, 0, 0, 1, 1]
    assert [float(function(left, right)) for function in (jensen_shannon, ks_lower, ks_upper)] == [1, 1, 1]


def test_undefined_without_events_on_either_side() -> None:
    some, none = np.array([[1, 2], [1, 2], [0, 0]]), np.array([[0, 0], [3, 1], [0, 0]])
    for function in ALL:
        assert np.isnan(function(some, none)).tolist() == [True, False, True], function


def test_one_reference_for_many_series() -> None:
    current, reference = np.array([[1, 2, 3], [4, 5, 6]]), np.array([3, 3, 1])
    for function in ALL:
        assert function(current, reference).tolist() == [float(function(row, reference)) for row in current], function


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p_values_without_drift(seed: int) -> None:
    """The PSI test has its size and its floor is its mean; the KS test on bins is conservative."""
    rng = np.random.default_rng(seed)
    shares = [0.1, 0.2, 0.3, 0.25, 0.15]
    current, reference = rng.multinomial(600, shares, 4000), rng.multinomial(900, shares, 4000)
    assert (psi_p(current, reference) <= 0.05).mean() == pytest.approx(0.05, abs=0.014), seed
    assert psi(current, reference).mean() == pytest.approx(psi_floor(current, reference)[0], rel=0.05), seed
    assert (ks_p(current, reference) <= 0.05).mean() <= 0.05, seed
