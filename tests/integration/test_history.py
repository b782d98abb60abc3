"""`calmon history` beside a service that takes in events: each answer is of one checkpoint, and after its stop the last one still holds."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.history import service
from tests.integration.running import CALMON, PATIENCE_S, ROOT, RunningCalmon, calmon, report, wait_until, write_config
from tests.recovery.stream import DAY_MS, MINUTE_MS, START_MS, encode, label, prediction, write_lines

BURSTS = 3
IDS = 4_000
"""Ids of a burst, each with two versions and a label for both."""

TIMES = ("--window", "24h", "--step", "6h", "--from", "2026-06-01T06:00:00Z", "--to", "2026-06-05T00:00:00Z")


def burst(number: int) -> list[bytes]:
    """Predictions over two days, each followed by its label: a checkpoint parts at most one id from its label."""
    lines = []
    for place in range(IDS):
        at_ms = START_MS + place * 2 * DAY_MS // IDS + number
        one = f"b{number}-{place}"
        group = {"region": f"r{place % 7}"}
        lines += [encode(prediction(one, at_ms, 0.5 + place % 48 / 97, version, groups=group)) for version in ("v1", "v2")]
        lines.append(encode(label(one, at_ms + MINUTE_MS, "yes" if place % 3 else "no")))
    return lines


def ask(config: Path, *words: str) -> list[dict[str, Any]]:
    """Moments of an answer."""
    moments: list[dict[str, Any]] = report(calmon("history", "m", "v1", "-c", config, *TIMES, "--format", "json", *words))["moments"]
    return moments


def test_beside_a_service_that_takes_in_events(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", burst(0))
    config = write_config(tmp_path, [events], "defaults: {groups: [region]}\n")
    whole_days = ("2026-06-02T00:00:00Z", "2026-06-03T00:00:00Z")
    at = str(START_MS + 2 * DAY_MS - 11 * MINUTE_MS)
    minutes = ("history", "m", "v2", "-c", config, "--window", "45m:7m", "--step", "1m", "--from", at, "--to", at, "--format", "json")
    seen = []
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", 3 * IDS)
        for number in range(1, BURSTS):
            with events.open("ab") as file:
                file.writelines(line + b"\n" for line in burst(number))
            moments = ask(config, "--segment", "region", "--metrics", "predictions")
            days = [moment for moment in moments if moment["at"] in whole_days]
            # A part of a checkpoint would show: predictions without their labels, or groups that do not add up.
            seen.append(sum(moment["predictions"] for moment in days))
            assert all(0 <= moment["predictions"] - moment["labelled"] <= 1 for moment in days)
            assert all(sum(moment["metrics"].values()) == moment["predictions"] for moment in moments if moment["metrics"])
        running.wait_for("calmon_records_consumed_total", 3 * IDS * BURSTS)
        beside = ask(config, "--metrics", "all"), report(calmon(*minutes, "--metrics", "all"))
        assert running.stop() == 0
    assert seen == sorted(seen)
    assert IDS <= seen[0] < IDS * BURSTS  # it was read while events came in
    after = ask(config, "--metrics", "all"), report(calmon(*minutes, "--metrics", "all"))
    assert beside == after
    hourly, (minute,) = after[0], after[1]["moments"]
    assert [moment["predictions"] for moment in hourly if moment["at"] in whole_days] == [IDS * BURSTS // 2] * 2
    assert (hourly[-1]["at"], hourly[-1]["predictions"]) == ("2026-06-05T00:00:00Z", None)
    wanted = report(calmon("evaluate", events, "-c", config, "--at", at, "--window", "45m:7m", "--format", "json"))["models"]["m@v2"]
    assert {name: wanted[name] for name in minute["metrics"]} == minute["metrics"]
    assert minute["predictions"] > 50


def test_an_interrupted_answer_leaves_no_file(tmp_path: Path) -> None:
    config = service.write_config(tmp_path, write_lines(tmp_path / "events.ndjson", burst(0)), {})
    service.read_to_end(config)
    file = tmp_path / "out" / "history.csv"
    file.parent.mkdir()
    years = ("--window", "24h", "--step", "1h", "--from", "2022-01-01T00:00:00Z", "--to", "2026-12-31T00:00:00Z")
    words = ["history", "m", "v1", "-c", str(config), *years, "--metrics", "all", "--format", "csv", "-o", str(file)]
    with subprocess.Popen([*CALMON, *words], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: list(file.parent.iterdir()), "it has begun to write")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "calmon: interrupted"
    assert list(file.parent.iterdir()) == []
