"""The topics of a cluster, through kafka-python's admin client: which there are, how they are set, making them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError

from monitor.broker.open import open_client, quiet
from monitor.errors import CalmonError

_REQUEST_TIMEOUT_MS = 10_000


class Topics:
    """What a cluster says of its topics.

    Args:
        admin: An admin client of kafka-python.
    """

    def __init__(self, admin: Any) -> None:
        self._admin = admin

    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self._admin.describe_cluster()["brokers"])

    def partitions(self, names: Sequence[str]) -> dict[str, int]:
        """Partitions of each topic that exists (and that we may see), in the order of the names."""
        # Never asked for by name where it may be missing: some brokers make a topic that is asked for.
        known = set(self._admin.list_topics()) & set(names)
        if not known:
            return {}
        found = {topic["name"]: len(topic["partitions"]) for topic in self._admin.describe_topics(sorted(known))}
        return {name: found[name] for name in names if name in found}

    def settings(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics that exist, defaults included; empty where we may not read them."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        found = self._admin.describe_configs(resources, config_filter="all").get("topic", {})
        return {name: {key: str(entry["value"]) for key, entry in found.get(name, {}).items()} for name in names}

    def create(self, names: Sequence[str], partitions: int, settings: Mapping[str, str]) -> None:
        """Make topics; they have leaders when this returns. One that somebody else makes meanwhile is left as it is."""
        wanted = {name: {"num_partitions": partitions, "replication_factor": -1, "configs": dict(settings)} for name in names}
        with suppress(TopicAlreadyExistsError):
            self._admin.create_topics(wanted)
        self._admin.wait_for_topics(list(names))


@contextmanager
def open_topics(servers: tuple[str, ...], options: Mapping[str, object], timeout_s: float) -> Iterator[Topics]:
    """Connect, for as long as the block lasts.

    Args:
        servers: ``host:port`` of some brokers.
        options: Security options of kafka-python.
        timeout_s: How long to try.

    Raises:
        CalmonError: The broker cannot be reached, or refuses a request.
    """
    admin = open_client(KafkaAdminClient, servers, {"request_timeout_ms": _REQUEST_TIMEOUT_MS, **options}, timeout_s)
    with quiet():
        try:
            yield Topics(admin)
        except KafkaError as error:
            raise CalmonError(f"kafka: {','.join(servers)} does not answer as it should: {error!r}") from error
        finally:
            admin.close()
