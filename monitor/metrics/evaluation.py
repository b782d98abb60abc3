"""From a window's sums to values: series of a kind together, one call a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from monitor.errors import CapacityError
from monitor.metrics.catalogue import CATALOGUE, Metric, values
from monitor.metrics.sums import Sums, mass_edges
from monitor.names import ALL_VALUE, OTHER_VALUE
from monitor.statistics.fixed_point import F64, I64, SAFE_EVENTS
from monitor.statistics.layout import ALL, Layout
from monitor.statistics.series import SeriesKey

STORED_FACTOR = 4
"""Group values that are stored for each one that is exported."""


@dataclass(frozen=True, slots=True)
class Block:
    """Values of series that were evaluated together.

    Attributes:
        keys: The series.
        edges: Their report edges.
        scalars: By metric: one value a series, NaN where undefined; shape (n,).
        bins: By metric: one value a series and bin; shape (n, n_bins).
    """

    keys: Sequence[SeriesKey]
    edges: F64
    scalars: Mapping[Metric, F64 | I64]
    bins: Mapping[Metric, F64 | I64]


def merge_cells(parts: Sequence[tuple[Sequence[SeriesKey], Sequence[I64]]]) -> dict[SeriesKey, I64]:
    """Add up cells by series: of several shards, whose layouts are then the same.

    Raises:
        CapacityError: A series has so many predictions in all that its sums could have overflowed.
    """
    merged: dict[SeriesKey, I64] = {}
    for keys, cells in parts:
        for key, cell in zip(keys, cells, strict=True):
            merged[key] = merged[key] + cell if key in merged else cell
            # Position 0 of every cell counts predictions; each part was below the limit, so their sum is still right.
            if int(merged[key][0]) > SAFE_EVENTS:
                raise CapacityError(
                    f"model {key.model} version {key.version}: more than {SAFE_EVENTS} predictions in one window over all shards, "
                    "its sums could overflow; shorten the window"
                )
    return merged


def fold_groups(cells: Mapping[SeriesKey, I64], layouts: Mapping[str, Layout]) -> tuple[dict[SeriesKey, I64], int]:
    """Keep the largest group values of each attribute, by predictions and then by name; the rest goes to `__other__`.

    Returns:
        The cells to export, and how many series were folded.
    """
    attributes: dict[tuple[str, str, str, str], list[SeriesKey]] = {}
    kept: dict[SeriesKey, I64] = {}
    folded = 0
    for key, cell in cells.items():
        if key.segment == ALL_VALUE:
            kept[key] = cell
        else:
            attributes.setdefault(key[:4], []).append(key)
    for keys in attributes.values():
        exported = max(1, layouts[keys[0].layout].stored_group_values // STORED_FACTOR)
        named = sorted((key for key in keys if key.value != OTHER_VALUE), key=lambda one: (-int(cells[one][0]), one.value))
        rest = named[exported:] + [key for key in keys if key.value == OTHER_VALUE]
        kept.update({key: cells[key] for key in named[:exported]})
        if rest:
            kept[rest[0]._replace(value=OTHER_VALUE)] = np.sum([cells[key] for key in rest], axis=0)
            folded += len(named[exported:])
    return kept, folded


def evaluate(cells: Mapping[SeriesKey, I64], layouts: Mapping[str, Layout]) -> list[Block]:
    """Every metric of the catalogue for every series.

    Args:
        cells: Cells by series, each with at least one prediction.
        layouts: Layouts by fingerprint.
    """
    kinds: dict[tuple[str, bool], list[SeriesKey]] = {}
    for key in sorted(cells):
        kinds.setdefault((key.layout, key.segment == ALL_VALUE), []).append(key)
    blocks = []
    for (fingerprint, _), keys in kinds.items():
        layout = layouts[fingerprint]
        if layout.mass_bins is None:
            edges = np.asarray(layout.report_edges, dtype=np.float64)
            blocks.append(_block(keys, np.stack([cells[key] for key in keys]), layout, edges))
            continue
        for key in keys:
            cell = cells[key]
            shape = key.shape
            labelled = cell[len(shape.scalars) + shape.bin("labelled") :: len(shape.bins)]
            blocks.append(_block([key], cell[None, :], layout, mass_edges(labelled, layout.grid, layout.mass_bins)))
    return blocks


def _block(keys: Sequence[SeriesKey], cells: I64, layout: Layout, edges: F64) -> Block:
    segment = keys[0].shape
    sums = Sums(cells, layout, segment, edges)
    metrics = [metric for metric in CATALOGUE if metric.groups or segment is ALL]
    return Block(
        keys,
        edges,
        {metric: values(metric, sums) for metric in metrics if not metric.per_bin},
        {metric: values(metric, sums) for metric in metrics if metric.per_bin},
    )
