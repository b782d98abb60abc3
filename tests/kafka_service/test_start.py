"""Starts that wait for a broker: asked to end they end at once, and meanwhile they are seen to wait."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.running import calmon
from tests.kafka_service.watched import WatchedCalmon
from tests.services.kafka_settings import pick_ports

SOON_S = 2.0


@contextmanager
def nobody(silent: bool) -> Iterator[int]:
    """A port where connections are refused, or are taken and never answered."""
    if not silent:
        yield pick_ports(("nobody",))["nobody"]
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def configure(folder: Path, away: int, port: int = 0) -> Path:
    """Write the configuration of a run whose broker is at a port where there is none."""
    sections = {
        "source": {"kafka": {"bootstrap_servers": [f"127.0.0.1:{away}"]}},
        "state": {"directory": str(folder / "state")},
        "windows": [{"name": "24h", "length": "24h"}],
        "http": {"port": port},
        "evaluation": {"tick": "100ms"},
    }
    config = folder / "calmon.yaml"
    config.write_text(json.dumps(sections))
    return config


@pytest.mark.parametrize(("number", "silent"), [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGTERM, True)])
def test_a_signal_ends_a_start_that_waits_for_the_broker(tmp_path: Path, number: signal.Signals, silent: bool) -> None:
    port = pick_ports(("calmon",))["calmon"]
    with nobody(silent) as away:
        config = configure(tmp_path, away, port)
        with WatchedCalmon(config, port=port) as running:
            running.until_not_ready(f"kafka: no connection to 127.0.0.1:{away}")
            running.wait_for("calmon_source_ok", 0)
            before_s = running.value("calmon_clock_seconds") or 0.0
            time.sleep(1.5)
            assert (running.value("calmon_clock_seconds") or 0.0) > before_s  # what the state holds is shown as of now
            running.end_watch()
            began_s = time.monotonic()
            assert running.stop(number) == 0
            assert time.monotonic() - began_s < SOON_S
            assert running.log.splitlines()[-1].startswith(
                f"calmon: stopped before anything was read; kafka: no connection to 127.0.0.1:{away}"
            )
            assert "Traceback" not in running.log


def test_a_tick_that_fails_ends_a_start_that_waits(tmp_path: Path) -> None:
    with nobody(silent=True) as away:
        began_s = time.monotonic()
        result = calmon(configure(tmp_path, away), command=(sys.executable, "-m", "tests.integration.faulty", "tick"))
        assert time.monotonic() - began_s < 10
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "PlantedError: in the tick"
