"""Records after decoding: typed, normalised, ready to be joined; or refused with a reason."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Head(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What many predictions share; one object for all of them, so that a head is hashed and compared by identity.

    Attributes:
        model: Name of the model.
        version: Version of the model that made the prediction.
        classes: Class names in ascending order; only the predicted class where the event had no vector.
        vector: Whether the event carried a whole probability vector.
        groups: (attribute, value) pairs in ascending order.
        domain: `id`, another word for a kind of OOD, or None where it is not known.
        packed: Canonical bytes of the fields above; equal bytes mean an equal head.
    """

    model: str
    version: str
    classes: tuple[str, ...]
    vector: bool
    groups: tuple[tuple[str, str], ...]
    domain: str | None
    packed: bytes = b""


class Prediction(msgspec.Struct, gc=False):
    """One prediction, normalised.

    Attributes:
        prediction_id: The id that labels refer to.
        head: Model, version, classes, groups and domain.
        predicted_at: Event time, ms.
        probabilities: In the order of `head.classes`; the confidence alone where there was no vector.
        predicted: Index of the predicted class in `head.classes`.
        ood_score: Score in the source's units, or None.
        accepted: What the service decided, or None.
    """

    prediction_id: str
    head: Head
    predicted_at: int
    probabilities: list[float]
    predicted: int
    ood_score: float | None
    accepted: bool | None


class Label(msgspec.Struct, gc=False):
    """One label, normalised; `label` None withdraws.

    Attributes:
        prediction_id: The id it speaks of.
        label: Class name, or None.
        labelled_at: When the outcome was known, ms.
        revision: Higher wins.
        model: Only this model's predictions, or None for all.
        version: Only this version's, or None for all.
        domain: Overrides the prediction's domain, or None.
    """

    prediction_id: str
    label: str | None
    labelled_at: int
    revision: int
    model: str | None
    version: str | None
    domain: str | None


class Refusal(msgspec.Struct, gc=False):
    """A record that is kept out of the sums.

    Attributes:
        reason: One of `contract.REASONS`.
        kind: `prediction`, `label`, or `unknown` where the record did not get far enough to tell.
        detail: What was found, for the person who reads the quarantine; may be empty.
    """

    reason: str
    kind: str = "unknown"
    detail: str = ""


Record = Prediction | Label | Refusal


class HeadTable:
    """Interned heads, by their parts and by their packed bytes; bounded, so that it can be forgotten and rebuilt."""

    LIMIT = 65_536

    def __init__(self) -> None:
        self._by_packed: dict[bytes, Head] = {}
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(tuple[str, str, tuple[str, ...], bool, tuple[tuple[str, str], ...], str | None]).decode

    def intern(
        self, model: str, version: str, classes: tuple[str, ...], vector: bool, groups: Mapping[str, str], domain: str | None
    ) -> Head:
        """The one head of these parts; `classes` must be in ascending order."""
        pairs = tuple(sorted(groups.items()))
        packed = self._encode((model, version, classes, vector, pairs, domain))
        known = self._by_packed.get(packed)
        if known is None:
            known = self._remember(Head(model, version, classes, vector, pairs, domain, packed))
        return known

    def unpack(self, packed: bytes) -> Head:
        """The head that was packed into these bytes."""
        known = self._by_packed.get(packed)
        return known if known is not None else self._remember(Head(*self._decode(packed), packed))

    def _remember(self, head: Head) -> Head:
        if len(self._by_packed) >= self.LIMIT:
            self._by_packed.clear()
        self._by_packed[head.packed] = head
        return head
