"""kafka-python's log, bearable: while a broker is away it says the same dozen things many times a second."""

from __future__ import annotations

import logging
import re
import threading

REPEATS_S = 30.0
_VARYING = re.compile(r"(?<=<-)\d+|\d+(?:\.\d+)?(?= (?:ms|secs?)\b)")
"""What differs between repeats: the port on our side, and how long something took or will take."""
_log = logging.getLogger(__name__)


class RepeatFilter(logging.Filter):
    """Lets each message of kafka-python pass once, then says now and then how often it came again.

    It is for a handler: a logger's filters do not see what its children log. What listens at the logger `kafka`, as
    `Causes` does, still gets every record.

    Args:
        repeats_s: How often repeats are told; a message that did not come again for so long is new the next time.
    """

    def __init__(self, repeats_s: float = REPEATS_S) -> None:
        super().__init__("kafka")
        self._repeats_s = repeats_s
        self._lock = threading.Lock()
        self._repeats: dict[tuple[str, int, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is shown: all that are not kafka-python's, and the first one of each message."""
        if not super().filter(record):
            return True
        message = (record.name, record.levelno, _VARYING.sub("...", _text(record)))
        with self._lock:
            if message in self._repeats:
                self._repeats[message] += 1
                return False
            if not self._repeats:
                self._tell_later()
            self._repeats[message] = 0
            return True

    def _tell_later(self) -> None:
        timer = threading.Timer(self._repeats_s, self._tell)
        timer.daemon = True
        timer.start()

    def _tell(self) -> None:
        with self._lock:
            told = {message: count for message, count in self._repeats.items() if count}
            self._repeats = dict.fromkeys(told, 0)
            if told:
                self._tell_later()
        for (name, level, text), count in told.items():
            _log.log(level, "%d more in %g s: %s: %s", count, self._repeats_s, name, text)


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # arguments that do not fit: whoever logged it must not be hit by that
        return str(record.msg)
