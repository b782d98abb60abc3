"""Every series that an alert or a runbook reads is one that calmon serves, and one that is served without being asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from monitor.alerts.alert import Alert
from monitor.alerts.choice import Choice
from monitor.alerts.prometheus import expression
from monitor.alerts.table import ALERTS
from monitor.evidence.course import ALARMS, Alarm
from monitor.evidence.standing import Crossing, Evidence, Standing
from monitor.metrics.catalogue import CATALOGUE, FAMILIES, expanded
from monitor.metrics.metric import Subject
from monitor.names import PREFIX
from monitor.pipeline.account import Account
from monitor.pipeline.pages import Surroundings, render_snapshot
from monitor.pipeline.tick import Snapshot
from monitor.sources.protocol import SourceStatus
from tests.rules.runbook import FOLDER, names, queries

FROM_PROMETHEUS = {"up", "scrape_duration_seconds"}
OF_COMPARISON = {"calmon_previous_version_info", "calmon_reference_info"}
"""Need a version before and a reference; see `monitor.pipeline.pages`."""


def _account() -> Account:
    account = Account(consumed=9, pending=1, waiting=1)
    account.count("label", "applied")
    account.refuse("label", "bad_json")
    account.not_eligible("late")
    account.delay("m", "1", [5000])
    account.saw("label", 1)
    return account


def _evidence() -> Evidence:
    by_alarm: dict[Alarm, float] = dict.fromkeys(ALARMS, 1.0)
    crossing = Crossing("m", "1", ALARMS[0], 0.05, 3.0, 1, 1, 4.0, 5, 5, None)
    standing = Standing("m", "1", 0, 5, 5, by_alarm, by_alarm, dict.fromkeys(ALARMS, 1), 0.0, 0.0, False, dict.fromkeys(ALARMS, crossing))
    return Evidence((standing,), {ALARMS[0]: [True]}, 1)


@pytest.fixture(scope="module")
def served() -> set[str]:
    """Names of the samples on a page with everything on it, and of all gauges of the catalogue."""
    status = SourceStatus(None, {"p": 1}, {"p": 1}, {"p": 1}, {"x": 1})
    page = render_snapshot(Snapshot(1, (), _account(), evidence=_evidence()), status, 1, Surroundings(1, {"w": 1}, 1, 1)).metrics
    # A window without series has no gauges; its own are named here by what a running service shows in other tests.
    found = {sample.name for family in text_string_to_metric_families(page.decode()) for sample in family.samples}
    found |= {family.name for family in text_string_to_metric_families(page.decode())}
    return found | {PREFIX + metric.gauge for metric in CATALOGUE if metric.subject is not Subject.TABLE} | OF_COMPARISON | FROM_PROMETHEUS


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_reads_series_that_there_are(alert: Alert, served: set[str]) -> None:
    read = names(expression(alert, Choice().numbers())) | {name for detail in alert.details.values() for name in names(detail.query)}
    assert read
    assert read <= served


@pytest.mark.parametrize("path", sorted(FOLDER.glob("Calmon*.md")), ids=lambda path: path.stem)
def test_a_runbook_reads_series_that_there_are(path: Path, served: set[str]) -> None:
    assert {name for query in queries(path) for name in names(query.text)} <= served


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_names_the_families_that_have_to_be_asked_for(alert: Alert) -> None:
    family_of = {PREFIX + metric.gauge: family for family in FAMILIES for metric in expanded(family) if metric.gauge}
    read = names(expression(alert, Choice().numbers()))
    assert {family_of[name].name for name in read if name in family_of and not family_of[name].exported} == set(alert.families)
