"""Labels straight into the state of a service that is stopped: a source of its own, with its position in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from monitor.app import new_worker, nothing, quarantine_sink
from monitor.backfill.labels.beside import Standing
from monitor.backfill.labels.sieve import Kept
from monitor.clock import SystemClock
from monitor.config import Config
from monitor.errors import StateError
from monitor.join.horizon import Horizon
from monitor.pipeline.configured import layouts_of, window_specs
from monitor.pipeline.evidence.book import Book
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.shard import Shard
from monitor.pipeline.worker import Worker
from monitor.sources.protocol import WHOLE, Slice
from monitor.state.rocks import MARKER, RocksStore


class IntoState:
    """Takes labels through the same processor as any; nothing expires meanwhile, and none is refused for its age.

    Args:
        shard: The state.
        worker: Takes its batches in.
    """

    paused_s = 0.0

    def __init__(self, shard: Shard, worker: Worker) -> None:
        self.shard = shard
        self._worker = worker

    def standing(self, partition: str) -> Standing:
        """How far a label file has been taken in: its position in the checkpoint."""
        return Standing.from_position(self.shard.positions.get(partition))

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        """Take labels in, with their position, in one commit.

        Raises:
            CalmonError: The checkpoint could not be written.
        """
        del stopped
        events, numbers = [one.event for one in kept], [one.number for one in kept]
        self._worker.process([Slice(partition, "label", events, numbers, standing.to_position())])
        return True


@contextmanager
def into_state(config: Config, horizon: Horizon, reached: Callable[[str], None] = nothing) -> Iterator[IntoState]:
    """The configured state, held so that no service starts meanwhile.

    Args:
        config: Where it is, models and windows.
        horizon: The waiting rules of this way.
        reached: Told at each point of a checkpoint.

    Raises:
        StateError: There is none, it cannot be used, or a service is using it.
    """
    directory = state_of_files(config)
    store = RocksStore(directory)
    try:
        shard = Shard(store, layouts_of(config), window_specs(config.windows))
        shard.judged_pane = Book(store).next_pane  # what labels change before it is a revision, which the service notes when it runs
        outbox = Outbox(shard, quarantine_sink(config, directory, WHOLE))
        worker = new_worker(config, shard, outbox, horizon, SystemClock(), frozenset, reached)
    except BaseException:
        store.close()
        raise
    try:
        yield IntoState(shard, worker)
    finally:
        worker.close()


def state_of_files(config: Config) -> Path:
    """Where the state of a service that reads files is.

    Raises:
        StateError: There is none.
    """
    directory = Path(config.state.directory)
    if not (directory / MARKER).exists():
        raise StateError(f"there is no calmon state of files in {directory}: labels have nothing to score there; run the service first")
    return directory
