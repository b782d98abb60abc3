"""The exact binomial p-value, Holm's correction, against exact rationals, scipy, statsmodels and enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from monitor.metrics.exact import binomial_p, holm, largest, smallest
from monitor.statistics.fixed_point import F64, I64

ONE = 1 << 32
SEEDS = range(3)


def array(*values: int) -> I64:
    return np.array(values, dtype=np.int64)


def exact_p(n: int, k: int, claimed: int) -> float:
    """The definition in integers: twice the tail of Binomial(n, C/n) that the theorem reaches."""
    if ONE * (k - 1) < claimed < ONE * (k + 1):
        return 1.0
    share = Fraction(claimed, n * ONE)
    hit, miss = share.numerator, share.denominator - share.numerator
    counts = range(k + 1) if claimed >= ONE * (k + 1) else range(k, n + 1)
    tail = sum(math.comb(n, x) * hit**x * miss ** (n - x) for x in counts)
    return min(1.0, float(2 * tail / share.denominator**n))


@pytest.mark.parametrize("seed", SEEDS)
def test_binomial_p_is_the_exact_rational(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 60, 200)
    k = rng.integers(0, n + 1)
    # Sums of claims, some of them whole numbers one off the count, where the theorem begins to reach.
    claimed = np.where(rng.random(200) < 0.4, np.clip(k + rng.choice([-1, 0, 1], 200), 0, n) * ONE, rng.integers(0, n * ONE + 1))
    found = binomial_p(n, k, claimed)
    for row in zip(n.tolist(), k.tolist(), claimed.tolist(), found.tolist(), strict=True):
        assert row[3] == pytest.approx(exact_p(*row[:3]), rel=1e-11, abs=5e-324), row


def test_tiny_tails_keep_their_relative_precision() -> None:
    n, k, claimed = array(2453, 1000, 2000), array(2141, 999, 1700), array(2418 * ONE, 600 * ONE, 1960 * ONE)
    found = binomial_p(n, k, claimed)
    for row in zip(n.tolist(), k.tolist(), claimed.tolist(), found.tolist(), strict=True):
        assert row[3] == pytest.approx(exact_p(*row[:3]), rel=1e-9, abs=0), row
    assert found[0] < 1e-180
    assert found[1] < 1e-215


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_claims_give_twice_a_one_sided_binomial_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 10_000, 100)
    claim = rng.integers(0, 1 << 10, 100) / (1 << 10)
    k = rng.binomial(n, np.clip(claim + rng.normal(0, 0.02, 100), 0, 1))
    found = binomial_p(n, k, (n * claim * ONE).astype(np.int64))
    for row in zip(n.tolist(), k.tolist(), claim.tolist(), found.tolist(), strict=True):
        trials, successes, probability, p = row
        if abs(successes - trials * probability) < 1:
            assert p == 1.0, row
        else:
            below = successes < trials * probability
            test = stats.binomtest(successes, trials, probability, "less" if below else "greater")
            assert p == pytest.approx(min(1.0, 2 * test.pvalue), rel=1e-9), row


@given(claims=st.lists(st.integers(0, 8), min_size=1, max_size=8))
def test_never_below_the_truth_of_unequal_claims(claims: list[int]) -> None:
    """Under the claims themselves, p is at most alpha with probability at most alpha, for every alpha: counted out."""
    of_count = [Fraction(0)] * (len(claims) + 1)
    for outcome in product([0, 1], repeat=len(claims)):
        weights = [Fraction(claim if hit else 8 - claim, 8) for claim, hit in zip(claims, outcome, strict=True)]
        of_count[sum(outcome)] += math.prod(weights)
    counts = np.arange(len(claims) + 1)
    p = binomial_p(np.full(len(counts), len(claims)), counts, np.full(len(counts), sum(claims) * ONE // 8))
    for alpha in p.tolist():
        assert float(sum(of_count[count] for count in counts if p[count] <= alpha)) <= alpha * (1 + 1e-12) + 1e-15


def test_certain_claims_that_fail_have_p_0_and_empty_bins_none() -> None:
    np.testing.assert_array_equal(
        binomial_p(array(0, 5, 5, 5, 5), array(0, 4, 5, 1, 0), array(0, 5 * ONE, 5 * ONE, 0, 0)), [np.nan, 0, 1, 0, 1]
    )


def test_billions_of_events_neither_overflow_nor_warn() -> None:
    n = 1 << 30
    p = binomial_p(array(n, n, n), array(n // 2, n // 2 - 40_000, 0), array(n * (ONE // 2), n * (ONE // 2), n * ONE))
    assert p[0] == 1
    assert p[1] == pytest.approx(2 * stats.norm.cdf(-39_999.5 / math.sqrt(n / 4)), rel=1e-3)
    assert p[2] == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_holm_is_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ties, absent = rng.random((2, 10, 12)) < 0.3
    p = np.where(absent, np.nan, np.where(ties, 0.01, rng.random((10, 12)) ** 6))
    p[0] = np.nan
    found = holm(p)
    assert np.array_equal(np.isnan(found), np.isnan(p))
    for row, adjusted in zip(p[1:], found[1:], strict=True):
        taking_part = ~np.isnan(row)
        np.testing.assert_allclose(adjusted[taking_part], multipletests(row[taking_part], method="holm")[1], rtol=1e-12)


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, np.nan, 0.6])), [0.04, 0.09, 0.09, np.nan, 0.6])
    np.testing.assert_array_equal(holm(np.array([[1e-300, 1e-300], [0.9, 0.8]])), [[2e-300, 2e-300], [1.0, 1.0]])


@given(p=st.lists(st.one_of(st.floats(0, 1), st.just(math.nan)), min_size=1, max_size=9), order=st.randoms(use_true_random=False))
def test_holm_does_not_depend_on_the_order_and_keeps_it(p: list[float], order: object) -> None:
    values = np.array(p)
    shuffled = np.array(order.sample(range(len(p)), len(p)))  # type: ignore[attr-defined]
    adjusted = holm(values)
    np.testing.assert_array_equal(holm(values[shuffled]), adjusted[shuffled])
    defined = ~np.isnan(values)
    assert (adjusted[defined] >= values[defined]).all()
    assert (np.diff(adjusted[defined][np.argsort(values[defined], kind="stable")]) >= 0).all()


def test_extremes_pass_over_what_is_absent() -> None:
    values: F64 = np.array([[np.nan, 0.5, -2.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(smallest(values), [-2.0, np.nan])
    np.testing.assert_array_equal(largest(values), [0.5, np.nan])
    np.testing.assert_array_equal(smallest(np.empty((2, 0))), [np.nan, np.nan])
