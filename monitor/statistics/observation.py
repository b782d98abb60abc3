"""Columns of observations: what one batch adds to or takes from the sums, one row a change.

A row is one prediction in one state (unlabelled, or with a certain label) with two weights: how often it is added to
the sums over all predictions and to the sums over labelled ones. A correction is two rows: the old state taken away and
the new one added, so every change has an exact inverse.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.fixed_point import (
    F64,
    I64,
    LOG_FLOOR,
    PROBABILITY_BITS,
    RATIO_BITS,
    fixed,
    limbs,
    negative_log,
)
from monitor.statistics.grid import bin_index
from monitor.statistics.layout import ALL_BINS, ALL_SCALARS, GROUP_BINS, GROUP_SCALARS, Layout

Bools = NDArray[np.bool_]

CSR_EPSILON = 1e-6
"""Confidences closer to 1 count as 1 - 1e-6 in CSR, and are counted as clipped (FORMULAS section 5)."""

_COLUMNS = 9


class Flag(IntFlag):
    """What a row knows of its prediction."""

    CORRECT = 1
    SENT = 2
    """The service said whether it accepted."""
    SENT_ACCEPTED = 4
    DOMAIN_ID = 8
    DOMAIN_OOD = 16
    VECTOR = 32
    UNKNOWN_CLASS = 64


class ObservationBuffer:
    """Rows of one layout, collected one by one; the only per-event code of the statistics."""

    def __init__(self) -> None:
        self._numbers = array("d")
        self.append = self._numbers.extend
        """Takes (track, event time ms, confidence, all weight, labelled weight, flags, OOD score or NaN, sum of p^2, p of the label)."""

    def __len__(self) -> int:
        return len(self._numbers) // _COLUMNS

    def columns(self) -> F64:
        """The rows so far, shape (9, n); every whole number in them is below 2^53 and thus exact."""
        return np.array(np.frombuffer(self._numbers, dtype=np.float64).reshape(-1, _COLUMNS).T, order="C")

    def clear(self) -> None:
        """Forget the rows."""
        del self._numbers[:]


@dataclass(frozen=True, slots=True)
class Contributions:
    """Integers that each row adds, ready to be summed by any grouping of the rows.

    Attributes:
        track: Which track (version and its group slots) a row belongs to, shape (n,).
        event_time_ms: Shape (n,).
        bin: Grid bin, shape (n,).
        all_scalars: Shape (len(ALL_SCALARS), n).
        all_bins: Shape (len(ALL_BINS), n).
        group_scalars: Shape (len(GROUP_SCALARS), n).
        group_bins: Shape (len(GROUP_BINS), n).
    """

    track: I64
    event_time_ms: I64
    bin: I64
    all_scalars: I64
    all_bins: I64
    group_scalars: I64
    group_bins: I64


def contributions(columns: F64, layout: Layout) -> Contributions:
    """Turn rows into the integers they add to a cell.

    Args:
        columns: From `ObservationBuffer.columns`, shape (9, n).
        layout: What the sums mean.
    """
    confidence, score, squares, true_probability = columns[2], columns[6], columns[7], columns[8]
    track, event_time_ms, all_weight, labelled_weight, flags = (columns[row].astype(np.int64) for row in (0, 1, 3, 4, 5))
    correct = (flags & Flag.CORRECT) != 0
    used_weight = labelled_weight * layout.used(confidence)
    sums = _decisions(flags, layout.decisions(confidence), correct, all_weight, labelled_weight)
    sums |= _domains(flags, ~np.isnan(score), layout.in_distribution(score), all_weight)
    sums |= _scores(confidence, correct, used_weight)
    sums |= _vectors(flags, squares, true_probability, used_weight)
    sums |= _calibrated_size(confidence, correct, used_weight)
    fixed_confidence = fixed(confidence, PROBABILITY_BITS)
    bins = {
        "predictions": all_weight,
        "prediction_confidence": fixed_confidence * all_weight,
        "labelled": labelled_weight,
        "correct": labelled_weight * correct,
        "confidence": fixed_confidence * labelled_weight,
        "confidence_square": fixed(confidence * confidence, PROBABILITY_BITS) * labelled_weight,
        "correct_confidence": fixed_confidence * (labelled_weight * correct),
    }
    return Contributions(
        track,
        event_time_ms,
        bin_index(layout.grid, confidence),
        np.stack([sums[name] for name in ALL_SCALARS]),
        np.stack([bins[name] for name in ALL_BINS]),
        np.stack([sums[name] for name in GROUP_SCALARS]),
        np.stack([bins[name] for name in GROUP_BINS]),
    )


def _decisions(flags: I64, threshold: Bools | None, correct: Bools, all_weight: I64, labelled_weight: I64) -> dict[str, I64]:
    """Counts, and acceptance: the service's word, else the threshold's, else undecided."""
    sent = (flags & Flag.SENT) != 0
    accepted = (flags & Flag.SENT_ACCEPTED) != 0
    decided = sent
    if threshold is not None:
        decided = np.ones_like(sent)
        accepted = np.where(sent, accepted, threshold)
    labelled_accepted = labelled_weight * accepted
    return {
        "predictions": all_weight,
        "confidence_only": all_weight * ((flags & Flag.VECTOR) == 0),
        "labelled": labelled_weight,
        "decided": all_weight * decided,
        "accepted": all_weight * accepted,
        "labelled_decided": labelled_weight * decided,
        "labelled_accepted": labelled_accepted,
        "labelled_accepted_errors": labelled_accepted * ~correct,
    }


def _domains(flags: I64, has_score: Bools, passed: Bools, all_weight: I64) -> dict[str, I64]:
    """Scored predictions by what is known of their domain and by the OOD threshold."""
    scored = all_weight * has_score
    domain = flags & (Flag.DOMAIN_ID | Flag.DOMAIN_OOD)
    sums = {}
    for name, value in (("unknown", 0), ("id", Flag.DOMAIN_ID), ("ood", Flag.DOMAIN_OOD)):
        here = scored * (domain == value)
        sums[f"scored_{name}_rejected"] = here * ~passed
        sums[f"scored_{name}_accepted"] = here * passed
    return sums


def _scores(confidence: F64, correct: Bools, weight: I64) -> dict[str, I64]:
    """NLL of the binary event "the prediction is correct"."""
    probability = np.where(correct, confidence, 1.0 - confidence)
    return {
        "nll": _where(weight, lambda rows: negative_log(probability[rows])),
        "nll_clipped": weight * (probability < LOG_FLOOR),
    }


def _vectors(flags: I64, squares: F64, true_probability: F64, used_weight: I64) -> dict[str, I64]:
    """Sums that need the whole vector; a label outside it has probability 0."""
    weight = used_weight * ((flags & Flag.VECTOR) != 0)
    return {
        "vectors": weight,
        "probability_squares": fixed(squares, PROBABILITY_BITS) * weight,
        "true_probability": fixed(true_probability, PROBABILITY_BITS) * weight,
        "nll_multi": _where(weight, lambda rows: negative_log(true_probability[rows])),
        "nll_multi_clipped": weight * (true_probability < LOG_FLOOR),
        "unknown_class": weight * ((flags & Flag.UNKNOWN_CLASS) != 0),
    }


def _calibrated_size(confidence: F64, correct: Bools, weight: I64) -> dict[str, I64]:
    """Sums of CSR, its variance and third cumulant; clipped events are counted apart (FORMULAS section 5)."""
    gap = 1.0 - confidence
    clipped = gap < CSR_EPSILON
    size = np.where(clipped, 1.0, gap)
    open_weight = weight * ~clipped
    error_weight = open_weight * ~correct
    inverse_high, inverse_low = limbs(fixed(1.0 / size, RATIO_BITS))
    odds_high, odds_low = limbs(fixed((1.0 - size) / size, RATIO_BITS))
    cumulant_high, cumulant_low = limbs(fixed((1.0 - size) * (1.0 - 2.0 * size) / (size * size), RATIO_BITS))
    clipped_weight = weight * clipped
    return {
        "inverse_high": inverse_high * error_weight,
        "inverse_low": inverse_low * error_weight,
        "odds_high": odds_high * open_weight,
        "odds_low": odds_low * open_weight,
        "cumulant_high": cumulant_high * open_weight,
        "cumulant_low": cumulant_low * open_weight,
        "clipped": clipped_weight,
        "clipped_errors": clipped_weight * ~correct,
        "clipped_gap": fixed(np.where(clipped, gap / CSR_EPSILON, 0.0), PROBABILITY_BITS) * clipped_weight,
    }


def _where(weight: I64, values: Any) -> I64:
    """`values(rows) x weight` on the rows that have a weight, 0 elsewhere: logarithms are worth sparing."""
    result = np.zeros(len(weight), dtype=np.int64)
    rows = np.flatnonzero(weight)
    result[rows] = values(rows) * weight[rows]
    return result
