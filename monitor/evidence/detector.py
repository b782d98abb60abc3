"""Since when: the Shiryaev-Roberts e-detector over panes, and the pane where the trouble most likely began.

For every bet R_k = (R_(k-1) + 1) E_k, where E_k is the e-value of pane k alone: the sum over all starts of the e-process from
there. Their mixture R has R_k - k as a supermartingale while nothing is wrong, so an alarm at R >= A comes after A panes or
more on average, whatever the pane sizes. Source: Shin, Ramdas, Rinaldo, "E-detectors"; FORMULAS section 9, rule 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.evidence.bets import Bets
from monitor.evidence.count_and_sum import log_e_of_bets, log_mixture
from monitor.evidence.grid_sums import GridSums
from monitor.evidence.path import NEVER
from monitor.statistics.fixed_point import F64, I64

RUN_LENGTH = 1000.0
"""A: least mean number of panes until an alarm while nothing is wrong."""

LOG_RUN_LENGTH = math.log(RUN_LENGTH)


@dataclass(frozen=True, slots=True, eq=False)
class Detector:
    """State after some panes, one number per bet; folding panes in one by one or all at once gives the same bits.

    Attributes:
        log_r: ln R, shape (..., n_bets); -inf before the first pane.
        log_best: ln of the e-process from the start that makes it largest (Page's CUSUM), same shape; -inf before the first pane.
        start: Number of the pane where that start lies, same shape; `NEVER` before the first pane.
    """

    log_r: F64
    log_best: F64
    start: I64

    @classmethod
    def empty(cls, side: Bets, shape: tuple[int, ...] = ()) -> Detector:
        """Before the first pane, for series of this shape."""
        full = (*shape, len(side.log_weight))
        return cls(np.full(full, -np.inf), np.full(full, -np.inf), np.full(full, NEVER, dtype=np.int64))


def fold(side: Bets, state: Detector, panes: GridSums, numbers: I64) -> tuple[Detector, F64]:
    """Let the detector see more panes.

    A pane without events is no step: nothing was betted, and R would grow by 1 out of nothing.

    Args:
        side: The bets.
        state: Before these panes, arrays of shape (..., n_bets).
        panes: Mature panes in order of their time, shape (..., n_panes, 306), each with the events of this pane alone.
        numbers: Number of each pane, ascending; panes without events may be left out, shape (n_panes,).

    Returns:
        The state after them, and ln R of the mixture at each pane's close, shape (..., n_panes): an alarm from `LOG_RUN_LENGTH` on.
    """
    log_e = log_e_of_bets(side, panes, guarded=True)
    seen = panes.events > 0
    log_r, log_best, start = state.log_r, state.log_best, state.start
    path = np.empty(log_e.shape)
    for place in range(seen.shape[-1]):
        step = seen[..., place, None]
        factor = log_e[..., place, :]
        log_r = np.where(step, np.logaddexp(log_r, 0.0) + factor, log_r)
        start = np.where(step & (log_best <= 0), numbers[place], start)
        log_best = np.where(step, np.maximum(log_best, 0.0) + factor, log_best)
        path[..., place, :] = log_r
    return Detector(log_r, log_best, start), log_mixture(side, path)


def estimated_start(side: Bets, state: Detector) -> I64:
    """Number of the pane from which the evidence of one bet, times the bet's weight, is largest, over all starts and bets.

    Args:
        side: The bets.
        state: After some panes, arrays of shape (..., n_bets).

    Returns:
        Shape (...); `NEVER` before the first pane. It is an estimate, to be read beside an alarm, with no level of its own.
    """
    best = np.argmax(state.log_best + side.log_weight, axis=-1)
    return np.asarray(np.take_along_axis(state.start, best[..., None], axis=-1)[..., 0])
