"""Standard error of an AUC. Source: DeLong, DeLong and Clarke-Pearson 1988; FORMULAS section 6."""

from __future__ import annotations

import numpy as np

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64


def auc_standard_error(positives: I64, negatives: I64) -> F64:
    """DeLong's standard error of the AUC of the binned scores; events of a bin count as tied.

    The placement of a positive is the share of negatives below it, ties as one half, and of a negative the share of
    positives above it. The squared error is the sample variance of each kind of placement over its number.

    Args:
        positives: Positive events per bin; shape (n, n_bins), bins ascending by score.
        negatives: Likewise.

    Returns:
        Shape (n,). NaN with fewer than two positives or two negatives: a sample variance needs two.
    """
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    above = np.cumsum(positives[..., ::-1], axis=-1)[..., ::-1] - positives / 2
    return np.asarray(np.sqrt(_variance_of_mean(below, positives, negatives) + _variance_of_mean(above, negatives, positives)))


def _variance_of_mean(others_beaten: F64, events: I64, others: I64) -> F64:
    """Sample variance of the placements of one class, over its number."""
    count, total = events.sum(axis=-1), others.sum(axis=-1)
    placement = divide(others_beaten, total[..., None])
    mean = divide((events * placement).sum(axis=-1), count)
    squares = (events * (placement - mean[..., None]) ** 2).sum(axis=-1)
    return divide(squares, (count - 1) * count)
