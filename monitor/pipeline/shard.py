"""A shard: the state of same-numbered partitions, in memory and in its store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import merge as merged
from itertools import chain, groupby
from operator import itemgetter

import msgspec
import numpy as np
from numpy.typing import NDArray

from monitor.errors import StateError
from monitor.events.contract import LATEST_MS
from monitor.pipeline.account import Account
from monitor.pipeline.epochs import EpochBook, LayoutOf
from monitor.pipeline.ledger import Chunks, Ledger, by_chunk
from monitor.pipeline.matured import MaturedPanes
from monitor.sources.protocol import Position
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.layout import Layout
from monitor.statistics.pane import HOUR, MINUTE, TABLES, PaneLevel, PaneSums, coarser, merge
from monitor.statistics.series import SeriesKey, SeriesTable
from monitor.windows.running import RunningWindow, SlotSpace, WindowSpec, WindowSums

Deltas = Mapping[str, Chunks]
"""What a batch adds to the panes of each level, by the level's name."""

_MINUTES = HOUR.pane_ms // MINUTE.pane_ms


class _Stored(msgspec.Struct):
    """What each checkpoint writes whole: small, and all of it changes."""

    sequence: int
    positions: dict[str, dict[str, int | str]]
    newest_ms: dict[str, int]
    minute_floor_ms: int
    outbox: int
    account: bytes
    hour_floor_ms: int


class Shard:
    """State of one shard.

    Args:
        store: Its store; read at once.
        layout_of: The configured layouts, or None to look at the state without taking anything in.
        windows: The configured windows.

    Attributes:
        lock: Held while the state in memory changes or is read by another thread.
        batch: Held while a batch is in work, from when it looks what has matured until it is committed; taken before `lock`.
        sequence: Number of the last checkpoint.
        positions: Where each partition goes on.
        newest_ms: Newest accepted time of each partition.
        account: What became of every record; changes while a batch is in work.
        published: A copy of it as of the last checkpoint, for other threads.
        outbox: Number of refused records ever put into the outbox.
        minute_floor_ms: Event time, at a whole hour, from which on panes are kept by the minute; older ones by the hour.
        hour_floor_ms: Event time, at a whole chunk, from which on panes are kept at all.
        matured: What the evidence tests see of the panes.
        judged_pane: Hour panes before it have entered the evidence tests: what changes in them is a revision.
        resolved: By slot, the one that holds its sums as of the last commit; what the batch in work evicts does not count yet.

    Raises:
        StateError: The store holds something else than a shard.
    """

    def __init__(self, store: StateStore, layout_of: LayoutOf | None, windows: Sequence[WindowSpec]) -> None:
        self.store = store
        self.lock = threading.RLock()
        self.batch = threading.RLock()
        self.sequence = 0
        self.positions: dict[str, Position] = {}
        self.newest_ms: dict[str, int] = {}
        self.account = Account()
        self.outbox = 0
        self.minute_floor_ms = 0
        self.hour_floor_ms = 0
        self.judged_pane = 0
        self.book = EpochBook(layout_of)
        self.layouts = self.book.layouts
        self.epochs = self.book.epochs
        self.series = SeriesTable(self.layouts)
        try:
            self._load()
            self.matured = MaturedPanes(store, self.series, lambda first, end: self.read(HOUR, first, end))
        except (msgspec.DecodeError, ValueError, TypeError, KeyError) as error:
            raise StateError(f"the stored checkpoint is damaged: {error}; restore the state from a backup or start anew") from error
        self._stored_series = len(self.series)
        self._stored_redirects = len(self.series.redirects)
        self.resolved = self.series.resolved()
        self.ledgers = {level.name: Ledger(level, store) for level in (MINUTE, HOUR, TABLES)}
        space = SlotSpace(self.series)
        self.windows = [RunningWindow(spec, space) for spec in windows]
        if not any(spec.level is MINUTE for spec in windows):
            self.minute_floor_ms = LATEST_MS
        elif self.minute_floor_ms > self.newest_event_ms:
            # So far there were no windows of minutes: everything read is kept by the hour.
            self.minute_floor_ms = (self.newest_event_ms // MINUTE.chunk_ms + 1) * MINUTE.chunk_ms if self.newest_event_ms else 0
        if layout_of is not None:
            span = self.span_ms()
            self.book.reconcile(0 if span is None else span[1])
        self.published = self.account.copy()

    def stage(self, changes: Changes, deltas: Deltas) -> None:
        """Add the next checkpoint to `changes`: pane deltas by level, new series, and the small whole."""
        self.sequence += 1
        self.account.folded += len(self.series.evictions)
        for name, chunks in deltas.items():
            self.ledgers[name].stage(chunks, self.sequence, changes)
        for slot in range(self._stored_series, len(self.series)):
            changes.puts.append((keys.series(slot), msgspec.msgpack.encode(self.series.key(slot))))
        self._stored_series = len(self.series)
        if len(self.series.redirects) > self._stored_redirects:
            changes.puts += [(keys.redirect(slot), other.to_bytes(4, "big")) for slot, other in self.series.redirects.items()]
            self._stored_redirects = len(self.series.redirects)
        if self.book.changed:
            changes.puts.append((keys.LAYOUTS, self.book.to_bytes()))
            self.book.changed = False
        stored = _Stored(
            self.sequence,
            {name: dict(position) for name, position in self.positions.items()},
            self.newest_ms,
            self.minute_floor_ms,
            self.outbox,
            self.account.to_bytes(),
            self.hour_floor_ms,
        )
        changes.puts.append((keys.CHECKPOINT, msgspec.msgpack.encode(stored)))

    def commit(self, changes: Changes, deltas: Deltas, reached: Callable[[str], None]) -> None:
        """Store a checkpoint and take its deltas into memory: panes and every window that covers them.

        No other thread may read in between: it could see in the store what memory does not know yet, and count it twice.

        Args:
            changes: What `stage` made.
            deltas: What was staged.
            reached: Told when the store has it (`committed`).
        """
        with self.lock:
            self.store.commit(changes)
            reached("committed")
            if self.series.evictions or len(self.resolved) < len(self.series):
                self.resolved = self.series.resolved()
            if self.series.evictions:
                for window in self.windows:
                    window.redirect(self.series.evictions)
                self.series.evictions.clear()
            for name, chunks in deltas.items():
                self.ledgers[name].apply(chunks)
                for window in self.windows:
                    for part in chain.from_iterable(chunks.values()):
                        window.apply(self.ledgers[name].level, part)
                for part in chain.from_iterable(chunks.values()):
                    self.matured.sums.apply(self.ledgers[name].level, part)
            self.published = self.account.copy()

    def read(self, level: PaneLevel, first_pane: int, end_pane: int) -> PaneSums:
        """Sums of panes [first, end), evicted series resolved; hours include what is still kept by the minute."""
        sums = self.ledgers[level.name].read(first_pane, end_pane)
        if level is HOUR:
            minutes = self.ledgers[MINUTE.name].read(first_pane * _MINUTES, end_pane * _MINUTES)
            sums = _together([sums, self.ledgers[TABLES.name].read(first_pane, end_pane), coarser([minutes], _MINUTES)])
        return self._resolve(sums)

    def scan(self, level: PaneLevel, first_chunk: int, end_chunk: int, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """The same of some series alone, by chunk in [first, end), ascending: from the store; see `Ledger.scan`.

        Nothing may be committed until it is at its end: minutes that are folded meanwhile would count twice or not at all.

        Args:
            level: Which panes.
            first_chunk: The first.
            end_chunk: Excluded.
            wanted: Whether each slot is; evicted ones count as the one that took over.
        """
        if not len(wanted):
            return
        slots = wanted[self.resolved]
        found = [self.ledgers[level.name].scan(first_chunk, end_chunk, slots)]
        if level is HOUR:
            # Hours that are still kept by the minute are few, however long the stretch.
            per_day = HOUR.chunk_ms // MINUTE.chunk_ms
            minutes = self.ledgers[MINUTE.name].scan(first_chunk * per_day, end_chunk * per_day, slots)
            found.append(iter(coarser([sums for _, sums in minutes], _MINUTES).split(HOUR.panes_per_chunk)))
            if any(self.series.key(slot).shape.hourly for slot in np.flatnonzero(wanted).tolist()):
                found.append(self.ledgers[TABLES.name].scan(first_chunk, end_chunk, slots))
        for chunk, parts in groupby(merged(*found, key=itemgetter(0)), key=itemgetter(0)):
            yield chunk, self._resolve(_together([part for _, part in parts]))

    def advance(self, now_ms: int, reserved: Collection[str] = ()) -> tuple[list[WindowSums | None], Account]:
        """Move every window to a moment and copy its sums, with the account of the same moment.

        Args:
            now_ms: The moment.
            reserved: Reserved segments whose sums are wanted beside all others.

        Returns:
            Sums by window, None for a window whose panes are not kept; and what became of the records in them.
        """
        with self.lock:
            found = []
            for window in self.windows:
                window.advance(now_ms, self.read, self.kept_from_ms(window.spec.level))
                found.append(window.view(self.series, reserved))
            return found, self.published

    def kept_from_ms(self, level: PaneLevel) -> int:
        """Event time from which on panes of a level are kept."""
        return self.minute_floor_ms if level is MINUTE else self.hour_floor_ms

    @property
    def newest_event_ms(self) -> int:
        """Newest event time of any prediction; 0 before the first."""
        return self.account.newest_ms.get("prediction", 0)

    def span_ms(self) -> tuple[int, int] | None:
        """Event time from the first to the end of the last hour pane that holds anything; None without one."""
        days = self.days()
        if not days:
            return None
        per_day = HOUR.panes_per_chunk
        first = self.read(HOUR, days[0] * per_day, (days[0] + 1) * per_day).pane
        last = self.read(HOUR, days[-1] * per_day, (days[-1] + 1) * per_day).pane
        if not len(first) or not len(last):
            return None
        return int(first[0]) * HOUR.pane_ms, (int(last[-1]) + 1) * HOUR.pane_ms

    def days(self) -> list[int]:
        """Numbers of the days whose hour panes hold anything, ascending."""
        minutes = {chunk * MINUTE.chunk_ms // HOUR.chunk_ms for chunk in self.ledgers[MINUTE.name].chunks()}
        return sorted(minutes.union(self.ledgers[HOUR.name].chunks()))

    def matured_days(self) -> list[int]:
        """Numbers of the days of which the evidence tests see anything, ascending."""
        return sorted({*self.days(), *self.matured.days()})

    def fold_minutes(self, changes: Changes) -> Chunks:
        """Move minute panes before the floor into hours: adds their removal to `changes`, returns what the hours gain."""
        minutes = self.ledgers[MINUTE.name]
        gained = coarser(minutes.parts_before(self.minute_floor_ms // MINUTE.chunk_ms), _MINUTES)
        expired = minutes.expire(self.minute_floor_ms)
        changes.delete_ranges += expired.delete_ranges
        return by_chunk([gained], HOUR)

    def _resolve(self, sums: PaneSums) -> PaneSums:
        """Sums under the slots that hold them."""
        return sums.with_slots(self.resolved) if self.series.redirects else sums

    def _load(self) -> None:
        data = self.store.get(keys.CHECKPOINT)
        if data is None:
            return
        stored = msgspec.msgpack.decode(data, type=_Stored)
        self.sequence = stored.sequence
        self.positions = dict(stored.positions)
        self.newest_ms = stored.newest_ms
        self.minute_floor_ms = stored.minute_floor_ms
        self.hour_floor_ms = stored.hour_floor_ms
        self.outbox = stored.outbox
        self.account = Account.from_bytes(stored.account)
        layouts = self.store.get(keys.LAYOUTS)
        if layouts is not None:
            self.book.load(layouts)
        series = [msgspec.msgpack.decode(value, type=SeriesKey) for _, value in self.store.scan(*keys.prefix_range(b"s"))]
        redirects = {
            int.from_bytes(key[1:], "big"): int.from_bytes(value, "big") for key, value in self.store.scan(*keys.prefix_range(b"t"))
        }
        self.series.restore(series, redirects)


def _together(parts: Sequence[PaneSums]) -> PaneSums:
    """Parts added up; most often there is one."""
    found = [part for part in parts if len(part.keys)]
    return found[0] if len(found) == 1 else merge(found)


def present_layouts(shards: Sequence[Shard]) -> dict[str, Layout]:
    """Layout of the newest epoch of each model."""
    return {model: shard.layouts[epochs[-1].layout] for shard in list(shards) for model, epochs in list(shard.epochs.items())}
