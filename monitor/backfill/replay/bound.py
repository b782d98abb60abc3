"""`--since` and `--until`: from where to where topics are read, in the user's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from monitor.errors import ConfigError
from monitor.events.instant import InstantError, epoch_ms
from monitor.request.moment import COMMAND_LINE

EARLIEST: Final = "earliest"
NOW: Final = "now"
_PLACE: Final = re.compile(r"([A-Za-z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Bound:
    """One side of what is read; by default as far as the logs go.

    Attributes:
        time_ms: The log's time of records, or None.
        offsets: By partition name; partitions that are not named go as far as the log does.
    """

    time_ms: int | None = None
    offsets: Mapping[str, int] = field(default_factory=dict)


def bound(option: str, words: Sequence[str], open_word: str, topics: Sequence[str]) -> Bound:
    """Read the words that one option was given.

    Args:
        option: Its name, for messages.
        words: One time or `open_word`, or places `TOPIC:PARTITION:OFFSET`; none is as `open_word`.
        open_word: What stands for the end of the log on this side.
        topics: The topics that are read.

    Raises:
        ConfigError: Words that cannot be understood; it names every one.
    """
    offsets: dict[str, int] = {}
    times: list[int | None] = []
    faults = []
    for word in words:
        match = _PLACE.fullmatch(word)
        if match is not None and match[1] in topics:
            offsets[f"{match[1]}-{int(match[2])}"] = int(match[3])
            continue
        try:
            times.append(None if word == open_word else epoch_ms(int(word) if word.isdecimal() else word))
        except InstantError as error:
            faults.append(
                f"{option} {word}: {error.reason}: {open_word}, RFC 3339 with an offset, epoch milliseconds from 2000 to 2100, or "
                f"TOPIC:PARTITION:OFFSET with topic {' or '.join(topics)}"
            )
    if not faults and (len(times) > 1 or (times and offsets)):
        faults.append(f"{option}: give one time, or one TOPIC:PARTITION:OFFSET for each partition")
    if faults:
        raise ConfigError(faults, COMMAND_LINE)
    return Bound(times[0] if times else None, offsets)
