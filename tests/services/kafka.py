"""A real Apache Kafka for tests: one that is running, one in a container, or one from Maven's jars.

`Kafka` speaks to a broker that is there. `KafkaBroker` also owns it: it starts it, and may freeze, kill and restart it.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion
from kafka.errors import KafkaError, UnknownTopicOrPartitionError
from kafka.net.compat import KafkaNetClient

from tests.services.kafka_container import BrokerContainer, docker_answers
from tests.services.kafka_process import BrokerProcess
from tests.services.kafka_settings import Certificate, Listeners, pick_ports, settings_of

START_TIMEOUT_S = 180.0  # the first start on a machine fetches the jars
ADMIN_TIMEOUT_S = 20.0


def open_client(kind: Callable[..., Any], **options: Any) -> Any:
    """Make a producer, consumer or admin client; one that cannot connect raises and leaves nothing behind.

    By itself kafka-python 3.0.12 leaves a thread and three descriptors then.
    """
    inner: list[Any] = []

    def remembered(**settings: Any) -> Any:
        inner.append(KafkaNetClient(**settings))
        return inner[-1]

    try:
        return kind(kafka_client=remembered, **options)
    except BaseException:
        for client in inner:
            client.close()
        raise


class Kafka:
    """A broker that is running: its topics and records.

    Args:
        bootstrap: ``host:port[,host:port...]`` without authentication.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._own_topics: list[str] = []

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Make a topic; it is there, every partition with a leader, when this returns.

        Raises:
            kafka.errors.TopicAlreadyExistsError: It is there already.
        """
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(config or {})}
        with self.admin() as admin:
            admin.create_topics({name: options}, wait_for_metadata=True)

    def new_topic(self, prefix: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Make a topic with a name of its own, deleted by `delete_new_topics`."""
        name = f"{prefix}-{uuid.uuid4().hex[:12]}"
        self.create_topic(name, partitions, config)
        self._own_topics.append(name)
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its name is free when this returns."""
        deadline_s = time.monotonic() + ADMIN_TIMEOUT_S
        with self.admin() as admin:
            admin.delete_topics([name])
            while name in admin.list_topics():
                assert time.monotonic() < deadline_s, f"topic {name} still there {ADMIN_TIMEOUT_S:g} s after its deletion"
                time.sleep(0.05)

    def delete_new_topics(self) -> None:
        """Delete what `new_topic` made, so far as it is still there."""
        with self.admin() as admin:
            for name in self._own_topics:
                try:
                    admin.delete_topics([name])
                except UnknownTopicOrPartitionError:
                    continue  # the test deleted it
        self._own_topics.clear()

    def add_partitions(self, topic: str, total: int) -> None:
        """Raise a topic's count of partitions to a total."""
        with self.admin() as admin:
            admin.create_partitions({topic: total})
            admin.wait_for_topics([topic])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        """Move the start of a partition's log up to an offset."""
        with self.admin() as admin:
            admin.delete_records({TopicPartition(topic, partition): before_offset})

    @contextmanager
    def admin(self) -> Iterator[Any]:
        """An admin client of kafka-python for what has no method here."""
        client = open_client(
            KafkaAdminClient,
            bootstrap_servers=self.bootstrap.split(","),
            bootstrap_timeout_ms=int(ADMIN_TIMEOUT_S * 1000),
            request_timeout_ms=int(ADMIN_TIMEOUT_S * 1000),
        )
        try:
            yield client
        finally:
            client.close()


class Engine(Protocol):
    """What runs a broker: a process or a container."""

    def start(self) -> None:
        """Start it, again on the same data if it ran before; returns at once."""

    def freeze(self) -> None:
        """Let it stand still, its connections open."""

    def thaw(self) -> None:
        """Let it go on."""

    def kill(self) -> None:
        """End it at once, as a power cut would."""

    def stop(self) -> None:
        """Let it shut down in order."""

    def remove(self) -> None:
        """End it and delete its data."""

    def ended(self) -> bool:
        """Whether it is not running."""

    def log(self) -> str:
        """What it has written so far, all starts."""


class KafkaBroker(Kafka):
    """A broker of the test's own; a context manager.

    It runs in a container where a Docker engine answers, else as a local process; both end with the tests, even with killed ones.
    Enter it in a thread that outlives it: the kernel ends a local broker with the thread that started it.

    Args:
        users: Name and password (letters and digits) of users who may use the SASL listeners, with PLAIN, SCRAM-SHA-256,
            SCRAM-SHA-512 or OAUTHBEARER (unsecured tokens). None: no such listeners.
        tls: Whether to have TLS listeners, with a certificate for 127.0.0.1 that is its own authority (`ca_file`).
        settings: Broker settings that win over those of deploy/local/kafka.
    """

    def __init__(self, users: Mapping[str, str] | None = None, tls: bool = False, settings: Mapping[str, str] | None = None) -> None:
        self._users = dict(users or {})
        self._tls = tls
        self._settings = dict(settings or {})
        self._listeners = Listeners(sasl=bool(users), tls=tls)
        self._ports = pick_ports(self._listeners.names)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._engine: Engine | None = None
        super().__init__(self._address("PLAINTEXT"))

    @property
    def sasl_bootstrap(self) -> str:
        """The SASL_PLAINTEXT listener."""
        return self._address("SASL")

    @property
    def tls_bootstrap(self) -> str:
        """The SSL listener."""
        return self._address("TLS")

    @property
    def sasl_tls_bootstrap(self) -> str:
        """The SASL_SSL listener."""
        return self._address("SASLTLS")

    @property
    def ca_file(self) -> Path:
        """The certificate that clients of the TLS listeners have to trust."""
        assert self._directory is not None, "the broker has not been started"
        return Path(self._directory.name, "certificate.pem")

    def __enter__(self) -> Self:
        self._directory = tempfile.TemporaryDirectory(prefix="calmon-kafka-")
        try:
            directory = Path(self._directory.name)
            certificate = Certificate.make(directory) if self._tls else None
            settings = settings_of(self._listeners, self._users, certificate) | self._settings
            engine: type[BrokerContainer | BrokerProcess] = BrokerContainer if docker_answers() else BrokerProcess
            self._engine = engine(directory, self._ports, settings)
            self._engine.start()
            self._wait_until_ready()
            self._add_scram_users()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._engine is not None:
            self._engine.remove()
            self._engine = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def freeze(self) -> None:
        """Let the broker stand still: connections stay open, nothing is answered."""
        self._running().freeze()

    def thaw(self) -> None:
        """Let a frozen broker go on."""
        self._running().thaw()

    def kill(self) -> None:
        """End the broker at once (SIGKILL); its data stay."""
        self._running().kill()

    def stop(self) -> None:
        """Let the broker shut down in order; its data stay."""
        self._running().stop()

    def restart(self) -> None:
        """Start a killed or stopped broker again on its ports and data, and wait until it is ready."""
        self._running().start()
        self._wait_until_ready()

    def log(self) -> str:
        """What the broker has written so far."""
        return "(no log: not running)" if self._engine is None else self._engine.log()

    def _running(self) -> Engine:
        assert self._engine is not None, "the broker has not been started"
        return self._engine

    def _address(self, listener: str) -> str:
        assert listener in self._ports, f"the broker has no listener {listener}: see KafkaBroker's arguments"
        return f"127.0.0.1:{self._ports[listener]}"

    def _wait_until_ready(self) -> None:
        engine = self._running()
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if engine.ended():
                raise AssertionError(f"kafka ended before it was ready\n{engine.log()}")
            if self._answers():
                return
            time.sleep(0.1)
        raise AssertionError(f"kafka not ready in {START_TIMEOUT_S:g} s\n{engine.log()}")

    def _answers(self) -> bool:
        # The client would back off between its tries: knock first.
        try:
            socket.create_connection(("127.0.0.1", self._ports["PLAINTEXT"]), timeout=1).close()
            with self.admin() as admin:
                return bool(admin.describe_cluster()["brokers"])
        except (OSError, KafkaError):
            return False

    def _add_scram_users(self) -> None:
        if self._users:
            with self.admin() as admin:
                for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):  # a request may change a user once
                    changes = [UserScramCredentialUpsertion(user, mechanism, password) for user, password in self._users.items()]
                    refused = {user: error for user, error in admin.alter_user_scram_credentials(changes).items() if error}
                    assert not refused, f"SCRAM users refused: {refused}"


@contextmanager
def shared_kafka() -> Iterator[Kafka]:
    """The broker that CALMON_TEST_KAFKA names (bootstrap servers), else one of our own; made topics are deleted."""
    if bootstrap := os.environ.get("CALMON_TEST_KAFKA"):
        kafka = Kafka(bootstrap)
        try:
            yield kafka
        finally:
            kafka.delete_new_topics()
    else:
        with KafkaBroker() as broker:
            yield broker
