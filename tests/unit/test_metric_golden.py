"""Every golden answer of tests, decompositions, debiased errors, decisions and groups, from sums of the cases' own events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.metrics import debiased, decomposition, group, selective, significance
from monitor.metrics.settings import Settings
from tests.doubles.raw_sums import RawSums
from tests.golden.case import load_case
from tests.golden.comparison import Tolerance
from tests.golden.stream import event_lines, events_file, load_expectation
from tests.oracle.gauges import by_version
from tests.oracle.join import Scored, join
from tests.oracle.metrics import ModelConfig, acceptance, report_edges

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = [path for path in sorted((GOLDEN / "cases").glob("*.json")) if "arrays" not in path.read_text("utf-8")]
STREAMS = sorted((GOLDEN / "streams").glob("*.expect.json"))

OF_SUMS = (
    significance.overconfidence_z,
    significance.spiegelhalter_z,
    significance.chi2,
    significance.chi2_df,
    significance.chi2_p,
    significance.bin_p_holm_min,
    decomposition.brier_reliability,
    decomposition.brier_resolution,
    decomposition.brier_uncertainty,
    decomposition.brier_within_bin_variance,
    decomposition.brier_within_bin_covariance,
    decomposition.brier_generalized_resolution,
    debiased.ece_squared,
    debiased.ece_l2,
    debiased.ece_squared_floor,
    debiased.ece_squared_debiased,
    debiased.ece_squared_debiased_skipped,
    selective.selective_risk_cp_upper,
    selective.cost_per_event,
)
OF_DECISIONS = (group.groups_used, group.rejection_rate_spread, group.group_acceptance_ratio, group.rejection_disparity_p)
OF_GROUPS = (
    group.multicalibration_groups,
    group.multicalibration_cells,
    group.group_overconfidence_max,
    group.group_ece_max,
    group.multicalibration_max_gap,
    group.multicalibration_max_weighted_gap,
    group.multicalibration_p_holm,
)
NAMES = {function.__name__ for function in (*OF_SUMS, *OF_DECISIONS, *OF_GROUPS)} | {"rejection_rate_p_holm"}


def settings(config: Mapping[str, Any]) -> Settings:
    names = ("error_cost", "handoff_cost", "human_error", "min_group_count")
    return Settings(**{name: config[name] for name in names if name in config})


def model_config(config: Mapping[str, Any]) -> ModelConfig:
    edges = config.get("edges")
    return ModelConfig(
        bins=config.get("bins", 15),
        edges=None if edges is None else tuple(edges),
        scheme=config.get("scheme", "width"),
        confidence_threshold=config.get("confidence_threshold"),
    )


def raw_sums(series: Sequence[Sequence[Scored]], config: ModelConfig, edges: Sequence[float], given: Settings) -> RawSums:
    counts: dict[str, list[int]] = {}
    arrays = []
    for events in series:
        labelled = [event for event in events if event.label is not None]
        correct = np.array([event.correct for event in labelled], dtype=np.bool_)
        arrays.append((np.array([event.prediction.confidence for event in labelled], dtype=np.float64), correct))
        decided = [(event, decision) for event in events if (decision := acceptance(event, config)) is not None]
        kept = [event for event, decision in decided if decision and event.label is not None]
        for name, count in (
            ("decided", len(decided)),
            ("accepted", sum(decision for _, decision in decided)),
            ("labelled_decided", sum(event.label is not None for event, _ in decided)),
            ("labelled_accepted", len(kept)),
            ("labelled_accepted_errors", sum(not event.correct for event in kept)),
        ):
            counts.setdefault(name, []).append(count)
    return RawSums(arrays, edges, {name: np.array(values, dtype=np.int64) for name, values in counts.items()}, given)


def found(events: Sequence[Scored], config: Mapping[str, Any]) -> dict[str, float]:
    """Everything that this file's functions make of one version's events."""
    given, of_model = settings(config), model_config(config)
    edges = report_edges(events, of_model)
    sums = raw_sums([events], of_model, edges, given)
    values = {function.__name__: float(function(sums)[0]) for function in OF_SUMS}
    by_value: dict[str, list[Scored]] = {}
    for event in events:
        for name, value in event.prediction.groups:
            if name == "group":
                by_value.setdefault(value, []).append(event)
    if by_value:
        rows = raw_sums(list(by_value.values()), of_model, edges, given)
        decisions = group.GroupDecisions(rows.count("decided")[None], rows.count("accepted")[None], given.min_group_count)
        values |= {function.__name__: float(function(decisions)[0]) for function in OF_DECISIONS}
        p_holm = group.rejection_rate_p_holm(decisions)[0]
        values |= {f"rejection_rate_p_holm[{value}]": float(p) for value, p in zip(by_value, p_holm, strict=True)}
        labelled, correct, confidence = (rows.bins(name)[None] for name in ("labelled", "correct", "confidence"))
        cells = group.GroupCalibration(labelled, correct, confidence, sums.used, given.min_group_count)
        values |= {function.__name__: float(function(cells)[0]) for function in OF_GROUPS}
    return values


def compared(got: Mapping[str, float], want: Mapping[str, float | None], model: str, tolerance: Tolerance) -> set[str]:
    """Compare every wanted key that is known here; which were."""
    keys = {key: name for key in want if key.startswith(f"{model}.") and (name := key[len(model) + 1 :]).split("[")[0] in NAMES}
    wrong = {}
    for key, name in keys.items():
        value = None if name not in got or math.isnan(got[name]) else got[name]
        if not tolerance.allows(key, value, want[key]):
            wrong[key] = (value, want[key])
    assert wrong == {}
    return set(keys.values())


def scored(lines: Iterable[bytes]) -> dict[str, list[Scored]]:
    joined = join([(0, line.rstrip(b"\n")) for line in lines], None)
    return {f"{model}@{version}": events for (model, version), events in by_version(joined.scored).items()}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = load_case(path)
    config = {**case.config}
    for model, events in scored(case.lines().splitlines()).items():
        compared(found(events, config), case.want, model, case.tolerance)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name.split(".", maxsplit=1)[0])
def test_stream(path: Path) -> None:
    expected = load_expectation(path)
    for model, events in scored(event_lines(events_file(path))).items():
        got = found(events, expected.config)
        names = compared(got, expected.want, model, expected.tolerance)
        assert {name.split("[")[0] for name in names} == NAMES
        # The tolerance is absolute below 1; tiny p-values must be right in their own size.
        for name in names:
            want = expected.want[f"{model}.{name}"]
            if "_p" in name and want:
                assert got[name] == pytest.approx(want, rel=1e-6), name


def test_the_cases_ask_for_every_name() -> None:
    asked = {key.split(".", 1)[-1].split("[")[0] for path in CASES for key in load_case(path).want}
    assert asked >= NAMES
