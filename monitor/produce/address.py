"""Where a line of an event file goes: topic, key and record timestamp, read without judging the event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from monitor.events.instant import InstantError, epoch_ms

Role = Literal["prediction", "label"]


class _Head(msgspec.Struct, gc=False):
    """What has to be known of an event; the consumer judges the rest."""

    type: object = msgspec.UNSET
    prediction_id: object = None
    predicted_at: object = None
    labelled_at: object = None


_decode = msgspec.json.Decoder(_Head).decode


@dataclass(frozen=True, slots=True)
class Address:
    """Where a line goes.

    Attributes:
        role: Which of the two topics.
        key: The id's bytes, so that a label meets its prediction; None where no id or no type can be read.
        event_ms: The event time, or None if it cannot be read.
        partition: Which of the topic's partitions; None for the one that the key says.
    """

    role: Role
    key: bytes | None
    event_ms: int | None
    partition: int | None = None


def address(line: bytes) -> Address:
    r"""Address a line of an event file.

    A line whose type cannot be read goes to the predictions without a key, for the consumer to refuse. One of no type at
    all would be an event there, since a topic says the type of what is in it, though a file refuses it: without
    `labelled_at` it goes to the labels, which refuse it too.

    >>> address(b'{"type":"label","prediction_id":"a","labelled_at":1780272739371}')
    Address(role='label', key=b'a', event_ms=1780272739371, partition=None)
    >>> address(b'{"type":')
    Address(role='prediction', key=None, event_ms=None, partition=None)
    """
    try:
        head = _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Address("prediction", None, None)
    if head.type == "prediction":
        return Address("prediction", _key(head.prediction_id), _time(head.predicted_at))
    if head.type == "label":
        return Address("label", _key(head.prediction_id), _time(head.labelled_at))
    untyped = head.type is msgspec.UNSET and head.labelled_at is None
    return Address("label" if untyped else "prediction", None, None)


def _key(identity: object) -> bytes | None:
    if not isinstance(identity, str) or not identity:
        return None
    try:
        return identity.encode("utf-8")
    except UnicodeEncodeError:
        return None


def _time(sent: object) -> int | None:
    try:
        return epoch_ms(sent)
    except InstantError:
        return None
