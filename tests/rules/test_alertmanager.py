"""The Alertmanager configuration: sound, and every alert goes to whom its severity says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from monitor.alerts.alert import Alert, Needs
from monitor.alerts.table import ALERTS
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


def test_inhibition_names_alerts_and_needs_that_there_are() -> None:
    rules = yaml.safe_load(CONFIG.read_text("utf-8"))["inhibit_rules"]
    names = {alert.name for alert in ALERTS}
    for rule in rules:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = matcher.replace("=~", "=").partition("=")
            values = set(value.strip().strip('"').split("|"))
            known = {"alertname": names, "needs": {str(one) for one in Needs}, "instance": {""}}[label.strip()]
            assert values <= known, matcher
