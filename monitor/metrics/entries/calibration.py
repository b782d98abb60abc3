"""Entries of calibration, proper scores and CSR."""

from __future__ import annotations

from monitor.metrics import calibration, score
from monitor.metrics.metric import Family, Metric
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import I64


def nll_clipped(sums: Sums) -> I64:
    """Events whose probability was clipped in `nll`."""
    return sums.count("nll_clipped")


CALIBRATION = Family(
    "calibration",
    "whether confidences can be taken at their word, and in which direction they are off",
    True,
    (
        Metric(
            "accuracy",
            "accuracy_ratio",
            "Share of correct predictions among the used ones.",
            calibration.accuracy,
            groups=True,
            positive=True,
        ),
        Metric(
            "mean_confidence",
            "mean_confidence_ratio",
            "Mean confidence of the used predictions.",
            calibration.mean_confidence,
            groups=True,
            positive=True,
        ),
        Metric(
            "overconfidence",
            "overconfidence",
            "Mean confidence minus accuracy.",
            calibration.overconfidence,
            "1",
            groups=True,
            positive=True,
        ),
        Metric("ece", "ece_ratio", "Expected calibration error over the report bins.", calibration.ece, groups=True, positive=True),
        Metric("ece_over", "ece_over_ratio", "Part of ECE from over-confident bins.", calibration.ece_over, positive=True),
        Metric("ece_under", "ece_under_ratio", "Part of ECE from under-confident bins.", calibration.ece_under, positive=True),
        Metric("mce", "mce_ratio", "Largest gap between confidence and accuracy of a bin.", calibration.mce, positive=True),
        Metric(
            "ece_floor",
            "ece_floor_ratio",
            "ECE that a perfectly calibrated model would show here.",
            calibration.ece_floor,
            positive=True,
            bound="ece_floor_error_bound",
        ),
        Metric(
            "ece_floor_error_bound",
            "ece_floor_error_bound_ratio",
            "Bound of the error of the floor.",
            calibration.ece_floor_error_bound,
            positive=True,
        ),
        Metric(
            "ece_floor_sd", "ece_floor_sd", "Standard deviation of ECE under perfect calibration.", calibration.ece_floor_sd, positive=True
        ),
        Metric("ece_z", "ece_z", "ECE above its floor, in standard deviations; for ranking.", calibration.ece_z, "sd", positive=True),
    ),
)

SCORES = Family(
    "scores",
    "whether a version got better or worse on the whole",
    True,
    (
        Metric("brier", "brier", "Brier score of the event that the prediction is correct.", score.brier, "1", positive=True),
        Metric("nll", "nll", "Mean negative log-likelihood of that event, nats.", score.nll, "nats", positive=True),
        Metric(
            "nll_clipped",
            "nll_clipped",
            "Events whose probability was clipped in it, at `nll_clip`.",
            nll_clipped,
            "events",
            positive=True,
            count="",
        ),
        Metric("brier_multi", "brier_multi", "Multi-class Brier score, from 0 to 2.", score.brier_multi, "1"),
        Metric("nll_multi", "nll_multi", "Mean negative log-likelihood of the true class, nats.", score.nll_multi, "nats"),
        Metric(
            "nll_multi_clipped",
            "nll_multi_clipped",
            "Events whose probability was clipped in it, at `nll_clip`.",
            score.nll_multi_clipped,
            "events",
            count="",
        ),
        Metric(
            "unknown_class", "unknown_class", "Labels outside the classes of their prediction.", score.unknown_class, "events", count=""
        ),
    ),
)

CSR = Family(
    "csr",
    "whether a version claims certainty that it does not have",
    True,
    (
        Metric("csr", "csr", "Calibrated size ratio; 1 when calibrated, above it over-confident.", score.csr, "1"),
        Metric("csr_sigma", "csr_sigma", "Standard deviation of CSR under calibration.", score.csr_sigma, "1"),
        Metric("csr_null_mean", "csr_null_mean", "Expected CSR if calibrated; below 1 only through clipping.", score.csr_null_mean, "1"),
        Metric("csr_z", "csr_z", "CSR above 1, in standard deviations.", score.csr_z, "sd"),
        Metric("csr_skew", "csr_skew", "Skewness of CSR under calibration.", score.csr_skew, "1"),
        Metric(
            "csr_clipped", "csr_clipped", "Events with a confidence closer to 1 than `csr_clip`.", score.csr_clipped, "events", count=""
        ),
        Metric("csr_clipped_errors", "csr_clipped_errors", "Wrong ones of these.", score.csr_clipped_errors, "events", count=""),
        Metric("p_risk", "p_risk_ratio", "Normal distribution function at csr_z; one minus a one-sided p-value.", score.p_risk),
        Metric(
            "p_risk_gaussian_ok",
            "p_risk_gaussian_ok",
            "1 where p_risk may be read as a Gaussian tail.",
            score.p_risk_gaussian_ok,
            "1",
        ),
        Metric("cw_accuracy", "cw_accuracy_ratio", "Accuracy weighted by confidence.", score.cw_accuracy),
    ),
)
