"""The ledger: all panes of a shard, the near ones in memory and every one of them in the store.

Panes are kept by chunk (a day of hours, an hour of minutes). A checkpoint stores what it added to a chunk as one delta;
when a chunk has many, they are absorbed: the chunk is written whole and its deltas go. So a late label costs a few
bytes, never a rewritten pane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monitor.errors import StateError
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.pane import PaneLevel, PaneSums, joined, joined_bytes, merge

Chunks = Mapping[int, Sequence[PaneSums]]
"""New sums in parts, by the number of the chunk they lie in; the keys of each part ascend."""

_MAX_DELTAS = 64
_MIN_ABSORB_BYTES = 1 << 22
_COMPACT_ENTRIES = 4096


@dataclass(slots=True)
class _Resident:
    """A chunk in memory: merged sums and what came since."""

    base: PaneSums
    recent: list[PaneSums] = field(default_factory=list)
    recent_entries: int = 0

    def add(self, parts: Sequence[PaneSums]) -> None:
        self.recent += parts
        self.recent_entries += sum(len(part.keys) for part in parts)
        if self.recent_entries > max(_COMPACT_ENTRIES, len(self.base.keys) // 2):
            self.whole()

    def whole(self) -> PaneSums:
        if self.recent:
            self.base = merge([self.base, *self.recent])
            self.recent = []
            self.recent_entries = 0
        return self.base


@dataclass(slots=True)
class _Stored:
    """What the store holds of a chunk."""

    base_bytes: int = 0
    deltas: int = 0
    delta_bytes: int = 0

    @property
    def worth_absorbing(self) -> bool:
        return self.deltas >= _MAX_DELTAS or self.delta_bytes > max(_MIN_ABSORB_BYTES, self.base_bytes)


def by_chunk(parts: Sequence[PaneSums], level: PaneLevel) -> dict[int, list[PaneSums]]:
    """Split parts, whose keys ascend, by the chunk they lie in."""
    chunks: dict[int, list[PaneSums]] = {}
    for part in parts:
        for chunk, found in part.split(level.panes_per_chunk):
            chunks.setdefault(chunk, []).append(found)
    return chunks


class Ledger:
    """Panes of one level.

    Args:
        level: Width of panes and chunks.
        store: Where they are kept.

    Raises:
        StateError: What is stored cannot be read.
    """

    def __init__(self, level: PaneLevel, store: StateStore) -> None:
        self.level = level
        self._store = store
        self._floor = 0
        self._resident: dict[int, _Resident] = {}
        self._stored: dict[int, _Stored] = {}
        for key, value in store.scan(*keys.panes(level.name, 0, 1 << 31)):
            self._note(keys.chunk_of(key), key[6:7] == b"0", len(value))

    def stage(self, chunks: Chunks, sequence: int, changes: Changes) -> None:
        """Add what a checkpoint must store of new sums to its changes."""
        for chunk, parts in chunks.items():
            data = joined_bytes(parts)
            changes.puts.append((keys.pane_delta(self.level.name, chunk, sequence), data))
            self._note(chunk, False, len(data))

    def apply(self, chunks: Chunks) -> None:
        """Take sums into memory that a commit has just stored; no one may read in between."""
        for chunk, parts in chunks.items():
            resident = self._resident.get(chunk)
            if resident is not None:
                resident.add(parts)

    def read(self, first_pane: int, end_pane: int) -> PaneSums:
        """Sums of panes [first, end), keys ascending."""
        per_chunk = self.level.panes_per_chunk
        found = [
            self.chunk(chunk).between(first_pane, end_pane)
            for chunk in sorted(self._stored)
            if first_pane < (chunk + 1) * per_chunk and chunk * per_chunk < end_pane
        ]
        return joined(found)

    def chunks(self) -> list[int]:
        """Numbers of the chunks that hold anything, ascending."""
        return sorted(self._stored)

    def chunk(self, number: int) -> PaneSums:
        """Sums of one chunk, keys ascending; one above the floor stays in memory from now on."""
        resident = self._resident.get(number)
        if resident is not None:
            return resident.whole()
        sums = self._read_stored(number)
        if number >= self._floor:
            self._resident[number] = _Resident(sums)
        return sums

    def raise_floor(self, event_time_ms: int) -> None:
        """Keep chunks that end before an event time out of memory from now on."""
        self._floor = max(self._floor, event_time_ms // self.level.chunk_ms)
        for chunk in [chunk for chunk in self._resident if chunk < self._floor]:
            del self._resident[chunk]

    def absorb(self) -> Changes:
        """Changes that write every chunk whole that has many deltas; to be committed before more is staged."""
        changes = Changes()
        for chunk, stored in self._stored.items():
            if stored.worth_absorbing:
                data = joined_bytes([self.chunk(chunk)])
                changes.delete_ranges.append(keys.pane_deltas(self.level.name, chunk))
                changes.puts.append((keys.pane_base(self.level.name, chunk), data))
                self._stored[chunk] = _Stored(base_bytes=len(data))
        return changes

    def expire(self, event_time_ms: int) -> Changes:
        """Changes that drop the chunks that end before an event time; they leave memory at once."""
        changes = Changes()
        end = event_time_ms // self.level.chunk_ms
        gone = [chunk for chunk in self._stored if chunk < end]
        if gone:
            changes.delete_ranges.append(keys.panes(self.level.name, 0, end))
        for chunk in gone:
            del self._stored[chunk]
            self._resident.pop(chunk, None)
        return changes

    def _note(self, chunk: int, base: bool, size: int) -> None:
        stored = self._stored.setdefault(chunk, _Stored())
        if base:
            stored.base_bytes = size
        else:
            stored.deltas += 1
            stored.delta_bytes += size

    def _read_stored(self, chunk: int) -> PaneSums:
        try:
            return merge([PaneSums.from_bytes(value) for _, value in self._store.scan(*keys.panes(self.level.name, chunk, chunk + 1))])
        except ValueError as error:
            raise StateError(
                f"{self.level.name}-pane chunk {chunk} is damaged: {error}; restore the state from a backup or start anew"
            ) from error
