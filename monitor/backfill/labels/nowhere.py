"""A quarantine of which nothing is kept."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.export.quarantine_sink import Entry


class Nowhere:
    """Takes refused records and forgets them."""

    def mark(self) -> bytes:
        """Nothing is remembered."""
        return b""

    def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
        """Let them go."""
        del entries, after_crash
        return mark

    def close(self) -> None:
        """Nothing to release."""
