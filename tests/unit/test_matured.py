"""Matured sums: what enters and what is corrected, whatever the layout; and what is kept of panes that are dropped."""

from __future__ import annotations

import numpy as np

from monitor.evidence.cell import SUMS, WIDTH, parts, positions
from monitor.pipeline.matured import MaturedPanes
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout, report_edges
from monitor.statistics.pane import HOUR, MINUTE, PANE_SHIFT, POSITION_BITS, PaneLevel, PaneSums, merge
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.windows.matured import MaturedSums
from tests.doubles.memory_store import MemoryStore

LAYOUTS = {name: Layout(report_edges(bins, None), None, None, True, None, ("g",), 50) for name, bins in (("ten", 10), ("seven", 7))}
DAY = HOUR.panes_per_chunk


def new_table() -> SeriesTable:
    table = SeriesTable(LAYOUTS)
    for version in ("a", "b"):
        for name in LAYOUTS:
            table.slot(SeriesKey("m", name, version, "all", "all"))
            table.slot(SeriesKey("m", name, version, "g", "x"))
    return table


def drawn(table: SeriesTable, seed: int, first: int, end: int) -> PaneSums:
    """Random sums of all series in panes [first, end)."""
    rng = np.random.default_rng(seed)
    found = []
    for slot in range(len(table)):
        pane = rng.integers(first, end, 30)
        place = rng.integers(0, table.width(slot), 30)
        found.append(PaneSums((pane << PANE_SHIFT) | (slot << POSITION_BITS) | place, rng.integers(-5, 50, 30)))
    return merge(found)


def expected(table: SeriesTable, sums: PaneSums, level: PaneLevel = HOUR, end_pane: int = 1 << 26) -> dict[tuple[str, str], I64]:
    """Cells by version, one entry after the other."""
    cells: dict[tuple[str, str], I64] = {}
    for pane, slot, place, value in zip(sums.pane, sums.slot, sums.position, sums.values, strict=True):
        key = table.key(int(slot))
        to = positions(table.layout(key))[place] if key.shape is ALL else -1
        if to >= 0 and pane * level.pane_ms < end_pane * HOUR.pane_ms:
            cells.setdefault((key.model, key.version), np.zeros(WIDTH, dtype=np.int64))[to] += value
    return cells


def plus(one: dict[tuple[str, str], I64], other: dict[tuple[str, str], I64]) -> dict[tuple[str, str], I64]:
    zero = np.zeros(WIDTH, dtype=np.int64)
    return {version: one.get(version, zero) + other.get(version, zero) for version in one.keys() | other.keys()}


def check(found: dict[tuple[str, str], I64], wanted: dict[tuple[str, str], I64]) -> None:
    assert {version for version, cell in found.items() if cell.any()} == {version for version, cell in wanted.items() if cell.any()}
    for version, cell in wanted.items():
        assert not cell.any() or np.array_equal(found[version], cell)


def test_only_segment_all_counts_and_layouts_add_up() -> None:
    table = new_table()
    sums = MaturedSums(table)
    panes = drawn(table, 1, 0, 40)
    sums.enter(sums.project(panes), 40)
    wanted = expected(table, panes)
    assert any(parts(cell)[SUMS.index("correct")].any() for cell in wanted.values())
    check(sums.take_changed(), wanted)
    assert sums.take_changed() == {}


def test_changes_count_where_panes_have_matured_and_nowhere_else() -> None:
    table = new_table()
    sums = MaturedSums(table)
    panes, hours, minutes = drawn(table, 2, 0, 40), drawn(table, 3, 0, 80), drawn(table, 4, 0, 80 * 60)
    sums.enter(sums.project(panes), 40)
    sums.apply(HOUR, hours)
    sums.apply(MINUTE, minutes)
    wanted = plus(expected(table, panes), plus(expected(table, hours, HOUR, 40), expected(table, minutes, MINUTE, 40)))
    check(sums.take_changed(), wanted)


def test_a_series_that_comes_later_counts() -> None:
    table = SeriesTable(LAYOUTS)
    sums = MaturedSums(table)
    assert len(sums.project(PaneSums.empty()).keys) == 0
    table.slot(SeriesKey("m", "ten", "a", "g", "x"))
    assert len(sums.project(drawn(table, 5, 0, 3)).keys) == 0
    table.slot(SeriesKey("m", "seven", "a", "all", "all"))
    panes = drawn(table, 6, 0, 3)
    sums.enter(sums.project(panes), 3)
    check(sums.take_changed(), expected(table, panes))


def test_panes_that_are_dropped_are_read_until_they_have_settled_and_then_carried() -> None:
    table, store = new_table(), MemoryStore()
    hours = drawn(table, 7, 0, 5 * DAY)
    kept = {"from": 0}

    def read_hours(first: int, end: int) -> PaneSums:
        return hours.between(max(first, kept["from"]), end)

    panes = MaturedPanes(store, table, read_hours)
    for day, settled in ((2, 0), (3, 1 * DAY), (4, 5 * DAY)):
        panes.settled_pane = settled
        changes = Changes()
        panes.expire(hours.between(kept["from"], day * DAY), changes)
        store.commit(changes)
        kept["from"] = day * DAY
        for one in (panes, MaturedPanes(store.copy(), table, read_hours)):
            one.restart()
            one.sums.enter(one.read(0, 5 * DAY), 5 * DAY)
            check(one.sums.take_changed(), expected(table, hours))
        assert len(list(store.scan(*keys.prefix_range(b"e")))) == {2: 2, 3: 2, 4: 0}[day]
