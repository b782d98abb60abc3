"""AURC and the risk-coverage curve, against raw events in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.metrics.risk_coverage import aurc, harmonic_difference, risk_coverage_curve
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index, equal_edges, graded_edges
from tests.doubles.binned import arrays, spans

EDGES = {"graded": graded_edges(32), "fifteen": equal_edges(15), "two": equal_edges(2), "one": equal_edges(1)}
CONFIDENCES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.501, 0.5011, 0.9, 1.0]))
EVENTS = st.lists(st.tuples(CONFIDENCES, st.booleans()), min_size=1, max_size=40)


def raw_aurc(confidences: F64, wrong: I64) -> float:
    """Event by event: the mean risk of the k most confident; events of one confidence get their mean error each."""
    errors, risks, accepted = Fraction(0), Fraction(0), 0
    for confidence in sorted(set(confidences.tolist()), reverse=True):
        here = wrong[confidences == confidence]
        for _ in here:
            accepted += 1
            errors += Fraction(int(here.sum()), len(here))
            risks += errors / accepted
    return float(risks / accepted)


def counts(edges: F64, confidences: F64, wrong: I64) -> tuple[I64, I64]:
    place = bin_index(edges, confidences)
    size = len(edges) - 1
    return np.bincount(place, minlength=size), np.bincount(place[wrong == 1], minlength=size)


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
@example(events=[(0.1, True), (0.2, False)], edges="one")
@example(events=[(0.1, False), (0.2, True)], edges="one")
def test_the_bound_of_aurc_holds(events: list[tuple[float, bool]], edges: str) -> None:
    confidences, wrong = arrays(events)
    n, errors = counts(EDGES[edges], confidences, wrong)
    tied, _, _ = spans(EDGES[edges], confidences)
    value, bound = aurc(n[None], errors[None], tied)
    assert abs(value[0] - raw_aurc(confidences, wrong)) <= bound[0] + 1e-12


@given(events=EVENTS)
def test_aurc_is_exact_where_every_bin_is_one_confidence(events: list[tuple[float, bool]]) -> None:
    confidences, wrong = arrays(events)
    n, errors = counts(np.append(np.unique(confidences), 2.0), confidences, wrong)
    value, bound = aurc(n[None], errors[None], np.ones(len(n), dtype=np.bool_))
    assert value[0] == pytest.approx(raw_aurc(confidences, wrong), abs=1e-12)
    assert bound[0] == 0


def test_the_bound_is_reached() -> None:
    """Ten errors of twenty in one bin: first, they give the worst curve; last, the best; even, the value."""
    order = np.linspace(0.1, 0.9, 20)
    value, bound = aurc(np.array([[20]]), np.array([[10]]), np.array([False]))
    assert value == pytest.approx([0.5])
    worst = raw_aurc(order, (order > 0.5).astype(np.int64))
    best = raw_aurc(order, (order < 0.5).astype(np.int64))
    assert bound[0] == pytest.approx(max(worst - 0.5, 0.5 - best), abs=1e-12)


@given(bins=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5).filter(lambda bins: any(map(any, bins))))
def test_the_bound_is_no_wider_than_the_worst_and_the_best_order(bins: list[tuple[int, int]]) -> None:
    best: list[int] = []
    worst: list[int] = []
    for right, wrong in bins:  # ascending: the errors of a bin last are those with the lowest confidences
        best += [1] * wrong + [0] * right
        worst += [0] * right + [1] * wrong
    order = np.arange(len(best), dtype=np.float64)
    n, errors = np.array([[right + wrong for right, wrong in bins]]), np.array([[wrong for _, wrong in bins]])
    value, bound = aurc(n, errors, np.zeros(len(bins), dtype=np.bool_))
    ends = raw_aurc(order, np.array(worst)) - value[0], value[0] - raw_aurc(order, np.array(best))
    assert bound[0] == pytest.approx(max(ends), abs=1e-12)


def test_the_band_of_a_bin_by_hand() -> None:
    """Above: four events, one wrong. In the bin ten, two wrong: 1 of 12 if its errors come last, 3 of 6 if they come first."""
    curve = risk_coverage_curve(np.array([10, 4]), np.array([2, 1]), np.array([False, True]), np.array([0.0, 0.9]), np.array([0.5, 0.9]))
    assert curve.risk == pytest.approx([1 / 4, 3 / 14])
    assert curve.risk_lower == pytest.approx([1 / 4, 1 / 12])
    assert curve.risk_upper == pytest.approx([1 / 4, 3 / 6])
    assert curve.threshold_bound.tolist() == [0.0, 0.5]


def test_example_7_of_the_source() -> None:
    confidences, wrong = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([0, 1, 0, 1, 0])
    grid = graded_edges(32)
    n, errors = counts(grid, confidences, wrong)
    tied, lowest, highest = spans(grid, confidences)
    value, bound = aurc(n[None], errors[None], tied)
    assert value[0] == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2 + 2 / 5) / 5, abs=1e-12)
    assert bound[0] == 0
    curve = risk_coverage_curve(n, errors, tied, lowest, highest)
    assert curve.threshold.tolist() == confidences.tolist()
    assert curve.coverage == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert curve.risk == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2, 2 / 5])
    assert curve.risk_lower.tolist() == curve.risk_upper.tolist() == curve.risk.tolist()
    assert curve.threshold_bound.tolist() == [0.0] * 5


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
def test_every_raw_threshold_lies_in_its_bin_s_band(events: list[tuple[float, bool]], edges: str) -> None:
    confidences, wrong = arrays(events)
    n, errors = counts(EDGES[edges], confidences, wrong)
    tied, lowest, highest = spans(EDGES[edges], confidences)
    curve = risk_coverage_curve(n, errors, tied, lowest, highest)
    points = dict(zip(np.flatnonzero(n)[::-1].tolist(), range(len(curve.risk)), strict=True))
    for threshold in confidences.tolist():
        point = points[int(bin_index(EDGES[edges], np.array([threshold]))[0])]
        risk = wrong[confidences >= threshold].mean()
        assert curve.risk_lower[point] - 1e-12 <= risk <= curve.risk_upper[point] + 1e-12
        assert 0 <= threshold - curve.threshold[point] <= curve.threshold_bound[point]
    for threshold, coverage, risk in zip(curve.threshold, curve.coverage, curve.risk, strict=True):
        accepted = confidences >= threshold
        assert (accepted.mean(), wrong[accepted].mean()) == pytest.approx((coverage, risk))


def test_nothing_is_undefined() -> None:
    nothing = np.zeros(3, dtype=np.int64)
    tied, edge = np.zeros(3, dtype=np.bool_), np.array([0.0, 0.5, 0.7])
    assert np.isnan(aurc(np.stack((nothing, nothing)), np.stack((nothing, nothing)), tied)).all()
    assert risk_coverage_curve(nothing, nothing, tied, edge, edge).risk.shape == (0,)


def test_a_single_kind_of_outcome_is_exact_in_any_bin() -> None:
    n = np.array([[3, 5, 0], [3, 5, 0]])
    value, bound = aurc(n, np.array([[0, 0, 0], [3, 5, 0]]), np.zeros(3, dtype=np.bool_))
    assert value == pytest.approx([0, 1], abs=1e-15)
    assert bound == pytest.approx([0, 0], abs=1e-15)


@pytest.mark.parametrize(
    ("start", "length"), [(0, 0), (0, 1), (0, 5000), (998, 7), (999, 1), (1000, 1), (1001, 2000), (10**6, 10**4), (10**9, 999)]
)
def test_harmonic_difference(start: int, length: int) -> None:
    found = harmonic_difference(np.array([float(start)]), np.array([float(length)]))[0]
    expected = math.fsum(1 / (start + k) for k in range(1, length + 1))
    assert found == pytest.approx(expected, rel=1e-15 if start >= 1000 else 0, abs=0 if start >= 1000 else 1e-14)


def test_a_billion_events() -> None:
    """The same shares at a large scale: the sum over events becomes an integral, known in closed form.

    The most confident half has 1 % errors, the rest 3 %: risk at coverage x > 1/2 is 0.03 - 0.01/x.
    """
    half = 500_000_000
    value, _ = aurc(np.array([[half, half]]), np.array([[half * 3 // 100, half // 100]]), np.ones(2, dtype=np.bool_))
    assert value[0] == pytest.approx(0.5 * 0.01 + 0.5 * 0.03 - 0.01 * math.log(2), abs=1e-10)
