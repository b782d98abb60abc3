"""Where an alert points to."""

from __future__ import annotations

from monitor.alerts.alert import Alert
from monitor.alerts.choice import DASHBOARDS, RUNBOOKS, Choice

_VARIABLES = ("model", "model_version", "window")
"""Labels that the dashboards have variables for."""


def runbook_url(alert: Alert, choice: Choice) -> str:
    """Address of an alert's runbook."""
    return f"{choice.text(RUNBOOKS)}/{alert.name}.md"


def dashboard_url(alert: Alert, choice: Choice) -> str:
    """Address of the dashboard that shows an alert's series."""
    query = "&".join(f"var-{label}={{{{ $labels.{label} | urlquery }}}}" for label in _VARIABLES if label in alert.labels)
    return f"{choice.text(DASHBOARDS)}/d/{alert.dashboard}" + (f"?{query}" if query else "")
