"""The oracle against every golden case and both real streams: what makes it trustworthy as a judge of the product."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.golden.stream import event_lines, events_file
from tests.oracle.events import Judgement, judge
from tests.oracle.gauges import GAUGES, Window, gauges, golden_metrics
from tests.oracle.join import Account, join, join_judged
from tests.oracle.metrics import Metrics, ModelConfig

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted((GOLDEN / "cases").glob("*.json"))
STREAMS = sorted((GOLDEN / "streams").glob("*.expect.json"))
OF_GROUP = re.compile(r"(rejection_rate(_lower|_upper)?|group_ece|group_overconfidence)\[.*\]")
HOUR_MS = 3_600_000


def covered(metric: str) -> bool:
    return metric in GAUGES or metric.startswith("bins[") or OF_GROUP.fullmatch(metric) is not None


def model_config(config: Mapping[str, Any]) -> ModelConfig:
    """The keys of a golden case's configuration that the oracle's gauges depend on."""
    return ModelConfig(
        bins=config.get("bins", 15),
        edges=tuple(config["edges"]) if "edges" in config else None,
        scheme=config.get("scheme", "width"),
        ood_threshold=config.get("ood_threshold"),
        confidence_threshold=config.get("confidence_threshold"),
        groups=("group",),
    )


def case_events(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The case's own events, or those that its arrays or its group counts stand for."""
    events: list[dict[str, Any]] = list(case.get("events", []))
    rows: list[dict[str, Any]] = []
    if "arrays" in case:
        pairs = zip(case["arrays"]["confidence"], case["arrays"]["correct"], strict=True)
        rows = [{"confidence": confidence, "label": "a" if correct else "b"} for confidence, correct in pairs]
    elif case.get("function") == "group_rejection":
        for value, (rejected, total) in case["args"]["counts"].items():
            rows += [{"confidence": 0.5, "accepted": i >= rejected, "groups": {"group": value}} for i in range(total)]
    for i, row in enumerate(rows):
        label = row.pop("label", None)
        head = {"type": "prediction", "prediction_id": str(i), "model": "m", "model_version": "1", "predicted_at": 1_780_000_000_000 + i}
        events.append(head | row | {"predicted_class": "a"})
        if label is not None:
            events.append({"type": "label", "prediction_id": str(i), "label": label, "labelled_at": 1_780_000_000_000 + i})
    return events


def wire(event: dict[str, Any]) -> bytes:
    """An event as it is sent: {"$float": "nan"} stands for the bare token."""
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return re.sub(r'\{"\$float": "([^"]*)"\}', lambda match: special[match[1]], json.dumps(event)).encode()


def account_keys(account: Account) -> dict[str, float]:
    counts = {
        "account.predictions": account.predictions,
        "account.duplicates": account.duplicates,
        "account.orphan_labels": account.orphan_labels,
        "account.rejected_total": sum(account.rejected.values()),
    }
    return {**counts, **{f"account.rejected.{reason}": count for reason, count in account.rejected.items()}}


def close(got: float | None, want: float | None, tolerance: float) -> bool:
    if got is None or want is None:
        return got is want
    return abs(got - want) <= tolerance * max(1.0, abs(want))


def case_tolerance(case: Mapping[str, Any], key: str) -> float:
    for substring, value in case["tolerance"]["patterns"]:
        if substring in key:
            return float(value)
    return float(case["tolerance"]["default"])


def cases() -> list[Any]:
    """The cases that have events; the others are pure functions of families that the oracle does not know."""
    loaded = [json.loads(path.read_text("utf-8")) for path in CASES]
    return [pytest.param(case, id=case["name"]) for case in loaded if case_events(case)]


@pytest.mark.parametrize("case", cases())
def test_golden_case(case: dict[str, Any]) -> None:
    joined = join([(0, wire(event)) for event in case_events(case)], None)
    by_model = golden_metrics(joined.scored, {}, model_config(case.get("config", {})))
    got: dict[str, float] = {f"{model}.{name}": number for model, found in by_model.items() for name, number in found.items()}
    got |= account_keys(joined.account)
    got |= by_model["m@1"] if "function" in case else {}

    want = dict(case["expect"])
    # The bare tokens NaN and Infinity are refused as JSON here; the case names the number that they stand for.
    not_finite = sum(want.pop(key) for key in list(want) if key.startswith("account.rejected.") and key.endswith("_not_finite"))
    assert got.pop("account.rejected.bad_json", 0) == not_finite

    compared = [key for key in want if key.startswith("account.") or covered(key.split(".", 1)[1] if "@" in key else key)]
    wrong = {key: (got.get(key), want[key]) for key in compared if not close(got.get(key), want[key], case_tolerance(case, key))}
    assert wrong == {}
    assert compared or all("positive_" in key or "log_e" in key for key in want)
    if any(key.startswith("account.rejected.") for key in want):
        assert {key for key in got if key.startswith("account.rejected.")} == {key for key in want if key.startswith("account.rejected.")}


@cache
def judged(stream: str) -> list[tuple[int, Judgement]]:
    file = events_file(GOLDEN / "streams" / f"{stream}.expect.json")
    return [(0, judge(line.rstrip(b"\n"))) for line in event_lines(file)]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_whole_stream(path: Path) -> None:
    expected = json.loads(path.read_text("utf-8"))
    records = judged(expected["stream"])
    joined = join_judged(records, None)
    assert len(records) == joined.account.consumed == expected["events"]
    assert joined.account.rejected == expected["account"]["rejected"]
    for key in ("duplicates", "orphan_labels", "predictions"):
        assert getattr(joined.account, key) == expected["account"][key]
    got = golden_metrics(joined.scored, {}, model_config(expected["config"]))
    assert got.keys() == expected["models"].keys()
    for model, want in expected["models"].items():
        flat = dict(want)
        for index, of_bin in enumerate(flat.pop("bins")):
            flat |= {f"bins[{index}].{name}": value for name, value in of_bin.items()}
        assert differing(got[model], flat) == {}


def windows() -> list[Any]:
    """One parameter a check of each stream's windows."""
    found = []
    for path in sorted((GOLDEN / "streams").glob("*.windows.json")):
        expected = json.loads(path.read_text("utf-8"))
        for check in expected["checks"]:
            name = f"{expected['stream']}-{check['lines']}-{check['length_hours']}h-{check['lag_hours']}h"
            found.append(pytest.param(expected["stream"], expected["config"], check, id=name))
    return found


@pytest.mark.parametrize(("stream", "config", "check"), windows())
def test_window(stream: str, config: dict[str, Any], check: dict[str, Any]) -> None:
    joined = join_judged(judged(stream)[: check["lines"]], None)
    window = Window("w", check["length_hours"] * HOUR_MS, check["lag_hours"] * HOUR_MS)
    exported = gauges(joined.scored, {}, model_config(config), check["now"], [window])
    got: dict[str, Metrics] = {}
    names = {gauge: metric for metric, gauge in GAUGES.items()}
    for (name, labels), number in exported.items():
        of = dict(labels)
        if name in names:
            metric = names[name] if of["segment"] == "all" else f"{names[name]}[{of['value']}]"
            got.setdefault(f"{of['model']}@{of['model_version']}", {})[metric] = number
    assert got.keys() == check["models"].keys()
    for model, want in check["models"].items():
        assert differing(got[model], want) == {}


def differing(got: Metrics, want: Mapping[str, float | None]) -> dict[str, tuple[float | None, float | None]]:
    """The covered keys that differ by more than a stream's tolerance."""
    compared = [key for key in want if covered(key)]
    assert len(compared) >= 25
    return {key: (got.get(key), want[key]) for key in compared if not close(got.get(key), want[key], 1e-6)}


def test_there_is_something_to_compare_with() -> None:
    assert len(cases()) >= 24
    assert len(STREAMS) >= 2
    assert len(windows()) >= 20
    assert all(math.isfinite(check.values[2]["now"]) for check in windows())
