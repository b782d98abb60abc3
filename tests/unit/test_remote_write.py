"""Remote write's message and requests: each sample once, in the order of time, ended where its series ends."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from itertools import pairwise

import pytest
import snappy
from hypothesis import given
from hypothesis import strategies as st

from monitor.export import remote_write
from monitor.export.backfill_series import Samples, Series, series_of
from monitor.export.remote_write import packets
from monitor.export.remote_write_message import STALE, Point, write_request

STEP_MS = 60_000
NAMES = st.text(min_size=1, max_size=200)
SERIES = st.dictionaries(NAMES, NAMES, min_size=1, max_size=4).map(series_of)
POINTS = st.lists(st.tuples(st.integers(0, 2**63 - 1), st.one_of(st.none(), st.floats(allow_nan=False))), min_size=1, max_size=5)


def fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Numbers and contents of a protobuf message's fields, by the encoding's own description: an independent reader."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            length = 8 if key & 7 == 1 else varint()
            yield key >> 3, message[place : place + length]
            place += length
    assert place == len(message)


def parts(message: bytes, number: int) -> list[bytes]:
    found = [content for field, content in fields(message) if field == number]
    assert all(isinstance(content, bytes) for content in found)
    return [content for content in found if isinstance(content, bytes)]


@given(st.dictionaries(SERIES, POINTS, max_size=4))
def test_the_message_says_what_it_was_given(series: dict[Series, list[Point]]) -> None:
    found: dict[Series, list[Point]] = {}
    for one in parts(snappy.uncompress(write_request(series)), 1):
        pairs = [dict(fields(label)) for label in parts(one, 1)]
        labels = tuple((str(pair[1], "utf-8"), str(pair[2], "utf-8")) for pair in pairs)  # type: ignore[arg-type] # texts
        points: list[Point] = []
        for sample in map(dict, map(fields, parts(one, 2))):
            assert isinstance(sample[2], int)
            assert isinstance(sample[1], bytes)
            points.append((sample[2], None if sample[1] == STALE else struct.unpack("<d", sample[1])[0]))
        found[labels] = points
    assert found == series


def test_the_marker_is_prometheuss_and_no_other_not_a_number() -> None:
    assert STALE.hex() == "020000000000f07f"
    assert math.isnan(struct.unpack("<d", STALE)[0])
    assert struct.pack("<d", math.nan) != STALE


@st.composite
def runs(draw: st.DrawFn) -> tuple[Samples, Samples, list[int]]:
    """Samples at some moments of a run, some of which are stored already, and the run."""
    moments = [STEP_MS * number for number in range(draw(st.integers(1, 8)))]
    names = [series_of({"__name__": f"s{number}"}) for number in range(draw(st.integers(0, 5)))]
    samples: Samples = {}
    for name in names:
        chosen = draw(st.sets(st.sampled_from(moments), min_size=1))
        samples[name] = {at_ms: float(at_ms) for at_ms in sorted(chosen)}
    lacking = {name: {at_ms: value for at_ms, value in values.items() if draw(st.booleans())} for name, values in samples.items()}
    return samples, {name: values for name, values in lacking.items() if values}, moments


@given(runs(), st.integers(1, 6))
def test_requests(run: tuple[Samples, Samples, list[int]], most: int) -> None:
    samples, lacking, moments = run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_write, "MOST_SAMPLES", most)
        found = list(packets(samples, lacking, moments))
    written = [(at_ms, name, value) for packet in found for name, points in packet.items() for at_ms, value in points if value is not None]
    assert sorted(written) == sorted((at_ms, name, value) for name, values in lacking.items() for at_ms, value in values.items())
    for name in lacking:
        points = [point for packet in found for point in packet.get(name, [])]
        assert points == sorted(points, key=lambda point: point[0])
        ends = {at_ms for at_ms in lacking[name] if at_ms + STEP_MS not in samples[name]}
        assert {at_ms - 1 for at_ms, value in points if value is None} == ends
        for packet in found:
            stamps = [at_ms for at_ms, _ in packet.get(name, [])]
            assert all(end not in stamps or end + 1 in stamps for end in ends)
    times = [[at_ms for points in packet.values() for at_ms, value in points if value is not None] for packet in found]
    for stamps in times:
        assert 0 < len(stamps) <= most
    for earlier, later in pairwise(times):
        assert max(earlier) <= min(later)
        assert max(earlier) < min(later) or sum(at_ms == min(later) for at_ms, _, _ in written) > most, "torn although it fits"
