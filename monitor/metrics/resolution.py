"""ECE at other cuts of the confidences: whether it is the bins that hide or make a gap. Source: FORMULAS section 2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from monitor.metrics.sums import Sums, divide, mass_edges
from monitor.statistics.fixed_point import F64, PROBABILITY_BITS
from monitor.statistics.grid import equal_edges

RESOLUTIONS = (2, 4, 8, 16, 32, 64)
"""Numbers of equal bins whose edges are all edges of the grid."""

_ONE = float(1 << PROBABILITY_BITS)
_MASS_BINS = 15


def ece_of_bins(bins: int) -> Callable[[Sums], F64]:
    """ECE over equal bins on [0, 1], exact; over all labelled events.

    Args:
        bins: One of `RESOLUTIONS`. Merging bins never raises ECE.
    """

    def ece(sums: Sums) -> F64:
        return _ece(sums, equal_edges(bins))

    return ece


def ece_mass(sums: Sums) -> F64:
    """ECE over 15 bins of equal mass, their edges snapped to the grid's edge at or below, shape (n,)."""
    labelled = sums.fine("labelled")
    edges = [mass_edges(labelled[row], sums.grid, _MASS_BINS) for row in range(len(sums))]
    return np.array([_ece(sums, edges[row])[row] for row in range(len(sums))])


def ece_mass_tolerance(sums: Sums) -> F64:
    """Largest share of the labelled events in one grid bin: by so much a bin's mass may be off, shape (n,)."""
    labelled = sums.fine("labelled")
    return divide(labelled.max(axis=1), labelled.sum(axis=1))


def _ece(sums: Sums, edges: F64) -> F64:
    deviation = sums.merged("confidence", edges) - (sums.merged("correct", edges) << PROBABILITY_BITS)
    return divide(np.abs(deviation).sum(axis=1) / _ONE, sums.fine("labelled").sum(axis=1))
