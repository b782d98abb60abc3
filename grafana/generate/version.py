"""One model version: is it bad, in which way, since when, and how sure is that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from grafana_foundation_sdk.builders import barchart, dashboard, stat, table, timeseries, xychart

from grafana.generate.frame import VERSION, early_variables, frame, model_variable, segment_variable, version_variable, window_variable
from grafana.generate.panel import HALF, Query, bars, course, number, rows, scatter
from grafana.generate.query import (
    ONE_VERSION,
    described,
    metric,
    of_attribute,
    of_backfill,
    of_bins,
    of_classes,
    of_group_values,
    of_version,
    unit,
)

_Panel = barchart.Panel | stat.Panel | table.Panel | timeseries.Panel | xychart.Panel

_BOUNDS = ("lower", "upper", "floor", "bound")
"""Parts of the names of gauges that stand beside a value."""


def version() -> dashboard.Dashboard:
    """The dashboard of one version."""
    text = "Whether this version's confidence can be taken at its word, where it cannot, since when, and how much that rests on."
    chosen = [model_variable(several=False), version_variable(), window_variable(), *early_variables(), segment_variable()]
    board = frame(VERSION, text, chosen)
    for title, panels in {
        "Now": _now(),
        "Reliability: what the confidence promises, and what came": _reliability(),
        "Calibration over time": _calibration(),
        "Evidence: what may raise an alarm": _evidence(),
        "Maturity: as known then, and as known now": _then_and_now(),
        "Backfill: the window as it was shown, and as it is known now": _backfill(),
        "Against the version before it, on the same window": _comparison(),
        "Against the reference, if the model has one": _drift(),
        "Selection: risk and coverage": _selection(),
        "OOD: inputs from elsewhere": _ood(),
        "Groups": _groups(),
        "Classes and scores": _classes(),
    }.items():
        board = board.with_row(dashboard.Row(title))
        for panel in panels:
            board = board.with_panel(panel)
    return board


def _now() -> Iterator[_Panel]:
    for gauge, title in {
        "predictions": "Predictions",
        "completeness_ratio": "With a label",
        "overconfidence": "Overconfidence",
        "ece_z": "ECE above its floor",
        "csr_z": "CSR above 1",
        "selective_risk_upper_ratio": "Selective risk at most",
    }.items():
        yield number(title, described([gauge]), Query(of_version(gauge), title), unit=unit(metric(gauge).unit))


def _reliability() -> Iterator[_Panel]:
    confidence, accuracy = "bin_mean_confidence_ratio", "bin_accuracy_ratio"
    bounds = {"bin_accuracy_lower_ratio": "Accuracy at least", "bin_accuracy_upper_ratio": "Accuracy at most"}
    text = (
        "Each point is a report bin: right of the line the version claims more than came. A bin is off only where the line lies outside "
        "its interval, and with 15 bins one does so by chance."
    )
    yield scatter(
        "Reliability diagram",
        f"{text}\n\n{described([confidence, accuracy, *bounds])}",
        "bin",
        Query(of_bins(confidence), "Mean confidence"),
        Query(of_bins(confidence), "Perfect calibration"),
        [Query(of_bins(accuracy), "Accuracy"), *(Query(_filled(gauge), name) for gauge, name in bounds.items())],
    )
    counts = {"bin_predictions": "Predictions", "bin_labelled": "Labelled", "bin_correct": "Correct"}
    columns = [Query(of_bins(gauge), name) for gauge, name in counts.items()]
    yield bars("Counts by confidence", described(counts), "bin", columns)
    table_columns = {**counts, confidence: "Mean confidence", accuracy: "Accuracy", **bounds, "bin_overconfidence": "Overconfidence"}
    yield rows("Bins", described(table_columns), ["bin"], [_column(of_bins(gauge), gauge, name) for gauge, name in table_columns.items()])


def _filled(gauge: str) -> str:
    """An interval's end where its bin has labels: of an empty bin it says nothing."""
    return f"{of_bins(gauge)} and ({of_bins('bin_labelled')} > 0)"


def _calibration() -> Iterator[_Panel]:
    yield _lines("Confidence and accuracy", {"mean_confidence_ratio": "mean confidence", "accuracy_ratio": "accuracy"})
    yield _lines("Overconfidence: mean confidence minus accuracy", {"overconfidence": "overconfidence"})
    yield _lines(
        "ECE and its floor",
        {"ece_ratio": "ECE", "ece_floor_ratio": "floor: ECE if calibrated", "ece_over_ratio": "over", "ece_under_ratio": "under"},
        "At the floor ECE is noise: with few labels a perfect version shows that much.",
    )
    yield _lines("ECE above its floor, in standard deviations", {"ece_z": "z"})
    band = {1: "upper", -1: "lower"}
    csr = [Query(of_version("csr"), "CSR"), Query(of_version("csr_null_mean"), "if calibrated", dashed=True)]
    csr += [
        Query(f"{of_version('csr_null_mean')} + {3 * sign} * {of_version('csr_sigma')}", f"{name}, 3 sigma", dashed=True)
        for sign, name in band.items()
    ]
    yield course("CSR", described(["csr", "csr_null_mean", "csr_sigma"]), csr)
    text = "`calmon_p_risk_ratio` may be read as a Gaussian tail only where `calmon_p_risk_gaussian_ok` is 1; it is no alarm."
    yield _lines("P_risk", {"p_risk_ratio": "P_risk", "p_risk_gaussian_ok": "Gaussian"}, text)


def _evidence() -> Iterator[_Panel]:
    def of(name: str, selector: str = "", by: str = "") -> str:
        grouped = f" by ({by})" if by else ""
        return f"max{grouped} (calmon_evidence_{name}{{{ONE_VERSION}{selector}}})"

    sides = "side, tolerance"
    yield course(
        "Evidence, ln E",
        "`calmon_evidence_log_e`: evidence of matured hours against calibration, by side and tolerance, valid however often someone looks. "
        "With `evidence.alpha: 0.05` it crosses at ln 20 = 3.0.",
        [Query(of("log_e", by=sides), "{{side}} beyond {{tolerance}}"), Query(of("block_log_e"), "one bet an hour")],
    )
    yield course(
        "Change detector, ln R",
        "`calmon_evidence_log_run_length`: alarms from ln 1000 = 6.9 on; then the table beside says since when.",
        [Query(of("log_run_length", by=sides), "{{side}} beyond {{tolerance}}")],
    )
    yield rows(
        "Crossed, ever",
        "`calmon_evidence_crossed`: 1 once crossed, whatever came later.",
        ["statistic", "side", "tolerance"],
        [Query(of("crossed", by="statistic, side, tolerance"), "Crossed")],
    ).span(HALF)
    yield course(
        "Overconfidence that is certain",
        "`calmon_evidence_overconfidence_lower_ratio`: lower bound of the worst overconfidence of the version, valid at any time.",
        [Query(of("overconfidence_lower_ratio"), "at least")],
        "percentunit",
    )
    yield course(
        "What the evidence rests on",
        "`calmon_evidence_matured_predictions` have entered the tests; those without a label count against an alarm.",
        [Query(of("matured_predictions"), "matured predictions"), Query(of("matured_labelled"), "with a label now")],
    )


def _then_and_now() -> Iterator[_Panel]:
    text = (
        "Both lines speak of the same predictions where *Earlier window* is as long as *Window* and *Earlier by* is the difference of "
        "their lags: one as Prometheus kept what was known then, one with the labels that came since. Apart: late labels changed it."
    )
    for gauge, title in {"overconfidence": "Overconfidence", "ece_ratio": "ECE", "completeness_ratio": "Share with a label"}.items():
        early = of_version(gauge, "$early_window", "$early_by")
        queries = [Query(of_version(gauge), "as known now"), Query(early, "as known then", dashed=True)]
        yield course(f"{title}: then and now", f"{text}\n\n{described([gauge])}", queries, unit(metric(gauge).unit))
    delay = "calmon_label_delay_seconds"
    since = f"sum by (le) (increase({delay}_bucket{{{ONE_VERSION}}}[$__range]))"
    lag = 'max(calmon_clock_seconds - on (instance) group_right () calmon_window_end_timestamp_seconds{window="$window"})'
    quantiles = [Query(f"histogram_quantile({share}, {since})", f"{share:.0%} of the labels") for share in (0.5, 0.9, 0.99)]
    yield course(
        "Label delay",
        f"`{delay}`: delay of the first label of a prediction, over the chosen time, beside how long ago the window ended. "
        "A window that ended later than most labels need is provisional.",
        [*quantiles, Query(lag, "window ended", dashed=True)],
        "s",
    )


def _backfill() -> Iterator[_Panel]:
    text = (
        "Both speak of the same predictions at the same time: the line is what the window showed then, the points are what `calmon "
        "backfill` wrote of it later, each at the moment that it is of. Of several revisions the highest one is what is known now. "
        "Without points nothing has been written back."
    )
    for gauge, title in {
        "completeness_ratio": "Share with a label",
        "accuracy_ratio": "Accuracy",
        "overconfidence": "Overconfidence",
        "ece_ratio": "ECE",
        "csr": "CSR",
        "selective_risk_ratio": "Selective risk",
    }.items():
        queries = [Query(of_version(gauge), "as shown then", dashed=True), Query(of_backfill(gauge), "as known now, revision {{revision}}")]
        yield course(f"{title}: shown then, known now", f"{text}\n\n{described([gauge])}", queries, unit(metric(gauge).unit))


def _comparison() -> Iterator[_Panel]:
    for name, title in {
        "accuracy": "Accuracy",
        "overconfidence": "Overconfidence",
        "selective_risk": "Selective risk",
        "rejection_rate": "Rejection",
    }.items():
        ends = {f"{name}_difference{end}": text for end, text in {"": "difference", "_lower": "at least", "_upper": "at most"}.items()}
        yield _lines(f"{title}: difference", ends, "More than chance only where both ends lie on the same side of zero.")


def _drift() -> Iterator[_Panel]:
    for name, title in {
        "confidence": "Drift of confidence",
        "score": "Drift of the OOD score",
        "class": "Drift of the predicted classes",
    }.items():
        text = "At the floor it is noise: without any drift it has that value on average."
        yield _lines(title, {f"drift_{name}_psi": "PSI", f"drift_{name}_psi_floor": "floor: PSI without drift"}, text)
    yield _attribute_lines("Drift of the groups", {"drift_group_psi": "PSI", "drift_group_psi_floor": "floor: PSI without drift"})
    for name, title in {"ood_acceptance": "OOD acceptance since the reference", "rejection": "Rejection since the reference"}.items():
        ends = {"": "difference", "_lower": "at least", "_upper": "at most"}
        yield _lines(title, {f"drift_{name}_difference{end}": text for end, text in ends.items()})


def _selection() -> Iterator[_Panel]:
    risk = {"selective_risk_ratio": "risk", "selective_risk_lower_ratio": "at least", "selective_risk_upper_ratio": "at most"}
    yield _lines("Selective risk: errors among the accepted", risk)
    coverage = {"coverage_ratio": "of all", "labelled_coverage_ratio": "of the labelled"}
    yield _lines("Coverage: share accepted", coverage, "Far apart: labels come for the accepted and the rejected unevenly.")
    yield _lines(
        "Area under the risk-coverage curve",
        {"aurc_ratio": "AURC", "aurc_bound_ratio": "error at most"},
        "The curve itself is in `calmon evaluate` (`rc`); gauges have its area, and risk and coverage at the threshold in use.",
    )
    yield _lines("Does confidence order errors", {"error_auroc_ratio": "AUROC of errors", "error_auroc_bound_ratio": "error at most"})
    yield _lines("Accepted, with a label", {"accepted": "accepted", "labelled_accepted": "with a label"})
    yield _lines("Cost", {"cost_per_event": "cost of a labelled decision"})


def _ood() -> Iterator[_Panel]:
    acceptance = {"ood_acceptance_ratio": "accepted", "ood_acceptance_lower_ratio": "at least", "ood_acceptance_upper_ratio": "at most"}
    yield _lines("Accepted as in distribution", acceptance)
    yield _lines(
        "By what is known of the domain",
        {"id_acceptance_ratio": "in distribution, accepted", "ood_false_acceptance_ratio": "OOD, falsely accepted"},
    )
    yield _lines("Does the score tell them apart", {"ood_auroc_ratio": "AUROC", "fpr_at_95tpr_ratio": "OOD accepted at 95 % of the known"})
    yield _lines("Scored predictions", {"ood_scored": "with an OOD score"})


def _groups() -> Iterator[_Panel]:
    columns = {
        "predictions": "Predictions",
        "labelled": "Labelled",
        "accuracy_ratio": "Accuracy",
        "overconfidence": "Overconfidence",
        "ece_ratio": "ECE",
        "rejection_ratio": "Rejected",
        "rejection_lower_ratio": "Rejected at least",
        "rejection_upper_ratio": "Rejected at most",
        "rejection_p_holm_ratio": "p of rejection",
    }
    queries = [_column(of_group_values(gauge), gauge, name) for gauge, name in columns.items()]
    yield rows("Values of the attribute", described(columns), ["value"], queries)
    for gauge, title in {"rejection_ratio": "Rejection by value", "overconfidence": "Overconfidence by value"}.items():
        yield course(title, described([gauge]), [Query(of_group_values(gauge), "{{value}}")], unit(metric(gauge).unit))
    spread = {"group_rejection_spread_ratio": "spread", "group_rejection_p_ratio": "p"}
    yield _attribute_lines("Uneven rejection", spread)
    gaps = {"multicalibration_max_gap_ratio": "largest gap of a bin", "multicalibration_p_holm_ratio": "smallest p"}
    yield _attribute_lines("Uneven calibration", gaps)


def _classes() -> Iterator[_Panel]:
    columns = {
        "class_predicted": "Predicted",
        "class_true": "True",
        "class_precision_ratio": "Precision",
        "class_recall_ratio": "Recall",
        "class_cw_f1_ratio": "F1 weighted by confidence",
    }
    queries = [_column(of_classes(gauge), gauge, name) for gauge, name in columns.items()]
    yield rows("Classes", described(columns), ["class"], queries)
    yield _lines("Brier score", {"brier": "of being correct", "brier_multi": "of all classes"})
    yield _lines("Log loss, nats", {"nll": "of being correct", "nll_multi": "of all classes"})


def _lines(title: str, gauges: Mapping[str, str], text: str = "") -> timeseries.Panel:
    """Gauges of the version over time; bounds and floors dashed."""
    queries = [Query(of_version(gauge), name, dashed=_beside(gauge)) for gauge, name in gauges.items()]
    return course(title, _text(text, gauges), queries, unit(metric(next(iter(gauges))).unit))


def _attribute_lines(title: str, gauges: Mapping[str, str]) -> timeseries.Panel:
    """Gauges of the chosen group attribute over time."""
    queries = [Query(of_attribute(gauge), name, dashed=_beside(gauge)) for gauge, name in gauges.items()]
    return course(title, described(gauges), queries, unit(metric(next(iter(gauges))).unit))


def _column(expression: str, gauge: str, name: str) -> Query:
    return Query(expression, name, unit(metric(gauge).unit))


def _text(text: str, gauges: Iterable[str]) -> str:
    return "\n\n".join(part for part in (text, described(gauges)) if part)


def _beside(gauge: str) -> bool:
    return any(part in gauge for part in _BOUNDS)
