"""Paths, the detector and the lower bound over panes, against direct recomputation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from monitor.evidence import lower_bound as bound
from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.count_and_sum import ROWS_AT_ONCE, log_e_of_bets, log_mixture
from monitor.evidence.detector import LOG_RUN_LENGTH, Detector, estimated_start, fold
from monitor.evidence.grid_sums import BINS, EDGES, PROBABILITY_ONE, GridSums
from monitor.evidence.path import NEVER, first_crossing, log_e_path
from monitor.statistics.fixed_point import F64

PANES = 30

SEEDS = st.integers(0, 2**32 - 1)
CUTS = st.integers(0, PANES)


def drawn(seed: int, shape: tuple[int, ...], accuracy: float = 0.6) -> GridSums:
    """A few events in each pane, and panes without any."""
    rng = np.random.default_rng(seed)
    count = rng.poisson(0.05, (*shape, BINS)) * rng.integers(0, 2, (*shape, 1))
    excess = (count * rng.uniform(0, 1, count.shape) * np.diff(EDGES) * PROBABILITY_ONE).astype(np.int64)
    return GridSums(count, rng.binomial(count, accuracy), excess)


def pane(panes: GridSums, place: int) -> GridSums:
    return GridSums(panes.count[..., place, :], panes.correct[..., place, :], panes.excess[..., place, :])


@pytest.mark.parametrize("side", Side)
def test_a_path_is_the_evidence_of_everything_until_each_close(side: Side) -> None:
    table, panes = bets(side, 0.02), drawn(1, (2, ROWS_AT_ONCE + 9))
    path = log_e_path(table, panes)
    assert path.shape == (2, ROWS_AT_ONCE + 9)
    for place in (0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 8):
        until = panes.rows(slice(0, place + 1)).total()
        assert np.array_equal(path[:, place], log_mixture(table, log_e_of_bets(table, until, guarded=True)))


@given(SEEDS, CUTS)
@settings(max_examples=20)
def test_a_path_goes_on_from_what_was_carried_bit_for_bit(seed: int, cut: int) -> None:
    table, panes = bets(Side.OVER), drawn(seed, (PANES,))
    before, after = panes.rows(slice(0, cut)), panes.rows(slice(cut, None))
    parts = (log_e_path(table, before), log_e_path(table, after, before.total()))
    assert np.array_equal(np.concatenate(parts), log_e_path(table, panes))


def test_a_path_without_panes_is_empty() -> None:
    assert log_e_path(bets(Side.OVER), GridSums.empty((4, 0))).shape == (4, 0)
    assert first_crossing(np.zeros((4, 0)), 1.0).tolist() == [NEVER] * 4


def test_the_first_crossing_counts_equality_and_later_falls_do_not_undo_it() -> None:
    threshold = log_threshold(0.05)
    log_e = np.array([[0.0, threshold, -9.0, 99.0], [0.0, 0.0, 0.0, np.nextafter(threshold, 0)]])
    assert first_crossing(log_e, threshold).tolist() == [1, NEVER]


def slow_detector(log_e: F64, log_weight: F64) -> tuple[list[float], int]:
    """R as the weighted sum over all starts, and the best (start, bet) by trying all; of panes that have events."""
    rising: list[float] = []
    for end in range(len(log_e)):
        starts = [log_e[start : end + 1].sum(axis=0) + log_weight for start in range(end + 1)]
        rising.append(float(logsumexp(starts)))
    each = np.array([log_e[start:].sum(axis=0) + log_weight for start in range(len(log_e))])
    return rising, int(np.unravel_index(each.argmax(), each.shape)[0])


@given(SEEDS, st.sampled_from([0.1, 0.5, 0.9]), st.integers(-5, 500_000))
@settings(max_examples=40)
def test_the_detector_sums_over_all_starts_and_finds_the_best(seed: int, accuracy: float, first_pane: int) -> None:
    table, panes = bets(Side.OVER), drawn(seed, (PANES,), accuracy)
    state, log_r = fold(table, Detector.empty(table), panes, first_pane + np.arange(PANES))
    places = np.flatnonzero(panes.events)
    log_e = np.array([log_e_of_bets(table, pane(panes, int(place)), guarded=True) for place in places]).reshape(len(places), -1)
    rising, best = slow_detector(log_e, table.log_weight) if len(places) else ([], 0)
    np.testing.assert_allclose(log_r[places], rising, rtol=1e-9, atol=1e-9)
    assert estimated_start(table, state) == (first_pane + places[best] if len(places) else NEVER)


@given(SEEDS, CUTS)
@settings(max_examples=20)
def test_the_detector_goes_on_from_its_state_bit_for_bit(seed: int, cut: int) -> None:
    table, panes, numbers = bets(Side.UNDER), drawn(seed, (3, PANES)), np.arange(100, 100 + PANES)
    whole, path = fold(table, Detector.empty(table, (3,)), panes, numbers)
    between, first = fold(table, Detector.empty(table, (3,)), panes.rows(slice(0, cut)), numbers[:cut])
    end, second = fold(table, between, panes.rows(slice(cut, None)), numbers[cut:])
    assert np.array_equal(np.concatenate((first, second), axis=1), path)
    for name in ("log_r", "log_best", "start"):
        assert np.array_equal(getattr(end, name), getattr(whole, name))


def test_panes_without_events_are_no_steps() -> None:
    table = bets(Side.OVER)
    state, log_r = fold(table, Detector.empty(table), GridSums.empty((2000,)), np.arange(2000))
    assert np.all(log_r == -np.inf)
    assert estimated_start(table, state) == NEVER
    one = drawn(3, (1,))
    assert one.events > 0
    seen, before = fold(table, state, one, np.array([2000]))
    _, after = fold(table, seen, GridSums.empty((2000,)), np.arange(2001, 4001))
    assert np.all(after == before[0])
    assert before[0] < LOG_RUN_LENGTH


def test_the_bound_is_the_largest_d_below_which_everything_was_rejected() -> None:
    threshold = log_threshold(0.05)
    maxima = np.zeros((4, len(bound.TOLERANCES)))
    maxima[1, :3] = threshold
    maxima[2, [0, 1, 3, 4]] = 50.0
    maxima[3] = 1e6
    assert bound.lower_bound(maxima, 0.05).tolist() == [0.0, 0.03, 0.02, 0.5]


@given(SEEDS, CUTS)
@settings(max_examples=10)
def test_the_maxima_of_the_bound_go_on_bit_for_bit_and_are_those_of_the_paths(seed: int, cut: int) -> None:
    panes = drawn(seed, (PANES,), 0.3)
    before, after = panes.rows(slice(0, cut)), panes.rows(slice(cut, None))
    whole = bound.fold_maxima(panes)
    assert np.array_equal(bound.fold_maxima(after, before.total(), bound.fold_maxima(before)), whole)
    paths = [log_e_path(bets(Side.OVER, tolerance), panes) for tolerance in bound.TOLERANCES]
    assert whole.tolist() == [max(0.0, float(path.max())) for path in paths]


def test_the_bound_never_falls_and_needs_events() -> None:
    assert bound.lower_bound(bound.fold_maxima(GridSums.empty((2, 5))), 0.05).tolist() == [0.0, 0.0]
    panes = drawn(5, (PANES,), 0.1)
    rising = [float(bound.lower_bound(bound.fold_maxima(panes.rows(slice(0, end))), 0.05)) for end in range(PANES + 1)]
    assert rising == sorted(rising)
    assert rising[-1] > 0.1
