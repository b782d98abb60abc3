"""Connecting kafka-python's consumer: nothing left behind by a failure, and its real cause found."""

from __future__ import annotations

import logging
import math
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import (
    AuthorizationError,
    IllegalSaslStateError,
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from monitor.errors import SourceError
from monitor.sources.kafka_layout import Topic
from monitor.sources.kafka_settings import KafkaSettings

_TRY_S = (1.0, 10.0)
"""How long the first attempt lasts, and one at most; doubled in between. Only after an attempt is its cause looked at."""

_LOGIN_REFUSED = (SaslAuthenticationFailedError, UnsupportedSaslMechanismError, IllegalSaslStateError)
_NO_FILE = (FileNotFoundError, PermissionError, IsADirectoryError)
_BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"


class Causes(logging.Handler):
    """Remembers why kafka-python failed, which only its log says: its own exception is always a timeout."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the exception that a log record carries."""
        for found in (*(record.args if isinstance(record.args, tuple) else ()), record.exc_info and record.exc_info[1]):
            if isinstance(found, BaseException) and _weight(found) >= (0 if self.last is None else _weight(self.last)):
                self.last = found

    def __enter__(self) -> Causes:
        logging.getLogger("kafka").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka").removeHandler(self)


class TopicsAnswer:
    """What a broker says of topics, once it has.

    Args:
        future: Of the response.
    """

    def __init__(self, future: Any) -> None:
        self._future = future
        self._come = threading.Event()
        future.add_both(lambda _: self._come.set())

    @property
    def come(self) -> bool:
        """Whether the answer, or that there is none, is known."""
        return self._come.is_set()

    def wait(self, timeout_s: float) -> dict[str, Topic] | None:
        """The topics that there are; None if the broker does not answer in time.

        Raises:
            AuthorizationError: We may not see a topic.
        """
        if not self._come.wait(timeout_s) or not self._future.succeeded():
            return None
        found = {}
        for topic in self._future.value.topics:
            if topic.error_code == TopicAuthorizationFailedError.errno:
                raise TopicAuthorizationFailedError({topic.name})
            if topic.partitions:
                found[topic.name] = Topic(topic.name, "" if topic.topic_id is None else str(topic.topic_id), len(topic.partitions))
        return found


class Connection:
    """A consumer and the client inside it, which knows the cluster.

    Args:
        settings: Of the source.
        timeout_s: How long to try.

    Raises:
        KafkaError: No broker answered.
    """

    def __init__(self, settings: KafkaSettings, timeout_s: float) -> None:
        clients: list[Any] = []
        nets: list[Any] = []

        def remembered(**options: Any) -> Any:
            nets.append(NetworkSelector(**options))
            clients.append(KafkaNetClient(net=nets[-1], **options))
            return clients[-1]

        options = settings.consumer_options() | {"bootstrap_timeout_ms": int(timeout_s * 1000), "kafka_client": remembered}
        try:
            self.consumer: Any = KafkaConsumer(**options)
        except BaseException:
            for client in clients:  # kafka-python would leave its thread and sockets behind
                client.close()
            raise
        self._client = clients[0]
        self._net = nets[0]

    @property
    def connected(self) -> bool:
        """Whether a connection to some broker stands."""
        return any(self._client.connected(broker.node_id) for broker in self._client.cluster.brokers())

    def ask_topics(self, names: Sequence[str]) -> TopicsAnswer:
        """Ask a broker for topics as they are now: the client's own idea of them may be minutes old."""
        topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return TopicsAnswer(self._net.call_soon_with_future(lambda: self._client.send(self._client.least_loaded_node(), request)))

    def close(self) -> None:
        """Leave the broker; bounded."""
        try:
            self.consumer.close(autocommit=False, timeout_ms=2000)
        except KafkaError as error:
            logging.getLogger(__name__).warning("kafka: closing: %s", error)


def connect(settings: KafkaSettings, given_up: Callable[[], bool]) -> Connection:
    """Connect, however often it takes within `settings.start_timeout_s`.

    Args:
        settings: Of the source.
        given_up: Whether nobody waits any more.

    Raises:
        SourceError: No broker could be reached in time, or it will not let us in; with the cause.
    """
    deadline = time.monotonic() + settings.start_timeout_s
    try_s = _TRY_S[0]
    with Causes() as causes:
        while True:
            try:
                return Connection(settings, min(try_s, max(0.1, deadline - time.monotonic())))
            except KafkaConfigurationError as error:
                raise SourceError(f"kafka: {error}") from error
            except (ssl.SSLError, OSError, ValueError, AssertionError) as error:  # certificates or options that cannot be used
                raise SourceError(f"kafka: cannot use the settings: {error}") from error
            except KafkaError as error:
                cause = causes.last or error
                if _hopeless(cause) or given_up() or time.monotonic() >= deadline:
                    raise SourceError(explain(settings, cause)) from cause
                try_s = min(2 * try_s, _TRY_S[1])


def explain(settings: KafkaSettings, cause: BaseException) -> str:
    """Say what stands between us and the broker, and what to look at."""
    if isinstance(cause, _LOGIN_REFUSED):
        advice = "the broker refuses the login: check sasl_mechanism, user name and password"
    elif isinstance(cause, _NO_FILE):
        advice = "cannot read a file that the settings name: check ssl_cafile, ssl_certfile and ssl_keyfile"
    elif "SSL" in str(cause):
        advice = "TLS failed: check security_protocol, ssl_cafile and the broker's certificate"
    elif isinstance(cause, AuthorizationError):
        advice = "the broker does not allow it: check the access rights"
    elif "ECONNREFUSED" in str(cause):
        advice = "connection refused: is the broker running there?"
    else:
        advice = "check the address, and whether security_protocol is the listener's"
    waited = "" if _hopeless(cause) or math.isinf(settings.start_timeout_s) else f" within {settings.start_timeout_s:g} s"
    return f"kafka: cannot reach {settings.servers}{waited}: {advice} ({type(cause).__name__}: {cause})"


def _hopeless(cause: BaseException) -> bool:
    """Whether waiting does not cure it."""
    return isinstance(cause, (*_LOGIN_REFUSED, AuthorizationError, *_NO_FILE)) or _BAD_CERTIFICATE in str(cause)


def _weight(cause: BaseException) -> int:
    """How much a cause says: what follows a refused login is a lost connection, and in the end there is always a timeout."""
    return 2 if _hopeless(cause) else 0 if isinstance(cause, KafkaTimeoutError) else 1
