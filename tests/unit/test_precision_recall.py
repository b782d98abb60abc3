"""AUPR and FPR at 95 % TPR, against scikit-learn and against raw scores, with bounds for what the bins cannot see."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from monitor.metrics.precision_recall import acceptance_threshold, aupr_id, aupr_ood, average_precision, fpr_at_95tpr
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index, equal_edges, graded_edges
from tests.doubles.binned import arrays, spans

EDGES = {"graded": graded_edges(32), "fifteen": equal_edges(15), "two": equal_edges(2), "one": equal_edges(1)}
SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 0.501, 0.5011, 0.9, 1.0]))
EVENTS = st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=40)


def counts(edges: F64, scores: F64, is_id: I64) -> tuple[I64, I64]:
    """ID and OOD events per bin, shape (1, n_bins) each."""
    place = bin_index(edges, scores)
    size = len(edges) - 1
    return np.bincount(place[is_id == 1], minlength=size)[None], np.bincount(place[is_id == 0], minlength=size)[None]


def raw_average_precision(scores: F64, positive: I64) -> float:
    """For each positive, the precision at its own score; the mean."""
    return float(np.mean([positive[scores >= own].mean() for own in scores[positive == 1]]))


def raw_operating_point(scores: F64, is_id: I64) -> tuple[float, float]:
    """OOD acceptance at the highest ID score that accepts 95 % of ID, and that score."""
    good = [t for t in set(scores[is_id == 1].tolist()) if 20 * (scores[is_id == 1] >= t).sum() >= 19 * is_id.sum()]
    return float((scores[is_id == 0] >= max(good)).mean()), max(good)


@pytest.mark.parametrize("seed", range(8))
def test_equals_scikit_learn_where_every_bin_is_one_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=300).round(1)
    is_id = (rng.random(300) < 1 / (1 + np.exp(-2 * scores))).astype(np.int64)
    grid = np.append(np.unique(scores), 9.0)
    id_events, ood_events = counts(grid, scores, is_id)
    tied, lowest, highest = spans(grid, scores)
    assert tied.all()
    for found, want in (
        (aupr_id(id_events, ood_events, tied), average_precision_score(is_id, scores)),
        (aupr_ood(id_events, ood_events, tied), average_precision_score(1 - is_id, -scores)),
    ):
        assert found[0] == pytest.approx([want], abs=1e-12), seed
        assert found[1] == [0.0]
    point = fpr_at_95tpr(id_events, ood_events, tied, lowest, highest)
    rate, threshold = raw_operating_point(scores, is_id)
    assert astuple(point) == (pytest.approx([rate], abs=1e-15), [0.0], [threshold], [0.0]), seed


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
@example(events=[(0.1, False), (0.2, True), (0.3, True)], edges="one")
@example(events=[(0.1, True), (0.2, True), (0.3, False)], edges="one")
@example(events=[(0.1, True), (0.1, True), (0.05, False)], edges="one")
def test_the_bounds_hold(events: list[tuple[float, bool]], edges: str) -> None:
    grid = EDGES[edges]
    scores, is_id = arrays(events)
    id_events, ood_events = counts(grid, scores, is_id)
    tied, lowest, highest = spans(grid, scores)
    found = [*aupr_id(id_events, ood_events, tied), *aupr_ood(id_events, ood_events, tied)]
    point = fpr_at_95tpr(id_events, ood_events, tied, lowest, highest)
    if len(set(is_id.tolist())) < 2:
        assert np.isnan(found).all()
        assert np.isnan(astuple(point)).all()
        return
    assert abs(found[0][0] - raw_average_precision(scores, is_id)) <= found[1][0] + 1e-12
    assert abs(found[2][0] - raw_average_precision(-scores, 1 - is_id)) <= found[3][0] + 1e-12
    rate, threshold = raw_operating_point(scores, is_id)
    assert abs(point.false_acceptance[0] - rate) <= point.false_acceptance_bound[0] + 1e-12
    assert abs(point.threshold[0] - threshold) <= point.threshold_bound[0] + 1e-12


@given(events=EVENTS, edges=st.sampled_from(sorted(EDGES)))
def test_tied_bins_are_exact(events: list[tuple[float, bool]], edges: str) -> None:
    grid = EDGES[edges]
    scores, is_id = arrays(events)
    snapped = grid[bin_index(grid, scores)]
    if len(set(is_id.tolist())) < 2:
        return
    id_events, ood_events = counts(grid, snapped, is_id)
    tied = np.ones(len(grid) - 1, dtype=np.bool_)
    value, bound = aupr_id(id_events, ood_events, tied)
    assert (value[0], bound[0]) == (pytest.approx(average_precision_score(is_id, snapped), abs=1e-12), 0.0)
    value, bound = aupr_ood(id_events, ood_events, tied)
    assert (value[0], bound[0]) == (pytest.approx(average_precision_score(1 - is_id, -snapped), abs=1e-12), 0.0)
    point = fpr_at_95tpr(id_events, ood_events, tied, grid[:-1], grid[:-1])
    rate, threshold = raw_operating_point(snapped, is_id)
    assert astuple(point) == (pytest.approx([rate], abs=1e-15), [0.0], [threshold], [0.0])


def test_example_6_of_the_source() -> None:
    scores, is_id = np.array([0.9, 0.8, 0.7, 0.6, 0.65, 0.55, 0.4, 0.2]), np.array([1, 1, 1, 1, 0, 0, 0, 0])
    grid = equal_edges(20)
    id_events, ood_events = counts(grid, scores, is_id)
    tied, lowest, highest = spans(grid, scores)
    assert aupr_id(id_events, ood_events, tied)[0] == pytest.approx([(1 + 1 + 1 + 4 / 5) / 4])
    assert aupr_ood(id_events, ood_events, tied)[0] == pytest.approx([(1 + 1 + 1 + 4 / 5) / 4])
    point = fpr_at_95tpr(id_events, ood_events, tied, lowest, highest)
    assert [value.tolist() for value in astuple(point)] == [[0.25], [0.0], [0.6], [0.0]]


def test_the_ends_of_average_precision_are_reached() -> None:
    """Two positives and a negative in one bin: tied above it AP is 1, one by one below it (1/2 + 2/3)/2."""
    value, bound = average_precision(np.array([[2]]), np.array([[1]]), np.array([False]))
    assert value + bound == pytest.approx([1.0])
    assert value - bound == pytest.approx([(1 / 2 + 2 / 3) / 2])


def test_the_operating_point_inside_a_bin() -> None:
    """The 19th of 20 ID events is in the middle bin, with two of four OOD events that may be above or below it."""
    id_events, ood_events = np.array([[1, 9, 10], [0, 0, 0]]), np.array([[1, 2, 1], [1, 2, 1]])
    point = fpr_at_95tpr(id_events, ood_events, np.zeros(3, dtype=np.bool_), np.array([-4.0, -1.0, 2.0]), np.array([-1.0, 2.0, 9.0]))
    np.testing.assert_allclose(astuple(point), [[0.5, np.nan], [0.25, np.nan], [0.5, np.nan], [1.5, np.nan]])


@pytest.mark.parametrize("total", [20, 60, 140, 100, 19, 21, 10**9])
def test_the_wanted_share_is_met_with_no_event_to_spare(total: int) -> None:
    """One bin holds just enough, the next lower one the rest: the threshold is in the first; with one event less, in the second."""
    needed = -(-19 * total // 20)
    edges = np.array([0.0, 1.0])
    place, threshold, bound = acceptance_threshold(
        np.array([[total - needed, needed], [total - needed + 1, needed - 1]]), 0.95, edges, edges + 1
    )
    assert place.tolist() == [[1], [0]]
    assert (threshold.tolist(), bound.tolist()) == ([1.5, 0.5], [0.5, 0.5])


def test_thresholds_of_nothing_and_of_everything() -> None:
    events, edges = np.array([[0, 0, 0], [0, 3, 2]]), np.array([-1e308, 0.0, 1e308])
    place, threshold, bound = acceptance_threshold(events, 1.0, edges, edges)
    assert place.tolist() == [[0], [1]]
    np.testing.assert_array_equal([threshold, bound], [[np.nan, 0.0], [np.nan, 0.0]])


def test_many_events_do_not_overflow() -> None:
    size = 1 << 29
    value, bound = average_precision(np.array([[size, size]]), np.array([[size, size]]), np.array([True, True]))
    assert (value[0], bound[0]) == (pytest.approx(0.5, abs=1e-15), 0.0)
    value, bound = average_precision(np.array([[size]]), np.array([[size]]), np.array([False]))
    # Worst case: the mean of j/(size + j), which is 1 - ln 2 up to 1/size.
    assert value[0] - bound[0] == pytest.approx(1 - np.log(2), abs=1e-8)
