"""Squared (L2) calibration error over the report bins, and its estimate without the bias that few events bring.

D_b, V_b as in `calibration`, a_b = K_b/n_b. All but the count are NaN without a used event. Source: FORMULAS section 3.
"""

from __future__ import annotations

import numpy as np

from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)
_DEBIASED_FROM = 2
"""Fewest events in a bin whose variance can be estimated."""


def ece_squared(sums: Sums) -> F64:
    """Sum of (n_b/n)(D_b/n_b)^2, in [0, 1]."""
    terms = (sums.deviation / _ONE) ** 2 / np.maximum(sums.bins("labelled"), 1)
    return divide(terms.sum(axis=1), sums.used)


def ece_l2(sums: Sums) -> F64:
    """Square root of `ece_squared`."""
    return np.sqrt(ece_squared(sums))


def ece_squared_floor(sums: Sums) -> F64:
    """Expected `ece_squared` of a perfectly calibrated model with these confidences: sum of V_b/n_b over n, exactly."""
    terms = sums.variance / _ONE / np.maximum(sums.bins("labelled"), 1)
    return divide(terms.sum(axis=1), sums.used)


def ece_squared_debiased(sums: Sums) -> F64:
    """Sum of (n_b/n)[(D_b/n_b)^2 - a_b(1 - a_b)/(n_b - 1)] over bins of two events or more; may be negative.

    n counts the events of the other bins too, see `ece_squared_debiased_skipped`.

    Source: Kumar, Liang and Ma, NeurIPS 2019.
    """
    count, correct = sums.bins("labelled"), sums.bins("correct")
    square = (sums.deviation / _ONE) ** 2
    noise = correct * (count - correct) / np.maximum(count - 1, 1)
    terms = np.where(count >= _DEBIASED_FROM, (square - noise) / np.maximum(count, 1), 0.0)
    return divide(terms.sum(axis=1), sums.used)


def ece_squared_debiased_skipped(sums: Sums) -> I64:
    """Bins of a single event, which `ece_squared_debiased` leaves out."""
    return np.asarray((sums.bins("labelled") == 1).sum(axis=1))
