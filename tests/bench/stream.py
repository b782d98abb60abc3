"""A synthetic stream for benchmarks: predictions and labels 1:1, three group attributes, a fifth of the labels days late."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from pathlib import Path

START_MS = 1_767_225_600_000
_SPACING_MS = 864
_DAY_MS = 86_400_000
_GROUPS = {"region": 8, "device": 5, "plan": 3}


def write_stream(path: Path, predictions: int, ordered: bool, seed: int) -> None:
    """Write `predictions` predictions and as many labels in order of arrival; ids in time order or random."""
    with path.open("wb") as file:
        file.writelines(_records(predictions, ordered, random.Random(seed)))  # noqa: S311 - reproducible, not secret


def _records(predictions: int, ordered: bool, rng: random.Random) -> Iterator[bytes]:
    waiting: list[tuple[int, str, str]] = []
    at = START_MS
    for number in range(predictions):
        at += rng.randrange(2 * _SPACING_MS)
        while waiting and waiting[0][0] <= at:
            yield _label(*heapq.heappop(waiting))
        one = f"{at:012x}-{number:012x}" if ordered else f"{rng.getrandbits(100):025x}"
        p = round(0.5 + rng.random() / 2, 6)
        groups = ",".join(f'"{name}":"{name}-{rng.randrange(size)}"' for name, size in _GROUPS.items())
        body = f'"probabilities":{{"no":{1 - p:.6f},"yes":{p}}},"ood_score":{rng.gauss(0, 1):.5f},"groups":{{{groups}}}'
        head = f'"prediction_id":"{one}","model":"credit","model_version":"v{rng.randrange(2)}","predicted_at":{at}'
        yield f'{{"type":"prediction",{head},{body}}}\n'.encode()
        late = rng.random() < 0.2
        delay = rng.randrange(_DAY_MS, 8 * _DAY_MS) if late else rng.randrange(1_800_000)
        heapq.heappush(waiting, (at + delay, one, "yes" if rng.random() < p else "no"))
    while waiting:
        yield _label(*heapq.heappop(waiting))


def _label(at: int, one: str, label: str) -> bytes:
    return f'{{"type":"label","prediction_id":"{one}","label":"{label}","labelled_at":{at}}}\n'.encode()
