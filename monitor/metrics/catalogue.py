"""The catalogue: every metric once. Exposition, `calmon evaluate`, `calmon check` and the tests read it.

To add a metric is to add one entry here and one function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from monitor.metrics import acceptance, calibration, score
from monitor.metrics.sums import Sums
from monitor.statistics.fixed_point import F64, I64, PROBABILITY_BITS

Function = Callable[[Sums], F64 | I64]
"""Values by series, shape (n,), or by series and report bin, shape (n, n_bins); NaN where undefined."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One exported gauge.

    Attributes:
        name: Its key in `evaluate` and in the golden cases; for `per_bin` the key inside each bin.
        gauge: Exported name, without the prefix.
        help: What it is, for people who read `/metrics`.
        function: From sums to values.
        groups: Whether group values have it too.
        per_bin: Whether it has a value for each report bin.
    """

    name: str
    gauge: str
    help: str
    function: Function
    groups: bool = False
    per_bin: bool = False


def _count(name: str) -> Function:
    return lambda sums: sums.count(name)


def _bin_count(name: str) -> Function:
    return lambda sums: sums.bins(name)


def _used(sums: Sums) -> I64:
    return sums.used


def _correct(sums: Sums) -> I64:
    return sums.correct


def _confidence(sums: Sums) -> F64:
    return sums.confidence / float(1 << PROBABILITY_BITS)


def _bin_confidence(sums: Sums) -> F64:
    return sums.bins("confidence") / float(1 << PROBABILITY_BITS)


COUNTS = (
    Metric("predictions", "predictions", "Predictions in the window.", _count("predictions"), groups=True),
    Metric("labelled", "labelled", "Predictions in the window that a label scores.", _count("labelled"), groups=True),
    Metric("labelled_used", "labelled_used", "Labelled predictions whose confidence lies inside the report edges.", _used),
    Metric("correct", "correct", "Correct ones of the used predictions.", _correct),
    Metric("confidence_sum", "summed_confidence", "Sum of the confidence of the used predictions.", _confidence),
    Metric("confidence_only", "confidence_only_predictions", "Predictions sent without a probability vector.", _count("confidence_only")),
    Metric("completeness", "completeness_ratio", "Share of the window's predictions that have a label.", acceptance.completeness),
)

CALIBRATION = (
    Metric("accuracy", "accuracy_ratio", "Share of correct predictions among the used ones.", calibration.accuracy, groups=True),
    Metric(
        "mean_confidence", "mean_confidence_ratio", "Mean confidence of the used predictions.", calibration.mean_confidence, groups=True
    ),
    Metric("overconfidence", "overconfidence", "Mean confidence minus accuracy.", calibration.overconfidence, groups=True),
    Metric("ece", "ece_ratio", "Expected calibration error over the report bins.", calibration.ece, groups=True),
    Metric("ece_over", "ece_over_ratio", "Part of ECE from over-confident bins.", calibration.ece_over),
    Metric("ece_under", "ece_under_ratio", "Part of ECE from under-confident bins.", calibration.ece_under),
    Metric("mce", "mce_ratio", "Largest gap between confidence and accuracy of a bin.", calibration.mce),
    Metric("ece_floor", "ece_floor_ratio", "ECE that a perfectly calibrated model would show here.", calibration.ece_floor),
    Metric(
        "ece_floor_error_bound",
        "ece_floor_error_bound_ratio",
        "Bound of the error of the floor.",
        calibration.ece_floor_error_bound,
    ),
    Metric("ece_floor_sd", "ece_floor_sd", "Standard deviation of ECE under perfect calibration.", calibration.ece_floor_sd),
    Metric("ece_z", "ece_z", "ECE above its floor, in standard deviations; for ranking.", calibration.ece_z),
)

SCORES = (
    Metric("brier", "brier", "Brier score of the event that the prediction is correct.", score.brier),
    Metric("nll", "nll", "Mean negative log-likelihood of that event, nats.", score.nll),
    Metric("nll_clipped", "nll_clipped", "Events whose probability was clipped at 1e-12 in it.", _count("nll_clipped")),
    Metric("brier_multi", "brier_multi", "Multi-class Brier score, from 0 to 2.", score.brier_multi),
    Metric("nll_multi", "nll_multi", "Mean negative log-likelihood of the true class, nats.", score.nll_multi),
    Metric("nll_multi_clipped", "nll_multi_clipped", "Events whose probability was clipped at 1e-12 in it.", _count("nll_multi_clipped")),
    Metric("unknown_class", "unknown_class", "Labels outside the classes of their prediction.", _count("unknown_class")),
    Metric("csr", "csr", "Calibrated size ratio; 1 when calibrated, above it over-confident.", score.csr),
    Metric("csr_sigma", "csr_sigma", "Standard deviation of CSR under calibration.", score.csr_sigma),
    Metric("csr_null_mean", "csr_null_mean", "Expected CSR under calibration; below 1 only through clipping.", score.csr_null_mean),
    Metric("csr_z", "csr_z", "CSR above 1, in standard deviations.", score.csr_z),
    Metric("csr_skew", "csr_skew", "Skewness of CSR under calibration.", score.csr_skew),
    Metric("csr_clipped", "csr_clipped", "Events with a confidence closer to 1 than 1e-6.", _count("clipped")),
    Metric("csr_clipped_errors", "csr_clipped_errors", "Wrong ones of these.", _count("clipped_errors")),
    Metric("p_risk", "p_risk_ratio", "Normal distribution function at csr_z; one minus a one-sided p-value.", score.p_risk),
    Metric("p_risk_gaussian_ok", "p_risk_gaussian_ok", "1 where p_risk may be read as a Gaussian tail.", score.p_risk_gaussian_ok),
    Metric("cw_accuracy", "cw_accuracy_ratio", "Accuracy weighted by confidence.", score.cw_accuracy),
)

SELECTION = (
    Metric("decided", "decided", "Predictions that were accepted or rejected.", _count("decided")),
    Metric("accepted", "accepted", "Predictions that were accepted.", _count("accepted")),
    Metric("coverage", "coverage_ratio", "Share of accepted predictions among the decided ones.", acceptance.coverage),
    Metric(
        "labelled_coverage", "labelled_coverage_ratio", "Share of accepted predictions among the labelled.", acceptance.labelled_coverage
    ),
    Metric("selective_risk", "selective_risk_ratio", "Share of errors among accepted labelled predictions.", acceptance.selective_risk),
    Metric("selective_risk_lower", "selective_risk_lower_ratio", "Lower 95 % Wilson bound of it.", acceptance.selective_risk_lower),
    Metric("selective_risk_upper", "selective_risk_upper_ratio", "Upper 95 % Wilson bound of it.", acceptance.selective_risk_upper),
    Metric("rejection_rate", "rejection_ratio", "Share of rejected predictions.", acceptance.rejection_rate, groups=True),
    Metric("rejection_rate_lower", "rejection_lower_ratio", "Lower 95 % Wilson bound of it.", acceptance.rejection_rate_lower, groups=True),
    Metric("rejection_rate_upper", "rejection_upper_ratio", "Upper 95 % Wilson bound of it.", acceptance.rejection_rate_upper, groups=True),
)

DISTRIBUTION = (
    Metric("ood_scored", "ood_scored", "Predictions with an OOD score.", acceptance.ood_scored),
    Metric(
        "ood_acceptance_rate",
        "ood_acceptance_ratio",
        "Share of scored predictions accepted as in distribution.",
        acceptance.ood_acceptance_rate,
    ),
    Metric("ood_acceptance_rate_lower", "ood_acceptance_lower_ratio", "Lower 95 % Wilson bound.", acceptance.ood_acceptance_rate_lower),
    Metric("ood_acceptance_rate_upper", "ood_acceptance_upper_ratio", "Upper 95 % Wilson bound.", acceptance.ood_acceptance_rate_upper),
    Metric("id_acceptance_rate", "id_acceptance_ratio", "The same of those known to be in distribution.", acceptance.id_acceptance_rate),
    Metric(
        "ood_false_acceptance_rate",
        "ood_false_acceptance_ratio",
        "The same of those known to be out of distribution.",
        acceptance.ood_false_acceptance_rate,
    ),
)

BINS = (
    Metric("predictions", "bin_predictions", "Predictions in the report bin.", _bin_count("predictions"), per_bin=True),
    Metric("count", "bin_labelled", "Labelled predictions in the report bin.", _bin_count("labelled"), per_bin=True),
    Metric("correct", "bin_correct", "Correct ones of these.", _bin_count("correct"), per_bin=True),
    Metric("confidence_sum", "bin_summed_confidence", "Sum of their confidence.", _bin_confidence, per_bin=True),
)

CATALOGUE = COUNTS + CALIBRATION + SCORES + SELECTION + DISTRIBUTION + BINS


def values(metric: Metric, sums: Sums) -> F64 | I64:
    """Values of a metric: whole numbers for counts, else reals, NaN where undefined."""
    return metric.function(sums)
