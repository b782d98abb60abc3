"""Upkeep between batches: rows and panes that nothing can need any more go, and chunks with many deltas are absorbed.

Each step is a commit of its own, small, and changes no sum: a crash in it loses nothing. What goes when depends only on
the times read so far, never on the wall clock, except for minute panes, which no stored truth depends on.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from monitor.clock import Clock
from monitor.duration import DAY_MS, HOUR_MS
from monitor.events.record import HeadTable
from monitor.join.horizon import Horizon
from monitor.join.row import Row, RowCodec
from monitor.pipeline.joining import done_ms, forget_row
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.statistics.pane import HOUR, MINUTE, TABLES

_IDS_A_ROUND = 20_000
"""More than twice what a batch can create: each row is looked at when it is first due, and again if a label made it stay."""


class Upkeep:
    """Keeps a shard's store and memory as small as its windows, horizon and history allow.

    Args:
        shard: The state.
        heads: Table of heads.
        horizon: The waiting rules.
        history_ms: How long hour panes are kept behind the slowest partition; None keeps them for ever.
        clock: What windows are advanced to.
        live_partitions: Partitions that may still deliver.
        reached: Told at each point (see `processor`).
    """

    def __init__(
        self,
        shard: Shard,
        heads: HeadTable,
        horizon: Horizon,
        history_ms: int | None,
        clock: Clock,
        live_partitions: Callable[[], frozenset[str]],
        reached: Callable[[str], None],
    ) -> None:
        self._shard = shard
        self._heads = heads
        self._horizon = horizon
        self._history_ms = history_ms
        self._clock = clock
        self._live_partitions = live_partitions
        self._reached = reached
        self._codec = RowCodec()
        reaches = {
            level.name: [w.spec.length_ms + w.spec.lag_ms for w in shard.windows if w.spec.level is level] for level in (MINUTE, HOUR)
        }
        self._reach_ms = {name: max(spans, default=0) for name, spans in reaches.items()}
        self._raise_floors()

    def run(self) -> None:
        """One round: a bounded amount of work.

        Raises:
            StateError: The store cannot be written.
        """
        self._raise_floors()
        self._absorb()
        slowest = self._slowest_ms() if self._horizon.expires else None
        if slowest is not None and self._horizon.horizon_ms is not None:
            self._expire_rows(slowest)
            if self._history_ms is not None:
                self._expire_hours(slowest - self._history_ms)

    def _slowest_ms(self) -> int | None:
        """Time that every partition that may still deliver has passed; None if one has not begun."""
        newest = [self._shard.newest_ms.get(name, 0) for name in self._live_partitions()]
        slowest = min(newest, default=0)
        return slowest if slowest > 0 else None

    def _raise_floors(self) -> None:
        """Move on from which event times panes are kept by the minute, and hours in memory."""
        shard = self._shard
        minutes, hours = shard.ledgers[MINUTE.name], shard.ledgers[HOUR.name]
        if not shard.newest_event_ms:
            return
        now_ms = min(self._clock.now_ms(), shard.newest_event_ms)
        floor_ms = (now_ms - self._reach_ms[MINUTE.name] - HOUR_MS) // MINUTE.chunk_ms * MINUTE.chunk_ms
        with shard.lock:
            for level in (HOUR, TABLES):
                shard.ledgers[level.name].raise_floor(now_ms - self._reach_ms[HOUR.name] - DAY_MS)
            shard.minute_floor_ms = max(shard.minute_floor_ms, floor_ms)
            stored = minutes.chunks()
            if stored and stored[0] * MINUTE.chunk_ms < shard.minute_floor_ms:
                changes = Changes()
                gained = shard.fold_minutes(changes)
                shard.stage(changes, {HOUR.name: gained})
                self._reached("folding")
                shard.store.commit(changes)
                minutes.raise_floor(shard.minute_floor_ms)
                hours.apply(gained)

    def _absorb(self) -> None:
        for ledger in self._shard.ledgers.values():
            with self._shard.lock:
                changes = ledger.absorb(self._shard.sequence)
            if changes.puts:
                self._reached("absorbing")
                self._shard.store.commit(changes)

    def _expire_hours(self, event_time_ms: int) -> None:
        hours = self._shard.ledgers[HOUR.name]
        with self._shard.lock:
            gone = hours.read(0, event_time_ms // HOUR.chunk_ms * HOUR.panes_per_chunk)
            changes = hours.expire(event_time_ms)
            changes.delete_ranges += self._shard.ledgers[TABLES.name].expire(event_time_ms).delete_ranges
            if changes.delete_ranges:
                self._shard.hour_floor_ms = event_time_ms // HOUR.chunk_ms * HOUR.chunk_ms
                self._shard.matured.expire(gone, changes)
        if changes.delete_ranges:
            self._commit(changes)

    def _expire_rows(self, slowest_ms: int) -> None:
        """Drop rows that are due and done, list by list; ids of rows that have grown are listed again."""
        first, _ = keys.prefix_range(b"x")
        changes = Changes()
        again: dict[int, list[str]] = {}
        looked_at = 0
        for due_key, packed in self._shard.store.scan(first, keys.due(slowest_ms // DAY_MS + 1, 0)):
            ids = msgspec.msgpack.decode(packed, type=list[str])
            changes.deletes.append(due_key)
            self._expire_listed(ids, slowest_ms, changes, again)
            looked_at += len(ids)
            if looked_at >= _IDS_A_ROUND:
                break
        for day, listed_again in again.items():
            changes.puts.append((keys.due(day, self._shard.sequence + 1), msgspec.msgpack.encode(listed_again)))
        if changes.deletes:
            self._commit(changes)

    def _expire_listed(self, ids: list[str], slowest_ms: int, changes: Changes, again: dict[int, list[str]]) -> None:
        for one, data in zip(ids, self._shard.store.get_many([keys.row(one) for one in ids]), strict=True):
            if data is None:
                continue
            row: Row = self._codec.from_bytes(data)
            done = done_ms(row, self._horizon)
            if done is None or done >= slowest_ms:
                again.setdefault((done or slowest_ms) // DAY_MS + 1, []).append(one)
            else:
                forget_row(row, self._heads, self._horizon, self._shard.account)
                changes.deletes.append(keys.row(one))

    def _commit(self, changes: Changes) -> None:
        self._shard.stage(changes, {})
        self._reached("expiring")
        self._shard.commit(changes, {}, self._reached)
