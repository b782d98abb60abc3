"""A dry run: labels through the real processor over a state of which nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from monitor.app import new_worker
from monitor.backfill.labels.beside import Standing
from monitor.backfill.labels.nowhere import Nowhere
from monitor.backfill.labels.sieve import Arrival, Kept
from monitor.clock import SystemClock
from monitor.config import Config
from monitor.join.horizon import Horizon
from monitor.pipeline.configured import layouts_of, window_specs
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.shard import Shard
from monitor.sources.protocol import Slice
from monitor.state.overlay import OverlayStore


class Rehearsal:
    """Takes labels as the state would, in memory.

    Args:
        config: Models and windows.
        before: The shards of the state as it is, by number; only read.
        horizon: The waiting rules of the way that the labels come.
        partition: In which partition a label of an id in a shard comes.
        standing: How far a label file has been taken in already.

    Attributes:
        shards: The same as they would be.
        arrival: How labels come into it.
        paused_s: Nobody is waited for.
    """

    paused_s = 0.0

    def __init__(
        self,
        config: Config,
        before: Mapping[int, Shard],
        horizon: Horizon,
        partition: Callable[[int, str], str],
        standing: Callable[[str], Standing],
    ) -> None:
        self._standing = standing
        self.shards = {
            number: Shard(OverlayStore(shard.store), layouts_of(config), window_specs(config.windows)) for number, shard in before.items()
        }
        self.arrival = Arrival(partition, lambda shard, name: self.shards[shard].newest_ms.get(name, 0))
        # Without a live partition nothing expires.
        self._workers = {
            number: new_worker(config, shard, Outbox(shard, Nowhere()), horizon, SystemClock(), frozenset)
            for number, shard in self.shards.items()
        }

    def standing(self, partition: str) -> Standing:
        """How far a label file has been taken in."""
        return self._standing(partition)

    def deliver(self, partition: str, kept: Sequence[Kept], standing: Standing, stopped: Callable[[], bool]) -> bool:
        """Take labels in, in memory.

        Raises:
            CapacityError: A sum could overflow.
        """
        del partition, standing, stopped
        if not self._workers:
            return True  # there is no state to be read here
        parts: dict[tuple[int, str], list[Kept]] = {}
        for one in kept:
            parts.setdefault((one.shard, self.arrival.partition(one.shard, one.label.prediction_id)), []).append(one)
        for number, worker in self._workers.items():
            slices = [
                Slice(target, "label", [one.event for one in found], [one.number for one in found], {})
                for (shard, target), found in parts.items()
                if shard == number
            ]
            if slices:
                worker.process(slices)
        return True
