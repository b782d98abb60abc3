"""A made-up stream that reaches every point of a checkpoint: dense first, then sparse over weeks, with all that goes wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_MS = 1_780_272_000_000  # 2026-06-01T00:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
CLASSES = ("no", "yes")


@dataclass(frozen=True, slots=True)
class Line:
    """A record.

    Attributes:
        arrives_ms: Where it stands in the stream.
        value: Its bytes.
        refused: The reason for which it must be refused, or None.
        needs_horizon: Whether that holds only where there is a horizon.
    """

    arrives_ms: int
    value: bytes
    refused: str | None = None
    needs_horizon: bool = False


def prediction(one: str, at_ms: int, confidence: float, version: str = "v1", model: str = "m", **more: object) -> dict[str, Any]:
    """A prediction of `yes` with a confidence, as an event."""
    return {
        "type": "prediction",
        "prediction_id": one,
        "model": model,
        "model_version": version,
        "predicted_at": at_ms,
        "probabilities": {"no": round(1 - confidence, 6), "yes": round(confidence, 6)},
        **more,
    }


def label(one: str, at_ms: int, value: str | None, **more: object) -> dict[str, Any]:
    """A label, as an event."""
    return {"type": "label", "prediction_id": one, "label": value, "labelled_at": at_ms, **more}


def encode(event: object) -> bytes:
    """An event as the bytes of its line."""
    return json.dumps(event, separators=(",", ":")).encode()


def write_lines(path: Path, values: Sequence[bytes]) -> Path:
    """Write records as a file."""
    path.write_bytes(b"".join(value + b"\n" for value in values))
    return path


def make_stream(dense: int = 700, sparse: int = 420) -> list[Line]:
    """The stream, in order of arrival; the same at every call.

    Args:
        dense: Ids in the first hour.
        sparse: Ids in the 24 days after it.
    """
    chance = random.Random(20_260_601)  # noqa: S311 - must be the same every time
    times = sorted(chance.randrange(40 * MINUTE_MS) for _ in range(dense))
    times += sorted(2 * HOUR_MS + chance.randrange(24 * DAY_MS) for _ in range(sparse))
    lines = [line for number, offset in enumerate(times) for line in _of_id(chance, f"id-{number:05d}", START_MS + offset)]
    return sorted(lines, key=lambda line: line.arrives_ms)


def _of_id(chance: random.Random, one: str, at_ms: int) -> Iterator[Line]:
    """Everything that comes of one id."""
    groups = {"region": chance.choice(("eu", "us", "asia")), "shop": f"s{chance.randrange(60)}"}
    event = prediction(one, at_ms, chance.uniform(0.5, 1), groups=groups, ood_score=chance.gauss(0, 1))
    yield Line(at_ms, encode(event))
    if chance.random() < 0.3:
        yield Line(at_ms + 1, encode({**event, "model_version": "v2", "accepted": chance.random() < 0.7}))
    luck = chance.random()
    if luck < 0.03:
        yield Line(at_ms + 2, encode(event))
    elif luck < 0.05:
        yield Line(at_ms + 2, encode({**event, "ood_score": 9.5}), "conflicting_prediction")
    elif luck < 0.08:
        yield Line(at_ms + 2, encode(event)[: chance.randrange(1, 60)], "bad_json")
    elif luck < 0.09:
        yield Line(at_ms + 2, b'{"type":"label","prediction_id":"\xff\xfe"}', "bad_json")
    elif luck < 0.11:
        yield Line(at_ms + 2, encode({"type": "label", "prediction_id": one, "labelled_at": at_ms}), "missing_label")
    elif luck < 0.18 and at_ms > START_MS + 10 * DAY_MS:
        yield Line(at_ms + 2, encode(label(f"old-{one}", at_ms - 9 * DAY_MS, "yes")), "expired", needs_horizon=True)
    yield from _labels(chance, one, at_ms)


def _labels(chance: random.Random, one: str, at_ms: int) -> Iterator[Line]:
    luck = chance.random()
    if luck < 0.1:
        return
    delay_ms = chance.randrange(20 * MINUTE_MS) if luck < 0.7 else chance.randrange(40 * HOUR_MS)
    if luck > 0.95:
        delay_ms = 3 * DAY_MS  # later than the horizon of the tests that have one
    labelled_at = at_ms - 30_000 if luck > 0.9 and luck <= 0.95 else at_ms + delay_ms
    value = chance.choice(CLASSES)
    yield Line(labelled_at, encode(label(one, labelled_at, value)))
    luck = chance.random()
    if luck < 0.05:
        yield Line(labelled_at + 1, encode(label(one, labelled_at, value)))
    elif luck < 0.1:
        other = CLASSES[1 - CLASSES.index(value)]
        yield Line(labelled_at + 1, encode(label(one, labelled_at, other)), "conflicting_label")
    elif luck < 0.15:
        later = labelled_at + chance.randrange(HOUR_MS)
        yield Line(later, encode(label(one, later, CLASSES[1 - CLASSES.index(value)], revision=1)))
    elif luck < 0.18:
        yield Line(labelled_at + 5, encode(label(one, labelled_at + 5, None, model="m", model_version="v1")))
    elif luck < 0.21:
        yield Line(labelled_at + 5, encode(label(one, labelled_at + 5, None)))
