"""Intervals of shares and differences against statsmodels, scipy, and what their definitions say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint, proportions_ztest

from monitor.metrics.interval import clopper_pearson_lower, clopper_pearson_upper, newcombe, two_proportion_z, wilson
from monitor.statistics.fixed_point import I64

SEEDS = range(3)
COUNTS = st.integers(1, 1 << 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def shares(seed: int, size: int = 200) -> tuple[I64, I64]:
    """Successes and trials, from one trial to many, with none and all of them successes among them."""
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 10 ** rng.integers(1, 6, size))
    successes = rng.binomial(trials, rng.choice([0.0, 0.003, 0.3, 0.5, 0.98, 1.0], size))
    return successes.astype(np.int64), trials.astype(np.int64)


def array(*values: int) -> I64:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("seed", SEEDS)
def test_wilson_and_clopper_pearson_are_statsmodels(seed: int) -> None:
    successes, trials = shares(seed)
    lower, upper = wilson(successes, trials)
    want_lower, want_upper = proportion_confint(successes, trials, method="wilson")
    np.testing.assert_allclose(lower, want_lower, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(upper, want_upper, rtol=1e-9, atol=1e-12)
    # The two-sided interval at 90 % has the one-sided bounds at 95 %.
    want_lower, want_upper = proportion_confint(successes, trials, alpha=0.1, method="beta")
    np.testing.assert_allclose(clopper_pearson_lower(successes, trials), np.nan_to_num(want_lower, nan=0.0), rtol=1e-9)
    np.testing.assert_allclose(clopper_pearson_upper(successes, trials), np.nan_to_num(want_upper, nan=1.0), rtol=1e-9)


def test_clopper_pearson_by_hand() -> None:
    # Without a failure in n trials the lower bound solves p^n = 0.05; one trial in two: 1 - (1 - p)^2 = 0.05.
    np.testing.assert_allclose(clopper_pearson_lower(array(5, 0, 1), array(5, 5, 2)), [0.05 ** (1 / 5), 0.0, 1 - math.sqrt(0.95)])
    np.testing.assert_allclose(clopper_pearson_upper(array(0, 5, 1), array(5, 5, 2)), [1 - 0.05 ** (1 / 5), 1.0, math.sqrt(0.95)])


@given(share=COUNTS)
def test_at_its_bound_the_count_has_probability_5_percent(share: tuple[int, int]) -> None:
    successes, trials = share
    lower = float(clopper_pearson_lower(array(successes), array(trials))[0])
    upper = float(clopper_pearson_upper(array(successes), array(trials))[0])
    assert lower <= successes / trials <= upper
    if successes > 0:
        assert stats.binom.sf(successes - 1, trials, lower) == pytest.approx(0.05, rel=1e-5)
    if successes < trials:
        assert stats.binom.cdf(successes, trials, upper) == pytest.approx(0.05, rel=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_newcombe_and_z_are_statsmodels(seed: int) -> None:
    successes, trials = shares(seed)
    others, other_trials = shares(seed + 100)
    lower, upper = newcombe(successes, trials, others, other_trials)
    z = two_proportion_z(successes, trials, others, other_trials)
    for row, counts in enumerate(zip(successes.tolist(), trials.tolist(), others.tolist(), other_trials.tolist(), strict=True)):
        want = confint_proportions_2indep(*counts, method="newcomb", compare="diff")
        assert (lower[row], upper[row]) == pytest.approx(want, rel=1e-9, abs=1e-12), counts
        k, n, other_k, other_n = counts
        if 0 < k + other_k < n + other_n:
            assert z[row] == pytest.approx(proportions_ztest([k, other_k], [n, other_n])[0], rel=1e-9), counts
        else:
            assert np.isnan(z[row]), counts


def test_newcombe_is_the_paper() -> None:
    # Newcombe 1998, table II, method 10: 56/70 - 48/80, 9/10 - 3/10, 10/10 - 0/10.
    lower, upper = newcombe(array(56, 9, 10), array(70, 10, 10), array(48, 3, 0), array(80, 10, 10))
    np.testing.assert_allclose(lower, [0.0524, 0.1705, 0.6075], atol=5e-5)
    np.testing.assert_allclose(upper, [0.3339, 0.8090, 1.0000], atol=5e-5)


@given(share=COUNTS, other=COUNTS)
def test_a_difference_turned_round_is_negated(share: tuple[int, int], other: tuple[int, int]) -> None:
    one, two = [array(count) for count in share], [array(count) for count in other]
    lower, upper = newcombe(*one, *two)
    turned_lower, turned_upper = newcombe(*two, *one)
    difference = share[0] / share[1] - other[0] / other[1]
    assert -1 <= lower <= difference <= upper <= 1
    np.testing.assert_allclose([lower, upper], [-turned_upper, -turned_lower], atol=1e-15)
    z = two_proportion_z(*one, *two)
    np.testing.assert_allclose(z, -two_proportion_z(*two, *one), rtol=1e-15)
    assert np.isnan(z) or np.sign(z) == np.sign(share[0] * other[1] - other[0] * share[1])


def test_without_a_trial_nothing_is_defined() -> None:
    none, some = array(0), array(7)
    assert np.isnan([clopper_pearson_lower(none, none), clopper_pearson_upper(none, none)]).all()
    for counts in ((none, none, array(3), some), (array(3), some, none, none), (none, none, none, none)):
        assert np.isnan(newcombe(*counts)).all()
        assert np.isnan(two_proportion_z(*counts)).all()
