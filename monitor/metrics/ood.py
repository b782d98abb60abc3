"""How well the OOD score tells in-distribution inputs from others, where the domain is known.

Scores count by bin (`score_grid`); what depends on the order inside a bin comes with a bound. Where a low score means in
distribution, the order is turned round; thresholds stay in the source's units. Source: FORMULAS section 7.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from monitor.metrics.delong import auc_standard_error
from monitor.metrics.precision_recall import OodOperatingPoint, aupr_id, aupr_ood, fpr_at_95tpr
from monitor.metrics.rank import auc
from monitor.metrics.ranking import Bounded
from monitor.metrics.version import Version
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.score_grid import score_edges

_UNTIED = np.array([False])
_FAR = float(np.finfo(np.float64).max)
"""Stands for the open ends of the grid: no score lies beyond it, so the bound of a threshold out there holds too."""


def ood_auroc(version: Version) -> Bounded:
    """AUC of in distribution over OOD; NaN where either is missing."""
    histogram = _histogram(version)
    return Bounded(*(float(one[0]) for one in auc(histogram.inside, histogram.outside, _UNTIED)))


def ood_auroc_se(version: Version) -> float:
    """DeLong's standard error of it."""
    histogram = _histogram(version)
    return float(auc_standard_error(histogram.inside, histogram.outside)[0])


def ood_aupr_id(version: Version) -> Bounded:
    """Average precision with in distribution as the positive class."""
    histogram = _histogram(version)
    return Bounded(*(float(one[0]) for one in aupr_id(histogram.inside, histogram.outside, _UNTIED)))


def ood_aupr_ood(version: Version) -> Bounded:
    """Average precision with OOD as the positive class."""
    histogram = _histogram(version)
    return Bounded(*(float(one[0]) for one in aupr_ood(histogram.inside, histogram.outside, _UNTIED)))


def fpr95(version: Version) -> Bounded:
    """OOD acceptance at the strictest threshold that accepts at least 95 % of the in-distribution inputs."""
    point = _operating_point(version)
    return Bounded(float(point.false_acceptance[0]), float(point.false_acceptance_bound[0]))


def fpr95_threshold(version: Version) -> Bounded:
    """That threshold, in the source's units."""
    point = _operating_point(version)
    threshold = float(point.threshold[0])
    return Bounded(threshold if version.everything.ood_high_is_in else -threshold, float(point.threshold_bound[0]))


class _Histogram:
    """Bins that hold a score of known domain, ascending towards in distribution; one row each."""

    def __init__(self, inside: I64, outside: I64, high_is_in: bool) -> None:
        lowest = np.concatenate(([-_FAR], score_edges()))
        highest = np.concatenate((score_edges(), [_FAR]))
        filled = np.flatnonzero(inside + outside)
        if not high_is_in:
            filled, lowest, highest = filled[::-1], -highest, -lowest
        self.inside, self.outside = inside[None, filled], outside[None, filled]
        self.lowest, self.highest = lowest[None, filled], highest[None, filled]


@lru_cache(maxsize=1)
def _histogram(version: Version) -> _Histogram:
    nothing = np.zeros(len(score_edges()) + 1, dtype=np.int64)
    return _Histogram(version.scores.get("id", nothing), version.scores.get("ood", nothing), version.everything.ood_high_is_in)


def _operating_point(version: Version) -> OodOperatingPoint:
    one = _histogram(version)
    if not one.inside.shape[1]:
        undefined: F64 = np.array([np.nan])
        return OodOperatingPoint(undefined, undefined, undefined, undefined)
    return fpr_at_95tpr(one.inside, one.outside, _UNTIED, one.lowest, one.highest)


def domain_table(version: Version) -> list[dict[str, float | str]]:
    """Scored predictions by what is known of the domain, by outcome and by OOD acceptance; no rows without a threshold."""
    sums = version.everything
    if not sums.has_ood_threshold:
        return []
    rows: list[dict[str, float | str]] = []
    for domain in ("unknown", "id", "ood"):
        for verdict in ("accepted", "rejected"):
            correct, wrong = (int(sums.count(f"labelled_{domain}_{verdict}_{outcome}")[0]) for outcome in ("correct", "wrong"))
            unlabelled = int(sums.count(f"scored_{domain}_{verdict}")[0]) - correct - wrong
            for outcome, count in (("correct", correct), ("wrong", wrong), ("unlabelled", unlabelled)):
                rows.append({"domain": domain, "outcome": outcome, "verdict": verdict, "count": count})
    return rows
