"""How far a service's group is behind on its labels, by the offsets that it mirrors to the broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from monitor.broker.open import open_client, quiet
from monitor.config_kafka import KafkaConfig
from monitor.errors import CalmonError

_CONNECT_TIMEOUT_S = 10.0
_REQUEST_TIMEOUT_MS = 10_000


class GroupLag:
    """Asks a broker.

    Args:
        admin: An admin client of kafka-python.
        kafka: Which group and topic.
    """

    def __init__(self, admin: Any, kafka: KafkaConfig) -> None:
        self._admin = admin
        self._kafka = kafka
        (topic,) = admin.describe_topics([kafka.labels])
        self._partitions = [TopicPartition(kafka.labels, one["partition_index"]) for one in topic["partitions"]]
        self._starts = {part: int(at.offset) for part, at in self._offsets(OffsetSpec.EARLIEST).items()}

    def records(self) -> int | None:
        """Labels between what the group has committed and the ends of the log; None where it has never committed anything.

        Raises:
            CalmonError: The broker does not answer.
        """
        group = self._kafka.group_id
        try:
            found = self._admin.list_group_offsets({group: None})[group]
            committed = self._starts | {part: at.offset for part, at in found.items() if at.offset >= 0}
            if not found:
                return None
            ends = {part: int(at.offset) for part, at in self._offsets(OffsetSpec.LATEST).items()}
            behind = [max(0, end - int(committed[part])) for part, end in ends.items()]
            return sum(behind)
        except KafkaError as error:
            raise CalmonError(
                f"kafka: {','.join(self._kafka.bootstrap_servers)} does not say how far group {group} is: {error!r}"
            ) from error

    def _offsets(self, which: OffsetSpec) -> dict[TopicPartition, Any]:
        found: dict[TopicPartition, Any] = self._admin.list_partition_offsets(dict.fromkeys(self._partitions, which))
        return found


@contextmanager
def open_group_lag(kafka: KafkaConfig, security: Mapping[str, object]) -> Iterator[GroupLag]:
    """Connect, for as long as the block lasts.

    Raises:
        CalmonError: The broker cannot be reached.
    """
    admin = open_client(
        KafkaAdminClient, kafka.bootstrap_servers, {"request_timeout_ms": _REQUEST_TIMEOUT_MS, **security}, _CONNECT_TIMEOUT_S
    )
    with quiet():
        try:
            yield GroupLag(admin, kafka)
        finally:
            admin.close()
