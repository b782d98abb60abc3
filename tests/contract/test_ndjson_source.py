"""The NDJSON source against the contract of every source, as plain and as compressed files."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import Source

from .source_contract import LogUnderTest, SourceContract


class FileLog:
    """Files in a folder; the live ones always plain, since a .gz cannot be followed."""

    ends = True
    goes_on = False

    def __init__(self, folder: Path, compressed: bool) -> None:
        self._compressed = compressed
        self._paths = [folder / f"events-{index}.ndjson" for index in range(3)]
        for path in self._paths:
            path.touch()

    @property
    def partitions(self) -> Sequence[str]:
        return [self._name(path) for path in self._paths]

    def append(self, partition: str, records: Iterable[bytes]) -> None:
        opener = gzip.open if partition.endswith(".gz") else open
        with opener(partition, "ab") as file:
            file.write(b"".join(record + b"\n" for record in records))

    def source(self, *, live: bool) -> Source:
        return NdjsonSource(self.partitions, follow=live)

    def _name(self, path: Path) -> str:
        if not self._compressed:
            return str(path)
        packed = path.with_suffix(".ndjson.gz")
        if not packed.exists():
            packed.write_bytes(gzip.compress(b""))
        return str(packed)


class TestPlainFiles(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> LogUnderTest:
        return FileLog(tmp_path, compressed=False)


class TestCompressedFiles(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path, request: pytest.FixtureRequest) -> LogUnderTest:
        # What needs a log that grows is shown with plain files only.
        live = "a_live_source" in request.node.name or "empty_poll" in request.node.name
        return FileLog(tmp_path, compressed=not live)
