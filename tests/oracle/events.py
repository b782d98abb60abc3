"""One JSON line judged by the letter of the event contract: a normalised prediction, a label, or a refusal with its reason.

A second reading of DESIGN.md ("Events", "Refused, never repaired") with nothing but the standard library; it is meant to be
obviously right, not fast. The checks run in the order of that page and the first failure is the reason.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import NoReturn, TypeAlias

MAX_BYTES = 1_048_576
MAX_DEPTH = 8
MAX_CHARACTERS = 256
MAX_CLASSES = 1000
MAX_GROUPS = 32
MAX_REVISION = 2**53 - 1
SUM_TOLERANCE = 1e-3
FIRST_MS = 946_684_800_000  # 2000-01-01T00:00:00Z
LAST_MS = 4_102_444_800_000  # 2100-01-01T00:00:00Z
KINDS = ("prediction", "label")

_RFC_3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Prediction:
    """A prediction after normalising; two are the same content exactly when they compare equal."""

    prediction_id: str
    model: str
    model_version: str
    predicted_at_ms: int
    predicted_class: str
    confidence: float
    probabilities: tuple[tuple[str, float], ...] | None
    ood_score: float | None
    accepted: bool | None
    groups: tuple[tuple[str, str], ...]
    domain: str | None


@dataclass(frozen=True)
class Label:
    """A label after normalising; `label` None withdraws, `model` None is the scope "any"."""

    prediction_id: str
    model: str | None
    model_version: str | None
    labelled_at_ms: int
    label: str | None
    revision: int
    domain: str | None


@dataclass(frozen=True)
class Refusal:
    """Why a record was refused; `kind` is "unknown" where the record did not say what it is."""

    kind: str
    reason: str


Judgement: TypeAlias = Prediction | Label | Refusal


class _RefusedError(Exception):
    """Leaves the judging of one record with a reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def judge(line: bytes, classes: Mapping[str, Sequence[str]] | None = None) -> Judgement:
    """Judge one record.

    Args:
        line: The record's bytes, without the end of line.
        classes: Per model, the configured class names that a probability list is read with.

    Returns:
        The normalised prediction or label, or the refusal.
    """
    kind = "unknown"
    try:
        record = _parse(line)
        declared = record.get("type")
        if not isinstance(declared, str) or declared not in KINDS:
            raise _RefusedError("unknown_type")
        kind = declared
        return _prediction(record, classes or {}) if kind == "prediction" else _label(record)
    except _RefusedError as refused:
        return Refusal(kind, refused.reason)


def _parse(line: bytes) -> dict[str, object]:
    """Size, depth, strict JSON, object."""
    if len(line) > MAX_BYTES:
        raise _RefusedError("too_large")
    if _depth(line) > MAX_DEPTH:
        raise _RefusedError("too_deep")
    try:
        value: object = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _RefusedError("bad_json") from error
    if not isinstance(value, dict):
        raise _RefusedError("bad_json")
    return value


def _depth(line: bytes) -> int:
    """Deepest nesting of brackets outside strings; the record's own braces are level 1."""
    level = deepest = 0
    in_string = escaped = False
    for byte in line:
        if in_string:
            if escaped:
                escaped = False
            elif byte == ord("\\"):
                escaped = True
            elif byte == ord('"'):
                in_string = False
        elif byte == ord('"'):
            in_string = True
        elif byte in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif byte in b"]}":
            level -= 1
    return deepest


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose every key is written once."""
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key is written twice")
    return record


def _no_constant(token: str) -> NoReturn:
    """NaN and Infinity are no JSON."""
    raise ValueError(token)


def _text(value: str) -> str:
    """A string within the limits: length, no control character, no lone surrogate."""
    if len(value) > MAX_CHARACTERS or any(unicodedata.category(character) in {"Cc", "Cs"} for character in value):
        raise _RefusedError("bad_text")
    return value


def _required(record: dict[str, object], key: str, reason: str) -> str:
    """A non-empty string; absent, empty and wrong type are one reason."""
    value = record.get(key)
    if not isinstance(value, str) or not value:
        raise _RefusedError(reason)
    return _text(value)


def _number(value: object) -> int | float | None:
    """The value if it is a JSON number (a bool is none)."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _finite(value: float) -> bool:
    """Whether a double can hold it; an integer too large for one is as infinite as 1e999."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _time(record: dict[str, object], key: str) -> int:
    """Epoch milliseconds from an integral number or an RFC 3339 string with an offset."""
    value = record.get(key)
    if isinstance(value, str):
        moment = _rfc_3339(value)
    else:
        number = _number(value)
        if number is None or not _finite(number) or number != math.floor(number):
            raise _RefusedError("bad_time")
        moment = int(number)
    if not FIRST_MS <= moment < LAST_MS:
        raise _RefusedError("bad_time")
    return moment


def _rfc_3339(text: str) -> int:
    """Epoch milliseconds, fractions floored."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise _RefusedError("bad_time")
    fraction, offset, sign, offset_hours, offset_minutes = match.group(7, 8, 9, 10, 11)
    try:
        year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
        local = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise _RefusedError("bad_time") from error
    if offset is None:
        raise _RefusedError("naive_time")
    ahead = timedelta(0)
    if sign is not None:
        if int(offset_hours) > 23 or int(offset_minutes) > 59:
            raise _RefusedError("bad_time")
        ahead = timedelta(hours=int(offset_hours), minutes=int(offset_minutes)) * (1 if sign == "+" else -1)
    whole_seconds = (local - datetime(1970, 1, 1, tzinfo=UTC) - ahead) // timedelta(seconds=1)
    return whole_seconds * 1000 + math.floor(Fraction(f"0.{fraction or 0}") * 1000)


def _prediction(record: dict[str, object], classes: Mapping[str, Sequence[str]]) -> Prediction:
    """The checks of a prediction, in order."""
    prediction_id = _required(record, "prediction_id", "missing_id")
    model = _required(record, "model", "missing_model")
    model_version = _required(record, "model_version", "missing_version")
    predicted_at_ms = _time(record, "predicted_at")
    if record.get("probabilities") is not None:
        vector = _vector(record["probabilities"], classes.get(model))
        predicted_class, confidence = _top(record.get("predicted_class"), vector)
        probabilities: tuple[tuple[str, float], ...] | None = tuple(sorted(vector.items()))
    else:
        confidence = _confidence(record.get("confidence"))
        predicted_class = _class_name(record.get("predicted_class"))
        probabilities = None
    return Prediction(
        prediction_id=prediction_id,
        model=model,
        model_version=model_version,
        predicted_at_ms=predicted_at_ms,
        predicted_class=predicted_class,
        confidence=confidence,
        probabilities=probabilities,
        ood_score=_ood_score(record.get("ood_score")),
        accepted=_accepted(record.get("accepted")),
        groups=_groups(record.get("groups")),
        domain=_domain(record.get("domain")),
    )


def _vector(value: object, classes: Sequence[str] | None) -> dict[str, float]:
    """The probabilities by class: type, finite, range, sum, count of classes, then the names."""
    if isinstance(value, dict):
        names, given = list(value.keys()), list(value.values())
    elif isinstance(value, list) and classes:
        names, given = list(classes), value
    else:
        raise _RefusedError("bad_probabilities")
    numbers = [number for number in map(_number, given) if number is not None]
    if len(numbers) != len(given):
        raise _RefusedError("bad_probabilities")
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise _RefusedError("probability_not_finite")
    if any(not 0 <= number <= 1 for number in numbers):
        raise _RefusedError("probability_out_of_range")
    if abs(math.fsum(numbers) - 1) > SUM_TOLERANCE:
        raise _RefusedError("probabilities_do_not_sum_to_1")
    if len(numbers) < 2 or len(names) != len(numbers):
        raise _RefusedError("bad_probabilities")
    if len(numbers) > MAX_CLASSES:
        raise _RefusedError("too_many_classes")
    return {_text(name): float(number) for name, number in zip(names, numbers, strict=True)}


def _top(value: object, vector: dict[str, float]) -> tuple[str, float]:
    """The predicted class and its probability; by default the largest, ties to the smallest name."""
    predicted_class = _class_name(value) if value is not None else min(vector, key=lambda name: (-vector[name], name))
    if predicted_class not in vector:
        raise _RefusedError("predicted_class_not_in_probabilities")
    return predicted_class, vector[predicted_class]


def _confidence(value: object) -> float:
    """The probability of the predicted class where no vector is given."""
    if value is None:
        raise _RefusedError("missing_confidence")
    number = _number(value)
    if number is None:
        raise _RefusedError("bad_confidence")
    if isinstance(number, float) and not math.isfinite(number):
        raise _RefusedError("confidence_not_finite")
    if not 0 <= number <= 1:
        raise _RefusedError("confidence_out_of_range")
    return float(number)


def _class_name(value: object) -> str:
    """The predicted class as a string."""
    if not isinstance(value, str):
        raise _RefusedError("missing_predicted_class")
    return _text(value)


def _ood_score(value: object) -> float | None:
    """A finite number, if sent."""
    if value is None:
        return None
    number = _number(value)
    if number is None:
        raise _RefusedError("bad_ood_score")
    if not _finite(number):
        raise _RefusedError("ood_score_not_finite")
    return float(number)


def _accepted(value: object) -> bool | None:
    """A bool, if sent."""
    if value is not None and not isinstance(value, bool):
        raise _RefusedError("bad_accepted")
    return value


def _groups(value: object) -> tuple[tuple[str, str], ...]:
    """Attributes with non-empty values, sorted; none and an empty object are the same."""
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > MAX_GROUPS:
        raise _RefusedError("bad_groups")
    if any(not isinstance(group, str) or not group for group in value.values()):
        raise _RefusedError("bad_groups")
    return tuple(sorted((_text(name), _text(group)) for name, group in value.items()))


def _domain(value: object) -> str | None:
    """A non-empty word, if sent."""
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise _RefusedError("bad_domain")
    return _text(value)


def _label(record: dict[str, object]) -> Label:
    """The checks of a label, in order."""
    prediction_id = _required(record, "prediction_id", "missing_id")
    model = _required(record, "model", "missing_model") if record.get("model") is not None else None
    model_version = None
    if record.get("model_version") is not None:
        if model is None:
            raise _RefusedError("missing_model")
        model_version = _required(record, "model_version", "missing_version")
    labelled_at_ms = _time(record, "labelled_at")
    domain = _domain(record.get("domain"))
    if "label" not in record:
        raise _RefusedError("missing_label")
    label = record["label"]
    if label is not None:
        if not isinstance(label, str):
            raise _RefusedError("bad_label")
        _text(label)
    return Label(
        prediction_id=prediction_id,
        model=model,
        model_version=model_version,
        labelled_at_ms=labelled_at_ms,
        label=label,
        revision=_revision(record.get("revision")),
        domain=domain,
    )


def _revision(value: object) -> int:
    """An integer 0 .. 2^53-1; 0 where none is sent."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_REVISION:
        raise _RefusedError("bad_revision")
    return value
