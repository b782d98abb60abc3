"""A broker that these tests may break, if they mend it; with a user and TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.kafka import KafkaBroker


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """One of their own."""
    with KafkaBroker(users={"alice": "hunter2"}, tls=True) as running:
        yield running
