"""What is stored of one id: its predictions and its labels, as bytes of a versioned form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec


class StoredPrediction(msgspec.Struct, array_like=True, gc=False):
    """A prediction of one model version; equal fields are equal content.

    Attributes:
        head: Packed `record.Head`.
        predicted_at: Event time, ms.
        probabilities: In the order of the head's classes.
        predicted: Index of the predicted class.
        ood_score: In the source's units, or None.
        accepted: The service's decision, or None.
    """

    head: bytes
    predicted_at: int
    probabilities: list[float]
    predicted: int
    ood_score: float | None
    accepted: bool | None


class StoredLabel(msgspec.Struct, array_like=True, gc=False):
    """A label that may win for some prediction.

    Attributes:
        label: Class name; None withdraws.
        labelled_at: ms.
        revision: Higher wins.
        model: Scope, or None for any model.
        version: Scope, or None for any version.
        domain: Overrides the prediction's, or None.
    """

    label: str | None
    labelled_at: int
    revision: int
    model: str | None
    version: str | None
    domain: str | None


class Row(msgspec.Struct, array_like=True, gc=False):
    """Everything of one id, each list in order of arrival.

    Attributes:
        predictions: Of every model version.
        labels: Of every scope.
        form: Version of the stored form.
    """

    predictions: list[StoredPrediction]
    labels: list[StoredLabel]
    form: Literal[1] = 1


class RowCodec:
    """Rows to bytes and back."""

    def __init__(self) -> None:
        self.to_bytes: Callable[[Row], bytes] = msgspec.msgpack.Encoder().encode
        """The stored form."""
        self._decode = msgspec.msgpack.Decoder(Row).decode

    def from_bytes(self, data: bytes) -> Row:
        """The row of a stored form.

        Raises:
            ValueError: Another version's form, or not a row.
        """
        try:
            return self._decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(f"a join row that is damaged or of another form: {error}") from error
