"""Cases as a file of `promtool test rules`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from monitor.alerts.table import ALERTS
from tests.rules.case import Firing, Silent
from tests.services.prometheus import find_program

RUNBOOKS = "https://runbooks.example/calmon"
DASHBOARDS = "http://localhost:3000"
ALERT = {alert.name: alert for alert in ALERTS}


def promtool(*words: str | Path) -> str:
    """Run promtool; what it said.

    Raises:
        AssertionError: It found something.
    """
    result = subprocess.run([find_program("promtool"), *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def run_cases(cases: Sequence[Firing | Silent], rules: Path, folder: Path) -> None:
    """Let promtool evaluate the rules that cases are of over each one's series.

    Raises:
        AssertionError: An alert is not as it must be.
    """
    file, alone = folder / "cases.yaml", folder / "rules.yaml"
    groups = yaml.safe_load(rules.read_text("utf-8"))["groups"]
    tested = [rule for group in groups for rule in group["rules"] if rule["alert"] in {case.alert for case in cases}]
    alone.write_text(yaml.safe_dump({"groups": [{"name": "tested", "rules": tested}]}))
    tests = [_test(case) for case in cases]
    file.write_text(yaml.safe_dump({"rule_files": [str(alone)], "evaluation_interval": "1m", "tests": tests}))
    promtool("test", "rules", file)


def _test(case: Firing | Silent) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in case.given.items()]
    moments = [case.at] if isinstance(case, Firing) else case.at
    expected = [_alert(case)] if isinstance(case, Firing) else []
    checks = [{"eval_time": moment, "alertname": case.alert, "exp_alerts": expected} for moment in moments]
    return {"interval": "1m", "name": case.alert, "input_series": given, "alert_rule_test": checks}


def _alert(case: Firing) -> dict[str, Any]:
    alert = ALERT[case.alert]
    variables = [f"var-{name}={quote(case.labels[name])}" for name in ("model", "model_version", "window") if name in case.labels]
    return {
        "exp_labels": {**case.labels, "severity": str(alert.severity), "needs": str(alert.needs)},
        "exp_annotations": {
            "summary": case.summary,
            "description": case.description,
            "runbook_url": f"{RUNBOOKS}/{case.alert}.md",
            "dashboard_url": f"{DASHBOARDS}/d/{alert.dashboard}" + (f"?{'&'.join(variables)}" if variables else ""),
        },
    }
