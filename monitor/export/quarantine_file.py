"""The quarantine as a file: one JSON object a line, appended.

After a crash the file ends with none, some or all of what is delivered again, the last line perhaps torn; only what is
missing is appended. Nothing is ever cut off: the file may have been rotated, or be another one by now.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from monitor.errors import StateError
from monitor.export.quarantine_sink import Entry, RefusedRecord


class FileSink:
    """Appends refused records to an NDJSON file.

    Args:
        path: The file; made when the first record is refused.

    Raises:
        StateError: The file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._check_writable()

    def mark(self) -> bytes:
        """Nothing: the file's own end tells what is in it."""
        return b""

    def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
        """Append what is not yet in the file, durably.

        Raises:
            StateError: The file cannot be written.
        """
        lines = [to_line(entry.record) for entry in entries]
        try:
            with self._path.open("ab") as file:
                file.write(missing_bytes(self._path, lines) if after_crash else b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StateError(f"cannot write the quarantine {self._path}: {error}; the refused records wait in the state") from error
        return mark

    def close(self) -> None:
        """Nothing to release: the file is open during deliveries only."""

    def _check_writable(self) -> None:
        """Say at the start, not at the first refused record, that there is no place for one."""
        folder = self._path.parent
        if not folder.is_dir() or not os.access(self._path if self._path.exists() else folder, os.W_OK) or self._path.is_dir():
            raise StateError(f"cannot write the quarantine {self._path}: set quarantine.file to a file in a folder that exists")


def to_line(record: RefusedRecord) -> bytes:
    """A record's line in the file: one JSON object; bytes that are no UTF-8 go as base64."""
    line: dict[str, Any] = {"reason": record.refusal.reason, "kind": record.refusal.kind, "detail": record.refusal.detail}
    line |= {"partition": record.partition, "offset": record.offset}
    if record.index:
        line["index"] = record.index
    if record.timestamp_ms is not None:
        line["timestamp_ms"] = record.timestamp_ms
    if record.key is not None:
        line |= _bytes("key", record.key, record.key_length)
    line |= _bytes("record", record.value, record.length)
    return msgspec.json.encode(line) + b"\n"


def _bytes(name: str, kept: bytes, length: int) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = {name: kept.decode("utf-8")}
    except UnicodeDecodeError:
        fields = {f"{name}_base64": base64.b64encode(kept).decode("ascii")}
    if length > len(kept):
        fields[f"{name}_bytes"] = length
    return fields


def missing_bytes(path: Path, lines: list[bytes]) -> bytes:
    """What must be appended to a file so that it ends with `lines`, of which it may end with a part already.

    A line names its partition, offset and index, so it is in a file once.
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
