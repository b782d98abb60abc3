"""A version against the previous one on the same window: difference, interval and z.

The two are taken as independent samples. Where both predicted the same events (a shadow) their outcomes go together, and the
difference is known better than its interval says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from monitor.metrics.calibration import overconfidence
from monitor.metrics.interval import Z_95, newcombe, two_proportion_z
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)


@dataclass(frozen=True, slots=True)
class Difference:
    """A version's metric minus the previous version's, each shape (n,); NaN where either has nothing to tell it from.

    Attributes:
        value: The difference.
        lower: Lower end of its interval at 95 %.
        upper: Upper end.
        z: The difference in standard deviations of what it would be by chance.
    """

    value: F64
    lower: F64
    upper: F64
    z: F64


_UNDEFINED = Difference(*np.full((4, 1), np.nan))


@dataclass(frozen=True)
class Comparison:
    """A version beside the previous one.

    Attributes:
        sums: Segment `all` of the version, one row.
        previous: That of the previous version; None without one: every difference is then undefined.
    """

    sums: Sums
    previous: Sums | None

    @cached_property
    def accuracy(self) -> Difference:
        """See `accuracy_difference`."""
        return _UNDEFINED if self.previous is None else accuracy_difference(self.sums, self.previous)

    @cached_property
    def overconfidence(self) -> Difference:
        """See `overconfidence_difference`."""
        return _UNDEFINED if self.previous is None else overconfidence_difference(self.sums, self.previous)

    @cached_property
    def selective_risk(self) -> Difference:
        """See `selective_risk_difference`."""
        return _UNDEFINED if self.previous is None else selective_risk_difference(self.sums, self.previous)

    @cached_property
    def rejection_rate(self) -> Difference:
        """See `rejection_rate_difference`."""
        return _UNDEFINED if self.previous is None else rejection_rate_difference(self.sums, self.previous)


def accuracy_difference(sums: Sums, previous: Sums) -> Difference:
    """Of the share of correct ones among the used events; see `share_difference`."""
    return share_difference(sums.correct, sums.used, previous.correct, previous.used)


def selective_risk_difference(sums: Sums, previous: Sums) -> Difference:
    """Of the share of errors among the accepted labelled predictions; see `share_difference`."""
    errors, accepted = "labelled_accepted_errors", "labelled_accepted"
    return share_difference(sums.count(errors), sums.count(accepted), previous.count(errors), previous.count(accepted))


def rejection_rate_difference(sums: Sums, previous: Sums) -> Difference:
    """Of the share of rejected ones among the predictions with a decision; see `share_difference`."""
    decided, previous_decided = sums.count("decided"), previous.count("decided")
    rejected, previous_rejected = decided - sums.count("accepted"), previous_decided - previous.count("accepted")
    return share_difference(rejected, decided, previous_rejected, previous_decided)


def share_difference(hits: I64, trials: I64, previous_hits: I64, previous_trials: I64) -> Difference:
    """Difference of two shares of counts, shape (n,): Newcombe's interval, z with the pooled share.

    Source: FORMULAS section 7.
    """
    counts = hits, trials, previous_hits, previous_trials
    return Difference(divide(hits, trials) - divide(previous_hits, previous_trials), *newcombe(*counts), two_proportion_z(*counts))


def overconfidence_difference(sums: Sums, previous: Sums) -> Difference:
    """Of the mean of c - y over the used events: a normal interval, z with the same standard deviation.

    The variance of c - y comes from its sum of squares, Q - 2X + K, or where that is larger is what the confidences themselves
    claim, c(1 - c) on average: a short run without an error is not certain. Interval and z are NaN below two events.
    """
    value = overconfidence(sums) - overconfidence(previous)
    sd = np.sqrt(_variance_of_mean(sums) + _variance_of_mean(previous))
    return Difference(value, value - Z_95 * sd, value + Z_95 * sd, value / sd)


def _variance_of_mean(sums: Sums) -> F64:
    """Estimated variance of `overconfidence`, shape (n,); NaN where nothing varies."""
    deviation = sums.deviation.sum(axis=1)
    square, product = sums.bins("confidence_square").sum(axis=1), sums.bins("correct_confidence").sum(axis=1)
    # c^2 - 2cy + y, in an order in which no partial result passes 2^62 for 2^30 events.
    squares = ((square - product) + ((sums.correct << PROBABILITY_BITS) - product)) / _ONE - divide((deviation / _ONE) ** 2, sums.used)
    seen = divide(squares, sums.used - 1)
    claimed = divide(sums.variance.sum(axis=1) / _ONE, sums.used)
    variance = divide(np.maximum(seen, claimed), sums.used)
    return np.where(variance > 0, variance, np.nan)
