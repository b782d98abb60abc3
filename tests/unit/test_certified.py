"""Certified thresholds: against the procedure on raw events, and by simulation that the certificate holds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from monitor.metrics.certified import STARTS, CertifiedThreshold, binomial_cdf, certified_threshold, choose_threshold
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import equal_edges, graded_edges


def raw_choice(confidences: F64, correct: I64, thresholds: list[float], max_risk: float, delta: float) -> float | None:
    """The procedure in its own words, on raw events."""
    passed = []
    fewest = math.ceil(math.log(delta / 4) / math.log(1 - max_risk))
    for start in range(4):
        eligible = [t for t in thresholds if (confidences >= t).sum() >= fewest * 2**start]
        for threshold in sorted(eligible, reverse=True):
            accepted = confidences >= threshold
            if stats.binom.cdf((1 - correct)[accepted].sum(), accepted.sum(), max_risk) > delta / 4:
                break
            passed.append(threshold)
    return min(passed, default=None)


def plug_in(confidences: F64, correct: I64, thresholds: F64, max_risk: float) -> float | None:
    """What people do without a certificate: the lowest threshold whose empirical risk is small enough."""
    good = [t for t in thresholds.tolist() if (confidences >= t).any() and (1 - correct)[confidences >= t].mean() <= max_risk]
    return min(good, default=None)


@pytest.mark.parametrize("seed", range(30))
def test_equals_the_procedure_on_raw_events(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 3000))
    confidences = rng.random(size).round(int(rng.integers(1, 4)))
    correct = (rng.random(size) < confidences ** rng.choice([0.2, 0.5, 1.0])).astype(np.int64)
    max_risk, delta = float(rng.choice([0.05, 0.2, 0.4])), float(rng.choice([0.05, 0.2]))
    for edges in (graded_edges(32), equal_edges(10)):
        found = choose_threshold(confidences, correct, max_risk, delta, edges)
        assert (found and found.threshold) == raw_choice(confidences, correct, edges[:-1].tolist(), max_risk, delta), seed
        if found is not None:
            accepted = confidences >= found.threshold
            assert (found.accepted, found.errors) == (accepted.sum(), (1 - correct)[accepted].sum())
            assert (found.coverage, found.risk) == pytest.approx((accepted.mean(), 1 - correct[accepted].mean()))
    assert choose_threshold(confidences, correct, max_risk, delta) == choose_threshold(
        confidences, correct, max_risk, delta, graded_edges(32)
    )


def test_by_hand() -> None:
    """At risk 1/2 and delta 4/16 each sequence tests at 1/16; four events without an error are the fewest that pass.

    From the top 4 of 4 right: p = 1/16 passes. Then 5 with one error: p = 6/32 fails. The second sequence starts at 8 events: with one
    error p = 9/256 passes; then 12 with five errors fail. The third and fourth start at 16 and 32 events: there are not so many.
    """
    events, errors = np.array([4, 3, 1, 4]), np.array([4, 0, 1, 0])
    edges = np.array([0.0, 0.25, 0.5, 0.75])
    found = certified_threshold(events, errors, edges, 0.5, 0.25)
    assert found == CertifiedThreshold(threshold=0.25, accepted=8, errors=1, coverage=8 / 12, risk=1 / 8)
    only_first = certified_threshold(np.array([3, 1, 4]), np.array([3, 1, 0]), edges[1:], 0.5, 0.25)
    assert only_first == CertifiedThreshold(threshold=0.75, accepted=4, errors=0, coverage=0.5, risk=0.0)


def test_nothing_can_be_certified() -> None:
    edges = np.array([0.0, 0.5])
    assert certified_threshold(np.array([0, 0]), np.array([0, 0]), edges, 0.05, 0.05) is None
    assert certified_threshold(np.array([0, 1]), np.array([0, 0]), edges, 0.05, 0.05) is None
    fewest = math.ceil(math.log(0.05 / STARTS) / math.log(0.95))
    assert certified_threshold(np.array([0, fewest - 1]), np.array([0, 0]), edges, 0.05, 0.05) is None
    found = certified_threshold(np.array([0, fewest]), np.array([0, 0]), edges, 0.05, 0.05)
    assert found is not None
    assert found.threshold == 0.0  # no event separates the two: whoever passes at one passes at the other


@pytest.mark.parametrize(("max_risk", "delta"), [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, 1.0), (math.nan, 0.1), (0.1, math.nan)])
def test_limits_out_of_range_are_refused(max_risk: float, delta: float) -> None:
    with pytest.raises(ValueError, match="in \\(0, 1\\)"):
        certified_threshold(np.array([5]), np.array([0]), np.array([0.0]), max_risk, delta)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_certificate_holds_and_the_plug_in_choice_does_not(seed: int) -> None:
    """Uniform confidences, accuracy 1 - (1-c)/2: the true risk above t is (1-t)/4, so 10 % at t = 0.6."""
    rng = np.random.default_rng(seed)
    sets, size, max_risk, delta = 300, 2000, 0.1, 0.1
    thresholds = equal_edges(200)
    certified, plugged, coverage = 0, 0, 0.0
    for _ in range(sets):
        confidences = rng.random(size)
        correct = (rng.random(size) < 1 - (1 - confidences) / 2).astype(np.int64)
        found = choose_threshold(confidences, correct, max_risk, delta, thresholds)
        if found is not None:
            certified += (1 - found.threshold) / 4 > max_risk
            coverage += found.coverage / sets
        empirical = plug_in(confidences, correct, thresholds[:-1], max_risk)
        plugged += empirical is not None and (1 - empirical) / 4 > max_risk
    assert certified <= stats.binom.ppf(0.999, sets, delta), seed
    assert plugged > 0.3 * sets, seed
    assert 0.2 < coverage < 0.4, seed  # it certifies something: 0.4 is ideal


def test_binomial_cdf_equals_fractions_and_scipy() -> None:
    for trials in (1, 2, 7, 30):
        for successes in range(trials + 1):
            exact = sum(math.comb(trials, k) * Fraction(1, 20) ** k * Fraction(19, 20) ** (trials - k) for k in range(successes + 1))
            found = binomial_cdf(np.array([successes]), np.array([trials]), 0.05)
            assert found == pytest.approx([float(exact)], rel=1e-12)
    seed = 5
    rng = np.random.default_rng(seed)
    trials_at_random = rng.integers(1, 1 << 30, 200)
    near = np.clip(rng.normal(trials_at_random * 0.05, np.sqrt(trials_at_random * 0.05)), 0, trials_at_random).astype(np.int64)
    found = binomial_cdf(near, trials_at_random, 0.05)
    assert found == pytest.approx(stats.binom.cdf(near, trials_at_random, 0.05), rel=1e-9), seed
    assert binomial_cdf(np.array([0, 5]), np.array([0, 5]), 0.05).tolist() == [1.0, 1.0]
