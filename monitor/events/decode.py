"""Bytes to records, fast where a record is plainly acceptable and careful everywhere else.

The fast way accepts only what the careful one (`inspection`) would accept with the same result: msgspec checks types,
ranges and lengths, and the few checks that it cannot make are made here on the bytes. A record that fails any of them
is not refused but inspected, and the inspection decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from monitor.events.contract import (
    EARLIEST_MS,
    LATEST_MS,
    MAX_RECORD_BYTES,
    SUM_TOLERANCE,
    LabelMessage,
    Message,
    PredictionMessage,
    RecordKind,
)
from monitor.events.inspection import ClassesOf, inspect
from monitor.events.instant import InstantError, epoch_ms
from monitor.events.record import Head, HeadTable, Label, Prediction, Record, Refusal

_CONTROL = re.compile(rb"[\\\x7f]|\xc2[\x80-\x9f]")

_HeadKey = tuple[str, str, str | None, tuple[str, ...], tuple[tuple[str, str], ...] | None]


class Decoder:
    """Decodes records one by one; keeps what repeats between them.

    Args:
        classes_of: Configured classes of a model, for probabilities sent as a list.
        heads: Table that interns what predictions share.
    """

    def __init__(self, classes_of: ClassesOf, heads: HeadTable) -> None:
        self._classes_of = classes_of
        self._heads = heads
        self._known: dict[_HeadKey, tuple[Head, list[int] | None]] = {}
        self._decoders = {
            "any": msgspec.json.Decoder(Message).decode,
            "prediction": msgspec.json.Decoder(PredictionMessage).decode,
            "label": msgspec.json.Decoder(LabelMessage).decode,
        }

    def decode(self, raw: bytes, kind: RecordKind) -> Record:
        """One record of a partition that carries `kind`.

        Args:
            raw: The record's bytes.
            kind: `any` where each record must name its type.

        Returns:
            A prediction, a label, or a refusal with the first reason that applies.
        """
        try:
            message = self._decoders[kind](raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            message = None
        if message is not None:
            record = self._label(message, raw, kind) if isinstance(message, LabelMessage) else self._prediction(message, raw, kind)
            if record is not None:
                return record
        careful = inspect(raw, kind, self._classes_of)
        if isinstance(careful, Refusal):
            return careful
        record = self._label(careful, None, kind) if isinstance(careful, LabelMessage) else self._prediction(careful, None, kind)
        if record is None:
            raise AssertionError("the careful reading accepted a record that cannot be built")
        return record

    def decode_all(self, values: Sequence[bytes], kind: RecordKind) -> list[Record]:
        """Each record of a slice, in its order."""
        decode = self.decode
        return [decode(raw, kind) for raw in values]

    def _label(self, message: LabelMessage, raw: bytes | None, kind: str) -> Label | None:
        at = _instant(message.labelled_at)
        if at is None or (message.model_version is not None and message.model is None):
            return None
        if raw is not None:
            keys = 3 + (message.model is not None) + (message.model_version is not None) + (message.domain is not None)
            # A revision of 0 may have been sent or left out.
            if not _plain(raw, keys + (b'"revision":' in raw), kind, message):
                return None
        return Label(message.prediction_id, message.label, at, message.revision, message.model, message.model_version, message.domain)

    def _prediction(self, message: PredictionMessage, raw: bytes | None, kind: str) -> Prediction | None:
        at = _instant(message.predicted_at)
        if at is None:
            return None
        vector = message.probabilities
        groups = message.groups
        predicted_class = message.predicted_class
        if type(vector) is dict:
            keys = 5 + len(vector) + (message.confidence is not None)
            head, order = self._head(message, tuple(vector), None if groups is None else tuple(groups.items()))
            values = list(vector.values())
            if order is not None:
                values = [values[position] for position in order]
            if abs(sum(values) - 1.0) > SUM_TOLERANCE:
                return None
            if predicted_class is None:
                predicted = values.index(max(values))
            elif predicted_class in vector:
                predicted = head.classes.index(predicted_class)
            else:
                return None
        elif vector is None and message.confidence is not None and predicted_class is not None:
            keys = 5
            values = [message.confidence]
            predicted = 0
            head = self._heads.intern(message.model, message.model_version, (predicted_class,), False, groups or {}, message.domain)
        else:
            return None
        if raw is not None:
            keys += (predicted_class is not None) + (message.ood_score is not None) + (message.accepted is not None)
            keys += (message.domain is not None) + (0 if groups is None else 1 + len(groups))
            if not _plain(raw, keys, kind, message):
                return None
        return Prediction(message.prediction_id, head, at, values, predicted, message.ood_score, message.accepted)

    def _head(
        self, message: PredictionMessage, classes: tuple[str, ...], groups: tuple[tuple[str, str], ...] | None
    ) -> tuple[Head, list[int] | None]:
        key = (message.model, message.model_version, message.domain, classes, groups)
        known = self._known.get(key)
        if known is None:
            names = tuple(sorted(classes))
            order = None if names == classes else [classes.index(name) for name in names]
            head = self._heads.intern(message.model, message.model_version, names, True, message.groups or {}, message.domain)
            if len(self._known) >= HeadTable.LIMIT:
                self._known.clear()
            known = self._known[key] = (head, order)
        return known


def _instant(sent: int | float | str) -> int | None:
    """Epoch milliseconds, or None where the careful reading must name what is wrong."""
    if type(sent) is int:
        return sent if EARLIEST_MS <= sent < LATEST_MS else None
    try:
        return epoch_ms(sent)
    except InstantError:
        return None


def _plain(raw: bytes, keys: int, kind: str, message: Message) -> bool:
    """Whether the bytes hide nothing that the typed message cannot show.

    Every key needs a colon outside strings, so no more colons than the message shows keys (`keys`, without `type`) and
    colons in its strings prove that no key occurs twice and none is unknown. Without a backslash or a DEL no string
    holds a control character, and without a backslash every character stands for itself.
    """
    if len(raw) > MAX_RECORD_BYTES:
        return False
    if raw.isascii():
        if b"\\" in raw or b"\x7f" in raw:
            return False
    elif _CONTROL.search(raw) is not None:
        return False
    colons = raw.count(b":")
    if kind == "any" or raw.startswith(b'{"type":'):
        keys += 1
    return colons == keys or colons == keys + sum(text.count(":") for text in _strings(message))


def _strings(message: Message) -> Iterator[str]:
    """Every string that the message holds, keys included."""
    for value in msgspec.structs.astuple(message):
        if type(value) is str:
            yield value
        elif type(value) is dict:
            for key, item in value.items():
                yield key
                if type(item) is str:
                    yield item
