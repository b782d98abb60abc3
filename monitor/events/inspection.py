"""The careful reading of a record: the checks of the contract, one by one and in their order.

The fast decoder turns to it for every record that it does not plainly accept; the first check that fails names
the reason. What passes here is accepted, and is the same message that the fast decoder would have made.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Never

from monitor.events.contract import (
    MAX_CLASSES,
    MAX_DEPTH,
    MAX_GROUPS,
    MAX_RECORD_BYTES,
    MAX_REVISION,
    MAX_TEXT,
    MIN_CLASSES,
    SUM_TOLERANCE,
    LabelMessage,
    Message,
    PredictionMessage,
)
from monitor.events.instant import InstantError, epoch_ms
from monitor.events.record import Refusal

ClassesOf = Callable[[str], tuple[str, ...] | None]
"""The configured class names of a model, for probabilities sent as a list."""

# A string that never ends swallows the rest: what looks like a bracket there is none.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class RefusalError(Exception):
    """Ends the reading of a record; carries the refusal."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(reason)


def inspect(raw: bytes, kind: str, classes_of: ClassesOf) -> Message | Refusal:
    """Read one record with every check of the contract.

    Args:
        raw: The record's bytes.
        kind: What its partition carries: `prediction`, `label`, or `any`.
        classes_of: Configured classes of a model.

    Returns:
        The message, with its time normalised to milliseconds, or the refusal with the first reason that applies.
    """
    known = "unknown"
    try:
        fields = _parse(raw)
        known = _kind(fields, kind)
        return _prediction(fields, classes_of) if known == "prediction" else _label(fields)
    except RefusalError as refusal:
        return Refusal(refusal.reason, known, refusal.detail)


def _parse(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_RECORD_BYTES:
        raise RefusalError("too_large", f"more than {MAX_RECORD_BYTES} bytes")
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
        raise RefusalError("too_deep", f"nested deeper than {MAX_DEPTH}")
    if raw[:1] == b"\x00":
        raise RefusalError("bad_json", "starts with a zero byte, as a schema-registry frame does: send plain JSON")
    try:
        fields = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise RefusalError("bad_json", f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise RefusalError("bad_json", str(error)[:MAX_TEXT]) from None
    if not isinstance(fields, dict):
        raise RefusalError("bad_json", "not a JSON object")
    return fields


def _depth(raw: bytes) -> int:
    deepest = depth = 0
    for token in _STRUCTURE.finditer(raw):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
            deepest = max(deepest, depth)
        elif mark in (b"}", b"]"):
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RefusalError("bad_json", "a key occurs twice")
    return fields


def _constant(name: str) -> Never:
    raise RefusalError("bad_json", f"{name} is not JSON")


def _kind(fields: Mapping[str, Any], kind: str) -> str:
    named = fields.get("type", None if kind == "any" else kind)
    if named not in ("prediction", "label") or kind not in ("any", named):
        raise RefusalError("unknown_type", f"type {json.dumps(named)[:MAX_TEXT]} in a partition of kind {kind}")
    return str(named)


def _text(value: object, missing: str, key: str) -> str:
    """A non-empty string without control characters; `missing` names the reason for anything that is none."""
    if not isinstance(value, str) or not value:
        raise RefusalError(missing, f"{key} must be a non-empty string")
    if len(value) > MAX_TEXT:
        raise RefusalError("bad_text", f"{key} is longer than {MAX_TEXT} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise RefusalError("bad_text", f"{key} holds a control character")
    return value


def _optional_text(fields: Mapping[str, Any], key: str, missing: str) -> str | None:
    value = fields.get(key)
    return None if value is None else _text(value, missing, key)


def _time(fields: Mapping[str, Any], key: str) -> int:
    try:
        return epoch_ms(fields.get(key))
    except InstantError as error:
        raise RefusalError(error.reason, f"{key}: {json.dumps(fields.get(key))[:MAX_TEXT]}") from None


def _prediction(fields: Mapping[str, Any], classes_of: ClassesOf) -> PredictionMessage:
    prediction_id = _text(fields.get("prediction_id"), "missing_id", "prediction_id")
    model = _text(fields.get("model"), "missing_model", "model")
    version = _text(fields.get("model_version"), "missing_version", "model_version")
    predicted_at = _time(fields, "predicted_at")
    sent = fields.get("probabilities")
    probabilities = None if sent is None else _probabilities(sent, classes_of(model))
    confidence = _confidence(fields) if probabilities is None else None
    predicted_class = _predicted_class(fields, probabilities)
    return PredictionMessage(
        prediction_id,
        model,
        version,
        predicted_at,
        probabilities,
        confidence,
        predicted_class,
        _ood_score(fields),
        _accepted(fields),
        _groups(fields),
        _optional_text(fields, "domain", "bad_domain"),
    )


def _number(value: object, bad: str, infinite: str, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusalError(bad, f"{key} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RefusalError(infinite, f"{key} is not finite")
    return number


def _probabilities(sent: object, configured: tuple[str, ...] | None) -> dict[str, float]:
    if isinstance(sent, list):
        if configured is None or len(configured) != len(sent):
            wanted = "none are configured" if configured is None else f"{len(configured)} are configured"
            raise RefusalError("bad_probabilities", f"a list of {len(sent)} needs that many `classes`: {wanted}")
        sent = dict(zip(configured, sent, strict=True))
    if not isinstance(sent, dict) or not sent:
        raise RefusalError("bad_probabilities", "neither an object nor a list with a probability for each class")
    bad, infinite = "bad_probabilities", "probability_not_finite"
    probabilities = {name: _number(value, bad, infinite, "a probability") for name, value in sent.items()}
    if not all(0.0 <= value <= 1.0 for value in probabilities.values()):
        raise RefusalError("probability_out_of_range", "a probability lies outside [0, 1]")
    total = sum(probabilities[name] for name in sorted(probabilities))
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise RefusalError("probabilities_do_not_sum_to_1", f"the sum is {total!r}")
    if len(probabilities) < MIN_CLASSES:
        raise RefusalError("bad_probabilities", "a vector has at least two classes")
    if len(probabilities) > MAX_CLASSES:
        raise RefusalError("too_many_classes", f"{len(probabilities)} classes, at most {MAX_CLASSES}")
    for name in probabilities:
        _text(name, "bad_probabilities", "a class name")
    return probabilities


def _confidence(fields: Mapping[str, Any]) -> float:
    sent = fields.get("confidence")
    if sent is None:
        raise RefusalError("missing_confidence", "neither probabilities nor confidence")
    value = _number(sent, "bad_confidence", "confidence_not_finite", "confidence")
    if not 0.0 <= value <= 1.0:
        raise RefusalError("confidence_out_of_range", f"{value!r} lies outside [0, 1]")
    return value


def _predicted_class(fields: Mapping[str, Any], probabilities: Mapping[str, float] | None) -> str | None:
    sent = fields.get("predicted_class")
    if sent is None:
        if probabilities is None:
            raise RefusalError("missing_predicted_class", "confidence needs predicted_class beside it")
        return None
    name = _text(sent, "missing_predicted_class", "predicted_class")
    if probabilities is not None and name not in probabilities:
        raise RefusalError("predicted_class_not_in_probabilities", f"{name!r} has no probability")
    return name


def _ood_score(fields: Mapping[str, Any]) -> float | None:
    sent = fields.get("ood_score")
    return None if sent is None else _number(sent, "bad_ood_score", "ood_score_not_finite", "ood_score")


def _accepted(fields: Mapping[str, Any]) -> bool | None:
    sent = fields.get("accepted")
    if sent is not None and not isinstance(sent, bool):
        raise RefusalError("bad_accepted", "accepted must be true or false")
    return sent


def _groups(fields: Mapping[str, Any]) -> dict[str, str] | None:
    sent = fields.get("groups")
    if sent is None:
        return None
    if not isinstance(sent, dict) or len(sent) > MAX_GROUPS:
        raise RefusalError("bad_groups", f"groups must be an object of at most {MAX_GROUPS} entries")
    return {_text(key, "bad_groups", "a group name"): _text(value, "bad_groups", f"group {key[:MAX_TEXT]}") for key, value in sent.items()}


def _label(fields: Mapping[str, Any]) -> LabelMessage:
    prediction_id = _text(fields.get("prediction_id"), "missing_id", "prediction_id")
    model = _optional_text(fields, "model", "missing_model")
    if model is None and fields.get("model_version") is not None:
        raise RefusalError("missing_model", "model_version needs model beside it")
    version = _optional_text(fields, "model_version", "missing_version")
    labelled_at = _time(fields, "labelled_at")
    domain = _optional_text(fields, "domain", "bad_domain")
    if "label" not in fields:
        raise RefusalError("missing_label", "label is absent; null withdraws an earlier label")
    sent = fields["label"]
    if isinstance(sent, int | float) and not isinstance(sent, bool):
        raise RefusalError("bad_label", f'a label is a string: send "{sent}"')
    label = None if sent is None else _text(sent, "bad_label", "label")
    revision = fields.get("revision")
    if revision is None:
        revision = 0
    if isinstance(revision, bool) or not isinstance(revision, int) or not 0 <= revision <= MAX_REVISION:
        raise RefusalError("bad_revision", "revision must be a whole number from 0 to 2^53 - 1")
    return LabelMessage(prediction_id, label, labelled_at, revision, model, version, domain)
