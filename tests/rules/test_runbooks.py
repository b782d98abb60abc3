"""Every alert has a runbook, and every query in it returns what it says on a real Prometheus that scraped calmon."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor import cli
from monitor.alerts.table import ALERTS
from monitor.app import Engine
from monitor.clock import ScaledClock
from monitor.config_file import load_config
from monitor.demo.replay import HoldingClock, ReplaySource, read_recording
from monitor.demo.show import CONFIG
from monitor.service import Service
from tests.rules.runbook import FOLDER, SECTIONS, commands, queries
from tests.services.prometheus import PrometheusServer

BOOKS = sorted(path for path in FOLDER.glob("*.md") if path.stem != "README")
QUERIES = [query for path in BOOKS for query in queries(path)]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in BOOKS} == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_runbook_has_what_the_one_who_is_paged_needs(path: Path) -> None:
    text = path.read_text("utf-8")
    assert tuple(re.findall(r"^## (.*)$", text, re.MULTILINE)) == SECTIONS
    assert text.startswith(f"# {path.stem}\n")
    assert len(queries(path)) >= 2
    assert all(query.text.startswith("# ") for query in queries(path))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_commands_of_calmon_are_commands(path: Path) -> None:
    for command in commands(path):
        words = shlex.split(command.split("|")[0])
        assert words[0] in {"calmon", "curl", "tail", "grep", "du"}, command
        if words[0] == "calmon":
            cli._parser().parse_args(words[1:])  # noqa: SLF001 - a command that does not exist ends it


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has scraped the demo's streams until evidence was there."""
    folder = tmp_path_factory.mktemp("demo")
    config = load_config(CONFIG)
    state, http = config.state.model_copy(update={"directory": str(folder / "state")}), config.http.model_copy(update={"port": 0})
    evaluation = config.evaluation.model_copy(update={"tick_ms": 1000})
    config = config.model_copy(update={"state": state, "http": http, "evaluation": evaluation})
    recordings = [read_recording(CONFIG.parent / file) for file in config.source.files]
    start_ms = min(int(one.arrival_ms[0]) for one in recordings)
    clock = HoldingClock(ScaledClock(start_ms, 86_400.0), max(int(one.arrival_ms[-1]) for one in recordings))
    service = Service(config, Engine(config, clock, ReplaySource(recordings, clock)))
    service.start()
    try:
        with PrometheusServer([service.address]) as server:
            server.wait_for('calmon_evidence_matured_predictions > 500 and on () calmon_labelled_used{segment="all"} > 200', 60)
            server.wait_for("rate(calmon_label_delay_seconds_count[1m]) > 0 and on () count_over_time(calmon_clock_seconds[5m]) > 4")
            yield server
    finally:
        service.close()


def test_every_query_works_when_pasted(prometheus: PrometheusServer) -> None:
    assert len(QUERIES) > 80
    empty = []
    for query in QUERIES:
        # Whatever Prometheus refuses raises here.
        if not prometheus.query(query.text) and not query.may_be_empty:
            empty.append(f"{query.runbook}: {query.text}")
    assert empty == []
