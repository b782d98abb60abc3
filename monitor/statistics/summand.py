"""Summands: the integers that one event adds to each sum, as correctly rounded float expressions in a fixed order.

Another order of the same expression would be another integer (FORMULAS section 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS, RATIO_BITS, fixed, limbs, negative_log

Bools = NDArray[np.bool_]

CSR_CLIP = 1e-6
"""Confidences closer to 1 than it count as 1 minus it in CSR, and are counted as clipped (FORMULAS section 5). This is the default, and
the smallest one whose third cumulants two limbs hold."""


def calibration(probability: F64, happened: Bools, weight: I64) -> dict[str, I64]:
    """What an event of a stated probability adds to its bin."""
    scaled = fixed(probability, PROBABILITY_BITS) * weight
    return {
        "labelled": weight,
        "correct": weight * happened,
        "confidence": scaled,
        "confidence_square": fixed(probability * probability, PROBABILITY_BITS) * weight,
        "correct_confidence": scaled * happened,
    }


def moments(probability: F64, happened: Bools, weight: I64, nll_clip: float) -> dict[str, I64]:
    """Third and fourth power of the probability, and NLL of the binary event."""
    square = probability * probability
    true = np.where(happened, probability, 1.0 - probability)
    return {
        "confidence_cube": fixed(square * probability, PROBABILITY_BITS) * weight,
        "confidence_fourth": fixed(square * square, PROBABILITY_BITS) * weight,
        "nll": _where(weight, lambda rows: negative_log(true[rows], nll_clip)),
        "nll_clipped": weight * (true < nll_clip),
    }


def vectors(squares: F64, true_probability: F64, unknown: Bools, weight: I64, nll_clip: float) -> dict[str, I64]:
    """Sums that need the whole vector; a label outside it has probability 0."""
    return {
        "vectors": weight,
        "probability_squares": fixed(squares, PROBABILITY_BITS) * weight,
        "true_probability": fixed(true_probability, PROBABILITY_BITS) * weight,
        "nll_multi": _where(weight, lambda rows: negative_log(true_probability[rows], nll_clip)),
        "nll_multi_clipped": weight * (true_probability < nll_clip),
        "unknown_class": weight * unknown,
    }


def calibrated_size(confidence: F64, correct: Bools, weight: I64, clip: float) -> dict[str, I64]:
    """Sums of CSR, its variance and third cumulant; clipped events are counted apart (FORMULAS section 5)."""
    gap = 1.0 - confidence
    clipped = gap < clip
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
        "clipped_gap": fixed(np.where(clipped, gap / clip, 0.0), PROBABILITY_BITS) * clipped_weight,
    }


def _where(weight: I64, values: Any) -> I64:
    """`values(rows) x weight` on the rows that have a weight, 0 elsewhere: logarithms are worth sparing."""
    result = np.zeros(len(weight), dtype=np.int64)
    rows = np.flatnonzero(weight)
    result[rows] = values(rows) * weight[rows]
    return result
