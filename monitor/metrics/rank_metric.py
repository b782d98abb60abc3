"""Rank metrics of a version and of its classes. Source: FORMULAS sections 6 and 8."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

from monitor.metrics.ranking import NO_VALUES, UNDEFINED, Bounded, curve, row_auc, row_auc_se, row_aurc, row_weighted_auc
from monitor.metrics.risk_coverage import RiskCoverage
from monitor.metrics.sums import Sums
from monitor.metrics.values import Values
from monitor.metrics.version import Version
from monitor.names import OTHER_VALUE


def error_auroc(version: Version) -> Bounded:
    """AUC of confidence for the event "correct": how well confidence tells right from wrong."""
    return row_auc(version.everything, 0, version.values or NO_VALUES)


def error_auroc_se(version: Version) -> float:
    """DeLong's standard error of it."""
    return row_auc_se(version.everything, 0)


def aurc(version: Version) -> Bounded:
    """Area under the risk-coverage curve; NaN without a label."""
    return row_aurc(version.everything, 0, version.values or NO_VALUES)


def auc(version: Version) -> Bounded:
    """AUC of the positive class's probability."""
    own = _positive(version)
    return UNDEFINED if own is None else row_auc(*own)


def auc_se(version: Version) -> float:
    """DeLong's standard error of it."""
    own = _positive(version)
    return float("nan") if own is None else row_auc_se(own[0], own[1])


def cw_auc(version: Version) -> Bounded:
    """AUC of the positive class's probability, pairs weighted by confidence."""
    own = _positive(version)
    return UNDEFINED if own is None else row_weighted_auc(*own)


def auc_calibration_gain(version: Version) -> Bounded:
    """`cw_auc` minus `auc`; the bound is the sum of theirs."""
    plain, weighted = auc(version), cw_auc(version)
    return Bounded(weighted.value - plain.value, weighted.bound + plain.bound)


def auc_macro(version: Version) -> Bounded:
    """Plain mean of the classes' one-vs-rest AUC, where every class is watched."""
    return _macro(version, row_auc)


def cw_auc_macro(version: Version) -> Bounded:
    """The same, pairs weighted by confidence."""
    return _macro(version, row_weighted_auc)


def classwise_auc(version: Version) -> list[dict[str, float | str]]:
    """AUC, its weighted form and AURC of each watched class, with bounds and DeLong's standard error."""
    if version.own is None:
        return []
    rows: list[dict[str, float | str]] = []
    for row, name in enumerate(version.own.names):
        values = version.own_values.get(name, NO_VALUES)
        plain, weighted = row_auc(version.own, row, values), row_weighted_auc(version.own, row, values)
        # Events of the class as predicted are some of those whose values are known: their order is left to the bins.
        risk = row_aurc(version.own, row, NO_VALUES, "chosen", "chosen_correct")
        rows.append(
            {
                "class": name,
                "auc": plain.value,
                "auc_bound": plain.bound,
                "auc_se": row_auc_se(version.own, row),
                "cw_auc": weighted.value,
                "cw_auc_bound": weighted.bound,
                "aurc": risk.value,
                "aurc_bound": risk.bound,
            }
        )
    return rows


def risk_coverage(version: Version) -> list[dict[str, float | str]]:
    """The risk-coverage curve, from the highest threshold down."""
    return _points(curve(version.everything, 0, version.values or NO_VALUES))


def class_risk_coverage(version: Version) -> list[dict[str, float | str]]:
    """The same of the predictions of each watched class, from bins alone."""
    if version.own is None:
        return []
    named = enumerate(version.own.names)
    curves = [(name, curve(version.own, row, NO_VALUES, "chosen", "chosen_correct")) for row, name in named]
    return [{"class": name, **point} for name, points in curves for point in _points(points)]


def _points(points: RiskCoverage) -> list[dict[str, float | str]]:
    columns = (points.threshold, points.threshold_bound, points.coverage, points.risk, points.risk_lower, points.risk_upper)
    return [
        {
            "threshold": threshold,
            "threshold_bound": bound,
            "coverage": coverage,
            "coverage_bound": 0.0,
            "risk": risk,
            "risk_bound": max(risk - lower, upper - risk),
        }
        for threshold, bound, coverage, risk, lower, upper in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _positive(version: Version) -> tuple[Sums, int, Values] | None:
    name = version.everything.settings.positive_class
    if version.own is None or name is None or name not in version.own.names:
        return None
    return version.own, list(version.own.names).index(name), version.own_values.get(name, NO_VALUES)


def _macro(version: Version, function: Callable[[Sums, int, Values], Bounded]) -> Bounded:
    if version.own is None or not version.everything.classwise:
        return UNDEFINED
    found = [
        function(version.own, row, version.own_values.get(name, NO_VALUES))
        for row, name in enumerate(version.own.names)
        if name != OTHER_VALUE
    ]
    defined = [one for one in found if not math.isnan(one.value)]
    if not defined:
        return UNDEFINED
    return Bounded(fmean(one.value for one in defined), fmean(one.bound for one in defined))
