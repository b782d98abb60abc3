"""Times on the wire: epoch milliseconds or RFC 3339 with an offset, always to whole milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from monitor.events.contract import EARLIEST_MS, LATEST_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,30}))?(Z|z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?",
    re.ASCII,
)


class InstantError(ValueError):
    """A time that is refused; `reason` is the refusal's name."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def instant(time_ms: int, timespec: str = "seconds") -> str:
    """A time as people read it, in UTC.

    Args:
        time_ms: Epoch milliseconds.
        timespec: How fine, as in `datetime.isoformat`.
    """
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def epoch_ms(value: object) -> int:
    """Milliseconds since the Unix epoch of a time as sent.

    Args:
        value: A whole number of milliseconds (a zero fraction is allowed) or RFC 3339 text; fractions of the
            text are floored to milliseconds.

    Raises:
        InstantError: `naive_time` for text without an offset, else `bad_time`.

    >>> epoch_ms("2026-01-01T00:00:00.0019+01:00")
    1767222000001
    """
    if isinstance(value, str):
        result = _from_text(value)
    elif isinstance(value, float) and value.is_integer():
        result = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        result = value
    else:
        raise InstantError("bad_time")
    if not EARLIEST_MS <= result < LATEST_MS:
        raise InstantError("bad_time")
    return result


def _from_text(text: str) -> int:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InstantError("bad_time")
    date, clock, fraction, offset = match.groups()
    if offset is None:
        raise InstantError("naive_time")
    try:
        moment = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if offset in 'Zz' else offset}")
    except ValueError:
        raise InstantError("bad_time") from None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    # Digits after the third are dropped: times are floored, also before the epoch.
    return seconds * 1000 + int(((fraction or "") + "000")[:3])
