"""The quarantine: every refused record, with its reason, where it was and its original bytes; once, even across crashes.

A refused record is put into the store's outbox by the checkpoint that refuses it. Afterwards it is appended to the
quarantine file, and the next checkpoint takes it out of the outbox. After a crash in between the file ends with none,
some or all of what is in the outbox, the last line perhaps torn; only what is missing is appended. Nothing is ever cut
off: the file may have been rotated, or be another one by now.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import msgspec

from monitor.errors import StateError
from monitor.events.record import Refusal
from monitor.pipeline.shard import Shard
from monitor.state import keys
from monitor.state.protocol import Changes

KEPT_BYTES = 65_536
"""Most bytes of a refused record that are kept; its full length is noted beside them."""


class RefusedRecord(msgspec.Struct, array_like=True):
    """A record on its way to the quarantine.

    Attributes:
        refusal: Why.
        partition: Where it was.
        offset: Line number or offset there.
        timestamp_ms: The log's own time of the record, or None.
        value: Its bytes, cut at `KEPT_BYTES`.
        length: Its length before the cut.
    """

    refusal: Refusal
    partition: str
    offset: int
    timestamp_ms: int | None
    value: bytes
    length: int

    def to_line(self) -> bytes:
        """The quarantine file's form: one JSON object; bytes that are no UTF-8 go as base64."""
        line: dict[str, Any] = {"reason": self.refusal.reason, "kind": self.refusal.kind, "detail": self.refusal.detail}
        line |= {"partition": self.partition, "offset": self.offset}
        if self.timestamp_ms is not None:
            line["timestamp_ms"] = self.timestamp_ms
        try:
            line["record"] = self.value.decode("utf-8")
        except UnicodeDecodeError:
            line["record_base64"] = base64.b64encode(self.value).decode("ascii")
        if self.length > len(self.value):
            line["record_bytes"] = self.length
        return msgspec.json.encode(line) + b"\n"


def outbox_entry(refusal: Refusal, partition: str, offset: int, timestamp_ms: int | None, value: bytes) -> bytes:
    """What a checkpoint puts into the outbox for a refused record."""
    return msgspec.msgpack.encode(RefusedRecord(refusal, partition, offset, timestamp_ms, value[:KEPT_BYTES], len(value)))


class QuarantineFile:
    """Appends refused records to an NDJSON file.

    Args:
        path: The file; made when the first record is refused.
        shard: Whose outbox is emptied.

    Raises:
        StateError: The file cannot be written.
    """

    def __init__(self, path: Path, shard: Shard) -> None:
        self._path = path
        self._shard = shard
        self._drained = shard.outbox
        self._unconfirmed = False
        self._check_writable()
        waiting = next(iter(shard.store.scan(*keys.prefix_range(b"q"))), None)
        if waiting is not None:
            self._drained = int.from_bytes(waiting[0][1:], "big")
            self.drain(after_crash=True)

    def drain(self, after_crash: bool = False) -> None:
        """Append what is in the outbox and not yet in the file, durably.

        Args:
            after_crash: Whether the file may end with some of it.

        Raises:
            StateError: The file cannot be written; the records stay in the outbox.
        """
        if self._drained == self._shard.outbox:
            return
        first, end = keys.outbox(self._drained), keys.outbox(self._shard.outbox)
        lines = [msgspec.msgpack.decode(value, type=RefusedRecord).to_line() for _, value in self._shard.store.scan(first, end)]
        try:
            with self._path.open("ab") as file:
                file.write(missing_bytes(self._path, lines) if after_crash else b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StateError(f"cannot write the quarantine {self._path}: {error}; the refused records wait in the state") from error
        self._drained = self._shard.outbox
        self._unconfirmed = True

    def confirm(self, changes: Changes) -> None:
        """Add to a checkpoint that what was appended no longer waits; before `Shard.stage`."""
        if self._unconfirmed:
            changes.delete_ranges.append((keys.outbox(0), keys.outbox(self._drained)))
            self._unconfirmed = False

    def _check_writable(self) -> None:
        """Say at the start, not at the first refused record, that there is no place for one."""
        folder = self._path.parent
        if not folder.is_dir() or not os.access(self._path if self._path.exists() else folder, os.W_OK) or self._path.is_dir():
            raise StateError(f"cannot write the quarantine {self._path}: set quarantine.file to a file in a folder that exists")


def missing_bytes(path: Path, lines: list[bytes]) -> bytes:
    """What must be appended to a file so that it ends with `lines`, of which it may end with a part already.

    A line names its partition and offset, so it is in a file once.
    """
    whole = b"".join(lines)
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(whole), 0))
        tail = file.read()
    begins = tail.rfind(lines[0])
    if begins >= 0:
        there = tail[begins:]
        return whole[len(there) :] if whole.startswith(there) else whole
    torn = tail[tail.rfind(b"\n") + 1 :]
    if whole.startswith(torn):
        return whole[len(torn) :]
    return b"\n" + whole
