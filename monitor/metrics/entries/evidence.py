"""Entries of the e-process over a window's labelled events: a description, not an alarm."""

from __future__ import annotations

from monitor.metrics import evidence_metric
from monitor.metrics.metric import Family, Metric

LOG_E = Family(
    "log_e",
    "how much the window's labels speak against calibration; alarms rest on the evidence of matured panes instead",
    True,
    (
        Metric("log_e_over", "log_e_over", "ln E against calibration, over-confident side.", evidence_metric.log_e_over, "nats"),
        Metric(
            "log_e_over_tolerance_0.02",
            "log_e_over_tolerance",
            "The same with overconfidence of 0.02 tolerated.",
            evidence_metric.log_e_over_tolerance,
            "nats",
        ),
        Metric("log_e_under", "log_e_under", "ln E against calibration, under-confident side.", evidence_metric.log_e_under, "nats"),
    ),
)
