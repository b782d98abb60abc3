"""Commands of docker-compose.yml on this machine: the same words, with addresses and paths of this machine in them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.compose.project import ROOT
from tests.services.prometheus import ServiceMissingError, find_program

PATIENCE_S = 60.0


def translated(words: Sequence[str], replacements: Mapping[str, str]) -> list[str]:
    """Words with what stands for something else here."""
    found = list(words)
    for there, here in replacements.items():
        found = [word.replace(there, here) for word in found]
    return found


def check(words: Sequence[str]) -> int:
    """Run a health check as the engine does; its exit code.

    Raises:
        ServiceMissingError: Its program is not installed here.
    """
    # A container has no proxy between itself and itself.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    program = sys.executable if words[0] == "python" else shutil.which(words[0])
    if program is None:
        raise ServiceMissingError(f"{words[0]} is not on PATH: run deploy/local/install-services.sh as root on Debian, or install it")
    return subprocess.run([program, *words[1:]], env=environment, capture_output=True, timeout=30, check=False).returncode


def wait_until_healthy(words: Sequence[str], log: Path) -> None:
    """Wait until a health check succeeds.

    Raises:
        AssertionError: It did not in time.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while check(words) != 0:
        assert time.monotonic() < deadline_s, f"not healthy within {PATIENCE_S:g} s: {words}\n{log.read_text(errors='replace')}"
        time.sleep(0.2)


@contextmanager
def running(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command with its children, ended at the end; its output in `log`."""
    # `python` and `calmon` in a shell's command are those of these tests.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def alertmanager() -> str:
    """Alertmanager's program; Debian calls it prometheus-alertmanager."""
    return shutil.which("prometheus-alertmanager") or find_program("alertmanager")
