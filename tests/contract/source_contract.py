"""What every source must do, whatever log it reads; an adapter's tests subclass `SourceContract` and give it a log."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import pytest

from monitor.sources.protocol import Position, Slice, Source

PATIENCE_S = 30.0
"""How long a source may take to deliver what is there; generous, since a broker may have to elect a leader."""


class LogUnderTest(Protocol):
    """An empty log that a test writes to and makes sources of."""

    @property
    def partitions(self) -> Sequence[str]:
        """Names of its partitions, at least two, as the source names them."""
        ...

    @property
    def ends(self) -> bool:
        """Whether a source made with ``live=False`` becomes exhausted."""
        ...

    @property
    def goes_on(self) -> bool:
        """Whether its partitions may get more records after such a source has become exhausted."""
        ...

    def append(self, partition: str, records: Iterable[bytes]) -> None:
        """Write records; they can be read when this returns."""
        ...

    def source(self, *, live: bool) -> Source:
        """Make another source of this log, not started; `live` if it must also see what is appended later."""
        ...


@contextmanager
def started(source: Source, positions: Mapping[str, Position]) -> Iterator[Source]:
    """Start a source and close it at the end."""
    source.start(positions)
    try:
        yield source
    finally:
        source.close()


def poll_slices(source: Source, wanted: int, max_records: int = 7) -> Iterator[Slice]:
    """Poll until `wanted` records came, the source is exhausted or patience ends."""
    deadline = time.monotonic() + PATIENCE_S
    while wanted > 0 and not source.exhausted and time.monotonic() < deadline:
        for part in source.poll(max_records, 0.2):
            wanted -= len(part.values)
            yield part


def by_partition(slices: Iterable[Slice]) -> dict[str, list[tuple[int, bytes]]]:
    """The records with their offsets, by partition, in the order they came."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for part in slices:
        found.setdefault(part.partition, []).extend(zip(part.offsets, part.values, strict=True))
    return found


def records(name: str, count: int) -> list[bytes]:
    """Records that differ from each other and between partitions, of several lengths, some not UTF-8."""
    return [b'{"%s":%d,"pad":"%s"}' % (name.encode(), number, b"\xff" * (number % 5)) for number in range(count)]


class SourceContract:
    """Tests for any `Source`; a subclass overrides the fixture `log`."""

    @pytest.fixture
    def log(self) -> LogUnderTest:
        """A new, empty log."""
        raise NotImplementedError

    @pytest.fixture
    def written(self, log: LogUnderTest) -> dict[str, list[bytes]]:
        """What the log's partitions hold: a different number of records in each."""
        content = {partition: records(f"p{index}", 40 + 5 * index) for index, partition in enumerate(log.partitions)}
        for partition, values in content.items():
            log.append(partition, values)
        return content

    def test_delivers_every_record_once_and_in_its_partitions_order(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        with started(log.source(live=False), {}) as source:
            found = by_partition(poll_slices(source, sum(map(len, written.values()))))
        assert {name: [value for _, value in rows] for name, rows in found.items()} == written

    def test_offsets_rise_within_a_partition(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        with started(log.source(live=False), {}) as source:
            found = by_partition(poll_slices(source, sum(map(len, written.values()))))
        for rows in found.values():
            offsets = [offset for offset, _ in rows]
            assert offsets == sorted(set(offsets))

    def test_a_poll_keeps_to_max_records_with_one_filled_slice_a_partition(
        self, log: LogUnderTest, written: dict[str, list[bytes]]
    ) -> None:
        left = sum(map(len, written.values()))
        with started(log.source(live=False), {}) as source:
            deadline = time.monotonic() + PATIENCE_S
            while left > 0 and time.monotonic() < deadline:
                slices = source.poll(3, 0.2)
                names = [part.partition for part in slices]
                sizes = [len(part.values) for part in slices]
                assert len(names) == len(set(names))
                assert sum(sizes) <= 3
                assert all(sizes)
                assert [len(part.offsets) for part in slices] == sizes
                assert all(len(part.timestamps_ms) in {0, len(part.values)} for part in slices)
                left -= sum(sizes)
        assert left == 0

    def test_goes_on_exactly_after_any_returned_position(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        total = sum(map(len, written.values()))
        with started(log.source(live=False), {}) as source:
            slices = list(poll_slices(source, total))
        whole = by_partition(slices)
        for cut in range(1, len(slices), 4):
            # Through JSON, as a checkpoint stores them.
            positions = json.loads(json.dumps({part.partition: dict(part.next_position) for part in slices[:cut]}))
            before = by_partition(slices[:cut])
            rest = total - sum(map(len, before.values()))
            with started(log.source(live=False), positions) as source:
                after = by_partition(poll_slices(source, rest, max_records=11))
            assert {name: before.get(name, []) + after.get(name, []) for name in whole} == whole

    def test_positions_are_small_flat_json(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        assert written
        with started(log.source(live=False), {}) as source:
            position = next(poll_slices(source, 1)).next_position
        assert len(json.dumps(dict(position))) < 1000
        assert all(type(value) in {int, str} for value in position.values())

    def test_a_position_of_a_partition_that_is_no_more_is_left_alone(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        with started(log.source(live=False), {"gone": {"byte": 3}}) as source:
            found = by_partition(poll_slices(source, sum(map(len, written.values()))))
        assert set(found) == set(written)

    def test_an_empty_poll_waits_no_longer_than_its_timeout(self, log: LogUnderTest) -> None:
        with started(log.source(live=True), {}) as source:
            source.poll(10, 1.0)
            began = time.monotonic()
            assert not source.poll(10, 0.1)
            assert time.monotonic() - began < 1.0

    def test_a_live_source_sees_what_is_appended_and_never_ends(self, log: LogUnderTest) -> None:
        first, second = log.partitions[:2]
        with started(log.source(live=True), {}) as source:
            log.append(first, [b"one", b"two"])
            assert [value for _, value in by_partition(poll_slices(source, 2))[first]] == [b"one", b"two"]
            log.append(second, [b"three"])
            log.append(first, [b"four"])
            found = by_partition(poll_slices(source, 2))
            assert {name: [value for _, value in rows] for name, rows in found.items()} == {first: [b"four"], second: [b"three"]}
            assert not source.exhausted
            assert source.live_partitions() == frozenset(log.partitions)

    def test_a_live_source_does_not_starve_a_partition(self, log: LogUnderTest) -> None:
        for partition in log.partitions:
            log.append(partition, records("busy", 3000))
        for max_records, wanted in ((100, 2000), (1, 200)):
            with started(log.source(live=True), {}) as source:
                seen = {part.partition for part in poll_slices(source, wanted, max_records)}
            assert seen == set(log.partitions)

    def test_partitions_live_until_they_are_read(self, log: LogUnderTest, written: dict[str, list[bytes]]) -> None:
        total = sum(map(len, written.values()))
        with started(log.source(live=False), {}) as source:
            assert source.live_partitions() == frozenset(written)
            assert not source.exhausted
            assert sum(len(part.values) for part in poll_slices(source, total)) == total
            assert not source.poll(10, 0.1)
            assert source.exhausted == log.ends
            if log.ends:
                assert source.live_partitions() == (frozenset(written) if log.goes_on else frozenset())

    def test_a_live_source_says_which_partitions_were_read_to_their_end(self, log: LogUnderTest) -> None:
        first = log.partitions[0]
        with started(log.source(live=True), {}) as source:
            log.append(first, records("busy", 20))
            seen, deadline = 0, time.monotonic() + PATIENCE_S
            while source.status().caught_up != frozenset(log.partitions) and time.monotonic() < deadline:
                seen += sum(len(part.values) for part in source.poll(3, 0.2))
                assert seen in (0, 20) or first not in source.status().caught_up
            assert seen == 20
            assert source.status().caught_up == frozenset(log.partitions)

    def test_closing_is_safe_at_any_time(self, log: LogUnderTest) -> None:
        source = log.source(live=False)
        source.close()
        source.start({})
        source.close()
        source.close()
