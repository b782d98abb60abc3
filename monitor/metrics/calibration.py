"""Calibration of the top label: how far accuracy is from confidence, and how far it would be by chance.

Sums of used events: n, K (correct), C (confidence), V (c(1-c)); D_b = C_b - K_b per report bin. Source: FORMULAS section 3.
"""

from __future__ import annotations

import math

import numpy as np

from monitor.metrics.interval import wilson
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)


def accuracy(sums: Sums) -> F64:
    """K/n; NaN without a used event."""
    return divide(sums.correct, sums.used)


def mean_confidence(sums: Sums) -> F64:
    """C/n; NaN without a used event."""
    return divide(sums.confidence / _ONE, sums.used)


def overconfidence(sums: Sums) -> F64:
    """(C - K)/n, in [-1, 1]; positive: over-confident."""
    return divide(sums.deviation.sum(axis=1) / _ONE, sums.used)


def ece(sums: Sums) -> F64:
    """Expected calibration error: sum of |D_b| over n. Source: Guo et al., ICML 2017, eq. 3."""
    return divide(np.abs(sums.deviation).sum(axis=1) / _ONE, sums.used)


def ece_over(sums: Sums) -> F64:
    """The part of ECE from over-confident bins."""
    return divide(np.maximum(sums.deviation, 0).sum(axis=1) / _ONE, sums.used)


def ece_under(sums: Sums) -> F64:
    """The part of ECE from under-confident bins."""
    return divide(np.maximum(-sums.deviation, 0).sum(axis=1) / _ONE, sums.used)


def mce(sums: Sums) -> F64:
    """Maximum calibration error: largest |D_b|/n_b over bins that hold an event."""
    gaps = divide(np.abs(sums.deviation) / _ONE, sums.bins("labelled"))
    largest = np.max(np.where(np.isnan(gaps), -1.0, gaps), axis=1)
    return np.where(largest < 0, np.nan, largest)


def ece_floor(sums: Sums) -> F64:
    """ECE that a perfectly calibrated model would show with these confidences: sum of sqrt(2 V_b / pi) over n."""
    return divide(np.sqrt(2 * sums.variance / (math.pi * _ONE)).sum(axis=1), sums.used)


def ece_floor_error_bound(sums: Sums) -> F64:
    """Bound of the floor's error: bins with V_b > 0, over n. Source: Goldstein 2010, as in FORMULAS section 3."""
    return divide((sums.variance > 0).sum(axis=1), sums.used)


def ece_floor_sd(sums: Sums) -> F64:
    """Standard deviation of ECE under perfect calibration: sqrt((1 - 2/pi) V) over n."""
    return divide(np.sqrt((1 - 2 / math.pi) * sums.variance.sum(axis=1) / _ONE), sums.used)


def ece_z(sums: Sums) -> F64:
    """(ECE - floor)/sd: for ranking, not a p-value; NaN where the deviation is 0."""
    return divide(ece(sums) - ece_floor(sums), np.nan_to_num(ece_floor_sd(sums)))


def bin_mean_confidence(sums: Sums) -> F64:
    """C_b/n_b by report bin, shape (n, n_bins); NaN for an empty bin."""
    return divide(sums.bins("confidence") / _ONE, sums.bins("labelled"))


def bin_accuracy(sums: Sums) -> F64:
    """K_b/n_b by report bin, shape (n, n_bins); NaN for an empty bin."""
    return divide(sums.bins("correct"), sums.bins("labelled"))


def bin_overconfidence(sums: Sums) -> F64:
    """D_b/n_b by report bin, shape (n, n_bins); NaN for an empty bin."""
    return divide(sums.deviation / _ONE, sums.bins("labelled"))


def bin_accuracy_lower(sums: Sums) -> F64:
    """Lower Wilson bound of each bin's accuracy, shape (n, n_bins); 0 for an empty bin, of which nothing is known."""
    return np.nan_to_num(wilson(sums.bins("correct"), sums.bins("labelled"))[0], nan=0.0)


def bin_accuracy_upper(sums: Sums) -> F64:
    """Upper Wilson bound of each bin's accuracy, shape (n, n_bins); 1 for an empty bin, of which nothing is known."""
    return np.nan_to_num(wilson(sums.bins("correct"), sums.bins("labelled"))[1], nan=1.0)
