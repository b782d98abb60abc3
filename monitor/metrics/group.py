"""Groups against each other: calibration inside each value of a group attribute, and rejection of one value against the rest.

A row is one attribute of one version, a column one of its values; rows with fewer values are filled with zeros. A value
takes part from `min_count` events on; smaller ones are shown elsewhere with their wide intervals and enter nothing here, not even "the
rest". `__other__` is a mixture and no group: callers leave it out. Source: FORMULAS sections 3 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.exact import binomial_p, holm, largest, smallest
from monitor.metrics.fisher import fisher_p
from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)
_COMPARED = 2
"""Fewest groups that can differ."""


@dataclass(frozen=True)
class GroupDecisions:
    """Decisions by group value.

    Attributes:
        decided: Predictions with a decision, shape (n, n_values).
        accepted: Accepted ones of them, same shape.
        min_count: Fewest decided predictions of a group that takes part, at least 1.
    """

    decided: I64
    accepted: I64
    min_count: int

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which values take part, shape (n, n_values)."""
        return self.decided >= self.min_count

    @cached_property
    def p_holm(self) -> F64:
        """See `rejection_rate_p_holm`."""
        decided = np.where(self.used, self.decided, 0)
        rejected = np.where(self.used, self.decided - self.accepted, 0)
        other_decided = decided.sum(axis=1, keepdims=True) - decided
        other_rejected = rejected.sum(axis=1, keepdims=True) - rejected
        return holm(fisher_p(rejected, decided, other_rejected, other_decided))


def groups_used(groups: GroupDecisions) -> I64:
    """Values with enough decided predictions, shape (n,)."""
    return np.asarray(groups.used.sum(axis=1))


def rejection_rate_spread(groups: GroupDecisions) -> F64:
    """Largest minus smallest rejection rate of the groups used, shape (n,); NaN with fewer than two."""
    rates = _used_share(groups, groups.decided - groups.accepted)
    return _compared(groups, largest(rates) - smallest(rates))


def group_acceptance_ratio(groups: GroupDecisions) -> F64:
    """Smallest over largest acceptance rate of the groups used, shape (n,); NaN with fewer than two or where none accepts."""
    rates = _used_share(groups, groups.accepted)
    return _compared(groups, divide(smallest(rates), np.nan_to_num(largest(rates))))


def rejection_rate_p_holm(groups: GroupDecisions) -> F64:
    """Fisher's exact p-value of each group used against the other groups used, with Holm's correction, shape (n, n_values).

    NaN for a value that takes no part, and with fewer than two groups.
    """
    return groups.p_holm


def rejection_disparity_p(groups: GroupDecisions) -> F64:
    """Smallest `rejection_rate_p_holm`, shape (n,): a p-value of "all groups are rejected alike"."""
    return smallest(groups.p_holm)


@dataclass(frozen=True)
class GroupCalibration:
    """Calibration sums by group value and report bin; a cell is one bin of one value.

    Attributes:
        labelled: Used labelled events, shape (n, n_values, n_bins).
        correct: Correct ones of them, same shape.
        confidence: Sum of their confidence, scaled by 2^32, same shape.
        version_used: Used labelled events of the whole version, with and without a value, shape (n,).
        min_count: Fewest labelled events of a group or a cell that takes part, at least 1.
    """

    labelled: I64
    correct: I64
    confidence: I64
    version_used: I64
    min_count: int

    @cached_property
    def count(self) -> I64:
        """Labelled events of each value that has enough, else 0, shape (n, n_values)."""
        count = self.labelled.sum(axis=2)
        return np.where(count >= self.min_count, count, 0)

    @cached_property
    def cells(self) -> tuple[I64, I64, I64]:
        """Count, correct and confidence of each cell that has enough (its value then has too), else 0, shape (n, n_values x n_bins)."""
        enough = self.labelled >= self.min_count
        n, values, bins = enough.shape
        parts = self.labelled, self.correct, self.confidence
        count, correct, confidence = (np.where(enough, part, 0).reshape(n, values * bins) for part in parts)
        return count, correct, confidence

    @property
    def deviation(self) -> F64:
        """Sum of confidence minus correct ones of each cell, shape (n, n_values, n_bins)."""
        return (self.confidence - (self.correct << PROBABILITY_BITS)) / _ONE

    @property
    def cell_gaps(self) -> F64:
        """|D| of each cell that has enough, else 0, shape (n, n_values x n_bins)."""
        _, correct, confidence = self.cells
        return np.abs(confidence - (correct << PROBABILITY_BITS)) / _ONE


def multicalibration_groups(groups: GroupCalibration) -> I64:
    """Values with enough labelled events, shape (n,)."""
    return np.asarray((groups.count > 0).sum(axis=1))


def multicalibration_cells(groups: GroupCalibration) -> I64:
    """Cells with enough labelled events, shape (n,)."""
    return np.asarray((groups.cells[0] > 0).sum(axis=1))


def group_overconfidence_max(groups: GroupCalibration) -> F64:
    """Largest |overconfidence| of a group, shape (n,); NaN without a group that has enough events."""
    return largest(divide(np.abs(groups.deviation.sum(axis=2)), groups.count))


def group_ece_max(groups: GroupCalibration) -> F64:
    """Largest ECE of a group, shape (n,); NaN without a group that has enough events."""
    return largest(divide(np.abs(groups.deviation).sum(axis=2), groups.count))


def multicalibration_max_gap(groups: GroupCalibration) -> F64:
    """Largest gap between confidence and accuracy of a cell, |D|/n of the cell, shape (n,); NaN without a cell."""
    return largest(divide(groups.cell_gaps, groups.cells[0]))


def multicalibration_max_weighted_gap(groups: GroupCalibration) -> F64:
    """Largest |D| of a cell over the used events of the whole version, shape (n,): its part in the version's ECE."""
    gaps = divide(groups.cell_gaps, groups.version_used[:, None])
    return largest(np.where(groups.cells[0] > 0, gaps, np.nan))


def multicalibration_p_holm(groups: GroupCalibration) -> F64:
    """Smallest exact p-value of a cell with Holm's correction for all cells, shape (n,); NaN without a cell."""
    return smallest(holm(binomial_p(*groups.cells)))


def _used_share(groups: GroupDecisions, hits: I64) -> F64:
    return np.where(groups.used, divide(hits, groups.decided), np.nan)


def _compared(groups: GroupDecisions, values: F64) -> F64:
    return np.where(groups_used(groups) >= _COMPARED, values, np.nan)
