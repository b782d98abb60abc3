"""Gauges that alert rules ask, from the configuration to the page of a running service."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from scipy.stats import norm

from tests.integration.running import RunningCalmon, write_config
from tests.recovery.stream import HOUR_MS, MINUTE_MS, encode, label, prediction, write_lines


def test_rules_are_told_of_budgets_windows_maturity_and_the_disk(tmp_path: Path) -> None:
    at_ms = time.time_ns() // 1_000_000 - 20 * MINUTE_MS
    lines = [encode(prediction(f"{model}-{number}", at_ms, 0.9, model=model)) for model in ("bound", "free") for number in range(10)]
    events = write_lines(tmp_path / "events.ndjson", lines)
    models = "evidence: {maturity: 7h}\nmodels: {bound: {confidence_threshold: 0.5, selective_risk_budget: 0.25}}\n"
    with RunningCalmon(write_config(tmp_path, [events], models)) as running:
        running.wait_for("calmon_selective_risk_budget_ratio", 0.25, model="bound", segment="all")
        assert running.value("calmon_selective_risk_budget_ratio", model="free", segment="all") is None
        assert running.value("calmon_evidence_maturity_seconds") == 7 * 3600
        assert running.value("calmon_window_lag_seconds", window="1h") == 0
        start, end = (running.value(f"calmon_window_{edge}_timestamp_seconds", window="1h") for edge in ("start", "end"))
        clock = running.value("calmon_clock_seconds")
        assert start is not None
        assert end is not None
        assert clock is not None
        assert end - start == HOUR_MS / 1000
        assert 0 <= clock - end < 60 + 5
        assert running.value("calmon_state_disk_size_bytes") == shutil.disk_usage(tmp_path).total
        free = running.value("calmon_state_disk_free_bytes")
        assert free is not None
        assert 0 < free <= shutil.disk_usage(tmp_path).total


def test_false_acceptance_has_a_lower_bound(tmp_path: Path) -> None:
    at_ms = time.time_ns() // 1_000_000 - 20 * MINUTE_MS
    lines = [encode(prediction(f"p{number}", at_ms, 0.9, ood_score=1.0 if number < 15 else -1.0)) for number in range(20)]
    lines += [encode(label(f"p{number}", at_ms + 1000, "yes", domain="elsewhere")) for number in range(20)]
    events = write_lines(tmp_path / "events.ndjson", lines)
    with RunningCalmon(write_config(tmp_path, [events], f"defaults: {json.dumps({'ood_threshold': 0.0})}\n")) as running:
        running.wait_for("calmon_ood_false_acceptance_ratio", 0.75, segment="all")
        lower = running.value("calmon_ood_false_acceptance_lower_ratio", segment="all")
    # Wilson's bound p satisfies (0.75 - p)^2 = z^2 p (1 - p) / n.
    assert lower is not None
    assert lower < 0.75
    assert abs((0.75 - lower) ** 2 - norm.ppf(0.975) ** 2 * lower * (1 - lower) / 20) < 1e-9
