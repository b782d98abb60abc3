"""`calmon demo` as people start it: a process, its pages, a real Prometheus that scrapes it, and its end."""

from __future__ import annotations

import math
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.services.prometheus import PrometheusServer, check_metrics

PATIENCE_S = 60.0
FAST = ("--port", "0", "--rate", "1d")
NEEDED = ("calmon_ece_ratio", "calmon_csr", "calmon_ood_acceptance_ratio", "calmon_rejection_ratio")
VERSIONS = {("employment", "iso"), ("employment", "raw"), ("flights", "iso"), ("flights", "raw")}

_OPENER = build_opener(ProxyHandler({}))
_FoundT = TypeVar("_FoundT")

Values = dict[tuple[str, str, str, str], float]
"""Gauges of segment `all`: by name, model, version and window."""


class RunningDemo:
    """The command in a process of its own, with its own folder for temporary files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "monitor", "demo", *arguments],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def left_behind(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]

    def address(self) -> str:
        """`host:port` as printed."""

        def printed() -> str | None:
            found = re.search(r"http://(\S+)/metrics", self.output)
            return None if found is None else found[1]

        return self.wait_for(printed)

    def metrics(self) -> str:
        with _OPENER.open(f"http://{self.address()}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def gauges(self) -> Values:
        values: Values = {}
        for family in text_string_to_metric_families(self.metrics()):
            for sample in family.samples:
                labels = sample.labels
                if labels.get("segment") == "all" and "bin" not in labels:
                    values[sample.name, labels["model"], labels["model_version"], labels["window"]] = sample.value
        return values

    def wait_for(self, look: Callable[[], _FoundT | None]) -> _FoundT:
        """What `look` finds, within patience and the life of the process."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = look()
            if found is not None:
                return found
            assert self.process.poll() is None, self.output
            time.sleep(0.2)
        raise AssertionError(f"not in {PATIENCE_S:g} s; output so far:\n{self.output}")

    def end(self, number: int) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RunningDemo]]:
    running: list[RunningDemo] = []

    def begin(*arguments: str) -> RunningDemo:
        folder = tmp_path / f"demo-{len(running)}"
        folder.mkdir()
        running.append(RunningDemo(folder, *arguments))
        return running[-1]

    yield begin
    for one in running:
        one.close()


def complete(values: Values, window: str) -> bool:
    return all((name, *version, window) in values for name in NEEDED for version in VERSIONS)


def test_gauges_of_four_versions_that_prometheus_scrapes_and_late_labels_move(start: Callable[..., RunningDemo]) -> None:
    demo = start(*FAST)
    for window in ("1d", "7d", "7d-mature", "100d"):
        demo.wait_for(lambda window=window: True if complete(demo.gauges(), window) else None)  # type: ignore[misc]
    text = demo.metrics()
    assert not any(math.isnan(value) for value in demo.gauges().values())
    assert "NaN" not in text
    check_metrics(text.encode())
    assert set(re.findall(r'segment="group",value="([^"]+)"', text)) >= {"JFK", "LGA", "EWR", "25-39", "65+"}

    with PrometheusServer([demo.address()]) as prometheus:
        prometheus.wait_for("up == 1")
        versions = prometheus.wait_for('count(count by (model, model_version) (calmon_csr{window="100d"})) == 4')
        assert versions[0][1] == 4

        def moved_by_labels() -> tuple[str, Values, Values] | None:
            """A model of which no prediction came for a while, but labels did, and the gauges before and after."""
            before = demo.gauges()
            time.sleep(1.5)
            after = demo.gauges()
            for model in ("employment", "flights"):
                predictions, labelled = ((name, model, "iso", "100d") for name in ("calmon_predictions", "calmon_labelled"))
                if before[predictions] == after[predictions] and before[labelled] < after[labelled]:
                    return model, before, after
            return None

        model, before, after = demo.wait_for(moved_by_labels)
        for version in ("iso", "raw"):
            for name in ("calmon_ece_ratio", "calmon_csr", "calmon_completeness_ratio"):
                assert before[name, model, version, "100d"] != after[name, model, version, "100d"]
        prometheus.wait_for(f'delta(calmon_labelled{{model="{model}",segment="all",window="100d"}}[10s]) > 0')

    assert demo.end(signal.SIGINT) == 0, demo.output
    assert "Traceback" not in demo.output
    assert re.search(r"ended after [\d,]+ records", demo.lines[-1])
    assert demo.left_behind == []


def test_the_end_of_the_replay_is_said_and_its_last_state_served(start: Callable[..., RunningDemo]) -> None:
    demo = start("--port", "0", "--rate", "20d")
    demo.wait_for(lambda: True if "The replay is at its end" in demo.output else None)
    values = demo.gauges()
    assert complete(values, "100d")
    assert {values["calmon_predictions", *version, "100d"] for version in VERSIONS} == {15_600}
    time.sleep(2)
    assert demo.gauges() == values
    assert "employment iso has a low ECE (0.067, raw 0.167), but its CSR is far above 1 (12,452)" in demo.output
    assert demo.end(signal.SIGTERM) == 0, demo.output
    assert demo.left_behind == []


def test_a_second_signal_ends_it_at_once(start: Callable[..., RunningDemo]) -> None:
    demo = start(*FAST)
    demo.address()
    demo.process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    assert demo.end(signal.SIGINT) in {0, 128 + signal.SIGINT}
    assert "Traceback" not in demo.output


def test_a_signal_before_it_serves_ends_it_too(start: Callable[..., RunningDemo]) -> None:
    demo = start(*FAST)
    demo.wait_for(lambda: True if demo.left_behind else None)
    assert demo.end(signal.SIGTERM) == 0, demo.output
    assert demo.left_behind == []


def test_a_taken_port_is_one_line_that_says_what_to_do(start: Callable[..., RunningDemo]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = start("--port", str(port))
        assert demo.process.wait(PATIENCE_S) == 1
    demo.close()
    assert demo.output == f"calmon: cannot serve on 127.0.0.1:{port}: Address already in use; `calmon demo --port 0` takes a free port\n"
    assert demo.left_behind == []


@pytest.mark.parametrize("rate", ["0", "3", "fast"])
def test_a_rate_that_is_none_is_said(start: Callable[..., RunningDemo], rate: str) -> None:
    demo = start("--rate", rate)
    assert demo.process.wait(PATIENCE_S) == 2
    demo.close()
    assert f"--rate {rate}: must" in demo.output
    assert demo.left_behind == []


def test_a_terminal_gets_a_live_table_and_its_cursor_back(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "monitor", "demo", *FAST],
        env={**os.environ, "TMPDIR": str(tmp_path), "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    screen = bytearray()
    ended = threading.Event()

    def read() -> None:
        try:
            while part := os.read(master, 65_536):
                screen.extend(part)
        except OSError:  # Linux says so when the last writer of a terminal has gone
            pass
        ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while b"7d-mature" not in screen and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0, screen.decode(errors="replace")
        assert ended.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        reader.join(PATIENCE_S)
        os.close(master)
    shown = screen.decode()
    assert "7d-mature" in shown
    assert "Traceback" not in shown
    assert "…" not in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert re.search(r"ended after [\d,]+ records", shown.splitlines()[-1])
    assert list(tmp_path.iterdir()) == []
