"""The fleet: every version in one table, and which of them to open."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard, stat, table

from grafana.generate.frame import FLEET, PIPELINE, VERSION, frame, model_variable, window_variable
from grafana.generate.panel import COURSE_HEIGHT, Query, course, number, rows
from grafana.generate.query import described, metric, of_fleet, unit

_BY_VERSION = "{{model}} {{model_version}}"
_COLUMNS = {
    "predictions": "Predictions",
    "completeness_ratio": "Labelled",
    "accuracy_ratio": "Accuracy",
    "overconfidence": "Overconfidence",
    "ece_ratio": "ECE",
    "ece_floor_ratio": "ECE floor",
    "csr": "CSR",
    "csr_z": "CSR z",
    "coverage_ratio": "Coverage",
    "selective_risk_lower_ratio": "Risk at least",
    "selective_risk_upper_ratio": "Risk at most",
    "ood_acceptance_ratio": "OOD acceptance",
}
_COURSES = {
    "overconfidence": "Overconfidence",
    "csr_z": "CSR above 1, in standard deviations",
    "completeness_ratio": "Maturity: share with a label",
    "selective_risk_lower_ratio": "Selective risk, lower bound",
    "rejection_ratio": "Rejection",
    "ood_acceptance_ratio": "OOD acceptance",
    "predictions": "Predictions in the window",
}
_OVER = 'model=~"$model",side="over",tolerance="0.02"'


def fleet() -> dashboard.Dashboard:
    """The dashboard of all models."""
    text = "Which versions are watched, which of them are bad, and on how much that rests. A version's name leads to its own dashboard."
    board = frame(FLEET, text, [model_variable(several=True), window_variable()]).with_row(dashboard.Row("Now"))
    for panel in _numbers():
        board = board.with_panel(panel)
    board = (
        board.with_panel(_table())
        .with_row(dashboard.Row("Over time"))
        .with_panel(
            course(
                "Evidence of overconfidence beyond 0.02",
                "`calmon_evidence_log_e`: ln E of matured hours against overconfidence of at most 0.02, valid at any time. With "
                "`evidence.alpha: 0.05` it crosses at ln 20 = 3.0; `calmon_evidence_crossed` then stays 1.",
                [Query(f"max by (model, model_version) (calmon_evidence_log_e{{{_OVER}}})", _BY_VERSION)],
            )
        )
    )
    for gauge, title in _COURSES.items():
        board = board.with_panel(course(title, described([gauge]), [Query(of_fleet(gauge), _BY_VERSION)], unit(metric(gauge).unit)))
    return board


def _numbers() -> Iterator[stat.Panel]:
    versions = 'count(max by (model, model_version) (calmon_predictions{model=~"$model",window="$window",segment="all"})) or vector(0)'
    yield number("Versions watched", "Versions with predictions in the window.", Query(versions, "versions"))
    yield number(
        "Overconfidence proven",
        "Versions whose evidence of overconfidence beyond 0.02 has crossed its threshold, ever.",
        Query(f'sum(max by (model, model_version) (calmon_evidence_crossed{{statistic="e_process",{_OVER}}}))', "versions"),
        {1: "red"},
    )
    for severity, color in {"page": "red", "ticket": "orange"}.items():
        firing = f'count(ALERTS{{alertname=~"Calmon.*",alertstate="firing",severity="{severity}"}}) or vector(0)'
        yield number(
            f"Alerts: {severity}", "Alerts of calmon that fire now, as Prometheus keeps them.", Query(firing, "firing"), {1: color}
        )
    yield number(
        "Processes down",
        "Targets of the scrape job `calmon` that do not answer.",
        Query('count(up{job="calmon"} == 0) or vector(0)', "down"),
        {1: "red"},
    )
    yield number(
        "Not reading everything",
        f"Processes of calmon that say that something that should be read is not: see [pipeline health](/d/{PIPELINE}).",
        Query("count(calmon_source_ok == 0) or vector(0)", "processes"),
        {1: "red"},
    )


def _alerts() -> table.Panel:
    by = ["severity", "model", "model_version", "alertname"]
    firing = Query(f'max by ({", ".join(by)}) (ALERTS{{alertname=~"Calmon.*",alertstate="firing"}})', "Firing")
    text = "Alerts of calmon that fire now, the worst first; an alert's name leads to its runbook."
    return rows("Alerts", text, by, [firing], [("Runbook", "${runbooks}/${__data.fields.alertname}.md")]).height(COURSE_HEIGHT)


def _table() -> table.Panel:
    address = f"/d/{VERSION}?${{datasource:queryparam}}&${{window:queryparam}}&${{__url_time_range}}"
    link = ("Open the version", f"{address}&var-model=${{__data.fields.model}}&var-model_version=${{__data.fields.model_version}}")
    columns = [Query(of_fleet(gauge), title, unit(metric(gauge).unit)) for gauge, title in _COLUMNS.items()]
    columns.append(Query(f"max by (model, model_version) (calmon_evidence_log_e{{{_OVER}}})", "Evidence, ln E"))
    text = f"What the window shows now; empty where undefined.\n\n{described(_COLUMNS)}"
    return rows("Versions", text, ["model", "model_version"], columns, [link])
