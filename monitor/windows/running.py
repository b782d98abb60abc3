"""A running window: the sums of a run of panes, kept as panes enter and leave and as late changes arrive.

All windows of a shard share a `SlotSpace`, which says where a series' cell lies in a window's flat array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from monitor.config import LONGEST_MINUTE_WINDOW_MS
from monitor.errors import CapacityError
from monitor.statistics.fixed_point import I64, SAFE_EVENTS
from monitor.statistics.pane import HOUR, MINUTE, PaneLevel, PaneSums, cell_sums
from monitor.statistics.series import Eviction, SeriesKey, SeriesTable

ReadPanes = Callable[[PaneLevel, int, int], PaneSums]
"""Sums of the panes [first, end) of a level, as known now."""


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A configured window `[now - lag - length, now - lag)`.

    Attributes:
        name: Value of the `window` label.
        length_ms: Whole panes of its level.
        lag_ms: How long it waits for labels.
    """

    name: str
    length_ms: int
    lag_ms: int

    @property
    def level(self) -> PaneLevel:
        """Panes that it is made of."""
        return MINUTE if self.length_ms <= LONGEST_MINUTE_WINDOW_MS else HOUR

    def panes(self, now_ms: int) -> tuple[int, int]:
        """Panes [first, end) at a moment; the end is floor(now - lag)."""
        end = (now_ms - self.lag_ms) // self.level.pane_ms
        return end - self.length_ms // self.level.pane_ms, end


class SlotSpace:
    """Offsets of the cells of those series that have shown up in a window.

    Args:
        table: Slots and widths of the shard's series.
    """

    def __init__(self, table: SeriesTable) -> None:
        self._table = table
        self._offsets = np.full(64, -1, dtype=np.int64)
        self.size = 0

    def positions(self, sums: PaneSums) -> I64:
        """Where each entry lies in a window's array; makes room for series not seen before."""
        slots = sums.slot
        if len(self._offsets) < len(self._table):
            grown = np.full(max(2 * len(self._offsets), len(self._table)), -1, dtype=np.int64)
            grown[: len(self._offsets)] = self._offsets
            self._offsets = grown
        offsets = self._offsets[slots]
        if len(offsets) and int(offsets.min()) < 0:
            for slot in np.unique(slots[offsets < 0]).tolist():
                self._offsets[slot] = self.size
                self.size += self._table.width(slot)
            offsets = self._offsets[slots]
        return offsets + sums.position

    def placed(self) -> I64:
        """Slots that have a place."""
        return np.flatnonzero(self._offsets >= 0)

    def width(self, slot: int) -> int:
        """Integers in a slot's cell."""
        return self._table.width(slot)

    def offset(self, slot: int) -> int:
        """Offset of a slot's cell, -1 without one."""
        return int(self._offsets[slot]) if slot < len(self._offsets) else -1


@dataclass(frozen=True, slots=True)
class WindowSums:
    """Sums of one window by series, ready to be evaluated.

    Attributes:
        name: Of the window.
        start_ms: Event time of its first pane.
        end_ms: Excluded.
        keys: Series with at least one prediction.
        cells: Their cells, each as wide as its series' layout makes it.
    """

    name: str
    start_ms: int
    end_ms: int
    keys: list[SeriesKey]
    cells: list[I64]


class RunningWindow:
    """Running sums of one configured window.

    Args:
        spec: Which panes it covers at a moment.
        space: Where cells lie.
    """

    def __init__(self, spec: WindowSpec, space: SlotSpace) -> None:
        self.spec = spec
        self._space = space
        self._sums = np.zeros(0, dtype=np.int64)
        self._panes: tuple[int, int] | None = None

    def apply(self, level: PaneLevel, sums: PaneSums) -> None:
        """Take in changes to panes of a level, wherever the window covers them; keys ascending.

        A window of hours takes changes of minutes too; one of minutes has none of the hours, which are older.
        """
        if self._panes is not None and level.pane_ms <= self.spec.level.pane_ms:
            ratio = self.spec.level.pane_ms // level.pane_ms
            self._add(sums.between(self._panes[0] * ratio, self._panes[1] * ratio), 1)

    def advance(self, now_ms: int, read: ReadPanes, kept_from_ms: int) -> None:
        """Move to a moment: panes enter and leave; after a jump, or backwards, the sums are made anew.

        Args:
            now_ms: The moment.
            read: Reads panes.
            kept_from_ms: Panes that start before it are not kept; a window that needs them is unavailable.
        """
        first, end = self.spec.panes(now_ms)
        level = self.spec.level
        if first * level.pane_ms < kept_from_ms:
            self._panes = None
            return
        panes = self._panes
        # Panes that are no longer kept cannot be subtracted when they leave: then, too, the sums are made anew.
        if panes is None or not panes[0] <= first <= panes[1] <= end or panes[0] * level.pane_ms < kept_from_ms:
            self._sums = np.zeros(self._space.size, dtype=np.int64)
            self._panes = (first, end)
            self._add(read(level, first, end), 1)
            return
        old_first, old_end = panes
        self._panes = (first, end)
        if first > old_first:
            self._add(read(level, old_first, first), -1)
        if end > old_end:
            self._add(read(level, old_end, end), 1)

    def redirect(self, evictions: Iterable[Eviction]) -> None:
        """Add what evicted series hold to the series that take over."""
        for eviction in evictions:
            source = self._space.offset(eviction.slot)
            if self._panes is None or not 0 <= source < len(self._sums):
                continue
            width = self._space.width(eviction.slot)
            cell = self._sums[source : source + width].copy()
            self._sums[source : source + width] = 0
            positions = np.flatnonzero(cell)
            self._add(cell_sums(eviction.other, positions, cell[positions]), 1)

    def view(self, table: SeriesTable) -> WindowSums | None:
        """A copy of the sums by series; None while the window is unavailable.

        Raises:
            CapacityError: A series has so many predictions that its sums could have overflowed.
        """
        if self._panes is None:
            return None
        slots = [slot for slot in self._space.placed().tolist() if self._space.offset(slot) < len(self._sums)]
        offsets = np.array([self._space.offset(slot) for slot in slots], dtype=np.int64)
        predictions = self._sums[offsets]
        if len(predictions) and int(predictions.max()) > SAFE_EVENTS:
            raise CapacityError(
                f"window {self.spec.name}: a series has more than {SAFE_EVENTS} predictions, its sums could overflow; shorten it"
            )
        pane_ms = self.spec.level.pane_ms
        live = np.flatnonzero(predictions > 0).tolist()
        return WindowSums(
            self.spec.name,
            self._panes[0] * pane_ms,
            self._panes[1] * pane_ms,
            [table.key(slots[one]) for one in live],
            [self._sums[offsets[one] : offsets[one] + table.width(slots[one])].copy() for one in live],
        )

    def _add(self, sums: PaneSums, sign: int) -> None:
        positions = self._space.positions(sums)
        if len(self._sums) < self._space.size:
            grown = np.zeros(max(self._space.size, 2 * len(self._sums)), dtype=np.int64)
            grown[: len(self._sums)] = self._sums
            self._sums = grown
        np.add.at(self._sums, positions, sums.values if sign > 0 else -sums.values)
