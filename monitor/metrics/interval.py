"""Intervals of a share."""

from __future__ import annotations

import math

import numpy as np

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64

Z_95 = 1.959963984540054
"""97.5 % quantile of the standard normal distribution."""


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


def normal_cdf(values: F64) -> F64:
    """Standard normal distribution function; NaN stays NaN."""
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in values.tolist()], dtype=np.float64)
