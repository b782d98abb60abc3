"""What is in the topics after `calmon produce`, and what it says when something stands in the way."""

from __future__ import annotations

import gzip
import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from monitor.cli import main
from monitor.produce import run, sender
from monitor.produce.lines import Line
from tests.integration.running import CALMON, PATIENCE_S, ROOT, wait_until
from tests.kafka_produce.log import new_name, read, words
from tests.recovery.stream import DAY_MS, START_MS, encode, label, make_stream, prediction, write_lines
from tests.services.kafka import Kafka, KafkaBroker
from tests.services.left_sockets import LEAVES_SOCKETS

pytestmark = LEAVES_SOCKETS

STREAM = [line.value for line in make_stream(dense=400, sparse=200)]


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> object:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture
def topics(kafka: Kafka) -> tuple[str, str]:
    """Two topics of four partitions."""
    return kafka.new_topic("predictions", 4), kafka.new_topic("labels", 4)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_line_is_in_its_topic_as_it_is(
    kafka: Kafka, topics: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], compression: str
) -> None:
    plain = write_lines(tmp_path / "a.ndjson", STREAM[::2])
    packed = tmp_path / "b.ndjson.gz"
    packed.write_bytes(gzip.compress(b"\n".join(STREAM[1::2])))
    assert main([*words(kafka, topics, plain, packed), "--compression", compression]) == 0
    out, err = capsys.readouterr()
    records = [read(kafka, topic) for topic in topics]
    assert sorted(record.value for found in records for record in found) == sorted(STREAM)
    assert out.splitlines()[:2] == [f"{topic}: {len(found):,} records" for topic, found in zip(topics, records, strict=True)]
    assert err == ""


def test_an_id_is_in_the_same_partition_of_both_topics_at_its_event_time(kafka: Kafka, topics: tuple[str, str], tmp_path: Path) -> None:
    ids = [f"id-{number}" for number in range(50)]
    events = [prediction(one, START_MS + number, 0.9) for number, one in enumerate(ids)]
    events += [label(one, START_MS + DAY_MS + number, "yes") for number, one in enumerate(ids)]
    assert main(words(kafka, topics, write_lines(tmp_path / "e", [encode(event) for event in events]))) == 0
    predictions, labels = (read(kafka, topic) for topic in topics)
    places = {record.key: record.partition for record in predictions}
    assert places == {record.key: record.partition for record in labels}
    assert set(places) == {one.encode() for one in ids}
    assert len(set(places.values())) == 4
    for start, records in ((START_MS, predictions), (START_MS + DAY_MS, labels)):
        assert sorted(record.timestamp for record in records) == [start + number for number in range(50)]


def test_what_cannot_be_read_is_sent_for_the_consumer_to_refuse(
    kafka: Kafka, topics: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [b"broken", b'{"type":"guess","prediction_id":"a"}', b'{"type":"prediction","predicted_at":1780272000000}']
    no_time = encode(prediction("a", 0, 0.9))
    before_ms = time.time_ns() // 1_000_000
    assert main(words(kafka, topics, write_lines(tmp_path / "e", [*refused, no_time, b'{"type":"label"}']))) == 0
    predictions, labels = (read(kafka, topic) for topic in topics)
    assert {(record.key, record.value) for record in predictions} == {(None, line) for line in refused} | {(b"a", no_time)}
    assert [(record.key, record.value) for record in labels] == [(None, b'{"type":"label"}')]
    assert next(record.timestamp for record in predictions if record.key == b"a") >= before_ms
    assert "unreadable: 4 of them" in capsys.readouterr().out


def test_an_event_of_the_future_harms_no_other(kafka: Kafka, tmp_path: Path) -> None:
    """A broker refuses a whole batch for one record that is stamped too far ahead."""
    topics = kafka.new_topic("predictions", 1, {"message.timestamp.after.max.ms": "3600000"}), kafka.new_topic("labels", 1)
    before_ms = time.time_ns() // 1_000_000
    ahead_ms = [-1, 60_000, DAY_MS, 2 * DAY_MS, -DAY_MS]
    lines = [encode(prediction(f"id-{number}", before_ms + ahead, 0.9)) for number, ahead in enumerate(ahead_ms)]
    assert main(words(kafka, topics, write_lines(tmp_path / "e", lines))) == 0
    after_ms = time.time_ns() // 1_000_000
    records = read(kafka, topics[0])
    assert [record.value for record in records] == lines
    for record, ahead in zip(records, ahead_ms, strict=True):
        if ahead > 60_000:
            assert before_ms <= record.timestamp <= after_ms
        else:
            assert record.timestamp == before_ms + ahead


def test_a_line_that_the_broker_does_not_take_harms_no_other(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = kafka.new_topic("predictions", 1, {"max.message.bytes": "2000"}), kafka.new_topic("labels", 1)
    lines = [encode(prediction(f"id-{number}", START_MS, 0.9, note="x" * (5000 if number in (3, 7) else 5))) for number in range(200)]
    path = write_lines(tmp_path / "e", [*lines, b"x" * (17 << 20), encode(label("id-1", START_MS, "yes"))])
    assert main(words(kafka, topics, path)) == 1
    out, err = capsys.readouterr()
    assert f"not sent: 3 lines are larger than the broker takes: {path}:4, {path}:8, {path}:201" in out
    assert err == ""
    assert [record.value for record in read(kafka, topics[0])] == [line for line in lines if len(line) < 2000]
    assert len(read(kafka, topics[1])) == 1


def test_topics_are_made_so_that_old_events_stay(kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = new_name("predictions"), new_name("labels")
    path = write_lines(tmp_path / "e", STREAM[:20])
    assert main(words(kafka, topics, path)) == 1
    assert f"calmon: kafka: topic {topics[0]} does not exist at {kafka.bootstrap}: create it, or let --create" in capsys.readouterr().err
    try:
        assert main([*words(kafka, topics, path), "--create", "3"]) == 0
        assert main([*words(kafka, topics, path), "--create", "3"]) == 0
        capsys.readouterr()
        assert main([*words(kafka, topics, path), "--create", "4"]) == 1
        assert "with 3 partitions, not 4" in capsys.readouterr().err
        with kafka.admin() as admin:
            assert [len(topic["partitions"]) for topic in admin.describe_topics(list(topics))] == [3, 3]
        assert sum(len(read(kafka, topic)) for topic in topics) == 40
    finally:
        for topic in topics:
            kafka.delete_topic(topic)


@pytest.mark.parametrize("pace", [["--rate", "20"], ["--time-scale", "10"]])
def test_a_pace_is_kept(kafka: Kafka, topics: tuple[str, str], tmp_path: Path, pace: list[str]) -> None:
    events = [encode(prediction(f"id-{number}", START_MS + 500 * number, 0.9)) for number in range(21)]
    path = write_lines(tmp_path / "e", events)
    started = time.monotonic()
    assert main([*words(kafka, topics, path), *pace]) == 0
    assert 1.0 <= time.monotonic() - started < 5.0


def test_a_terminal_shows_how_far_it_is(kafka: Kafka, topics: tuple[str, str], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "e", [encode(prediction(f"id-{number}", START_MS, 0.9)) for number in range(400)])
    ours, theirs = pty.openpty()
    command = [*CALMON, *words(kafka, topics, path), "--rate", "400"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError), open(ours, "rb", buffering=0) as terminal:  # an error is how a terminal ends
            while piece := terminal.read(4096):
                shown += piece
    assert process.returncode == 0
    assert re.search(rb"\d+ records, \d+/s .*\d+%", shown), shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_what_was_sent_acknowledged(
    kafka: Kafka, topics: tuple[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    path = write_lines(tmp_path / "e", [encode(prediction(f"id-{number}", START_MS, 0.9)) for number in range(2000)])
    command = [*CALMON, *words(kafka, topics, path), "--rate", "200"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: read(kafka, topics[0]), "records are sent")
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, "")
    said, other, end = out.splitlines()
    assert said == f"{topics[0]}: {len(read(kafka, topics[0])):,} records"
    assert 0 < len(read(kafka, topics[0])) < 2000
    assert other == f"{topics[1]}: 0 records"
    assert end.startswith("stopped after ")


def test_no_broker_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CONNECT_TIMEOUT_S", 0.5)
    path = write_lines(tmp_path / "e", STREAM[:5])
    assert main(["produce", str(path), "--bootstrap", "127.0.0.1:1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("calmon: kafka: cannot reach 127.0.0.1:1 within 0.5 s: connection refused")
    assert len(err.splitlines()) == 1


def test_a_broker_that_goes_away_is_one_line_with_the_count(
    broker: KafkaBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "DELIVERY_TIMEOUT_S", 2.0)
    monkeypatch.setattr(sender, "REQUEST_TIMEOUT_S", 1.0)
    path = write_lines(tmp_path / "e", [encode(prediction(f"id-{number}", START_MS, 0.9)) for number in range(300)])
    topics = broker.new_topic("predictions"), broker.new_topic("labels")
    send = sender.Sender.send

    def send_and_kill(self: sender.Sender, line: Line) -> None:
        if line.number == 101:
            self.finish()
            broker.kill()
        send(self, line)

    monkeypatch.setattr(sender.Sender, "send", send_and_kill)
    assert main(words(broker, topics, path)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"calmon: kafka: {broker.bootstrap} no longer answers: ")
    assert err.endswith("; 100 records were sent and acknowledged\n")
    assert len(err.splitlines()) == 1
    broker.restart()
    assert len(read(broker, topics[0])) == 100
