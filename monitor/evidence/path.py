"""The path of an e-process over panes in their one canonical order: its value at each pane's close, and where it crosses.

Ville's inequality holds for the running maximum of labels as first matured; a path is a function of the integers alone, so a
replay recomputes it. Source: FORMULAS section 9, rules 1, 3 and 4.
"""

from __future__ import annotations

import numpy as np

from monitor.evidence.bets import Bets
from monitor.evidence.count_and_sum import ROWS_AT_ONCE, log_e_of_bets, log_mixture
from monitor.evidence.grid_sums import GridSums
from monitor.statistics.fixed_point import F64, I64

NEVER = -1
"""Instead of a pane's place where there is none."""


def log_e_path(side: Bets, panes: GridSums, carried: GridSums | None = None) -> F64:
    """Logarithm of E at each pane's close, from all events until then, guarded against the rounding of sums.

    Args:
        side: The bets.
        panes: Mature panes in order of their time, shape (..., n_panes, 306), each with the events of this pane alone.
        carried: All panes before these, shape (..., 306); None: there are none.

    Returns:
        Shape (..., n_panes).
    """
    before = GridSums.empty(panes.count.shape[:-2]) if carried is None else carried
    count = panes.count.shape[-2]
    result = np.empty(panes.count.shape[:-1])
    for first in range(0, count, ROWS_AT_ONCE):
        places = slice(first, first + ROWS_AT_ONCE)
        opening = GridSums(before.count[..., None, :], before.correct[..., None, :], before.excess[..., None, :])
        until = panes.rows(places).cumulative().merge(opening)
        result[..., places] = log_mixture(side, log_e_of_bets(side, until, guarded=True))
        before = GridSums(until.count[..., -1, :], until.correct[..., -1, :], until.excess[..., -1, :])
    return result


def first_crossing(log_e: F64, threshold: float) -> I64:
    """Place of the first pane at whose close ln E (or ln R) is at least the threshold.

    Args:
        log_e: Shape (..., n_panes).
        threshold: In logarithms: `bets.log_threshold(alpha)`.

    Returns:
        Shape (...); `NEVER` where there is none.
    """
    crossed = log_e >= threshold
    if not crossed.shape[-1]:
        return np.full(crossed.shape[:-1], NEVER, dtype=np.int64)
    return np.asarray(np.where(crossed.any(axis=-1), crossed.argmax(axis=-1), NEVER), dtype=np.int64)
