"""Opening kafka-python's producer and admin client for a command: bounded, quiet, nothing left behind, the real cause said."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.errors import BrokerResponseError, KafkaConfigurationError, KafkaError
from kafka.net.compat import KafkaNetClient

from monitor.errors import CalmonError
from monitor.sources.kafka_client import Causes, explain
from monitor.sources.kafka_settings import KafkaSettings

_TRY_S = 3.0
"""How long one attempt lasts: a refused login is known by then, and there is no need to wait any longer."""


@contextmanager
def quiet() -> Iterator[Causes]:
    """Keep kafka-python's log from standard error, and remember the last cause in it: a command says what went wrong in one line."""
    log = logging.getLogger("kafka")
    propagate, log.propagate = log.propagate, False
    try:
        with Causes() as causes:
            yield causes
    finally:
        log.propagate = propagate


def open_client(kind: Callable[..., Any], servers: tuple[str, ...], options: Mapping[str, object], timeout_s: float) -> Any:
    """Make a client; one that cannot connect leaves nothing behind.

    Args:
        kind: kafka-python's class.
        servers: ``host:port`` of some brokers.
        options: The client's other options.
        timeout_s: How long to try.

    Raises:
        CalmonError: No broker could be reached in time, or it will not let us in; with the cause.
    """
    deadline = time.monotonic() + timeout_s
    with quiet() as causes:
        while True:
            try:
                return _try(kind, servers, options, min(_TRY_S, max(0.1, deadline - time.monotonic())))
            except (KafkaConfigurationError, OSError, ValueError) as error:  # options or certificates that cannot be used
                raise CalmonError(f"kafka: cannot use the settings: {error}") from error
            except KafkaError as error:
                cause = causes.last or error
                if _hopeless(cause) or time.monotonic() >= deadline:
                    raise CalmonError(explain(KafkaSettings(servers, start_timeout_s=timeout_s), cause)) from cause


def _try(kind: Callable[..., Any], servers: tuple[str, ...], options: Mapping[str, object], timeout_s: float) -> Any:
    inner: list[Any] = []

    def remembered(**settings: Any) -> Any:
        inner.append(KafkaNetClient(**settings))
        return inner[-1]

    try:
        return kind(bootstrap_servers=list(servers), bootstrap_timeout_ms=int(timeout_s * 1000), kafka_client=remembered, **options)
    except BaseException:
        for client in inner:  # kafka-python would leave its thread and sockets behind
            client.close()
        raise


def _hopeless(cause: BaseException) -> bool:
    """Whether waiting does not cure it."""
    return (isinstance(cause, BrokerResponseError) and not cause.retriable) or "CERTIFICATE_VERIFY_FAILED" in str(cause)
