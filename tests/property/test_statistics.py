"""The algebra of the sums: identity, order, split, bytes; and that each integer is the one that its definition names."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitor.metrics.sums import Sums, mass_edges
from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import F64, I64, LIMB_BITS, LOG_FLOOR, fixed, limbs, negative_log
from monitor.statistics.grid import bin_index, equal_edges, graded_edges, union_edges
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.observation import COLUMNS, additions
from monitor.statistics.pane import HOUR, MINUTE, PANE_SHIFT, POSITION_BITS, PaneSums, coarser, joined_bytes, merge, pane_sums
from monitor.statistics.row_buffer import RowBuffer
from monitor.statistics.segment import ALL, CLASS, GROUP, SCORE, VALUES
from monitor.statistics.value_table import bucket

Entries = dict[tuple[int, int, int], int]
"""Sums by (pane, slot, position)."""

START_MS = 1_780_272_000_000
NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(1 << 25), 1 << 25))  # 25 of them stay below what a pane may hold
ENTRIES = st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 6)), NUMBERS, max_size=25)
PROBABILITIES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-12, math.nextafter(1e-12, 0), 5e-324, 1 - 1e-6, 1 - 2**-53]))


def sums(entries: Entries) -> PaneSums:
    keys = [(pane << PANE_SHIFT) | (slot << POSITION_BITS) | position for pane, slot, position in entries]
    return PaneSums(np.array(keys, dtype=np.int64), np.array(list(entries.values()), dtype=np.int64))


def entries(found: PaneSums) -> Entries:
    """Back again; the keys must ascend and nothing may be zero."""
    assert (np.diff(found.keys) > 0).all()
    assert (found.values != 0).all()
    places = zip(found.pane.tolist(), found.slot.tolist(), found.position.tolist(), strict=True)
    return dict(zip(places, found.values.tolist(), strict=True))


def added(*parts: Entries) -> Entries:
    total: Counter[tuple[int, int, int]] = Counter()
    for part in parts:
        for key, value in part.items():
            total[key] += value
    return {key: value for key, value in total.items() if value}


@given(parts=st.lists(ENTRIES, max_size=5), cut=st.integers(0, 5))
def test_merge_is_addition(parts: list[Entries], cut: int) -> None:
    found = merge([sums(part) for part in parts])
    assert entries(found) == added(*parts)
    in_two = merge([merge([sums(part) for part in parts[:cut]]), merge([sums(part) for part in parts[cut:]])])
    assert entries(in_two) == entries(found)
    assert entries(merge([sums(part) for part in reversed(parts)])) == entries(found)
    assert entries(merge([PaneSums.empty(), found, PaneSums.empty()])) == entries(found)
    assert entries(merge([found, PaneSums(found.keys, -found.values)])) == {}


@given(part=ENTRIES, per_chunk=st.integers(1, 4), first=st.integers(-1, 7), end=st.integers(-1, 7))
def test_a_split_is_a_partition(part: Entries, per_chunk: int, first: int, end: int) -> None:
    whole = merge([sums(part)])
    chunks = whole.split(per_chunk)
    assert [chunk for chunk, _ in chunks] == sorted({pane // per_chunk for pane, _, _ in entries(whole)})
    assert all(pane // per_chunk == chunk for chunk, found in chunks for pane, _, _ in entries(found))
    assert entries(merge([found for _, found in chunks])) == entries(whole)
    inside = whole.between(max(first, 0), max(end, 0))
    assert entries(inside) == {key: value for key, value in entries(whole).items() if first <= key[0] < end}


@given(parts=st.lists(ENTRIES, max_size=4))
def test_bytes_keep_everything(parts: list[Entries]) -> None:
    data = joined_bytes([sums(part) for part in parts])
    assert len(data) == 16 * sum(map(len, parts))
    assert entries(merge([PaneSums.from_bytes(data)])) == added(*parts)


@given(part=ENTRIES, slots=st.lists(st.integers(0, 4), min_size=5, max_size=5), ratio=st.integers(1, 4))
def test_other_slots_and_coarser_panes(part: Entries, slots: list[int], ratio: int) -> None:
    moved = sums(part).with_slots(np.array(slots, dtype=np.int64))
    assert entries(moved) == added(*({(pane, slots[slot], position): value} for (pane, slot, position), value in part.items()))
    coarse = coarser([sums(part)], ratio)
    assert entries(coarse) == added(*({(pane // ratio, slot, position): value} for (pane, slot, position), value in part.items()))


LAYOUT = Layout(report_edges(10, None), None, 0.5, True, 0.8, ("region",), 4)
NARROW = Layout((0.25, 0.5, 0.9), None, None, True, None, (), 4)
SLOTS = np.array([[0, 14, 1], [2, 15, -1], [3, 15, 4]], dtype=np.int64)

ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(START_MS, START_MS + 3 * HOUR.pane_ms),
        st.one_of(PROBABILITIES, st.sampled_from([k / 10 for k in range(11)])),
        st.sampled_from([-1, 0, 1]),
        st.sampled_from([-1, 0, 1]),
        st.integers(0, 127),
        st.sampled_from([math.nan, 0.5, -1.0, 0.49999]),
        st.floats(0, 1),
        PROBABILITIES,
        st.sampled_from([10, 11]),
        st.sampled_from([-1, 10, 12]),
        st.sampled_from([-1, 13]),
    ),
    max_size=30,
)

Row = tuple[int, int, float, int, int, int, float, float, float, int, int, int]


def added_by(rows: list[Row], layout: Layout = LAYOUT, slots: I64 = SLOTS) -> list[Additions]:
    buffer = RowBuffer(COLUMNS)
    for row in rows:
        at = row[:6]
        score = 0.5 if row[11] >= 0 and math.isnan(row[6]) else row[6]  # the join gives a slot for scores only to a score
        buffer.append((*at, score, *row[7:]))
    return additions(buffer.take(), slots, layout)


def summed(rows: list[Row], pane_ms: int = HOUR.pane_ms, layout: Layout = LAYOUT, slots: I64 = SLOTS) -> PaneSums:
    return merge([part for one in added_by(rows, layout, slots) for part in pane_sums(one, pane_ms, np.arange(len(one.slot)))])


@given(rows=ROWS, data=st.data())
@settings(max_examples=150)
def test_any_split_of_rows_sums_to_the_whole(rows: list[Row], data: st.DataObject) -> None:
    whole = entries(summed(rows))
    shuffled = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    assert entries(merge([summed(shuffled[:cut]), summed(shuffled[cut:])])) == whole
    assert entries(coarser([summed(rows, MINUTE.pane_ms)], HOUR.pane_ms // MINUTE.pane_ms)) == whole
    parts = []
    for one in added_by(rows):
        everything = np.arange(len(one.slot))
        chosen = np.array(data.draw(st.lists(st.sampled_from(everything.tolist()), unique=True)), dtype=np.int64)
        others = np.setdiff1d(everything, chosen)
        parts += [part for some in (chosen, others) for part in pane_sums(one, HOUR.pane_ms, some)]
    assert entries(merge(parts)) == whole
    undone = [(track, at, c, -everything, -labelled, *rest) for track, at, c, everything, labelled, *rest in rows]
    assert entries(summed([*rows, *undone])) == {}  # type: ignore[list-item]


@given(rows=ROWS)
@settings(max_examples=150)
def test_each_row_is_counted_where_it_belongs(rows: list[Row]) -> None:
    found = entries(summed(rows))
    want: Counter[tuple[int, int, int]] = Counter()
    for track, at, confidence, weight, labelled, flags, *_, predicted, true, score in rows:
        pane = at // HOUR.pane_ms
        want[pane, predicted, CLASS.scalar("predicted")] += weight
        want[pane, predicted, CLASS.scalar("events")] += weight + labelled
        want[pane, predicted, CLASS.scalar("hits")] += labelled * (flags & 1)
        if true >= 0:
            want[pane, true, CLASS.scalar("true")] += labelled
            want[pane, true, CLASS.scalar("events")] += labelled
        if score >= 0:
            want[pane, score, SCORE.scalar("predictions")] += weight
        whole, values, group = SLOTS[track].tolist()
        want[pane, values, VALUES.scalar("labelled")] += labelled
        want[pane, values, len(VALUES.scalars) + bucket_place(confidence) * len(VALUES.bins) + VALUES.bin("correct")] += labelled * (
            flags & 1
        )
        for slot, segment in ((whole, ALL), (group, GROUP)):
            if slot < 0:
                continue
            grid = (LAYOUT.grid if segment is ALL else LAYOUT.group_grid).tolist()
            cell = bin_place(confidence, grid) * len(segment.bins) + len(segment.scalars)
            added_to = {
                segment.scalar("predictions"): weight,
                segment.scalar("labelled"): labelled,
                cell + segment.bin("labelled"): labelled,
                cell + segment.bin("correct"): labelled * (flags & 1),
                cell + segment.bin("confidence"): labelled * round(Fraction(confidence) * 2**32),
            }
            for position, value in added_to.items():
                want[pane, slot, position] += value
    assert {key: found.get(key, 0) for key in want} == want
    assert {key[:2] for key in found} <= {key[:2] for key in want}


def bucket_place(confidence: float) -> int:
    return int(bucket(np.array([confidence + 0.0]))[0])


def bin_place(confidence: float, edges: list[float]) -> int:
    """By comparison alone."""
    if confidence == edges[-1]:
        return len(edges) - 2
    return bisect_right(edges, confidence) - 1


EDGES = st.one_of(
    st.integers(1, 40).map(equal_edges),
    st.sampled_from([graded_edges(8), graded_edges(32), LAYOUT.grid, NARROW.grid]),
    st.lists(st.floats(0, 1), min_size=2, max_size=8, unique=True).map(lambda edges: np.array(sorted(edges))),
)


@given(edges=EDGES, data=st.data())
@settings(max_examples=150)
def test_a_bin_is_found_by_comparison(edges: F64, data: st.DataObject) -> None:
    on_edge = st.sampled_from(edges.tolist())
    near = st.builds(math.nextafter, on_edge, st.sampled_from([0.0, 1.0]))
    confidences = data.draw(st.lists(st.one_of(st.floats(0, 1), on_edge, near), max_size=20))
    found = bin_index(edges, np.array(confidences, dtype=np.float64)).tolist()
    for confidence, index in zip(confidences, found, strict=True):
        if confidence < edges[0]:
            assert index == -1
        elif confidence > edges[-1]:
            assert index == len(edges) - 1
        else:
            assert edges[index] <= confidence
            assert confidence < edges[index + 1] or (confidence == edges[-1] and index == len(edges) - 2)


# The double next to 1 is no last edge: between it and 1 there is no room for a bin of its own.
REPORTS = st.lists(st.floats(0, 1).filter(lambda edge: edge != math.nextafter(1, 0)), min_size=2, max_size=8, unique=True)


@given(report=REPORTS, data=st.data())
@settings(max_examples=150)
def test_report_bins_are_exact_merges_of_the_grid(report: list[float], data: st.DataObject) -> None:
    """The last report bin is closed, also where it ends below 1."""
    edges = sorted(edge + 0.0 for edge in report)
    layout = Layout(tuple(edges), None, None, True, None, (), 4)
    on_edge = st.sampled_from(edges)
    near = st.builds(math.nextafter, on_edge, st.sampled_from([0.0, 1.0]))
    confidences = data.draw(st.lists(st.one_of(st.floats(0, 1), on_edge, near), min_size=1, max_size=20))
    rows: list[Row] = [(0, START_MS, confidence, 1, 1, 1, math.nan, 0.0, 0.0, 1, 1, -1) for confidence in confidences]
    found = summed(rows, layout=layout, slots=np.array([[0, 9]]))
    whole = found.slot == 0
    cell = np.zeros((1, layout.width(ALL)), dtype=np.int64)
    cell[0, found.position[whole]] = found.values[whole]
    shown = Sums(cell, layout, ALL, np.array(edges))
    inside = [confidence for confidence in confidences if edges[0] <= confidence <= edges[-1]]
    want = Counter(min(bisect_right(edges, confidence), len(edges) - 1) - 1 for confidence in inside)
    assert shown.bins("labelled")[0].tolist() == [want[index] for index in range(len(edges) - 1)]
    assert shown.used.tolist() == [len(inside)]
    assert set(union_edges(np.array(edges), graded_edges(8))) >= set(edges) | set(graded_edges(8).tolist())


def exact_negative_log(probability: float) -> int:
    with localcontext() as context:
        context.prec = 50
        return int((-Decimal(max(probability, LOG_FLOOR)).ln() * 2**24).to_integral_value(rounding="ROUND_HALF_EVEN"))


@given(probabilities=st.lists(PROBABILITIES, max_size=20), halves=st.lists(st.integers(0, 463_000_000), max_size=20))
@settings(max_examples=150)
@example(probabilities=[0.0, 1.0, 1e-12, 0.5], halves=[0, 1, 2])
def test_a_logarithm_is_correctly_rounded(probabilities: list[float], halves: list[int]) -> None:
    """Also next to half-integers, where the last bit of a library's logarithm would decide."""
    for half in halves:
        hard = math.exp(-(half + 0.5) / 2**24)
        probabilities = [*probabilities, hard, math.nextafter(hard, 0), math.nextafter(hard, 1)]
    inside = [probability for probability in probabilities if probability <= 1]
    found = negative_log(np.array(inside, dtype=np.float64), LOG_FLOOR)
    assert found.tolist() == [exact_negative_log(probability) for probability in inside]
    assert negative_log(np.array(inside[::-1], dtype=np.float64)[::-1], LOG_FLOOR).tolist() == found.tolist()


@given(values=st.lists(st.floats(-(2.0**30), 2.0**30), max_size=20), bits=st.sampled_from([20, 24, 32]))
@settings(max_examples=150)
def test_fixed_point_is_one_rounding(values: list[float], bits: int) -> None:
    found = fixed(np.array(values, dtype=np.float64), bits).tolist()
    assert found == [round(Fraction(value) * 2**bits) for value in values]


@given(values=st.lists(st.integers(-(2**62), 2**62), max_size=20))
def test_limbs_are_the_value(values: list[int]) -> None:
    high, low = limbs(np.array(values, dtype=np.int64))
    assert [h * 2**LIMB_BITS + part for h, part in zip(high.tolist(), low.tolist(), strict=True)] == values
    assert all(0 <= part < 2**LIMB_BITS for part in low.tolist())


@given(confidences=st.lists(PROBABILITIES, max_size=60), bins=st.integers(1, 20))
@settings(max_examples=200)
def test_mass_edges_are_the_raw_ones_snapped(confidences: list[float], bins: int) -> None:
    grid = graded_edges(8)
    places = bin_index(grid, np.array(confidences, dtype=np.float64))
    labelled: I64 = np.bincount(places, minlength=len(grid) - 1).astype(np.int64)
    ranked = sorted(confidences)
    raw = [ranked[k * len(ranked) // bins] for k in range(1, bins)] if ranked else []
    want = sorted({0.0, 1.0, *(float(grid[bin_place(confidence, grid.tolist())]) for confidence in raw)})
    assert mass_edges(labelled, grid, bins).tolist() == want
