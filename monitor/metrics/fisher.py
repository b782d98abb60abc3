"""Fisher's exact test of many 2 x 2 tables at once.

P-values keep their relative precision down to the smallest double, with counts up to 2^30.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from monitor.statistics.fixed_point import F64, I64

_TIE = 1e-9
"""Tables whose log probabilities differ by less are equally probable: the difference is rounding."""

_STEADY = 1 + 2.0**-52
_CHUNK = 64
_NEGLIGIBLE = 1e-17
_SERIES_FROM = 16


def fisher_p(hits: I64, trials: I64, other_hits: I64, other_trials: I64) -> F64:
    """Two-sided p-value of Fisher's exact test that two shares are equal.

    Args:
        hits: 0 <= hits <= trials; any shape.
        trials: Same shape, at most 2^30.
        other_hits: Of the other share; same shape.
        other_trials: Same shape, at most 2^30.

    Returns:
        Given the sums of rows and columns, the probability of all tables that are no more probable than this one; NaN where
        either share has no trial.

    Source: Fisher (1935), with the two-sided convention of R and scipy.

    >>> fisher_p(np.array([8]), np.array([10]), np.array([1]), np.array([6])).round(6)
    array([0.034965])
    """
    p = np.where((trials > 0) & (other_trials > 0), 1.0, np.nan)
    # With the columns in this order there are no more hits than expected, so the table's own tail is the one below.
    more = hits * other_trials > other_hits * trials
    tables = _Tables(trials, other_trials, np.where(more, trials - hits + other_trials - other_hits, hits + other_hits))
    count = np.where(more, trials - hits, hits)
    mode = (tables.column + 1) * (trials + 1) // (trials + other_trials + 2)

    rare = count < mode  # a table at the mode has p = 1
    tables, count, mode = tables[rare], count[rare], mode[rare]
    log_p = tables.log_probability(count)
    found = np.exp(log_p) * tables.tail(count, -1)
    far, exists = _far_edge(tables, mode, log_p)
    tables, far = tables[exists], far[exists]
    found[exists] += np.exp(tables.log_probability(far)) * tables.tail(far, 1)
    p[rare] = np.minimum(found, 1.0)
    return p


def _far_edge(tables: _Tables, mode: I64, log_p: F64) -> tuple[I64, NDArray[np.bool_]]:
    """Smallest count from the mode up whose table is no more probable than `exp(log_p)`, and whether there is one.

    The log probability is concave in the count: a line through two neighbours above the mode, continued, is nowhere below
    it. So Newton's steps with such lines come down to the edge and stop there.
    """
    last = np.minimum(tables.row, tables.column)
    edge = last.copy()
    excess = tables.log_probability(edge) - log_p - _TIE
    exists = excess <= 0
    active = np.flatnonzero(exists & (edge > mode))
    while len(active):
        # Near the mode of very large tables neighbours differ by less than rounding.
        fall = np.log(np.maximum(tables[active].ratio(edge[active], -1), _STEADY))
        step = np.ceil(edge[active] + excess[active] / fall)
        step = np.maximum(step, mode[active]).astype(np.int64)
        beyond = tables[active].log_probability(step) - log_p[active] - _TIE
        nearer = (step < edge[active]) & (beyond <= 0)
        active = active[nearer]
        edge[active], excess[active] = step[nearer], beyond[nearer]
        active = active[edge[active] > mode[active]]
    return edge, exists


@dataclass(frozen=True, slots=True)
class _Tables:
    """2 x 2 tables with fixed sums: row, the other row, first column. The count in the first cell is hypergeometric."""

    row: I64
    other_row: I64
    column: I64

    def __getitem__(self, chosen: NDArray[np.bool_] | I64) -> _Tables:
        return _Tables(self.row[chosen], self.other_row[chosen], self.column[chosen])

    def log_probability(self, count: I64) -> F64:
        """Logarithm of the probability of a count.

        Each factorial is n ln n - n and a small rest. What is large adds up to -sum of cell x ln(cell/expected), and all
        four cells are equally far from what is expected, by (a d - b c)/N, an exact integer first: nothing cancels.
        """
        second_column = self.row + self.other_row - self.column
        a, b, c = count, self.row - count, self.column - count
        d = self.other_row - c
        excess = a * d - b * c
        large = special.xlog1py(a, excess / np.maximum(self.row * self.column, 1))
        large += special.xlog1py(b, -excess / np.maximum(self.row * second_column, 1))
        large += special.xlog1py(c, -excess / np.maximum(self.other_row * self.column, 1))
        large += special.xlog1py(d, excess / np.maximum(self.other_row * second_column, 1))
        sums = _rest(self.row) + _rest(self.other_row) + _rest(self.column) + _rest(second_column)
        return sums - _rest(self.row + self.other_row) - (_rest(a) + _rest(b) + _rest(c) + _rest(d)) - large

    def ratio(self, count: I64, step: int) -> F64:
        """Probability of the count one step further, over that of this count; 0 from the last possible one on."""
        b, c = self.row - count, self.column - count
        d = self.other_row - c
        return b * c / ((count + 1) * (d + 1)) if step > 0 else count * d / ((b + 1) * (c + 1))

    def tail(self, count: I64, step: int) -> F64:
        """Sum of the probabilities from a count on, away from the mode, over that of the count."""
        total = np.ones(count.shape)
        term = np.ones(count.shape)
        active = np.arange(len(count))
        offsets = step * np.arange(_CHUNK)
        while len(active):
            terms = term[active, None] * np.cumprod(self[active[:, None]].ratio(count[active, None] + offsets, step), axis=1)
            total[active] += terms.sum(axis=1)
            term[active] = terms[:, -1]
            offsets = offsets + step * _CHUNK
            active = active[term[active] > _NEGLIGIBLE * total[active]]
        return total


def _rest(count: I64) -> F64:
    """What ln(n!) has beside n ln n - n; by Stirling's series from 16 on."""
    n = np.maximum(count, _SERIES_FROM).astype(np.float64)
    square = n * n
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / (1188 * square)) / square) / square) / square) / n
    return np.where(count < _SERIES_FROM, _SMALL[np.minimum(count, _SERIES_FROM)], 0.5 * np.log(2 * math.pi * n) + series)


_SMALL = np.array([0.0] + [math.lgamma(n + 1) - n * math.log(n) + n for n in range(1, _SERIES_FROM + 1)])
