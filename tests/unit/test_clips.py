"""Where logarithms and confidences are clipped can be set: what it changes, and that the usual clips change nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from monitor.config import Config
from monitor.config_file import parse_config
from monitor.errors import ConfigError
from monitor.pipeline.configured import layouts_of
from monitor.statistics.fixed_point import LOG_FLOOR
from monitor.statistics.layout import Layout
from monitor.statistics.summand import CSR_CLIP
from tests.recovery.stream import START_MS, encode, label, prediction, write_lines
from tests.replay.scratch import configure, evaluated

CONFIDENCES = [0.5, 0.625, 0.875, 0.9375, 0.96875, 0.999, 1.0]


def layout(**model: Any) -> Layout:
    return layouts_of(parse_config(json.dumps({"defaults": model}), "test", {}))("m")[0]


def test_the_usual_clips_are_those_of_every_layout_before() -> None:
    usual = layouts_of(Config())("m")[0]
    assert (usual.nll_clip, usual.csr_clip) == (LOG_FLOOR, CSR_CLIP) == (1e-12, 1e-6)
    assert not {"nll_clip", "csr_clip"} & usual.to_json().keys()
    assert layout(nll_clip=1e-12, csr_clip=1e-6) == usual
    assert layout(nll_clip=1e-12, csr_clip=1e-6).fingerprint == usual.fingerprint


@pytest.mark.parametrize("model", [{"nll_clip": 1e-9}, {"csr_clip": 0.25}, {"nll_clip": 0.5, "csr_clip": 1e-3}])
def test_another_clip_is_another_layout(model: dict[str, float]) -> None:
    found = layout(**model)
    assert found.fingerprint != layout().fingerprint
    assert Layout.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert Layout.from_json(found.to_json()).fingerprint == found.fingerprint


@pytest.mark.parametrize(("key", "value"), [("nll_clip", 0), ("nll_clip", 1e-31), ("nll_clip", 0.6), ("csr_clip", 9e-7), ("csr_clip", 1)])
def test_clips_that_no_sum_could_hold_are_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"defaults.{key}: must be"):
        layout(**{key: value})


def test_the_metrics_are_those_of_clipped_events(tmp_path: Path) -> None:
    """Against sums of Python's own over the events, right and wrong at every confidence."""
    nll_clip, csr_clip = 0.1, 0.05
    events = [(confidence, right) for confidence in CONFIDENCES for right in (True, False)]
    lines = []
    for number, (confidence, right) in enumerate(events):
        lines.append(encode(prediction(f"p{number}", START_MS, confidence)))
        lines.append(encode(label(f"p{number}", START_MS, "yes" if right else "no")))
    config = configure(tmp_path, {"nll_clip": nll_clip, "csr_clip": csr_clip})
    report, _ = evaluated(config, write_lines(tmp_path / "events.ndjson", lines))
    true = [confidence if right else 1 - confidence for confidence, right in events]
    gaps = [max(1 - confidence, csr_clip) for confidence, _ in events]
    n, variance = len(events), sum((1 - q) / q for q in gaps)
    wanted = {
        "nll": sum(-math.log(max(p, nll_clip)) for p in true) / n,
        "nll_clipped": sum(p < nll_clip for p in true),
        "nll_multi": sum(-math.log(max(p, nll_clip)) for p in true) / n,
        "nll_multi_clipped": sum(p < nll_clip for p in true),
        "csr": sum(1 / q for q, (_, right) in zip(gaps, events, strict=True) if not right) / n,
        "csr_sigma": math.sqrt(variance) / n,
        "csr_skew": sum((1 - q) * (1 - 2 * q) / q**2 for q in gaps) / variance**1.5,
        "csr_clipped": sum(1 - confidence < csr_clip for confidence, _ in events),
        "csr_null_mean": 1 - sum(1 - (1 - confidence) / csr_clip for confidence, _ in events if 1 - confidence < csr_clip) / n,
    }
    found = {name: report["m@v1"][name] for name in wanted}
    assert found == pytest.approx(wanted, abs=1e-6)
    assert (wanted["nll_clipped"], wanted["csr_clipped"]) == (4, 6)
