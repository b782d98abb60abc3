"""The canonical dump of the hour panes, and its digest: equal whatever the batches, restarts, partitions or shards were.

One line a cell, ascending by (pane, series), integers as strings (they may exceed 2^53). Sums that are zero, and cells
without any other, are left out. Shards are merged first: by adding integers, and under one cap of group values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from monitor.names import OTHER_VALUE
from monitor.pipeline.shard import Shard
from monitor.statistics.pane import HOUR, PaneSums, merge
from monitor.statistics.series import Family, SeriesKey


def dump(shards: Sequence[Shard], start_ms: int | None = None, end_ms: int | None = None) -> Iterator[bytes]:
    """Lines of the canonical dump.

    Args:
        shards: All shards of a state.
        start_ms: First event time of the range, or None for no bound; floored to the hour.
        end_ms: End of the range, excluded, or None.
    """
    names = merged_names(shards)
    series = sorted({name for shard in names for name in shard})
    number = {key: position for position, key in enumerate(series)}
    renumbered = [np.array([number[key] for key in shard] or [0], dtype=np.int64) for shard in names]
    for day in sorted({day for shard in shards for day in shard.days()}):
        first, end = day * HOUR.panes_per_chunk, (day + 1) * HOUR.panes_per_chunk
        parts = [shard.read(HOUR, first, end).with_slots(slots) for shard, slots in zip(shards, renumbered, strict=True)]
        sums = merge(parts)
        low = 0 if start_ms is None else start_ms // HOUR.pane_ms
        high = 1 << 26 if end_ms is None else -(-end_ms // HOUR.pane_ms)
        yield from _lines(sums.between(low, high), series)


def digest(lines: Iterator[bytes]) -> str:
    """sha256 of the dump's lines, in hexadecimal."""
    state = hashlib.sha256()
    for line in lines:
        state.update(line)
    return state.hexdigest()


def merged_names(shards: Sequence[Shard]) -> list[list[SeriesKey]]:
    """Series of each slot of each shard once the shards are merged: `__other__` for values beyond the common cap."""
    values: dict[Family, set[str]] = {}
    for shard in shards:
        for slot, key in enumerate(shard.series):
            capped = key.value != OTHER_VALUE and not shard.series.layout(key).uncapped(key.segment, key.value)
            if capped and slot not in shard.series.redirects:
                values.setdefault(Family(*key[:4]), set()).add(key.value)
    caps: Mapping[str, int] = {name: layout.stored_group_values for shard in shards for name, layout in shard.layouts.items()}
    kept = {family: set(_smallest(found, caps[family.layout])) for family, found in values.items()}
    return [[_merged_name(shard, slot, key, kept) for slot, key in enumerate(shard.series)] for shard in shards]


def _merged_name(shard: Shard, slot: int, key: SeriesKey, kept: Mapping[Family, set[str]]) -> SeriesKey:
    if shard.series.layout(key).uncapped(key.segment, key.value) or (
        slot not in shard.series.redirects and key.value in kept.get(Family(*key[:4]), ())
    ):
        return key
    return key._replace(value=OTHER_VALUE)


def _smallest(values: set[str], cap: int) -> list[str]:
    return sorted(values, key=lambda value: hashlib.sha256(value.encode()).digest())[:cap]


def _lines(sums: PaneSums, series: Sequence[SeriesKey]) -> Iterator[bytes]:
    if not len(sums.keys):
        return
    cell = sums.keys >> 16
    starts = np.flatnonzero(np.diff(cell, prepend=cell[0] - 1))
    ends = np.append(starts[1:], len(cell))
    panes, slots = sums.pane[starts].tolist(), sums.slot[starts].tolist()
    positions, values = sums.position.tolist(), sums.values.tolist()
    for pane, slot, start, end in zip(panes, slots, starts.tolist(), ends.tolist(), strict=True):
        pairs = [[position, str(value)] for position, value in zip(positions[start:end], values[start:end], strict=True)]
        yield msgspec.json.encode([pane * HOUR.pane_ms, *series[slot], pairs]) + b"\n"
