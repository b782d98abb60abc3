"""The events in the value of a Kafka record: one, a JSON array of them, or one a line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_ANYTHING = msgspec.json.Decoder(msgspec.Raw)
_BLANK = b" \t\r\n"


def split_events(value: bytes | None) -> Sequence[bytes]:
    r"""Split a record's value into its events' bytes; never none, so that every record has an outcome.

    Lines are events where the value is no JSON as a whole and its first line is an object by itself: a broken line
    after it is refused alone. What cannot be split comes whole, for the decoder to refuse.

    Args:
        value: As it was sent; None is a tombstone, which comes as empty bytes.

    >>> split_events(b'[{"a":1}, {"a":2}]')
    [b'{"a":1}', b'{"a":2}']
    >>> split_events(b'{"a":1}\nbroken\n{"a":2}\n')
    [b'{"a":1}', b'broken', b'{"a":2}']
    >>> split_events(b'{"a":\n1}')
    [b'{"a":\n1}']
    """
    if value is None:
        return [b""]
    if value[:1] == b"{" and b"\n" not in value:
        return [value]
    content = value.strip(_BLANK)
    if content[:1] == b"[":
        return _elements(content) or [value]
    if b"\n" not in content or _is_json(content):
        return [value]
    lines = [line for line in (line.strip(_BLANK) for line in content.split(b"\n")) if line]
    return lines if lines[0][:1] == b"{" and _is_json(lines[0]) else [value]


def _elements(content: bytes) -> list[bytes]:
    try:
        return [bytes(element) for element in _ARRAY.decode(content)]
    except (msgspec.DecodeError, RecursionError):
        return []


def _is_json(content: bytes) -> bool:
    try:
        _ANYTHING.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
