"""A version's cell, and its course over panes: in parts as in one go, and as the tests say one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.evidence.bets import Side, bets, log_threshold
from monitor.evidence.blocks import log_e_blocks
from monitor.evidence.cell import SUMS, WIDTH, parts, positions, side_sums
from monitor.evidence.count_and_sum import log_e_both
from monitor.evidence.course import ALARMS, BOTH, E_ALARMS, TOLERANCES, Alarm, Course, extend, log_e_now, thresholds
from monitor.evidence.detector import LOG_RUN_LENGTH, Detector, fold
from monitor.evidence.grid_sums import BINS, EDGES, PROBABILITY_ONE, GridSums
from monitor.evidence.lower_bound import fold_maxima
from monitor.evidence.path import log_e_path
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.segment import ALL
from tests.doubles.evidence_stream import cells as cells_of
from tests.doubles.evidence_stream import made, same

PANES = 40


def layout(edges: tuple[float, ...]) -> Layout:
    return Layout(edges, None, None, True, None, (), 50)


@pytest.mark.parametrize(
    "edges", [report_edges(15, None), report_edges(7, None), (0.0, 1.0), (0.5, 0.75, 0.9, 1.0), (0.1, 0.3, 0.95), (0.0, 0.5)]
)
def test_every_layouts_cells_come_to_the_same_bins(edges: tuple[float, ...]) -> None:
    one = layout(edges)
    rng = np.random.default_rng(5)
    confidences = np.concatenate((rng.uniform(0, 1, 500), EDGES, one.grid, np.nextafter(EDGES[1:], 0), [0.0, 1.0]))
    place = positions(one)
    assert place.shape == (one.width(ALL),)
    for number, name in enumerate(SUMS):
        at = len(ALL.scalars) + bin_index(one.grid, confidences) * len(ALL.bins) + ALL.bin(name)
        assert np.array_equal(place[at], number * BINS + bin_index(EDGES, confidences))
    assert np.count_nonzero(place >= 0) == len(SUMS) * (len(one.grid) - 1)


def test_a_missing_label_counts_against_either_side() -> None:
    cell = np.zeros(WIDTH, dtype=np.int64)
    # Bin 200: five predictions, three labelled, one of them correct.
    cell[[200, BINS + 200, 2 * BINS + 200, 3 * BINS + 200]] = [5, round(5 * 0.7 * PROBABILITY_ONE), 3, 1]
    assert (side_sums(Side.OVER, cell).count[200], side_sums(Side.OVER, cell).correct[200]) == (5, 3)
    assert (side_sums(Side.UNDER, cell).count[200], side_sums(Side.UNDER, cell).correct[200]) == (5, 1)


def test_a_sum_of_confidences_may_wrap_around_and_the_excess_is_right() -> None:
    events, one = 1 << 20, round(0.9 * PROBABILITY_ONE)
    column = int(bin_index(EDGES, np.array([0.9]))[0])
    pane = np.zeros(WIDTH, dtype=np.int64)
    pane[[column, BINS + column, 2 * BINS + column, 3 * BINS + column]] = [events, events * one, events, events]
    times = 1 << 14
    total = pane * times
    assert total[BINS + column] != events * times * one  # wrapped
    expected = events * times * (one - round(float(EDGES[column]) * PROBABILITY_ONE))
    assert side_sums(Side.OVER, total).excess[column] == expected


def numbered(events: int = 6, seed: int = 1) -> tuple[I64, I64]:
    """Panes with gaps, of a model that is too sure of itself."""
    hours = sorted(np.random.default_rng(seed).choice(400, PANES, replace=False).tolist())
    return cells_of(made(seed, hours, {"v": lambda c, hour: c - 0.25}, per_hour=events))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, PANES), max_size=4))
@settings(max_examples=15, deadline=None)
def test_a_course_in_parts_has_the_bits_of_one_in_one_go(seed: int, cuts: list[int]) -> None:
    numbers, cells = numbered(seed=seed)
    whole, values = extend(Course.empty(), numbers, cells)
    course, found = Course.empty(), []
    ends = sorted({*cuts, PANES} - {0})
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        course, part = extend(course, numbers[begin:end], cells[begin:end])
        found.append(part)
    assert np.array_equal(np.concatenate(found, axis=1), values)
    assert same(course, whole)


def test_a_course_is_what_each_test_says() -> None:
    numbers, cells = numbered(20)
    course, values = extend(Course.empty(), numbers, cells)
    panes = {side: side_sums(side, cells) for side in Side}
    expected: dict[Alarm, F64] = {}
    for tolerance in TOLERANCES:
        over, under = (log_e_path(bets(side, tolerance), panes[side]) for side in Side)
        named = {Side.OVER.value: over, Side.UNDER.value: under, BOTH: log_e_both(over, under)}
        expected |= {Alarm("e_process", name, tolerance): path for name, path in named.items()}
        for side in Side:
            table = bets(side, tolerance)
            expected[Alarm("run_length", side, tolerance)] = fold(table, Detector.empty(table), panes[side], numbers)[1]
    predictions, confidence, labelled, correct = (part.sum(axis=1) for part in parts(cells))
    ends = range(1, PANES + 1)
    errors = labelled - correct
    blocks = [log_e_blocks(predictions[:end], errors[:end], confidence[:end], guarded=True) for end in ends]
    assert expected.keys() | {Alarm("block", "over", 0.0)} == set(ALARMS)
    for row, alarm in enumerate(ALARMS):
        if alarm.statistic == "block":
            np.testing.assert_allclose(values[row], blocks, rtol=1e-12)
        else:
            assert np.array_equal(values[row], expected[alarm]), alarm
    assert np.array_equal(course.maxima, np.maximum(values.max(axis=1), 0))
    assert np.array_equal(course.bound, fold_maxima(panes[Side.OVER]))
    assert (course.first_pane, course.last_pane) == (numbers[0], numbers[-1])
    assert course.block_log_e == values[ALARMS.index(Alarm("block", "over", 0.0)), -1]
    assert np.array_equal(course.log_run_length, values[-4:, -1])


def test_the_evidence_now_is_the_paths_end_if_nothing_has_changed() -> None:
    numbers, cells = numbered()
    course, values = extend(Course.empty(), numbers, cells)
    assert np.array_equal(log_e_now(np.stack([course.cell, course.cell]))[:, 0], values[: len(E_ALARMS), -1])
    assert log_e_now(np.zeros((0, WIDTH), dtype=np.int64)).shape == (len(E_ALARMS), 0)


def test_thresholds_are_those_of_the_statistics() -> None:
    found = dict(zip(ALARMS, thresholds(0.01).tolist(), strict=True))
    assert {value for alarm, value in found.items() if alarm.statistic == "run_length"} == {LOG_RUN_LENGTH}
    assert {value for alarm, value in found.items() if alarm.statistic != "run_length"} == {log_threshold(0.01)}


def test_an_empty_course_has_no_evidence() -> None:
    course = Course.empty()
    assert course.block_log_e == 0
    assert np.all(course.log_run_length == -np.inf)
    assert np.array_equal(log_e_now(course.cell), np.zeros(len(E_ALARMS)))
    assert isinstance(side_sums(Side.OVER, course.cell), GridSums)
