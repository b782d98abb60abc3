"""What the Brier score of the event "correct" is made of, over the report bins.

brier = reliability - resolution + uncertainty + within-bin variance - 2 x within-bin covariance, identically: the last two terms
are what binning hides. Sums of used events per bin: n_b, K_b (correct), C_b (confidence), Q_b (its squares), X_b (confidence of
the correct). All NaN without a used event.

Source: Murphy 1973; Stephenson, Coelho and Jolliffe, Weather and Forecasting 23 (2008) 752; FORMULAS section 4.
"""

from __future__ import annotations

import numpy as np

from monitor.metrics.debiased import ece_squared
from monitor.metrics.score import brier
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)


def brier_reliability(sums: Sums) -> F64:
    """Sum of (n_b/n)(C_b/n_b - K_b/n_b)^2, in [0, 1]: what miscalibration costs. It is `ece_squared`."""
    return ece_squared(sums)


def brier_resolution(sums: Sums) -> F64:
    """Sum of (n_b/n)(K_b/n_b - K/n)^2, in [0, 1/4]: what telling bins apart gains."""
    difference = sums.bins("correct") * sums.used[:, None] - sums.bins("labelled") * sums.correct[:, None]
    terms = (difference / np.maximum(sums.used, 1)[:, None]) ** 2 / _counts(sums)
    return divide(terms.sum(axis=1), sums.used)


def brier_uncertainty(sums: Sums) -> F64:
    """(K/n)(1 - K/n), in [0, 1/4]: the score of always claiming the accuracy."""
    return divide(divide(sums.correct * (sums.used - sums.correct), sums.used), sums.used)


def brier_within_bin_variance(sums: Sums) -> F64:
    """Sum of (Q_b - C_b^2/n_b) over n: the variance of confidences inside their bins."""
    confidence = sums.bins("confidence") / _ONE
    terms = sums.bins("confidence_square") / _ONE - confidence * confidence / _counts(sums)
    return divide(terms.sum(axis=1), sums.used)


def brier_within_bin_covariance(sums: Sums) -> F64:
    """Sum of (X_b - C_b K_b/n_b) over n: the covariance of confidence and correctness inside the bins."""
    terms = sums.bins("correct_confidence") / _ONE - sums.bins("confidence") / _ONE * sums.bins("correct") / _counts(sums)
    return divide(terms.sum(axis=1), sums.used)


def brier_generalized_resolution(sums: Sums) -> F64:
    """Resolution - within-bin variance + 2 x within-bin covariance, so that brier = reliability - it + uncertainty."""
    return brier_resolution(sums) - brier_within_bin_variance(sums) + 2 * brier_within_bin_covariance(sums)


def brier_skill(sums: Sums) -> F64:
    """1 - brier/uncertainty, at most 1: the share of the base rate's Brier score that confidences save; NaN where all are right, or none.

    Source: Murphy 1973.
    """
    return 1 - divide(brier(sums), np.nan_to_num(brier_uncertainty(sums)))


def _counts(sums: Sums) -> I64:
    """n_b, or 1 in a bin without an event, whose terms are 0 anyway."""
    return np.maximum(sums.bins("labelled"), 1)
