"""One batch through the pipeline: decode, join, sum, and one atomic checkpoint.

The steps of a checkpoint, in their order (the names are the points at which the recovery tests kill the process):

1. `joined`: outcomes, rows, pane deltas and the next positions are known, in memory only.
2. `committed`: all of it, and the refused records on their way to the quarantine, is in the store, in one write.
3. `applied`: panes and windows in memory have it too.
4. `drained`: the refused records are in the quarantine, or wait for its broker; the next checkpoint takes them out of the outbox.

Before 2 nothing of the batch happened; after it everything did.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from monitor.errors import StateError
from monitor.events.contract import FUTURE_SLACK_MS
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Label, Prediction, Record, Refusal
from monitor.join.horizon import Horizon
from monitor.join.row import Row, RowCodec
from monitor.pipeline.joining import BatchJoin
from monitor.pipeline.ledger import by_chunk
from monitor.pipeline.quarantine import Outbox, outbox_entry
from monitor.pipeline.revisions.cause import Cause, merge_causes
from monitor.pipeline.revisions.pending import revising_entry
from monitor.pipeline.shard import Deltas, Shard
from monitor.sources.protocol import Slice
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.statistics.pane import HOUR, MINUTE, TABLES, PaneLevel, PaneSums, pane_sums
from monitor.statistics.track import Observer

Reached = Callable[[str], None]
"""Called with the name of each point of a checkpoint; does nothing but in recovery tests."""


class Processor:
    """Feeds batches into a shard.

    Args:
        shard: The state.
        decoder: Decodes records; shares `heads`.
        heads: Table of heads.
        horizon: The waiting rules.
        outbox: Delivers the refused records once they are stored.
        reached: Told at each point of a checkpoint.
    """

    def __init__(self, shard: Shard, decoder: Decoder, heads: HeadTable, horizon: Horizon, outbox: Outbox, reached: Reached) -> None:
        self._shard = shard
        self._decoder = decoder
        self._heads = heads
        self._horizon = horizon
        self._outbox = outbox
        self._reached = reached
        self._codec = RowCodec()
        self._causes: list[Cause] = []
        self._observer = Observer(shard.series, shard.layouts, shard.book.of)

    def process(self, slices: Sequence[Slice]) -> None:
        """Take in a batch, all or nothing.

        Raises:
            StateError: The checkpoint could not be written, or stored rows are damaged; the process must end, and a
                restart goes on from the last checkpoint.
            CapacityError: A sum could overflow.
        """
        decoded = [self._decoder.decode_all(part.values, part.kind) for part in slices]
        with self._shard.batch:
            self._take_in(slices, decoded)
        self._reached("applied")
        self._outbox.drain()
        self._reached("drained")

    def _take_in(self, slices: Sequence[Slice], decoded: list[list[Record]]) -> None:
        """Join, sum and commit; what has matured stays the same meanwhile."""
        end_pane = self._shard.judged_pane
        rows = self._rows(decoded)
        join = BatchJoin(rows, self._heads, self._observer, self._shard.account, self._horizon, end_pane * HOUR.pane_ms)
        self._causes = []
        changes = Changes()
        self._outbox.confirm(changes)
        for part, records in zip(slices, decoded, strict=True):
            self._join(join, part, records, changes)
        self._count(join)
        self._store_rows(join, changes)
        deltas = self._deltas()
        self._shard.stage(changes, deltas)
        self._list_due(join, changes)
        if self._causes:
            entry = revising_entry(deltas, merge_causes(self._causes), end_pane)
            changes.puts.append((keys.revising(self._shard.sequence), entry))
        self._reached("joined")
        if self._shard.series.evictions:
            self._observer.forget()
        self._shard.commit(changes, deltas, self._reached)

    def _rows(self, decoded: list[list[Record]]) -> dict[str, Row]:
        ids = list({record.prediction_id: None for records in decoded for record in records if not isinstance(record, Refusal)})
        stored = self._shard.store.get_many([keys.ROW + one.encode() for one in ids])
        from_bytes = self._codec.from_bytes
        try:
            return {one: from_bytes(data) for one, data in zip(ids, stored, strict=True) if data is not None}
        except ValueError as error:
            raise StateError(f"the state holds {error}; restore it from a backup or start anew") from error

    def _join(self, join: BatchJoin, part: Slice, records: list[Record], changes: Changes) -> None:
        """Apply the records of one slice, in order; refused ones go to the outbox."""
        shard = self._shard
        newest = shard.newest_ms.get(part.partition, 0)
        open_since = self._horizon.accepts_since(newest)
        newest_of = [0, 0]  # labels, predictions
        timestamps = part.timestamps_ms
        apply: Callable[[Any, int], str | None]
        record: Any
        for position, record in enumerate(records):
            if isinstance(record, Prediction):
                at, apply, is_prediction = record.predicted_at, join.prediction, True
            elif isinstance(record, Label):
                at, apply, is_prediction = record.labelled_at, join.label, False
            else:
                self._refuse(record, part, position, changes)
                continue
            reason = None
            if timestamps and at > timestamps[position] + FUTURE_SLACK_MS:
                reason = "future_time"
            elif at > newest:
                newest = at
                open_since = self._horizon.accepts_since(newest)
            elif at < open_since:
                reason = "expired"
            if reason is not None:
                limit = timestamps[position] if reason == "future_time" else open_since
                detail = f"{at} ms; the limit here is {limit} ms" + (" plus 5 minutes" if reason == "future_time" else "")
                self._refuse(Refusal(reason, "prediction" if is_prediction else "label", detail), part, position, changes)
                continue
            reason = apply(record, open_since)
            if join.revised:
                self._note(join, part, position)
            if reason is not None:
                self._refuse(Refusal(reason, "prediction" if is_prediction else "label"), part, position, changes)
            elif at > newest_of[is_prediction]:
                newest_of[is_prediction] = at
        shard.account.saw("label", newest_of[0])
        shard.account.saw("prediction", newest_of[1])
        shard.account.consumed += len(records)
        if newest:
            shard.newest_ms[part.partition] = newest
        shard.positions[part.partition] = part.next_position

    def _note(self, join: BatchJoin, part: Slice, position: int) -> None:
        """Note where the record was that changed matured predictions."""
        offset = part.offsets[position]
        self._causes += [Cause(head.model, head.version, part.partition, kind, 1, offset, offset) for head, kind in join.revised]
        join.revised.clear()

    def _count(self, join: BatchJoin) -> None:
        """Take the batch's outcomes and delays into the account."""
        account = self._shard.account
        for kind, outcomes in (("prediction", join.prediction_outcomes), ("label", join.label_outcomes)):
            for outcome, records in Counter(outcomes).items():
                account.count(kind, outcome, records)
        versions: dict[tuple[str, str], list[int]] = {}
        for head, delays in join.delays.items():
            versions.setdefault((head.model, head.version), []).extend(delays)
        for (model, version), delays in versions.items():
            account.delay(model, version, delays)
        for head, first_ms in join.first_ms.items():
            account.saw_version(head.model, head.version, first_ms)

    def _refuse(self, refusal: Refusal, part: Slice, position: int, changes: Changes) -> None:
        self._shard.account.refuse(refusal.kind, refusal.reason)
        timestamp = part.timestamps_ms[position] if part.timestamps_ms else None
        key = part.keys[position] if part.keys else None
        offset = part.offsets[position]
        index = position - bisect_left(part.offsets, offset)
        entry = outbox_entry(refusal, part.partition, offset, timestamp, part.values[position], key, index)
        changes.puts.append((keys.outbox(self._shard.outbox), entry))
        self._shard.outbox += 1

    def _store_rows(self, join: BatchJoin, changes: Changes) -> None:
        rows, to_bytes = join.rows, self._codec.to_bytes
        changes.puts += [(keys.ROW + one.encode(), to_bytes(rows[one])) for one in join.touched]

    def _list_due(self, join: BatchJoin, changes: Changes) -> None:
        """List the ids of new rows under the day on which they may expire."""
        changes.puts += [(keys.due(day, self._shard.sequence), msgspec.msgpack.encode(ids)) for day, ids in join.due.items()]

    def _deltas(self) -> Deltas:
        """What the batch adds to the panes of each level."""
        parts: dict[PaneLevel, list[PaneSums]] = {MINUTE: [], HOUR: [], TABLES: []}
        for rows in self._observer.take():
            if rows.hourly:
                parts[TABLES] += pane_sums(rows, TABLES.pane_ms, np.arange(len(rows.slot)))
                continue
            near = rows.event_time_ms >= self._shard.minute_floor_ms
            parts[MINUTE] += pane_sums(rows, MINUTE.pane_ms, np.flatnonzero(near))
            parts[HOUR] += pane_sums(rows, HOUR.pane_ms, np.flatnonzero(~near))
        if self._shard.series.redirects:
            resolved = self._shard.series.resolved()
            parts = {level: [part.with_slots(resolved) for part in found] for level, found in parts.items()}
        return {level.name: by_chunk(found, level) for level, found in parts.items()}
