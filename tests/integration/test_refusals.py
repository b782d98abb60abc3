"""`calmon run` that must not start, or must stop: one clear line, the right exit code, nothing left running or lost."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.integration.running import CALMON, RunningCalmon, calmon, recent_events, refusal, wait_until, write_config
from tests.recovery.stream import make_stream, write_lines

LINES = [line.value for line in make_stream(dense=300, sparse=50)]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A file of events."""
    return write_lines(tmp_path / "events.ndjson", LINES)


def test_a_port_that_is_taken(events: Path, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        config_path = write_config(tmp_path, [events], f"http: {{port: {port}}}\n")
        said = refusal(calmon("run", "-c", config_path))
        assert said.startswith(f"calmon: cannot listen on 127.0.0.1:{port}: Address already in use; set http.address and http.port")
    assert calmon("state", "digest", tmp_path / "state").returncode == 0  # no one holds the state


def test_a_bad_configuration_names_every_fault_and_starts_nothing(events: Path, tmp_path: Path) -> None:
    config_path = write_config(tmp_path, [events], "defaults: {bin: 3, scheme: depth}\nmodels: {m: {classes: [yes, no]}}\n")
    result = calmon("run", "-c", config_path)
    assert (result.returncode, result.stdout) == (2, "")
    for part in ("defaults.bin", "did you mean bins?", "defaults.scheme", "models.m.classes[0]", "quote it"):
        assert part in result.stderr.replace("classes.0", "classes[0]"), part
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calmon.yaml", "events.ndjson"]


def test_no_files(tmp_path: Path) -> None:
    result = calmon("run", "-c", write_config(tmp_path, []))
    assert result.returncode == 2
    assert "source.files: name at least one NDJSON file" in result.stderr
    assert not (tmp_path / "state").exists()


def test_a_missing_configuration(tmp_path: Path) -> None:
    result = calmon("run", "-c", tmp_path / "missing.yaml")
    assert result.returncode == 2
    assert "missing.yaml" in result.stderr
    assert "no such file" in result.stderr


def test_a_missing_input_file(tmp_path: Path) -> None:
    config_path = write_config(tmp_path, [tmp_path / "missing.ndjson"], follow=False)
    assert refusal(calmon("run", "-c", config_path)) == f"calmon: {tmp_path / 'missing.ndjson'}: no such file"


def test_a_quarantine_that_cannot_be_written(events: Path, tmp_path: Path) -> None:
    config_path = write_config(tmp_path, [events], f"quarantine: {{file: {tmp_path / 'missing' / 'q.ndjson'}}}\n")
    assert "set quarantine.file to a file in a folder that exists" in refusal(calmon("run", "-c", config_path))


def test_a_quarantine_that_breaks_later_stops_the_service_and_nothing_is_lost(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", recent_events(["a"]))
    config_path = write_config(tmp_path, [events])
    quarantine = tmp_path / "state" / "quarantine.ndjson"
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", 2)
        quarantine.mkdir()
        with events.open("ab") as file:
            file.write(b"no json\n")
        assert running.process.wait(60) == 1
        assert "cannot write the quarantine" in running.log
        assert "Traceback" not in running.log
    assert "cannot write the quarantine" in refusal(calmon("run", "-c", config_path))
    quarantine.rmdir()
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", 3)
        assert running.stop() == 0
    assert quarantine.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("content", ["thesis.tex", "CALMON"])
def test_a_foreign_or_newer_state_directory_is_left_as_it_is(events: Path, tmp_path: Path, content: str) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / content).write_text("calmon-state 999\n")
    said = refusal(calmon("run", "-c", write_config(tmp_path, [events])))
    assert f"mv {state} {state}.old" in said
    assert [path.name for path in state.iterdir()] == [content]
    assert (state / content).read_text() == "calmon-state 999\n"


def test_a_state_in_use(events: Path, tmp_path: Path) -> None:
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path) as running:
        assert "is in use by another process: stop it first" in refusal(calmon("run", "-c", config_path))
        assert calmon("state", "digest", tmp_path / "state").returncode == 0, "who only looks needs no lock"
        running.wait_for("calmon_records_consumed_total", len(LINES))
        assert running.stop() == 0


def test_a_damaged_state(events: Path, tmp_path: Path) -> None:
    config_path = write_config(tmp_path, [events])
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(LINES))
        assert running.stop() == 0
    tables = sorted((tmp_path / "state" / "db").glob("*.sst"))
    assert tables != []
    for path in tables:
        data = bytearray(path.read_bytes())
        for place in range(100, len(data) // 2):
            data[place] ^= 0xFF
        path.write_bytes(bytes(data))
    before = {path: path.read_bytes() for path in tables}
    said = refusal(calmon("run", "-c", config_path))
    assert "Corruption" in said
    assert "move it away" in said
    assert {path: path.read_bytes() for path in tables} == before
    assert "Corruption" in refusal(calmon("state", "digest", tmp_path / "state"))


def test_a_directory_that_cannot_be_made(events: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    assert "cannot use the state directory" in refusal(calmon("run", "-c", write_config(tmp_path, [events])))
    assert (tmp_path / "state").read_text() == "in the way"


def test_a_full_disk_stops_the_service_and_the_next_start_goes_on(tmp_path: Path) -> None:
    # A limit on the size of files stands for the disk: writing fails in the middle of the stream.
    lines = [line.value for line in make_stream(dense=9000, sparse=50)]
    events = write_lines(tmp_path / "events.ndjson", lines)
    config_path = write_config(tmp_path, [events], follow=False)
    limited = ("sh", "-c", 'ulimit -f 1200 && exec "$@"', "sh", *CALMON)
    said = calmon("run", "-c", config_path, command=limited)
    assert said.returncode == 1
    errors = [line for line in said.stderr.splitlines() if line.startswith("calmon: cannot")]
    assert len(errors) == 1
    assert "cannot write the state in" in errors[0]
    assert "nothing of this batch was stored" in errors[0]
    assert "Traceback" not in said.stderr
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(lines))
        assert running.stop() == 0
    assert calmon("evaluate", events, "--digest").stdout.splitlines()[-1] + "\n" == calmon("state", "digest", tmp_path / "state").stdout


def test_an_input_that_is_replaced_without_follow_stops_the_service(tmp_path: Path) -> None:
    events = write_lines(tmp_path / "events.ndjson", LINES)
    config_path = write_config(tmp_path, [events], follow=False)
    with RunningCalmon(config_path) as running:
        running.wait_for("calmon_records_consumed_total", len(LINES))
        assert running.stop() == 0
    write_lines(events, LINES[:10])
    said = refusal(calmon("run", "-c", config_path))
    assert "is shorter" in said
    assert "start again with an empty state directory" in said


def test_a_health_check_of_a_running_service(events: Path, tmp_path: Path) -> None:
    with RunningCalmon(write_config(tmp_path, [events])) as running:
        wait_until(lambda: running.get("/-/ready")[0] == 200, "ready after the first tick")
        assert running.get("/-/healthy") == (200, "healthy\n")
        descriptors = len(os.listdir(f"/proc/{running.process.pid}/fd"))
        for _ in range(20):
            running.metrics()
        wait_until(lambda: len(os.listdir(f"/proc/{running.process.pid}/fd")) <= descriptors + 2, "scrapes leave no descriptors")
