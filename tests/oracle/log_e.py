"""ln E of the count-and-sum e-process from raw events: FORMULAS.md section 9, bin after bin, without a stored sum."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from tests.oracle.join import Scored

TILTS = [(0.0, b) for b in (0.9, 0.75, 0.6, 0.45)] + [(-a, 1.0) for a in (0.1, 0.25, 0.5, 1.0)]
VOID_SHARES = (0.002, 0.01, 0.03, 0.1, 0.3)
_RISING = sorted(2.0 ** -(octave + 1) * (1 + step / 8) for octave in range(1, 20) for step in range(8))
EDGES = [0.0, *_RISING, 0.5, *(1 - edge for edge in reversed(_RISING)), 1.0]
"""The graded grid of 306 bins (FORMULAS.md section 2)."""


def log_e(labelled: Sequence[Scored], shift: float = 0.0) -> dict[str, float]:
    """Evidence against calibration of all labelled events, under the golden cases' names; nothing without one.

    Args:
        labelled: Events with a label.
        shift: Added to the mean confidence of every bin, to see what its rounding does.
    """
    if not labelled:
        return {}
    bins: dict[int, list[Scored]] = defaultdict(list)
    for event in labelled:
        bins[min(bisect_right(EDGES, event.prediction.confidence), len(EDGES) - 1) - 1].append(event)
    return {
        "log_e_over": _mixture(bins, shift, 0.0),
        "log_e_over_tolerance_0.02": _mixture(bins, shift, 0.02),
        "log_e_under": _mixture(bins, shift, None),
    }


def _mixture(bins: dict[int, list[Scored]], shift: float, tolerance: float | None) -> float:
    """Ln of the weighted mean of all bets' E; `tolerance` None for under-confidence."""
    terms: list[list[float]] = []
    for place, events in bins.items():
        centre = (EDGES[place] + EDGES[place + 1]) / 2
        n, correct = len(events), sum(event.correct for event in events)
        mean = math.fsum(event.prediction.confidence for event in events) / n + shift
        if tolerance is not None:
            centre, mean = max(centre - tolerance, centre / 2), mean - tolerance
        mean = min(max(mean, 0.0), 1.0)
        terms.append([_gain(n, correct, mean, centre, accuracy) for accuracy in _accuracies(centre, tolerance is not None)])
    found = [math.fsum(column) for column in zip(*terms, strict=True)]
    weights = [1 / 8] * 8 if tolerance is None else [1 / 16] * 8 + [1 / 10] * 5
    highest = max(found)
    return highest + math.log(math.fsum(weight * math.exp(one - highest) for weight, one in zip(weights, found, strict=True)))


def _accuracies(centre: float, over: bool) -> list[float]:
    """The accuracy that each bet claims at a bin's centre."""
    odds = math.log(centre / (1 - centre))
    if not over:
        return [max(centre, _sigmoid((odds - a) / b)) for a, b in TILTS]
    return [min(centre, _sigmoid(a + b * odds)) for a, b in TILTS] + [(1 - share) * centre for share in VOID_SHARES]


def _gain(n: int, correct: int, mean: float, centre: float, accuracy: float) -> float:
    right, wrong = accuracy / centre, (1 - accuracy) / (1 - centre)
    return correct * math.log(right) + (n - correct) * math.log(wrong) - n * math.log(mean * right + (1 - mean) * wrong)


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))
