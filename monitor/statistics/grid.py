"""Grids of confidence: where bins begin and end, and which bin a confidence falls into.

Bins are `[edge_k, edge_k+1)`, the last one closed. Edges are exact doubles: k/B for B equal bins, and the graded grid,
which is fine where confidences are close to 0 or 1. Source: FORMULAS section 2.
"""

from __future__ import annotations

import numpy as np

from monitor.statistics.fixed_point import F64, I64

OCTAVES = 20
CALIBRATION_STEPS = 8
"""Steps an octave of the grid that calibration and the evidence tests merge from: 306 bins."""
RANK_STEPS = 32
"""Steps an octave of the grid that ranks come from: 1218 bins."""


def equal_edges(bins: int) -> F64:
    """The doubles k/B for k = 0..B; not `linspace`, which puts 0.3 a bit too high for B = 10."""
    return np.arange(bins + 1, dtype=np.float64) / bins


def graded_edges(steps: int) -> F64:
    """Edges with `steps` equal bins an octave of min(c, 1-c), 20 octaves on each side.

    Args:
        steps: A power of two; 8 gives 306 bins, 32 gives 1218.

    Returns:
        Ascending edges from 0 to 1, all exact doubles.
    """
    octave = np.arange(1, OCTAVES, dtype=np.int64)
    step = np.arange(steps, dtype=np.float64)
    rising = (2.0 ** -(octave[:, None] + 1.0)) * (1.0 + step[None, :] / steps)
    low = np.sort(rising.ravel())
    return np.concatenate(([0.0], low, [0.5], 1.0 - low[::-1], [1.0]))


def bin_index(edges: F64, confidences: F64) -> I64:
    """Bin of each confidence; -1 below the first edge, and below zero or past the end never for a grid on [0, 1].

    Args:
        edges: Ascending, shape (n_bins + 1,).
        confidences: Any shape.

    Returns:
        Bin numbers of the same shape: -1 below the first edge, n_bins above the last.
    """
    found = np.searchsorted(edges, confidences, side="right") - 1
    found[confidences == edges[-1]] = len(edges) - 2
    return found


def union_edges(report: F64, fine: F64) -> F64:
    """Ascending edges of both grids, so that either is an exact merge of the result.

    The last report bin is closed: a last edge below 1 starts a bin that holds this edge alone.
    """
    closed = np.nextafter(report[-1:], 1.0)
    return np.union1d(np.concatenate((report, closed)), fine)
