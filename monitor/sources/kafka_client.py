"""Connecting kafka-python's consumer: nothing left behind by a failure, and its real cause found."""

from __future__ import annotations

import logging
import math
import ssl
import threading
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
    UnsupportedSaslMechanismError,
)
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from monitor.errors import SourceError
from monitor.sources.kafka_settings import KafkaSettings
from monitor.sources.kafka_topics import TopicsAnswer

_LOOK_S = 0.1
"""How often it is looked, while a connection is tried, whether it is still of use."""

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

    def forget(self) -> None:
        """Go on without what was in the way until now."""
        self.last = None

    def __enter__(self) -> Causes:
        self.forget()
        logging.getLogger("kafka").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka").removeHandler(self)


class Connection:
    """A consumer and the client inside it, which knows the cluster.

    Args:
        settings: Of the source.
        hopeless: Whether there is no use in trying any longer.

    Raises:
        KafkaError: No broker answered.
    """

    def __init__(self, settings: KafkaSettings, hopeless: Callable[[], bool]) -> None:
        clients: list[Any] = []

        def connected(**options: Any) -> Any:
            self._net = NetworkSelector(**options)
            manager = KafkaConnectionManager(self._net, **options)
            clients.append(KafkaNetClient(net=self._net, manager=manager, **options))
            self._net.start()
            _bootstrap(manager, settings.start_timeout_s, hopeless)
            return clients[-1]

        try:
            self.consumer: Any = KafkaConsumer(**settings.consumer_options() | {"kafka_client": connected})
        except BaseException:
            for client in clients:  # kafka-python would leave its thread and sockets behind
                client.close()
            raise
        (self._client,) = clients

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


def connect(settings: KafkaSettings, causes: Causes, given_up: Callable[[], bool]) -> Connection:
    """Connect, however often it takes within `settings.start_timeout_s`.

    Args:
        settings: Of the source.
        causes: Has been listening.
        given_up: Whether nobody waits any more.

    Raises:
        SourceError: No broker could be reached in time, or it will not let us in; with the cause.
    """
    try:
        return Connection(settings, lambda: given_up() or (causes.last is not None and _hopeless(causes.last)))
    except KafkaConfigurationError as error:
        raise SourceError(f"kafka: {error}") from error
    except (ssl.SSLError, OSError, ValueError, AssertionError) as error:  # certificates or options that cannot be used
        raise SourceError(f"kafka: cannot use the settings: {error}") from error
    except KafkaError as error:
        cause = causes.last or error
        raise SourceError(explain(settings, cause)) from cause


def _bootstrap(manager: Any, timeout_s: float, hopeless: Callable[[], bool]) -> None:
    """Let a client get to know its cluster, as the consumer's constructor would: that one cannot be told to leave off.

    Raises:
        KafkaError: No broker answered.
    """
    future = manager.bootstrap_async(timeout_s * 1000)
    done = threading.Event()
    future.add_both(lambda _: done.set())
    while not done.wait(_LOOK_S):
        if hopeless():
            raise KafkaTimeoutError("given up")
    if not future.succeeded():
        raise future.exception


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
