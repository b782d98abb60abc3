"""Additions: what rows of one kind of segment add to their cells, ready to be summed by any grouping of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.statistics.fixed_point import I64
from monitor.statistics.segment import Segment


@dataclass(frozen=True, slots=True)
class Additions:
    """One row a change of one cell.

    Attributes:
        hourly: Whether they go to panes of hours at once.
        event_time_ms: Shape (n,).
        slot: Series slot of the cell; -1 where the row adds to none. Shape (n,).
        bin: Bin inside the cell, shape (n,), or None where there is nothing to add to bins.
        scalar_at: Positions in the cell of the scalars that are added to, ascending.
        scalars: What is added to them, shape (len(scalar_at), n).
        first_bin: Position in the cell where its bins begin.
        bin_width: Positions that each bin has.
        bin_at: Positions inside the bin that are added to, ascending.
        bins: What is added to them, shape (len(bin_at), n).
    """

    hourly: bool
    event_time_ms: I64
    slot: I64
    bin: I64 | None
    scalar_at: I64
    scalars: I64
    first_bin: int
    bin_width: int
    bin_at: I64
    bins: I64

    @classmethod
    def of(
        cls,
        segment: Segment,
        event_time_ms: I64,
        slot: I64,
        place: I64 | None,
        scalars: Mapping[str, I64],
        bins: Mapping[str, I64],
    ) -> Additions:
        """Arrange sums by name in the segment's order; names that the segment does not have are left out."""
        scalar_names = [name for name in segment.scalars if name in scalars]
        bin_names = [name for name in segment.bins if name in bins]
        return cls(
            segment.hourly,
            event_time_ms,
            slot,
            place if bin_names else None,
            np.array([segment.scalar(name) for name in scalar_names], dtype=np.int64),
            _stacked([scalars[name] for name in scalar_names], len(slot)),
            len(segment.scalars),
            len(segment.bins),
            np.array([segment.bin(name) for name in bin_names], dtype=np.int64),
            _stacked([bins[name] for name in bin_names], len(slot)),
        )

    def of_slots(self, slot: I64) -> Additions:
        """The same additions to cells of other series."""
        return replace(self, slot=slot)


def _stacked(rows: list[I64], n: int) -> I64:
    return np.stack(rows) if rows else np.empty((0, n), dtype=np.int64)
