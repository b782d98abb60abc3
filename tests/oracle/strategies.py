"""Hypothesis strategies: event histories that collide on few ids, and moments at which to look at them.

A history is rich in late labels, corrections, withdrawals, duplicates, conflicts, scopes, several versions of an id, labels before
their predictions, confidences on edges and next to 1, and invalid records. Confidences stay away from values that fixed point cannot
tell from 0 or 1 (see `rounding`), and every id stays in one partition, as files must be written for `follow`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.oracle.events import MAX_BYTES
from tests.oracle.metrics import ModelConfig

START_MS = 1_780_272_000_000  # 2026-06-01T00:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

DEFAULTS = ModelConfig(groups=("region",), confidence_threshold=0.8, ood_threshold=0.5)
MODELS = {
    "m": ModelConfig(
        classes=("a", "b", "c"),
        bins=10,
        groups=("region", "device"),
        max_group_values=2,
        min_group_count=2,
        selective_risk_budget=0.25,
        ood_threshold=-0.5,
        ood_high_is="out_of_distribution",
    ),
    "n": ModelConfig(edges=(0.25, 0.5, 0.75, 0.9)),
}
CLASSES = {"m": ("a", "b", "c")}
"""What the histories are written for: "m" may send lists, "n" has labelled events outside its edges, "o" has the defaults."""

Record: TypeAlias = dict[str, Any]

TIME_KEYS = {"prediction": "predicted_at", "label": "labelled_at"}
IDS = ("p", "q", "r", "s", "t", "\u00fc-6")
VERSIONS = (("m", "1"), ("m", "2"), ("n", "1"), ("o", "1"))
SCOPES: tuple[tuple[str | None, str | None], ...] = (
    (None, None),
    (None, None),
    ("m", None),
    ("n", None),
    ("m", "1"),
    ("m", "2"),
    ("o", "9"),
)
CONFIDENCES = (0.0, -0.0, 1.0, 0.1, 0.3, 0.29999999999999993, 0.5, 0.6, 0.75, 0.8, 0.9, 1 / 15, 5 / 15, 13 / 15)
NEAR_ONE = (1 - 1e-7, 1 - 5e-7, 1 - 1e-6, 1 - 1.5e-6, 1 - 1e-5)
CLASS_NAMES = ("a", "b", "c", "d", "\u00e9")
GROUPS: tuple[dict[str, str] | None, ...] = (
    None,
    {},
    {"region": "eu"},
    {"region": "us", "device": "phone"},
    {"region": "asia", "device": "desk"},
    {"device": "watch"},
    {"region": "eu", "device": "phone", "unwatched": "x"},
)
DELAYS_MS = (-HOUR_MS, 0, 1, HOUR_MS, 12 * HOUR_MS, DAY_MS, DAY_MS + 1, 2 * DAY_MS, 2 * DAY_MS + 1, 3 * DAY_MS)
WITHIN_DAY_MS = (0, 1, MINUTE_MS - 1, MINUTE_MS, HOUR_MS - 1, HOUR_MS, 6 * HOUR_MS, 12 * HOUR_MS + 30_500, 18 * HOUR_MS, DAY_MS - 1)


@dataclass(frozen=True)
class History:
    """Records in order of arrival and the moments at which a clock looks at them."""

    records: list[tuple[int, bytes]]
    moments_ms: list[int]


def _prediction(**changes: object) -> bytes:
    record: Record = {
        "type": "prediction",
        "prediction_id": "p",
        "model": "m",
        "model_version": "1",
        "predicted_at": START_MS,
        "confidence": 0.5,
        "predicted_class": "a",
    }
    return json.dumps(record | changes).encode()


def _label(**changes: object) -> bytes:
    return json.dumps({"type": "label", "prediction_id": "p", "label": "a", "labelled_at": START_MS} | changes).encode()


def _nested(depth: int) -> list[object]:
    return [_nested(depth - 1)] if depth > 1 else []


TOO_LARGE = _prediction(note="x" * MAX_BYTES)

INVALID: tuple[tuple[str, bytes], ...] = (
    ("too_deep", _prediction(note=_nested(8))),
    ("bad_json", b'{"type":"prediction"'),
    ("bad_json", _prediction(note=float("nan"))),
    ("bad_json", b'{"type":"label","type":"label","prediction_id":"p","label":"a","labelled_at":1780272000000}'),
    ("bad_json", b'["prediction"]'),
    ("bad_json", b'{"type":"\xff"}'),
    ("unknown_type", _prediction(type="huh")),
    ("unknown_type", b'{"prediction_id":"p","label":"a","labelled_at":1780272000000}'),
    ("missing_id", _prediction(prediction_id="")),
    ("missing_id", _label(prediction_id=7)),
    ("missing_model", _prediction(model=None)),
    ("missing_model", _label(model="")),
    ("missing_model", _label(model_version="1")),
    ("missing_version", _prediction(model_version=2)),
    ("missing_version", _label(model="m", model_version="")),
    ("bad_text", _prediction(prediction_id="x" * 257)),
    ("bad_text", _prediction(predicted_class="a\u0085")),
    ("bad_text", _prediction(groups={"region": "\ud800"})),
    ("bad_text", _label(label="\u0000")),
    ("bad_text", _label(domain="\u007f")),
    ("bad_time", _prediction(predicted_at=START_MS // 1000)),
    ("bad_time", _prediction(predicted_at=START_MS + 0.5)),
    ("bad_time", _prediction(predicted_at=None)),
    ("bad_time", _prediction(predicted_at=True)),
    ("bad_time", _label(labelled_at="2026-06-31T00:00:00Z")),
    ("bad_time", _label(labelled_at="2100-01-01T00:00:00Z")),
    ("bad_time", _label(labelled_at="yesterday")),
    ("naive_time", _prediction(predicted_at="2026-06-01T00:00:00")),
    ("bad_probabilities", _prediction(probabilities={"a": 1.0})),
    ("bad_probabilities", _prediction(probabilities={"a": "0.5", "b": 0.5})),
    ("bad_probabilities", _prediction(probabilities={"a": True, "b": 0.0})),
    ("bad_probabilities", _prediction(probabilities="a")),
    ("bad_probabilities", _prediction(model="n", probabilities=[0.5, 0.5])),
    ("bad_probabilities", _prediction(probabilities=[0.5, 0.5])),
    ("probability_not_finite", _prediction(probabilities={"a": 1, "b": 0}).replace(b'"a": 1', b'"a": 1e999')),
    ("probability_out_of_range", _prediction(probabilities={"a": 1.25, "b": -0.25})),
    ("probabilities_do_not_sum_to_1", _prediction(probabilities={"a": 0.5, "b": 0.49})),
    ("too_many_classes", _prediction(probabilities={str(i): 1 / 1001 for i in range(1001)})),
    ("predicted_class_not_in_probabilities", _prediction(probabilities={"a": 0.5, "b": 0.5}, predicted_class="c")),
    ("missing_confidence", _prediction(confidence=None)),
    ("bad_confidence", _prediction(confidence="0.5")),
    ("bad_confidence", _prediction(confidence=True)),
    ("confidence_not_finite", _prediction().replace(b": 0.5", b": -1e999")),
    ("confidence_out_of_range", _prediction(confidence=1.0000001)),
    ("confidence_out_of_range", _prediction(confidence=-0.1)),
    ("missing_predicted_class", _prediction(predicted_class=None)),
    ("ood_score_not_finite", _prediction(ood_score=1).replace(b'"ood_score": 1', b'"ood_score": 1e999')),
    ("bad_ood_score", _prediction(ood_score="high")),
    ("bad_accepted", _prediction(accepted=1)),
    ("bad_groups", _prediction(groups=["eu"])),
    ("bad_groups", _prediction(groups={"region": ""})),
    ("bad_groups", _prediction(groups={"region": 3})),
    ("bad_groups", _prediction(groups={f"g{i}": "x" for i in range(33)})),
    ("bad_domain", _prediction(domain="")),
    ("bad_domain", _label(domain=1)),
    ("missing_label", b'{"type":"label","prediction_id":"p","labelled_at":1780272000000}'),
    ("bad_label", _label(label=1)),
    ("bad_revision", _label(revision="x")),
    ("bad_revision", _label(revision=-1)),
    ("bad_revision", _label(revision=2**53)),
    ("bad_revision", _label(revision=True)),
)
"""(reason, record) for every reason that one record alone can have, but for `TOO_LARGE`; each record has only the one fault."""


def times(days: int) -> st.SearchStrategy[int]:
    """Milliseconds over some days, often on or next to the edge of a pane."""
    within = st.one_of(st.sampled_from(WITHIN_DAY_MS), st.integers(0, DAY_MS - 1))
    return st.builds(lambda day, ms: START_MS + day * DAY_MS + ms, st.integers(0, days - 1), within)


def confidences() -> st.SearchStrategy[float]:
    """On edges, 0, 1, next to 1, or anywhere that fixed point resolves well."""
    return st.one_of(st.sampled_from(CONFIDENCES), st.sampled_from(NEAR_ONE), st.floats(0.05, 0.999))


@st.composite
def _written_time(draw: st.DrawFn, time_ms: int) -> object:
    """The same moment in one of the forms that the contract allows."""
    form = draw(st.integers(0, 5))
    if form == 0:
        moment = datetime.fromtimestamp(time_ms // 1000, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}987Z"
    return float(time_ms) if form == 1 else time_ms


@st.composite
def _vector(draw: st.DrawFn, model: str) -> dict[str, float] | list[float]:
    """Two or three classes, ties among them; as a list where the model's classes are configured."""
    top = draw(confidences())
    rest = draw(st.sampled_from([(1.0,), (0.5, 0.5), (1.0, 0.0)]))
    numbers = [top, *((1 - top) * share for share in rest)]
    if model in CLASSES and len(numbers) == len(CLASSES[model]) and draw(st.booleans()):
        return numbers
    names = draw(st.permutations(CLASS_NAMES))
    return dict(zip(names, numbers, strict=False))


@st.composite
def _prediction_record(draw: st.DrawFn, days: int) -> Record:
    model, model_version = draw(st.sampled_from(VERSIONS))
    record: Record = {
        "type": "prediction",
        "prediction_id": draw(st.sampled_from(IDS)),
        "model": model,
        "model_version": model_version,
        "predicted_at": draw(times(days)),
    }
    if draw(st.booleans()):
        vector = draw(_vector(model))
        record["probabilities"] = vector
        if isinstance(vector, dict) and draw(st.booleans()):
            resolved = sorted(name for name, p in vector.items() if p == 0 or p >= 0.05)
            record["predicted_class"] = draw(st.sampled_from(resolved))
        if draw(st.booleans()):
            record["confidence"] = draw(confidences())  # ignored beside a vector
    else:
        record |= {"confidence": draw(confidences()), "predicted_class": draw(st.sampled_from(CLASS_NAMES))}
    optional = {
        "ood_score": draw(st.sampled_from([None, -0.5, 0.5, -0.37, 0.75, 2, -1e6, 0, -0.0, 5e-324])),
        "accepted": draw(st.sampled_from([None, None, True, False])),
        "groups": draw(st.sampled_from(GROUPS)),
        "domain": draw(st.sampled_from([None, "id", "camera-7"])),
    }
    return record | {key: value for key, value in optional.items() if value is not None or draw(st.booleans())}


@st.composite
def _label_record(draw: st.DrawFn, days: int) -> Record:
    model, model_version = draw(st.sampled_from(SCOPES))
    record: Record = {
        "type": "label",
        "prediction_id": draw(st.sampled_from(IDS)),
        "label": draw(st.sampled_from([*CLASS_NAMES, "a", "b", "nowhere", None])),
        "labelled_at": draw(times(days)),
    }
    optional = {
        "model": model,
        "model_version": model_version,
        "revision": draw(st.sampled_from([None, None, 0, 1, 2, 2**53 - 1])),
        "domain": draw(st.sampled_from([None, None, "id", "camera-7"])),
    }
    return record | {key: value for key, value in optional.items() if value is not None}


@st.composite
def _answer(draw: st.DrawFn, prediction: Record) -> Record:
    """The label of a prediction, some time before or after it."""
    delay_ms = draw(st.sampled_from(DELAYS_MS))
    name = prediction.get("predicted_class", "a")
    answer: Record = {"type": "label", "prediction_id": prediction["prediction_id"], "labelled_at": prediction["predicted_at"] + delay_ms}
    return answer | {"label": draw(st.sampled_from([name, name, *CLASS_NAMES]))}


@st.composite
def _repeated(draw: st.DrawFn, record: Record) -> Record:
    """An earlier record again: the same, in other words, corrected, withdrawn or in conflict."""
    change = draw(st.sampled_from(["same", "reordered", "revision", "null", "content", "time", "scope"]))
    again = dict(record)
    if change == "reordered":
        again = dict(reversed(record.items())) | {"unknown_key": 1}
        if isinstance(again.get("probabilities"), dict):
            again["probabilities"] = dict(reversed(again["probabilities"].items()))
    elif record["type"] == "label":
        if change == "revision":
            again["revision"] = (again.get("revision") or 0) % 5 + 1
        elif change == "null":
            again |= {"label": None, "revision": draw(st.integers(0, 3))}
        elif change == "content":
            again["label"] = draw(st.sampled_from(CLASS_NAMES))
        elif change == "time":
            again["labelled_at"] += draw(st.sampled_from([1, HOUR_MS, DAY_MS, -HOUR_MS]))
        elif change == "scope":
            again |= {"model": "m", "model_version": draw(st.sampled_from([None, "1"]))}
    elif change == "content":
        again["domain"] = draw(st.sampled_from(["id", "camera-8"]))
    elif change in {"scope", "time"}:
        again |= {"model": "n", "model_version": "1", "predicted_at": again["predicted_at"] + HOUR_MS}
        if isinstance(again.get("probabilities"), list):
            again["probabilities"] = dict(zip(CLASSES["m"], again["probabilities"], strict=True))
    return again


@st.composite
def _label_burst(draw: st.DrawFn, days: int) -> list[Record]:
    """More labels of one id than a row may keep when a horizon is set."""
    first = draw(_label_record(days))
    return [first | {"labelled_at": first["labelled_at"] + i * MINUTE_MS, "label": CLASS_NAMES[i % 3]} for i in range(18)]


@st.composite
def histories(draw: st.DrawFn, *, partitions: int = 1, days: int = 6, min_records: int = 0, max_records: int = 40) -> History:
    """A history for `MODELS`, `DEFAULTS` and `CLASSES`.

    Args:
        draw: Hypothesis's.
        partitions: Number of partitions; an id is always in the same one.
        days: Over how many days the event times spread; well beyond horizon + 2 days makes records expire.
        min_records: Fresh records at least.
        max_records: Fresh records at most; answers, repetitions, bursts and invalid ones come on top.
    """
    records: list[Record] = []
    fresh = st.one_of(_prediction_record(days), _prediction_record(days), _label_record(days), _label_record(days))
    for record in draw(st.lists(fresh, min_size=min_records, max_size=max_records)):
        records.append(record)
        if record["type"] == "prediction" and draw(st.booleans()):
            records.append(draw(_answer(record)))
        if draw(st.integers(0, 2)) == 0:
            records.append(draw(_repeated(draw(st.sampled_from(records)))))
    if draw(st.integers(0, 5)) == 0:
        records += draw(_label_burst(days))
    if draw(st.booleans()):  # roughly the order of a real stream, so that a horizon makes labels late instead of expired
        records.sort(key=lambda record: int(record[TIME_KEYS[record["type"]]]))
    lines = [(IDS.index(record["prediction_id"]) % partitions, draw(_written(record))) for record in records]
    for _, invalid in draw(st.lists(st.sampled_from(INVALID), max_size=4)):
        lines.insert(draw(st.integers(0, len(lines))), (draw(st.integers(0, partitions - 1)), invalid))
    return History(lines, draw(moments(days)))


@st.composite
def _written(draw: st.DrawFn, record: Record) -> bytes:
    """A record's bytes."""
    key = TIME_KEYS[record["type"]]
    written = record | {key: draw(_written_time(record[key]))}
    return json.dumps(written, ensure_ascii=draw(st.booleans())).encode()


def moments(days: int) -> st.SearchStrategy[list[int]]:
    """Moments of a clock, in order, up to two days after the last event."""
    return st.lists(times(days + 2), min_size=1, max_size=4, unique=True).map(sorted)
