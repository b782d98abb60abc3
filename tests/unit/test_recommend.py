"""`calmon recommend` against the raw events, and what it says where there is nothing to recommend."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from scipy.stats import binom

from monitor.app import Engine
from monitor.clock import ManualClock
from monitor.config_file import load_config
from monitor.metrics.certified import choose_threshold
from monitor.state.rocks import RocksStore
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.grid import equal_edges, graded_edges, union_edges
from tests.doubles.list_source import ListSource
from tests.recovery.stream import START_MS, encode, write_lines
from tests.unit.test_commands import Called

CLASSES = ("a", "b", "c")


class Raw:
    """Random events of one version, labelled after a temperature other than 1; the last fifth has no label."""

    def __init__(self, seed: int, size: int = 3000, high_is_in: bool = True, domains: bool = True) -> None:
        rng = np.random.default_rng(seed)
        self.vectors = np.round(rng.dirichlet(np.full(3, 0.7), size), 6)
        self.vectors[:, 0] = np.round(1 - self.vectors[:, 1] - self.vectors[:, 2], 6)
        self.vectors = np.maximum(self.vectors, 0.0)
        softened = np.exp(log_softmax(np.log(np.maximum(self.vectors, 1e-12)) / 1.7, axis=1))
        self.labels = np.minimum((np.cumsum(softened, axis=1) < rng.random((size, 1))).sum(axis=1), 2)
        self.labelled = np.arange(size) < size * 4 // 5
        self.scores = rng.normal(-0.3, 1, size) * (1 if high_is_in else -1)
        self.known = (rng.random(size) < 0.5) & domains
        self.ids = [f"id-{number}" for number in range(size)]
        self.fits = np.array([self._share(one) < 0.5 for one in self.ids])

    @staticmethod
    def _share(one: str) -> float:
        return int(hashlib.sha256(f"split\x1f{one}".encode()).hexdigest()[:16], 16) / 2**64

    @property
    def confidences(self) -> F64:
        return np.asarray(self.vectors.max(axis=1))

    @property
    def correct(self) -> I64:
        return np.asarray(self.vectors.argmax(axis=1) == self.labels, dtype=np.int64)

    def nll(self, temperature: float, chosen: F64) -> float:
        """Mean NLL of the chosen labelled events."""
        logs = log_softmax(np.log(np.maximum(self.vectors, 1e-12)) / temperature, axis=1)
        return float(-logs[np.arange(len(logs)), self.labels][chosen].mean())

    def ece(self, temperature: float, chosen: F64) -> float:
        """ECE of the chosen events in 15 equal bins."""
        tempered = np.exp(log_softmax(np.log(np.maximum(self.vectors, 1e-12)) / temperature, axis=1))
        confidence = tempered[np.arange(len(tempered)), self.vectors.argmax(axis=1)][chosen]
        place = np.minimum(np.searchsorted(np.arange(16) / 15, confidence, side="right") - 1, 14)
        gaps = np.bincount(place, confidence - self.correct[chosen], minlength=15)
        return float(np.abs(gaps).sum() / chosen.sum())

    def write(self, path: Path, **changes: Any) -> Path:
        """As event lines."""
        lines = []
        for number, one in enumerate(self.ids):
            event: dict[str, Any] = {"type": "prediction", "prediction_id": one, "model": "m", "model_version": "v"}
            event |= {"predicted_at": START_MS + number, "probabilities": dict(zip(CLASSES, self.vectors[number].tolist(), strict=True))}
            event |= {"ood_score": float(self.scores[number])}
            event |= {"domain": "id"} if self.known[number] else {}
            lines.append(encode({key: value for key, value in (event | changes).items() if value is not None}))
            if self.labelled[number]:
                label = {"type": "label", "prediction_id": one, "labelled_at": START_MS + number, "label": CLASSES[self.labels[number]]}
                lines.append(encode(label))
        return write_lines(path, lines)


def configure(tmp_path: Path, model: str = "temperature: true") -> Path:
    path = tmp_path / "calmon.yaml"
    path.write_text(f"state: {{directory: {tmp_path / 'state'}}}\nmodels: {{m: {{{model}}}}}\n")
    return path


def recommended(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = Called(capsys, "recommend", "m", "v", *words, "--format", "json").json()
    return found


@pytest.mark.parametrize("seed", range(3))
def test_temperature(capsys: pytest.CaptureFixture[str], tmp_path: Path, seed: int) -> None:
    raw = Raw(seed)
    found = recommended(capsys, "-c", configure(tmp_path), "--from", raw.write(tmp_path / "e"))["recommendations"]["temperature"]
    fit, report = raw.labelled & raw.fits, raw.labelled & ~raw.fits
    best = minimize_scalar(lambda log_t: raw.nll(math.exp(log_t), fit), bounds=(-2, 2), method="bounded", options={"xatol": 1e-9})
    assert math.log(found["temperature"]) == pytest.approx(best.x, abs=8e-4), seed
    assert (found["data"]["fit_events"], found["data"]["report_events"]) == (fit.sum(), report.sum())
    assert found["nll_before"] == pytest.approx(raw.nll(1.0, report), abs=1e-6)
    assert found["nll_after"] == pytest.approx(raw.nll(found["temperature"], report), abs=1e-5)
    nearest = found["ece_after_is_at_temperature"]
    assert abs(math.log(nearest / found["temperature"])) <= math.log(64) / 60 / 2 + 1e-9
    assert found["ece_before"] == pytest.approx(raw.ece(1.0, report), abs=1e-8)
    assert found["ece_after"] == pytest.approx(raw.ece(nearest, report), abs=1e-8)
    assert found["ece_after"] < found["ece_before"]
    assert found["predicted_class_and_accuracy"] == "unchanged"
    assert "sha256" in found["split"]


@pytest.mark.parametrize("share", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("high_is_in", "domains"), [(True, True), (False, True), (True, False), (False, False)])
def test_ood_threshold(capsys: pytest.CaptureFixture[str], tmp_path: Path, share: float, high_is_in: bool, domains: bool) -> None:
    raw = Raw(1, 1500, high_is_in, domains)
    config = configure(tmp_path, f"ood_high_is: {'in' if high_is_in else 'out_of'}_distribution")
    words: list[str | Path] = ["-c", config, "--acceptance", str(share), "--from", raw.write(tmp_path / "e")]
    found = recommended(capsys, *words)["recommendations"]["ood_threshold"]
    scores = raw.scores[raw.known] if domains else raw.scores
    assert found["chosen_on"] == ("in_distribution" if domains else "scored")
    assert found["data"]["events"] == len(scores)

    def accepted(threshold: float) -> float:
        return float((scores >= threshold if high_is_in else scores <= threshold).mean())

    assert found["acceptance"] == accepted(found["ood_threshold"]) >= share
    inwards = 1 if high_is_in else -1
    assert accepted(found["ood_threshold"] + inwards * found["threshold_bound"] * 1.0001) < share
    tightest = np.sort(scores)[::-inwards][math.ceil(share * len(scores) - 1e-9) - 1]
    assert 0 <= (tightest - found["ood_threshold"]) * inwards <= found["threshold_bound"]


@pytest.mark.parametrize("max_risk", [0.3, 0.4])
def test_confidence_threshold(capsys: pytest.CaptureFixture[str], tmp_path: Path, max_risk: float) -> None:
    raw = Raw(2)
    words: list[str | Path] = [
        "-c",
        configure(tmp_path),
        "--max-risk",
        str(max_risk),
        "--delta",
        "0.1",
        "--from",
        raw.write(tmp_path / "e"),
    ]
    found = recommended(capsys, *words)["recommendations"]["confidence_threshold"]
    confidences, correct = raw.confidences[raw.labelled], raw.correct[raw.labelled]
    want = choose_threshold(confidences, correct, max_risk, 0.1, union_edges(equal_edges(15), graded_edges(32)))
    assert want is not None
    taken = confidences >= found["confidence_threshold"]
    assert found["confidence_threshold"] == want.threshold
    assert (found["data"]["accepted"], found["data"]["errors"]) == (taken.sum(), (1 - correct[taken]).sum())
    assert binom.cdf(found["data"]["errors"], taken.sum(), max_risk) <= 0.1 / 4
    assert (found["risk"], found["coverage"]) == (pytest.approx(1 - correct[taken].mean()), pytest.approx(taken.mean()))


def test_where_no_threshold_can_be_certified_it_says_what_it_takes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = Raw(2, 100).write(tmp_path / "e")
    called = Called(capsys, "recommend", "m", "v", "-c", configure(tmp_path), "--from", path, "--max-risk", "0.01")
    assert called.code == 0
    assert "no threshold can be certified to keep the risk at 0.01 with confidence 0.95 on 80 labelled events" in called.out
    # 0.99^n <= 0.05/4 from n = 437 on
    assert "the least it takes is 437 labelled events" in called.out
    assert 0.99**437 <= 0.05 / 4 < 0.99**436


def test_label_free_accuracy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    raw = Raw(3)
    found = recommended(capsys, "-c", configure(tmp_path), "--from", raw.write(tmp_path / "e"))["recommendations"]["label_free_accuracy"]
    place = np.searchsorted(graded_edges(8), raw.confidences, side="right")
    n = np.bincount(place[raw.labelled], minlength=400)
    k = np.bincount(place[raw.labelled], raw.correct[raw.labelled], minlength=400)
    u = np.bincount(place[~raw.labelled], minlength=400)
    m = (k + 0.5) / (n + 1)
    variance = (u * m * (1 - m)).sum() / u.sum() ** 2 + ((u / u.sum()) ** 2 * m * (1 - m) / (n + 1)).sum()
    assert found["estimate"] == pytest.approx((u * m).sum() / u.sum(), rel=1e-12)
    assert found["sd"] == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert found["unsupported_share"] == pytest.approx(u[n == 0].sum() / u.sum(), abs=1e-12)
    assert abs(found["estimate"] - raw.correct[~raw.labelled].mean()) < 4 * found["sd"]
    assert "an estimate, not a measurement" in found["says"]


def test_each_says_its_data_dates_and_version(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = Raw(0, 600).write(tmp_path / "e")
    report = recommended(capsys, "-c", configure(tmp_path), "--from", path)
    assert report["basis"]["model_version"] == "v"
    assert (report["basis"]["predictions"], report["basis"]["labelled"]) == (600, 480)
    assert list(report["recommendations"]) == ["temperature", "ood_threshold", "confidence_threshold", "label_free_accuracy"]
    for one in report["recommendations"].values():
        assert one["split"]
        window = {"start": "2026-06-01T00:00:00Z", "end": "2026-06-01T01:00:00Z", "model_version": "v"}
        assert one["data"].items() >= window.items()
        assert len(one["data"]) > len(window) or not one["available"]
    text = Called(capsys, "recommend", "m", "v", "-c", tmp_path / "calmon.yaml", "--from", path).out
    assert "model m version v, 2026-06-01T00:00:00Z to 2026-06-01T01:00:00Z: 600 predictions, 480 labelled" in text
    assert text.count("split:") >= 3


@pytest.mark.parametrize(
    ("model", "changes", "name", "said"),
    [
        ("bins: 15", {}, "temperature", "set models.m.temperature: true"),
        (
            "temperature: true",
            {"probabilities": None, "confidence": 0.8, "predicted_class": "a"},
            "temperature",
            "events need the whole `probabilities`",
        ),
        ("bins: 15", {"ood_score": None}, "ood_threshold", "no prediction has an `ood_score`"),
        ("bins: 15", {"ood_score": 1e300}, "ood_threshold", "beyond the grid's ends"),
    ],
)
def test_what_is_not_there_says_what_it_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, model: str, changes: Mapping[str, Any], name: str, said: str
) -> None:
    raw = Raw(0, 60)
    found = recommended(capsys, "-c", configure(tmp_path, model), "--from", raw.write(tmp_path / "e", **changes))["recommendations"][name]
    assert found["available"] is False
    assert said in found["says"]


def test_without_labels_or_with_all_of_them_nothing_is_estimated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for labelled in (np.zeros(60, dtype=np.bool_), np.ones(60, dtype=np.bool_)):
        raw = Raw(0, 60)
        raw.labelled = labelled
        found = recommended(capsys, "-c", configure(tmp_path), "--from", raw.write(tmp_path / "e"))["recommendations"]
        assert found["label_free_accuracy"]["available"] is False
        assert found["confidence_threshold"]["data"]["labelled"] == labelled.sum()
        assert found["temperature"]["available"] is bool(labelled.any())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["m", "9"], 1, "no prediction of version 9 of model m in EVENTS; there are v"),
        (["x", "v"], 1, "no prediction of model x in EVENTS; there are m"),
        (["m", "v", "--acceptance", "0"], 2, "--acceptance 0.0: must be above 0 and at most 1"),
        (["m", "v", "--acceptance", "nan"], 2, "--acceptance nan"),
        (["m", "v", "--max-risk", "1"], 2, "--max-risk 1.0: must be between 0 and 1"),
        (["m", "v", "--delta", "-1"], 2, "--delta -1.0: must be between 0 and 1"),
        (["m", "v", "--window", "24h"], 2, "--at and --window go together"),
        (["m"], 2, "VERSION"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: Sequence[str], code: int, said: str) -> None:
    path = Raw(0, 20).write(tmp_path / "e")
    called = Called(capsys, "recommend", *words, "--from", path)
    assert (called.code, called.out) == (code, "")
    assert said.replace("EVENTS", str(path)) in called.err
    assert "Traceback" not in called.err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    called = Called(capsys, "recommend", "--help")
    assert called.code == 0
    for words in ("running or not", "--max-risk", "Example: calmon recommend", "Nothing is applied"):
        assert words in " ".join(called.out.split())


def test_shards_of_a_state_are_taken_together(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = Raw(4, 400).write(tmp_path / "e").read_bytes().splitlines()
    config = configure(tmp_path)
    for shard in range(2):
        store = RocksStore(tmp_path / "shards" / f"shard-{shard}")
        # An id's prediction and label are in one shard.
        part = [("p", line) for line in lines if int(line.split(b'"id-')[1].split(b'"')[0]) % 2 == shard]
        (tmp_path / "state").mkdir(exist_ok=True)  # for the quarantine
        engine = Engine(load_config(config), ManualClock(START_MS), ListSource(part), store)
        engine.runner.start()
        while engine.runner.step(100, 0.0):
            pass
        engine.close()
    found = recommended(capsys, "-c", config, "--state", tmp_path / "shards")
    of_file = recommended(capsys, "-c", config, "--from", tmp_path / "e")
    assert found["recommendations"] == of_file["recommendations"]
    assert found["basis"] | {"source": ""} == of_file["basis"] | {"source": ""}


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = Raw(0, 1).write(tmp_path / "e")
    text = Called(capsys, "recommend", "m", "v", "-c", configure(tmp_path), "--from", path, "--format", "json").out
    json.loads(text, parse_constant=pytest.fail)
