"""Bets against calibration: for each bin of the grid, what accuracy is betted on where the model claims the bin's centre.

Source: FORMULAS section 9; tilts are temperature-like (logit of accuracy = a + b logit of confidence), contaminations are
a share of claims that hold nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
from scipy.special import expit, logit

from monitor.evidence.grid_sums import bin_centres
from monitor.statistics.fixed_point import F64

SLOPES = (0.9, 0.75, 0.6, 0.45)
"""b of the tilts with a = 0; its inverse for under-confidence."""

SHIFTS = (0.1, 0.25, 0.5, 1.0)
"""-a of the tilts with b = 1; a for under-confidence."""

VOID_SHARES = (0.002, 0.01, 0.03, 0.1, 0.3)
"""l of the contaminations: accuracy (1 - l) x confidence."""


class Side(StrEnum):
    """Which miscalibration a test looks for."""

    OVER = "over"
    UNDER = "under"


@dataclass(frozen=True, slots=True, eq=False)
class Bets:
    """All bets of one side, at the bins' centres.

    With r a bin's centre moved by the tolerance and q the accuracy that is betted on, an event in the bin multiplies the
    wealth by q/r if right and (1-q)/(1-r) if wrong, over the mean of the two where accuracy is what the model claims.

    Attributes:
        side: What is looked for.
        tolerance: How much miscalibration is put up with: H0 is accuracy >= confidence - tolerance (over), or
            <= confidence + tolerance (under).
        centre: r, shape (306,).
        log_weight: ln of each bet's share of the first stake, shape (n_bets,); shares sum to 1.
        log_right: ln(q/r), shape (n_bets, 306).
        log_wrong: ln((1-q)/(1-r)), same shape.
        slope: q/r - (1-q)/(1-r), same shape; negative for over, positive for under, 0 where nothing is betted.
    """

    side: Side
    tolerance: float
    centre: F64
    log_weight: F64
    log_right: F64
    log_wrong: F64
    slope: F64


@cache
def bets(side: Side, tolerance: float = 0.0) -> Bets:
    """The bets of a side, made once for each tolerance.

    Args:
        side: What is looked for.
        tolerance: In [0, 1).

    Raises:
        ValueError: The tolerance is out of range.
    """
    if not 0 <= tolerance < 1:
        message = f"a tolerance is in [0, 1), not {tolerance}"
        raise ValueError(message)
    centre = bin_centres()
    if side is Side.OVER:
        centre = np.maximum(centre - tolerance, centre / 2)
        alternative, weight = _over(centre)
    else:
        centre = np.minimum(centre + tolerance, (1 + centre) / 2)
        alternative, weight = _under(centre)
    void = (alternative - centre) / (1 - centre)
    return Bets(
        side,
        tolerance,
        _frozen(centre),
        _frozen(np.log(weight)),
        _frozen(np.log1p((alternative - centre) / centre)),
        _frozen(np.log1p(-void)),
        _frozen(void / centre),
    )


def _over(centre: F64) -> tuple[F64, F64]:
    claimed = logit(centre)
    tilts = [expit(slope * claimed) for slope in SLOPES] + [expit(claimed - shift) for shift in SHIFTS]
    contaminations = [(1 - share) * centre for share in VOID_SHARES]
    weight = [1 / (2 * len(tilts))] * len(tilts) + [1 / (2 * len(contaminations))] * len(contaminations)
    return np.minimum(centre, np.array(tilts + contaminations)), np.array(weight)


def _under(centre: F64) -> tuple[F64, F64]:
    claimed = logit(centre)
    tilts = [expit(claimed / slope) for slope in SLOPES] + [expit(claimed + shift) for shift in SHIFTS]
    return np.maximum(centre, np.array(tilts)), np.full(len(tilts), 1 / len(tilts))


def _frozen(values: F64) -> F64:
    """Cached and shared, so nobody may write into it."""
    values.flags.writeable = False
    return values


def log_threshold(alpha: float) -> float:
    """ln(1/alpha): where an e-process rejects.

    Args:
        alpha: In (0, 1).
    """
    return -math.log(alpha)
