"""The table as a file of Prometheus rules."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Any

from monitor.alerts.alert import Alert, Severity
from monitor.alerts.choice import Choice
from monitor.alerts.document import document
from monitor.alerts.link import dashboard_url, runbook_url
from monitor.alerts.table import GROUPS
from monitor.alerts.text import filled, piped, prometheus_detail

NO_TIME = "0s"


def prometheus_rules(choice: Choice) -> str:
    """Rules for Prometheus 2.42 or newer."""
    groups = []
    for name, alerts in GROUPS.items():
        rules = [_rule(alert, severity, choice) for alert in alerts if (severity := choice.severity(alert.name)) is not None]
        if rules:
            groups.append({"name": name, "rules": rules})
    return document({"groups": groups}, "Load either these or Grafana's alert file, never both.")


def expression(alert: Alert, numbers: Mapping[str, str]) -> str:
    """An alert's expression with its bounds."""
    return Template(alert.expression).substitute(numbers)


def _rule(alert: Alert, severity: Severity, choice: Choice) -> dict[str, Any]:
    numbers, told = choice.numbers(), choice.told()

    def text(template: str) -> str:
        value = f"{{{{ {piped(alert.form, '$value')} }}}}"
        return filled(alert, template, told, value, lambda _, detail: prometheus_detail(alert, detail, numbers))

    rule: dict[str, Any] = {"alert": alert.name, "expr": expression(alert, numbers), "for": choice.wait(alert.name)}
    if choice.hold(alert.name) != NO_TIME:
        rule["keep_firing_for"] = choice.hold(alert.name)
    rule["labels"] = {"severity": str(severity), "needs": str(alert.needs)}
    rule["annotations"] = {
        "summary": text(alert.summary),
        "description": text(alert.description),
        "runbook_url": runbook_url(alert, choice),
        "dashboard_url": dashboard_url(alert, choice),
    }
    return rule
