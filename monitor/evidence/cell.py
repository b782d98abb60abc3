"""A version's sums for the evidence tests: a few integers per bin of the graded grid, whatever the layout they were counted in.

Every layout's grid holds the edges of the graded grid, so a version's evidence goes on when its layout changes.
"""

from __future__ import annotations

import numpy as np

from monitor.evidence.bets import Side
from monitor.evidence.grid_sums import BINS, EDGES, GridSums
from monitor.evidence.missing import Missing, matured
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.segment import ALL

SUMS = ("predictions", "prediction_confidence", "labelled", "correct")
"""Names of the sums; a cell has those of all bins one after the other. They are added modulo 2^64: the sum of confidences of a long
history may wrap around, its excess over the bins' lower edges, which the tests take, does not."""

WIDTH = len(SUMS) * BINS


def positions(layout: Layout) -> I64:
    """Where each sum of a segment `all` cell of a layout is added in a cell of this module; -1 where it is not.

    Returns:
        Shape (layout.width(ALL),).
    """
    place = np.full(layout.width(ALL), -1, dtype=np.int64)
    bins = place[len(ALL.scalars) :].reshape(-1, len(ALL.bins))
    graded = np.searchsorted(EDGES, layout.grid[:-1], side="right") - 1
    for number, name in enumerate(SUMS):
        bins[:, ALL.bin(name)] = number * BINS + graded
    return place


def side_sums(side: Side, cells: I64) -> GridSums:
    """Sums as a side's test takes them, missing labels counted against it.

    Args:
        side: What the test looks for.
        cells: Shape (..., WIDTH).
    """
    predictions, confidence, labelled, correct = parts(cells)
    known = GridSums(labelled, correct, np.zeros_like(labelled))
    return matured(side, Missing.COUNT, known, predictions, confidence)


def parts(cells: I64) -> tuple[I64, I64, I64, I64]:
    """The four sums by bin, in the order of `SUMS`, shape (..., 306) each."""
    predictions, confidence, labelled, correct = (cells[..., number * BINS : (number + 1) * BINS] for number in range(len(SUMS)))
    return predictions, confidence, labelled, correct
