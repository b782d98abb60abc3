"""Intervals of a share, and of the difference of two."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64

Z_95 = 1.959963984540054
"""97.5 % quantile of the standard normal distribution."""

ONE_SIDED = 0.95
"""Confidence of a bound that stands alone."""


def wilson(successes: I64, trials: I64) -> tuple[F64, F64]:
    """Wilson score interval at 95 %.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape.

    Returns:
        Lower and upper end; exactly 0 without a success and exactly 1 without a failure; NaN without a trial.

    Source: Wilson (1927); FORMULAS section 3.
    """
    share = divide(successes, trials)
    z2 = Z_95 * Z_95
    centre = share + divide(np.full(trials.shape, z2 / 2), trials)
    spread = Z_95 * np.sqrt(divide(share * (1 - share), trials) + divide(np.full(trials.shape, z2 / 4), trials) / np.maximum(trials, 1))
    scale = 1 + divide(np.full(trials.shape, z2), trials)
    lower = np.where(successes == 0, 0.0, (centre - spread) / scale)
    upper = np.where(successes == trials, 1.0, (centre + spread) / scale)
    undefined = trials <= 0
    return np.where(undefined, np.nan, lower), np.where(undefined, np.nan, upper)


def clopper_pearson_lower(successes: I64, trials: I64) -> F64:
    """One-sided 95 % lower bound of a share, valid in every sample size.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape.

    Returns:
        The share at which so many successes or more have probability 5 %; 0 without a success, NaN without a trial.

    Source: Clopper and Pearson (1934).
    """
    bound = special.betaincinv(np.maximum(successes, 1), trials - successes + 1, 1 - ONE_SIDED)
    return np.where(trials <= 0, np.nan, np.where(successes <= 0, 0.0, bound))


def clopper_pearson_upper(successes: I64, trials: I64) -> F64:
    """One-sided 95 % upper bound of a share, valid in every sample size.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape.

    Returns:
        The share at which so many successes or fewer have probability 5 %; 1 without a failure, NaN without a trial.

    Source: Clopper and Pearson (1934).
    """
    bound = special.betaincinv(successes + 1, np.maximum(trials - successes, 1), ONE_SIDED)
    return np.where(trials <= 0, np.nan, np.where(successes >= trials, 1.0, bound))


def newcombe(successes: I64, trials: I64, other_successes: I64, other_trials: I64) -> tuple[F64, F64]:
    """Interval at 95 % of a share minus another one, from the Wilson intervals of the two.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape.
        other_successes: Of the other, independent share; same shape.
        other_trials: Same shape.

    Returns:
        Lower and upper end, inside [-1, 1]; NaN where either share has no trial.

    Source: Newcombe, Statistics in Medicine 17 (1998) 873, method 10.
    """
    share, other = divide(successes, trials), divide(other_successes, other_trials)
    lower, upper = wilson(successes, trials)
    other_lower, other_upper = wilson(other_successes, other_trials)
    difference = share - other
    return difference - np.hypot(share - lower, other_upper - other), difference + np.hypot(upper - share, other - other_lower)


def two_proportion_z(successes: I64, trials: I64, other_successes: I64, other_trials: I64) -> F64:
    """Difference of two shares in standard deviations of it, had both the pooled share.

    Args:
        successes: 0 <= successes <= trials; any shape.
        trials: Same shape, below 2^30.
        other_successes: Of the other, independent share; same shape.
        other_trials: Same shape, below 2^30.

    Returns:
        Positive where the first share is larger; NaN where either has no trial, or all trials of both came out alike.

    Source: FORMULAS section 7. With k successes in N trials of both, z = (k1 n2 - k2 n1)/sqrt(n1 n2 k (N - k)/N).
    """
    all_successes, all_trials = successes + other_successes, trials + other_trials
    cross = successes * other_trials - other_successes * trials
    pooled = divide(all_successes * (all_trials - all_successes), all_trials)
    return divide(cross, np.sqrt(np.nan_to_num(pooled)) * np.sqrt(trials) * np.sqrt(other_trials))


def normal_cdf(values: F64) -> F64:
    """Standard normal distribution function; NaN stays NaN."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in values.tolist()], dtype=np.float64)
