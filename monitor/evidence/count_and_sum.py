"""The count-and-sum e-process: evidence of miscalibration from (n, K, C) of grid bins, without the events.

With factors that are constant in a bin, the exact test martingale has -sum of ln(c f1 + (1-c) f0) over the bin's events; here
it is -n ln(m f1 + (1-m) f0) at their mean m. ln is concave, so this is never larger (Jensen): an e-process below a
martingale at every time, whatever the grid. Source: FORMULAS section 9.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from monitor.evidence.bets import Bets, Side, bets
from monitor.evidence.grid_sums import EDGES, PROBABILITY_ONE, GridSums
from monitor.statistics.fixed_point import F64, I64

ROWS_AT_ONCE = 256
"""Rows of 306 bins that are worked on together: bounds the memory that a long history takes to some ten megabytes."""


def log_e_over(sums: GridSums, tolerance: float = 0.0) -> F64:
    """Logarithm of E of "accuracy is below confidence - tolerance", of the events as they are.

    Args:
        sums: Shape (..., 306).
        tolerance: In [0, 1).

    Returns:
        Shape (...); 0 without an event: E is 1 before any bet.
    """
    return log_mixture(bets(Side.OVER, tolerance), log_e_of_bets(bets(Side.OVER, tolerance), sums, guarded=False))


def log_e_under(sums: GridSums, tolerance: float = 0.0) -> F64:
    """Logarithm of E of "accuracy is above confidence + tolerance"; as `log_e_over`."""
    return log_mixture(bets(Side.UNDER, tolerance), log_e_of_bets(bets(Side.UNDER, tolerance), sums, guarded=False))


def log_e_both(over: F64, under: F64) -> F64:
    """Logarithm of the mean of two e-values, one of each side: a two-sided test; any equal shapes."""
    return np.asarray(np.logaddexp(over, under) - np.log(2.0))


def log_mixture(side: Bets, log_e: F64) -> F64:
    """Logarithm of the mean over bets, weighted by their first stakes.

    Args:
        side: The bets.
        log_e: ln of one number per bet, shape (..., n_bets); -inf and +inf are numbers too.

    Returns:
        Shape (...).
    """
    return np.asarray(logsumexp(log_e + side.log_weight, axis=-1))


def log_e_of_bets(side: Bets, sums: GridSums, *, guarded: bool) -> F64:
    """Logarithm of E of every bet: sum over bins of K ln f1 + (n-K) ln f0 - n ln(m f1 + (1-m) f0).

    Every row depends on its own integers alone, bit for bit, however many rows are asked for at once.

    Args:
        side: The bets.
        sums: Shape (..., 306).
        guarded: Move every mean confidence by 2^-33, which is what the fixed point may have added to it, to the side where E is
            smaller. Alarms have to; descriptive values do not, and differ by less than that where no bin's centre is near 0 or 1.

    Returns:
        Shape (..., n_bets); finite, 0 without an event.
    """
    shape = sums.count.shape[:-1]
    flat = GridSums(*(array.reshape(-1, array.shape[-1]) for array in (sums.count, sums.correct, sums.excess)))
    result = np.zeros((len(flat.count), len(side.log_weight)))
    for first in range(0, len(result), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        _add_rows(side, flat.rows(rows), guarded, result[rows])
    return result.reshape(*shape, len(side.log_weight))


def _add_rows(side: Bets, sums: GridSums, guarded: bool, result: F64) -> None:
    """Fill rows of the result that hold an event; the others stay."""
    row, column = np.nonzero(sums.count)
    if not len(row):
        return
    count = sums.count[row, column]
    correct = sums.correct[row, column]
    claimed = _claimed(side, column, count, sums.excess[row, column], guarded)
    # The mean factor is 1 at the centre, so it is written as its distance from there: no digits are lost.
    mean_factor = (claimed - side.centre[column]) * side.slope[:, column]
    terms = correct * side.log_right[:, column] + (count - correct) * side.log_wrong[:, column] - count * np.log1p(mean_factor)
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    result[row[starts]] = np.add.reduceat(terms, starts, axis=1).T


def _claimed(side: Bets, column: I64, count: I64, excess: I64, guarded: bool) -> F64:
    """Lowest (over) or highest (under) accuracy of a bin that H0 allows, given what its events claim on average."""
    sign = -1.0 if side.side is Side.OVER else 1.0
    rounding = sign * 0.5 * count if guarded else 0.0
    mean = EDGES[column] + (excess + rounding) / count / PROBABILITY_ONE
    return np.asarray(np.clip(mean + sign * side.tolerance, 0.0, 1.0))
