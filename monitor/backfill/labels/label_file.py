"""A label file as a run of label events: its format by its name, each row as the bytes that the contract's decoder reads."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from monitor.errors import SourceError

ND_JSON = (".ndjson", ".jsonl", ".json", ".ndjson.gz", ".jsonl.gz", ".json.gz")
_HASH_BLOCK_BYTES = 1 << 20


class LabelRow(NamedTuple):
    """A row of a label file.

    Attributes:
        number: For people who look for it: line of an NDJSON file, first line of the row in a CSV file, row of a Parquet file, from 1;
            ascending.
        event: A label event's bytes, for the decoder to judge.
        fault: Why no event could be made of the row, whose bytes `event` holds then; None if one could.
    """

    number: int
    event: bytes
    fault: str | None = None


class LabelFile(Protocol):
    """A file of labels, read once and forward.

    Attributes:
        path: As given.
        total_bytes: Its size.
    """

    path: str
    total_bytes: int

    @property
    def read_bytes(self) -> int:
        """How much of it has been read."""
        ...

    def rows(self) -> Iterator[LabelRow]:
        """The rows in their order.

        Raises:
            SourceError: The file cannot be read on.
        """
        ...


def open_label_file(path: str, mapping: Mapping[str, str]) -> LabelFile:
    """Open a label file; nothing but its columns is read yet.

    Args:
        path: Its name says the format.
        mapping: Columns by field.

    Raises:
        SourceError: It is not there, of no known format, or lacks a column.
    """
    size(path)
    name = path.lower()
    if name.endswith(ND_JSON):
        from monitor.backfill.labels.ndjson_labels import NdjsonLabels  # noqa: PLC0415 - each format needs only its own

        return NdjsonLabels(path, mapping)
    if name.endswith(".csv"):
        from monitor.backfill.labels.csv_labels import CsvLabels  # noqa: PLC0415 - as above

        return CsvLabels(path, mapping)
    if name.endswith(".parquet"):
        from monitor.backfill.labels.parquet_labels import ParquetLabels  # noqa: PLC0415 - pyarrow is an extra

        return ParquetLabels(path, mapping)
    raise SourceError(f"{path}: its name says no format that is known: {', '.join(ND_JSON)}, .csv or .parquet")


def size(path: str) -> int:
    """Size of a regular file that can be read.

    Raises:
        SourceError: It is none.
    """
    try:
        if not Path(path).is_file():
            raise SourceError(f"{path}: {'is no regular file' if Path(path).exists() else 'no such file'}")
        if not os.access(path, os.R_OK):
            raise SourceError(f"{path}: cannot be read: permission denied")
        return Path(path).stat().st_size
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from error


def partition_name(path: str, mapping: Mapping[str, str]) -> str:
    """Name of a label file as a partition: its own, and a fingerprint of what it holds and of what its columns mean.

    Raises:
        SourceError: It cannot be read.
    """
    state = hashlib.sha256(json.dumps(sorted(mapping.items())).encode())
    try:
        with Path(path).open("rb") as file:
            while block := file.read(_HASH_BLOCK_BYTES):
                state.update(block)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    return f"{Path(path).name}@{state.hexdigest()[:12]}"
