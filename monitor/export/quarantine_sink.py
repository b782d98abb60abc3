"""What a place for refused records must offer, and what a refused record is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from monitor.errors import CalmonError
from monitor.events.record import Refusal

KEPT_BYTES = 65_536
"""Most bytes that are kept of a refused record's value, and of its key; the full length is noted beside them."""


class RefusedRecord(msgspec.Struct, array_like=True):
    """A record on its way to the quarantine.

    Attributes:
        refusal: Why.
        partition: Where it was.
        offset: Line number or offset there.
        timestamp_ms: The log's own time of the record, or None.
        value: Its bytes, cut at `KEPT_BYTES`.
        length: Its length before the cut.
        key: Its key, cut likewise; None if it has none.
        key_length: The key's length before the cut.
        index: Which of the events at this offset it is, from 0.
    """

    refusal: Refusal
    partition: str
    offset: int
    timestamp_ms: int | None
    value: bytes
    length: int
    key: bytes | None = None
    key_length: int = 0
    index: int = 0


class Entry(NamedTuple):
    """A refused record and its number in the outbox."""

    sequence: int
    record: RefusedRecord


class SinkAwayError(CalmonError):
    """Records that cannot be delivered now: they wait in the outbox, and everything else goes on."""


class Sink(Protocol):
    """Takes refused records, each once, also when a crash or a lost connection leaves open which of them it has."""

    def mark(self) -> bytes:
        """What is to be stored before the first delivery of a state; empty if the sink needs nothing of the kind.

        Raises:
            SinkAwayError: It cannot be told now.
        """
        ...

    def deliver(self, entries: Sequence[Entry], mark: bytes, after_crash: bool) -> bytes:
        """Take records, durably, those that it has already excepted.

        Args:
            entries: In the order of their numbers; again the same ones, perhaps with more after them, if they failed.
            mark: What the last delivery of the same state returned, or `mark`.
            after_crash: Whether an earlier process may have delivered some of them.

        Returns:
            What is to be stored with the note that they are delivered.

        Raises:
            SinkAwayError: They have to wait; some may have been taken.
            StateError: The sink is broken and the process must end; the records stay in the outbox.
        """
        ...

    def close(self) -> None:
        """Release what deliveries opened; safe to call twice."""
        ...
