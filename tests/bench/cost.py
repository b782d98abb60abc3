"""One measured process: the whole pipeline, or the bare minimum that any such pipeline pays; prints one JSON line.

Bare is the same source, the same strict decode, and one get and one put of a row's usual size for each distinct id of a
batch, on the same store. CPU is user + system of the whole process, RocksDB's threads included, after start-up.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import parse_config
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Refusal
from monitor.pipeline.processor import Processor
from monitor.pipeline.runner import BATCH_RECORDS
from monitor.pipeline.shard import Shard
from monitor.pipeline.tick import Evaluator
from monitor.pipeline.upkeep import Upkeep
from monitor.sources.ndjson import NdjsonSource
from monitor.state import keys
from monitor.state.protocol import Changes
from monitor.state.rocks import RocksStore

_ROW_BYTES = 150
_TICK_BATCHES = 100


def cpu_s() -> float:
    """CPU seconds of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def whole(path: str, directory: str) -> int:
    """Run the pipeline over a file; returns the records read."""
    text = json.dumps(
        {
            "source": {"files": [path]},
            "state": {"directory": directory},
            "defaults": {"groups": ["region", "device", "plan"], "ood_threshold": 0.0, "confidence_threshold": 0.7},
        }
    )
    clock = ManualClock(0)
    engine = Engine(parse_config(text, "bench", {}), clock)
    engine.runner.start()
    batches = 0
    while not engine.source.exhausted:
        batches += bool(engine.runner.step())
        clock.set(max(engine.shard.account.newest_ms.values(), default=0))
        if batches % _TICK_BATCHES == 0:
            engine.evaluator.tick()
    records = engine.shard.account.consumed
    engine.close()
    return records


def bare(path: str, directory: str) -> int:
    """Decode, get and put; returns the records read."""
    store = RocksStore(Path(directory))
    decoder = Decoder(lambda model: None, HeadTable())
    source = NdjsonSource([path])
    source.start({})
    records = 0
    while not source.exhausted:
        for part in source.poll(BATCH_RECORDS, 0.0):
            decoded = decoder.decode_all(part.values, part.kind)
            ids = list({record.prediction_id: None for record in decoded if not isinstance(record, Refusal)})
            rows = [keys.row(one) for one in ids]
            store.get_many(rows)
            row = part.values[0][:_ROW_BYTES]
            store.commit(Changes(puts=[(key, row) for key in rows]))
            records += len(decoded)
    store.close()
    return records


STEPS = {
    "read": (NdjsonSource, "poll"),
    "decode": (Decoder, "decode_all"),
    "get rows": (Processor, "_rows"),
    "join": (Processor, "_join"),
    "put rows": (Processor, "_store_rows"),
    "sum": (Processor, "_deltas"),
    "stage": (Shard, "stage"),
    "commit": (RocksStore, "commit"),
    "upkeep": (Upkeep, "run"),
    "tick": (Evaluator, "tick"),
}


def steps(path: str, directory: str) -> tuple[int, dict[str, float]]:
    """Run the pipeline with a stopwatch around each step; returns the records read and CPU seconds by step."""
    spent = dict.fromkeys(STEPS, 0.0)

    def timed(step: str, work: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **named: object) -> object:
            began = time.thread_time()
            try:
                return work(*arguments, **named)
            finally:
                spent[step] += time.thread_time() - began

        return run

    for step, (owner, name) in STEPS.items():
        setattr(owner, name, timed(step, getattr(owner, name)))
    return whole(path, directory), spent


def main() -> None:
    """`cost.py whole|bare|steps FILE DIRECTORY`."""
    mode, path, directory = sys.argv[1:4]
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    began, clock = cpu_s(), time.perf_counter()
    found: dict[str, float] = {}
    if mode == "steps":
        records, found = steps(path, directory)
    else:
        records = {"whole": whole, "bare": bare}[mode](path, directory)
    spent = cpu_s() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.perf_counter() - clock
    by_step = {step: round(seconds_of / records * 1e6, 3) for step, seconds_of in found.items()}
    measured = {"mode": mode, "records": records, "cpu_us": spent / records * 1e6, "wall_s": seconds, "peak_kib": peak}
    print(json.dumps(measured | {"steps_us": by_step}))


if __name__ == "__main__":
    main()
