"""What tests of a broker that goes away in their own process need, for kafka-python leaves sockets behind then."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

IGNORED = pytest.mark.filterwarnings("ignore:unclosed <(socket.socket|ssl.SSLSocket) .*raddr=:ResourceWarning")
"""kafka-python 3.0.12 leaves the socket of a connection that was made and never answered to the garbage collector."""


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collected here, not in another test."""
    yield
    gc.collect()
