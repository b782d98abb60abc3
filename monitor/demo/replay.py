"""A recording as a source: each record comes when a clock has reached its time, in the order in which it once arrived."""

from __future__ import annotations

import gzip
import heapq
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.clock import Clock
from monitor.errors import SourceError
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Prediction, Record, Refusal
from monitor.sources.protocol import WHOLE, Position, Slice, SourceStatus, never
from monitor.statistics.fixed_point import I64

PACE_S = 0.2
"""How long records gather before they are delivered together: a batch of many costs little more than a batch of one."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A file of events, read whole.

    Attributes:
        name: The file's name.
        lines: Its records.
        arrival_ms: When each arrived; ascending, shape (len(lines),).
    """

    name: str
    lines: Sequence[bytes]
    arrival_ms: I64


def read_recording(path: Path) -> Recording:
    """Read an NDJSON file, ``.gz`` or plain, and find out when its records arrived.

    A record arrives at its own time (`predicted_at`, `labelled_at`), but never before the one above it: the file's order
    is the order of arrival. What is late by its own time was sent again, and a refused record has no time that counts.

    Raises:
        SourceError: The file cannot be read.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            lines = file.read().splitlines()
    except (OSError, EOFError) as error:
        raise SourceError(f"cannot read the recording {path}: {error}") from error
    decoder = Decoder(lambda _: None, HeadTable())
    own_ms = np.array([_own_ms(decoder.decode(line, "any")) for line in lines], dtype=np.int64)
    first_ms = own_ms[own_ms > 0][:1]
    return Recording(path.name, lines, np.maximum.accumulate(np.maximum(own_ms, first_ms)) if len(first_ms) else own_ms)


def _own_ms(record: Record) -> int:
    if isinstance(record, Refusal):
        return 0
    return record.predicted_at if isinstance(record, Prediction) else record.labelled_at


class HoldingClock:
    """A clock that stands still from a moment on: windows must not slide over the empty time after a replay.

    Args:
        clock: What is shown until then.
        end_ms: The last moment that is shown.
    """

    def __init__(self, clock: Clock, end_ms: int) -> None:
        self._clock = clock
        self._end_ms = end_ms

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        return min(self._clock.now_ms(), self._end_ms)


class ReplaySource:
    """Recordings as a log with one partition each; over all of them the records come in the order of arrival.

    Args:
        recordings: With names that differ.
        clock: Says which records have arrived.
    """

    def __init__(self, recordings: Sequence[Recording], clock: Clock) -> None:
        self._recordings = recordings
        self._clock = clock
        self._next = [0] * len(recordings)
        self._caught_up = False

    def start(self, positions: Mapping[str, Position], given_up: Callable[[], bool] = never) -> None:
        """Go to the stored positions.

        Raises:
            SourceError: A recording is shorter than its stored position.
        """
        del given_up
        for index, recording in enumerate(self._recordings):
            done = int(positions.get(recording.name, {"line": 0})["line"])
            if done > len(recording.lines):
                raise SourceError(f"{recording.name}: has {len(recording.lines)} lines, but {done} were read before; it is another file")
            self._next[index] = done

    def poll(self, max_records: int, timeout_s: float) -> Sequence[Slice]:
        """Return up to `max_records` records that have arrived; empty if there are none, after at most `timeout_s`."""
        if self._caught_up and not self.exhausted:
            time.sleep(min(timeout_s, PACE_S))
        ends = self._arrived(max_records)
        slices = [
            Slice(recording.name, "any", recording.lines[first:end], range(first + 1, end + 1), {"line": end})
            for recording, first, end in zip(self._recordings, self._next, ends, strict=True)
            if end > first
        ]
        self._caught_up = sum(ends) - sum(self._next) < max_records
        self._next = ends
        return slices

    def status(self) -> SourceStatus:
        """Whether all that has arrived was read; what cannot be read ends the run."""
        return SourceStatus(caught_up=self.live_partitions() if self._caught_up else frozenset())

    def committed(self, positions: Mapping[str, Position]) -> None:
        """Nothing to do: no log keeps positions beside the checkpoint's."""

    def live_partitions(self, shard: str = WHOLE) -> frozenset[str]:
        """Recordings that are not at their end."""
        return frozenset(one.name for one, done in zip(self._recordings, self._next, strict=True) if done < len(one.lines))

    @property
    def exhausted(self) -> bool:
        """True once every record was delivered."""
        return not self.live_partitions()

    def close(self) -> None:
        """Nothing is open."""

    def _arrived(self, max_records: int) -> list[int]:
        """Where each recording's records end that have arrived by now and are among the first `max_records` of all."""
        now_ms = self._clock.now_ms()
        ends = [
            max(first, int(np.searchsorted(recording.arrival_ms, now_ms, side="right")))
            for recording, first in zip(self._recordings, self._next, strict=True)
        ]
        if sum(ends) - sum(self._next) <= max_records:
            return ends
        taken = list(self._next)
        heads = [self._head(index, taken) for index in range(len(taken)) if taken[index] < ends[index]]
        heapq.heapify(heads)
        for _ in range(max_records):
            index = heads[0][2]
            taken[index] += 1
            if taken[index] < ends[index]:
                heapq.heapreplace(heads, self._head(index, taken))
            else:
                heapq.heappop(heads)
        return taken

    def _head(self, index: int, taken: Sequence[int]) -> tuple[int, int, int]:
        """A recording's next record in the order of arrival; of equal times that of the recording that has given less."""
        return int(self._recordings[index].arrival_ms[taken[index]]), taken[index], index
