"""What is known now, as blocks that promtool makes of `calmon backfill openmetrics`."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from monitor.cli import main
from monitor.export.publisher import Published
from tests.integration.running import CALMON, ROOT, calmon
from tests.recovery.stream import HOUR_MS
from tests.services.prometheus import PrometheusServer
from tests.two_truths.conftest import AGE, RECEIVES, Known, Publishers, Served, make_blocks, write_now
from tests.two_truths.past import BEGIN_MS, MODEL, MOMENTS, VERSION, Past
from tests.two_truths.test_publisher import END_MS, LIVE, at_each_step

LOOKBACK_MS = 5 * 60 * 1000
WORDS = ("backfill", "openmetrics", MODEL, VERSION, "--window", "12h:2h", "--step", "1h")


def words(past: Path, file: Path, *more: str) -> list[str | Path]:
    span = ("--from", str(MOMENTS[0]), "--to", str(MOMENTS[-1]))
    return [*WORDS, *span, "-c", past, "--revision", "3", "-o", file, *more]


@pytest.fixture(scope="module")
def text(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "backfill.txt"
    done = calmon(*words(past.config, file))
    assert (done.returncode, done.stderr) == (0, "")
    return file


def test_imported_beside_what_was_shown(known: Known, shown: Path, text: Path, tmp_path: Path) -> None:
    blocks = Path(shutil.copytree(shown, tmp_path / "blocks"))
    with PrometheusServer([], blocks=blocks) as prometheus:
        before = prometheus.raw(LIVE, BEGIN_MS, END_MS)
    for _ in range(2):  # importing twice changes nothing
        make_blocks(text, blocks)
        with PrometheusServer([], blocks=blocks) as prometheus:
            assert at_each_step(prometheus, 3) == known
            assert prometheus.raw(LIVE, BEGIN_MS, END_MS) == before
            # Text carries no staleness markers: a value is found as long as Prometheus looks back, and no longer.
            last = known[MOMENTS[-1]]
            for wait_ms, found in ((LOOKBACK_MS - 1, len(last)), (LOOKBACK_MS + 1, 0)):
                for at_ms in (MOMENTS[3], MOMENTS[-1]):
                    count = f'count({{__name__=~"calmon_backfill_.+"}} @ {(at_ms + wait_ms) / 1000:.3f}) or vector(0)'
                    assert prometheus.query(count)[0][1] == (len(known[at_ms]) if found else 0)


def test_remote_write_goes_on_from_what_was_imported(
    past: Past, known: Known, text: Path, served: Served, publisher: Publishers, tmp_path: Path
) -> None:
    make_blocks(text, tmp_path / "served")
    with served(RECEIVES, out_of_order=AGE) as prometheus:
        write_now(prometheus)
        total = sum(map(len, known.values()))
        assert publisher(prometheus).publish(past.scope, past.moments()) == Published(3, 0, total)


def test_times_within_a_second_are_kept(past: Past, tmp_path: Path) -> None:
    first_ms = MOMENTS[10] + 371
    file = tmp_path / "odd.txt"
    span = ("--from", str(first_ms), "--to", str(first_ms + HOUR_MS))
    assert main([*WORDS, *span, "-c", str(past.config), "--revision", "1", "-o", str(file)]) == 0
    make_blocks(file, tmp_path / "blocks")
    with PrometheusServer([], blocks=tmp_path / "blocks") as prometheus:
        stored = prometheus.query(f'timestamp(calmon_backfill_predictions{{segment="all"}} @ {(first_ms + 10_000) / 1000:.3f})')
        assert [value for _, value in stored] == [first_ms / 1000]


def test_a_full_disk_leaves_nothing_and_takes_nothing(past: Past, text: Path, tmp_path: Path) -> None:
    file = tmp_path / "backfill.txt"
    most = text.stat().st_size // 2
    for old in (None, b"what was there"):
        if old is not None:
            file.write_bytes(old)
        done = subprocess.run(
            [*CALMON, *map(str, words(past.config, file))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        )
        assert done.returncode == 1
        assert f"cannot write {file}: File too large; nothing of it is left" in done.stderr
        assert [path.read_bytes() for path in tmp_path.iterdir()] == ([] if old is None else [old])
