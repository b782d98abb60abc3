"""Exact test of claimed probabilities on counts, and Holm's correction for many tests at once.

P-values keep their relative precision down to the smallest double.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = 1 << PROBABILITY_BITS


def binomial_p(trials: I64, successes: I64, claimed: I64) -> F64:
    """Two-sided p-value of so many successes where each trial claimed a probability of its own.

    The number of successes K is Poisson-binomial with mean C, the sum of the claims. Its tails at K <= C - 1 and at K >= C + 1
    are below those of Binomial(n, C/n); between them the theorem is silent and p is 1. So p is right or too large.

    Args:
        trials: n; any shape, at most 2^30.
        successes: K, 0 <= K <= n; same shape.
        claimed: C, scaled by 2^32; same shape.

    Returns:
        min(1, twice the tail that K lies in); NaN without a trial.

    Source: Hoeffding, Annals of Mathematical Statistics 27 (1956) 713; FORMULAS section 3.

    >>> binomial_p(np.array([2, 0]), np.array([0, 0]), np.array([3 << 31, 0]))  # two claims of 0.75: twice 0.25^2
    array([0.125,   nan])
    """
    p = np.where(trials > 0, 1.0, np.nan)
    # Each tail by the incomplete beta function of the side that is small in it, which is exact from the integers.
    below = successes * _ONE <= claimed - _ONE
    n, k, c = trials[below], successes[below], claimed[below]
    p[below] = 2 * special.betainc(n - k, k + 1, (n * _ONE - c) / (n * _ONE))
    above = successes * _ONE >= claimed + _ONE
    n, k, c = trials[above], successes[above], claimed[above]
    p[above] = 2 * special.betainc(k, n - k + 1, c / (n * _ONE))
    return np.minimum(p, 1.0)


def holm(p: F64) -> F64:
    """P-values corrected for their number: one below alpha comes up by chance in at most a share alpha of the families.

    Args:
        p: One family in each row (last axis), any leading shape; NaN takes no part.

    Returns:
        Same shape: the i-th smallest of m times m - i + 1, running maximum, at most 1; NaN where p is.

    Source: Holm, Scandinavian Journal of Statistics 6 (1979) 65.

    >>> holm(np.array([0.25, 0.01, np.nan]))
    array([0.25, 0.02,  nan])
    """
    order = np.argsort(p, axis=-1, kind="stable")  # NaN last
    taking_part = np.sum(~np.isnan(p), axis=-1, keepdims=True)
    factor = np.maximum(taking_part - np.arange(p.shape[-1]), 1)
    stepped = np.maximum.accumulate(np.take_along_axis(p, order, axis=-1) * factor, axis=-1)
    adjusted = np.empty(p.shape)
    np.put_along_axis(adjusted, order, np.minimum(stepped, 1.0), axis=-1)
    return adjusted


def smallest(values: F64) -> F64:
    """Smallest of each row (last axis) that is not NaN; NaN for a row that has nothing else."""
    found = np.min(np.where(np.isnan(values), np.inf, values), axis=-1, initial=np.inf)
    return np.where(np.isinf(found), np.nan, found)


def largest(values: F64) -> F64:
    """Largest of each row (last axis) that is not NaN; NaN for a row that has nothing else."""
    return -smallest(-values)
