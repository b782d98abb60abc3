"""`calmon backfill labels` with a broker: through the topic that a running service reads."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec

from monitor.backfill.labels.command import run
from monitor.backfill.labels.into_topic import MOST_BEHIND
from monitor.clock import SystemClock
from monitor.pipeline.account import Account, merge_accounts
from monitor.request.state import opened_shards
from monitor.sources.protocol import never
from tests.backfill.late_labels import REAL, STREAMS, hold_back, packaged
from tests.integration.running import CALMON, ROOT, RunningCalmon, calmon, refusal, wait_until
from tests.kafka_service.topics import Topics, evaluate, state_digest
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, encode, label, make_stream, prediction, write_lines
from tests.services.kafka import Kafka


def backfill(config: Path, *files: Path, **words: Any) -> Any:
    """The report of a backfill, in this process."""
    given = {"map": [], "rate": None, "append_to": None, "dry_run": False, **words}
    text, code = run(Namespace(files=list(map(str, files)), config=str(config), format="json", **given), never)
    assert code == 0
    return json.loads(text)


def label_counts(folder: Path) -> Counter[str]:
    """What became of labels in a state, refused ones by reason."""
    with opened_shards(str(folder / "state")) as shards:
        found: Account = merge_accounts([shard.account for shard in shards])
    counts = Counter({word: count for (kind, word), count in found.outcomes.items() if kind == "label" and word != "refused"})
    return counts + Counter({reason: count for (kind, reason), count in found.refused.items() if kind == "label"})


def produce(config: Path, lines: list[bytes]) -> None:
    """Send lines with `calmon produce`."""
    result = calmon("produce", write_lines(config.with_name("sent.ndjson"), lines), "-c", config)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("stream", "shards"), [("flights", "partitions"), pytest.param("employment", "one", marks=pytest.mark.soak)])
def test_through_the_topic_the_sums_are_those_of_labels_in_time(kafka: Kafka, tmp_path: Path, stream: str, shards: str) -> None:
    assert stream in STREAMS
    lines = packaged(stream)
    late = hold_back(lines)
    topics = Topics(kafka, 3, 3 if shards == "partitions" else 2)
    config = topics.config(tmp_path, kafka={"shards": shards}, defaults=REAL)
    produce(config, late.in_time)
    labels = write_lines(tmp_path / "late.ndjson", [*late.labels, encode(label("nobody", START_MS, "yes"))])
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", len(late.in_time))
        before = label_counts(tmp_path)
        rehearsed = backfill(config, labels, dry_run=True)
        done = backfill(config, labels)
        running.wait_for("calmon_records_consumed_total", len(lines))
        again = backfill(config, labels)
        assert running.stop() == 0
    assert again["total"] == done["total"]
    assert done["total"]["labels"] == {"sent": len(late.labels), "unknown_id": 1}
    wanted = Counter(rehearsed["total"]["labels"])
    assert wanted.pop("unknown_id") == 1
    assert label_counts(tmp_path) - before == wanted
    assert state_digest(tmp_path) == evaluate(write_lines(tmp_path / "all.ndjson", lines), config).digest


def test_a_dry_run_knows_what_the_topic_refuses_as_expired(kafka: Kafka, tmp_path: Path) -> None:
    at = {f"id-{number}": START_MS + number * DAY_MS // 4 for number in range(40)}
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path, state={"directory": str(tmp_path / "state"), "horizon": "2d", "history": "30d"})
    events = [encode(prediction(one, time_ms, 0.8)) for one, time_ms in at.items()]
    produce(config, [*events, encode(label("id-39", at["id-39"], "no"))])
    labels = write_lines(tmp_path / "late.ndjson", [encode(label(one, time_ms + 5, "yes")) for one, time_ms in reversed(at.items())])
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", len(events) + 1)
        rehearsed = backfill(config, labels, dry_run=True)
        before = label_counts(tmp_path)
        backfill(config, labels)
        wanted = Counter(rehearsed["total"]["labels"])
        del wanted["unknown_id"]  # their rows have expired in one of the shards, and they are not sent
        running.wait_for("calmon_records_consumed_total", len(events) + 1 + wanted.total())
        assert running.stop() == 0
    assert wanted["expired"] > 5
    assert label_counts(tmp_path) - before == wanted


def test_labels_are_sent_unchecked_where_there_is_no_state_and_that_is_said(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path)
    labels = write_lines(tmp_path / "late.ndjson", [encode(label("nobody", START_MS, "yes")), b"broken"])
    said = (
        f"there is no state in {tmp_path / 'state'} on this machine: labels are sent unchecked, and the service counts what becomes of them"
    )
    for words in ({"dry_run": True}, {}):
        done = backfill(config, labels, **words)
        assert done["unchecked"] == said
        assert done["total"]["labels"] == {"sent": 1, "bad_json": 1}
    assert not (tmp_path / "state").exists()
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", 1)
        assert running.stop() == 0
    assert label_counts(tmp_path) == Counter({"applied": 1})


def test_a_topic_that_is_missing_is_said_in_one_line(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 1)
    config = topics.config(tmp_path, kafka={"labels": "nowhere"})
    labels = write_lines(tmp_path / "late.ndjson", [])
    assert "topic nowhere does not exist at" in refusal(calmon("backfill", "labels", labels, "-c", config))


def test_killed_and_interrupted_it_goes_on_and_each_label_is_applied_once(kafka: Kafka, tmp_path: Path) -> None:
    late = hold_back([line.value for line in make_stream(dense=1500, sparse=1500) if line.refused is None], 0.9)
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path)
    # By another hash of the keys than calmon's own producer has.
    topics.send(late.in_time, random.Random(4), several=False)  # noqa: S311 - the same batches every time
    labels = write_lines(tmp_path / "late.ndjson", late.labels)
    command = [*CALMON, "backfill", "labels", str(labels), "-c", str(config), "--rate", "1200", "--format", "json"]
    progress = tmp_path / "state.backfill"
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", len(late.in_time))
        rehearsed = Counter(backfill(config, labels, dry_run=True)["total"]["labels"])
        before = label_counts(tmp_path)
        rows = 0
        for number in (signal.SIGINT, signal.SIGKILL):
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            wait_until(lambda: rows_done(progress) > rows, "labels are sent")  # noqa: B023
            os.kill(process.pid, number)
            out, err = process.communicate(timeout=30)
            rows = rows_done(progress)
            assert 0 < rows < len(late.labels)
            if number == signal.SIGINT:
                assert process.returncode == 130, err
                assert json.loads(out)["stopped"]
        done = backfill(config, labels)
        assert done["files"][0]["rows_before"] == rows
        assert done["total"]["labels"] == {"sent": len(late.labels)}
        wait_until(lambda: not any(lag_of(running)), "everything is read")
        time.sleep(0.5)
        assert running.stop() == 0
    found = label_counts(tmp_path) - before
    assert {word: count for word, count in found.items() if word != "duplicate"} == {
        word: count for word, count in rehearsed.items() if word != "duplicate"
    }
    assert found["duplicate"] >= rehearsed["duplicate"]
    lines = [*late.in_time, *late.labels]
    assert state_digest(tmp_path) == evaluate(write_lines(tmp_path / "all.ndjson", lines), config).digest


def test_a_label_of_the_future_is_held_back_alone(kafka: Kafka, tmp_path: Path) -> None:
    now_ms = SystemClock().now_ms()
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path)
    produce(config, [encode(prediction(f"id-{number}", now_ms - HOUR_MS + number, 0.8)) for number in range(50)])
    times_ms = [now_ms + 2 * HOUR_MS if number == 20 else now_ms for number in range(50)]
    labels = write_lines(tmp_path / "late.ndjson", [encode(label(f"id-{number}", at, "yes")) for number, at in enumerate(times_ms)])
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", 50)
        rehearsed = backfill(config, labels, dry_run=True)
        done = backfill(config, labels)
        running.wait_for("calmon_records_consumed_total", 99)
        assert running.stop() == 0
    assert rehearsed["total"]["labels"] == {"applied": 49, "future_time": 1}
    assert done["total"]["labels"] == {"sent": 49, "future_time": 1}
    assert label_counts(tmp_path)["applied"] == 49
    (quarantine,) = tmp_path.glob("*.backfill/*.quarantine.ndjson")
    assert f"{now_ms + 2 * HOUR_MS} ms; the limit is " in quarantine.read_text()


def rows_done(folder: Path) -> int:
    """The row after which the next run goes on."""
    found = list(folder.glob("*.progress.json"))
    return int(json.loads(found[0].read_bytes())["row"]) if found else 0


def lag_of(running: RunningCalmon) -> list[float]:
    """Lag of each partition."""
    return [value for (name, _), value in running.samples().items() if name == "calmon_source_lag_records"]


def test_labels_wait_while_the_service_is_behind(kafka: Kafka, tmp_path: Path) -> None:
    """A service that stands still gets no more labels than may wait; one that goes on gets all."""
    count = 4 * MOST_BEHIND
    topics = Topics(kafka, 2)
    config = topics.config(tmp_path)
    produce(config, [encode(prediction(f"id-{number}", START_MS + number, 0.8)) for number in range(count)])
    labels = write_lines(tmp_path / "late.ndjson", [encode(label(f"id-{number}", START_MS + number, "yes")) for number in range(count)])
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", count)
        wait_until(lambda: running.value("calmon_source_operations_total", operation="commits"), "offsets are committed")
        os.kill(running.process.pid, signal.SIGSTOP)
        process = subprocess.Popen(
            [*CALMON, "backfill", "labels", str(labels), "-c", str(config), "--format", "json"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: ends_of(topics) > MOST_BEHIND, "as many labels as may wait are sent")
        time.sleep(1.5)
        assert process.poll() is None
        assert ends_of(topics) <= MOST_BEHIND + 1000
        os.kill(running.process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert json.loads(out)["paused_seconds"] > 1
        running.wait_for("calmon_records_consumed_total", 2 * count)
        assert running.stop() == 0


def ends_of(topics: Topics) -> int:
    """Records in the topic of the labels."""
    with topics.kafka.admin() as admin:
        parts = {TopicPartition(topics.labels, number): OffsetSpec.LATEST for number in range(topics.partitions[topics.labels])}
        return sum(int(at.offset) for at in admin.list_partition_offsets(parts).values())
