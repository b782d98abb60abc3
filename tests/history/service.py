"""The state that a service leaves of a packaged stream, and questions about it through the command line."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from monitor import cli
from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from tests.golden.stream import PACKAGED

MINUTE_MS = 60_000

MODELS: Mapping[str, Any] = {
    "employment": {"ood_threshold": -0.60038, "positive_class": "yes", "target_prior": {"yes": 0.6, "no": 0.4}},
    "flights": {"ood_threshold": -0.57385},
}
EVERY = {
    "confidence_threshold": 0.8,
    "classwise": True,
    "groups": ["group"],
    "costs": {"error": 10.0, "handoff": 1.0, "human_error": 0.02},
    "reference": "early",
}
"""Keys without which some metrics would be undefined."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A service that has read a file to its end.

    Attributes:
        config: Its configuration file.
        events: What it has read.
        model: The model of the stream.
        newest_ms: Event time of its newest prediction.
    """

    config: Path
    events: Path
    model: str
    newest_ms: int


def write_config(folder: Path, events: Path, models: Mapping[str, Any]) -> Path:
    """Write a configuration whose state lies in `folder`, with a window of minutes and one of hours."""
    config = {
        "source": {"files": [str(events)]},
        "state": {"directory": str(folder / "state"), "horizon": "none"},
        "windows": [{"name": "6h", "length": "6h"}, {"name": "24h", "length": "24h", "lag": "48h"}],
        "models": dict(models),
    }
    path = folder / "calmon.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")
    return path


def read_to_end(config: Path) -> int:
    """Let a service read its files, with the clock at the newest event, and stop; event time of the newest prediction."""
    clock = ManualClock(0)
    engine = Engine(load_config(str(config)), clock)
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step()
        clock.set(max(engine.shard.account.newest_ms.values(), default=0))
    engine.close()
    return engine.shard.newest_event_ms


def stopped(folder: Path, name: str) -> Stopped:
    """A service of a packaged stream that has stopped, its model compared with its first days."""
    events = PACKAGED / f"{name}.ndjson.gz"
    config = write_config(folder, events, {name: {**EVERY, **MODELS[name]}})
    newest_ms = read_to_end(config)
    at = ["--at", "2026-06-04T00:00:00Z", "--window", "72h"]
    assert calmon("reference", "set", "early", "--model", name, "--version", "raw", "-c", config, *at)[0] == 0
    return Stopped(config, events, name, newest_ms)


def calmon(*words: str | Path) -> tuple[int, str, str]:
    """Run a command in this process: exit code, standard output, standard error."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = cli.main([str(word) for word in words])
    return code, out.getvalue(), errors.getvalue()


def evaluate(service: Stopped, at: str, window: str) -> dict[str, dict[str, Any]]:
    """What `calmon evaluate` says of the events at a moment, by `model@version`."""
    words: list[str | Path] = ["evaluate", service.events, "-c", service.config, "--at", at, "--window", window, "--format", "json"]
    code, out, errors = calmon(*words)
    assert code == 0, errors
    models: dict[str, dict[str, Any]] = json.loads(out)["models"]
    return models


def history(service: Stopped, version: str, window: str, times: Sequence[str], *words: str) -> list[dict[str, Any]]:
    """What `calmon history` says of every metric, moment by moment.

    Args:
        service: Whose state is asked.
        version: Of which version.
        window: Length and lag.
        times: First moment, last moment and step.
        words: Further options.
    """
    begin, end, step = times
    asked = ["--window", window, "--from", begin, "--to", end, "--step", step, "--metrics", "all", "--format", "json"]
    code, out, errors = calmon("history", service.model, version, "-c", service.config, *asked, *words)
    assert code == 0, errors
    moments: list[dict[str, Any]] = json.loads(out)["moments"]
    return moments
