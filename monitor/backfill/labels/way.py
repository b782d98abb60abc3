"""The ways that labels go: into a stopped service's state, into a file that a running one follows, to the topic that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from monitor.config import Config
from monitor.errors import ConfigError
from monitor.join.horizon import Horizon
from monitor.pipeline.shard import Shard


class Kind(Enum):
    """Where labels go."""

    STATE = "state"
    FILE = "file"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a configuration and a command line.

    Attributes:
        kind: Where labels go.
        name: Of the state, the file or the topic.
        horizon: The waiting rules there.
    """

    kind: Kind
    name: str
    horizon: Horizon

    @classmethod
    def of(cls, config: Config, append_to: str | None) -> Way:
        """The way that labels have to go.

        Raises:
            ConfigError: They are to be appended to something that no service follows.
        """
        kafka = config.source.kafka
        if append_to is not None:
            _check_followed(config, append_to)
            return cls(Kind.FILE, append_to, Horizon(config.state.horizon_ms))
        if kafka is not None:
            return cls(Kind.TOPIC, kafka.labels, Horizon(config.state.horizon_ms))
        return cls(Kind.STATE, config.state.directory, Horizon(config.state.horizon_ms, expires=False))

    def partition(self, config: Config, shards: Iterable[Shard]) -> Callable[[int, str], str]:
        """Tells in which partition a label of an id comes that is in one of the shards, by the shard's number."""
        kafka = config.source.kafka
        if self.kind is not Kind.TOPIC or kafka is None:
            return lambda shard, prediction_id: self.name
        prefix = f"{self.name}-"
        if kafka.shards == "one":
            from kafka.partitioner.default import murmur2  # noqa: PLC0415 - only this way needs the client

            counts = [int(at["partitions"]) for shard in shards for name, at in shard.positions.items() if name.startswith(prefix)]
            partitions = max(counts, default=1)
            return lambda shard, prediction_id: f"{prefix}{(murmur2(prediction_id.encode()) & 0x7FFFFFFF) % partitions}"
        return lambda shard, prediction_id: f"{prefix}{shard}"


def _check_followed(config: Config, append_to: str) -> None:
    source = config.source
    fault = None
    if source.kafka is not None:
        fault = "is for files that a service follows; labels for source.kafka go to its topic by themselves"
    elif append_to not in source.files or append_to == "-":
        fault = f"is not one of source.files: {', '.join(source.files) or 'there are none'}"
    elif not source.follow:
        fault = "is not followed: without source.follow: true a service does not see what is appended"
    if fault is not None:
        raise ConfigError([f"--append-to {append_to}: {fault}"], "command line")
