"""The message of Prometheus remote write 1.0: protobuf by hand, for it is three small messages, in snappy's block format.

`WriteRequest` has the series as field 1; `TimeSeries` has labels as field 1 and samples as field 2; `Label` has name and
value as 1 and 2; `Sample` has the value, a double, as 1 and the time in milliseconds, an int64, as 2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import snappy

from monitor.export.backfill_series import Series

Point = tuple[int, float | None]
"""Time in milliseconds and value; None is a staleness marker."""

STALE = struct.pack("<Q", 0x7FF0_0000_0000_0002)
"""The not-a-number by which Prometheus knows that a series ends; as bytes, for a float need not keep a NaN's bits."""

_LENGTH_DELIMITED = 2
_FIXED64 = 1
_VARINT = 0


def write_request(series: Mapping[Series, Sequence[Point]]) -> bytes:
    """The body of a request: points of each series, ascending in time."""
    parts = []
    for labels, points in series.items():
        fields = [_field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in labels]
        fields += [_field(2, _sample(at_ms, value)) for at_ms, value in points]
        parts.append(_field(1, b"".join(fields)))
    packed: bytes = snappy.compress(b"".join(parts))
    return packed


def _sample(at_ms: int, value: float | None) -> bytes:
    packed = STALE if value is None else struct.pack("<d", value)
    return _tag(1, _FIXED64) + packed + _tag(2, _VARINT) + _varint(at_ms)


def _field(number: int, content: bytes) -> bytes:
    return _tag(number, _LENGTH_DELIMITED) + _varint(len(content)) + content


def _tag(number: int, kind: int) -> bytes:
    return bytes([number << 3 | kind])


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last byte have the eighth set."""
    found = bytearray()
    while value >> 7:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
