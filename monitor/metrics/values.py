"""Confidences that repeat, as the value table gives them back; and histograms in which they stand apart from the rest.

A histogram leaves the order inside a bin open. Where a bin's events lie on known values it is known; the remainder of the
bin may lie anywhere in it. So ranks get two orders: the one that favours the positives most, and the one that does so
least. Every order that is possible lies between them, hence so does every metric that a swap of neighbours can only raise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import bin_index
from monitor.statistics.segment import VALUES
from monitor.statistics.value_table import recovered


@dataclass(frozen=True, slots=True)
class Values:
    """Values that are known, ascending, and what lies on each.

    Attributes:
        value: Shape (m,).
        labelled: Events.
        correct: Those of them that are positive.
        weight: Their summed weights; 0 where there are none.
        correct_weight: Those of the positive ones.
    """

    value: F64
    labelled: I64
    correct: I64
    weight: I64
    correct_weight: I64

    @classmethod
    def of(cls, cell: I64) -> Values:
        """Values of a cell of kind `VALUES`; buckets that mix values are left out."""
        table = cell[len(VALUES.scalars) :].reshape(-1, len(VALUES.bins))
        table = table[table[:, 0] > 0]
        count, correct, high, low, hashes, weight, correct_weight = table.T
        value, known = recovered(count, high, low, hashes)
        chosen = np.flatnonzero(known)
        chosen = chosen[np.argsort(value[chosen])]
        return cls(value[chosen], count[chosen], correct[chosen], weight[chosen], correct_weight[chosen])


@dataclass(frozen=True, slots=True)
class Orders:
    """Positives and negatives in the two extreme orders, ascending by confidence, one column a tie.

    Attributes:
        best: Positives and negatives, the open ones as favourable as can be, shape (2, n).
        worst: As unfavourable as can be, shape (2, n).
    """

    best: I64
    worst: I64


def orders(grid: F64, positives: I64, negatives: I64, known: F64, known_positives: I64, known_negatives: I64) -> Orders:
    """Both extreme orders of a histogram some of whose values are known.

    Args:
        grid: Edges of the bins.
        positives: Counts, or sums of weights, by bin; shape (n_bins,).
        negatives: Likewise.
        known: Known values, shape (m,).
        known_positives: What of the positives lies on them.
        known_negatives: Likewise.
    """
    place = bin_index(grid, known)
    rest = np.stack((positives, negatives))
    for row, part in enumerate((known_positives, known_negatives)):
        np.subtract.at(rest[row], place, part)
    nothing = np.zeros_like(rest[0])
    sides = (np.stack((rest[0], nothing)), np.stack((nothing, rest[1])))
    bins = np.arange(len(grid) - 1)
    # A bin's columns: what may be lowest, the known values in their order, what may be highest.
    column = np.concatenate((bins, place, bins))
    part = np.repeat((0, 1, 2), (len(bins), len(place), len(bins)))
    order = np.lexsort((np.concatenate((np.zeros(len(bins)), known, np.zeros(len(bins)))), part, column))
    middle = np.stack((known_positives, known_negatives))
    found = [np.concatenate((low, middle, high), axis=1)[:, order] for low, high in ((sides[1], sides[0]), sides)]
    return Orders(*(one[:, one.any(axis=0)] for one in found))
