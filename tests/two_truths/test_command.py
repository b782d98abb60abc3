"""`calmon backfill remote-write` and `openmetrics` as a user has them: words, summaries, exit codes, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from monitor.cli import main
from tests.integration.running import CALMON, ROOT, calmon
from tests.recovery.stream import HOUR_MS
from tests.services.prometheus import PrometheusServer
from tests.two_truths.front import STALL, Front
from tests.two_truths.past import MODEL, MOMENTS, VERSION, Past

FEW = MOMENTS[20:26]


def words(past: Past, url: str, *more: str) -> list[str]:
    span = ("--step", "1h", "--from", str(FEW[0]), "--to", str(FEW[-1]))
    return ["backfill", "remote-write", MODEL, VERSION, "-c", str(past.config), "--window", "12h:2h", *span, "--url", url, *more]


def test_written_once(past: Past, prometheus: PrometheusServer, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--metrics", "accuracy,ece")
    first = calmon(*words(past, prometheus.url, *few))
    assert (first.returncode, first.stderr) == (0, "")
    stored = json.loads(prometheus.raw('{__name__=~"calmon_backfill_.+"}', FEW[0] - HOUR_MS, FEW[-1] + HOUR_MS))["data"]["result"]
    assert {series["metric"]["window"] for series in stored} == {"day"}, "the configured window of that length and lag"
    samples = sum(len(series["values"]) for series in stored)
    assert samples >= 2 * len(FEW)
    assert f"revision 1: {samples} samples written and read back equal, 0 were there" in first.stdout
    assert main(words(past, prometheus.url, *few)) == 0
    assert f"revision 1: nothing to write, all {samples} samples were there" in capsys.readouterr().out
    assert main(words(past, prometheus.url, "--window-name", "mine", "--metrics", "accuracy")) == 0
    assert prometheus.query(f'calmon_backfill_accuracy_ratio{{window="mine",segment="all"}} @ {FEW[0] / 1000}')


def test_interrupted_and_run_again(past: Past, prometheus: PrometheusServer, capsys: pytest.CaptureFixture[str]) -> None:
    with Front(prometheus.url, [STALL]) as front:
        running = subprocess.Popen([*CALMON, *map(str, words(past, front.url))], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert front.stalled.wait(60)
        running.send_signal(signal.SIGINT)
        out, error = running.communicate(timeout=60)
    assert (running.returncode, out, error.decode().strip()) == (130, b"", "calmon: interrupted")
    assert main(words(past, prometheus.url)) == 0
    assert "revision 1: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--url", "prometheus:9090"), 2, "--url prometheus:9090: must begin with http:// or https:// and a host"),
        (("--url", "http://me:hidden@prometheus"), 2, "--url: must not hold a user or password"),
        (("--metrics", "eec"), 2, "--metrics eec: "),
        (("--window", "90s"), 2, "--window 90s: "),
        (("--step", "30s"), 2, "--step 30s: "),
        (("--from", "2026-06-01T00:00:00"), 2, "--from 2026-06-01T00:00:00: naive_time"),
        (("--to", "2020-01-01T00:00:00Z"), 2, "it is after --to 2020-01-01T00:00:00Z"),
        (("--username", "me"), 2, "--username me: its password is missing"),
        (
            ("--bearer-token-file", "/no/such/file"),
            2,
            "--bearer-token-file: the file /no/such/file cannot be read: No such file",
        ),
        (("--state", "/no/such/state"), 1, "there is no calmon state in /no/such/state"),
    ],
)
def test_wrong_words(past: Past, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], code: int, said: str) -> None:
    assert main(words(past, "http://127.0.0.1:1", *more)) == code
    out, error = capsys.readouterr()
    assert out == ""
    assert said in error
    assert "hidden" not in error


def test_unknown_versions_are_named(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    spoken = words(past, "http://127.0.0.1:1")
    for place, said in ((2, "no prediction of model x"), (3, "no prediction of version x of model m")):
        assert main([*spoken[:place], "x", *spoken[place + 1 :]]) == 1
        assert said in capsys.readouterr().err


def test_panes_that_are_not_kept_are_said(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(past, "http://127.0.0.1:1", "--window", "5h:17m")) == 1
    said = capsys.readouterr().err
    assert "panes are kept by the minute from " in said
    assert "the finest step is 1h" in said
