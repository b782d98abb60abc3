"""Differences between versions against statsmodels, raw events, a bootstrap, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from monitor.metrics.calibration import accuracy, overconfidence
from monitor.metrics.comparison import (
    Difference,
    accuracy_difference,
    overconfidence_difference,
    rejection_rate_difference,
    selective_risk_difference,
)
from monitor.metrics.sums import Sums
from tests.doubles.raw_sums import Events, RawSums

EDGES = [0.0, 0.5, 0.9, 1.0]
SEEDS = range(3)


def events(rng: np.random.Generator, size: int, exponent: float) -> Events:
    confidences = rng.beta(5, 1, size)
    return confidences, rng.random(size) < confidences**exponent


def fields(found: Difference, row: int = 0) -> list[float]:
    return [float(values[row]) for values in (found.value, found.lower, found.upper, found.z)]


def shares(hits: int, trials: int, other_hits: int, other_trials: int) -> list[float]:
    interval = confint_proportions_2indep(hits, trials, other_hits, other_trials, method="newcomb", compare="diff")
    z = proportions_ztest([hits, other_hits], [trials, other_trials])[0]
    return [hits / trials - other_hits / other_trials, *interval, z]


def decisions(decided: int, accepted: int, labelled: int, errors: int) -> RawSums:
    counts = {"decided": decided, "accepted": accepted, "labelled_accepted": labelled, "labelled_accepted_errors": errors}
    return RawSums([], EDGES, {name: np.array([count], dtype=np.int64) for name, count in counts.items()})


@pytest.mark.parametrize("seed", SEEDS)
def test_accuracy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    new, old = ([events(rng, size, 1.4) for size in sizes] for sizes in ((50, 700, 3000), (400, 30, 3000)))
    found = accuracy_difference(RawSums(new, EDGES), RawSums(old, EDGES))
    for row, ((_, y), (_, other)) in enumerate(zip(new, old, strict=True)):
        assert fields(found, row) == pytest.approx(shares(y.sum(), len(y), other.sum(), len(other)), rel=1e-9)


def test_risk_and_rejection_count_what_their_metrics_count() -> None:
    new, old = decisions(500, 420, 300, 24), decisions(900, 800, 610, 31)
    assert fields(selective_risk_difference(new, old)) == pytest.approx(shares(24, 300, 31, 610), rel=1e-9)
    assert fields(rejection_rate_difference(new, old)) == pytest.approx(shares(80, 500, 100, 900), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_overconfidence_against_raw_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Over-confident enough that what was seen varies more than the confidences claim.
    new, old = events(rng, 800, 4), events(rng, 300, 3)
    sums, previous = RawSums([new], EDGES), RawSums([old], EDGES)
    gaps = [c - y for c, y in (new, old)]
    difference = gaps[0].mean() - gaps[1].mean()
    sd = math.sqrt(sum(gap.var(ddof=1) / len(gap) for gap in gaps))
    for gap, (c, _) in zip(gaps, (new, old), strict=True):
        assert gap.var(ddof=1) > (c * (1 - c)).mean()
    want = [difference, difference - 1.959964 * sd, difference + 1.959964 * sd, difference / sd]
    found = fields(overconfidence_difference(sums, previous))
    assert found == pytest.approx(want, rel=1e-6)

    resampled = [gap[rng.integers(0, len(gap), (4000, len(gap)))].mean(axis=1) for gap in gaps]
    width = 2 * 1.959964 * sd
    assert found[1:3] == pytest.approx(np.quantile(resampled[0] - resampled[1], [0.025, 0.975]), abs=0.05 * width)


def test_overconfidence_of_a_run_without_an_error_is_not_certain() -> None:
    # Ten events of 0.9, all right: nothing was seen to vary, but 0.9 claims 0.09 of variance.
    confident = (np.full(10, 0.9), np.ones(10, dtype=np.bool_))
    mixed = (np.full(1000, 0.5), np.arange(1000) % 2 == 0)
    found = fields(overconfidence_difference(RawSums([confident], EDGES), RawSums([mixed], EDGES)))
    sd = math.sqrt(0.09 / 10 + 0.25 * 1000 / 999 / 1000)
    assert found == pytest.approx([-0.1, -0.1 - 1.959964 * sd, -0.1 + 1.959964 * sd, -0.1 / sd], rel=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("size", "exponents"), [(40, (1.0, 1.0)), (40, (0.3, 1.0)), (300, (2.0, 1.0)), (60, (3.0, 3.0))])
def test_the_interval_holds_the_truth(seed: int, size: int, exponents: tuple[float, float]) -> None:
    """In 2000 pairs of small samples at least 93 % of the intervals hold the true difference."""
    rng = np.random.default_rng(seed)
    new, old = ([events(rng, size, exponent) for _ in range(2000)] for exponent in exponents)
    found = overconfidence_difference(RawSums(new, EDGES), RawSums(old, EDGES))
    # E c^a = 5/(5 + a) where c is Beta(5, 1).
    truth = 5 / (5 + exponents[1]) - 5 / (5 + exponents[0])
    assert np.mean((found.lower <= truth) & (truth <= found.upper)) >= 0.93, seed


def test_a_difference_turned_round_is_negated() -> None:
    rng = np.random.default_rng(5)
    new, old = RawSums([events(rng, 90, 2)], EDGES), RawSums([events(rng, 40, 1)], EDGES)
    for function, metric in ((accuracy_difference, accuracy), (overconfidence_difference, overconfidence)):
        found, turned = function(new, old), function(old, new)
        assert fields(found) == pytest.approx([-turned.value[0], -turned.upper[0], -turned.lower[0], -turned.z[0]])
        assert found.value[0] == metric(new)[0] - metric(old)[0]


def test_undefined() -> None:
    rng = np.random.default_rng(6)
    nothing: Events = (np.empty(0), np.empty(0, dtype=np.bool_))
    some, single = events(rng, 50, 1), (np.array([0.7]), np.array([True]))
    certain = (np.ones(5), np.ones(5, dtype=np.bool_))

    def sums(one: Events) -> Sums:
        return RawSums([one], EDGES)

    for new, old in ((nothing, some), (some, nothing), (nothing, nothing)):
        for function in (accuracy_difference, overconfidence_difference):
            assert np.isnan(fields(function(sums(new), sums(old)))).all()
    for unknown in (single, certain):
        value, *rest = fields(overconfidence_difference(sums(unknown), sums(some)))
        assert np.isfinite(value)
        assert np.isnan(rest).all()
    empty = decisions(0, 0, 0, 0)
    assert np.isnan(fields(selective_risk_difference(empty, decisions(500, 420, 300, 24)))).all()
    assert np.isnan(fields(rejection_rate_difference(decisions(500, 420, 300, 24), empty))).all()
