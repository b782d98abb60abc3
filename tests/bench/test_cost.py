"""What a record costs, beside the least that it could cost; and that memory does not grow with the stream.

Run by `make bench`. Each figure is CPU (user + system, all threads) of a whole process; the two are run in turn and the
ratio is taken pair by pair, for these machines drift. Nothing here is asserted but that memory stays flat.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.stream import write_stream

ROOT = Path(__file__).parents[2]
PREDICTIONS = 200_000
PAIRS = 5
TARGETS = {"random": 2.0, "ordered": 2.5}


def measure(mode: str, stream: Path, directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.cost", mode, str(stream), str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.bench
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("order", ["random", "ordered"])
def test_cost_of_a_record(order: str, tmp_path: Path) -> None:
    stream = tmp_path / "stream.ndjson"
    write_stream(stream, PREDICTIONS, order == "ordered", seed=1)
    ratios, bare, whole = [], [], []
    for pair in range(PAIRS):
        least = measure("bare", stream, tmp_path / f"bare-{pair}")
        all_of_it = measure("whole", stream, tmp_path / f"whole-{pair}")
        bare.append(least["cpu_us"])
        whole.append(all_of_it["cpu_us"])
        ratios.append(all_of_it["cpu_us"] / least["cpu_us"])
    print(
        f"\n{order} ids: {statistics.median(ratios):.2f}x the bare cost (of {PAIRS} pairs: {min(ratios):.2f} to {max(ratios):.2f}; "
        f"aim {TARGETS[order]}x); CPU a record {statistics.median(whole):.1f} us beside {statistics.median(bare):.1f} us"
    )


@pytest.mark.bench
@pytest.mark.timeout(1800)
def test_memory_on_a_stream_ten_times_as_long(tmp_path: Path) -> None:
    peaks = []
    for factor in (2, 20):
        stream = tmp_path / f"stream-{factor}.ndjson"
        write_stream(stream, factor * PREDICTIONS, ordered=True, seed=2)
        peaks.append(measure("whole", stream, tmp_path / f"state-{factor}")["peak_kib"])
        stream.unlink()
    print(f"\npeak memory: {peaks[0] // 1024} MiB, on a stream ten times as long {peaks[1] // 1024} MiB: {peaks[1] / peaks[0]:.2f}x")
    assert peaks[1] <= 1.2 * peaks[0]


@pytest.mark.bench
@pytest.mark.timeout(1800)
def test_where_the_cost_goes(tmp_path: Path) -> None:
    stream = tmp_path / "stream.ndjson"
    write_stream(stream, PREDICTIONS, ordered=True, seed=1)
    found = measure("steps", stream, tmp_path / "state")
    print(f"\nCPU of the consumer's thread by step, us a record (ordered ids), {found['cpu_us']:.1f} in all:")
    for step, spent in found["steps_us"].items():
        print(f"  {step:12s} {spent:5.2f}")
