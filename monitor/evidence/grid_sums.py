"""What every e-process of this package is a function of: integers per bin of the graded grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.errors import CapacityError
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS
from monitor.statistics.grid import CALIBRATION_STEPS, graded_edges

EDGES = graded_edges(CALIBRATION_STEPS)
"""Edges of the 306 bins."""

BINS = len(EDGES) - 1

PROBABILITY_ONE = float(1 << PROBABILITY_BITS)

_FLOORS = (EDGES[:-1] * PROBABILITY_ONE).astype(np.int64)  # exact: every edge is a multiple of 2^-23


@dataclass(frozen=True, slots=True, eq=False)
class GridSums:
    """Sums of events per bin of the graded grid; leading axes are series, panes or both.

    The sum of confidences is kept as its excess over the bins' lower edges: no bin is wider than 2^-5, so a sum since a
    version's start holds 2^36 events a bin, not 2^31.

    Attributes:
        count: Events, shape (..., 306).
        correct: Correct ones, same shape.
        excess: Sum of (confidence - lower edge of the bin) scaled by 2^32, same shape.
    """

    count: I64
    correct: I64
    excess: I64

    @classmethod
    def of(cls, count: I64, correct: I64, confidence: I64) -> GridSums:
        """From sums as cells hold them.

        Args:
            count: Events, shape (..., 306), below 2^30 each (`fixed_point.SAFE_EVENTS`).
            correct: 0 <= correct <= count, same shape.
            confidence: Sum of confidences scaled by 2^32, same shape.
        """
        return cls(count, correct, confidence - count * _FLOORS)

    @classmethod
    def empty(cls, shape: tuple[int, ...] = ()) -> GridSums:
        """No events; `shape` without the bins."""
        zeros = np.zeros((*shape, BINS), dtype=np.int64)
        return cls(zeros, zeros, zeros)

    @property
    def events(self) -> I64:
        """Events of all bins, shape (...)."""
        return np.asarray(self.count.sum(axis=-1))

    def rows(self, chosen: slice) -> GridSums:
        """A run of the last axis before the bins: some of the panes."""
        return GridSums(self.count[..., chosen, :], self.correct[..., chosen, :], self.excess[..., chosen, :])

    def merge(self, other: GridSums) -> GridSums:
        """Events of both; shapes broadcast.

        Raises:
            CapacityError: A sum does not fit into an int64 any more.
        """
        return _checked(GridSums(self.count + other.count, self.correct + other.correct, self.excess + other.excess))

    def cumulative(self) -> GridSums:
        """Of shape (..., n_panes, 306): the events of each pane and all before it.

        Raises:
            CapacityError: A sum does not fit into an int64 any more.
        """
        return _checked(GridSums(self.count.cumsum(axis=-2), self.correct.cumsum(axis=-2), self.excess.cumsum(axis=-2)))

    def total(self) -> GridSums:
        """Of shape (..., n_panes, 306): the events of all panes, shape (..., 306).

        Raises:
            CapacityError: A sum does not fit into an int64 any more.
        """
        return _checked(GridSums(self.count.sum(axis=-2), self.correct.sum(axis=-2), self.excess.sum(axis=-2)))


def bin_centres() -> F64:
    """Centres of the bins, shape (306,), exact doubles."""
    return np.asarray((EDGES[:-1] + EDGES[1:]) / 2)


def _checked(sums: GridSums) -> GridSums:
    """An excess is never negative, and one pane's is far below 2^62: the first overflow shows in the sign."""
    if sums.excess.size and sums.excess.min() < 0:
        message = "more than 2^36 predictions in one bin of an evidence record"
        raise CapacityError(message)
    return sums
