"""The product as these tests ask it: `calmon evaluate`, and pages of `/metrics`."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from monitor import cli
from monitor.config import section_keys
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.metric import Subject
from monitor.names import ALL_VALUE, PREFIX
from tests.golden.comparison import family

GROUP = "group"
"""The attribute that the expectations' bracketed group values speak of."""

GAUGES = {PREFIX + metric.gauge: metric.name for metric in CATALOGUE if metric.subject is Subject.SERIES}

COSTS = {"error": "error_cost", "handoff": "handoff_cost", "human_error": "human_error"}
"""Costs by their names in an expectation's configuration."""

EVERYTHING = (
    {"type": "prediction", "prediction_id": "1", "model": "m", "model_version": "1", "predicted_at": 1_780_000_000_000}
    | {"probabilities": {"a": 0.75, "b": 0.25}, "ood_score": 0.5, "domain": "id", "accepted": True, "groups": {GROUP: "g"}},
    {"type": "label", "prediction_id": "1", "labelled_at": 1_780_000_000_000, "label": "a"},
)
"""A stream that has some value for every kind of metric."""

EVERY_KEY = {"ood_threshold": 0.5, "confidence_threshold": 0.5, "positive_class": "a", "classwise": True, "min_group_count": 1} | {
    "handoff_cost": 1.0,
    "human_error": 0.02,
    "error_cost": 10.0,
}
"""A configuration that turns on whatever there is."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `calmon evaluate --format json` says.

    Attributes:
        account: As printed.
        models: As printed, by `model@version`.
    """

    account: Mapping[str, Any]
    models: Mapping[str, Mapping[str, Any]]

    def flat(self) -> dict[str, float | None]:
        """Every value under its golden key."""
        values: dict[str, float | None] = flat_account(self.account)
        for model, metrics in self.models.items():
            values |= {f"{model}.{name}": value for name, value in flat_metrics(metrics).items()}
        return values


def flat_account(account: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of an account under their golden keys."""
    counts = {f"account.{name}": count for name, count in account.items() if not isinstance(count, Mapping)}
    return counts | {f"account.rejected.{reason}": count for reason, count in account["rejected"].items()}


def flat_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of a model by golden name, those of its tables as `bins[0].count`."""
    values = {name: value for name, value in metrics.items() if not isinstance(value, list)}
    for table, rows in metrics.items():
        for number, row in enumerate(rows if isinstance(rows, list) else ()):
            values |= {f"{table}[{number}].{name}": value for name, value in row.items()}
    return values


def model_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an expectation's configuration that this version has; the others feed metrics that it does not have."""
    keys = {key: value for key, value in config.items() if key in section_keys("defaults") and value is not None}
    costs = {key: config[name] for key, name in COSTS.items() if name in config}
    return {"groups": [GROUP], "costs": costs, **keys}


def arguments(file: Path, config: Mapping[str, Any], directory: Path, *words: str) -> list[str]:
    """Words after `calmon` that evaluate a file under an expectation's configuration, written to `directory`."""
    config_file = directory / "calmon.yaml"
    config_file.write_text(yaml.safe_dump({"defaults": model_keys(config)}), "utf-8")
    return ["evaluate", str(file), "-c", str(config_file), "--format", "json", *words]


def evaluate(file: Path, config: Mapping[str, Any], directory: Path, *words: str) -> Report:
    """Run `calmon evaluate` in this process."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert cli.main(arguments(file, config, directory, *words)) == 0
    return parse_report(printed.getvalue())


def parse_report(text: str) -> Report:
    """Read what `calmon evaluate --format json` printed."""
    report = json.loads(text)
    return Report(report["account"], report["models"])


def known_families(directory: Path) -> frozenset[str]:
    """Families of every value that a report has."""
    file = directory / "everything.ndjson"
    file.write_text("".join(json.dumps(event) + "\n" for event in EVERYTHING), "utf-8")
    report = evaluate(file, EVERY_KEY, directory)
    return frozenset(family(key, report.models.keys()) for key in report.flat())


def read_page(page: bytes) -> dict[str, dict[str, dict[str, float]]]:
    """Values on `/metrics` by window, `model@version` and golden name."""
    windows: dict[str, dict[str, dict[str, float]]] = {}
    for name, labels, value in samples(page):
        if name in GAUGES and labels["segment"] in (ALL_VALUE, GROUP):
            metric = GAUGES[name]
            if labels["segment"] == GROUP:
                metric = f"{'' if metric.startswith('rejection_rate') else 'group_'}{metric}[{labels['value']}]"
            models = windows.setdefault(labels["window"], {})
            models.setdefault(f"{labels['model']}@{labels['model_version']}", {})[metric] = value
    return windows


def process_gauge(page: bytes, name: str) -> float:
    """Value of a metric of the process that has no labels."""
    line = re.search(rf"^{PREFIX}{name} (\S+)$", page.decode(), re.MULTILINE)
    assert line is not None
    return float(line[1])


def samples(page: bytes) -> Sequence[tuple[str, Mapping[str, str], float]]:
    """Name, labels and value of everything on a page."""
    families = text_string_to_metric_families(page.decode())
    return [(sample.name, sample.labels, sample.value) for found in families for sample in found.samples]
