"""Likelihoods at 61 temperatures: every integer against sixty decimals, hard cases first."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitor.statistics.segment import TEMPERATURE, TEMPERATURES
from monitor.statistics.tempering import VectorBuffer, temperatures

BINS = 15
ONE = TEMPERATURES // 2
"""Number of the temperature 1."""
EDGES = [Decimal(k / BINS) for k in range(BINS)]

Event = tuple[int, bool, int, int, list[float]]
"""(weight, reports, label, predicted class, vector)."""


def rounded(value: Decimal) -> int:
    """To the nearest whole number, ties to even; what is a tie but for the last of the digits is one."""
    return int(value.quantize(Decimal("1e-25")).to_integral_value(rounding="ROUND_HALF_EVEN"))


def exact(vector: list[float], temperature: float, label: int, predicted: int) -> tuple[int, int, int]:
    """NLL and confidence in units, and the bin of the confidence: softmax(ln p / T) in sixty digits."""
    with localcontext() as context:
        context.prec = 60
        powers = [(Decimal(max(p, 1e-12)).ln() / Decimal(temperature)).exp() for p in vector]
        share, true = (powers[index] / sum(powers) for index in (predicted, label))
        nearest = share.quantize(Decimal("1e-45"))  # a confidence that is an edge but for its last digits is on it
        place = sum(edge.quantize(Decimal("1e-45")) <= nearest for edge in EDGES) - 1
        return rounded(-true.ln() * 2**24), rounded(share * 2**32), place


def cells(events: list[Event]) -> list[dict[int, int]]:
    """What each event adds to a cell, by position; each has a slot and a time of its own."""
    buffer = VectorBuffer()
    for place, (weight, reports, label, predicted, vector) in enumerate(events):
        buffer.append((place, 1000 + place, weight, reports, label, predicted), vector)
    assert len(buffer) == len(events)
    made = buffer.take()
    assert len(buffer) == 0
    assert made.hourly
    assert made.event_time_ms.tolist() == [1000 + place for place in range(len(events)) for _ in range(TEMPERATURES)]
    found: list[dict[int, int]] = [{} for _ in events]
    assert made.bin is not None
    for row, slot in enumerate(made.slot.tolist()):
        places = [*made.scalar_at.tolist(), *(made.first_bin + int(made.bin[row]) * made.bin_width + made.bin_at).tolist()]
        values = [*made.scalars[:, row].tolist(), *made.bins[:, row].tolist()]
        for at, value in zip(places, values, strict=True):
            found[slot][at] = found[slot].get(at, 0) + value
    return [{at: value for at, value in sums.items() if value} for sums in found]


def wanted(event: Event) -> dict[int, int]:
    weight, reports, label, predicted, vector = event
    want = {TEMPERATURE.scalar("labelled"): weight}
    for number, temperature in enumerate(temperatures().tolist()):
        nll, confidence, place = exact(vector, temperature, label, predicted)
        first = len(TEMPERATURE.scalars) + (number * BINS + place) * len(TEMPERATURE.bins)
        sums = {"nll": nll}
        if reports:
            sums |= {"labelled": 1, "correct": label == predicted, "confidence": confidence}
        want |= {first + TEMPERATURE.bin(name): value * weight for name, value in sums.items()}
    return {at: value for at, value in want.items() if value}


def check(*events: Event) -> None:
    for found, event in zip(cells(list(events)), events, strict=True):
        assert found == wanted(event), event


def test_the_grid_is_correctly_rounded() -> None:
    assert temperatures()[ONE] == 1.0
    assert temperatures()[[0, 10, 20, -11, -1]].tolist() == [0.125, 0.25, 0.5, 4.0, 8.0]
    with localcontext() as context:
        context.prec = 70
        want = [float((Decimal(8).ln() * (k - ONE) / ONE).exp()) for k in range(TEMPERATURES)]
    assert temperatures().tolist() == want


@st.composite
def events(draw: st.DrawFn) -> Event:
    classes = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["any", "tied", "sure", "two"]))
    if kind == "tied":
        vector = [1 / classes] * classes
    elif kind == "sure":
        vector = [1.0] + [0.0] * (classes - 1)
    elif kind == "two":
        first = draw(st.one_of(st.integers(0, 15).map(lambda k: k / 15), st.floats(0, 1), st.sampled_from([1e-12, 5e-324, 1 - 2**-53])))
        vector = [first, 1 - first]
    else:
        parts = draw(st.lists(st.floats(0, 1), min_size=classes, max_size=classes))
        total = math.fsum(parts)
        vector = [part / total for part in parts] if total > 1e-300 else [1.0] + [0.0] * (classes - 1)
    last = len(vector) - 1
    label, predicted = draw(st.integers(0, last)), draw(st.integers(0, last))
    return draw(st.sampled_from([1, 1, -1])), draw(st.booleans()), label, predicted, vector


@given(batch=st.lists(events(), min_size=1, max_size=4))
@settings(max_examples=25)
@example(batch=[(1, True, 0, 0, [1.0]), (1, False, 0, 0, [1.0]), (-1, True, 1, 0, [0.5, 0.5])])
@example(batch=[(1, True, 1, 0, [1.0, 0.0]), (1, True, 0, 0, [1.0, 0.0]), (1, True, 2, 1, [0.0, 1.0, 0.0])])
def test_every_integer_is_correctly_rounded(batch: list[Event]) -> None:
    check(*batch)


def test_confidences_on_the_edges_of_bins() -> None:
    """At T = 1 a vector that sums to exactly 1 has its own probability for its confidence, so an edge is hit exactly."""
    hit = 0
    for k in range(8, BINS):
        for first in (k / BINS, math.nextafter(k / BINS, 0), math.nextafter(k / BINS, 1)):
            vector = [first, 1 - first]
            found = exact(vector, 1.0, 0, 0)
            assert found[2] == k - (first < k / BINS), (k, first)
            hit += 1
            check((1, True, 0, 0, vector), (1, True, 1, 1, vector))
    assert hit == 21


def test_vectors_of_equal_shares() -> None:
    """Their confidence lies next to an edge at every temperature; whatever is remembered of one must not serve for another."""
    for classes in (1, 2, 3, 5, 40):
        check((1, True, 0, classes - 1, [1 / classes] * classes))
    check((1, True, 0, 0, [1 / 3] * 3), (1, True, 1, 0, [1 / 3] * 3))
    zeros = [1 / 3, 1 / 3, 0.0, 1 / 3]
    check(*((1, True, label, predicted, zeros) for label, predicted in ((0, 1), (0, 2), (2, 0), (2, 2))))


def test_confidences_half_way_between_two_units() -> None:
    """(k + 1/2) / 2^32 is a double, and so is what is left of 1: at T = 1 the confidence lies exactly half-way."""
    for k in (0, 1, 2, 12_345_678, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1):
        first = (k + 0.5) / 2**32
        assert exact([first, 1 - first], 1.0, 0, 0)[1] == k + k % 2
        check((1, True, 0, 0, [first, 1 - first]), (1, True, 1, 1, [1 - first, first]))


def test_losses_next_to_half_way() -> None:
    """Two classes with ratio r at T: the loss is ln(1 + r^(1/T)); r is chosen so that it is nearly a half-integer of units."""
    batch: list[Event] = []
    for number in (0, 13, ONE, ONE + 7, TEMPERATURES - 1):
        temperature = float(temperatures()[number])
        for half in (3.5, 1000.5, 8_388_607.5, 11_629_079.5):
            ratio = math.expm1(half / 2**24) ** temperature
            first = 1 / (1 + ratio)
            batch += [(1, False, 0, 0, [near, 1 - near]) for near in (first, math.nextafter(first, 0), math.nextafter(first, 1))]
    check(*batch)


def test_order_of_events_and_of_batches_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    batch: list[Event] = []
    for _ in range(40):
        vector = rng.dirichlet(np.full(int(rng.integers(1, 9)), 0.3)).tolist()
        batch.append((1, bool(rng.integers(2)), int(rng.integers(len(vector))), int(np.argmax(vector)), vector))
    whole = cells(batch)
    assert cells(batch[::-1])[::-1] == whole
    assert [cells([event])[0] for event in batch] == whole
    undone = cells([(-weight, *rest) for weight, *rest in batch])  # type: ignore[misc]
    assert [{at: -value for at, value in sums.items()} for sums in undone] == whole
