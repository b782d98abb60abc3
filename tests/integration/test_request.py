"""References and recommendations from the state of a service, running and stopped: it is read and not changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.integration.running import RunningCalmon, calmon, recent_events, refusal, report, write_config
from tests.recovery.stream import write_lines

MODELS = "models: {m: {temperature: true, reference: spring}}\n"


def test_from_the_state_of_a_service(tmp_path: Path) -> None:
    lines = recent_events([f"a{number}" for number in range(60)])
    events = write_lines(tmp_path / "events.ndjson", lines)
    config = write_config(tmp_path, [events], MODELS)
    recommend: list[str | Path] = ["recommend", "m", "v1", "-c", config, "--format", "json"]
    setting: list[str | Path] = ["reference", "set", "spring", "--model", "m", "-c", config]
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", len(lines))
        assert running.value("calmon_reference_refused", model="m", reason="missing") == 1
        beside = report(calmon(*recommend))
        digest_beside = calmon("state", "digest", tmp_path / "state").stdout
        assert running.stop() == 0
    digest = calmon("state", "digest", tmp_path / "state").stdout
    found = report(calmon(*recommend))
    assert (beside, digest_beside) == (found, digest)
    of_files = report(calmon(*recommend, "--from", events))
    assert found["recommendations"] == of_files["recommendations"]
    assert found["basis"]["source"] == f"the state in {tmp_path / 'state'}"
    assert found["basis"]["predictions"] == 60
    assert found["recommendations"]["temperature"]["available"] is True

    now = datetime.now(UTC)
    window = ["--at", now.isoformat(), "--window"]
    assert report(calmon(*recommend, *window, "1h"))["basis"]["predictions"] == 60
    assert "no prediction of model m" in refusal(calmon(*recommend, "--at", (now - timedelta(hours=3)).isoformat(), "--window", "1h"))
    made = calmon(*setting, *window, "2h")
    assert (made.returncode, "60 predictions (60 labelled" in made.stdout) == (0, True), made.stderr
    assert calmon("state", "digest", tmp_path / "state").stdout == digest

    with RunningCalmon(config) as running:
        running.wait_for("calmon_drift_confidence_psi", 0, model="m", model_version="v1")
        assert running.value("calmon_reference_info", reference="spring@1", reference_version="v1") == 1
        assert running.stop() == 0


def test_minutes_that_are_no_longer_kept_are_named(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events([f"a{number}" for number in range(40)]))
    config = write_config(tmp_path, [events], MODELS)
    text = config.read_text().replace("windows: [{name: 1h, length: 1h}]", "windows: [{name: day, length: 24h}]")
    config.write_text(text)
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", 80)
        assert running.stop() == 0
    now = datetime.now(UTC)
    words: list[str | Path] = ["recommend", "m", "v1", "-c", config, "--format", "json", "--at"]
    assert "a window whose length, lag and moment are whole hours is made of hours" in refusal(
        calmon(*words, now.isoformat(), "--window", "1h")
    )
    at = (now + timedelta(hours=2)).isoformat()
    assert report(calmon(*words, at, "--window", "24h"))["basis"]["predictions"] == 40
