"""What `calmon evaluate` says: metrics under the golden cases' names, the account, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from monitor.metrics.evaluation import Block, WindowCells, evaluate, fold_groups, merge_cells
from monitor.metrics.metric import Metric, Subject
from monitor.metrics.settings import SettingsOf
from monitor.metrics.succession import previous_versions
from monitor.names import ALL_VALUE
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.references import ConfiguredReferences
from monitor.pipeline.shard import Shard, present_layouts
from monitor.statistics.fixed_point import I64
from monitor.statistics.pane import HOUR, PaneLevel, PaneSums
from monitor.statistics.series import SeriesKey
from monitor.windows.running import WindowSpec

DEFAULT_ATTRIBUTE = "group"
"""Group values of this attribute stand alone in a metric's brackets; other attributes are named there."""

_ALL_PANES = 1 << 26


def whole_cells(shards: Sequence[Shard]) -> dict[SeriesKey, I64]:
    """Sums of every series over all hour panes that are kept."""
    return cells_between(shards, HOUR, 0, _ALL_PANES)


def cells_between(shards: Sequence[Shard], level: PaneLevel, first_pane: int, end_pane: int) -> dict[SeriesKey, I64]:
    """Sums of every series over the panes [first, end) of a level."""
    parts = [_cells(shard, shard.read(level, first_pane, end_pane)) for shard in shards]
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


def report_blocks(
    shards: Sequence[Shard], settings_of: SettingsOf, references: ConfiguredReferences, window: WindowSpec | None, at_ms: int
) -> list[Block]:
    """Every metric over a window, or over everything that was read; each model in its newest layout.

    Args:
        shards: What was read.
        settings_of: Settings by model.
        references: What drift is told from.
        window: Which panes; None for all.
        at_ms: The moment that the window is seen from.
    """
    present = present_layouts(shards)
    layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}
    found = whole_cells(shards) if window is None else cells_between(shards, window.level, *window.panes(at_ms))
    cells = {key: cell for key, cell in found.items() if key.layout == present[key.model].fingerprint}
    previous = previous_versions(cells, merge_accounts([shard.account for shard in shards]).first_ms, settings_of)
    return evaluate(WindowCells(fold_groups(cells, layouts)[0], previous, references.look(present)[0]), layouts, settings_of)


def models_report(blocks: Sequence[Block]) -> dict[str, dict[str, Any]]:
    """By `model@model_version`: metrics by golden name, None where undefined, and the report bins."""
    models: dict[str, dict[str, Any]] = {}
    for block in sorted(blocks, key=lambda one: one.keys[0].segment != ALL_VALUE):
        for position, key in enumerate(block.keys):
            report = models.setdefault(f"{key.model}@{key.version}", {})
            if block.subject is Subject.BIN:
                report["bins"] = _bins(block, position)
                continue
            for metric, values in block.values.items():
                report[_name(metric, key)] = _rows(values[position]) if block.subject is Subject.TABLE else _plain(values[position])
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


def _name(metric: Metric, key: SeriesKey) -> str:
    """Golden name of a series' metric: `ece`, `cw_f1[class]`, `group_ece[v]`, `rejection_rate[v]`, `group_ece[attribute=v]`."""
    name, value = metric.name, key.value
    if metric.subject in (Subject.CLASS, Subject.OWN):
        return f"{name}[{value}]"
    if metric.subject in (Subject.ATTRIBUTE, Subject.MIX):
        return name if key.segment == DEFAULT_ATTRIBUTE else f"{name}[{key.segment}]"
    if key.segment == ALL_VALUE:
        return name
    prefix = "group_" if metric.subject is Subject.SERIES and not name.startswith("rejection_rate") else ""
    return f"{prefix}{name}[{value if key.segment == DEFAULT_ATTRIBUTE else f'{key.segment}={value}'}]"


def _bins(block: Block, position: int) -> list[dict[str, Any]]:
    """Report bins of a series, each with its edges."""
    return [
        {"lo": float(block.edges[number]), "hi": float(block.edges[number + 1])}
        | {metric.name: _plain(values[position][number]) for metric, values in block.values.items()}
        for number in range(len(block.edges) - 1)
    ]


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a table, None where a number is undefined."""
    return [{name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()} for row in rows]


def _plain(value: np.float64 | np.int64) -> float | int | None:
    plain: float | int = value.item()
    return None if isinstance(plain, float) and math.isnan(plain) else plain
