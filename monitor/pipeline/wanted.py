"""What a question about past moments reads of a shard: panes of the series that it asks for, while a window needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from monitor.pipeline.panes import Panes
from monitor.statistics.pane import PaneLevel, PaneSums, joined
from monitor.statistics.series import SeriesKey


class WantedPanes:
    """Panes of some series, kept from when they enter a window until they have left it.

    Chunks one after the other come out of one scan: to find the first of them in a store costs as much as to read several.

    Args:
        shard: Whose panes.
        wants: Whether a series is asked for.
        level: Which panes.
        end_pane: No moment needs this one or a later one.
    """

    def __init__(self, shard: Panes, wants: Callable[[SeriesKey], bool], level: PaneLevel, end_pane: int) -> None:
        self._shard = shard
        self._wants = wants
        self._level = level
        self._end_chunk = -(-end_pane // level.panes_per_chunk)
        self._scan: Iterator[tuple[int, PaneSums]] = iter(())
        self._known = range(-1, -1)
        self._chunks: dict[int, PaneSums] = {}

    def read(self, level: PaneLevel, first_pane: int, end_pane: int) -> PaneSums:
        """Sums of panes [first, end), keys ascending."""
        assert level is self._level, "a question is about panes of one level"  # noqa: S101 - a window has one level
        per_chunk = level.panes_per_chunk
        numbers = range(first_pane // per_chunk, -(-end_pane // per_chunk))
        return joined([chunk.between(first_pane, end_pane) for chunk in map(self._chunk, numbers) if chunk is not None])

    def forget_before(self, pane: int) -> None:
        """Free the chunks that end before a pane; asked for again they are read again."""
        first = pane // self._level.panes_per_chunk
        self._known = range(max(first, self._known.start), self._known.stop)
        for number in [number for number in self._chunks if number < first]:
            del self._chunks[number]

    def _chunk(self, number: int) -> PaneSums | None:
        """Sums of a chunk; None if there are none."""
        if number not in self._known:
            self._go_to(number)
        return self._chunks.get(number)

    def _go_to(self, number: int) -> None:
        """Read on until a chunk is known, from it on if it is not the next."""
        if number != self._known.stop:
            series = self._shard.series
            wanted = np.array([self._wants(series.key(slot)) for slot in range(len(series))], dtype=np.bool_)
            self._scan = self._shard.scan(self._level, number, self._end_chunk, wanted)
            self._known = range(number, number)
            self._chunks = {}
        until = self._end_chunk
        for found, sums in self._scan:
            self._chunks[found] = sums
            if found >= number:
                until = found + 1
                break
        self._known = range(self._known.start, until)
