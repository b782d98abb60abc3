"""A real Prometheus and promtool for tests: found on PATH, started on a free port, ended by their own process."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import yaml

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0

_LOCAL = build_opener(ProxyHandler({}))  # a proxy in the environment must not see what stays on this machine


class ServiceMissingError(Exception):
    """A program that the tests need is not installed; never a reason to skip."""


def find_program(name: str) -> str:
    """Return the path of a program of Prometheus.

    Raises:
        ServiceMissingError: It is not on PATH; the message says what to install.
    """
    path = shutil.which(name)
    if path is None:
        raise ServiceMissingError(
            f"{name} is not on PATH: run deploy/local/install-services.sh as root on Debian, or install Prometheus >= 2.42"
        )
    return path


def check_metrics(text: bytes) -> None:
    """Let promtool lint an exposition (text format).

    Raises:
        AssertionError: promtool found something: bad syntax, a missing help text, a name against the conventions.
    """
    result = subprocess.run([find_program("promtool"), "check", "metrics"], input=text, capture_output=True, timeout=120, check=False)
    findings = (result.stdout + result.stderr).decode(errors="replace").strip()
    if result.returncode != 0 or findings:
        raise AssertionError(f"promtool check metrics: exit {result.returncode}\n{findings}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server, by force if it does not end when told to."""
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class PrometheusServer:
    """A Prometheus that scrapes the given targets every second; a context manager.

    Args:
        targets: ``host:port`` each; they become instances of the one job `calmon`.
        rule_files: Rules to evaluate, every second too.
        alertmanagers: ``host:port`` each, to be told of alerts.
        blocks: Directory of blocks to serve instead of an empty database; it is written to.
        options: Further command-line options.
        out_of_order: Duration that samples may be older than the newest one; they may not where it is empty.
    """

    def __init__(
        self,
        targets: Sequence[str],
        rule_files: Sequence[Path] = (),
        alertmanagers: Sequence[str] = (),
        blocks: Path | None = None,
        options: Sequence[str] = (),
        out_of_order: str = "",
    ) -> None:
        self._alertmanagers = list(alertmanagers)
        self._blocks = blocks
        self._options = list(options)
        self._out_of_order = out_of_order
        self._targets = list(targets)
        self._rule_files = [str(path.resolve()) for path in rule_files]
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        program = find_program("prometheus")
        self._directory = tempfile.TemporaryDirectory(prefix="calmon-prometheus-")
        try:
            self._start(program, Path(self._directory.name))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            stop(self._process)
            self._process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Evaluate an expression now; labels (with `__name__` where there is one) and value of each series.

        Raises:
            AssertionError: Prometheus refuses the expression or is gone; the message holds its answer or its log.
        """
        result = self._get("/api/v1/query", {"query": expression})["data"]
        if result["resultType"] == "scalar":
            return [({}, float(result["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in result["result"]]

    def query_range(
        self, expression: str, start_s: float, end_s: float, step_s: float
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Evaluate an expression at each step; labels, and times with values, of each series.

        Raises:
            AssertionError: As `query`.
        """
        asked = {"query": expression, "start": str(start_s), "end": str(end_s), "step": str(step_s)}
        result = self._get("/api/v1/query_range", asked)["data"]["result"]
        return [(series["metric"], [(float(at), float(value)) for at, value in series["values"]]) for series in result]

    def wait_for(self, expression: str, timeout_s: float = 30.0) -> list[tuple[dict[str, str], float]]:
        """Return the first answer to an expression that is not empty, such as ``up == 1``.

        Raises:
            AssertionError: There was none in time.
        """
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            if answer := self.query(expression):
                return answer
            time.sleep(0.2)
        targets = [
            (target["scrapeUrl"], target["health"], target["lastError"])
            for target in self._get("/api/v1/targets", {})["data"]["activeTargets"]
        ]
        raise AssertionError(f"no series for {expression!r} in {timeout_s:g} s; targets: {targets}\n{self.log()}")

    def log(self) -> str:
        """What the server has written so far."""
        if self._directory is None:
            return "(no log: not running)"
        path = Path(self._directory.name, "log")
        return path.read_text(errors="replace") if path.exists() else ""

    def _start(self, program: str, directory: Path) -> None:
        config: dict[str, Any] = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "scrape_configs": [{"job_name": "calmon", "static_configs": [{"targets": self._targets}]}],
            "rule_files": self._rule_files,
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": self._alertmanagers}]}]},
        }
        if self._out_of_order:
            config["storage"] = {"tsdb": {"out_of_order_time_window": self._out_of_order}}
        config_file = directory / "prometheus.yml"
        config_file.write_text(yaml.safe_dump(config))
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        with (directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={config_file}",
                    f"--storage.tsdb.path={self._blocks or directory / 'data'}",
                    f"--web.listen-address={address}",
                    "--log.level=warn",
                    *self._options,
                ],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                raise AssertionError(f"prometheus ended with {self._process.returncode}\n{self.log()}")
            try:
                with _LOCAL.open(f"{self.url}/-/ready", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"prometheus not ready in {START_TIMEOUT_S:g} s\n{self.log()}")

    def raw(self, selector: str, begin_ms: int, end_ms: int) -> bytes:
        """Answer to the question for every stored sample of a selector in [begin, end], staleness markers left out.

        Raises:
            AssertionError: As `query`.
        """
        return self._answer("/api/v1/query", {"query": f"{selector}[{end_ms - begin_ms}ms]", "time": f"{end_ms / 1000:.3f}"})

    def _get(self, path: str, parameters: dict[str, str]) -> Any:
        return json.loads(self._answer(path, parameters))

    def _answer(self, path: str, parameters: dict[str, str]) -> bytes:
        try:
            with _LOCAL.open(f"{self.url}{path}?{urlencode(parameters)}", timeout=30) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            with error:
                body = error.read().decode(errors="replace")
            raise AssertionError(f"prometheus {path}: {error} {body}") from error
        except OSError as error:
            raise AssertionError(f"prometheus {path}: {error}\n{self.log()}") from error


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
