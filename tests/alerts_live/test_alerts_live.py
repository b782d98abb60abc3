"""End to end on a scaled clock: calmon, Prometheus, Alertmanager and a webhook, all real, with the rules and routes that are shipped."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.alerts.choice import chosen
from monitor.alerts.render import RULES, rendered
from monitor.alerts.table import ALERTS
from tests.alerts_live.producer import Producer
from tests.alerts_live.victim import RATE, START_MS, SharedClock
from tests.integration.running import RunningCalmon
from tests.recovery.stream import HOUR_MS
from tests.rules.test_alertmanager import CONFIG
from tests.services.alertmanager import AlertmanagerServer, Webhook
from tests.services.prometheus import PrometheusServer

TURNS_BAD, RECOVERS, LABELS_STOP, LABELS_GO_ON, RETIRE = 12.0, 20.0, 32.0, 42.0, 46.0
"""Hours of the story."""
MATURITY_H = 2.0
PAGES = {alert.name for alert in ALERTS if alert.severity == "page"}


@dataclass
class Stage:
    """Everything that runs.

    Attributes:
        clock: Shared by calmon and the producer.
        calmon: The process.
        prometheus: Evaluates the rules.
        alertmanager: Groups and inhibits.
        webhook: What people would see.
    """

    clock: SharedClock
    calmon: RunningCalmon
    prometheus: PrometheusServer
    alertmanager: AlertmanagerServer
    webhook: Webhook

    @property
    def hour(self) -> float:
        """Which hour of the story it is."""
        return (self.clock.now_ms() - START_MS) / HOUR_MS

    def firing(self) -> dict[tuple[str, str], dict[str, str]]:
        """Alerts that fire, by name and version."""
        found = self.prometheus.query('ALERTS{alertstate="firing"}')
        return {(labels["alertname"], labels.get("model_version", "")): labels for labels, _ in found}

    def pages(self) -> set[tuple[str, str]]:
        """Pages among them."""
        return {key for key in self.firing() if key[0] in PAGES}

    def watch(self, until: float, look: Callable[[], object]) -> None:
        """Look again and again until an hour."""
        while self.hour < until:
            look()
            time.sleep(0.25)

    def wait(self, condition: Callable[[], object], until: float, what: str) -> None:
        """Wait for something that must be so before an hour."""
        while not condition():
            assert self.hour < until, f"not by hour {until:g}: {what}; firing: {self.firing()}; posts: {self.webhook.posts}"
            time.sleep(0.1)

    def told(self, path: str, *words: str) -> bool:
        """Whether a notification with these words came."""
        return any(where == path and all(word in json.dumps(body) for word in words) for where, body in list(self.webhook.posts))


def _rules(folder: Path) -> Path:
    """The shipped rules, with waiting times for an hour a second."""
    words = ["bound.label_silence=6h"]
    words += [f"{kind}.{alert.name}={time_}" for alert in ALERTS for kind, time_ in (("for", "1s"), ("keep_firing_for", "1s"))]
    words.append("for.CalmonTargetDown=12s")  # Prometheus takes 5 seconds until its first scrape
    path = folder / "rules.yaml"
    path.write_text(rendered(chosen(words))[RULES])
    return path


def _routes(folder: Path, url: str) -> Path:
    """The shipped configuration, with the webhook's address in its files and short waiting times."""
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
    for receiver in config["receivers"]:
        for slack in receiver.get("slack_configs", ()):
            secret = folder / f"{receiver['name']}-url"
            secret.write_text(f"{url}/{receiver['name']}\n")
            slack["api_url_file"] = str(secret)
    for route in config["route"]["routes"][0]["routes"]:
        route |= {"group_wait": "1s", "group_interval": "1s"}
    path = folder / "alertmanager.yml"
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """All services, and events that flow from now on."""
    folder = tmp_path_factory.mktemp("live")
    config = folder / "calmon.yaml"
    config.write_text(
        f"source: {{files: [{folder / 'events.ndjson'}], follow: true}}\n"
        f"state: {{directory: {folder / 'state'}, horizon: 2d, history: 7d}}\n"
        "windows: [{name: now, length: 1h}, {name: mature, length: 4h, lag: 2h}]\n"
        "evaluation: {tick: 200ms}\nevidence: {maturity: 2h}\nhttp: {port: 0}\n"
        "defaults: {confidence_threshold: 0.7, selective_risk_budget: 0.6}\n"
    )
    with ExitStack() as stack:
        webhook = stack.enter_context(Webhook())
        alertmanager = stack.enter_context(AlertmanagerServer(_routes(folder, webhook.url)))
        clock = SharedClock(time.time())
        stack.enter_context(
            Producer(
                folder / "events.ndjson",
                clock,
                gap=lambda version, hour: 0.35 if version == "v2" and TURNS_BAD <= hour < RECOVERS else 0.0,
                live=lambda version, hour: (version == "v3") == (hour >= RETIRE),
                labels_flow=lambda hour: not LABELS_STOP <= hour < LABELS_GO_ON,
            )
        )
        origin_s = repr(clock._origin_s)  # noqa: SLF001 - the other process needs it
        command = (sys.executable, "-m", "tests.alerts_live.victim", origin_s)
        calmon = stack.enter_context(RunningCalmon(config, command=command))
        target = calmon.url.removeprefix("http://")
        prometheus = stack.enter_context(PrometheusServer([target], [_rules(folder)], [alertmanager.address]))
        assert RATE * 1000 == HOUR_MS
        yield Stage(clock, calmon, prometheus, alertmanager, webhook)


def test_a_version_that_turns_overconfident_until_calmon_is_killed(stage: Stage) -> None:
    """One story, for each part begins where the one before it ended."""
    _nothing_while_all_is_well(stage)
    _exactly_its_page(stage)
    _recovery_resolves_it(stage)
    _stopped_labels_page_for_labels_alone(stage)
    _versions_retire_cleanly(stage)
    _killed(stage)


def _nothing_while_all_is_well(stage: Stage) -> None:
    def look() -> None:
        assert stage.firing() == {}

    stage.watch(TURNS_BAD, look)
    stage.prometheus.wait_for("calmon_evidence_matured_predictions > 300")
    assert stage.webhook.posts == []


def _exactly_its_page(stage: Stage) -> None:
    page = ("CalmonOverconfident", "v2")
    stage.wait(lambda: page in stage.firing(), TURNS_BAD + MATURITY_H + 5, "the page")
    labels = stage.firing()[page]
    instance = stage.calmon.url.removeprefix("http://")
    assert {name: text for name, text in labels.items() if name not in ("__name__", "alertstate")} == {
        "alertname": "CalmonOverconfident",
        "severity": "page",
        "needs": "labels",
        "job": "calmon",
        "instance": instance,
        "model": "m",
        "model_version": "v2",
    }
    stage.wait(lambda: stage.told("/page", "CalmonOverconfident"), RECOVERS, "the notification")

    def look() -> None:
        assert stage.pages() == {page}
        assert {version for _, version in stage.firing()} == {"v2"}

    stage.watch(RECOVERS, look)
    _numbers_are_right(stage)


def _numbers_are_right(stage: Stage) -> None:
    (alert,) = (one for one in stage.alertmanager.alerts() if one["labels"]["alertname"] == "CalmonOverconfident")
    text = alert["annotations"]["description"]
    evidence = float(re.search(r"plus 0\.02 is (\S+) nats", text).group(1))  # type: ignore[union-attr]
    lower = float(re.search(r"somewhere by at least (\S+)%", text).group(1))  # type: ignore[union-attr]
    mean = float(re.search(r"mature windows is (\S+)%", text).group(1))  # type: ignore[union-attr]
    labelled, matured = map(int, re.search(r"rests on (\d+) labels of (\d+) matured", text).groups())  # type: ignore[union-attr]
    began = datetime.strptime(re.search(r"likely began: (.*) UTC\.", text).group(1), "%Y-%m-%d %H:%M:%S %z")  # type: ignore[union-attr]
    assert evidence > 6.9
    assert 0 <= lower <= 35
    assert 15 < mean < 45  # 35 points in a window of which most is bad by now
    assert 90 * (TURNS_BAD + 1) <= matured <= 90 * stage.hour
    assert labelled == matured
    changed = datetime.fromtimestamp(START_MS / 1000 + TURNS_BAD * 3600, UTC)
    assert abs((began - changed).total_seconds()) <= 3600
    assert alert["annotations"]["runbook_url"].endswith("/CalmonOverconfident.md")
    assert "credit" not in text
    assert "m v2" in text


def _recovery_resolves_it(stage: Stage) -> None:
    stage.wait(lambda: not stage.pages(), LABELS_STOP, "the page is over")
    stage.wait(lambda: stage.told("/page", "RESOLVED", "CalmonOverconfident"), LABELS_STOP, "the notification that it is over")
    # It stays over, though the crossing is noted for ever.
    stage.watch(LABELS_STOP, lambda: _only(stage.pages(), set()))
    assert (
        stage.prometheus.query('calmon_evidence_crossed{model_version="v2",statistic="run_length",side="over",tolerance="0.02"}')[0][1] == 1
    )


def _stopped_labels_page_for_labels_alone(stage: Stage) -> None:
    dead = ("CalmonLabelFeedDead", "")
    stage.wait(lambda: dead in stage.firing(), LABELS_GO_ON, "the page for labels")
    stage.wait(lambda: stage.told("/page", "CalmonLabelFeedDead"), LABELS_GO_ON, "the notification")
    stage.watch(LABELS_GO_ON, lambda: _only(stage.pages(), {dead}))
    inhibited = [alert for alert in stage.alertmanager.alerts() if alert["labels"]["needs"] == "labels"]
    assert inhibited, "fewer labels than usual are noticed too"
    assert all(alert["status"]["inhibitedBy"] for alert in inhibited)
    stage.wait(lambda: not stage.pages(), RETIRE, "labels are back")


def _versions_retire_cleanly(stage: Stage) -> None:
    def gone() -> bool:
        return not stage.prometheus.query('{model_version=~"v1|v2",__name__=~"calmon_.*",__name__!~"calmon_label_delay.*"}')

    stage.wait(gone, RETIRE + 20, "both versions have retired")
    stage.wait(lambda: {version for _, version in stage.firing()} <= {""}, RETIRE + 25, "nothing is said of them any more")
    assert stage.pages() == set()
    assert not stage.told("/page", "v1")


def _killed(stage: Stage) -> None:
    os.kill(stage.calmon.process.pid, signal.SIGKILL)
    down = ("CalmonTargetDown", "")
    stage.wait(lambda: down in stage.firing(), stage.hour + 20, "the page")
    stage.wait(lambda: stage.told("/page", "FIRING", "CalmonTargetDown"), stage.hour + 20, "the notification")
    assert stage.pages() == {down}


def _only(found: set[tuple[str, str]], wanted: set[tuple[str, str]]) -> None:
    assert found <= wanted
