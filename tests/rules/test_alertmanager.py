"""The Alertmanager configuration: sound, and every alert goes to whom its severity says."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from monitor.alerts.alert import Alert, Needs
from monitor.alerts.table import ALERTS
from tests.integration.running import wait_until
from tests.services.alertmanager import AlertmanagerServer
from tests.services.prometheus import find_program

CONFIG = Path(__file__).parents[2] / "deploy" / "alertmanager" / "alertmanager.yml"
RECEIVERS = {"page": "page", "ticket": "ticket", "info": "nobody"}


def amtool(*words: str) -> str:
    result = subprocess.run([find_program("amtool"), *words], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_configuration_is_sound() -> None:
    assert "SUCCESS" in amtool("check-config", str(CONFIG))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_goes_to_whom_its_severity_says(alert: Alert) -> None:
    name, severity = alert.name, str(alert.severity)
    routes = ("config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={RECEIVERS[severity]}")
    amtool(*routes, f"alertname={name}", f"severity={severity}", "job=calmon", "model=m")


def test_other_peoples_alerts_go_to_nobody() -> None:
    amtool("config", "routes", "test", f"--config.file={CONFIG}", "--verify.receivers=nobody", "alertname=Other", "severity=page")


A, B = {"job": "calmon", "instance": "a:9779"}, {"job": "calmon", "instance": "b:9779"}
BY_NAME = {alert.name: alert for alert in ALERTS}


def _labels(name: str, where: Mapping[str, str], version: str = "1") -> dict[str, str]:
    alert = BY_NAME[name]
    own = {"model": "m", "model_version": version} if "model" in alert.labels else {}
    return {"alertname": name, "severity": str(alert.severity), "needs": str(alert.needs), **where, **own}


@pytest.mark.parametrize(
    ("source", "inhibited", "left"),
    [
        (("CalmonTargetDown", A), {"CalmonNoPredictions", "CalmonOverconfident", "CalmonShardMissing"}, set()),
        (("CalmonTargetDown", A), {"CalmonTickStalled"}, set()),
        (("CalmonTickStalled", A), {"CalmonNoPredictions", "CalmonOverconfident"}, set()),
        (("CalmonTargetDown", {"job": "calmon"}), {"CalmonNoPredictions", "CalmonOverconfident"}, set()),
        (("CalmonLabelFeedDead", A), {"CalmonOverconfident", "CalmonCompletenessLow"}, {"CalmonNoPredictions", "CalmonConflicts"}),
        (("CalmonOverconfident", A), {"CalmonErrorsBeyondConfidence"}, {"CalmonSelectiveRiskOverBudget"}),
    ],
)
def test_what_inhibits_what(source: tuple[str, Mapping[str, str]], inhibited: set[str], left: set[str]) -> None:
    """By a real Alertmanager; alerts of another instance are left alone, unless there is no instance at all."""
    name, where = source
    sent = [_labels(name, where), *(_labels(other, A) for other in sorted(inhibited | left))]
    elsewhere = [_labels(other, B) for other in sorted(inhibited)] if "instance" in where else []
    with AlertmanagerServer(CONFIG) as alertmanager:
        alertmanager.send([*sent, *elsewhere])
        wait_until(lambda: len(alertmanager.alerts()) == len(sent) + len(elsewhere), "all alerts are there")
        wait_until(lambda: any(alert["status"]["inhibitedBy"] for alert in alertmanager.alerts()), "inhibition was looked at")
        found = {
            (alert["labels"]["alertname"], alert["labels"].get("instance"))
            for alert in alertmanager.alerts()
            if alert["status"]["inhibitedBy"]
        }
    assert found == {(other, A["instance"]) for other in inhibited}


def test_inhibition_names_alerts_and_needs_that_there_are() -> None:
    rules = yaml.safe_load(CONFIG.read_text("utf-8"))["inhibit_rules"]
    names = {alert.name for alert in ALERTS}
    for rule in rules:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.replace("=~", "=").partition("=")
            values = set(value.strip().strip('"').split("|"))
            known = {"alertname": names, "needs": {str(one) for one in Needs}, "instance": {""}}[label.strip()]
            assert values <= known, matcher
