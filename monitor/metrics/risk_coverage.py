"""Selective prediction: what is the risk if only the most confident are accepted, at every coverage.

Bins ascend by confidence. At the edge of a bin coverage and risk are exact; inside a bin the order of right and wrong is
not known unless all its events have the same confidence (`tied`). Source: FORMULAS section 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64

_SERIES_FROM = 1000.0
"""From here the series of a harmonic difference is exact to the last digits; below it, digamma loses none."""


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """Points of a risk-coverage curve, from the highest threshold down; each array has shape (n_points,).

    Attributes:
        threshold: Accepting confidences at or above it gives the point; the lower end of the bin.
        threshold_bound: The lowest confidence accepted is at most this far above the threshold.
        coverage: Share of events accepted; exact.
        risk: Share of errors among them; exact.
        risk_lower: Bound from below of the risk at every threshold inside the bin.
        risk_upper: Bound from above of it.
    """

    threshold: F64
    threshold_bound: F64
    coverage: F64
    risk: F64
    risk_lower: F64
    risk_upper: F64


def risk_coverage_curve(events: I64, errors: I64, tied: NDArray[np.bool_], lowest: F64, highest: F64) -> RiskCoverage:
    """One point per bin that holds an event, of one series.

    Args:
        events: Labelled events per bin; shape (n_bins,), bins ascending by confidence.
        errors: Wrong ones of these.
        tied: Whether all events of a bin have the same confidence.
        lowest: Lowest confidence that a bin can hold; for a tied bin its confidence.
        highest: Highest one; for a tied bin its confidence.

    Returns:
        The curve; no points without an event.

    Source: El-Yaniv and Wiener, JMLR 2010.
    """
    filled = np.flatnonzero(events)[::-1]
    count, wrong = events[filled], errors[filled]
    accepted, failed = np.cumsum(count), np.cumsum(wrong)
    before, failed_before = accepted - count, failed - wrong
    risk = divide(failed, accepted)
    all_right_first = divide(failed_before, accepted - wrong)
    all_wrong_first = divide(failed, before + wrong)
    exact = tied[filled]
    return RiskCoverage(
        threshold=lowest[filled],
        threshold_bound=highest[filled] - lowest[filled],
        coverage=divide(accepted, events.sum(keepdims=True)),
        risk=risk,
        risk_lower=np.where(exact, risk, np.fmin(all_right_first, risk)),
        risk_upper=np.where(exact, risk, np.fmax(all_wrong_first, risk)),
    )


def aurc(events: I64, errors: I64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Area under the risk-coverage curve: the mean over k of the risk of the k most confident.

    Events of a bin count as equally confident and share its errors evenly, which is exact where they are tied. Elsewhere
    the value lies between all errors of the bin last and all of them first.

    Args:
        events: Labelled events per bin; shape (n, n_bins), bins ascending by confidence.
        errors: Wrong ones of these.
        tied: Whether all events of a bin have the same confidence; shape (n, n_bins) or (n_bins,).

    Returns:
        Value, and a bound of its distance from the value of the raw confidences; shape (n,). NaN without an event.

    Source: Geifman, Uziel and El-Yaniv, ICLR 2019; FORMULAS section 8. A bin's part is a sum of (a + b j)/(m + j) over its
    events j, which harmonic numbers give in closed form.
    """
    count = events[..., ::-1].astype(np.float64)
    wrong = errors[..., ::-1].astype(np.float64)
    before = np.cumsum(count, axis=-1) - count
    failed = np.cumsum(wrong, axis=-1) - wrong
    right = count - wrong
    share = np.nan_to_num(divide(wrong, count))
    even = wrong + (failed - share * before) * harmonic_difference(before, count)
    last = failed * harmonic_difference(before, right) + wrong + (failed - before - right) * harmonic_difference(before + right, wrong)
    first = wrong + (failed - before) * harmonic_difference(before, wrong) + (failed + wrong) * harmonic_difference(before + wrong, right)
    exact = np.asarray(tied)[..., ::-1]
    below = np.where(exact, 0.0, even - last).sum(axis=-1)
    above = np.where(exact, 0.0, first - even).sum(axis=-1)
    total = events.sum(axis=-1)
    return divide(even.sum(axis=-1), total), divide(np.maximum(np.maximum(below, above), 0.0), total)


def harmonic_difference(start: F64, length: F64) -> F64:
    """1/(start+1) + ... + 1/(start+length), without a loop and without cancellation for large starts.

    Args:
        start: Whole numbers >= 0.
        length: Whole numbers >= 0, same shape.

    Source: H(m) = digamma(m+1) + const, and digamma(x + 1/2) = ln x + 1/(24 x^2) - 7/(960 x^4) + O(x^-6).
    """
    low = start + 0.5
    high = low + length
    low_square, high_square = 1 / (low * low), 1 / (high * high)
    correction = (high_square - low_square) * (1 / 24 - 7 / 960 * (high_square + low_square))
    result = np.asarray(np.log1p(length / low) + correction)
    small = start < _SERIES_FROM
    result[small] = digamma(start[small] + length[small] + 1) - digamma(start[small] + 1)
    return result
