"""`calmon history` beside a service that takes in events: each answer is of one checkpoint, and after its stop the last one still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.running import RunningCalmon, calmon, report, write_config
from tests.recovery.stream import DAY_MS, MINUTE_MS, START_MS, encode, label, prediction, write_lines

BURSTS = 4
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
        beside = ask(config, "--metrics", "all")
        assert running.stop() == 0
    assert seen == sorted(seen)
    assert IDS <= seen[0] < IDS * BURSTS  # it was read while events came in
    after = ask(config, "--metrics", "all")
    assert beside == after
    assert [moment["predictions"] for moment in after if moment["at"] in whole_days] == [IDS * BURSTS // 2] * 2
    assert after[-1]["at"] == "2026-06-05T00:00:00Z"
    assert after[-1]["predictions"] is None


def test_minutes_of_a_running_service(tmp_path: Path) -> None:
    lines = burst(0)
    newest_ms = START_MS + (IDS - 1) * 2 * DAY_MS // IDS
    events = write_lines(tmp_path / "events.ndjson", lines)
    config = write_config(tmp_path, [events])
    at = [str(newest_ms - newest_ms % MINUTE_MS - 10 * MINUTE_MS)] * 2
    words = ("--window", "45m:7m", "--step", "1m", "--from", at[0], "--to", at[1], "--format", "json", "--metrics", "all")
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", 3 * IDS)
        beside = report(calmon("history", "m", "v2", "-c", config, *words))
        assert running.stop() == 0
    assert report(calmon("history", "m", "v2", "-c", config, *words)) == beside
    (moment,) = beside["moments"]
    wanted = report(calmon("evaluate", events, "-c", config, "--at", at[0], "--window", "45m:7m", "--format", "json"))["models"]["m@v2"]
    assert moment["metrics"] == wanted
    assert moment["predictions"] > 50
