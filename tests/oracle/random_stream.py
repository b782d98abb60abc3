"""Random streams for the product, and their events as lists: what an independent computation of the metrics starts from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

START_MS = 1_780_272_000_000
CLASSES = ("a", "b", "c", "d", "e")
GROUPS = ("g0", "g1", "g2", "g3", "small")
KINDS = ("spread", "sharp", "rounded", "edges", "sure", "few")
"""How confidences look: anywhere, next to 0 and 1, on twentieths, on fifteenths (edges of bins), mostly 0 and 1, or on six values."""

SIZES = (1200, 400, 60, 2, 1, 400)


@dataclass(frozen=True)
class Event:
    """A prediction with what became of it; `domain` and `label` are the final ones."""

    vector: Mapping[str, float] | None
    predicted: str
    confidence: float
    label: str | None
    score: float | None
    domain: str | None
    group: str | None
    accepted: bool | None

    @property
    def correct(self) -> bool:
        """Whether the label is the predicted class."""
        return self.label == self.predicted


@dataclass(frozen=True)
class Stream:
    """Events, the lines that say so, and a configuration in the golden cases' words."""

    seed: int
    classes: tuple[str, ...]
    events: list[Event] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def labelled(self) -> list[Event]:
        """Events with a label."""
        return [event for event in self.events if event.label is not None]

    @property
    def edges(self) -> list[float]:
        """Report edges of the confidence."""
        count = self.config.get("bins", 15)
        return list(self.config.get("edges") or [k / count for k in range(count + 1)])

    @property
    def used(self) -> list[Event]:
        """Events with a label whose confidence lies inside the report edges."""
        return [event for event in self.labelled if self.edges[0] <= event.confidence <= self.edges[-1]]

    def accepted(self, event: Event) -> bool | None:
        """What the service said, else what the configured threshold says."""
        threshold = self.config.get("confidence_threshold")
        if event.accepted is not None or threshold is None:
            return event.accepted
        return bool(event.confidence >= threshold)


def random_stream(seed: int) -> Stream:
    """A stream; its size, number of classes and kind follow from the seed, all else is random."""
    rng = np.random.default_rng(seed)
    kind, size = KINDS[seed % len(KINDS)], SIZES[seed // len(KINDS) % len(SIZES)]
    classes = CLASSES[: (2, 3, 5)[(seed + seed // len(KINDS)) % 3]]
    shares = rng.dirichlet(np.full(len(classes), 5.0))
    edges = [None, None, [0.3, 0.5, 0.7, 0.95]][int(rng.integers(3))]
    config: dict[str, Any] = {
        "positive_class": "a",
        "classwise": True,
        **({"bins": int(rng.choice([1, 10, 15, 20]))} if edges is None else {"edges": edges}),
        "positive_edges": [[0.0, 0.25, 0.5, 1.0], [0.05, 0.3, 0.9]][int(rng.integers(2))],
        "min_group_count": int(rng.choice([1, 20])),
        "ood_high_is": ["in_distribution", "out_of_distribution"][int(rng.integers(2))],
        "ood_threshold": float(rng.choice([0.0, 0.5])),
        "confidence_threshold": [None, 0.7][int(rng.integers(2))],
        "target_prior": dict(zip(classes, shares.tolist(), strict=True)),
    }
    config["target_prior"][classes[-1]] = 1.0 - sum(shares.tolist()[:-1])
    stream = Stream(seed, classes, config=config)
    single = rng.random() < 0.15
    for number in range(size):
        event, lines = _event(rng, kind, classes, number, single)
        stream.events.append(event)
        stream.lines.extend(lines)
    return stream


def _vector(rng: np.random.Generator, kind: str, count: int) -> list[float]:
    if kind in ("rounded", "edges"):
        steps = 20 if kind == "rounded" else 15
        first = int(rng.integers(0, steps + 1)) / steps
    elif kind == "few":
        first = float(rng.choice([0.0, 0.03, 0.21, 0.5, 0.92, 1.0]))
    elif kind == "sure":
        first = float(rng.choice([0.0, 1.0, 1.0, 1.0, 1 - 2**-20, 0.8]))
    else:
        parts = rng.dirichlet(np.full(count, 1.0 if kind == "spread" else 0.1))
        return [float(part) for part in parts]
    rest = [(1 - first) * share for share in ([1.0] + [0.0] * (count - 2) if rng.random() < 0.5 else [1 / (count - 1)] * (count - 1))]
    vector = [first, *rest]
    rng.shuffle(vector)
    return vector


def _event(rng: np.random.Generator, kind: str, classes: tuple[str, ...], number: int, single: bool) -> tuple[Event, Iterator[str]]:
    numbers = _vector(rng, kind, len(classes))
    vector = dict(zip(classes, numbers, strict=True))
    best = max(numbers)
    predicted = next(name for name in classes if vector[name] == best)
    if rng.random() < 0.05:
        predicted = str(rng.choice([name for name in classes if vector[name] > 0]))
    group = [None, *GROUPS][int(rng.choice(6, p=[0.1, 0.3, 0.25, 0.2, 0.14, 0.01]))]
    # Labels follow the probabilities, but for a share of noise that one group has more of.
    noise = 0.4 if group == "g1" else 0.1
    shares = np.array(numbers) / sum(numbers) * (1 - noise) + noise / len(classes)
    label = "a" if single else str(rng.choice(classes, p=shares / shares.sum()))
    if rng.random() < 0.03:
        label = "nowhere"
    said = [None, "id", "camera-7"][int(rng.integers(3))]
    overruled = [None, None, "id", "camera-8"][int(rng.integers(4))]
    labelled = bool(rng.random() < 0.85)
    true_domain = overruled if labelled and overruled is not None else said
    score = float(rng.normal(0.8 if true_domain == "id" else 0.0, 1.0))
    score = round(score, 1) if rng.random() < 0.5 else score
    event = Event(
        vector if rng.random() < 0.9 else None,
        predicted,
        vector[predicted],
        label if labelled else None,
        score if rng.random() < 0.9 else None,
        true_domain,
        group,
        [None, bool(rng.random() < vector[predicted])][int(rng.integers(2))],
    )
    return event, event_lines(event, number, said, overruled)


def event_lines(event: Event, number: int, domain: str | None, overruled: str | None) -> Iterator[str]:
    """A prediction as it is sent, and its label if there is one.

    Args:
        event: What is to be said.
        number: Makes its id and its time.
        domain: What the prediction says of its domain.
        overruled: What the label says of it.
    """
    head = {"prediction_id": f"e-{number}", "model": "m", "model_version": "1"}
    record: dict[str, Any] = head | {
        "type": "prediction",
        "predicted_at": START_MS + number * 60_000,
        "predicted_class": event.predicted,
        "ood_score": event.score,
        "accepted": event.accepted,
        "groups": {} if event.group is None else {"group": event.group},
        "domain": domain,
    }
    record |= {"confidence": event.confidence} if event.vector is None else {"probabilities": event.vector}
    yield json.dumps({name: value for name, value in record.items() if value is not None})
    if event.label is not None:
        label = head | {"type": "label", "label": event.label, "labelled_at": START_MS + number * 60_000 + 1}
        yield json.dumps(label if overruled is None else label | {"domain": overruled})
