"""The table for people: the index of the runbooks, and what can be set."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.alerts.alert import Form, Severity
from monitor.alerts.bound import BOUNDS
from monitor.alerts.choice import Choice
from monitor.alerts.table import ALERTS

_INTRODUCTION = """# Runbooks

Made by `calmon rules render`; a test fails where it is stale. One page an alert: what it means, what it costs, how to find the cause with
queries to paste, what to do, and what a false alarm looks like. [docs/alerts.md](../../docs/alerts.md) has how rules are loaded and set.
"""

_HEADINGS = {Severity.PAGE: "Pages", Severity.TICKET: "Tickets", Severity.INFO: "Information"}


def runbook_index(choice: Choice) -> str:
    """All alerts by severity, then every bound."""
    return "\n".join([_INTRODUCTION, *_alerts(choice), *_bounds(choice)]) + "\n"


def _alerts(choice: Choice) -> Iterator[str]:
    for severity, heading in _HEADINGS.items():
        yield f"## {heading}\n"
        yield "| alert | fires when | after | needs |"
        yield "|---|---|---|---|"
        for alert in ALERTS:
            if choice.severity(alert.name) is severity:
                families = f"; `evaluation.families: [{', '.join(alert.families)}]`" if alert.families else ""
                summary = alert.summary.replace("{model} {model_version}", "a version").replace("{segment}", "group")
                yield f"| [{alert.name}]({alert.name}.md) | {summary} | {choice.wait(alert.name)} | {alert.needs}{families} |"
        yield ""


def _bounds(choice: Choice) -> Iterator[str]:
    yield "## Bounds\n"
    yield "Set with `calmon rules render --set bound.NAME=VALUE`.\n"
    yield "| bound | value | what it is |"
    yield "|---|---|---|"
    told, numbers = choice.told(), choice.numbers()
    for bound in BOUNDS:
        value = told[bound.name] if bound.form is Form.DURATION else numbers[bound.name]
        yield f"| `{bound.name}` | `{value}` | {bound.meaning} |"
