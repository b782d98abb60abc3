"""A `calmon run` process, looked at from outside: its pages, its log, its end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from prometheus_client.parser import text_string_to_metric_families

from tests.recovery.stream import MINUTE_MS, encode, label, prediction

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
CALMON = (sys.executable, "-m", "monitor")
FAULTY = (sys.executable, "-m", "tests.integration.faulty")

_LOCAL = build_opener(ProxyHandler({}))

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by name and labels."""


def wait_until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: It did not in time.
    """
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {patience_s:g} s: {what}"
        time.sleep(0.02)


def write_config(folder: Path, files: Sequence[str | Path], extra: str = "", follow: bool = True, horizon: str = "none") -> Path:
    """Write a configuration with a fast tick and a free port; `extra` is YAML of further sections."""
    path = folder / "calmon.yaml"
    names = json.dumps([str(name) for name in files])
    path.write_text(
        f"source: {{files: {names}, follow: {json.dumps(follow)}}}\n"
        f"state: {{directory: {folder / 'state'}, horizon: {horizon}}}\n"
        "windows: [{name: 1h, length: 1h}]\nevaluation: {tick: 100ms}\n" + ("" if "http:" in extra else "http: {port: 0}\n") + extra
    )
    return path


def calmon(*words: str | Path, stdin: bytes = b"", command: Sequence[str] = CALMON) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    result = subprocess.run([*command, *map(str, words)], cwd=ROOT, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)
    return subprocess.CompletedProcess(result.args, result.returncode, result.stdout.decode(), result.stderr.decode())


def recent_events(ids: Sequence[str], version: str = "v1", minutes_ago: int = 20, labelled: bool = True) -> list[bytes]:
    """Predictions (and labels) that are in the last hour's window now and for the next half hour."""
    at_ms = time.time_ns() // 1_000_000 - minutes_ago * MINUTE_MS
    lines = [encode(prediction(one, at_ms + number, 0.6 + number % 4 / 10, version)) for number, one in enumerate(ids)]
    if labelled:
        lines += [encode(label(one, at_ms + 1000, "yes" if number % 3 else "no")) for number, one in enumerate(ids)]
    return lines


class RunningCalmon:
    """A service in a process of its own; a context manager that leaves nothing running.

    Args:
        config_path: Its configuration.
        stdin: What its standard input is.
        command: What is run, up to the configuration.
    """

    def __init__(self, config_path: Path, stdin: int = subprocess.DEVNULL, command: Sequence[str] = (*CALMON, "run", "-c")) -> None:
        self._log_path = config_path.with_suffix(".log")
        self._command = [*command, str(config_path)]
        self._stdin = stdin
        self.url = ""

    def __enter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self.process = subprocess.Popen(self._command, cwd=ROOT, stdin=self._stdin, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_until(self._listens, "the service says where it listens")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log_path.read_text()

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.log
        found = re.search(r"^calmon .*: (http://\S+)/metrics$", self.log, re.MULTILINE)
        self.url = found.group(1) if found else ""
        return found is not None

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page."""
        try:
            with _LOCAL.open(self.url + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> str:
        """The text of `/metrics`."""
        status, text = self.get("/metrics")
        assert status == 200
        return text

    def samples(self) -> Samples:
        """What `/metrics` says."""
        return parse(self.metrics())

    def value(self, name: str, **labels: str) -> float | None:
        """Value of the one series of a name that has these labels, or None."""
        found = [value for (one, pairs), value in self.samples().items() if one == name and pairs >= set(labels.items())]
        assert len(found) <= 1, found
        return found[0] if found else None

    def wait_for(self, name: str, wanted: float, **labels: str) -> None:
        """Wait until a series has a value."""
        wait_until(lambda: self.value(name, **labels) == wanted, f"{name}{labels} == {wanted}; log:\n{self.log}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def parse(text: str) -> Samples:
    """Samples of an exposition."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of_version(samples: Samples, version: str) -> Samples:
    """Those of one model version."""
    return {key: value for key, value in samples.items() if ("model_version", version) in key[1]}


def report(result: subprocess.CompletedProcess[str]) -> Any:
    """Standard output as JSON."""
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refusal(result: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """The one line on standard error with which a command refused."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("calmon:")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]
