"""Precision and recall of telling in-distribution (ID) from out-of-distribution (OOD) inputs by a score.

Bins ascend by score; a high score says ID. Inside a bin the order is not known unless all its events have the same score
(`tied`), so each value comes with a bound of its error. Source: FORMULAS section 7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.risk_coverage import harmonic_difference
from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64

TRUE_ACCEPTANCE = 0.95
"""Share of ID that the operating point of `fpr_at_95tpr` has to accept."""


@dataclass(frozen=True, slots=True)
class OodOperatingPoint:
    """The highest threshold that accepts 95 % of ID; arrays of shape (n,), NaN without ID or without OOD.

    Attributes:
        false_acceptance: Share of OOD accepted there.
        false_acceptance_bound: Bound of its error.
        threshold: A score at or above it is accepted.
        threshold_bound: Bound of its error.
    """

    false_acceptance: F64
    false_acceptance_bound: F64
    threshold: F64
    threshold_bound: F64


def aupr_id(id_events: I64, ood_events: I64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Average precision of "ID, because the score is high"; arguments and result as of `average_precision`."""
    return average_precision(id_events, ood_events, tied)


def aupr_ood(id_events: I64, ood_events: I64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Average precision of "OOD, because the score is low"; arguments and result as of `average_precision`."""
    return average_precision(ood_events[..., ::-1], id_events[..., ::-1], np.asarray(tied)[..., ::-1])


def average_precision(positives: I64, negatives: I64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Area under the precision-recall curve: sum over distinct scores of (recall step) x precision, not interpolated.

    Args:
        positives: Positive events per bin; shape (n, n_bins), bins ascending by score, high scores say positive.
        negatives: Likewise.
        tied: Whether all events of a bin have the same score; shape (n, n_bins) or (n_bins,).

    Returns:
        Middle between the lowest and the highest value that the bins allow, and half their distance; shape (n,). NaN
        without a positive or without a negative.

    Source: average precision as of Zhu 2004. A positive's precision is highest where all positives of its bin share the
    highest score, and lowest where they come one by one after all negatives.
    """
    positive = positives[..., ::-1].astype(np.float64)
    negative = negatives[..., ::-1].astype(np.float64)
    hits = np.cumsum(positive, axis=-1)
    misses = np.cumsum(negative, axis=-1)
    misses_before = misses - negative
    together = positive * np.nan_to_num(divide(hits, hits + misses))
    best = positive * np.nan_to_num(divide(hits, hits + misses_before))
    worst = positive - misses * harmonic_difference(hits - positive + misses, positive)
    exact = np.asarray(tied)[..., ::-1]
    highest = np.where(exact, together, best).sum(axis=-1)
    lowest = np.where(exact, together, worst).sum(axis=-1)
    total = _where_both(positives.sum(axis=-1), negatives.sum(axis=-1))
    return divide((highest + lowest) / 2, total), divide(np.maximum(highest - lowest, 0.0) / 2, total)


def fpr_at_95tpr(id_events: I64, ood_events: I64, tied: NDArray[np.bool_], lowest: F64, highest: F64) -> OodOperatingPoint:
    """OOD acceptance at the highest threshold that accepts at least 95 % of ID.

    Args:
        id_events: ID events per bin; shape (n, n_bins), bins ascending by score.
        ood_events: OOD events per bin.
        tied: Whether all events of a bin have the same score; shape (n, n_bins) or (n_bins,).
        lowest: Lowest score that a bin can hold, for a tied bin its score; finite, shape (n, n_bins) or (n_bins,).
        highest: Highest one.

    Returns:
        The operating point.

    Source: Hendrycks and Gimpel, ICLR 2017. The threshold is the score of an ID event, so it lies in the bin that holds the
    last ID event needed; the OOD events of this bin are above it, below it, or some of each.
    """
    place, threshold, threshold_bound = acceptance_threshold(id_events, TRUE_ACCEPTANCE, lowest, highest)
    at_or_above = np.take_along_axis(np.cumsum(ood_events[..., ::-1], axis=-1)[..., ::-1], place, axis=-1)[..., 0]
    inside = np.take_along_axis(ood_events, place, axis=-1)[..., 0]
    exact = np.take_along_axis(np.broadcast_to(tied, id_events.shape), place, axis=-1)[..., 0]
    uncertain = np.where(exact, 0.0, inside / 2)
    id_total, ood_total = id_events.sum(axis=-1), ood_events.sum(axis=-1)
    total = _where_both(ood_total, id_total)
    defined = total > 0
    return OodOperatingPoint(
        false_acceptance=divide(at_or_above - uncertain, total),
        false_acceptance_bound=divide(uncertain, total),
        threshold=np.where(defined, threshold, np.nan),
        threshold_bound=np.where(defined, threshold_bound, np.nan),
    )


def acceptance_threshold(events: I64, share: float, lowest: F64, highest: F64) -> tuple[NDArray[np.intp], F64, F64]:
    """The highest threshold that accepts at least a share of the events (accepted: score >= threshold).

    Args:
        events: Events per bin; shape (n, n_bins), bins ascending by score.
        share: Above 0, at most 1.
        lowest: Lowest score that a bin can hold, for a tied bin its score; finite, shape (n, n_bins) or (n_bins,).
        highest: Highest one.

    Returns:
        The bin that the threshold lies in, shape (n, 1) (0 without an event); the middle of the bin and half its width, shape
        (n,), NaN without an event.
    """
    total = events.sum(axis=-1)
    accepted = divide(np.cumsum(events[..., ::-1], axis=-1), total[..., None])
    reached = accepted >= share
    last = events.shape[-1] - 1
    place = np.where(total > 0, last - np.argmax(reached, axis=-1), 0)[..., None]
    bottom = np.take_along_axis(np.broadcast_to(lowest, events.shape), place, axis=-1)[..., 0]
    top = np.take_along_axis(np.broadcast_to(highest, events.shape), place, axis=-1)[..., 0]
    middle = np.where(bottom == top, bottom, bottom / 2 + top / 2)
    return place, np.where(total > 0, middle, np.nan), np.where(total > 0, top / 2 - bottom / 2, np.nan)


def _where_both(count: I64, other: I64) -> I64:
    """The count, or 0 where one of two classes is missing: with one class there is nothing to tell apart."""
    return np.where(other > 0, count, 0)
