"""A `calmon run` process whose pages are asked for all the time, as Prometheus and a load balancer would."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from tests.integration.running import CALMON, RunningCalmon, wait_until

RUN = (*CALMON, "run", "-c")
ACCEPTING = (*CALMON, "run", "--accept-loss", "-c")
IMPATIENT = (sys.executable, "-m", "tests.kafka_service.impatient", "run", "-c")
EVERY_S = 0.5
SLOWEST_S = 2.0


class Answer(NamedTuple):
    """One answer to a scrape; without a status there was none."""

    status: int | None
    took_s: float


class WatchedCalmon(RunningCalmon):
    """A service that is scraped twice a second from its start to its end.

    Args:
        config_path: Its configuration.
        command: What is run, up to the configuration.
        port: Where it listens, if it is to be watched before it says that it runs.
    """

    def __init__(self, config_path: Path, command: Sequence[str] = RUN, port: int | None = None) -> None:
        super().__init__(config_path, subprocess.DEVNULL, command)
        self._given = port
        self._enough = threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self.answers: list[Answer] = []
        self.readiness: list[tuple[int, str]] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end_watch()
        super().__exit__(kind, error, trace)

    def _listens(self) -> bool:
        if self._given is None:
            return super()._listens()
        assert self.process.poll() is None, self.log
        self.url = f"http://127.0.0.1:{self._given}"
        return self._ask("/metrics")[0].status == 200

    @property
    def said_to_run(self) -> bool:
        """Whether its log says that it has begun."""
        return "/metrics" in self.log

    def until_not_ready(self, *words: str) -> None:
        """Wait until readiness is false for a reason that has these words in it."""

        def so() -> bool:
            status, text = self.get("/-/ready")
            return status == 503 and all(word in text for word in words)

        wait_until(so, f"not ready, and that for {words}")

    def until_ready(self) -> None:
        """Wait until readiness is true."""
        wait_until(lambda: self.get("/-/ready")[0] == 200, "ready")

    def stop_well(self) -> None:
        """End it in order, and check that every scrape was answered, soon."""
        self.end_watch()
        assert self.stop() == 0, self.log
        assert "Exception in thread" not in self.log, self.log
        bad = [answer for answer in self.answers if answer.status != 200 or answer.took_s > SLOWEST_S]
        assert not bad, f"{len(bad)} of {len(self.answers)} scrapes: {bad[:5]}"

    def end_watch(self) -> None:
        """Ask for no more pages."""
        self._enough.set()
        if self._watcher.is_alive():
            self._watcher.join()

    def _watch(self) -> None:
        while not self._enough.wait(EVERY_S):
            self.answers.append(self._ask("/metrics")[0])
            answer, text = self._ask("/-/ready")
            if answer.status is not None:
                self.readiness.append((answer.status, text))

    def _ask(self, path: str) -> tuple[Answer, str]:
        began_s = time.monotonic()
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=5)
        status, text = None, ""
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            status, text = response.status, response.read().decode()
        except OSError as error:
            text = repr(error)
        finally:
            connection.close()
        return Answer(status, time.monotonic() - began_s), text
