"""Archived files read again: under other settings, with labels that came later, and as often as one likes."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.pipeline.digest import digest, dump
from tests.golden.stream import PACKAGED
from tests.integration.running import CALMON, ROOT, wait_until
from tests.recovery.stream import make_stream, write_lines
from tests.recovery.test_kill import quick_folder
from tests.recovery.victim import AFTER_EVERYTHING_MS
from tests.replay.scratch import configure, differing, evaluated, held, held_back, metrics, replayed, said

STREAMS = {name: PACKAGED / f"{name}.ndjson.gz" for name in ("flights", "employment")}
USUAL = {"groups": ["group"], "ood_threshold": -0.57385, "confidence_threshold": 0.8}
OTHER = {**USUAL, "bins": 20, "nll_clip": 0.05, "csr_clip": 0.02, "classwise": True}
LINES = [line.value for line in make_stream()]


def lines_of(stream: str) -> list[bytes]:
    return gzip.decompress(STREAMS[stream].read_bytes()).splitlines()


def counts_in(text: str, begin: str) -> int:
    """Sum of the counts in the line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(begin)]
    return sum(int(number.replace(",", "")) for number in re.findall(r"(?<![\w.])[\d,]+(?= \w)", line.partition(":")[2]))


def test_twenty_bins_and_other_clips_are_those_of_a_fresh_evaluation(tmp_path: Path) -> None:
    files = [STREAMS["flights"]]
    usual, other = configure(tmp_path / "usual", USUAL), configure(tmp_path / "other", OTHER)
    wanted, wanted_digest = evaluated(other, *files)
    text = replayed(other, tmp_path / "scratch", *files)
    assert metrics(tmp_path / "scratch", other) == wanted
    assert held(tmp_path / "scratch").digest == wanted_digest
    assert f"digest: {wanted_digest}\n" in text
    before, _ = evaluated(usual, *files)
    moved = differing(before, wanted)
    assert {"ece", "nll", "nll_clipped", "nll_multi", "csr", "csr_sigma", "csr_clipped", "bins"} <= moved
    assert not {"accuracy", "brier", "auroc_error_approximate"} & moved
    assert len(wanted["flights@raw"]["bins"]) == 20


@pytest.mark.parametrize("stream", STREAMS)
def test_labels_that_come_later_count_as_if_they_had_been_in_time(tmp_path: Path, stream: str) -> None:
    """Two fifths of them, in a file of their own; then they are archived, and the same command takes them in."""
    config = configure(tmp_path, USUAL)
    kept, back = held_back(lines_of(stream), 0.4, b"any")
    assert len(back) > 5_000
    archive = [write_lines(tmp_path / "archive.ndjson", kept), tmp_path / "later.ndjson.gz"]
    into = tmp_path / "scratch"
    first = replayed(config, into, archive[0])
    early = held(into)
    archive[1].write_bytes(gzip.compress(b"".join(line + b"\n" for line in back)))
    assert f"{len(back):,} records and {len(kept):,} before" in replayed(config, into, *archive)
    wanted, wanted_digest = evaluated(config, STREAMS[stream])
    late = held(into)
    assert late.digest == wanted_digest != early.digest
    assert metrics(into, config) == wanted
    assert (early.consumed, late.consumed) == (len(kept), len(kept) + len(back))
    assert early.digest in first


def test_what_is_appended_to_a_file_is_read_by_the_same_command(tmp_path: Path) -> None:
    config = configure(tmp_path, {})
    file, into = tmp_path / "events.ndjson", tmp_path / "scratch"
    for end in (300, 900, len(LINES)):
        _append(file, LINES[held(into).consumed if file.exists() else 0 : end])
        replayed(config, into, file)
        assert held(into).consumed == end
    assert held(into).digest == evaluated(config, file)[1]


def _append(file: Path, lines: list[bytes]) -> None:
    with file.open("ab") as end:
        end.writelines(line + b"\n" for line in lines)


def test_done_twice_there_is_nothing_to_do(tmp_path: Path) -> None:
    config, file, into = configure(tmp_path, {}), write_lines(tmp_path / "events.ndjson", LINES), tmp_path / "scratch"
    replayed(config, into, file)
    once = held(into)
    text = replayed(config, into, file)
    assert f"nothing to do, all {len(LINES):,} records are in it" in text
    assert f"digest: {once.digest}" in text
    assert held(into) == once


def test_a_replay_is_the_same_from_wherever_its_files_are_named(tmp_path: Path) -> None:
    config, file, into = configure(tmp_path, {}), write_lines(tmp_path / "events.ndjson", LINES), tmp_path / "scratch"
    replayed(config, into, file)
    words = [*CALMON, "backfill", "replay", "-c", str(config), "--into", "scratch", "events.ndjson"]
    result = subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False)
    assert "nothing to do" in result.stdout, result.stderr


def test_what_it_says_adds_up(tmp_path: Path) -> None:
    config, file, into = configure(tmp_path, {}), write_lines(tmp_path / "events.ndjson", LINES), tmp_path / "scratch"
    text = replayed(config, into, file)
    there = held(into)
    assert sum(counts_in(text, begin) for begin in ("predictions:", "labels:", "unreadable:")) == len(LINES) == sum(there.outcomes.values())
    refused = sum(there.refused.values())
    assert counts_in(text.replace("; each with its reason", ":"), "refused:") == refused == len(there.quarantine) > 0
    wanted = {(entry["reason"], entry["offset"]) for entry in map(json.loads, there.quarantine)}
    assert len(wanted) == refused
    models, _ = evaluated(config, file)
    for name, values in models.items():
        model, version = name.split("@")
        assert f"{model} {version}: {values['predictions']:,} predictions, {values['labelled']:,} with a label\n" in text
    history, state_digest = [line.removeprefix("next: calmon ").split() for line in text.splitlines() if line.startswith("next: ")]
    assert said(*state_digest) == (0, f"{there.digest}\n", "")
    code, out, err = said(*history, "--metrics", "predictions", "--format", "csv")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 20 * 24  # as many hours as the stream has, and more


@pytest.mark.parametrize("history", ["40d", "7d"])
def test_with_a_horizon_it_comes_to_what_the_service_comes_to(tmp_path: Path, history: str) -> None:
    """Rows expire, and with the shorter history panes do, at the same places of the log."""
    file = write_lines(tmp_path / "events.ndjson", LINES)
    config = configure(tmp_path, {"groups": ["region", "shop"]}, source={"files": [str(file)]}, state={"horizon": "2d", "history": history})
    text = replayed(config, tmp_path / "scratch", file)
    live = Engine(load_config(config), ManualClock(AFTER_EVERYTHING_MS))
    live.runner.start()
    while not live.source.exhausted:
        live.runner.step()
    wanted = digest(dump([live.shard])), live.shard.account.outcomes, live.shard.account.refused
    live.close()
    assert held(tmp_path / "scratch")[:3] == wanted
    assert wanted[2][("label", "expired")] > 0
    assert f"digest: {wanted[0]}" in text
    assert wanted[0] != evaluated(config, file)[1]


def test_ctrl_c_ends_it_after_its_batch_and_the_same_command_goes_on() -> None:
    file = STREAMS["flights"]
    with quick_folder() as folder:
        config, into = configure(folder, USUAL), folder / "scratch"
        words = [*CALMON, "backfill", "replay", "-c", str(config), "--into", str(into), str(file)]
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: process.poll() is not None or (into / "CALMON").exists(), "it has begun")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "run the same command again to go on" in out
        assert "digest" not in out
        read = held(into).consumed
        assert f"{into}: {read:,} records, " in out
        assert read % 5_000 == 0
        assert f" and {read:,} before" in replayed(config, into, file) or read == 0
        assert held(into).digest == evaluated(config, file)[1]
