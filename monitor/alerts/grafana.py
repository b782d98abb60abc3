"""The table as Grafana-managed alerts, for users without a Prometheus that evaluates rules."""

from __future__ import annotations

import re
from typing import Any

from monitor.alerts.alert import Alert, Severity
from monitor.alerts.choice import Choice
from monitor.alerts.document import document
from monitor.alerts.link import dashboard_url, runbook_url
from monitor.alerts.prometheus import expression
from monitor.alerts.table import GROUPS
from monitor.alerts.text import filled, grafana_detail, grafana_query, piped

DATASOURCE = "calmon-prometheus"
"""Uid of the data source that is provisioned."""

_EXPRESSION_SOURCE = "__expr__"
_VALUE, _CONDITION = "A", "Z"
_DETAILS = "BCDEFGHIJ"


def grafana_alerts(choice: Choice) -> str:
    """A provisioning file for Grafana 11 or newer."""
    groups = []
    for name, alerts in GROUPS.items():
        rules = [_rule(alert, severity, choice) for alert in alerts if (severity := choice.severity(alert.name)) is not None]
        if rules:
            groups.append({"orgId": 1, "name": name, "folder": "calmon", "interval": "1m", "rules": rules})
    return document({"apiVersion": 1, "groups": groups}, "Load either this or the Prometheus rules, never both.")


def _rule(alert: Alert, severity: Severity, choice: Choice) -> dict[str, Any]:
    numbers, told = choice.numbers(), choice.told()
    letters = dict(zip(alert.details, _DETAILS, strict=False))
    queries = {_VALUE: expression(alert, numbers)}
    queries |= {letters[name]: grafana_query(alert, detail, numbers) for name, detail in alert.details.items()}

    def text(template: str) -> str:
        value = f"{{{{ {piped(alert.form, f'$values.{_VALUE}.Value')} }}}}"

        return filled(alert, template, told, value, lambda name, detail: grafana_detail(detail, letters[name]))

    return {
        "uid": _uid(alert.name),
        "title": alert.name,
        "condition": _CONDITION,
        "data": [*(_query(name, query) for name, query in queries.items()), _condition()],
        # A series that is absent is undefined or retired, which is no alarm.
        "noDataState": "OK",
        "execErrState": "Error",
        "for": choice.wait(alert.name),
        "keep_firing_for": choice.hold(alert.name),
        "annotations": {
            "summary": text(alert.summary),
            "description": text(alert.description),
            "runbook_url": runbook_url(alert, choice),
            "dashboard_url": dashboard_url(alert, choice),
        },
        "labels": {"severity": str(severity), "needs": str(alert.needs)},
        "isPaused": False,
    }


def _query(name: str, query: str) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": DATASOURCE}
    model = {"refId": name, "datasource": source, "editorMode": "code", "expr": query, "instant": True, "range": False}
    return {"refId": name, "relativeTimeRange": {"from": 600, "to": 0}, "datasourceUid": DATASOURCE, "model": model}


def _condition() -> dict[str, Any]:
    """Whatever series the expression returns is a firing one, whatever its value."""
    source = {"type": _EXPRESSION_SOURCE, "uid": _EXPRESSION_SOURCE}
    model = {"refId": _CONDITION, "datasource": source, "type": "math", "expression": f"is_number(${_VALUE})"}
    return {"refId": _CONDITION, "datasourceUid": _EXPRESSION_SOURCE, "model": model}


def _uid(name: str) -> str:
    """CalmonTickStalled becomes calmon-tick-stalled."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
