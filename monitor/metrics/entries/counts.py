"""Counts: what every ratio stands on, exported so that ratios can be aggregated again from sums."""

from __future__ import annotations

from monitor.metrics import acceptance, calibration
from monitor.metrics.metric import Family, Metric, Subject
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

_ONE = float(1 << PROBABILITY_BITS)


def predictions(sums: Sums) -> I64:
    """Predictions."""
    return sums.count("predictions")


def labelled(sums: Sums) -> I64:
    """Predictions that a label scores."""
    return sums.count("labelled")


def labelled_used(sums: Sums) -> I64:
    """Labelled predictions inside the report edges."""
    return sums.used


def correct(sums: Sums) -> I64:
    """Correct ones of the used predictions."""
    return sums.correct


def confidence_sum(sums: Sums) -> F64:
    """Sum of the confidence of the used predictions."""
    return sums.confidence / _ONE


def confidence_only(sums: Sums) -> I64:
    """Predictions without a vector."""
    return sums.count("confidence_only")


def bin_predictions(sums: Sums) -> I64:
    """Predictions by report bin."""
    return sums.bins("predictions")


def bin_labelled(sums: Sums) -> I64:
    """Labelled predictions by report bin."""
    return sums.bins("labelled")


def bin_correct(sums: Sums) -> I64:
    """Correct ones by report bin."""
    return sums.bins("correct")


def bin_confidence_sum(sums: Sums) -> F64:
    """Sum of confidence of the labelled ones by report bin."""
    return sums.bins("confidence") / _ONE


PREDICTIONS = Metric("predictions", "predictions", "Predictions in the window.", predictions, "events", groups=True, count="")

COUNTS = Family(
    "counts",
    "how much the other numbers rest on, and whether labels still arrive",
    True,
    (
        PREDICTIONS,
        Metric("labelled", "labelled", "Predictions in the window that a label scores.", labelled, "events", groups=True, count=""),
        Metric(
            "labelled_used",
            "labelled_used",
            "Labelled predictions whose confidence lies inside the report edges.",
            labelled_used,
            "events",
            positive=True,
            count="",
        ),
        Metric("correct", "correct", "Correct ones of the used predictions.", correct, "events", count=""),
        Metric("confidence_sum", "summed_confidence", "Sum of the confidence of the used predictions.", confidence_sum, "1", count=""),
        Metric(
            "confidence_only",
            "confidence_only_predictions",
            "Predictions sent without a probability vector.",
            confidence_only,
            "events",
            count="",
        ),
        Metric(
            "completeness",
            "completeness_ratio",
            "Share of the window's predictions that have a label.",
            acceptance.completeness,
            count="predictions",
        ),
    ),
)

BINS = Family(
    "bins",
    "in which range of confidence a version is wrong: the reliability diagram",
    True,
    (
        Metric(
            "predictions", "bin_predictions", "Predictions in the report bin.", bin_predictions, "events", subject=Subject.BIN, count=""
        ),
        Metric("count", "bin_labelled", "Labelled predictions in the report bin.", bin_labelled, "events", subject=Subject.BIN, count=""),
        Metric("correct", "bin_correct", "Correct ones of these.", bin_correct, "events", subject=Subject.BIN, count=""),
        Metric(
            "confidence_sum", "bin_summed_confidence", "Sum of their confidence.", bin_confidence_sum, "1", subject=Subject.BIN, count=""
        ),
    ),
)

RELIABILITY = Family(
    "reliability",
    "whether a bin's gap between confidence and accuracy is more than chance",
    False,
    (
        Metric(
            "mean_confidence",
            "bin_mean_confidence_ratio",
            "Mean confidence of the bin.",
            calibration.bin_mean_confidence,
            subject=Subject.BIN,
            count="count",
        ),
        Metric("accuracy", "bin_accuracy_ratio", "Accuracy of the bin.", calibration.bin_accuracy, subject=Subject.BIN, count="count"),
        Metric(
            "overconfidence",
            "bin_overconfidence",
            "Mean confidence minus accuracy of the bin.",
            calibration.bin_overconfidence,
            "1",
            subject=Subject.BIN,
            count="count",
        ),
        Metric(
            "accuracy_lower",
            "bin_accuracy_lower_ratio",
            "Lower 95 % Wilson bound of the bin's accuracy; 0 for an empty bin.",
            calibration.bin_accuracy_lower,
            subject=Subject.BIN,
            count="",
        ),
        Metric(
            "accuracy_upper",
            "bin_accuracy_upper_ratio",
            "Upper 95 % Wilson bound of the bin's accuracy; 1 for an empty bin.",
            calibration.bin_accuracy_upper,
            subject=Subject.BIN,
            count="",
        ),
    ),
)
