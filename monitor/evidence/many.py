"""Evidence of many series at once: the mean for all of them, e-BH for which of them. Source: FORMULAS section 9, rule 6."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from monitor.evidence.bets import log_threshold
from monitor.statistics.fixed_point import F64


def log_mean_e(log_e: F64) -> F64:
    """Logarithm of the mean of e-values, an e-value itself whatever their dependence.

    Args:
        log_e: Shape (..., n_series).

    Returns:
        Shape (...); 0 without a series.
    """
    if not log_e.shape[-1]:
        return np.zeros(log_e.shape[:-1])
    return np.asarray(logsumexp(log_e, axis=-1) - np.log(log_e.shape[-1]))


def e_bh(log_e: F64, alpha: float) -> NDArray[np.bool_]:
    """Which hypotheses are reported at a false discovery rate of alpha, whatever the dependence of their e-values.

    The k with the largest E, for the largest k where the k-th largest is at least n/(alpha k).

    Args:
        log_e: Shape (n,).
        alpha: In (0, 1).

    Returns:
        Shape (n,); a tie with the last reported one is reported too.

    Source: Wang & Ramdas, "False discovery rate control with e-values", JRSS B 2022.
    """
    reported = np.zeros(log_e.shape, dtype=np.bool_)
    falling = np.sort(log_e)[::-1]
    needed = log_threshold(alpha) + np.log(len(log_e)) - np.log(np.arange(1, len(log_e) + 1)) if len(log_e) else falling
    enough = np.flatnonzero(falling >= needed)
    if len(enough):
        reported = log_e >= falling[enough[-1]]
    return reported
