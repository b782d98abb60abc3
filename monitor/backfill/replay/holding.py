"""What a state holds of each version, counted day by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from monitor.names import ALL_VALUE
from monitor.pipeline.shard import Shard
from monitor.statistics.pane import HOUR
from monitor.statistics.segment import ALL


class Holding(NamedTuple):
    """A model version in a state."""

    model: str
    version: str
    predictions: int
    labelled: int


def holdings(shards: Sequence[Shard]) -> list[Holding]:
    """Predictions of each version, and how many of them have a label, by model and version."""
    counts: dict[tuple[str, str], list[int]] = {}
    places = [ALL.scalar("predictions"), ALL.scalar("labelled")]
    for shard in shards:
        whole = [slot for slot, key in enumerate(shard.series) if key.segment == ALL_VALUE]
        for day in shard.days():
            sums = shard.read(HOUR, day * HOUR.panes_per_chunk, (day + 1) * HOUR.panes_per_chunk)
            chosen = np.isin(sums.slot, whole) & np.isin(sums.position, places)
            rows = zip(sums.slot[chosen].tolist(), sums.position[chosen].tolist(), sums.values[chosen].tolist(), strict=True)
            for slot, position, value in rows:
                key = shard.series.key(slot)
                counts.setdefault((key.model, key.version), [0, 0])[places.index(position)] += value
    return [Holding(*name, *found) for name, found in sorted(counts.items())]


def span_ms(shards: Sequence[Shard]) -> tuple[int, int] | None:
    """Event time from the first to the end of the last hour that holds anything; None without one."""
    spans = [span for span in (shard.span_ms() for shard in shards) if span is not None]
    return (min(first for first, _ in spans), max(end for _, end in spans)) if spans else None
