"""The consumer's loop: poll, hand each shard its batch, until the source ends or someone says stop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from monitor.clock import Clock
from monitor.pipeline.evidence.maturity import known_until_ms
from monitor.pipeline.worker import Worker
from monitor.sources.protocol import Position, Slice, Source, never

BATCH_RECORDS = 5_000
_POLL_S = 0.2
_REST_S = 1.0
"""How long workers without a batch may keep the others waiting; those that are left have their turn at the next step."""


class Runner:
    """Drives the shards of one source.

    Args:
        source: Not yet started.
        new_worker: Makes the worker of a shard that has none yet.
        clock: Says when a partition was seen to be read to its end.
        batch_records: Most records in a batch.

    Attributes:
        workers: By shard.
        known_ms: Until when everything has been read and taken in (see `evidence.maturity`); None before the start.
    """

    def __init__(self, source: Source, new_worker: Callable[[str], Worker], clock: Clock, batch_records: int = BATCH_RECORDS) -> None:
        self._source = source
        self._new_worker = new_worker
        self._clock = clock
        self._batch_records = batch_records
        self._caught_up_ms: dict[str, int] = {}
        self.workers: dict[str, Worker] = {}
        self.known_ms: int | None = None

    def worker(self, shard: str) -> Worker:
        """The worker of a shard, made if need be.

        Raises:
            CalmonError: Its state cannot be used.
        """
        if shard not in self.workers:
            self.workers[shard] = self._new_worker(shard)
        return self.workers[shard]

    def start(self, given_up: Callable[[], bool] = never) -> None:
        """Open the source at the positions that the workers have stored.

        Args:
            given_up: Whether nobody waits for it any more.

        Raises:
            SourceError: It cannot be opened there.
            StoppedError: It was given up.
        """
        positions: dict[str, Position] = {}
        for worker in self.workers.values():
            positions.update(worker.shard.positions)
        self._source.start(positions, given_up)
        self._look_how_far()

    def step(self, max_records: int | None = None, timeout_s: float = _POLL_S) -> int:
        """One batch, if there is one; returns how many records it had.

        Raises:
            CalmonError: What the source, the join or the store could not do.
        """
        polled_ms = self._clock.now_ms()
        slices = self._source.poll(self._batch_records if max_records is None else max_records, timeout_s)
        by_shard: dict[str, list[Slice]] = {}
        for part in slices:
            by_shard.setdefault(part.shard, []).append(part)
        for shard, parts in by_shard.items():
            self.worker(shard).process(parts)
            self._source.committed({part.partition: part.next_position for part in parts})
        self._caught_up_ms |= dict.fromkeys(self._source.status().caught_up, polled_ms)
        self._look_how_far()
        began_s = time.monotonic()
        for shard, worker in self.workers.items():
            if shard not in by_shard and time.monotonic() - began_s < _REST_S:
                worker.rest()
        return sum(len(part.values) for part in slices)

    def run(self, stop: threading.Event) -> None:
        """Batches until `stop` is set or the source is exhausted; each is finished and checkpointed.

        Raises:
            CalmonError: As `step`.
        """
        while not stop.is_set():
            if not self.step() and self._source.exhausted:
                return

    def _look_how_far(self) -> None:
        """All that the source has delivered is taken in now; between two calls other threads see what held at the first."""
        newest = {name: time_ms for worker in self.workers.values() for name, time_ms in worker.shard.newest_ms.items()}
        live = self._source.live_partitions()
        # Without a live partition everything has been read, or a start was given up.
        self.known_ms = known_until_ms(live, newest, self._caught_up_ms) if live or self._source.exhausted else None

    def close(self) -> None:
        """Close source and workers; each of them, whatever another raises."""
        with contextlib.ExitStack() as stack:
            for worker in self.workers.values():
                stack.callback(worker.close)
            stack.callback(self._source.close)
