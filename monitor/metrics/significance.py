"""Tests of calibration at a time fixed beforehand: is the distance between confidence and accuracy more than chance?

The null hypothesis is that each used event is correct with the probability that it claims, independently. Looked at again and
again these tests raise false alarms; alarms come from the evidence tests. D_b, V_b as in `calibration`. Source: FORMULAS section 3.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from monitor.metrics.exact import binomial_p, holm, smallest
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)
_MERGED_VARIANCE = 5 << PROBABILITY_BITS
"""Bins are merged until the variance of their number of correct events is 5."""

_ROUNDING = 9
"""Most units by which one event's rounded powers of c can move the variance of Spiegelhalter's sum: (1 + 5 + 8 + 4)/2."""


def overconfidence_z(sums: Sums) -> F64:
    """(C - K)/sqrt(V); NaN where all confidences are 0 or 1."""
    return divide(sums.deviation.sum(axis=1) / _ONE, np.sqrt(sums.variance.sum(axis=1) / _ONE))


def spiegelhalter_z(sums: Sums) -> F64:
    """Deviation of the Brier score from its expectation, without bins: sum (y - c)(1 - 2c) over its standard deviation.

    NaN where the variance, sum (1 - 2c)^2 c(1 - c), cannot be told from 0: then all confidences are 0, 1/2 or 1.

    Source: Spiegelhalter, Statistics in Medicine 5 (1986) 421; from sums [K - C - 2X + 2Q]/sqrt(S1 - 5 S2 + 8 S3 - 4 S4).
    """
    square, cube = sums.bins("confidence_square").sum(axis=1), sums.count("confidence_cube")
    # In this order no partial result passes 2^62 for 2^30 events.
    weighted = sums.bins("correct_confidence").sum(axis=1) - square
    score = -sums.deviation.sum(axis=1) - weighted - weighted
    variance = (sums.confidence - square) - 4 * (square - cube) + 4 * (cube - sums.count("confidence_fourth"))
    known = np.where(variance > _ROUNDING * sums.used, variance, 0)
    return divide(score / _ONE, np.sqrt(known / _ONE))


def chi2(sums: Sums) -> F64:
    """Sum of D_g^2/V_g over groups of bins, see `chi2_df`; NaN where all confidences are 0 or 1."""
    return _chi2(sums)[0]


def chi2_df(sums: Sums) -> F64:
    """Groups in `chi2`, its degrees of freedom: nothing was fitted, so none is lost.

    Bins are merged from the top down until V_g >= 5; what remains at the bottom joins the last group.
    """
    return _chi2(sums)[1]


def chi2_p(sums: Sums) -> F64:
    """P-value of `chi2`."""
    statistic, groups = _chi2(sums)
    return np.asarray(special.chdtrc(groups, statistic))


def bin_p(sums: Sums) -> F64:
    """Exact p-value of each report bin, shape (n, n_bins), see `binomial_p`; NaN for a bin without an event."""
    return binomial_p(sums.bins("labelled"), sums.bins("correct"), sums.bins("confidence"))


def bin_p_holm(sums: Sums) -> F64:
    """`bin_p` with Holm's correction for the bins that hold an event, shape (n, n_bins): the one to print beside a bin."""
    return holm(bin_p(sums))


def bin_p_holm_min(sums: Sums) -> F64:
    """Smallest `bin_p_holm`: an exact p-value of "all bins are calibrated"."""
    return smallest(bin_p_holm(sums))


def _chi2(sums: Sums) -> tuple[F64, F64]:
    """The statistic and the number of groups."""
    deviation, variance = sums.deviation, sums.variance
    statistic = np.zeros(len(variance))
    groups = np.zeros(len(variance), dtype=np.int64)
    open_deviation, open_variance = np.zeros_like(groups), np.zeros_like(groups)
    last_deviation, last_variance = np.zeros_like(groups), np.zeros_like(groups)
    for column in range(variance.shape[1] - 1, -1, -1):
        open_deviation = open_deviation + deviation[:, column]
        open_variance = open_variance + variance[:, column]
        full = open_variance >= _MERGED_VARIANCE
        statistic += np.where(full, _share(last_deviation, last_variance), 0.0)
        groups += full
        last_deviation = np.where(full, open_deviation, last_deviation)
        last_variance = np.where(full, open_variance, last_variance)
        open_deviation = np.where(full, 0, open_deviation)
        open_variance = np.where(full, 0, open_variance)
    statistic += _share(last_deviation + open_deviation, last_variance + open_variance)
    undefined = variance.sum(axis=1) <= 0
    return np.where(undefined, np.nan, statistic), np.where(undefined, np.nan, np.maximum(groups, 1))


def _share(deviation: I64, variance: I64) -> F64:
    """One group's D^2/V; 0 where there is none yet."""
    return (deviation / _ONE) ** 2 / (np.maximum(variance, 1) / _ONE) * (variance > 0)
