"""Accuracy without labels, estimated from confidences by the map of the last labelled window.

It rests on "the map still holds": after a shift of confidences it is right, after a change of what a confidence means it is
wrong and cannot know. It is an estimate and never a measurement. Source: FORMULAS section 8; NannyML's CBPE.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.metrics.rank import auc
from monitor.metrics.sums import divide
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import CALIBRATION_STEPS, bin_index, graded_edges


@dataclass(frozen=True, slots=True)
class LabelFreeAccuracy:
    """An estimate; arrays of shape (n,), NaN without an unlabelled event.

    Attributes:
        estimate: Estimated accuracy.
        sd: Its standard deviation if the map still holds, from the outcomes and from the map.
        unsupported_share: Share of the unlabelled events in bins where the labelled window has none.
    """

    estimate: F64
    sd: F64
    unsupported_share: F64


def accuracy_map(labelled: I64, correct: I64) -> F64:
    """Share of correct events per bin, shrunk to one half by half an event of each kind: (K_b + 1/2)/(n_b + 1).

    Args:
        labelled: Labelled events per bin; any shape.
        correct: Correct ones of these.
    """
    return (correct + 0.5) / (labelled + 1)


def label_free_accuracy(labelled: I64, correct: I64, unlabelled: I64) -> LabelFreeAccuracy:
    """Estimate the accuracy of unlabelled events.

    Args:
        labelled: Events of the last labelled window per bin of confidence; shape (n, n_bins).
        correct: Correct ones of these.
        unlabelled: Events of the window without labels.

    Returns:
        The estimate.

    Source: var = sum u m(1-m)/N^2 (outcomes) + sum (u/N)^2 m(1-m)/(n_b+1) (map).
    """
    share = accuracy_map(labelled, correct)
    spread = share * (1 - share)
    total = unlabelled.sum(axis=-1)
    counts = unlabelled.astype(np.float64)
    variance = (counts * spread * (1 + counts / (labelled + 1))).sum(axis=-1)
    return LabelFreeAccuracy(
        estimate=divide((counts * share).sum(axis=-1), total),
        sd=divide(np.sqrt(variance), total),
        unsupported_share=divide(np.where(labelled == 0, unlabelled, 0).sum(axis=-1), total),
    )


def label_free_auc(labelled: I64, correct: I64, unlabelled: I64, tied: NDArray[np.bool_]) -> tuple[F64, F64]:
    """Estimate the AUC of unlabelled events: each counts as positive by its share m_b and as negative by the rest.

    Args:
        labelled: Events of the last labelled window per bin of the score; shape (n, n_bins), bins ascending.
        correct: Positive ones of these.
        unlabelled: Events of the window without labels.
        tied: Whether all events of a bin have the same score.

    Returns:
        Value and the bound from the bins' width, as of `rank.auc`; says nothing of the map's own error.
    """
    positives = accuracy_map(labelled, correct) * unlabelled
    return auc(positives, unlabelled - positives, tied)


def cbpe(confidences: F64, correct: I64, unlabelled_confidences: F64, edges: F64 | None = None) -> LabelFreeAccuracy:
    """`label_free_accuracy` of raw events.

    Args:
        confidences: Of the labelled events, inside the edges; shape (n_labelled,).
        correct: 1 where the prediction was right, else 0.
        unlabelled_confidences: Of the events without labels, inside the edges; shape (n_unlabelled,).
        edges: Ascending, shape (n_bins + 1,). The graded grid with 8 steps an octave if not given.

    Returns:
        The estimate; arrays of shape (1,).
    """
    grid = graded_edges(CALIBRATION_STEPS) if edges is None else edges
    bins = len(grid) - 1
    place = bin_index(grid, confidences)
    counts = (place, place[correct != 0], bin_index(grid, unlabelled_confidences))
    labelled, right, unlabelled = (np.bincount(bin_of, minlength=bins)[None, :] for bin_of in counts)
    return label_free_accuracy(labelled, right, unlabelled)
