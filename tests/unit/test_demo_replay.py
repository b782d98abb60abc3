"""The demo's source: the contract of every source, the order of arrival, and sums that do not depend on the clock."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config import Config, SourceConfig
from monitor.config_file import load_config
from monitor.demo.replay import HoldingClock, ReplaySource, read_recording
from monitor.demo.show import CONFIG
from monitor.duration import DAY_MS
from monitor.errors import SourceError
from monitor.pipeline.digest import digest, dump
from monitor.sources.protocol import Source
from tests.contract.source_contract import LogUnderTest, SourceContract, started

T0 = 1_780_272_000_000


def prediction(number: int, at_ms: int) -> bytes:
    event = {
        "type": "prediction",
        "prediction_id": f"p{number}",
        "model": "m",
        "model_version": "1",
        "predicted_at": at_ms,
        "probabilities": {"a": 0.75, "b": 0.25},
    }
    return json.dumps(event).encode()


def label(number: int, at_ms: int) -> bytes:
    return json.dumps({"type": "label", "prediction_id": f"p{number}", "label": "a", "labelled_at": at_ms}).encode()


def write(path: Path, records: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(record + b"\n" for record in records))
    return path


class RecordedLog:
    """Recordings in a folder, all of whose records have arrived: the contract's have no times of their own."""

    ends = True
    goes_on = False

    def __init__(self, folder: Path) -> None:
        self._paths = [folder / f"events-{index}.ndjson" for index in range(3)]
        for path in self._paths:
            path.touch()

    @property
    def partitions(self) -> Sequence[str]:
        return [path.name for path in self._paths]

    def append(self, partition: str, records: Iterable[bytes]) -> None:
        path = self._paths[self.partitions.index(partition)]
        with path.open("ab") as file:
            file.write(b"".join(record + b"\n" for record in records))

    def source(self, *, live: bool) -> Source:
        del live  # a recording is read whole: what comes later is what the clock has not reached, see below
        return ReplaySource([read_recording(path) for path in self._paths], ManualClock(0))


class TestReplay(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> LogUnderTest:
        return RecordedLog(tmp_path)

    def test_a_live_source_sees_what_is_appended_and_never_ends(self, log: LogUnderTest) -> None:
        """A recording grows by its clock, and lives until the clock has reached its last record."""
        first, second = log.partitions[:2]
        log.append(first, [prediction(0, T0), prediction(1, T0 + 100)])
        log.append(second, [label(0, T0 + 50)])
        assert isinstance(log, RecordedLog)
        clock = ManualClock(T0 - 1)
        source = ReplaySource([read_recording(path) for path in log._paths], clock)  # noqa: SLF001 - this file's own log
        with started(source, {}):
            assert source.poll(10, 0.0) == []
            assert source.live_partitions() == {first, second}
            for now_ms, wanted in ((T0, {first: [prediction(0, T0)]}), (T0 + 99, {second: [label(0, T0 + 50)]})):
                clock.set(now_ms)
                assert {part.partition: part.values for part in source.poll(10, 0.0)} == wanted
            assert source.live_partitions() == {first}
            assert not source.exhausted
            clock.set(T0 + 100)
            assert [part.offsets for part in source.poll(10, 0.0)] == [range(2, 3)]
            assert source.exhausted

    def test_a_live_source_says_which_partitions_were_read_to_their_end(self, log: LogUnderTest) -> None:
        """To the end of what has arrived by the clock; a recording that has ended is live no more."""
        first, second = log.partitions[:2]
        log.append(first, [*(prediction(number, T0) for number in range(20)), prediction(20, T0 + 1000)])
        log.append(second, [label(0, T0 + 1000)])
        assert isinstance(log, RecordedLog)
        clock = ManualClock(T0)
        source = ReplaySource([read_recording(path) for path in log._paths], clock)  # noqa: SLF001 - this file's own log
        with started(source, {}):
            seen = 0
            for _ in range(7):
                assert source.status().caught_up == frozenset()
                seen += sum(len(part.values) for part in source.poll(3, 0.0))
            assert seen == 20
            assert source.status().caught_up == {first, second}
            clock.set(T0 + 1000)
            assert sum(len(part.values) for part in source.poll(3, 0.0)) == 2
            assert source.status().caught_up == frozenset()
            assert source.exhausted


def test_the_file_order_is_the_order_of_arrival(tmp_path: Path) -> None:
    lines = [b"{", prediction(0, T0), label(0, T0 + 500), b'{"type":"surprise"}', prediction(0, T0), prediction(1, T0 + 600)]
    recording = read_recording(write(tmp_path / "events.ndjson", lines))
    # What was refused comes with the record before it (the first one with the first), what was sent again when it was sent.
    assert [int(at) - T0 for at in recording.arrival_ms] == [0, 0, 500, 500, 500, 600]


def test_a_small_poll_takes_the_first_of_all_recordings(tmp_path: Path) -> None:
    one = write(tmp_path / "one.ndjson", [prediction(number, T0 + 10 * number) for number in range(10)])
    two = write(tmp_path / "two.ndjson", [prediction(number, T0 + 25 * number + 5) for number in range(4)])
    source = ReplaySource([read_recording(one), read_recording(two)], ManualClock(T0 + DAY_MS))
    times: list[int] = []
    sizes = []
    while slices := source.poll(3, 0.0):
        sizes.append(sum(len(part.values) for part in slices))
        times += sorted(json.loads(value)["predicted_at"] for part in slices for value in part.values)
    assert times == sorted([T0 + 10 * number for number in range(10)] + [T0 + 25 * number + 5 for number in range(4)])
    assert sizes == [3, 3, 3, 3, 2]


def test_a_position_beyond_the_recording_is_another_file(tmp_path: Path) -> None:
    source = ReplaySource([read_recording(write(tmp_path / "one.ndjson", [prediction(0, T0)]))], ManualClock(T0))
    with pytest.raises(SourceError, match="has 1 lines, but 2 were read before"):
        source.start({"one.ndjson": {"line": 2}})


@pytest.mark.parametrize("content", [None, b"no gzip", gzip.compress(b"{}\n" * 1000)[:-9]])
def test_a_recording_that_cannot_be_read_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "events.ndjson.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SourceError, match=r"cannot read the recording .*events\.ndjson\.gz"):
        read_recording(path)


def test_the_clock_holds_at_the_end() -> None:
    inner = ManualClock(5)
    clock = HoldingClock(inner, 10)
    assert clock.now_ms() == 5
    inner.set(11)
    assert clock.now_ms() == 10


def demo_config(directory: Path) -> Config:
    config = load_config(CONFIG, {})
    files = tuple(str(CONFIG.parent / file) for file in config.source.files)
    state = config.state.model_copy(update={"directory": str(directory)})
    return config.model_copy(update={"state": state, "source": SourceConfig(files=files)})


def test_the_whole_replay_equals_reading_the_files(tmp_path: Path) -> None:
    config = demo_config(tmp_path / "files")
    from_files = Engine(config, ManualClock(0))
    from_files.runner.start()
    while not from_files.source.exhausted:
        from_files.runner.step()

    recordings = [read_recording(Path(file)) for file in config.source.files]
    end_ms = max(int(one.arrival_ms[-1]) for one in recordings)
    clock = ManualClock(min(int(one.arrival_ms[0]) for one in recordings))
    replayed = Engine(demo_config(tmp_path / "replay"), clock, ReplaySource(recordings, clock))
    replayed.runner.start()
    while clock.now_ms() < end_ms:
        clock.set(min(clock.now_ms() + 3 * DAY_MS, end_ms))
        while replayed.runner.step(1_777, 0.0):
            replayed.evaluator.tick()

    assert replayed.source.exhausted
    assert replayed.shard.account.consumed == sum(len(one.lines) for one in recordings)
    assert replayed.shard.account.outcomes == from_files.shard.account.outcomes
    assert digest(dump([replayed.shard])) == digest(dump([from_files.shard]))
    replayed.close()
    from_files.close()
