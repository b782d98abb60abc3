"""A list of records dealt to shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from monitor.sources.protocol import Slice
from tests.doubles.list_source import ListSource


class ShardedSource(ListSource):
    """Deals the records to partitions by their ids, each a shard."""

    def __init__(self, lines: Sequence[bytes], shards: int) -> None:
        super().__init__([(f"part-{_shard(line, shards)}", line) for line in lines])

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """As without shards, each slice with its shard."""
        return [replace(part, shard=part.partition.removeprefix("part-")) for part in super().poll(max_records, timeout_s)]


def _shard(line: bytes, shards: int) -> int:
    one = line.split(b'"prediction_id":"')[1].split(b'"')[0]
    return sum(one) % shards
