"""`calmon run` on a scaled clock that the test shares: it shows START_MS at a given wall time and runs RATE times as fast."""

from __future__ import annotations

import sys
import time

from monitor.app import Engine
from monitor.cli import serve
from monitor.config_file import load_config
from monitor.service import Service

START_MS = 1_780_272_000_000  # 2026-06-01T00:00:00Z
RATE = 3600.0
"""An hour a second."""


class SharedClock:
    """A clock that several processes read alike.

    Args:
        origin_s: Wall time at which it shows `START_MS`.
    """

    def __init__(self, origin_s: float) -> None:
        self._origin_s = origin_s

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, scaled."""
        return START_MS + int((time.time() - self._origin_s) * RATE * 1000)


def main(words: list[str]) -> int:
    """Serve a configuration until a signal."""
    origin_s, path = words
    config = load_config(path)
    return serve(Service(config, Engine(config, SharedClock(float(origin_s)))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
