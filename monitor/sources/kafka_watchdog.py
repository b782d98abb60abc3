"""A watch on calls that must return in time: kafka-python has been seen to spin for ever inside `poll`."""

from __future__ import annotations

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 70
_log = logging.getLogger(__name__)


def fail_process(message: str) -> None:
    """End the process at once, with where its threads stand; a restart goes on from the last checkpoint."""
    _log.critical("%s", message)
    faulthandler.dump_traceback()
    os._exit(EXIT_CODE)


class Watchdog:
    """Calls `on_stuck` when a watched call overruns.

    Args:
        overrun_s: How far a call may overrun.
        on_stuck: Called in the watchdog's thread, once a call.
    """

    def __init__(self, overrun_s: float, on_stuck: Callable[[str], None]) -> None:
        self._overrun_s = overrun_s
        self._on_stuck = on_stuck
        self._deadline: float | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._thread = threading.Thread(target=self._run, name="kafka-watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, timeout_s: float) -> Iterator[None]:
        """Watch what runs inside, which has promised to take `timeout_s`."""
        self._deadline = time.monotonic() + timeout_s + self._overrun_s
        try:
            yield
        finally:
            self._deadline = None

    def close(self) -> None:
        """End the watch."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._closed.wait(min(1.0, self._overrun_s / 4)):
            deadline = self._deadline
            if deadline is not None and time.monotonic() > deadline:
                self._deadline = None
                self._on_stuck(f"kafka: poll has overrun its timeout by {self._overrun_s:g} s: the client is stuck")
