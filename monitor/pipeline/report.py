"""What `calmon evaluate` says: metrics under the golden cases' names, the account, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from monitor.metrics.catalogue import BINS
from monitor.metrics.evaluation import Block, evaluate, fold_groups, merge_cells
from monitor.metrics.interval import wilson
from monitor.names import ALL_VALUE
from monitor.pipeline.account import Account
from monitor.pipeline.shard import Shard
from monitor.statistics.fixed_point import F64, I64
from monitor.statistics.pane import HOUR, PaneSums
from monitor.statistics.series import SeriesKey

DEFAULT_ATTRIBUTE = "group"
"""Group values of this attribute stand alone in a metric's brackets; other attributes are named there."""

_ALL_PANES = 1 << 26


def whole_cells(shards: Sequence[Shard]) -> dict[SeriesKey, I64]:
    """Sums of every series over all hour panes that are kept."""
    parts = []
    for shard in shards:
        sums = shard.read(HOUR, 0, _ALL_PANES)
        parts.append(_cells(shard, sums))
    return {key: cell for key, cell in merge_cells(parts).items() if cell[0] > 0}


def _cells(shard: Shard, sums: PaneSums) -> tuple[list[SeriesKey], list[I64]]:
    keys, cells = [], []
    for slot in np.unique(sums.slot).tolist():
        chosen = sums.slot == slot
        cell = np.zeros(shard.series.width(slot), dtype=np.int64)
        np.add.at(cell, sums.position[chosen], sums.values[chosen])
        keys.append(shard.series.key(slot))
        cells.append(cell)
    return keys, cells


def whole_blocks(shards: Sequence[Shard]) -> list[Block]:
    """Every metric over everything that was read, each model in its newest layout."""
    newest = {model: epochs[-1].layout for shard in shards for model, epochs in shard.epochs.items()}
    layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}
    cells = {key: cell for key, cell in whole_cells(shards).items() if key.layout == newest[key.model]}
    return evaluate(fold_groups(cells, layouts)[0], layouts)


def models_report(blocks: Sequence[Block]) -> dict[str, dict[str, Any]]:
    """By `model@model_version`: metrics by golden name, None where undefined, and the report bins."""
    models: dict[str, dict[str, Any]] = {}
    for block in sorted(blocks, key=lambda one: one.keys[0].segment != ALL_VALUE):
        for position, key in enumerate(block.keys):
            report = models.setdefault(f"{key.model}@{key.version}", {})
            for metric, values in block.scalars.items():
                report[_name(metric.name, key)] = _plain(values[position])
            if block.bins:
                report["bins"] = _bins(block, position)
    return models


def account_report(account: Account) -> dict[str, Any]:
    """What became of the records, under the golden cases' names."""
    rejected: dict[str, int] = {}
    for (_, reason), count in account.refused.items():
        rejected[reason] = rejected.get(reason, 0) + count
    outcomes = {f"{kind}.{outcome}": count for (kind, outcome), count in sorted(account.outcomes.items())}
    return {
        "predictions": account.outcomes.get(("prediction", "applied"), 0),
        "duplicates": sum(count for (_, outcome), count in account.outcomes.items() if outcome in ("duplicate", "stale")),
        "orphan_labels": account.waiting,
        "rejected": dict(sorted(rejected.items())),
        "rejected_total": sum(rejected.values()),
        "records": account.consumed,
        "outcomes": outcomes,
    }


def _name(metric: str, key: SeriesKey) -> str:
    """Golden name of a series' metric: `ece`, `group_ece[v]`, `rejection_rate[v]`, `group_ece[attribute=v]`."""
    if key.segment == ALL_VALUE:
        return metric
    value = key.value if key.segment == DEFAULT_ATTRIBUTE else f"{key.segment}={key.value}"
    prefix = "" if metric.startswith("rejection_rate") else "group_"
    return f"{prefix}{metric}[{value}]"


def _bins(block: Block, position: int) -> list[dict[str, Any]]:
    by_name: Mapping[str, F64 | I64] = {metric.name: block.bins[metric][position] for metric in BINS}
    lower, upper = wilson(np.asarray(by_name["correct"]), np.asarray(by_name["count"]))
    bins = []
    for number in range(len(block.edges) - 1):
        count = int(by_name["count"][number])
        confidence = float(by_name["confidence_sum"][number]) / count if count else None
        accuracy = int(by_name["correct"][number]) / count if count else None
        bins.append(
            {
                "lo": float(block.edges[number]),
                "hi": float(block.edges[number + 1]),
                "predictions": int(by_name["predictions"][number]),
                "count": count,
                "correct": int(by_name["correct"][number]),
                "mean_confidence": confidence,
                "accuracy": accuracy,
                "overconfidence": None if confidence is None or accuracy is None else confidence - accuracy,
                "accuracy_lower": float(lower[number]) if count else 0.0,
                "accuracy_upper": float(upper[number]) if count else 1.0,
            }
        )
    return bins


def _plain(value: np.float64 | np.int64) -> float | int | None:
    plain: float | int = value.item()
    return None if isinstance(plain, float) and math.isnan(plain) else plain
