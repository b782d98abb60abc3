"""The packaged streams as if they happened now, line by line on standard output: `python -m monitor.demo.sample | calmon produce -`.

Whoever tries calmon with a real broker has events for its windows that way: their times are those of today, closer together
than they once were, and every run has ids of its own.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from monitor.config_file import load_config
from monitor.demo.replay import Recording, read_recording
from monitor.demo.show import CONFIG

DEFAULT_TIME_SCALE = 600.0
_PAUSE_S = 0.2
_TIMES = ("predicted_at", "labelled_at")


class Due(NamedTuple):
    """A line and when it is to be sent, milliseconds since the Unix epoch."""

    at_ms: int
    line: bytes


def retimed(recordings: Sequence[Recording], start_ms: int, time_scale: float) -> Iterator[Due]:
    """The lines of all recordings in the order of their arrival, moved and pressed together in time.

    Args:
        recordings: Whose arrivals are in epoch milliseconds.
        start_ms: When the first line is due.
        time_scale: Seconds of a recording in a real second, > 0.

    Yields:
        Each line with its times moved as its arrival is, and the start in its id; what is no JSON object as it was.
    """
    first_ms = min((int(one.arrival_ms[0]) for one in recordings if one.lines), default=0)

    def moved(time_ms: int) -> int:
        return start_ms + round((time_ms - first_ms) / time_scale)

    def lines(one: Recording) -> Iterator[tuple[int, bytes]]:
        yield from zip(one.arrival_ms.tolist(), one.lines, strict=True)

    for arrival_ms, line in heapq.merge(*(lines(one) for one in recordings), key=lambda item: item[0]):
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict):
            event |= {name: moved(event[name]) for name in _TIMES if isinstance(event.get(name), int)}
            if event.get("prediction_id"):  # a missing one stays missing
                event["prediction_id"] = f"{event['prediction_id']}-{start_ms}"
            yield Due(moved(arrival_ms), json.dumps(event, separators=(",", ":")).encode())
        else:
            yield Due(moved(arrival_ms), line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the lines as they become due, until they end or nobody reads them any more."""
    parser = argparse.ArgumentParser(
        prog="python -m monitor.demo.sample", description="Write the packaged streams as if they happened now."
    )
    parser.add_argument("--time-scale", type=float, default=DEFAULT_TIME_SCALE, metavar="X", help="seconds of the streams in a real second")
    options = parser.parse_args(arguments)
    if not options.time_scale > 0:
        parser.error("--time-scale: must be greater than 0")
    recordings = [read_recording(CONFIG.parent / name) for name in load_config(CONFIG).source.files]
    try:
        for due in retimed(recordings, time.time_ns() // 1_000_000, options.time_scale):
            while (wait_s := due.at_ms / 1000 - time.time()) > 0:
                sys.stdout.buffer.flush()
                time.sleep(min(wait_s, _PAUSE_S))
            sys.stdout.buffer.write(due.line + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing must be flushed at the end
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
