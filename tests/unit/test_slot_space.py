"""Pages of a window: cells never overlap, hold what was added, grow with what is touched and no more."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.names import ALL_VALUE, CLASS_SEGMENT, OTHER_VALUE, RESERVED_SEGMENTS, SCORE_SEGMENT
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.pane import HOUR, PANE_SHIFT, POSITION_BITS, PaneLevel, PaneSums, merge
from monitor.statistics.series import Eviction, Family, SeriesKey, SeriesTable
from monitor.windows.running import RunningWindow, SlotSpace, WindowSpec

LAYOUT = Layout(report_edges(15, None), None, 0.5, True, 0.8, ("region",), 4, "a", (0.0, 0.5, 1.0), True, True)
SEGMENTS = (ALL_VALUE, "region", *RESERVED_SEGMENTS)
SPEC = WindowSpec("24h", 24 * HOUR.pane_ms, 0)
NOW_MS = 24 * HOUR.pane_ms

Entry = tuple[int, int, int]
"""(slot, position in the cell, value)."""


def table_of(series: int) -> SeriesTable:
    table = SeriesTable({LAYOUT.fingerprint: LAYOUT})
    for number in range(series):
        table.slot(SeriesKey("m", LAYOUT.fingerprint, "1", SEGMENTS[number % len(SEGMENTS)], f"v{number}"))
    return table


def sums_of(entries: list[Entry], pane: int = 0) -> PaneSums:
    keys = [(pane << PANE_SHIFT) | (slot << POSITION_BITS) | position for slot, position, _ in entries]
    return merge([PaneSums(np.array(keys, dtype=np.int64), np.array([value for _, _, value in entries], dtype=np.int64))])


def nothing(level: PaneLevel, first: int, end: int) -> PaneSums:
    return PaneSums.empty()


@st.composite
def entries(draw: st.DrawFn, table: SeriesTable) -> list[Entry]:
    """A few places in any cells, ends of cells and of pages among them, with a count at position 0 as every cell has."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        slot = draw(st.integers(0, len(table) - 1))
        last = table.width(slot) - 1
        near = [place for place in (0, 1, 63, 64, 65, 127, 128, last - 1, last) if 0 <= place <= last]
        position = draw(st.one_of(st.sampled_from(near), st.integers(0, last)))
        found += [(slot, position, draw(st.integers(1, 1000))), (slot, 0, draw(st.integers(1, 5)))]
    return found


@given(data=st.data())
@settings(max_examples=120)
def test_cells_hold_what_was_added_while_the_table_grows(data: st.DataObject) -> None:
    table = table_of(data.draw(st.integers(1, 5)))
    space = SlotSpace(table)
    windows = [RunningWindow(SPEC, space) for _ in range(2)]
    for window in windows:
        window.advance(NOW_MS, nothing, 0)
    want: list[Counter[tuple[int, int]]] = [Counter(), Counter()]
    for _ in range(data.draw(st.integers(1, 5))):
        for _ in range(data.draw(st.sampled_from([0, 1, 70]))):
            number = len(table)
            table.slot(SeriesKey("m", LAYOUT.fingerprint, "1", SEGMENTS[number % len(SEGMENTS)], f"v{number}"))
        which = data.draw(st.integers(0, 1))
        added = data.draw(entries(table))
        windows[which].apply(HOUR, sums_of(added))
        for slot, position, value in added:
            want[which][slot, position] += value
        if data.draw(st.booleans()) and len(table) > 1:
            evicted, other = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=2, max_size=2, unique=True))
            if table.width(evicted) == table.width(other):
                for window, sums in zip(windows, want, strict=True):
                    window.redirect([Eviction(evicted, other)])
                    for (slot, position), value in list(sums.items()):
                        if slot == evicted:
                            sums[other, position] += value
                            del sums[slot, position]
    for window, sums in zip(windows, want, strict=True):
        view = window.view(table, RESERVED_SEGMENTS)
        assert view is not None
        found = {
            (table.slot(key), int(position)): int(cell[position])
            for key, cell in zip(view.keys, view.cells, strict=True)
            for position in np.flatnonzero(cell)
        }
        assert found == {place: value for place, value in sums.items() if value}
        assert [len(cell) for cell in view.cells] == [table.width(table.slot(key)) for key in view.keys]
        assert set(view.keys) == {table.key(slot) for slot, position in found if position == 0}
        few = window.view(table, {CLASS_SEGMENT})
        assert few is not None
        assert few.keys == [key for key in view.keys if key.segment in (ALL_VALUE, "region", CLASS_SEGMENT)]
        plain = window.view(table, ())
        assert plain is not None
        assert plain.keys == [key for key in view.keys if key.segment in (ALL_VALUE, "region")]


@given(data=st.data())
@settings(max_examples=100)
def test_no_two_entries_share_a_place_and_none_ever_moves(data: st.DataObject) -> None:
    table = table_of(20)
    space = SlotSpace(table)
    taken: dict[int, tuple[int, int]] = {}
    where: dict[tuple[int, int], int] = {}
    for _ in range(5):
        sums = sums_of(data.draw(entries(table)))
        places = zip(sums.slot.tolist(), sums.position.tolist(), space.positions(sums).tolist(), strict=True)
        for slot, position, place in places:
            assert 0 <= place < space.size
            assert taken.setdefault(place, (slot, position)) == (slot, position)
            assert where.setdefault((slot, position), place) == place
    zero = [place for (_, position), place in where.items() if position == 0]
    slots = np.array([slot for slot, position in where if position == 0], dtype=np.int64)
    assert space.first(slots).tolist() == zero
    assert set(space.placed().tolist()) == {slot for slot, _ in where}


def test_every_position_of_the_widest_cells_has_a_place_of_its_own() -> None:
    table = table_of(len(SEGMENTS) * 2)
    space = SlotSpace(table)
    sums = sums_of([(slot, position, slot * 100_000 + position + 1) for slot in range(len(table)) for position in range(table.width(slot))])
    places = space.positions(sums)
    assert len(np.unique(places)) == len(places)
    array = np.zeros(space.size, dtype=np.int64)
    array[places] = sums.values
    for slot in range(len(table)):
        assert space.cell(slot, array).tolist() == [slot * 100_000 + position + 1 for position in range(table.width(slot))]
        assert space.take(slot, array).tolist() == [slot * 100_000 + position + 1 for position in range(table.width(slot))]
        assert not space.cell(slot, array).any()
    assert not array.any()


@pytest.mark.parametrize("segment", SEGMENTS)
def test_one_event_in_a_wide_cell_takes_a_few_pages(segment: str) -> None:
    table = SeriesTable({LAYOUT.fingerprint: LAYOUT})
    slot = table.slot(SeriesKey("m", LAYOUT.fingerprint, "1", segment, "v"))
    space = SlotSpace(table)
    window = RunningWindow(SPEC, space)
    window.advance(NOW_MS, nothing, 0)
    window.apply(HOUR, sums_of([(slot, 0, 1), (slot, table.width(slot) - 1, 1)]))
    assert space.size <= 2 * 64
    view = window.view(table, RESERVED_SEGMENTS)
    assert view is not None
    assert [cell.sum() for cell in view.cells] == [2]


def test_a_cell_that_no_window_has_is_zero() -> None:
    """Also where another window of the same space has made room for it since."""
    table = table_of(3)
    space = SlotSpace(table)
    first, second = (RunningWindow(SPEC, space) for _ in range(2))
    for window in (first, second):
        window.advance(NOW_MS, nothing, 0)
    first.apply(HOUR, sums_of([(0, 0, 1)]))
    second.apply(HOUR, sums_of([(0, 64, 1), (0, 0, 1), (2, 0, 4)]))
    view = first.view(table, RESERVED_SEGMENTS)
    assert view is not None
    assert [(key.value, np.flatnonzero(cell).tolist()) for key, cell in zip(view.keys, view.cells, strict=True)] == [("v0", [0])]
    assert not space.cell(1, np.zeros(0, dtype=np.int64)).any()


def test_scores_are_never_evicted() -> None:
    """Six names are more than the least cap of four, and must not be mixed."""
    table = SeriesTable({LAYOUT.fingerprint: LAYOUT})
    names = [f"{domain}{sign}" for domain in ("unknown", "id", "ood") for sign in "+-"]
    slots = [table.group_slot(Family("m", LAYOUT.fingerprint, "1", SCORE_SEGMENT), name) for name in names]
    assert [table.key(slot).value for slot in slots] == names
    assert not table.evictions
    classes = [table.group_slot(Family("m", LAYOUT.fingerprint, "1", CLASS_SEGMENT), name) for name in names]
    assert {table.key(slot).value for slot in classes} > {OTHER_VALUE}
