"""The ledger: all panes of a shard, the near ones in memory and every one of them in the store.

Panes are kept by chunk (a day of hours, an hour of minutes). A checkpoint stores what it added to a chunk as one delta;
when a chunk has many, they are absorbed: the chunk is written whole and its deltas go. So a late label costs a few
bytes, never a rewritten pane; and a chunk that has left memory, and to which nothing is added any more, is read in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from monitor.errors import StateError
from monitor.state import keys
from monitor.state.protocol import Changes, StateStore
from monitor.statistics.pane import PaneLevel, PaneSums, joined, joined_bytes, merge

Chunks = Mapping[int, Sequence[PaneSums]]
"""New sums in parts, by the number of the chunk they lie in; the keys of each part ascend."""

_MAX_DELTAS = 64
_MIN_ABSORB_BYTES = 1 << 22
_QUIET_CHECKPOINTS = 64
_QUIET_SHARE = 4
"""A quiet chunk's deltas stay until they are this part of its base, so that a trickle of late labels rewrites little."""

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
    changed: int = 0

    def add(self, size: int, sequence: int) -> None:
        """Count the delta of a checkpoint."""
        self.deltas += 1
        self.delta_bytes += size
        self.changed = sequence

    @property
    def crowded(self) -> bool:
        """Whether its deltas are too many to wait any longer."""
        return self.deltas >= _MAX_DELTAS or self.delta_bytes > max(_MIN_ABSORB_BYTES, self.base_bytes)

    def settled(self, sequence: int) -> bool:
        """Whether it has been quiet for some checkpoints, with deltas that are worth a rewrite."""
        return sequence - self.changed >= _QUIET_CHECKPOINTS and self.delta_bytes * _QUIET_SHARE > self.base_bytes


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

    What is stored is looked at when something is asked of it, and then raises StateError if it cannot be read.
    """

    def __init__(self, level: PaneLevel, store: StateStore) -> None:
        self.level = level
        self._store = store
        self._floor = 0
        self._resident: dict[int, _Resident] = {}

    @cached_property
    def _stored(self) -> dict[int, _Stored]:
        found: dict[int, _Stored] = {}
        for key, value in self._store.scan(*keys.panes(self.level.name, 0, 1 << 31)):
            stored, sequence = found.setdefault(keys.chunk_of(key), _Stored()), keys.delta_of(key)
            if sequence is None:
                stored.base_bytes = len(value)
            else:
                stored.add(len(value), sequence)
        return found

    def stage(self, chunks: Chunks, sequence: int, changes: Changes) -> None:
        """Add what a checkpoint must store of new sums to its changes."""
        for chunk, parts in chunks.items():
            data = joined_bytes(parts)
            changes.puts.append((keys.pane_delta(self.level.name, chunk, sequence), data))
            self._stored.setdefault(chunk, _Stored()).add(len(data), sequence)

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

    def scan(self, first_chunk: int, end_chunk: int, slots: NDArray[np.bool_]) -> Iterator[tuple[int, PaneSums]]:
        """Sums of some series' slots by chunk in [first, end), ascending: from the store alone, so that nothing stays in memory."""
        pieces = ((chunk, piece.of_slots(slots)) for chunk, piece in self._read_stored(first_chunk, end_chunk))
        for chunk, found in groupby(pieces, key=itemgetter(0)):
            yield chunk, merge([piece for _, piece in found])

    def chunks(self) -> list[int]:
        """Numbers of the chunks that hold anything, ascending."""
        return sorted(self._stored)

    def chunk(self, number: int) -> PaneSums:
        """Sums of one chunk, keys ascending; one above the floor stays in memory from now on."""
        resident = self._resident.get(number)
        if resident is not None:
            return resident.whole()
        sums = merge([piece for _, piece in self._read_stored(number, number + 1)])
        if number >= self._floor:
            self._resident[number] = _Resident(sums)
        return sums

    def parts_before(self, end_chunk: int) -> list[PaneSums]:
        """Sums of the chunks before one, for whoever adds them up: in any number of parts, keys in no order."""
        parts: list[PaneSums] = []
        for chunk in [chunk for chunk in self._stored if chunk < end_chunk]:
            resident = self._resident.get(chunk)
            stored = (piece for _, piece in self._read_stored(chunk, chunk + 1))
            parts += stored if resident is None else [resident.base, *resident.recent]
        return parts

    def raise_floor(self, event_time_ms: int) -> None:
        """Keep chunks that end before an event time out of memory from now on."""
        self._floor = max(self._floor, event_time_ms // self.level.chunk_ms)
        for chunk in [chunk for chunk in self._resident if chunk < self._floor]:
            del self._resident[chunk]

    def absorb(self, sequence: int) -> Changes:
        """Changes that write chunks whole: all that have many deltas, and one that has settled; to be committed before more is staged.

        Args:
            sequence: Number of the last checkpoint.
        """
        changes = Changes()
        chunks = [chunk for chunk, stored in self._stored.items() if stored.crowded]
        # After a long stop many may have settled: one a round, so that no round takes long.
        settled = (chunk for chunk, stored in self._stored.items() if chunk < self._floor and stored.settled(sequence))
        for chunk in dict.fromkeys((*chunks, *islice(settled, 1))):
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

    def _read_stored(self, first_chunk: int, end_chunk: int) -> Iterator[tuple[int, PaneSums]]:
        """Each piece of chunks [first, end) that is stored, with the chunk's number, which ascends."""
        for key, value in self._store.scan(*keys.panes(self.level.name, first_chunk, end_chunk)):
            chunk = keys.chunk_of(key)
            try:
                yield chunk, PaneSums.from_bytes(value)
            except ValueError as error:
                raise StateError(
                    f"{self.level.name}-pane chunk {chunk} is damaged: {error}; restore the state from a backup or start anew"
                ) from error
