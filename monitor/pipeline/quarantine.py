"""The quarantine: every refused record, with its reason, where it was and its original bytes; once, even across crashes.

A refused record is put into the store's outbox by the checkpoint that refuses it. Afterwards it is delivered to a sink, a
file or a topic, and the next checkpoint takes it out of the outbox. After a crash in between the sink has none, some or
all of what is in the outbox; it finds out, and takes only what is missing.
"""

from __future__ import annotations

import logging
import time

import msgspec

from monitor.events.record import Refusal
from monitor.export.quarantine_sink import KEPT_BYTES, Entry, RefusedRecord, Sink, SinkAwayError
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes

_DELIVERY_RECORDS = 10_000
_DELIVERY_BYTES = 16 << 20
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0
_log = logging.getLogger(__name__)


def outbox_entry(
    refusal: Refusal, partition: str, offset: int, timestamp_ms: int | None, value: bytes, key: bytes | None = None, index: int = 0
) -> bytes:
    """What a checkpoint puts into the outbox for a refused record."""
    kept_key, key_length = (None, 0) if key is None else (key[:KEPT_BYTES], len(key))
    record = RefusedRecord(refusal, partition, offset, timestamp_ms, value[:KEPT_BYTES], len(value), kept_key, key_length, index)
    return msgspec.msgpack.encode(record)


class Outbox:
    """Empties a shard's outbox into a sink. One delivery is unconfirmed at most: it is what a crash leaves in doubt.

    Making it delivers nothing: a sink that is away takes seconds to say so, and nobody could see yet what is waited for.

    Args:
        shard: Whose outbox is emptied.
        sink: Where to; closed with the outbox.
    """

    def __init__(self, shard: Shard, sink: Sink) -> None:
        self._shard = shard
        self._sink = sink
        self._mark = shard.store.get(keys.QUARANTINE) or b""
        self._unconfirmed = False
        self._trouble: str | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._next_try_s = 0.0
        first = next(iter(shard.store.scan(*keys.prefix_range(b"q"))), None)
        self._delivered = shard.outbox if first is None else int.from_bytes(first[0][1:], "big")
        self._after_crash = first is not None

    @property
    def waiting(self) -> int:
        """Refused records that are not yet delivered; may be read from any thread."""
        return self._shard.outbox - self._delivered

    @property
    def trouble(self) -> str | None:
        """Why records wait; None if nothing is in their way. May be read from any thread."""
        return self._trouble

    def drain(self) -> None:
        """Deliver what is in the outbox, if the sink can be had; after a failure not before a pause.

        Raises:
            StateError: The sink is broken; the records stay in the outbox.
        """
        while self.waiting and time.monotonic() >= self._next_try_s:
            if self._unconfirmed:
                changes = Changes()
                self.confirm(changes)
                self._shard.store.commit(changes)
            entries = self._next()
            try:
                self._mark = self._sink.deliver(entries, self._mark or self._first_mark(), self._after_crash)
            except SinkAwayError as error:
                self._wait(error)
                return
            self._delivered = entries[-1].sequence + 1
            self._unconfirmed = True
            self._after_crash = False
            self._trouble = None
            self._pause_s = _FIRST_PAUSE_S

    def confirm(self, changes: Changes) -> None:
        """Add to a commit that what was delivered no longer waits."""
        if self._unconfirmed:
            changes.delete_ranges.append((keys.outbox(0), keys.outbox(self._delivered)))
            if self._mark:
                changes.puts.append((keys.QUARANTINE, self._mark))
            self._unconfirmed = False

    def close(self) -> None:
        """Close the sink; what waits is delivered by the next process."""
        self._sink.close()

    def _next(self) -> list[Entry]:
        entries: list[Entry] = []
        size = 0
        for key, value in self._shard.store.scan(keys.outbox(self._delivered), keys.outbox(self._shard.outbox)):
            entries.append(Entry(int.from_bytes(key[1:], "big"), msgspec.msgpack.decode(value, type=RefusedRecord)))
            size += len(value)
            if len(entries) == _DELIVERY_RECORDS or size >= _DELIVERY_BYTES:
                break
        return entries

    def _first_mark(self) -> bytes:
        """Store a mark before anything is delivered: without it a crash during the first delivery could not be put right."""
        mark = self._sink.mark()
        if mark:
            self._shard.store.commit(Changes(puts=[(keys.QUARANTINE, mark)]))
        return mark

    def _wait(self, error: SinkAwayError) -> None:
        if self._trouble is None:
            _log.warning("%s", error)
        self._trouble = str(error)
        self._next_try_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
