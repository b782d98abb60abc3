"""Sums of many series at once, by name, as the metric functions read them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from monitor.statistics.fixed_point import F64, I64, LIMB_BITS, PROBABILITY_BITS, RATIO_BITS
from monitor.statistics.layout import Layout, Segment

_PROBABILITY = float(1 << PROBABILITY_BITS)
_RATIO = float(1 << RATIO_BITS)


class Sums:
    """Cells of series that share a layout, a kind of segment and report edges.

    Args:
        cells: One row a series, shape (n, width); counts small enough that no int64 expression here overflows
            (`fixed_point.SAFE_EVENTS`).
        layout: What the columns mean.
        segment: Which sums there are.
        edges: Report edges, each an edge of the layout's grid.

    Attributes:
        edges: As given.
        has_ood_threshold: Whether the layout holds scores against a threshold.
    """

    def __init__(self, cells: I64, layout: Layout, segment: Segment, edges: F64) -> None:
        self.edges = edges
        self.has_ood_threshold = layout.ood_threshold is not None
        self._cells = cells
        self._layout = layout
        self._segment = segment
        self._starts = np.searchsorted(layout.grid, edges)
        self._starts[-1] += edges[-1] < layout.grid[-1]  # the last bin is closed, see `grid.union_edges`

    def count(self, name: str) -> I64:
        """A scalar count, shape (n,)."""
        return self._cells[:, self._segment.scalar(name)]

    def probability(self, name: str) -> F64:
        """A scalar sum of probabilities, shape (n,)."""
        return self.count(name) / _PROBABILITY

    def ratio(self, name: str) -> F64:
        """A scalar sum kept in two limbs, shape (n,)."""
        high, low = self.count(f"{name}_high"), self.count(f"{name}_low")
        return np.asarray((high * float(1 << LIMB_BITS) + low) / _RATIO, dtype=np.float64)

    def bins(self, name: str) -> I64:
        """A per-bin sum merged to the report bins, shape (n, n_bins)."""
        first, last = int(self._starts[0]), int(self._starts[-1])
        begin = len(self._segment.scalars) + self._segment.bin(name)
        step = len(self._segment.bins)
        fine = self._cells[:, begin + first * step : begin + (last - 1) * step + 1 : step]
        return np.add.reduceat(fine, self._starts[:-1] - first, axis=1)

    @cached_property
    def used(self) -> I64:
        """Labelled events inside the report edges, shape (n,)."""
        return np.asarray(self.bins("labelled").sum(axis=1))

    @cached_property
    def correct(self) -> I64:
        """Correct ones of the used events, shape (n,)."""
        return np.asarray(self.bins("correct").sum(axis=1))

    @cached_property
    def confidence(self) -> I64:
        """Sum of confidence of the used events, scaled by 2^32, shape (n,)."""
        return np.asarray(self.bins("confidence").sum(axis=1))

    @cached_property
    def deviation(self) -> I64:
        """Per bin: sum of confidence minus correct ones, scaled by 2^32, shape (n, n_bins); positive: over-confident."""
        return self.bins("confidence") - (self.bins("correct") << PROBABILITY_BITS)

    @cached_property
    def variance(self) -> I64:
        """Per bin: sum of c(1-c), scaled by 2^32, shape (n, n_bins)."""
        return self.bins("confidence") - self.bins("confidence_square")


def divide(numerator: F64 | I64, denominator: F64 | I64) -> F64:
    """Numerator over denominator, NaN where the denominator is not positive: undefined is decided here alone."""
    result = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def mass_edges(labelled: I64, grid: F64, bins: int) -> F64:
    """Edges of equal-mass bins, snapped to the grid's edge at or below.

    Args:
        labelled: Labelled events per grid bin, shape (n_grid_bins,).
        grid: Edges of the grid, from 0 to 1.
        bins: How many bins are wanted; fewer come out where confidences repeat.

    Source: FORMULAS section 2: an edge at the confidence at position floor(k n / B) of the sorted ones.
    """
    total = int(labelled.sum())
    reached = np.cumsum(labelled)
    positions = [k * total // bins for k in range(1, bins)] if total else []
    inner = grid[np.searchsorted(reached, positions, side="right")] if positions else np.empty(0)
    return np.unique(np.concatenate(([grid[0]], inner, [grid[-1]])))
