"""Whole streams through the topics: the sums of the files, bit for bit, and every refused record in the quarantine."""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config, parse_config
from tests.golden.stream import PACKAGED
from tests.integration.running import RunningCalmon, Samples, wait_until
from tests.kafka_service.topics import Topics, check_quarantine, evaluate, state_digest, windows_report
from tests.recovery.stream import HOUR_MS, START_MS, make_stream, write_lines
from tests.services.kafka import Kafka

REAL = {"ood_threshold": -0.57385, "confidence_threshold": 0.8, "groups": ["group"]}


def refused_of(file: Path, folder: Path) -> list[tuple[bytes, str]]:
    """The lines of a file that are refused, with their reasons."""
    engine = Engine(parse_config(f"source: {{files: [{file}]}}\nstate: {{directory: {folder}, horizon: none}}", "test", {}), ManualClock(0))
    engine.runner.start()
    while not engine.source.exhausted:
        engine.runner.step()
    engine.close()
    lines = (gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()).split(b"\n")
    entries = [json.loads(line) for line in (folder / "quarantine.ndjson").read_bytes().splitlines()]
    return [(lines[entry["offset"] - 1], entry["reason"]) for entry in entries]


def total(samples: Samples, name: str) -> dict[tuple[str, str], float]:
    """A counter by kind and its second label."""
    found = {}
    for (one, labels), value in samples.items():
        if one == name:
            pairs = dict(labels)
            found[(pairs["kind"], pairs.get("outcome") or pairs["reason"])] = value
    return found


def check_account(samples: Samples, lines: Sequence[bytes], account: dict[str, int | dict[str, int]]) -> None:
    """Compare the counters with what `calmon evaluate` counted in the file."""
    outcomes = total(samples, "calmon_records_total")
    assert samples[("calmon_records_consumed_total", frozenset())] == len(lines) == sum(outcomes.values())
    wanted = account["outcomes"]
    assert isinstance(wanted, dict)
    assert {".".join(key): value for key, value in outcomes.items() if key[1] != "refused"} == {
        key: value for key, value in wanted.items() if not key.endswith(".refused")
    }
    reasons: dict[str, float] = {}
    for (_, reason), value in total(samples, "calmon_refused_total").items():
        reasons[reason] = reasons.get(reason, 0) + value
    assert reasons == account["rejected"]


def by_partition(samples: Samples, name: str) -> dict[str, float]:
    """A gauge of the source."""
    return {dict(labels)["partition"]: value for (one, labels), value in samples.items() if one == name}


def check_reading(running: RunningCalmon, topics: Topics) -> None:
    """Check what is said of the reading itself, at the end of all partitions: lag, assignment, polls, commits."""
    running.wait_for("calmon_source_operations_total", 0, operation="commit_failures")
    wait_until(lambda: running.value("calmon_source_operations_total", operation="commits"), "offsets are committed")
    samples = running.samples()
    assert by_partition(samples, "calmon_source_lag_records") == dict.fromkeys(topics.names, 0)
    assert by_partition(samples, "calmon_source_reading") == dict.fromkeys(topics.names, 1)
    read_until_s = by_partition(samples, "calmon_source_read_until_timestamp_seconds")
    assert read_until_s.keys() == set(topics.names)
    for kind, topic in (("prediction", topics.predictions), ("label", topics.labels)):
        newest_s = max(value for name, value in read_until_s.items() if name.startswith(topic))
        assert newest_s == samples[("calmon_newest_event_timestamp_seconds", frozenset({("kind", kind)}))]
    operations = {dict(labels)["operation"]: value for (one, labels), value in samples.items() if one == "calmon_source_operations_total"}
    assert operations["polls"] > 0
    assert operations["assignments"] == 1
    assert operations["unreadable_records"] == 0


def until_read(running: RunningCalmon, wanted: int) -> Samples:
    """Wait until everything is read; the page then."""
    running.wait_for("calmon_records_consumed_total", wanted)
    wait_until(lambda: running.get("/-/ready")[0] == 200, "ready")
    return running.samples()


def stop(running: RunningCalmon) -> None:
    """End it in order."""
    assert running.stop() == 0, running.log
    assert "Traceback" not in running.log


def quarantine_of(config: Path) -> str:
    """The quarantine topic of a configuration."""
    topic = load_config(config, {}).quarantine.topic
    assert topic is not None
    return topic


@pytest.mark.parametrize("stream", ["flights", "employment"])
def test_a_real_stream_comes_to_the_sums_of_its_file(kafka: Kafka, tmp_path: Path, stream: str) -> None:
    file = PACKAGED / f"{stream}.ndjson.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines()
    topics = Topics(kafka, 4)
    chance = random.Random(stream)  # noqa: S311 - the same pieces every time
    if stream == "flights":
        topics.produce(tmp_path, lines, chance)
    else:
        topics.send(lines, chance)
        assert max(len(sent.events) for sent in topics.sent.values()) > 3
    assert {place.partition for place in topics.sent} == {0, 1, 2, 3}
    hours = (time.time_ns() // 1_000_000 - START_MS) // HOUR_MS + 48
    config = topics.config(tmp_path, defaults=REAL, windows=[{"name": "all", "length": f"{hours}h"}])
    with RunningCalmon(config) as running:
        samples = until_read(running, len(lines))
        wanted = evaluate(file, config)
        check_account(samples, lines, wanted.account)
        check_reading(running, topics)
        at_ms = int(samples[("calmon_clock_seconds", frozenset())] * 1000)
        for name, metrics in windows_report(file, config, at_ms, f"{hours}h").items():
            model, _, version = name.partition("@")
            labels = frozenset({("model", model), ("model_version", version), ("window", "all"), ("segment", "all"), ("value", "all")})
            for metric, gauge in (("predictions", ""), ("labelled", ""), ("accuracy", "_ratio"), ("ece", "_ratio"), ("csr", "")):
                assert samples[(f"calmon_{metric}{gauge}", labels)] == pytest.approx(metrics[metric], rel=1e-12)
        stop(running)
    assert state_digest(tmp_path) == wanted.digest
    check_quarantine(topics, quarantine_of(config), refused_of(file, tmp_path / "files"))


@pytest.mark.parametrize("shards", ["partitions", "one"])
def test_stopped_in_the_middle_and_started_again(kafka: Kafka, tmp_path: Path, shards: str) -> None:
    lines = [line.value for line in make_stream(dense=3000, sparse=900)]
    file = write_lines(tmp_path / "events.ndjson", lines)
    topics = Topics(kafka, 4) if shards == "partitions" else Topics(kafka, 3, 2)  # the latter are not co-partitioned
    chance = random.Random(shards)  # noqa: S311 - the same batches every time
    config = topics.config(tmp_path, kafka={"shards": shards})
    cuts = [0, len(lines) // 3, 2 * len(lines) // 3, len(lines)]
    read = 0.0
    for first, end in pairwise(cuts):
        with RunningCalmon(config) as running:
            assert (running.value("calmon_records_consumed_total") or 0) >= read
            topics.send(lines[first:end], chance)
            wait_until(lambda: (running.value("calmon_records_consumed_total") or 0) > read, "something is read")  # noqa: B023
            if end == len(lines):
                check_account(until_read(running, len(lines)), lines, evaluate(file, config).account)
            read = running.value("calmon_records_consumed_total") or 0
            stop(running)
    assert state_digest(tmp_path) == evaluate(file, config).digest
    names = {path.name for path in (tmp_path / "state").glob("shard-*")}
    assert names == ({f"shard-{number}" for number in range(4)} if shards == "partitions" else set())
    check_quarantine(topics, quarantine_of(config), refused_of(file, tmp_path / "files"))


def test_a_state_of_the_other_kind_is_refused(kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka)
    topics.send([line.value for line in make_stream(dense=20, sparse=0)], random.Random(0))  # noqa: S311 - any
    config = topics.config(tmp_path)
    with RunningCalmon(config) as running:
        wait_until(lambda: running.value("calmon_records_consumed_total"), "something is read")
        stop(running)
    config.write_text(re.sub(r'"group_id"', '"shards": "one", "group_id"', config.read_text()))
    with pytest.raises(AssertionError, match=r"set source\.kafka\.shards to partitions"):
        RunningCalmon(config).__enter__()
