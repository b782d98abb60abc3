"""A broker as a local process, from the jars that deploy/local/kafka fetches."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.services.kafka_settings import addresses, properties
from tests.services.prometheus import ServiceMissingError

START_SCRIPT = Path(__file__).parents[2] / "deploy/local/kafka/start.sh"
STOP_TIMEOUT_S = 30.0


class BrokerProcess:
    """One run of ``start.sh`` after the other on the same data and ports.

    Args:
        directory: For data, settings and log.
        ports: One for each listener.
        settings: They win over those of ``deploy/local/kafka``.

    Raises:
        ServiceMissingError: There is no setpriv.
    """

    def __init__(self, directory: Path, ports: Mapping[str, int], settings: Mapping[str, str]) -> None:
        if shutil.which("setpriv") is None:
            raise ServiceMissingError("setpriv is not on PATH: install util-linux 2.33 or newer")
        self._log = directory / "log"
        extra = directory / "extra.properties"
        extra.write_text(properties({"listeners": addresses(ports, "127.0.0.1", list(ports)), **settings}))
        # The kernel kills the broker when we die, however we die. Every step to java is an exec: the pid stays.
        self._command = ["setpriv", "--pdeathsig", "KILL", str(START_SCRIPT)]
        self._command += ["--port", str(ports["PLAINTEXT"]), "--controller-port", str(ports["CONTROLLER"])]
        self._command += ["--data", str(directory / "data"), "--properties", str(extra)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the broker, again if it has ended."""
        assert self.ended(), "the broker is running"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._log.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def freeze(self) -> None:
        """SIGSTOP, and wait until it has an effect: on a busy machine a thread may still answer for a moment."""
        assert self._process is not None, "the broker has not been started"
        self._signal(signal.SIGSTOP)
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        while not all(_stands(thread) for thread in Path(f"/proc/{self._process.pid}/task").iterdir()):
            assert time.monotonic() < deadline_s, "the broker goes on in spite of SIGSTOP"
            time.sleep(0.001)

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL if that does not end it in time."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a frozen broker could not hear the first
        try:
            self._wait()
        except subprocess.TimeoutExpired:
            self.kill()

    def remove(self) -> None:
        """Kill what runs; the data go with their directory."""
        if not self.ended():
            self.kill()

    def ended(self) -> bool:
        """Whether no broker runs."""
        return self._process is None or self._process.poll() is not None

    def log(self) -> str:
        """All that the script and the broker wrote."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the broker has not been started"
        self._process.send_signal(number)

    def _wait(self) -> None:
        assert self._process is not None, "the broker has not been started"
        self._process.wait(STOP_TIMEOUT_S)


def _stands(thread: Path) -> bool:
    """Whether a thread is stopped, or has ended."""
    try:
        return (thread / "stat").read_bytes().rpartition(b") ")[2][:1] in b"TZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
