"""Ranks from bins and from values that repeat: the raw value lies within the bound, and on the value where all are known."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from monitor.metrics.ranking import NO_VALUES, Bounded, curve, row_auc, row_aurc, row_weighted_auc
from monitor.metrics.sums import Sums
from monitor.metrics.values import Values, orders
from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import I64, SAFE_EVENTS
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.one_vs_rest import OWN_COLUMNS, one_vs_rest
from monitor.statistics.pane import HOUR, merge, pane_sums
from monitor.statistics.row_buffer import RowBuffer
from monitor.statistics.segment import ONE_VS_REST, VALUES
from monitor.statistics.value_table import bucket

LAYOUT = Layout(report_edges(15, None), None, None, True, None, (), 4, "a", (0.0, 1.0))

Event = tuple[float, bool, float]
"""(probability, whether the class is the label, confidence of the predicted class)."""


def crowded() -> list[float]:
    """Values that share buckets with others: the fullest buckets of a hundred thousand rounded numbers."""
    values = np.arange(100_001) / 100_000
    by_bucket: dict[int, list[float]] = defaultdict(list)
    for place, value in zip(bucket(values).tolist(), values.tolist(), strict=True):
        by_bucket[place].append(value)
    fullest = sorted(by_bucket.values(), key=len)[-4:]
    return [value for members in fullest for value in members[:8]]


def neighbours(value: float, count: int) -> list[float]:
    found = [value]
    for _ in range(count):
        found.append(math.nextafter(found[-1], 1))
    return found


CROWDED = crowded()
TIES = [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.7, 0.9, 1.0]
NEAR = neighbours(0.7, 4) + neighbours(0.9990234375, 4)
PROBABILITIES = st.one_of(st.sampled_from(TIES), st.sampled_from(CROWDED), st.sampled_from(NEAR), st.floats(0, 1))
EVENTS = st.lists(st.tuples(PROBABILITIES, st.booleans(), st.sampled_from([0.5, 0.75, 0.9, 1.0, 1 / 3])), min_size=1, max_size=40)


def cell(made: Additions, width: int) -> I64:
    found = np.zeros(width, dtype=np.int64)
    for part in [merge(pane_sums(made, HOUR.pane_ms, np.arange(len(made.slot))))]:
        found[part.position] = part.values
    return found


def summed(events: list[Event]) -> tuple[Sums, Values]:
    """What the product keeps of the events; those whose probability is at least one half count as predicted to be of the class."""
    buffer = RowBuffer(OWN_COLUMNS)
    for probability, is_true, confidence in events:
        buffer.append((0, 0, 1, probability, is_true, probability >= 0.5, confidence, 0))
    own, values = one_vs_rest(buffer.take(), LAYOUT)
    cells = cell(own, LAYOUT.width(ONE_VS_REST))[None, :]
    return Sums(cells, LAYOUT, ONE_VS_REST, np.array([0.0, 1.0]), ["a"]), Values.of(cell(values, LAYOUT.width(VALUES)))


def all_known(events: list[Event]) -> bool:
    distinct = np.unique([probability + 0.0 for probability, _, _ in events])
    return len(np.unique(bucket(distinct))) == len(distinct)


def raw_auc(events: list[Event], weighted: bool) -> float | None:
    right = pairs = 0
    for high, first, one in events:
        for low, second, other in events:
            if first and not second:
                weight = round(Fraction(one) * 2**32) * round(Fraction(other) * 2**32) if weighted else 1
                pairs += 2 * weight
                right += weight * (2 * (high > low) + (high == low))
    return right / pairs if pairs else None


def raw_aurc(outcomes: list[tuple[float, bool]]) -> float | None:
    """Mean over k of the risk of the k most confident, ties spread evenly."""
    if not outcomes:
        return None
    total = Fraction(0)
    before = failed = 0
    for value in sorted({confidence for confidence, _ in outcomes}, reverse=True):
        tied = [right for confidence, right in outcomes if confidence == value]
        wrong = tied.count(False)
        total += sum((Fraction(failed) + Fraction(wrong * k, len(tied))) / (before + k) for k in range(1, len(tied) + 1))
        before, failed = before + len(tied), failed + wrong
    return float(total / len(outcomes))


def within(found: Bounded, want: float | None) -> None:
    if want is None:
        assert math.isnan(found.value)
    else:
        assert abs(found.value - want) <= found.bound + 1e-12, (found, want)


@given(events=EVENTS)
@settings(max_examples=300)
@example(events=[(0.7, True, 1.0), (math.nextafter(0.7, 1), False, 1.0)])
@example(events=[(0.0, True, 0.5), (0.0, False, 0.5), (1.0, True, 1.0), (1.0, False, 1.0)])
def test_the_raw_value_lies_within_the_bound(events: list[Event]) -> None:
    sums, values = summed(events)
    known = all_known(events)
    event(f"all known: {known}")
    assert len(values.value) == len({value + 0.0 for value, _, _ in events}) or not known
    outcomes = [(probability, is_true) for probability, is_true, _ in events]
    chosen = [(probability, is_true) for probability, is_true in outcomes if probability >= 0.5]
    for using in (values, NO_VALUES):
        found = [row_auc(sums, 0, using), row_weighted_auc(sums, 0, using), row_aurc(sums, 0, using)]
        for one, want in zip(found, [raw_auc(events, False), raw_auc(events, True), raw_aurc(outcomes)], strict=True):
            within(one, want)
            if known and using is values and want is not None:
                assert one.bound == 0
    within(row_aurc(sums, 0, NO_VALUES, "chosen", "chosen_correct"), raw_aurc(chosen))


@given(events=EVENTS)
@settings(max_examples=150)
def test_both_orders_hold_every_event_once(events: list[Event]) -> None:
    sums, values = summed(events)
    positives, labelled = sums.fine("correct")[0], sums.fine("labelled")[0]
    found = orders(sums.grid, positives, labelled - positives, values.value, values.correct, values.labelled - values.correct)
    right = sum(is_true for _, is_true, _ in events)
    for order in (found.best, found.worst):
        assert (order >= 0).all()
        assert (order.sum(axis=0) > 0).all()
        assert order.sum(axis=1).tolist() == [right, len(events) - right]


@given(events=EVENTS)
@settings(max_examples=150)
def test_what_is_known_is_what_was_sent(events: list[Event]) -> None:
    _, values = summed(events)
    assert (np.diff(values.value) > 0).all()
    for row, value in enumerate(values.value.tolist()):
        here = [(is_true, confidence) for probability, is_true, confidence in events if probability == value]
        assert int(values.labelled[row]) == len(here)
        assert int(values.correct[row]) == sum(is_true for is_true, _ in here)
        assert int(values.weight[row]) == sum(round(Fraction(confidence) * 2**32) for _, confidence in here)
        assert int(values.correct_weight[row]) == sum(round(Fraction(confidence) * 2**32) for is_true, confidence in here if is_true)


@given(events=EVENTS)
@settings(max_examples=200)
def test_the_curve_is_exact_at_its_points_and_bounded_between_them(events: list[Event]) -> None:
    sums, values = summed(events)
    outcomes = [(probability, is_true) for probability, is_true, _ in events]
    for using in (values, NO_VALUES):
        points = curve(sums, 0, using)
        rows = list(zip(*(getattr(points, name).tolist() for name in points.__dataclass_fields__), strict=True))
        assert [row[0] for row in rows] == sorted({row[0] for row in rows}, reverse=True)
        for threshold, _, coverage, risk, lower, upper in rows:
            accepted = [is_true for probability, is_true in outcomes if probability >= threshold]
            assert coverage == len(accepted) / len(outcomes)
            assert risk == accepted.count(False) / len(accepted)
            assert lower <= risk <= upper
        for value in {probability for probability, _ in outcomes}:
            accepted = [is_true for probability, is_true in outcomes if probability >= value]
            raw = accepted.count(False) / len(accepted)
            covering = [row for row in rows if row[0] <= value <= row[0] + row[1]]
            assert any(lower - 1e-12 <= raw <= upper + 1e-12 for _, _, _, _, lower, upper in covering)
            if using is values and all_known(events):
                assert [row[:4] for row in covering if row[1] == 0] == [(value, 0.0, len(accepted) / len(outcomes), raw)]


def test_a_thousand_million_events_on_two_values() -> None:
    """Exact where a histogram's bound would be the half of it, and nothing overflows."""
    sums, values = summed([(0.7, True, 1.0), (math.nextafter(0.7, 1), False, 1.0)])
    assert row_auc(sums, 0, NO_VALUES) == Bounded(0.5, 0.5)
    assert row_auc(sums, 0, values) == Bounded(0.0, 0.0)
    many = SAFE_EVENTS // 2
    place = int(bin_index(sums.grid, np.array([0.7]))[0])
    counts = np.zeros(len(sums.grid) - 1, dtype=np.int64)
    counts[place] = many << 32
    found = orders(sums.grid, counts, counts, values.value, values.correct * (many << 32), (1 - values.correct) * (many << 32))
    assert found.best.tolist() == found.worst.tolist() == [[many << 32, 0], [0, many << 32]]


def test_nothing_is_known_of_nothing() -> None:
    assert len(NO_VALUES.value) == 0
    assert len(Values.of(np.zeros(LAYOUT.width(VALUES), dtype=np.int64)).value) == 0
