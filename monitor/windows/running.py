"""A running window: the sums of a run of panes, kept as panes enter and leave and as late changes arrive.

All windows of a shard share a `SlotSpace`, which says where a series' cell lies in a window's flat array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from monitor.config import LONGEST_MINUTE_WINDOW_MS
from monitor.errors import CapacityError
from monitor.names import RESERVED_PREFIX
from monitor.statistics.fixed_point import I64, SAFE_EVENTS
from monitor.statistics.pane import HOUR, MINUTE, PaneLevel, PaneSums, cell_sums
from monitor.statistics.series import Eviction, SeriesKey, SeriesTable

_PAGE_BITS = 6
_PAGE_MASK = (1 << _PAGE_BITS) - 1

ReadPanes = Callable[[PaneLevel, int, int], PaneSums]
"""Sums of the panes [first, end) of a level, as known now."""


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """A configured window `[now - lag - length, now - lag)`.

    Attributes:
        name: Value of the `window` label.
        length_ms: Whole panes of its level.
        lag_ms: How long it waits for labels.
        by_hours: Whether it is made of hours however short it is; length and moments are whole hours then.
    """

    name: str
    length_ms: int
    lag_ms: int
    by_hours: bool = False

    @classmethod
    def asked(cls, length_ms: int, lag_ms: int, at_ms: int) -> WindowSpec:
        """A window that is asked for at a moment, not shown all the time: made of hours wherever hours answer the question.

        Hours are kept as long as history is, and hold the values that repeat, so that ranks have a closer bound.
        """
        return cls("asked", length_ms, lag_ms, by_hours=all(one % HOUR.pane_ms == 0 for one in (length_ms, lag_ms, at_ms)))

    @property
    def level(self) -> PaneLevel:
        """Panes that it is made of."""
        return MINUTE if self.length_ms <= LONGEST_MINUTE_WINDOW_MS and not self.by_hours else HOUR

    def panes(self, now_ms: int) -> tuple[int, int]:
        """Panes [first, end) at a moment; the end is floor(now - lag)."""
        end = (now_ms - self.lag_ms) // self.level.pane_ms
        return end - self.length_ms // self.level.pane_ms, end


class SlotSpace:
    """Where the sums of series lie in a window's flat array: by pages, for most of a wide cell is never touched.

    Args:
        table: Slots and widths of the shard's series.
    """

    def __init__(self, table: SeriesTable) -> None:
        self._table = table
        self._first_page = np.full(64, -1, dtype=np.int64)
        self._offsets = np.full(1024, -1, dtype=np.int64)
        self._pages = 0
        self.size = 0

    def positions(self, sums: PaneSums) -> I64:
        """Where each entry lies in a window's array; makes room for pages not touched before."""
        slots = sums.slot
        if len(self._first_page) < len(self._table):
            self._first_page = _grown(self._first_page, len(self._table), -1)
        first = self._first_page[slots]
        if len(first) and int(first.min()) < 0:
            for slot in np.unique(slots[first < 0]).tolist():
                self._first_page[slot] = self._pages
                self._pages += self._pages_of(slot)
            self._offsets = _grown(self._offsets, self._pages, -1)
            first = self._first_page[slots]
        page = first + (sums.position >> _PAGE_BITS)
        offsets = self._offsets[page]
        if len(offsets) and int(offsets.min()) < 0:
            new = np.unique(page[offsets < 0])
            self._offsets[new] = self.size + (np.arange(len(new)) << _PAGE_BITS)
            self.size += len(new) << _PAGE_BITS
            offsets = self._offsets[page]
        return offsets + (sums.position & _PAGE_MASK)

    def placed(self) -> I64:
        """Slots that have a place."""
        return np.flatnonzero(self._first_page >= 0)

    def first(self, slots: I64) -> I64:
        """Where position 0 of each cell lies, which only an entry there makes room for; -1 without a place."""
        return self._offsets[self._first_page[slots]]

    def cell(self, slot: int, sums: I64) -> I64:
        """A series' cell out of a window's array; out of several arrays, one in each row, a cell in each row."""
        leading = sums.shape[:-1]
        pages = np.zeros((*leading, self._pages_of(slot), 1 << _PAGE_BITS), dtype=np.int64)
        places = self._places(slot)
        at = np.flatnonzero((places >= 0) & (places < sums.shape[-1]))
        pages[..., at, :] = sums[..., places[at][:, None] + np.arange(1 << _PAGE_BITS)]
        return pages.reshape(*leading, -1)[..., : self._table.width(slot)]

    def take(self, slot: int, sums: I64) -> I64:
        """A series' cell out of a window's array, where it is 0 afterwards."""
        cell = self.cell(slot, sums)
        places = self._places(slot)
        for place in places[(places >= 0) & (places < len(sums))].tolist():
            sums[place : place + (1 << _PAGE_BITS)] = 0
        return cell

    def _places(self, slot: int) -> I64:
        first = int(self._first_page[slot]) if slot < len(self._first_page) else -1
        return self._offsets[first : first + self._pages_of(slot)] if first >= 0 else np.empty(0, dtype=np.int64)

    def _pages_of(self, slot: int) -> int:
        return -(-self._table.width(slot) >> _PAGE_BITS)


def _grown(array: I64, size: int, fill: int) -> I64:
    """The array, or a larger one with the same beginning that has room for `size`."""
    if len(array) >= size:
        return array
    grown = np.full(max(2 * len(array), size), fill, dtype=np.int64)
    grown[: len(array)] = array
    return grown


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


class Position(NamedTuple):
    """A window's panes [first, end), and its flat array of sums then."""

    panes: tuple[int, int]
    sums: I64


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

        A window of hours takes changes of minutes too. One of minutes takes none of the hours: these are older, or of segments that
        are kept by the hour from the start.
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
            if self._panes is None:
                continue
            cell = self._space.take(eviction.slot, self._sums)
            positions = np.flatnonzero(cell)
            self._add(cell_sums(eviction.other, positions, cell[positions]), 1)

    def view(self, table: SeriesTable, reserved: Collection[str]) -> WindowSums | None:
        """A copy of the sums by series; None while the window is unavailable.

        Args:
            table: Slots of the shard.
            reserved: Reserved segments that are wanted; all others are.

        Raises:
            CapacityError: A series has so many predictions that its sums could have overflowed.
        """
        if self._panes is None:
            return None
        return self.views([Position(self._panes, self._sums)], table, reserved)[0]

    def position(self) -> Position | None:
        """Where the window is now, with a copy of its sums, for `views`; None while it is unavailable."""
        return None if self._panes is None else Position(self._panes, self._sums.copy())

    def views(self, positions: Sequence[Position], table: SeriesTable, reserved: Collection[str]) -> list[WindowSums]:
        """The sums by series at several positions of the window, at a cost that grows little with their number; see `view`."""
        size = max(len(one.sums) for one in positions)
        arrays = [_grown(one.sums, size, 0)[:size] for one in positions]
        sums = arrays[0][None] if len(arrays) == 1 else np.stack(arrays)
        slots = self._space.placed()
        first = self._space.first(slots)
        slots, first = slots[(first >= 0) & (first < size)], first[(first >= 0) & (first < size)]
        predictions = sums[:, first]
        if predictions.size and int(predictions.max()) > SAFE_EVENTS:
            raise CapacityError(
                f"window {self.spec.name}: a series has more than {SAFE_EVENTS} predictions, its sums could overflow; shorten it"
            )
        found: list[tuple[list[SeriesKey], list[I64]]] = [([], []) for _ in positions]
        live = predictions > 0
        for place in np.flatnonzero(live.any(axis=0)).tolist():
            key = table.key(int(slots[place]))
            if not key.segment.startswith(RESERVED_PREFIX) or key.segment in reserved:
                cells = self._space.cell(int(slots[place]), sums)
                for row in np.flatnonzero(live[:, place]).tolist():
                    found[row][0].append(key)
                    found[row][1].append(cells[row])
        pane_ms = self.spec.level.pane_ms
        return [
            WindowSums(self.spec.name, first_pane * pane_ms, end_pane * pane_ms, keys, cells)
            for (first_pane, end_pane), (keys, cells) in zip((one.panes for one in positions), found, strict=True)
        ]

    def _add(self, sums: PaneSums, sign: int) -> None:
        positions = self._space.positions(sums)
        self._sums = _grown(self._sums, self._space.size, 0)
        np.add.at(self._sums, positions, sums.values if sign > 0 else -sums.values)
