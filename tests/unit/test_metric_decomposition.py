"""The parts of the Brier score, and squared calibration errors, against raw events and by counting out all outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from monitor.metrics import debiased, decomposition
from monitor.metrics.score import brier
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import F64, I64
from tests.doubles.raw_sums import Events, RawSums

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]
SEEDS = range(4)
PARTS = (
    decomposition.brier_reliability,
    decomposition.brier_resolution,
    decomposition.brier_uncertainty,
    decomposition.brier_within_bin_variance,
    decomposition.brier_within_bin_covariance,
    decomposition.brier_generalized_resolution,
)
SQUARED = (debiased.ece_squared, debiased.ece_l2, debiased.ece_squared_floor, debiased.ece_squared_debiased)
CONFIDENCES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.9, 1 - 2**-53]))
EVENTS = st.lists(st.tuples(CONFIDENCES, st.booleans()), min_size=1, max_size=40)


def one(confidences: Sequence[float], correct: Sequence[bool]) -> RawSums:
    return RawSums([(np.array(confidences, dtype=np.float64), np.array(correct, dtype=np.bool_))], EDGES)


def events(seed: int, size: int) -> Events:
    rng = np.random.default_rng(seed)
    confidences = np.where(rng.random(size) < 0.3, rng.choice([0.0, 1.0, 0.5, 0.25, 0.8], size), rng.random(size))
    return confidences, rng.random(size) < confidences**1.5


def binned(c: F64, y: F64) -> list[tuple[F64, F64]]:
    place = np.minimum((c * 4).astype(np.int64), 3)
    return [(c[place == b], y[place == b]) for b in range(4) if (place == b).any()]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [1, 2, 7, 100, 3000])
def test_against_raw_events(seed: int, size: int) -> None:
    c, correct = events(seed, size)
    y = correct.astype(np.float64)
    sums = one(c.tolist(), correct.tolist())
    n, share = len(c), y.mean()
    cells = binned(c, y)
    want = [
        math.fsum(len(p) / n * (p.mean() - hit.mean()) ** 2 for p, hit in cells),
        math.fsum(len(hit) / n * (hit.mean() - share) ** 2 for _, hit in cells),
        share * (1 - share),
        math.fsum(((p - p.mean()) ** 2).sum() for p, _ in cells) / n,
        math.fsum(((p - p.mean()) * (hit - hit.mean())).sum() for p, hit in cells) / n,
    ]
    got = [float(part(sums)[0]) for part in PARTS]
    assert got[:5] == pytest.approx(want, abs=1e-9)
    assert got[5] == pytest.approx(want[1] - want[3] + 2 * want[4], abs=1e-9)
    assert got[0] - got[5] + got[2] == pytest.approx(brier_score_loss(correct, c, pos_label=True), abs=1e-9)

    large = [(p, hit) for p, hit in cells if len(p) >= 2]
    noise = [(p.mean() - hit.mean()) ** 2 - hit.var(ddof=1) / len(p) for p, hit in large]
    want = [
        want[0],
        math.sqrt(want[0]),
        math.fsum((p * (1 - p)).sum() / len(p) for p, _ in cells) / n,
        math.fsum(len(p) / n * term for (p, _), term in zip(large, noise, strict=True)),
    ]
    assert [float(part(sums)[0]) for part in SQUARED] == pytest.approx(want, abs=1e-9)
    assert debiased.ece_squared_debiased_skipped(sums).tolist() == [len(cells) - len(large)]


@given(raw=EVENTS)
@example(raw=[(1.0, False)])
@example(raw=[(0.0, True), (0.0, True)])
def test_the_parts_add_up_to_the_brier_score(raw: list[tuple[float, bool]]) -> None:
    """An identity of the stored sums themselves: fixed point takes nothing away from it."""
    sums = one([c for c, _ in raw], [y for _, y in raw])
    reliability, resolution, uncertainty, variance, covariance, generalized = (float(part(sums)[0]) for part in PARTS)
    total = float(brier(sums)[0])
    assert reliability - resolution + uncertainty + variance - 2 * covariance == pytest.approx(total, abs=1e-14)
    assert reliability - generalized + uncertainty == pytest.approx(total, abs=1e-14)
    assert 0 <= reliability <= 1
    assert 0 <= resolution <= uncertainty + 1e-15
    assert uncertainty <= 0.25
    assert variance >= -(2.0**-31)
    assert debiased.ece_squared_debiased(sums)[0] <= reliability


def mean_over_outcomes(function: Callable[[Sums], F64 | I64], confidences: Sequence[float]) -> float:
    """Expected value of a metric, were each event correct with its confidence."""
    outcomes = list(product([False, True], repeat=len(confidences)))
    c = np.array(confidences)
    values = function(RawSums([(c, np.array(outcome)) for outcome in outcomes], EDGES))
    return math.fsum(value * math.prod(np.where(outcome, c, 1 - c)) for value, outcome in zip(values.tolist(), outcomes, strict=True))


@pytest.mark.parametrize("confidences", [[0.3], [0.1, 0.2, 0.4, 0.45, 0.6, 0.9], [0.0, 0.3, 0.3, 0.49, 1.0], [0.7] * 7])
def test_the_floor_is_the_exact_expectation(confidences: list[float]) -> None:
    floor = float(debiased.ece_squared_floor(one(confidences, [True] * len(confidences)))[0])
    assert mean_over_outcomes(debiased.ece_squared, confidences) == pytest.approx(floor, abs=1e-9)


@pytest.mark.parametrize("confidences", [[0.3, 0.3], [0.1, 0.1, 0.1, 0.6, 0.6, 0.8], [0.7] * 8])
def test_debiased_is_0_on_average_where_a_bin_has_one_confidence(confidences: list[float]) -> None:
    assert mean_over_outcomes(debiased.ece_squared_debiased, confidences) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_skill_is_what_is_saved_of_the_base_rates_score(seed: int) -> None:
    c, correct = events(seed, 400)
    base = brier_score_loss(correct, np.full(400, correct.mean()))
    saved = 1 - brier_score_loss(correct, c) / base
    assert decomposition.brier_skill(one(c.tolist(), correct.tolist()))[0] == pytest.approx(saved, abs=1e-9)
    assert math.isnan(decomposition.brier_skill(one([0.9, 0.8], [True, True]))[0])


def test_nothing_is_defined_without_an_event() -> None:
    empty = one([], [])
    for function in (*PARTS, *SQUARED):
        assert np.isnan(function(empty)).all(), function
    assert debiased.ece_squared_debiased_skipped(empty).tolist() == [0]
    assert debiased.ece_squared_debiased(one([0.3, 0.8], [True, True])).tolist() == [0.0]


def test_resolution_of_a_billion_events_does_not_overflow() -> None:
    sums, many = one([0.1, 0.9, 0.9, 0.9], [False, True, True, True]), one([0.1, 0.9, 0.9, 0.9], [False, True, True, True])
    for name in ("labelled", "correct", "confidence", "confidence_square", "correct_confidence"):
        many.bins(name)[:] <<= 28
    for function in (*PARTS, debiased.ece_squared):
        assert function(many) == pytest.approx(function(sums), abs=1e-9), function
