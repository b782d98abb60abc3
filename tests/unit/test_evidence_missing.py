"""Missing labels counted against the alarm: no way of filling them in gives less evidence."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.evidence.bets import Side, bets
from monitor.evidence.count_and_sum import log_e_of_bets
from monitor.evidence.grid_sums import BINS, EDGES, GridSums
from monitor.evidence.missing import Missing, matured
from monitor.statistics.fixed_point import I64, PROBABILITY_BITS, fixed
from monitor.statistics.grid import bin_index

PREDICTIONS = st.lists(st.tuples(st.floats(0.0, 1.0), st.sampled_from([True, False, None]), st.booleans()), max_size=25)

Filled = list[tuple[float, bool | None]]


def columns(events: Filled) -> tuple[I64, I64, I64]:
    """Counts, correct ones and confidences per bin."""
    result = np.zeros((3, BINS), dtype=np.int64)
    for claim, correct in events:
        place = bin_index(EDGES, np.array([claim]))[0]
        result[:, place] += (1, int(bool(correct)), fixed(np.array([claim]), PROBABILITY_BITS)[0])
    return result[0], result[1], result[2]


def taken(side: Side, missing: Missing, events: Filled) -> GridSums:
    labelled = GridSums.of(*columns([event for event in events if event[1] is not None]))
    count, _, confidence = columns(events)
    return matured(side, missing, labelled, count, confidence)


def same(first: GridSums, second: GridSums) -> bool:
    pairs = ((first.count, second.count), (first.correct, second.correct), (first.excess, second.excess))
    return all(np.array_equal(*pair) for pair in pairs)


@given(PREDICTIONS)
def test_counted_missing_labels_are_correct_for_over_and_wrong_for_under(predictions: list[tuple[float, bool | None, bool]]) -> None:
    events: Filled = [(claim, correct) for claim, correct, _ in predictions]
    for side, filled in ((Side.OVER, True), (Side.UNDER, False)):
        complete: Filled = [(claim, filled if correct is None else correct) for claim, correct in events]
        assert same(taken(side, Missing.COUNT, events), GridSums.of(*columns(complete)))


@given(PREDICTIONS)
def test_counted_missing_labels_give_no_more_evidence_than_the_truth_would(predictions: list[tuple[float, bool | None, bool]]) -> None:
    events: Filled = [(claim, correct) for claim, correct, _ in predictions]
    truth: Filled = [(claim, unseen if correct is None else correct) for claim, correct, unseen in predictions]
    for side in Side:
        table = bets(side)
        known = log_e_of_bets(table, taken(side, Missing.COUNT, events), guarded=True)
        assert np.all(known <= log_e_of_bets(table, GridSums.of(*columns(truth)), guarded=True) + 1e-9)


@given(PREDICTIONS)
def test_ignored_missing_labels_leave_the_labelled_ones(predictions: list[tuple[float, bool | None, bool]]) -> None:
    events: Filled = [(claim, correct) for claim, correct, _ in predictions]
    labelled = GridSums.of(*columns([event for event in events if event[1] is not None]))
    for side in Side:
        assert same(taken(side, Missing.IGNORE, events), labelled)
