"""Streams of which a part of the labels is held back, as label files of any format."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
from pyarrow import parquet

from monitor.produce.address import address
from tests.golden.stream import PACKAGED

STREAMS = ("flights", "employment")
REAL = {"ood_threshold": -0.57385, "confidence_threshold": 0.8, "groups": ["group"]}
"""What is configured for the packaged streams."""


class Late(NamedTuple):
    """A stream in two parts: what came in time, and the labels that did not."""

    in_time: list[bytes]
    labels: list[bytes]


def hold_back(lines: Sequence[bytes], share: float = 0.4) -> Late:
    """Hold the labels of a share of the ids back, all of an id together."""
    late = Late([], [])
    for line in lines:
        found = address(line)
        held = found.role == "label" and found.key is not None and zlib.crc32(b"late" + found.key) < share * (1 << 32)
        (late.labels if held else late.in_time).append(line)
    return late


def packaged(stream: str) -> list[bytes]:
    """Lines of a packaged stream."""
    return gzip.decompress((PACKAGED / f"{stream}.ndjson.gz").read_bytes()).splitlines()


def as_csv(path: Path, labels: Sequence[bytes], names: dict[str, str]) -> Path:
    """Write labels, none of them a withdrawal, as CSV under other names of columns."""
    rows = [json.loads(line) for line in labels]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["surplus", *(names.get(key, key) for key in _keys(rows))])
        writer.writeheader()
        for row in rows:
            cells = {names.get(key, key): value for key, value in row.items() if key != "type" and value is not None}
            writer.writerow({"surplus": "x,y", **cells})
    return path


def as_parquet(path: Path, labels: Sequence[bytes], names: dict[str, str]) -> Path:
    """Write labels, none of them a withdrawal, as Parquet, with timestamps in UTC."""
    rows = [json.loads(line) for line in labels]
    columns: dict[str, Any] = {}
    for key in _keys(rows):
        values = [row.get(key) for row in rows]
        kind = pyarrow.timestamp("ms", "UTC") if key == "labelled_at" else pyarrow.int64() if key == "revision" else pyarrow.string()
        columns[names.get(key, key)] = (
            pyarrow.array(values, pyarrow.int64()).cast(kind) if key == "labelled_at" else pyarrow.array(values, kind)
        )
    parquet.write_table(pyarrow.table(columns), path, row_group_size=1000)
    return path


def _keys(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row if key != "type"))
