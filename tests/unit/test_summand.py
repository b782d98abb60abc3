"""What an event adds, against whole fractions and long decimals; and that 2^30 of the largest of them still fit."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.config_model import LEAST_NLL_CLIP
from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import F64, I64, LIMB_BITS, LOG_FLOOR, SAFE_EVENTS
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.observation import COLUMNS, Flag, additions
from monitor.statistics.one_vs_rest import OWN_COLUMNS, one_vs_rest
from monitor.statistics.row_buffer import RowBuffer
from monitor.statistics.segment import ONE_VS_REST, VALUES
from monitor.statistics.summand import Bools, calibrated_size, calibration, moments, vectors
from monitor.statistics.tempering import VectorBuffer
from monitor.statistics.value_table import bucket

# Half of a unit of the fixed point and its neighbours: where rint has to decide.
HALVES = st.integers(0, 2**32 - 1).map(lambda k: (k + 0.5) / 2**32)
SQUARE_HALVES = HALVES.map(math.sqrt)
PROBABILITIES = st.one_of(
    st.floats(0, 1).map(lambda value: value + 0.0),
    HALVES,
    SQUARE_HALVES,
    st.sampled_from([0.0, 1.0, 0.5, 1e-12, math.nextafter(1e-12, 0), 5e-324, 1 - 1e-6, math.nextafter(1 - 1e-6, 1), 1 - 2**-53]),
    st.integers(0, 15).map(lambda k: k / 15),
)
WEIGHTS = st.sampled_from([-1, 0, 1, 2])
NLL_CLIPS = st.sampled_from([1e-12, 1e-30, 1e-6, 1e-3, 0.5])
CSR_CLIPS = st.sampled_from([1e-6, 1e-4, 1 / 15, 0.5])
EVENTS = st.lists(st.tuples(PROBABILITIES, st.booleans(), WEIGHTS), max_size=20)
EDGES = (0.25, 0.5, 0.9)
LAYOUT = Layout(report_edges(15, None), None, None, True, None, (), 4, "a", EDGES, True, True)


def scaled(value: float, bits: int = 32) -> int:
    """The nearest whole number of units, ties to even; `round` of a fraction is exact."""
    return round(Fraction(value) * (1 << bits))


def exact_log(probability: float, floor: float = LOG_FLOOR) -> int:
    with localcontext() as context:
        context.prec = 60
        return int((-Decimal(max(probability, floor)).ln() * 2**24).to_integral_value(rounding="ROUND_HALF_EVEN"))


def columns(events: list[tuple[float, bool, int]]) -> tuple[F64, Bools, I64]:
    return (
        np.array([p for p, _, _ in events], dtype=np.float64),
        np.array([happened for _, happened, _ in events], dtype=np.bool_),
        np.array([weight for _, _, weight in events], dtype=np.int64),
    )


@given(events=EVENTS, clip=NLL_CLIPS)
@example(events=[(0.0, True, 1), (0.0, False, 1), (1.0, True, 1), (1.0, False, 1)], clip=1e-12)
def test_calibration_and_moments(events: list[tuple[float, bool, int]], clip: float) -> None:
    found = {**calibration(*columns(events)), **moments(*columns(events), clip)}
    for place, (p, happened, weight) in enumerate(events):
        true = p if happened else 1.0 - p
        square = p * p
        want = {
            "labelled": 1,
            "correct": happened,
            "confidence": scaled(p),
            "confidence_square": scaled(square),
            "correct_confidence": scaled(p) * happened,
            "confidence_cube": scaled(square * p),
            "confidence_fourth": scaled(square * square),
            "nll": exact_log(true, clip),
            "nll_clipped": true < clip,
        }
        assert {name: int(found[name][place]) for name in found} == {name: weight * value for name, value in want.items()}


@given(events=st.lists(st.tuples(st.floats(0, 1.002), PROBABILITIES, st.booleans(), WEIGHTS), max_size=20), clip=NLL_CLIPS)
def test_vectors(events: list[tuple[float, float, bool, int]], clip: float) -> None:
    squares, true, unknown, weight = (np.array(column) for column in zip(*events, strict=True)) if events else [np.empty(0)] * 4
    found = vectors(squares.astype(np.float64), true.astype(np.float64), unknown.astype(np.bool_), weight.astype(np.int64), clip)
    for place, (square, p, outside, times) in enumerate(events):
        want = {
            "vectors": 1,
            "probability_squares": scaled(square),
            "true_probability": scaled(p),
            "nll_multi": exact_log(p, clip),
            "nll_multi_clipped": p < clip,
            "unknown_class": outside,
        }
        assert {name: int(found[name][place]) for name in found} == {name: times * value for name, value in want.items()}


@given(events=EVENTS, clip=CSR_CLIPS)
@example(events=[(1 - 1e-6, False, 1), (math.nextafter(1 - 1e-6, 1), False, 1), (0.0, False, 1), (1.0, False, 1)], clip=1e-6)
def test_calibrated_size(events: list[tuple[float, bool, int]], clip: float) -> None:
    found = calibrated_size(*columns(events), clip)
    limb = 2**LIMB_BITS
    for place, (p, right, weight) in enumerate(events):
        gap = 1.0 - p
        clipped = gap < clip
        got = {name: int(found[name][place]) for name in found}
        sizes = [
            ("inverse", 1.0 / gap if gap else 0.0, not right),
            ("odds", (1.0 - gap) / gap if gap else 0.0, True),
            ("cumulant", (1.0 - gap) * (1.0 - 2.0 * gap) / (gap * gap) if gap else 0.0, True),
        ]
        for name, value, counts in sizes:
            want = 0 if clipped or not counts else weight * scaled(value, 20)
            assert got[f"{name}_high"] * limb + got[f"{name}_low"] == want
        assert got["clipped"] == weight * clipped
        assert got["clipped_errors"] == weight * (clipped and not right)
        assert got["clipped_gap"] == (weight * scaled(gap / clip) if clipped else 0)


def cell(made: Additions, row: int) -> dict[int, int]:
    """What one row adds, by position in the cell."""
    sums = dict(zip(made.scalar_at.tolist(), made.scalars[:, row].tolist(), strict=True))
    if made.bin is not None:
        first = made.first_bin + int(made.bin[row]) * made.bin_width
        sums |= {first + at: value for at, value in zip(made.bin_at.tolist(), made.bins[:, row].tolist(), strict=True)}
    return {place: value for place, value in sums.items() if value}


@given(events=st.lists(st.tuples(PROBABILITIES, st.booleans(), st.booleans(), PROBABILITIES, WEIGHTS), min_size=1, max_size=10))
@example(
    events=[(-0.0, True, True, 0.0, 1), (0.25, True, False, 0.75, 1), (0.9, False, True, 0.9, 1), (0.9000000000000001, True, True, 1.0, 1)]
)
def test_one_against_the_rest(events: list[tuple[float, bool, bool, float, int]]) -> None:
    buffer = RowBuffer(OWN_COLUMNS)
    for place, (p, is_true, chosen, confidence, weight) in enumerate(events):
        buffer.append((place, 1000 + place, weight, p, is_true, chosen, confidence, 100 + place))
    own, values = one_vs_rest(buffer.take(), LAYOUT)
    assert len(buffer) == 0
    for place, (p, is_true, chosen, confidence, weight) in enumerate(events):
        inside = EDGES[0] <= p <= EDGES[-1]
        true, square = p if is_true else 1.0 - p, p * p
        scalars = {"labelled": 1}
        if inside:
            scalars |= {
                "confidence_cube": scaled(square * p),
                "confidence_fourth": scaled(square * square),
                "nll": exact_log(true),
                "nll_clipped": true < LOG_FLOOR,
            }
        in_bin = {
            "labelled": 1,
            "correct": is_true,
            "confidence": scaled(p),
            "confidence_square": scaled(square),
            "correct_confidence": scaled(p) * is_true,
            "weight": scaled(confidence),
            "correct_weight": scaled(confidence) * is_true,
            "chosen": chosen,
            "chosen_correct": chosen and is_true,
        }
        first = len(ONE_VS_REST.scalars) + int(bin_index(LAYOUT.class_grid, np.array([p]))[0]) * len(ONE_VS_REST.bins)
        want = {ONE_VS_REST.scalar(name): value * weight for name, value in scalars.items()}
        want |= {first + ONE_VS_REST.bin(name): value * weight for name, value in in_bin.items()}
        assert cell(own, place) == {at: value for at, value in want.items() if value}
        bits = int(np.float64(p + 0.0).view(np.uint64))
        in_bucket = {"labelled": 1, "correct": is_true, "value_high": bits >> 32, "value_low": bits & 0xFFFFFFFF}
        in_bucket |= {"weight": scaled(confidence), "correct_weight": scaled(confidence) * is_true}
        at_bucket = len(VALUES.scalars) + int(bucket(np.array([p + 0.0]))[0]) * len(VALUES.bins)
        found = cell(values, place)
        found.pop(at_bucket + VALUES.bin("value_hash"), None)
        want = {0: weight} | {at_bucket + VALUES.bin(name): value * weight for name, value in in_bucket.items()}
        assert found == {at: value for at, value in want.items() if value}
        assert (int(own.slot[place]), int(values.slot[place]), int(own.event_time_ms[place])) == (place, 100 + place, 1000 + place)
        assert (own.hourly, values.hourly) == (False, True)


def rows_of(confidence: float, flags: int) -> RowBuffer:
    """One event with the largest of everything else."""
    rows = RowBuffer(COLUMNS)
    rows.append((0, 0, confidence, 1, 1, flags, 1e308, 1.002, 0.0, 1, 2, 3))
    return rows


HIGHEST = [0.0, 1.0, 0.5, 1 - 1e-6, math.nextafter(1 - 1e-6, 0), math.nextafter(1 - 1e-6, 1), 1 - 2**-53, 5e-324]


@pytest.mark.parametrize("confidence", HIGHEST)
@pytest.mark.parametrize(
    "flags", [0, int(Flag.CORRECT | Flag.VECTOR), int(Flag.VECTOR | Flag.UNKNOWN_CLASS | Flag.SENT_ACCEPTED | Flag.SENT)]
)
def test_two_to_the_thirty_of_the_largest_summands_fit(confidence: float, flags: int) -> None:
    """All but sums of hashes, which are meant modulo 2^64."""
    own = RowBuffer(OWN_COLUMNS)
    own.append((0, 0, 1, confidence, flags & 1, 1, 1.0, 1))
    whole = VectorBuffer()
    for label in (0, 1):
        whole.append((0, 0, 1, True, label, 0), [confidence, *([(1 - confidence) / 9] * 9)])
    made = [*additions(rows_of(confidence, flags).take(), np.array([[0, 4]]), LAYOUT), *one_vs_rest(own.take(), LAYOUT), whole.take()]
    made += additions(rows_of(confidence, flags).take(), np.array([[0, 4]]), replace(LAYOUT, nll_clip=LEAST_NLL_CLIP))
    for one in made:
        hashes = one.bin_at == (VALUES.bin("value_hash") if one.bin_width == len(VALUES.bins) else -1)
        for value in [*one.scalars.ravel().tolist(), *one.bins[~hashes].ravel().tolist()]:
            assert abs(value) * SAFE_EVENTS < 2**63
