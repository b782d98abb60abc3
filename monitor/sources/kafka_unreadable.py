"""Batches that kafka-python cannot unpack: which, and how far to skip them.

kafka-python 3.0.12 raises from within the batch, does not always say which batch, and would spin for ever at the next
poll without a seek. The frames that the exception came through do know.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition

_UNPACKING = "_unpack_records"
"""Where kafka-python takes a fetched batch apart; its locals are ``tp`` and, once there is one, ``batch``."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Offsets [first, end) of a partition that cannot be read; `first` is None where it is where the consumer stands."""

    partition: TopicPartition
    first: int | None
    end: int | None


def unreadable(error: BaseException) -> Unreadable | None:
    """The batch that an exception of a poll came from; None if it did not come from a batch."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_name == _UNPACKING:
            found: dict[str, Any] = frame.f_locals
            batch = found.get("batch")
            partition = found.get("tp")
            if not isinstance(partition, TopicPartition):
                return None
            first, end = getattr(batch, "base_offset", None), getattr(batch, "next_offset", None)
            return Unreadable(partition, first, end)
    return None


def placeholder(partition: str, first: int, end: int, error: BaseException) -> bytes:
    """What is delivered instead of a record that cannot be read: no JSON, so it is refused, and it says why."""
    return f"calmon: unreadable: offsets {first} to {end - 1} of {partition}: {type(error).__name__}: {error}".encode()[:500]
