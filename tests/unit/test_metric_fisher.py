"""Fisher's exact test against enumeration in integers, and scipy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from monitor.metrics.fisher import fisher_p
from monitor.statistics.fixed_point import I64

SEEDS = range(3)
SHARE = st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def exact_p(hits: int, trials: int, other_hits: int, other_trials: int) -> float:
    column = hits + other_hits
    tables = range(max(0, column - other_trials), min(trials, column) + 1)
    weights = {count: math.comb(trials, count) * math.comb(other_trials, column - count) for count in tables}
    return float(Fraction(sum(weight for weight in weights.values() if weight <= weights[hits]), sum(weights.values())))


def tables(seed: int, size: int, most: int) -> list[I64]:
    """Tables in the argument order of `fisher_p`: alike, somewhat and very different, with empty rows and columns among them."""
    rng = np.random.default_rng(seed)
    trials, other_trials = rng.integers(0, most, (2, size))
    rate = rng.choice([0.0, 0.05, 0.5, 0.93, 1.0], size)
    other_rate = np.clip(rate + rng.choice([0.0, 0.02, 0.3, -0.7], size), 0, 1)
    return [rng.binomial(trials, rate), trials, rng.binomial(other_trials, other_rate), other_trials]


def rows(counts: list[I64]) -> list[list[int]]:
    return [[int(count) for count in row] for row in zip(*counts, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("most", [4, 12, 60, 400])
def test_small_tables_by_enumeration(seed: int, most: int) -> None:
    counts = tables(seed, 150, most)
    for row, p in zip(rows(counts), fisher_p(*counts).tolist(), strict=True):
        if row[1] and row[3]:
            assert p == pytest.approx(exact_p(*row), rel=1e-11, abs=0), row
        else:
            assert math.isnan(p), row


@given(share=SHARE, other=SHARE)
@example(share=(20, 40), other=(20, 40))
@example(share=(3, 5), other=(3, 7))
def test_every_small_table(share: tuple[int, int], other: tuple[int, int]) -> None:
    p = float(fisher_p(*(np.array(count) for count in (*share, *other))))
    if share[1] and other[1]:
        assert p == pytest.approx(exact_p(*share, *other), rel=1e-11)
        turned = fisher_p(*(np.array(count) for count in (other[1] - other[0], other[1], share[1] - share[0], share[1])))
        assert p == pytest.approx(float(turned), rel=1e-11)
    else:
        assert math.isnan(p)


@pytest.mark.parametrize("seed", SEEDS)
def test_large_tables_are_scipy(seed: int) -> None:
    counts = tables(seed, 60, 30_000)
    for row, p in zip(rows(counts), fisher_p(*counts).tolist(), strict=True):
        hits, trials, other_hits, other_trials = row
        want = stats.fisher_exact(np.array([[hits, trials - hits], [other_hits, other_trials - other_hits]]))[1]
        assert p == pytest.approx(want, rel=1e-8, abs=5e-324), row


def test_tiny_p_values_keep_their_relative_precision() -> None:
    row = [800, 1000, 400, 2000]
    p = float(fisher_p(*(np.array(count) for count in row)))
    assert 0 < p < 1e-200
    assert p == pytest.approx(exact_p(*row), rel=1e-11, abs=0)


def test_billions_of_events_neither_overflow_nor_warn() -> None:
    n = 1 << 30
    hits = np.array([n // 3, n // 3, n // 3, n // 3, 0, n])
    others = np.array([n // 3, n // 3 + 1, n // 3 + 50_000, n // 2, 1, 0])
    p = fisher_p(hits, np.full(6, n), others, np.full(6, n))
    z = 49_999 / math.sqrt(2 * n * (1 / 3) * (2 / 3))
    assert p[:2] == pytest.approx(1.0, abs=1e-4)
    assert p[2] == pytest.approx(2 * stats.norm.sf(z), rel=1e-3)
    assert p[3:].tolist() == [0.0, 1.0, 0.0]


def test_any_shape() -> None:
    counts = tables(7, 24, 50)
    flat = fisher_p(*counts)
    shaped = fisher_p(*(count.reshape(2, 3, 4) for count in counts))
    np.testing.assert_array_equal(shaped, flat.reshape(2, 3, 4))
    assert fisher_p(*(count[:0] for count in counts)).shape == (0,)
