"""The consumer's loop: poll, process, upkeep, until the source ends or someone says stop."""

from __future__ import annotations

import threading

from monitor.pipeline.processor import Processor
from monitor.pipeline.quarantine import QuarantineFile
from monitor.pipeline.shard import Shard
from monitor.pipeline.upkeep import Upkeep
from monitor.sources.protocol import Source
from monitor.state.protocol import Changes

BATCH_RECORDS = 5_000
_POLL_S = 0.2


class Runner:
    """Drives one shard from one source.

    Args:
        source: Not yet started.
        shard: The state; its positions are where the source goes on.
        processor: Takes the batches.
        upkeep: Runs after each batch.
        quarantine: Confirmed at the end.
        batch_records: Most records in a batch.
    """

    def __init__(
        self,
        source: Source,
        shard: Shard,
        processor: Processor,
        upkeep: Upkeep,
        quarantine: QuarantineFile,
        batch_records: int = BATCH_RECORDS,
    ) -> None:
        self._source = source
        self._shard = shard
        self._processor = processor
        self._upkeep = upkeep
        self._quarantine = quarantine
        self._batch_records = batch_records
        self._whole = True

    def start(self) -> None:
        """Open the source at the stored positions.

        Raises:
            SourceError: It cannot be opened there.
        """
        self._source.start(self._shard.positions)

    def step(self, max_records: int | None = None, timeout_s: float = _POLL_S) -> int:
        """One batch, if there is one; returns how many records it had.

        Raises:
            CalmonError: What the source, the join or the store could not do.
        """
        slices = self._source.poll(self._batch_records if max_records is None else max_records, timeout_s)
        if not slices:
            return 0
        self._whole = False
        self._processor.process(slices)
        self._upkeep.run()
        self._whole = True
        return sum(len(part.values) for part in slices)

    def run(self, stop: threading.Event) -> None:
        """Batches until `stop` is set or the source is exhausted; each is finished and checkpointed.

        Raises:
            CalmonError: As `step`.
        """
        while not stop.is_set():
            if not self.step() and self._source.exhausted:
                return

    def close(self) -> None:
        """Note that the quarantine is written; close source and store."""
        self._source.close()
        try:
            # After a failure what is in memory is half a batch and must not be stored; the quarantine is put right at the next start.
            if self._whole:
                self._confirm()
        finally:
            self._shard.store.close()

    def _confirm(self) -> None:
        changes = Changes()
        self._quarantine.confirm(changes)
        if changes.delete_ranges:
            self._shard.stage(changes, {})
            self._shard.store.commit(changes)
