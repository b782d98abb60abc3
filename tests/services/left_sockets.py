"""What tests need that take a broker away from a client in their own process: kafka-python leaves sockets behind then."""

from __future__ import annotations

import pytest

LEAVES_SOCKETS = [
    # kafka-python 3.0.12 leaves the socket of a connection that was made and never answered to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <(socket.socket|ssl.SSLSocket) .*raddr=:ResourceWarning"),
    pytest.mark.usefixtures("left_sockets_collected"),
]
"""For `pytestmark`: such sockets are no failure, and are collected after the test that left them, not in another one."""
