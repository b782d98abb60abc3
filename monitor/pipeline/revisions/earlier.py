"""Panes of a shard as they were before some sums were added to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge as merged
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from monitor.pipeline.account import Account
from monitor.pipeline.panes import Panes
from monitor.statistics.layout import Layout
from monitor.statistics.pane import HOUR, PaneLevel, PaneSums, merge
from monitor.statistics.series import SeriesTable
from monitor.statistics.track import Epoch


class EarlierPanes:
    """Hour panes without what was added; sums have inverses, so nothing is remembered.

    Args:
        now: The panes; they must not change.
        added: What was added to their hours, under their slots; keys ascending.
    """

    def __init__(self, now: Panes, added: PaneSums) -> None:
        self._now = now
        self._taken_back = PaneSums(added.keys, -added.values).split(HOUR.panes_per_chunk)

    @property
    def series(self) -> SeriesTable:
        """Slots of the series of now."""
        return self._now.series

    @property
    def layouts(self) -> Mapping[str, Layout]:
        """Layouts of now."""
        return self._now.layouts

    @property
    def epochs(self) -> Mapping[str, Sequence[Epoch]]:
        """Epochs of now."""
        return self._now.epochs

    @property
    def account(self) -> Account:
        """The account of now."""
        return self._now.account

    def scan(self, level: PaneLevel, first_chunk: int, end_chunk: int, wanted: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """Sums of the wanted slots by day in [first, end), ascending."""
        assert level is HOUR, "only hours are revised"  # noqa: S101 - windows of revisions are made of hours
        taken_back = [(day, sums.of_slots(wanted)) for day, sums in self._taken_back if first_chunk <= day < end_chunk]
        days = merged(self._now.scan(level, first_chunk, end_chunk, wanted), taken_back, key=itemgetter(0))
        for day, parts in groupby(days, key=itemgetter(0)):
            yield day, merge([sums for _, sums in parts])

    def kept_from_ms(self, level: PaneLevel) -> int:
        """Event time from which on panes are kept."""
        return self._now.kept_from_ms(level)
