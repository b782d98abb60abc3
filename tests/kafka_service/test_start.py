"""Starts that wait for a broker: asked to end they end at once, and meanwhile they are seen to wait."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(("number", "silent"), [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGTERM, True)])
def test_a_signal_ends_a_start_that_waits_for_the_broker(tmp_path: Path, number: signal.Signals, silent: bool) -> None:
    port = pick_ports(("calmon",))["calmon"]
    config = tmp_path / "calmon.yaml"
    with nobody(silent) as away:
        sections = {
            "source": {"kafka": {"bootstrap_servers": [f"127.0.0.1:{away}"]}},
            "state": {"directory": str(tmp_path / "state")},
            "windows": [{"name": "24h", "length": "24h"}],
            "http": {"port": port},
            "evaluation": {"tick": "100ms"},
        }
        config.write_text(json.dumps(sections))
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
