"""A month of two versions: days and nights, weekends without labels, labels that come late, errors that are found sooner.

`perfect` is right as often as it says. Its twin is so until day 12; from then on it is right with probability 1 - sqrt(1 - c).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from monitor.demo.replay import Recording
from monitor.duration import DAY_MS, HOUR_MS
from tests.recovery.stream import START_MS, encode, label, prediction

DAYS = 30
TURNS_DAY = 12
BEGIN_MS = START_MS  # a Monday
TURNS_MS = BEGIN_MS + TURNS_DAY * DAY_MS
END_MS = BEGIN_MS + DAYS * DAY_MS
WEEKDAYS = 5
OFFICE_OPENS_MS = 8 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Traffic:
    """How much there is.

    Attributes:
        per_hour: Predictions of a version, on average over a day.
        never: Share of predictions that get no label.
        late: Share whose label comes after 2 to 6 days.
    """

    per_hour: float = 40.0
    never: float = 0.02
    late: float = 0.03


def record(seed: int, traffic: Traffic) -> list[Recording]:
    """Predictions and labels as two logs, each in the order of arrival."""
    chance = np.random.default_rng(seed)
    predictions: list[tuple[int, bytes]] = []
    labels: list[tuple[int, bytes]] = []
    for version in ("perfect", "twin"):
        for hour in range(DAYS * 24):
            busy = 1 + 0.8 * math.sin((hour % 24 - 9) / 24 * 2 * math.pi)
            weekend = (hour // 24) % 7 >= WEEKDAYS
            count = int(chance.poisson(traffic.per_hour * busy * (0.5 if weekend else 1)))
            for offset_ms in sorted(chance.integers(0, HOUR_MS, count).tolist()):
                at_ms = BEGIN_MS + hour * HOUR_MS + offset_ms
                one = f"{version}-{len(predictions):07d}"
                confidence = round(float(chance.uniform(0.5, 0.999)), 6)
                bad = version == "twin" and at_ms >= TURNS_MS
                right = chance.random() < (1 - math.sqrt(1 - confidence) if bad else confidence)
                predictions.append((at_ms, encode(prediction(one, at_ms, confidence, version, "credit"))))
                arrives_ms = _label_ms(chance, at_ms, right, traffic)
                if arrives_ms is not None:
                    labels.append((arrives_ms, encode(label(one, arrives_ms, "yes" if right else "no"))))
    return [_recording("predictions", predictions), _recording("labels", labels)]


def _label_ms(chance: np.random.Generator, at_ms: int, right: bool, traffic: Traffic) -> int | None:
    """When the label comes: errors are found sooner, nobody works at weekends, some come late, some never."""
    luck = chance.random()
    if luck < traffic.never:
        return None
    delay_h = float(chance.lognormal(math.log(8 if right else 3), 0.5))
    if luck < traffic.never + traffic.late:
        delay_h = float(chance.uniform(48, 144))
    arrives_ms = at_ms + int(delay_h * HOUR_MS)
    day = (arrives_ms - BEGIN_MS) // DAY_MS
    if day % 7 >= WEEKDAYS:
        monday = day + 7 - day % 7
        arrives_ms = BEGIN_MS + monday * DAY_MS + OFFICE_OPENS_MS + int(chance.integers(0, 2 * HOUR_MS))
    return arrives_ms


def _recording(name: str, lines: list[tuple[int, bytes]]) -> Recording:
    lines = sorted(lines)
    return Recording(name, [line for _, line in lines], np.array([at_ms for at_ms, _ in lines], dtype=np.int64))
