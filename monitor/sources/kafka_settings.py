"""What a Kafka source is told: where the broker is, what to read, and how patient to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Settings of a `KafkaSource`.

    Attributes:
        bootstrap_servers: ``host:port`` of some brokers.
        group_id: The consumer group; its committed offsets are for lag tools only. None reads every partition without a group:
            nobody's partitions move, and nothing is committed.
        predictions: Topic of the predictions.
        labels: Topic of the labels.
        single_shard: Whether all partitions belong to the one shard `all`; the topics need not be co-partitioned then.
        options: Options of kafka-python's consumer beside ours: security (``security_protocol``, ``sasl_*``, ``ssl_*``),
            timeouts, fetch sizes. They cannot change what the source relies on.
        accept_loss: Whether to go on at the start of a log that no longer holds the stored offset.
        client_id: Name of this process towards the broker, and its static membership in the group: no other process of
            the group may have it.
        poll_watchdog_s: How far a poll may overrun its timeout before the process is failed.
        start_timeout_s: How long a start may wait for the broker.
    """

    bootstrap_servers: tuple[str, ...]
    group_id: str | None = "calmon"
    predictions: str = "predictions"
    labels: str = "labels"
    single_shard: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    accept_loss: bool = False
    client_id: str = "calmon"
    poll_watchdog_s: float = 60.0
    start_timeout_s: float = 60.0

    @property
    def servers(self) -> str:
        """The brokers, for messages."""
        return ",".join(self.bootstrap_servers)

    def consumer_options(self) -> dict[str, Any]:
        """What kafka-python's consumer is made with."""
        preferences: dict[str, Any] = {
            "fetch_max_wait_ms": 200,  # what we ask while a fetch waits at the broker waits behind it
            "request_timeout_ms": 10_000,
            "connections_max_idle_ms": 540_000,
            "reconnect_backoff_max_ms": 1_000,
            "metadata_max_age_ms": 60_000,
            "metrics_enabled": False,
        }
        fixed: dict[str, Any] = {
            "bootstrap_servers": list(self.bootstrap_servers),
            "client_id": self.client_id,
            "group_id": self.group_id,
            "group_instance_id": None if self.group_id is None else self.client_id,
            "partition_assignment_strategy": [CooperativeStickyAssignor],
            "auto_offset_reset": "none",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "check_crcs": True,
            "allow_auto_create_topics": False,
        }
        return {**preferences, **self.options, **fixed}
