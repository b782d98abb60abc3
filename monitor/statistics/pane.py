"""Panes: sparse sums by (pane, series slot, position), as flat sorted integers.

A key packs the three: pane number << 36 | slot << 16 | position in the cell. Arrays of keys and values are all there is
to a set of panes, so merging is concatenating and adding what has the same key: associative, order-free, invertible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.duration import HOUR_MS, MINUTE_MS
from monitor.errors import CapacityError
from monitor.statistics.addition import Additions
from monitor.statistics.fixed_point import I64, SAFE_EVENTS

POSITION_BITS = 16
SLOT_BITS = 20
PANE_SHIFT = POSITION_BITS + SLOT_BITS
MAX_SLOTS = 1 << SLOT_BITS
_INT64_BITS = 63
_POSITION_MASK = (1 << POSITION_BITS) - 1
_SLOT_MASK = MAX_SLOTS - 1


@dataclass(frozen=True, slots=True)
class PaneLevel:
    """A width of panes, and how many make a chunk that is kept and stored as one.

    Attributes:
        name: One letter, part of stored keys.
        pane_ms: Width of a pane.
        panes_per_chunk: Panes in a chunk.
    """

    name: str
    pane_ms: int
    panes_per_chunk: int

    @property
    def chunk_ms(self) -> int:
        """Width of a chunk."""
        return self.pane_ms * self.panes_per_chunk


MINUTE = PaneLevel("m", MINUTE_MS, 60)
HOUR = PaneLevel("h", HOUR_MS, 24)
TABLES = PaneLevel("t", HOUR_MS, 24)
"""Hours of the segments that are kept by the hour from the start: wide, and read by few; what reads them not need not load them."""


@dataclass(frozen=True, slots=True)
class PaneSums:
    """Sums of any number of panes.

    Attributes:
        keys: Packed (pane, slot, position), shape (n,).
        values: Shape (n,).
    """

    keys: I64
    values: I64

    @classmethod
    def empty(cls) -> PaneSums:
        """No sums: the identity of `merge`."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @property
    def pane(self) -> I64:
        """Pane number (event time // pane width) of each entry."""
        return self.keys >> PANE_SHIFT

    @property
    def slot(self) -> I64:
        """Series slot of each entry."""
        return (self.keys >> POSITION_BITS) & _SLOT_MASK

    @property
    def position(self) -> I64:
        """Position in the cell of each entry."""
        return self.keys & _POSITION_MASK

    def between(self, first_pane: int, end_pane: int) -> PaneSums:
        """Entries of panes [first, end); the keys must be ascending."""
        low, high = np.searchsorted(self.keys, [first_pane << PANE_SHIFT, end_pane << PANE_SHIFT])
        return PaneSums(self.keys[low:high], self.values[low:high])

    def of_slots(self, slots: NDArray[np.bool_]) -> PaneSums:
        """Entries of the slots that are true."""
        chosen = slots[self.slot]
        return PaneSums(self.keys[chosen], self.values[chosen])

    def split(self, panes_per_chunk: int) -> list[tuple[int, PaneSums]]:
        """The entries by chunk number, chunks ascending; the keys must be ascending."""
        if not len(self.keys):
            return []
        chunk = self.pane // panes_per_chunk
        starts = np.flatnonzero(np.diff(chunk, prepend=chunk[0] - 1))
        ends = np.append(starts[1:], len(chunk))
        return [
            (int(chunk[start]), PaneSums(self.keys[start:end], self.values[start:end])) for start, end in zip(starts, ends, strict=True)
        ]

    def with_slots(self, slots: I64) -> PaneSums:
        """The same sums under other slots (`slots[old] = new`), merged where they meet."""
        keys = (self.keys & ~(_SLOT_MASK << POSITION_BITS)) | (slots[self.slot] << POSITION_BITS)
        return merge([PaneSums(keys, self.values)])

    @classmethod
    def from_bytes(cls, data: bytes) -> PaneSums:
        """The sums that `joined_bytes` wrote; keys in no order, and perhaps more than once.

        Raises:
            ValueError: The length is not that of an even number of int64.
        """
        if len(data) % 16:
            raise ValueError(f"{len(data)} bytes are no pane sums")
        numbers = np.frombuffer(data, dtype="<i8").astype(np.int64, copy=False)
        return cls(numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :])


def joined(parts: Sequence[PaneSums]) -> PaneSums:
    """Parts whose keys ascend, also from each part to the next."""
    if len(parts) == 1:
        return parts[0]
    empty = PaneSums.empty()
    return PaneSums(
        np.concatenate([empty.keys, *(part.keys for part in parts)]), np.concatenate([empty.values, *(part.values for part in parts)])
    )


def joined_bytes(parts: Sequence[PaneSums]) -> bytes:
    """Stored form of parts together: all keys, then all values, little-endian int64."""
    arrays = [part.keys for part in parts] + [part.values for part in parts]
    return b"".join([array.astype("<i8", copy=False).tobytes() for array in arrays])


def cell_sums(slot: int, positions: I64, values: I64) -> PaneSums:
    """Sums of one series without a pane (pane number 0): a cell of its own."""
    return PaneSums((slot << POSITION_BITS) | positions, values)


def merge(parts: Sequence[PaneSums]) -> PaneSums:
    """Add up parts by key, ascending; entries that cancel to zero disappear.

    Raises:
        CapacityError: A sum came so near to int64's range that it could be wrong.
    """
    keys = np.concatenate([part.keys for part in parts]) if parts else np.empty(0, dtype=np.int64)
    if not len(keys):
        return PaneSums.empty()
    values = np.concatenate([part.values for part in parts])
    # One part that was stored whole, or parts one after the other, have nothing to add up.
    if not (keys[1:] > keys[:-1]).all():
        keys, order = _ordered(keys)
        values = values[order]
        starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
        keys, values = keys[starts], np.add.reduceat(values, starts)
    kept = values != 0
    keys, values = keys[kept], values[kept]
    # Position 0 counts predictions; every other sum is bounded by that count times its scale.
    counts = values[(keys & _POSITION_MASK) == 0]
    if len(counts) and int(counts.max()) > SAFE_EVENTS:
        raise CapacityError(f"one series has more than {SAFE_EVENTS} predictions in one pane: its sums could overflow")
    return PaneSums(keys, values)


def coarser(parts: Sequence[PaneSums], ratio: int) -> PaneSums:
    """Parts added up in panes that are `ratio` times as wide."""
    within = (1 << PANE_SHIFT) - 1
    return merge([PaneSums((part.pane // ratio << PANE_SHIFT) | (part.keys & within), part.values) for part in parts])


def pane_sums(rows: Additions, pane_ms: int, chosen: I64) -> list[PaneSums]:
    """Sum additions by pane, series and bin.

    Args:
        rows: Of one kind of segment.
        pane_ms: Width of a pane.
        chosen: Row numbers to sum.

    Returns:
        Parts, each with ascending keys and none twice; together they are the sums.
    """
    chosen = chosen[rows.slot[chosen] >= 0]
    if not len(chosen):
        return []
    cell = ((rows.event_time_ms[chosen] // pane_ms) << PANE_SHIFT) | (rows.slot[chosen] << POSITION_BITS)
    code, order = _ordered(cell if rows.bin is None else cell | rows.bin[chosen])
    row = chosen[order]
    cell_of = code >> POSITION_BITS
    starts = np.flatnonzero(np.diff(cell_of, prepend=cell_of[0] - 1))
    parts = []
    if len(rows.scalar_at):
        parts.append(_nonzero(cell_of[starts] << POSITION_BITS, np.add.reduceat(rows.scalars[:, row], starts, axis=1), rows.scalar_at))
    if rows.bin is not None:
        starts = np.flatnonzero(np.diff(code, prepend=code[0] - 1))
        first = (cell_of[starts] << POSITION_BITS) + rows.first_bin + (code[starts] & _POSITION_MASK) * rows.bin_width
        parts.append(_nonzero(first, np.add.reduceat(rows.bins[:, row], starts, axis=1), rows.bin_at))
    return parts


def _ordered(code: I64) -> tuple[I64, I64]:
    """Codes ascending, and the order that makes them so.

    Sorting numbers is several times as fast as sorting their positions, so the position rides in the low bits wherever
    the codes leave room for it.
    """
    base = int(code.min())
    bits = len(code).bit_length()
    if (int(code.max()) - base).bit_length() + bits >= _INT64_BITS:
        order = np.argsort(code)
        return code[order], order
    packed = np.sort(((code - base) << bits) | np.arange(len(code)))
    return (packed >> bits) + base, packed & ((1 << bits) - 1)


def _nonzero(first_key: I64, sums: I64, at: I64) -> PaneSums:
    """The sums that are not zero, at positions from a first key on; keys ascending, as `first_key` is."""
    by_key = np.ascontiguousarray(sums.T)
    kept = by_key != 0
    return PaneSums((first_key[:, None] + at[None, :])[kept], by_key[kept])
