"""Panes of a shard as they were at one moment, kept in memory: many questions can be asked of them while the shard goes on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from monitor.pipeline.account import Account
from monitor.pipeline.shard import Shard
from monitor.statistics.layout import Layout
from monitor.statistics.pane import HOUR, PaneLevel, PaneSums, merge
from monitor.statistics.series import SeriesTable
from monitor.statistics.track import Epoch


@dataclass(frozen=True, slots=True)
class FrozenPanes:
    """Hour panes of some models.

    Attributes:
        series: Slots of the shard's series; it may grow, what it says of these panes stays.
        layouts: Layouts by fingerprint.
        epochs: Epochs by model.
        account: Of the moment.
        sums: The panes; keys ascending.
        floor_ms: Event time from which on they are here.
    """

    series: SeriesTable
    layouts: Mapping[str, Layout]
    epochs: Mapping[str, Sequence[Epoch]]
    account: Account
    sums: PaneSums
    floor_ms: int

    def scan(self, level: PaneLevel, first_chunk: int, end_chunk: int, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """Sums of the wanted slots by day in [first, end), ascending."""
        assert level is HOUR, "only hours are frozen"  # noqa: S101 - windows of revisions are made of hours
        per_day = HOUR.panes_per_chunk
        return iter(self.sums.between(first_chunk * per_day, end_chunk * per_day).of_slots(wanted).split(per_day))

    def kept_from_ms(self, level: PaneLevel) -> int:
        """Event time from which on panes are here."""
        del level
        return self.floor_ms

    def before(self, added: PaneSums) -> FrozenPanes:
        """The panes as they were before these sums were added to them."""
        return replace(self, sums=merge([self.sums, PaneSums(added.keys, -added.values)]))


def freeze(shard: Shard, models: Collection[str], first_pane: int, end_pane: int) -> FrozenPanes:
    """Panes [first, end) of models; the shard's lock must be held."""
    first = max(first_pane, shard.kept_from_ms(HOUR) // HOUR.pane_ms)
    sums = shard.read(HOUR, first, max(first, end_pane))
    ours = np.array([key.model in models for key in shard.series], dtype=np.bool_)
    kept = sums.of_slots(ours) if len(sums.keys) else sums
    epochs = {model: tuple(shard.epochs[model]) for model in models if model in shard.epochs}
    return FrozenPanes(shard.series, dict(shard.layouts), epochs, shard.published, kept, first * HOUR.pane_ms)
