"""Drift and differences through `calmon evaluate`, against raw events with numpy, scipy and statsmodels; and which bins are compared."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import ks_2samp, kstwobign
from statsmodels.stats.proportion import confint_proportions_2indep, proportions_ztest

from monitor.metrics.drift import Histograms, aligned, mass_starts
from monitor.metrics.sums import Sums
from monitor.names import OTHER_VALUE
from monitor.statistics.fixed_point import F64
from monitor.statistics.layout import Layout
from monitor.statistics.segment import CLASS
from tests.recovery.stream import START_MS, encode, write_lines
from tests.unit.test_commands import Called

CLASSES = ("a", "b", "c")
OOD_THRESHOLD, CONFIDENCE_THRESHOLD = 0.25, 0.6


@dataclass(frozen=True)
class Event:
    """A prediction and what became of it; `correct` None without a label."""

    at_ms: int
    version: str
    vector: tuple[float, ...]
    score: float | None
    group: str | None
    correct: bool | None

    @property
    def confidence(self) -> float:
        return max(self.vector)

    @property
    def predicted(self) -> str:
        return CLASSES[int(np.argmax(self.vector))]

    def lines(self, number: int) -> list[bytes]:
        """As they are sent."""
        one: dict[str, Any] = {"type": "prediction", "prediction_id": f"{self.version}-{number}", "model": "m"}
        one |= {"model_version": self.version, "predicted_at": self.at_ms, "probabilities": dict(zip(CLASSES, self.vector, strict=True))}
        one |= {} if self.score is None else {"ood_score": self.score}
        one |= {} if self.group is None else {"groups": {"region": self.group}}
        if self.correct is None:
            return [encode(one)]
        other = CLASSES[(CLASSES.index(self.predicted) + 1) % 3]
        label = {"type": "label", "prediction_id": f"{self.version}-{number}", "labelled_at": self.at_ms}
        return [encode(one), encode(label | {"label": self.predicted if self.correct else other})]


def draw(rng: np.random.Generator, size: int, version: str, begins_ms: int, sharpness: float, shift: float) -> list[Event]:
    """Random events; scores are multiples of 1/16, so that many are tied."""
    made = []
    for number in range(size):
        vector = rng.dirichlet(np.full(3, sharpness)) if number % 9 else np.array([1.0, 0.0, 0.0])
        vector = np.round(vector, 6)
        vector[0] = round(1 - vector[1] - vector[2], 6)
        score = None if number % 7 == 0 else round(rng.normal(shift, 1) * 16) / 16
        group = rng.choice(["eu", "us", "asia"], p=[0.5 - shift / 4, 0.3, 0.2 + shift / 4]) if number % 5 else None
        correct = None if number % 4 == 0 else bool(rng.random() < vector.max() ** (1 + shift))
        made.append(Event(begins_ms + number * 1000, version, tuple(vector.tolist()), score, group, correct))
    return made


def file_of(path: Path, events: Sequence[Event]) -> Path:
    return write_lines(path, [line for number, event in enumerate(events) for line in event.lines(number)])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "calmon.yaml"
    model = f"ood_threshold: {OOD_THRESHOLD}, confidence_threshold: {CONFIDENCE_THRESHOLD}, groups: [region], reference: spring"
    path.write_text(f"state: {{directory: {tmp_path / 'state'}}}\nmodels: {{m: {{{model}, min_group_count: 20}}}}\n")
    return path


def graded(confidences: F64) -> F64:
    """Counts on the graded grid of FORMULAS section 2, made anew."""
    low = [2.0 ** -(k + 1) * (1 + j / 8) for k in range(1, 20) for j in range(8)]
    edges = sorted({0.0, 0.5, *low, *(1 - edge for edge in low)})
    return np.bincount(np.searchsorted(edges, confidences, side="right"), minlength=len(edges) + 2).astype(np.float64)


def distances(now: F64, then: F64) -> dict[str, float]:
    """PSI, its floor and Jensen-Shannon, over the bins that are not empty on both sides."""
    kept = (now > 0) | (then > 0)
    now, then = now[kept], then[kept]
    n, m, bins = now.sum(), then.sum(), len(now)
    p, q = (now + 0.5) / (n + bins / 2), (then + 0.5) / (m + bins / 2)
    psi = math.fsum((p - q) * (np.log(p) - np.log(q)))
    return {"psi": psi, "psi_floor": (bins - 1) * (1 / n + 1 / m), "js": float(jensenshannon(now, then, base=2)) ** 2}


def difference(hits: int, trials: int, other_hits: int, other_trials: int) -> list[float]:
    interval = confint_proportions_2indep(hits, trials, other_hits, other_trials, method="newcomb", compare="diff")
    return [hits / trials - other_hits / other_trials, *interval, proportions_ztest([hits, other_hits], [trials, other_trials])[0]]


def four(model: dict[str, float], name: str) -> list[float]:
    return [model[f"{name}_difference{suffix}"] for suffix in ("", "_lower", "_upper", "_z")]


def histogram(names: Sequence[str | None], order: Sequence[str]) -> F64:
    counts = Counter(names)
    return np.array([counts[name] for name in order], dtype=np.float64)


@pytest.mark.parametrize("seed", range(4))
def test_drift_is_what_the_raw_events_say(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    then = draw(rng, 900, "old", START_MS, 0.8, 0.0)
    now = draw(rng, int(rng.integers(200, 1200)), "new", START_MS + 10**9, float(rng.uniform(0.5, 1.2)), float(rng.uniform(0, 1)))
    assert Called(capsys, "reference", "set", "spring", "--model", "m", "-c", config, "--from", file_of(tmp_path / "then", then)).code == 0
    report = Called(capsys, "evaluate", file_of(tmp_path / "now", now), "-c", config, "--format", "json").json()
    model = report["models"]["m@new"]
    assert model["drift_reference_predictions"] == 900

    confidences = [np.array([event.confidence for event in side]) for side in (now, then)]
    scores = [np.array([event.score for event in side if event.score is not None]) for side in (now, then)]
    edges = np.unique(np.sort(scores[1])[[k * len(scores[1]) // 128 for k in range(1, 128)]])
    binned = [np.bincount(np.searchsorted(edges, side, side="right"), minlength=len(edges) + 1).astype(np.float64) for side in scores]
    histograms: dict[str, list[F64]] = {
        "confidence": [graded(side) for side in confidences],
        "score": binned,
        "class": [histogram([event.predicted for event in side], CLASSES) for side in (now, then)],
        "group": [histogram([event.group for event in side], ["eu", "us", "asia"]) for side in (now, then)],
    }
    for name, (current, reference) in histograms.items():
        ending = "[region]" if name == "group" else ""
        for key, value in distances(current, reference).items():
            assert model[f"drift_{name}_{key}{ending}"] == pytest.approx(value, rel=1e-9, abs=1e-12), (name, key, seed)
    for name, (left, right) in (("confidence", confidences), ("score", scores)):
        raw = float(ks_2samp(left, right).statistic)
        lower, upper, p = (model[f"drift_{name}_ks_{key}"] for key in ("lower", "upper", "p"))
        assert lower - 1e-12 <= raw <= upper + 1e-12, (name, seed)
        assert upper - lower < 0.15, "the bracket says something"
        root = math.sqrt(len(left) * len(right) / (len(left) + len(right)))
        assert p == pytest.approx(kstwobign.sf(root * lower), rel=1e-9), (name, seed)

    accepted = [(int((side >= OOD_THRESHOLD).sum()), len(side)) for side in scores]
    assert four(model, "drift_ood_acceptance") == pytest.approx(difference(*accepted[0], *accepted[1]), rel=1e-9)
    rejected = [(int((side < CONFIDENCE_THRESHOLD).sum()), len(side)) for side in confidences]
    assert four(model, "drift_rejection") == pytest.approx(difference(*rejected[0], *rejected[1]), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_differences_are_what_the_raw_events_say(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # `few` was first seen in between, but has too few labels to be compared with.
    sides = {
        "old": draw(rng, 700, "old", START_MS, 0.8, 0.0),
        "few": draw(rng, 24, "few", START_MS + 10, 0.8, 0.0),
        "new": draw(rng, 500, "new", START_MS + 20, 0.6, 0.7),
    }
    path = file_of(tmp_path / "events", [event for name in ("new", "few", "old") for event in sides[name]])
    models = Called(capsys, "evaluate", path, "-c", config, "--format", "json").json()["models"]
    labelled = {name: [event for event in side if event.correct is not None] for name, side in sides.items()}
    taken = {name: [event for event in side if event.confidence >= CONFIDENCE_THRESHOLD] for name, side in labelled.items()}
    for name in ("new", "few"):
        model = models[f"m@{name}"]
        pair = (name, "old")
        right = [(sum(bool(event.correct) for event in labelled[one]), len(labelled[one])) for one in pair]
        errors = [(sum(not event.correct for event in taken[one]), len(taken[one])) for one in pair]
        rejected = [(sum(event.confidence < CONFIDENCE_THRESHOLD for event in sides[one]), len(sides[one])) for one in pair]
        assert four(model, "accuracy") == pytest.approx(difference(*right[0], *right[1]), rel=1e-9)
        assert four(model, "selective_risk") == pytest.approx(difference(*errors[0], *errors[1]), rel=1e-9)
        assert four(model, "rejection_rate") == pytest.approx(difference(*rejected[0], *rejected[1]), rel=1e-9)
        gaps = [np.array([event.confidence - bool(event.correct) for event in labelled[one]]) for one in pair]
        claimed = [np.mean([event.confidence * (1 - event.confidence) for event in labelled[one]]) for one in pair]
        sd = math.sqrt(sum(max(gap.var(ddof=1), claim) / len(gap) for gap, claim in zip(gaps, claimed, strict=True)))
        value = gaps[0].mean() - gaps[1].mean()
        want = [value, value - 1.959963984540054 * sd, value + 1.959963984540054 * sd, value / sd]
        assert four(model, "overconfidence") == pytest.approx(want, rel=1e-6, abs=1e-9), seed
    assert four(models["m@old"], "accuracy") == [None] * 4


def test_without_a_reference_there_is_no_drift(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path) -> None:
    path = file_of(tmp_path / "events", draw(np.random.default_rng(0), 50, "v", START_MS, 1.0, 0.0))
    called = Called(capsys, "evaluate", path, "-c", config, "--format", "json")
    assert not [key for key in called.json()["models"]["m@v"] if key.startswith("drift")]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).filter(any), st.integers(1, 12))
def test_bins_of_equal_mass(counts: list[int], bins: int) -> None:
    starts = mass_starts(np.array(counts), bins)
    assert starts[0] == 0
    assert 1 <= len(starts) <= bins
    assert (np.diff(starts) > 0).all()
    masses = np.add.reduceat(counts, starts)
    assert masses.sum() == sum(counts)
    # Each bin has at most its share and the heaviest fine bin, a bin that is one fine bin apart.
    assert (masses <= sum(counts) / bins + max(counts) + 1).all()


def named(**counts: int) -> Sums:
    cells = np.zeros((len(counts), CLASS.width(0)), dtype=np.int64)
    cells[:, CLASS.scalar("predicted")] = list(counts.values())
    layout = Layout((0.0, 1.0), None, None, True, None, (), 4)
    return Sums(cells, layout, CLASS, np.empty(0), [OTHER_VALUE if name == "other" else name for name in counts])


def pairs(histograms: Histograms) -> list[tuple[int, int]]:
    return list(zip(histograms.current[0].tolist(), histograms.reference[0].tolist(), strict=True))


def test_names_that_a_side_may_hold_among_others_are_compared_among_others() -> None:
    assert pairs(aligned(named(a=5, b=3), named(b=4, c=2), "predicted")) == [(5, 0), (3, 4), (0, 2)]
    assert pairs(aligned(named(a=5, b=3), named(b=4, c=2, other=9), "predicted")) == [(3, 4), (0, 2), (5, 9)]
    assert pairs(aligned(named(a=5, b=3, other=1), named(b=4, c=2, other=9), "predicted")) == [(3, 4), (6, 11)]
    assert pairs(aligned(named(a=5, b=0), named(a=4, b=0), "predicted")) == [(5, 4)]
    assert pairs(aligned(None, named(a=4), "predicted")) == [(0, 4)]


@pytest.mark.filterwarnings("error")
def test_an_empty_side_is_undefined() -> None:
    some, none = np.array([3, 0, 2]), np.zeros(3, dtype=np.int64)
    for now, then in ((some, none), (none, some), (none, none)):
        found = Histograms.of(now, then)
        values = [found.psi(), found.psi_floor(), found.js(), found.ks_lower(), found.ks_upper(), found.ks_p()]
        assert np.isnan(values).all()


def test_scores_on_one_side_only_are_undefined(capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path) -> None:
    rng = np.random.default_rng(3)
    then = draw(rng, 60, "v", START_MS, 1.0, 0.0)
    now = [Event(e.at_ms, e.version, e.vector, None, e.group, e.correct) for e in then]
    Called(capsys, "reference", "set", "spring", "--model", "m", "-c", config, "--from", file_of(tmp_path / "then", then))
    called = Called(capsys, "evaluate", file_of(tmp_path / "now", now), "-c", config, "--format", "json")
    model = json.loads(called.out)["models"]["m@v"]
    assert model["drift_confidence_psi"] == 0
    assert model["drift_reference_scored"] > 0
    assert [model[f"drift_score_{key}"] for key in ("psi", "psi_floor", "js", "ks_lower", "ks_upper", "ks_p")] == [None] * 6
    assert four(model, "drift_ood_acceptance") == [None] * 4
