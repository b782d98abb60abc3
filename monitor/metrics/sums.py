"""Sums of many series at once, by name, as the metric functions read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from monitor.metrics.settings import Settings
from monitor.statistics.fixed_point import F64, I64, LIMB_BITS, PROBABILITY_BITS, RATIO_BITS
from monitor.statistics.layout import Layout
from monitor.statistics.segment import Segment

DEFAULT_SETTINGS = Settings()

_PROBABILITY = float(1 << PROBABILITY_BITS)
_RATIO = float(1 << RATIO_BITS)


class Sums:
    """Cells of series that share a layout, a kind of segment and report edges.

    Args:
        cells: One row a series, shape (n, width); counts small enough that no int64 expression here overflows
            (`fixed_point.SAFE_EVENTS`).
        layout: What the columns mean.
        segment: Which sums there are.
        edges: Report edges, each an edge of the segment's grid; empty for a segment without one over probabilities.
        names: What tells the rows apart where they are values of an attribute or classes.
        settings: What the model's configuration says about evaluation.

    Attributes:
        edges: As given.
        names: As given.
        settings: As given.
        has_ood_threshold: Whether the layout holds scores against a threshold.
        ood_high_is_in: Whether a high score means in distribution.
        classwise: Whether every class's own probability is watched.
        csr_clip: Least distance of a confidence from 1 in CSR.
    """

    def __init__(
        self,
        cells: I64,
        layout: Layout,
        segment: Segment,
        edges: F64,
        names: Sequence[str] = (),
        settings: Settings = DEFAULT_SETTINGS,
    ) -> None:
        self.edges = edges
        self.names = names
        self.settings = settings
        self.has_ood_threshold = layout.ood_threshold is not None
        self.ood_high_is_in = layout.ood_high_is_in
        self.classwise = layout.classwise
        self.csr_clip = layout.csr_clip
        self._cells = cells
        self._segment = segment
        self._grid = layout.edges(segment) if len(edges) else edges
        self._merged: dict[str, I64] = {}

    def __len__(self) -> int:
        return len(self._cells)

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

    def fine(self, name: str) -> I64:
        """A per-bin sum by grid bin, shape (n, n_grid_bins)."""
        begin = len(self._segment.scalars) + self._segment.bin(name)
        return self._cells[:, begin :: len(self._segment.bins)]

    def bins(self, name: str) -> I64:
        """A per-bin sum merged to the report bins, shape (n, n_bins)."""
        if name not in self._merged:
            self._merged[name] = self.merged(name, self.edges)
        return self._merged[name]

    def merged(self, name: str, edges: F64) -> I64:
        """A per-bin sum merged to other bins, each edge an edge of the grid, shape (n, len(edges) - 1)."""
        starts = np.searchsorted(self._grid, edges)
        starts[-1] += edges[-1] < self._grid[-1]  # the last bin is closed, see `grid.union_edges`
        first, last = int(starts[0]), int(starts[-1])
        return np.add.reduceat(self.fine(name)[:, first:last], starts[:-1] - first, axis=1)

    @property
    def grid(self) -> F64:
        """Edges of the grid."""
        return self._grid

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
