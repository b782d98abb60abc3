"""`calmon run` as a user has it: what is scraped, what a signal does, what a restart finds."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from monitor.pipeline.shard import Shard
from monitor.state.rocks import RocksStore
from tests.integration.running import (
    FAULTY,
    PATIENCE_S,
    RunningCalmon,
    Samples,
    calmon,
    of_version,
    parse,
    recent_events,
    wait_until,
    write_config,
)
from tests.recovery.stream import encode, label, make_stream, write_lines
from tests.services.prometheus import PrometheusServer, check_metrics

MOVING = ("calmon_clock_seconds", "calmon_tick_duration_seconds")
"""Different at every tick."""


def append(path: Path, lines: list[bytes]) -> None:
    """Add lines to a file, as a service that logs its predictions does."""
    with path.open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def lines_read(folder: Path) -> int:
    """The line after which the stored state goes on."""
    store = RocksStore(folder / "state")
    try:
        (position,) = Shard(store, None, ()).positions.values()
        return int(position["line"])
    finally:
        store.close()


def standing(samples: Samples) -> Samples:
    """Without what moves at every tick."""
    return {key: value for key, value in samples.items() if key[0] not in MOVING}


def test_prometheus_scrapes_what_metrics_says_while_the_file_grows(tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    append(events, [*recent_events([f"a{number}" for number in range(30)]), b"no json"])
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        with PrometheusServer([running.url.removeprefix("http://")]) as prometheus:
            prometheus.wait_for("up == 1")
            prometheus.wait_for("calmon_records_consumed_total == 61")
            append(events, recent_events([f"b{number}" for number in range(40)], "v2", labelled=False))
            append(events, [encode(label(f"b{number}", time.time_ns() // 1_000_000, "no")) for number in range(10)])
            prometheus.wait_for('calmon_labelled{model_version="v2", segment="all"} == 10')

            def same() -> bool:
                scraped = {
                    (
                        labels.pop("__name__"),
                        frozenset((name, text) for name, text in labels.items() if name not in ("job", "instance")),
                    ): value
                    for labels, value in prometheus.query('{job="calmon", __name__=~"calmon_.+"}')
                }
                return standing(scraped) == standing(running.samples())

            wait_until(same, "Prometheus has the values of /metrics")
            assert prometheus.query("up == 1") != []
        text = running.metrics()
    check_metrics(text.encode())
    assert not any(math.isnan(value) or math.isinf(value) for value in parse(text).values())
    assert "NaN" not in text
    samples = parse(text)
    assert len(of_version(samples, "v2")) > 30
    assert samples["calmon_refused_total", frozenset({("kind", "unknown"), ("reason", "bad_json")})] == 1
    assert samples["calmon_records_consumed_total", frozenset()] == 111


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_with_0_and_the_next_start_goes_on_at_the_exact_line(number: signal.Signals, tmp_path: Path) -> None:
    lines = [line.value for line in make_stream(dense=300, sparse=100)]
    events = write_lines(tmp_path / "events.ndjson", lines[:500])
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", 500)
        assert running.stop(number) == 0
        assert "Traceback" not in running.log
    assert lines_read(tmp_path) == 500
    append(events, lines[500:])
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(lines))
        assert running.stop(number) == 0
    assert lines_read(tmp_path) == len(lines)
    whole = write_lines(tmp_path / "whole.ndjson", lines)
    evaluated = calmon("evaluate", whole, "--digest")
    assert evaluated.stdout.splitlines()[-1] + "\n" == calmon("state", "digest", tmp_path / "state").stdout
    quarantined = (tmp_path / "state" / "quarantine.ndjson").read_bytes().splitlines()
    assert len(quarantined) == sum(line.refused is not None and not line.needs_horizon for line in make_stream(dense=300, sparse=100))


def test_a_signal_in_the_middle_of_a_long_file_finishes_the_batch(tmp_path: Path) -> None:
    lines = [line.value for line in make_stream(dense=9000, sparse=10)]
    events = write_lines(tmp_path / "events.ndjson", lines)
    config_path = write_config(tmp_path, [events], follow=False)
    with RunningCalmon(config_path) as running:
        assert running.stop() == 0
    read = lines_read(tmp_path) if (tmp_path / "state" / "CALMON").exists() and _has_position(tmp_path) else 0
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(lines))
        assert running.stop() == 0
    assert read <= lines_read(tmp_path) == len(lines)
    assert calmon("evaluate", events, "--digest").stdout.splitlines()[-1] + "\n" == calmon("state", "digest", tmp_path / "state").stdout


def _has_position(folder: Path) -> bool:
    store = RocksStore(folder / "state")
    try:
        return bool(Shard(store, None, ()).positions)
    finally:
        store.close()


def test_a_second_signal_ends_a_slow_batch_at_once_and_harms_nothing(tmp_path: Path) -> None:
    lines = [line.value for line in make_stream(dense=100, sparse=50)]
    events = write_lines(tmp_path / "events.ndjson", lines)
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path, command=(*FAULTY, "hang-joined")) as running:
        wait_until(lambda: "hanging at joined" in running.log, "the batch hangs")
        running.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(0.5)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(10) == 128 + signal.SIGINT
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(lines))
        assert running.stop() == 0
    assert calmon("evaluate", events, "--digest").stdout.splitlines()[-1] + "\n" == calmon("state", "digest", tmp_path / "state").stdout


@pytest.mark.parametrize("fault", ["hang-joined", "hang-committed"])
def test_a_scrape_never_waits_for_the_consumer_nor_for_idle_connections(fault: str, tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events(["a", "b"]))
    with RunningCalmon(write_config(tmp_path, [events]), command=(*FAULTY, fault)) as running:
        wait_until(lambda: "hanging at" in running.log, "the batch hangs")
        host, _, port = running.url.removeprefix("http://").rpartition(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(10)]
        began_s = time.monotonic()
        for _ in range(5):
            assert running.get("/metrics")[0] == 200
            assert running.get("/")[0] == 200
            assert running.get("/-/healthy")[0] == 200
        assert time.monotonic() - began_s < 8
        for connection in idle:
            connection.close()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("consumer", "PlantedError: in the consumer"),
        ("panic", "PlantedPanic: in native code"),
        ("tick", "PlantedError: in the tick"),
    ],
)
def test_a_bug_ends_the_process_with_a_traceback_instead_of_serving_stale_gauges(fault: str, said: str, tmp_path: Path) -> None:
    events = tmp_path / "events.ndjson"
    events.touch()
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path, command=(*FAULTY, fault)) as running:
        append(events, recent_events(["a", "b"]))
        assert running.process.wait(PATIENCE_S) == 1
        assert "Traceback" in running.log
        assert said in running.log
    with RunningCalmon(config_path) as running:  # the next start reads everything once
        running.wait_for("calmon_records_consumed_total", 4)
        running.wait_for("calmon_predictions", 2, segment="all")
        assert running.stop() == 0


def test_a_label_moves_only_the_version_that_predicted_it(tmp_path: Path) -> None:
    old, new = [f"a{number}" for number in range(20)], [f"b{number}" for number in range(20)]
    events = write_lines(tmp_path / "events.ndjson", recent_events(old, "v1", minutes_ago=30, labelled=False))
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        running.wait_for("calmon_predictions", 20, model_version="v1", segment="all")
        append(events, recent_events(new, "v2", minutes_ago=10))
        running.wait_for("calmon_labelled", 20, model_version="v2", segment="all")
        before = running.samples()
        append(events, [encode(label(one, time.time_ns() // 1_000_000, "yes")) for one in old])
        running.wait_for("calmon_labelled", 20, model_version="v1", segment="all")
        after = running.samples()
    assert of_version(after, "v2") == of_version(before, "v2")
    moved = {key[0] for key, value in of_version(after, "v1").items() if of_version(before, "v1").get(key) != value}
    assert moved >= {"calmon_labelled", "calmon_accuracy_ratio", "calmon_completeness_ratio", "calmon_correct"}
    assert "calmon_predictions" not in moved


def test_counters_go_on_after_a_restart_from_the_first_scrape(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events([f"a{number}" for number in range(10)]))
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", 20)
        assert running.stop() == 0
    slow = config_path.read_text().replace("tick: 100ms", "tick: 1h")
    config_path.write_text(slow)
    with RunningCalmon(config_path) as running:
        assert running.value("calmon_records_consumed_total") == 20
        assert running.value("calmon_records_total", kind="prediction", outcome="applied") == 10
        # Nor do the gauges wait for the first tick to be due.
        running.wait_for("calmon_predictions", 10, segment="all")
        assert running.get("/-/ready") == (200, "ready\n")


def test_another_layout_is_held_back_until_its_epoch(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events([f"a{number}" for number in range(10)]))
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        running.wait_for("calmon_predictions", 10, segment="all")
        assert running.stop() == 0
    config_path = write_config(tmp_path, [events], "defaults: {bins: 5}\n")
    with RunningCalmon(config_path) as running:
        wait_until(lambda: "is held back until the window lies inside its new epoch" in running.get("/")[1], "the page says so")
        assert of_version(running.samples(), "v1").keys() == {
            key for key in of_version(running.samples(), "v1") if key[0].startswith("calmon_label_delay_seconds")
        }
        append(events, recent_events(["late"]))
        running.wait_for("calmon_records_consumed_total", 22)
        assert running.value("calmon_predictions", segment="all") is None
        assert running.stop() == 0
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        running.wait_for("calmon_records_consumed_total", 22)
        assert "is held back" in running.get("/")[1]


def test_standard_input_is_read_from_a_pipe_and_cannot_be_resumed(tmp_path: Path) -> None:
    config_path = write_config(tmp_path, ["-"], follow=False)
    with RunningCalmon(config_path, stdin=subprocess.PIPE) as running:
        pipe = running.process.stdin
        assert pipe is not None
        for ids in (["a", "b"], ["c"]):
            pipe.write(b"".join(line + b"\n" for line in recent_events(ids)))
            pipe.flush()
            running.wait_for("calmon_predictions", 2 if ids == ["a", "b"] else 3, segment="all")
        pipe.write(b'{"no": "line end"}')
        pipe.close()
        running.wait_for("calmon_records_consumed_total", 7)
        assert running.get("/-/healthy") == (200, "healthy\n")
        assert running.stop() == 0
    again = calmon("run", "-c", config_path, stdin=b"{}\n")
    assert again.returncode == 1
    assert "calmon: standard input cannot be resumed: the state already holds line 7 of it" in again.stderr


def test_a_followed_file_may_come_later(tmp_path: Path) -> None:
    events = tmp_path / "later.ndjson"
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        assert running.get("/-/healthy")[0] == 200
        write_lines(events, recent_events(["a"]))
        running.wait_for("calmon_predictions", 1, segment="all")
        assert running.get("/nothing")[0] == 404
        assert running.stop() == 0


def test_a_file_read_to_its_end_goes_on_being_served(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events(["a"]))
    with RunningCalmon(write_config(tmp_path, [events], follow=False)) as running:
        running.wait_for("calmon_predictions", 1, segment="all")
        clock_s = running.value("calmon_clock_seconds")
        wait_until(lambda: running.value("calmon_clock_seconds") != clock_s, "ticks go on")
        assert running.get("/-/healthy")[0] == 200
        assert running.stop() == 0


def test_killed_in_the_open_and_started_again(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events(["a", "b", "c"]))
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", 6)
        os.kill(running.process.pid, signal.SIGKILL)
        running.process.wait(PATIENCE_S)
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_predictions", 3, segment="all")
        assert running.value("calmon_records_consumed_total") == 6
