"""The positive class has its own sums however many classes there are."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.product import evaluate

CLASSES = [f"class-{number:02d}" for number in range(12)]
POSITIVE = CLASSES[-1]


def test_the_positive_class_is_not_folded_among_many(tmp_path: Path) -> None:
    """Its name is the last of twelve where two are exported and eight are stored."""
    lines = []
    for number in range(24):
        p = dict.fromkeys(CLASSES, 0.05) | {CLASSES[number % 12]: 0.45}
        head = {"prediction_id": str(number), "model": "m", "model_version": "1", "predicted_at": 1_780_000_000_000 + number}
        label = {"prediction_id": str(number), "label": CLASSES[number % 12], "labelled_at": 1_780_000_000_100 + number}
        lines += [{"type": "prediction", "probabilities": p, **head}, {"type": "label", **label}]
    file = tmp_path / "events.ndjson"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    config = {"classwise": True, "positive_class": POSITIVE, "max_group_values": 2}
    found = evaluate(file, config, tmp_path).models["m@1"]
    assert found["positive_labelled_used"] == 24
    assert found["positive_accuracy"] == 2 / 24
    assert found["auc"] == 1.0
    assert {f"classwise_ece[{POSITIVE}]", "classwise_ece[__other__]"} <= found.keys()
