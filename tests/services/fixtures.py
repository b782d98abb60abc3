"""Fixtures of services, for tests anywhere: a plugin that tests/conftest.py names."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.services.kafka import Kafka


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A broker that all tests share: make topics with `new_topic`; to stop or break one, start a `KafkaBroker` of your own."""
    from tests.services.kafka import shared_kafka  # noqa: PLC0415 - only runs that ask for a broker need the client

    with shared_kafka() as running:
        yield running


@pytest.fixture
def left_sockets_collected() -> Iterator[None]:
    """See `left_sockets`."""
    yield
    gc.collect()
