"""How well scores rank: AUC from a histogram, plain or weighted by confidence, with the bound of its error.

Bins ascend by score. Pairs of different bins are ordered exactly; pairs inside a bin count one half, which is exact where
all events of the bin have the very same score (`tied`) and off by at most one half elsewhere. Source: FORMULAS section 6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64


def auc(positives: I64 | F64, negatives: I64 | F64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties as one half.

    With counts it is the AUC. With sums of weights (any scale) it is the AUC with sample weights; with confidences for
    weights it is the confidence-weighted AUC: a pair weighs the product of its two weights.

    Args:
        positives: Positive events per bin, or the sum of their weights; shape (n, n_bins), bins ascending by score.
        negatives: Likewise.
        tied: Whether all events of a bin have the same score; shape (n, n_bins) or (n_bins,).

    Returns:
        Value, and a bound of its distance from the value of the raw scores; shape (n,). NaN without a positive or without
        a negative. Rounding is apart from the bound and below 1e-12.

    Source: Hanley and McNeil 1982; confidence weights: arXiv 2605.01796.
    """
    positive, negative = positives.astype(np.float64), negatives.astype(np.float64)
    below = (np.cumsum(negatives, axis=-1) - negatives).astype(np.float64)
    pairs = np.multiply(positives.sum(axis=-1), negatives.sum(axis=-1), dtype=np.float64)  # products exceed int64
    value = divide((positive * (below + negative / 2)).sum(axis=-1), pairs)
    bound = divide(np.where(tied, 0.0, positive * negative).sum(axis=-1) / 2, pairs)
    return value, bound


def auc_calibration_gain(plain: tuple[F64, F64], weighted: tuple[F64, F64]) -> tuple[F64, F64]:
    """Confidence-weighted AUC minus AUC: positive where confidence is higher on the pairs that are ranked well.

    Args:
        plain: AUC of counts and its bound, as `auc` returns them.
        weighted: AUC of sums of confidences and its bound.

    Returns:
        Difference and its bound, the sum of both bounds; shape (n,), NaN where either AUC is.

    Source: arXiv 2605.01796.
    """
    return weighted[0] - plain[0], weighted[1] + plain[1]
