"""`calmon backfill replay` of topics: what the service comes to, from where one likes, and without disturbing it."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from monitor.request.state import opened_shards
from monitor.state import keys
from tests.golden.stream import PACKAGED
from tests.integration.running import RunningCalmon, wait_until
from tests.kafka_service.topics import Topics
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, encode, label, make_stream, prediction, write_lines
from tests.recovery.test_kill import quick_folder
from tests.replay.killed import replay_killed
from tests.replay.scratch import evaluated, held, held_back, metrics, replayed, said
from tests.services.kafka import Kafka, open_client

OTHER = {"groups": ["group", "region"], "confidence_threshold": 0.8, "bins": 20, "nll_clip": 0.05, "csr_clip": 0.02}
LINES = [line.value for line in make_stream()]


def refused(config: Path, into: Path, *words: str, code: int = 1) -> str:
    """The line with which a replay refuses."""
    found, out, err = said("backfill", "replay", "-c", config, "--into", into, *words)
    assert (found, out) == (code, ""), err
    assert not into.exists() or (into / "replay.json").exists()
    return err


def ids(into: Path) -> set[str]:
    """Ids that a scratch state knows."""
    with opened_shards(str(into)) as shards:
        return {key[1:].decode() for shard in shards for key, _ in shard.store.scan(*keys.prefix_range(keys.ROW))}


def append(topics: Topics, topic: str, partition: int, events: Sequence[tuple[int, object]]) -> None:
    """Write records with times of their own, each a batch of its own, so that their times are found exactly."""
    options: dict[str, Any] = {"acks": "all", "linger_ms": 0, "batch_size": 1}
    with closing(open_client(KafkaProducer, bootstrap_servers=topics.kafka.bootstrap, **options)) as producer:
        for at_ms, event in events:
            producer.send(topic, value=encode(event), partition=partition, timestamp_ms=at_ms).get(timeout=30)


@pytest.mark.parametrize("stream", ["made", *(pytest.param(name, marks=pytest.mark.soak) for name in ("flights", "employment"))])
def test_other_settings_and_labels_that_come_later(kafka: Kafka, tmp_path: Path, stream: str) -> None:
    topics = Topics(kafka, 4)
    chance = random.Random(4)  # noqa: S311 - the same batches every time
    file = PACKAGED / f"{stream}.ndjson.gz"
    lines = LINES if stream == "made" else gzip.decompress(file.read_bytes()).splitlines()
    kept, back = held_back(lines, 0.4, b"any")
    config = topics.config(tmp_path, defaults=OTHER)
    topics.send(kept, chance)
    again, fresh = tmp_path / "again", tmp_path / "fresh"
    replayed(config, again)
    assert held(again).consumed == len(kept)
    topics.send(back, chance)
    wanted, wanted_digest = evaluated(config, write_lines(tmp_path / "events.ndjson", lines))
    assert f"{len(back):,} records and {len(kept):,} before" in replayed(config, again)
    assert f"digest: {wanted_digest}" in replayed(config, fresh)
    assert metrics(fresh, config) == metrics(again, config) == wanted
    assert held(again)[:4] == held(fresh)[:4]
    text = replayed(config, again)
    assert f"nothing to do, all {len(kept) + len(back):,} records are in it" in text
    assert not (tmp_path / "state").exists()


def test_topics_that_are_not_co_partitioned(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 3, 2)
    topics.send(LINES, random.Random(1))  # noqa: S311 - the same batches every time
    config = topics.config(tmp_path, kafka={"shards": "one"})
    replayed(config, tmp_path / "scratch")
    assert held(tmp_path / "scratch").digest == evaluated(config, write_lines(tmp_path / "events.ndjson", LINES))[1]
    other = tmp_path / "other"
    other.mkdir()
    assert "source.kafka.shards: one): give the same again" in refused(topics.config(other), tmp_path / "scratch")


@pytest.fixture(scope="module")
def hours(kafka: Kafka) -> Topics:
    """Partition p of both topics has ten records, of an id `pP-N` each, an hour apart; partition 1 is half an hour later."""
    topics = Topics(kafka, 2)
    for partition in (0, 1):
        times = [START_MS + number * HOUR_MS + partition * HOUR_MS // 2 for number in range(10)]
        of_id = [(f"p{partition}-{number}", at_ms) for number, at_ms in enumerate(times)]
        append(topics, topics.predictions, partition, [(at_ms, prediction(one, at_ms, 0.9)) for one, at_ms in of_id])
        append(topics, topics.labels, partition, [(at_ms, label(one, at_ms, "yes")) for one, at_ms in of_id])
    return topics


def both(first: range, second: range) -> set[str]:
    return {f"p0-{number}" for number in first} | {f"p1-{number}" for number in second}


@pytest.mark.parametrize(
    ("since_h", "until_h", "wanted"),
    [
        (None, None, both(range(10), range(10))),
        (3, None, both(range(3, 10), range(3, 10))),
        (3.25, 7, both(range(4, 7), range(3, 7))),
        (None, 2.5, both(range(3), range(2))),
        (9.25, None, both(range(0), range(9, 10))),
    ],
)
def test_times_bound_what_is_read(hours: Topics, tmp_path: Path, since_h: float | None, until_h: float | None, wanted: set[str]) -> None:
    config, into = hours.config(tmp_path), tmp_path / "scratch"
    given = (("--since", since_h), ("--until", until_h))
    words = [word for option, at_h in given if at_h is not None for word in (option, str(START_MS + int(at_h * HOUR_MS)))]
    text = replayed(config, into, *words)
    assert ids(into) == wanted
    assert f"labels: {len(wanted):,} applied" in text
    assert held(into).outcomes == {("prediction", "applied"): len(wanted), ("label", "applied"): len(wanted)}


def test_offsets_bound_what_is_read_and_a_second_run_may_read_on(hours: Topics, tmp_path: Path) -> None:
    config, into = hours.config(tmp_path), tmp_path / "scratch"
    words = [f"--since={hours.predictions}:0:2", f"--since={hours.labels}:0:4", f"--since={hours.labels}:1:10"]
    code, _, err = said(
        "backfill", "replay", "-c", config, "--into", into, *words, f"--until={hours.predictions}:1:3", f"--until={hours.labels}:0:6"
    )
    assert code == 0, err
    assert f"{hours.predictions}: 2 partitions, 11 offsets\n" in err
    assert (
        f"{hours.predictions}: 2 offsets before --since are not read\n{hours.predictions}: 7 offsets from --until on are not read\n" in err
    )
    assert held(into).outcomes == {("prediction", "applied"): 8 + 3, ("label", "applied"): 2}
    assert ids(into) == both(range(2, 10), range(3))
    replayed(config, into, *words)
    assert held(into).outcomes == {("prediction", "applied"): 8 + 10, ("label", "applied"): 6}
    assert "give the same again to go on" in refused(config, into, "--since", "earliest")


def test_words_that_do_not_fit_the_topics_are_refused(hours: Topics, kafka: Kafka, tmp_path: Path) -> None:
    config, into = hours.config(tmp_path), tmp_path / "scratch"
    name = hours.predictions
    late = str(START_MS + 10 * HOUR_MS)
    assert "nothing to replay: --since lies after the newest record of every partition" in refused(config, into, "--since", late)
    assert f"--since {name}-1: offset 11 lies after the end of the log, 10" in refused(config, into, "--since", f"{name}:1:11", code=2)
    assert f"--until {name}-0: offset 12 lies after" in refused(config, into, "--until", f"{name}:0:12", code=2)
    assert f"--since: there is no partition {name}-2: there are" in refused(config, into, "--since", f"{name}:2:0", code=2)
    assert "nothing to replay: no record lies between" in refused(config, into, "--until", str(START_MS - 1))
    assert not into.exists()
    missing = hours.config(tmp_path, kafka={"labels": "no-such-topic"})
    assert "kafka: topic no-such-topic does not exist at" in refused(missing, into)
    assert "nothing to replay: no record" in refused(Topics(kafka, 1).config(tmp_path), into)
    assert not into.exists()


def test_what_the_log_no_longer_holds_is_said_with_numbers(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 1)
    topics.send(LINES[:300], random.Random(2), several=False)  # noqa: S311 - any
    config, into = topics.config(tmp_path), tmp_path / "scratch"
    kafka.delete_records(topics.predictions, 0, 20)
    code, _, err = said("backfill", "replay", "-c", config, "--into", into, f"--until={topics.predictions}:0:50")
    assert code == 0, err
    assert f"{topics.predictions}: 20 offsets are no longer in the log: {topics.predictions}-0 begins at 20\n" in err
    first = held(into).consumed
    kafka.delete_records(topics.predictions, 0, 90)
    lost = refused(config, into)
    assert "the replay is not whole: kafka: shard 0 stops: stored offset 50" in lost
    assert "40 records were deleted before they were read" in lost
    assert "--accept-loss" in lost
    replayed(config, into, "--accept-loss")
    end = sum(1 for place in topics.sent if place.topic == topics.predictions)
    assert held(into).consumed == first + end - 90


def test_the_service_that_reads_the_same_topics_is_left_alone(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka, 2)
    chance = random.Random(3)  # noqa: S311 - the same batches every time
    half = len(LINES) // 2
    topics.send(LINES[:half], chance)
    config = topics.config(tmp_path)

    def groups() -> set[str]:
        with kafka.admin() as admin:
            return {str(group["group_id"] if isinstance(group, dict) else group[0]) for group in admin.list_groups()}

    with RunningCalmon(config) as running:
        wait_until(lambda: running.get("/-/ready")[0] == 200, "ready")
        before = groups()
        for number in range(2):
            replayed(config, tmp_path / f"scratch-{number}")
            topics.send([] if number else LINES[half:], chance)
        replayed(config, tmp_path / "scratch-0")
        assert groups() == before
        running.wait_for("calmon_records_consumed_total", len(LINES))
        wait_until(lambda: _lags(running) == {0.0}, "the lag is 0")
        assert running.value("calmon_source_operations_total", operation="assignments") == 1
        assert running.value("calmon_source_operations_total", operation="commit_failures") == 0
        assert running.stop() == 0, running.log
    live = held(tmp_path / "state")
    assert held(tmp_path / "scratch-0")[:4] == live[:4]
    assert held(tmp_path / "scratch-1").digest == live.digest


def _lags(running: RunningCalmon) -> set[float]:
    return {value for (name, _), value in running.samples().items() if name == "calmon_source_lag_records"}


def test_killed_again_and_again_it_comes_to_what_the_service_came_to(kafka: Kafka) -> None:
    """With a horizon: rows expire and records are refused as expired, in the replay as in the service."""
    topics = Topics(kafka, 2)
    lines = [*LINES, *(encode(event) for event in _closing())]
    topics.send(lines, random.Random(5))  # noqa: S311 - the same batches every time
    chance = random.Random()  # noqa: S311 - other moments every time; a failure names them
    kills: list[dict[str, Any]] = [
        {"point": point, "nth": nth} for nth, point in enumerate(("origin", "committed", "joined", "applied", "drained"), 1)
    ]
    kills[0]["nth"] = 1
    kills += [{"batches": batches, "then_s": chance.uniform(0, 0.1)} for batches in (0, 1, 3)]
    with quick_folder() as folder:
        config = topics.config(folder, state={"directory": str(folder / "state"), "horizon": "2d", "history": "7d"})
        with RunningCalmon(config) as running:
            running.wait_for("calmon_records_consumed_total", len(lines))
            wait_until(lambda: running.get("/-/ready")[0] == 200, "ready")
            assert running.stop() == 0, running.log
        log = replay_killed(folder, 80, kills, config=str(config), into=str(folder / "scratch"))
        live, found = held(folder / "state"), held(folder / "scratch")
        assert found[:4] == live[:4], kills
        assert found.consumed == len(lines)
        assert live.refused[("label", "expired")] > 0
        assert len(found.quarantine) == len(set(found.quarantine)) == sum(found.refused.values())
        assert f"digest: {live.digest}" in log[-1]["text"]
        assert [entry["point"] for entry in log if entry["event"] == "killed"] == [kill["point"] for kill in kills[:5]]


def _closing() -> list[object]:
    """The end of each partition, so late that all other rows and panes expire, however the partitions were read."""
    events: list[object] = []
    for day in (50, 70):
        for number in range(8):
            at_ms = START_MS + day * DAY_MS
            events += [prediction(f"last-{day}-{number}", at_ms, 0.7), label(f"last-{day}-{number}", at_ms, "yes")]
    return events
