"""Metrics of single classes: confidence-weighted precision, recall and F1, and calibration one against the rest.

Source: arXiv 2605.01796 for the weights; FORMULAS sections 3 and 6.
"""

from __future__ import annotations

import math

import numpy as np

from monitor.metrics.calibration import ece
from monitor.metrics.sums import Sums, divide
from monitor.metrics.version import Version
from monitor.names import OTHER_VALUE
from monitor.statistics.fixed_point import F64, I64


def class_predicted(sums: Sums) -> I64:
    """Predictions of the class."""
    return sums.count("predicted")


def class_true(sums: Sums) -> I64:
    """Used labelled events of the class."""
    return sums.count("true")


def class_predicted_labelled(sums: Sums) -> I64:
    """Used labelled predictions of the class."""
    return sums.count("predicted_labelled")


def class_hits(sums: Sums) -> I64:
    """Used labelled events of the class that were predicted so."""
    return sums.count("hits")


def class_precision(sums: Sums) -> F64:
    """Share of right ones among the labelled predictions of the class."""
    return divide(sums.count("hits"), sums.count("predicted_labelled"))


def class_recall(sums: Sums) -> F64:
    """Share of the class's events that were predicted so."""
    return divide(sums.count("hits"), sums.count("true"))


def cw_precision(sums: Sums) -> F64:
    """Precision weighted by confidence; NaN where the class was never predicted."""
    return divide(sums.count("hit_confidence"), sums.count("predicted_confidence"))


def cw_recall(sums: Sums) -> F64:
    """Recall weighted by confidence; NaN where the class never occurred."""
    return divide(sums.count("hit_confidence"), sums.count("true_confidence"))


def cw_f1(sums: Sums) -> F64:
    """F1 of the confusion matrix of summed confidences; NaN for a class that was neither predicted nor true."""
    return divide(2 * sums.count("hit_confidence"), sums.count("predicted_confidence") + sums.count("true_confidence"))


def cw_f1_macro(version: Version) -> float:
    """Plain mean of `cw_f1` over the classes; `__other__` is a mixture and no class."""
    return _mean(version.classes, None if version.classes is None else cw_f1(version.classes))


def classwise_ece_mean(version: Version) -> float:
    """Plain mean of the classes' own ECE, where every class is watched."""
    return _mean(version.own, None if version.own is None or not version.everything.classwise else ece(version.own))


def _mean(sums: Sums | None, values: F64 | None) -> float:
    if sums is None or values is None:
        return float("nan")
    kept = [value for name, value in zip(sums.names, values.tolist(), strict=True) if name != OTHER_VALUE and not math.isnan(value)]
    return float(np.mean(kept)) if kept else float("nan")
