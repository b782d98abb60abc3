"""What a shard holds for the evidence tests: the running sums of matured panes, and what is left of panes that history drops.

A chunk of panes that goes is kept in small (segment `all`, bins of the graded grid) until its panes have entered the tests, and is
then added to what is carried of its versions. Both are written in the commit that drops the panes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from monitor.evidence.cell import WIDTH
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR, PaneSums, joined_bytes, merge
from monitor.statistics.series import SeriesTable
from monitor.windows.matured import MaturedSums, VersionKey, add_cell, cells_by_version

_PER_CHUNK = HOUR.panes_per_chunk


class MaturedPanes:
    """Hour panes of a shard as the evidence tests see them.

    Args:
        store: Of the shard.
        series: Of the shard.
        read_hours: Sums of hour panes [first, end) that history still holds.

    Attributes:
        sums: Running sums of the panes that have matured.
        settled_pane: Panes before it have entered the tests, and that is stored.

    Raises:
        ValueError: What is stored is damaged.
    """

    def __init__(self, store: StateStore, series: SeriesTable, read_hours: Callable[[int, int], PaneSums]) -> None:
        self._series = series
        self._read_hours = read_hours
        self._numbers: dict[VersionKey, int] = {}
        self._carried: dict[VersionKey, I64] = {}
        for number, (_, value) in enumerate(store.scan(*keys.prefix_range(b"c"))):
            model, version, cell = msgspec.msgpack.decode(value, type=tuple[str, str, bytes])
            self._numbers[model, version] = number
            self._carried[model, version] = _cell(cell)
        self._expired = {
            int.from_bytes(key[1:], "big"): merge([PaneSums.from_bytes(value)]) for key, value in store.scan(*keys.prefix_range(b"e"))
        }
        self.sums = MaturedSums(series)
        self.settled_pane = 0
        self.restart()

    def restart(self) -> None:
        """Begin the running sums anew."""
        self.sums.restart(self._carried)

    def days(self) -> list[int]:
        """Numbers of the days that are gone and still have panes here."""
        return sorted(self._expired)

    def read(self, first_pane: int, end_pane: int) -> PaneSums:
        """Evidence sums of panes [first, end), whether history still holds them or not."""
        gone = [panes.between(first_pane, end_pane) for panes in self._expired.values()]
        return merge([self.sums.project(self._read_hours(first_pane, end_pane)), *gone])

    def expire(self, hours: PaneSums, changes: Changes) -> None:
        """Take over hour panes that a commit drops, and add to that commit what is kept of them.

        Args:
            hours: Sums of the panes; keys ascending.
            changes: Of the commit.
        """
        gone = self.sums.project(hours).split(_PER_CHUNK)
        for chunk, panes in gone:
            self._expired[chunk] = merge([self._expired.get(chunk, PaneSums.empty()), panes])
        done = [chunk for chunk in self._expired if (chunk + 1) * _PER_CHUNK <= self.settled_pane]
        changes.puts += [(keys.expired(chunk), joined_bytes([self._expired[chunk]])) for chunk, _ in gone if chunk not in done]
        grown: set[VersionKey] = set()
        for chunk in done:
            for version, cell in cells_by_version(self._expired.pop(chunk), self._series):
                add_cell(self._carried, version, cell)
                grown.add(version)
        changes.deletes += [keys.expired(chunk) for chunk in done]
        for version in sorted(grown):
            number = self._numbers.setdefault(version, len(self._numbers))
            data = self._carried[version].astype("<i8", copy=False).tobytes()
            changes.puts.append((keys.carried(number), msgspec.msgpack.encode([*version, data])))


def _cell(data: bytes) -> I64:
    cell = np.frombuffer(data, dtype="<i8").astype(np.int64)
    if len(cell) != WIDTH:
        raise ValueError(f"{len(data)} bytes are no evidence sums")
    return cell
