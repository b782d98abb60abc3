"""A worker: one shard, and what takes its batches in and keeps it small."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.pipeline.processor import Processor
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.shard import Shard
from monitor.pipeline.upkeep import Upkeep
from monitor.sources.protocol import Slice
from monitor.state.protocol import Changes


class Worker:
    """Takes the batches of one shard.

    Args:
        shard: The state.
        processor: Takes a batch in.
        upkeep: Runs after each batch.
        outbox: Confirmed and closed at the end.

    Attributes:
        shard: As given.
        outbox: As given.
    """

    def __init__(self, shard: Shard, processor: Processor, upkeep: Upkeep, outbox: Outbox) -> None:
        self.shard = shard
        self._processor = processor
        self._upkeep = upkeep
        self.outbox = outbox
        self._whole = True

    def process(self, slices: Sequence[Slice]) -> None:
        """Take in a batch, all or nothing, then do a bounded amount of upkeep.

        Raises:
            CalmonError: What the join or the store could not do; the worker must not be used any more.
        """
        self.outbox.drain()  # what a crash has left is settled by itself, before there is more
        self._whole = False
        self._processor.process(slices)
        self._upkeep.run()
        self._whole = True

    def rest(self) -> None:
        """Between batches: deliver refused records that had to wait, or that a crash has left.

        Raises:
            StateError: The store cannot be written.
        """
        self.outbox.drain()

    def close(self) -> None:
        """Note that the quarantine is written, and close the store."""
        try:
            # After a failure what is in memory is half a batch and must not be stored; the quarantine is put right at the next start.
            if self._whole:
                self._confirm()
        finally:
            self.outbox.close()
            self.shard.store.close()

    def _confirm(self) -> None:
        changes = Changes()
        self.outbox.confirm(changes)
        if changes.delete_ranges:
            self.shard.stage(changes, {})
            self.shard.store.commit(changes)
