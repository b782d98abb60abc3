"""A broker in a container, of the same version and with the same settings as the local one."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testcontainers.core.container import DockerContainer

from tests.services.kafka_settings import addresses, escaped

LOCAL = Path(__file__).parents[2] / "deploy/local/kafka"
STOP_TIMEOUT_S = 30


@functools.cache
def docker_answers() -> bool:
    """Whether a Docker engine answers here."""
    # In a process of its own: where no engine answers, the client leaves sockets open, and a test would be blamed for them.
    ping = "from testcontainers.core.docker_client import DockerClient; DockerClient(timeout=5).client.ping()"
    return subprocess.run([sys.executable, "-c", ping], capture_output=True, check=False).returncode == 0


class BrokerContainer:
    """One container, started again on its own data after each end.

    Args:
        directory: Not used: the data live in the container.
        ports: One for each listener; the same inside the container and on 127.0.0.1.
        settings: They win over those of ``deploy/local/kafka``.
    """

    def __init__(self, directory: Path, ports: Mapping[str, int], settings: Mapping[str, str]) -> None:
        self._container = DockerContainer(image())
        for name, value in environment(ports, settings).items():
            self._container.with_env(name, value)
        for name in _public(ports):
            self._container.with_bind_ports(ports[name], ports[name])
        self._started = False

    def start(self) -> None:
        """Start the container, again if it has ended."""
        if self._started:
            self._docker().start()
        else:
            self._container.start()
            self._started = True

    def freeze(self) -> None:
        """Pause the container."""
        self._docker().pause()

    def thaw(self) -> None:
        """Let the container go on."""
        self._docker().unpause()

    def kill(self) -> None:
        """SIGKILL to the container's processes."""
        self._docker().kill()
        self._docker().wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not end it in time."""
        self._docker().stop(timeout=STOP_TIMEOUT_S)

    def remove(self) -> None:
        """Delete the container and its data."""
        if self._started:
            self._container.stop()

    def ended(self) -> bool:
        """Whether the container does not run."""
        if not self._started:
            return True
        self._docker().reload()
        return self._docker().status not in {"created", "running", "paused", "restarting"}

    def log(self) -> str:
        """All that the broker wrote."""
        return b"".join(self._container.get_logs()).decode(errors="replace") if self._started else ""

    def _docker(self) -> Any:
        return self._container.get_wrapped_container()


def image() -> str:
    """The image of the version that ``deploy/local/kafka`` uses."""
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", (LOCAL / "pom.xml").read_text())
    assert found is not None, "deploy/local/kafka/pom.xml names no version of Kafka"
    return f"apache/kafka:{found[1]}"


def environment(ports: Mapping[str, int], settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as the image's variables: ``KAFKA_`` and the key, '.' as ``_``, '_' as ``__``, '-' as ``___``."""
    lines = (LOCAL / "server.properties").read_text().splitlines()
    common = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    own = {
        "listeners": addresses(ports, "0.0.0.0", list(ports)),  # noqa: S104 - inside the container only
        "advertised.listeners": addresses(ports, "127.0.0.1", _public(ports)),
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "log.dirs": "/tmp/kafka",  # noqa: S108 - inside the container only
    }
    return {_variable(key): escaped(value) for key, value in {**common, **own, **settings}.items()}


def _variable(key: str) -> str:
    return "KAFKA_" + key.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def _public(ports: Mapping[str, int]) -> list[str]:
    return [name for name in ports if name != "CONTROLLER"]
