"""Matured sums: what the evidence tests take of hour panes, and its running sum over all panes that have matured.

Only segment `all` counts here, merged to the bins of the graded grid and over layouts, so that a version is one cell however
often its layout changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from monitor.evidence.cell import WIDTH, positions
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR, MAX_SLOTS, POSITION_BITS, PaneLevel, PaneSums, merge
from monitor.statistics.segment import ALL
from monitor.statistics.series import SeriesKey, SeriesTable

VersionKey = tuple[str, str]
"""A model and one of its versions."""

KeyT = TypeVar("KeyT", bound=Hashable)

_POSITION_MASK = (1 << POSITION_BITS) - 1
_OTHER = 0
"""Row of the table of positions for series of other segments: nothing of them is taken."""


class Projection:
    """From sums of any segment and layout to evidence cells.

    Args:
        table: Slots of the shard's series.
    """

    def __init__(self, table: SeriesTable) -> None:
        self._table = table
        self._row_of_layout: dict[str, int] = {}
        self._positions: I64 = np.full((1, 1), -1, dtype=np.int64)
        self._row_of_slot = np.empty(0, dtype=np.int64)

    def project(self, sums: PaneSums) -> PaneSums:
        """The same panes and slots, positions those of `evidence.cell`; keys ascending."""
        self._see_new_slots()
        row = self._row_of_slot[sums.slot]
        ours = np.flatnonzero(row != _OTHER)
        place = self._positions[row[ours], sums.position[ours]]
        taken = place >= 0
        ours = ours[taken]
        return merge([PaneSums((sums.keys[ours] & ~_POSITION_MASK) | place[taken], sums.values[ours])])

    def _see_new_slots(self) -> None:
        known = len(self._row_of_slot)
        if known < len(self._table):
            keys = [self._table.key(slot) for slot in range(known, len(self._table))]
            rows = [self._row(key) if key.shape is ALL else _OTHER for key in keys]
            self._row_of_slot = np.concatenate((self._row_of_slot, np.array(rows, dtype=np.int64)))

    def _row(self, key: SeriesKey) -> int:
        if key.layout not in self._row_of_layout:
            added = positions(self._table.layout(key))
            rows, width = self._positions.shape
            grown = np.full((rows + 1, max(width, len(added))), -1, dtype=np.int64)
            grown[:rows, :width] = self._positions
            grown[rows, : len(added)] = added
            self._positions = grown
            self._row_of_layout[key.layout] = rows
        return self._row_of_layout[key.layout]


class MaturedSums:
    """Running sums of all panes that have matured, as they are known now, by version.

    Args:
        table: Slots of the shard's series.

    Attributes:
        end_pane: Hour panes before it are summed; there is a gap to none.
    """

    def __init__(self, table: SeriesTable) -> None:
        self._table = table
        self._projection = Projection(table)
        self._cells: dict[VersionKey, I64] = {}
        self._changed: set[VersionKey] = set()
        self.end_pane = 0

    def project(self, sums: PaneSums) -> PaneSums:
        """What counts here of any panes (see `Projection.project`)."""
        return self._projection.project(sums)

    def restart(self, carried: Mapping[VersionKey, I64]) -> None:
        """Forget everything but what was carried of panes that are gone."""
        self._changed |= self._cells.keys() | carried.keys()
        self._cells = dict(carried)
        self.end_pane = 0

    def enter(self, panes: PaneSums, end_pane: int) -> None:
        """Take in projected panes from `end_pane` on, and move it."""
        self._add(panes)
        self.end_pane = end_pane

    def apply(self, level: PaneLevel, sums: PaneSums) -> None:
        """Take in changes to panes of a level that have matured already; keys ascending."""
        late = sums.between(0, self.end_pane * (HOUR.pane_ms // level.pane_ms))
        if len(late.keys):
            self._add(self._projection.project(late))

    def take_changed(self) -> dict[VersionKey, I64]:
        """Cells that have changed since the last call; they are replaced, never written into."""
        changed = {version: self._cells.get(version, np.zeros(WIDTH, dtype=np.int64)) for version in self._changed}
        self._changed = set()
        return changed

    def _add(self, panes: PaneSums) -> None:
        for version, cell in cells_by_version(panes, self._table):
            add_cell(self._cells, version, cell)
            self._changed.add(version)


def cells_by_version(panes: PaneSums, table: SeriesTable) -> Iterator[tuple[VersionKey, I64]]:
    """Cells of projected panes, all panes summed; a version has one a layout."""
    slots, cells = _cells(panes, panes.slot)
    for slot, cell in zip(slots, cells, strict=True):
        yield _version_of(table, slot), cell


def cells_by_pane(panes: PaneSums, table: SeriesTable) -> dict[VersionKey, dict[int, I64]]:
    """Cells of projected panes by version and pane number, all layouts of a version summed."""
    found: dict[VersionKey, dict[int, I64]] = {}
    rows, cells = _cells(panes, panes.keys >> POSITION_BITS)
    for row, cell in zip(rows, cells, strict=True):
        pane, slot = divmod(row, MAX_SLOTS)
        add_cell(found.setdefault(_version_of(table, slot), {}), pane, cell)
    return found


def add_cell(cells: dict[KeyT, I64], key: KeyT, cell: I64) -> None:
    """Add a cell to the one that a key has, if it has one."""
    cells[key] = cells[key] + cell if key in cells else cell


def _cells(panes: PaneSums, groups: I64) -> tuple[list[int], I64]:
    """Values of `groups`, and the cell of the entries that have each."""
    found, places = np.unique(groups, return_inverse=True)
    cells = np.zeros((len(found), WIDTH), dtype=np.int64)
    np.add.at(cells, (places, panes.position), panes.values)
    return found.tolist(), cells


def _version_of(table: SeriesTable, slot: int) -> VersionKey:
    key = table.key(slot)
    return key.model, key.version
