"""The one definition of the event contract: limits, wire messages, refusal reasons and their JSON Schema.

The decoder decodes into these very types, and `calmon schema` prints their JSON Schema, so the two cannot drift apart.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

RecordKind: TypeAlias = Literal["prediction", "label", "any"]
"""What a partition carries; `any` means that each record must say its `type`."""

MAX_RECORD_BYTES = 1 << 20
MAX_DEPTH = 8
MAX_TEXT = 256
MIN_CLASSES = 2
MAX_CLASSES = 1000
MAX_GROUPS = 32
MAX_REVISION = (1 << 53) - 1
SUM_TOLERANCE = 1e-3
EARLIEST_MS = 946_684_800_000
"""2000-01-01: an earlier time is seconds sent as milliseconds."""
LATEST_MS = 4_102_444_800_000
"""2100-01-01, excluded."""
FUTURE_SLACK_MS = 300_000
"""How far past the log's own record timestamp an event time may lie."""

REASONS = (
    "too_large",
    "too_deep",
    "bad_json",
    "unknown_type",
    "missing_id",
    "missing_model",
    "missing_version",
    "bad_text",
    "bad_time",
    "naive_time",
    "future_time",
    "expired",
    "bad_probabilities",
    "probability_not_finite",
    "probability_out_of_range",
    "probabilities_do_not_sum_to_1",
    "too_many_classes",
    "missing_confidence",
    "bad_confidence",
    "confidence_not_finite",
    "confidence_out_of_range",
    "missing_predicted_class",
    "predicted_class_not_in_probabilities",
    "bad_ood_score",
    "ood_score_not_finite",
    "bad_accepted",
    "bad_groups",
    "bad_domain",
    "missing_label",
    "bad_label",
    "bad_revision",
    "conflicting_prediction",
    "conflicting_label",
    "too_many_labels",
    "too_many_versions",
    "too_many_predictions",
)
"""Every reason for which a record can be refused; the label values of `calmon_refused_total`."""

Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Probability = Annotated[float, Meta(ge=0.0, le=1.0)]
Instant = Annotated[
    int | float | str,
    Meta(description="Whole milliseconds since the Unix epoch, or RFC 3339 with an offset; 2000 up to 2100."),
]
Vector = (
    Annotated[dict[Text, Probability], Meta(min_length=MIN_CLASSES, max_length=MAX_CLASSES)]
    | Annotated[list[Probability], Meta(min_length=MIN_CLASSES, max_length=MAX_CLASSES)]
)
Groups = Annotated[dict[Text, Text], Meta(max_length=MAX_GROUPS)]


class PredictionMessage(msgspec.Struct, gc=False, tag_field="type", tag="prediction"):
    """A prediction: what one model version said about one id.

    `probabilities` (by class, or a list in the order of the model's configured `classes`; sum 1 +- 0.001), or
    `confidence` with `predicted_class`. The default class is the most probable one, ties to the smallest name.
    """

    prediction_id: Text
    model: Text
    model_version: Text
    predicted_at: Instant
    probabilities: Vector | None = None
    confidence: Probability | None = None
    predicted_class: Text | None = None
    ood_score: float | None = None
    accepted: bool | None = None
    groups: Groups | None = None
    domain: Text | None = None


class LabelMessage(msgspec.Struct, gc=False, tag_field="type", tag="label"):
    """A label: what turned out to be true for an id; null withdraws an earlier one.

    Without `model` it scores every model and version that predicted the id; `model_version` needs `model`.
    """

    prediction_id: Text
    label: Text | None
    labelled_at: Instant
    revision: Annotated[int, Meta(ge=0, le=MAX_REVISION)] = 0
    model: Text | None = None
    model_version: Text | None = None
    domain: Text | None = None


Message = PredictionMessage | LabelMessage


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a record: either message, told apart by `type`."""
    schema = msgspec.json.schema(Message)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "calmon event",
        "description": "One prediction or label; one JSON object a record, or one a line in a file. "
        "`type` may be left out where the topic says it. Unknown keys are ignored; a repeated key is refused.",
        **schema,
    }
