"""From a window's sums to values: series of a kind together, one call a metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from monitor.errors import CapacityError
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.comparison import Comparison
from monitor.metrics.drift import Drift, aligned
from monitor.metrics.group_table import GroupTable
from monitor.metrics.metric import Metric, Subject
from monitor.metrics.settings import Settings, SettingsOf, VersionName
from monitor.metrics.sums import DEFAULT_SETTINGS, Sums, mass_edges
from monitor.metrics.values import Values
from monitor.metrics.version import Version
from monitor.names import (
    ALL_VALUE,
    CLASS_SEGMENT,
    CONFIDENCE_SEGMENT,
    ONE_VS_REST_SEGMENT,
    OTHER_VALUE,
    OWN_CONFIDENCE_SEGMENT,
    RESERVED_PREFIX,
    SCORE_SEGMENT,
    TEMPERATURE_SEGMENT,
)
from monitor.statistics.fixed_point import F64, I64, SAFE_EVENTS
from monitor.statistics.layout import Layout
from monitor.statistics.score_grid import both_signs
from monitor.statistics.segment import CLASS, SCORE
from monitor.statistics.series import SeriesKey

STORED_FACTOR = 4
"""Group values that are stored for each one that is exported."""


@dataclass(frozen=True, slots=True)
class Block:
    """Values of series that were evaluated together.

    Attributes:
        subject: What was computed.
        keys: The series, one a row; of `Subject.CLASS` and `OWN` their value is the class.
        edges: Report edges of the bins.
        values: By metric: one value a series, NaN where undefined, shape (n,); of `Subject.BIN` shape (n, n_bins); of
            `Subject.TABLE` a list of rows.
    """

    subject: Subject
    keys: Sequence[SeriesKey]
    edges: F64
    values: Mapping[Metric, Any]

    def only(self, wanted: Callable[[SeriesKey], bool]) -> Block | None:
        """The part of it that is of some series; None without any."""
        rows = [row for row, key in enumerate(self.keys) if wanted(key)]
        if not rows or len(rows) == len(self.keys):
            return self if rows else None
        values = {metric: [found[row] for row in rows] if isinstance(found, list) else found[rows] for metric, found in self.values.items()}
        return replace(self, keys=[self.keys[row] for row in rows], values=values)


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


def fold_groups(
    cells: Mapping[SeriesKey, I64], layouts: Mapping[str, Layout]
) -> tuple[dict[SeriesKey, I64], dict[tuple[str, str, str], int]]:
    """Keep the largest values of each attribute, and the largest classes, by count and then by name; the rest goes to `__other__`.

    Returns:
        The cells to export, and how many series of each (model, version, attribute) were folded.
    """
    attributes: dict[tuple[str, str, str, str], list[SeriesKey]] = {}
    kept: dict[SeriesKey, I64] = {}
    folded: dict[tuple[str, str, str], int] = {}
    for key, cell in cells.items():
        if layouts[key.layout].uncapped(key.segment, key.value):
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
            if named[exported:]:
                folded[keys[0].model, keys[0].version, keys[0].segment] = len(named[exported:])
    return kept, folded


@dataclass(frozen=True, slots=True)
class WindowCells:
    """Sums of one window, and what its versions are compared with.

    Attributes:
        cells: By series, each with at least one event.
        previous: By version the one that its model had before.
        references: By model what drift is told from.
        version: The version that is asked about, where the cells of others are there only to be compared with; None for all.
    """

    cells: Mapping[SeriesKey, I64]
    previous: Mapping[VersionName, str] = field(default_factory=dict)
    references: Mapping[str, Version] = field(default_factory=dict)
    version: str | None = None

    def asks(self, key: SeriesKey) -> bool:
        """Whether a series is asked about."""
        return self.version in (None, key.version)


def evaluate(
    window: WindowCells,
    layouts: Mapping[str, Layout],
    settings_of: SettingsOf = lambda model: DEFAULT_SETTINGS,
    metrics: Sequence[Metric] = CATALOGUE,
) -> list[Block]:
    """Metrics of every series of a window.

    Args:
        window: Its sums.
        layouts: Layouts by fingerprint.
        settings_of: Settings by model.
        metrics: Which ones.
    """
    return evaluate_windows([window], layouts, settings_of, metrics)[0]


def evaluate_windows(
    windows: Sequence[WindowCells], layouts: Mapping[str, Layout], settings_of: SettingsOf, metrics: Sequence[Metric]
) -> list[list[Block]]:
    """The same for many windows: a call of a metric costs little more for many rows than for one.

    What is said of a series does not depend on what is evaluated beside it, to the last bit.
    """
    wanted: dict[Subject, list[Metric]] = {}
    for metric in metrics:
        wanted.setdefault(metric.subject, []).append(metric)
    blocks = _series_blocks(windows, layouts, settings_of, wanted)
    if any(subject not in (Subject.SERIES, Subject.BIN) for subject in wanted):
        asked = []
        for place, window in enumerate(windows):
            found = versions(window.cells, layouts, settings_of)
            asked.append({key: version for key, version in found.items() if window.asks(key)})
            for key, version in asked[-1].items():
                before = window.previous.get((key.model, key.version))
                known = None if before is None else found.get(key._replace(version=before))
                blocks[place] += _version_blocks(key, version.beside(known, window.references.get(key.model)), wanted)
        for place, of_groups in enumerate(_group_blocks(asked, wanted)):
            blocks[place] += of_groups
    return blocks


def _series_blocks(
    windows: Sequence[WindowCells],
    layouts: Mapping[str, Layout],
    settings_of: SettingsOf,
    wanted: Mapping[Subject, Sequence[Metric]],
) -> list[list[Block]]:
    """Segment `all` and group values, all versions of a layout at once; equal-mass edges are each series' own."""
    kinds: dict[tuple[str, bool, Settings], list[tuple[int, SeriesKey]]] = {}
    for place, window in enumerate(windows):
        for key in sorted(window.cells):
            if window.asks(key) and not key.segment.startswith(RESERVED_PREFIX):
                kinds.setdefault((key.layout, key.segment == ALL_VALUE, settings_of(key.model)), []).append((place, key))
    blocks: list[list[Block]] = [[] for _ in windows]
    for (fingerprint, whole, settings), series in kinds.items():
        layout = layouts[fingerprint]
        chosen = [metric for metric in wanted.get(Subject.SERIES, ()) if metric.groups or whole]
        for rows in [series] if layout.mass_bins is None else [[one] for one in series]:
            sums = _sums([key for _, key in rows], [windows[place].cells[key] for place, key in rows], layout, settings)
            values = {metric: metric.function(sums) for metric in chosen}
            bins = {metric: metric.function(sums) for metric in wanted.get(Subject.BIN, ())} if whole else {}
            for place, keys, part in _by_window(rows):
                blocks[place].append(Block(Subject.SERIES, keys, sums.edges, {metric: found[part] for metric, found in values.items()}))
                if bins:
                    blocks[place].append(Block(Subject.BIN, keys, sums.edges, {metric: found[part] for metric, found in bins.items()}))
    return blocks


def _by_window(rows: Sequence[tuple[int, SeriesKey]]) -> Iterator[tuple[int, list[SeriesKey], slice]]:
    """Each window's keys, and where they lie among the rows; the windows ascend."""
    begin = 0
    for place, part in groupby(rows, key=itemgetter(0)):
        keys = [key for _, key in part]
        yield place, keys, slice(begin, begin + len(keys))
        begin += len(keys)


def _sums(keys: Sequence[SeriesKey], cells: Sequence[I64], layout: Layout, settings: Settings, edges: F64 | None = None) -> Sums:
    """Sums of series of a kind, named after their values."""
    segment = keys[0].shape
    rows = np.stack(cells)
    if segment is CLASS:
        edges = np.empty(0)
    elif edges is None and layout.mass_bins is not None:
        labelled = Sums(rows, layout, segment, layout.edges(segment)).fine("labelled").sum(axis=0)
        edges = mass_edges(labelled, layout.edges(segment), layout.mass_bins)
    elif edges is None:
        edges = np.asarray(layout.report_edges, dtype=np.float64)
    return Sums(rows, layout, segment, edges, [key.value for key in keys], settings)


def versions(cells: Mapping[SeriesKey, I64], layouts: Mapping[str, Layout], settings_of: SettingsOf) -> dict[SeriesKey, Version]:
    """Everything of each version, by the key of its segment `all`."""
    found = {}
    for name, keys in groupby(sorted(cells), key=lambda one: (one.model, one.layout, one.version)):
        segments: dict[str, list[SeriesKey]] = {}
        for key in keys:
            segments.setdefault(key.segment, []).append(key)
        if ALL_VALUE not in segments:
            continue  # labels alone leave counts by class behind; nothing is said of a version without a prediction
        model, fingerprint, version = name
        found[SeriesKey(model, fingerprint, version, ALL_VALUE, ALL_VALUE)] = _version(
            segments, cells, layouts[fingerprint], settings_of(model)
        )
    return found


def _version(segments: Mapping[str, Sequence[SeriesKey]], cells: Mapping[SeriesKey, I64], layout: Layout, settings: Settings) -> Version:
    def of(keys: Sequence[SeriesKey], edges: F64 | None = None) -> Sums:
        return _sums(keys, [cells[key] for key in keys], layout, settings, edges)

    def sums(segment: str) -> Sums | None:
        keys = segments.get(segment)
        return None if keys is None else of(keys)

    positive = [key for key in segments.get(ONE_VS_REST_SEGMENT, ()) if key.value == settings.positive_class]
    edges = np.asarray(layout.positive_edges, dtype=np.float64)
    return Version(
        of(segments[ALL_VALUE]),
        sums(CLASS_SEGMENT),
        sums(ONE_VS_REST_SEGMENT),
        of(positive, edges) if positive else None,
        {name: of(keys) for name, keys in segments.items() if name in layout.groups},
        _scores(segments.get(SCORE_SEGMENT, ()), cells),
        {key.value: cells[key] for key in segments.get(TEMPERATURE_SEGMENT, ())},
        {key.value: Values.of(cells[key]) for key in segments.get(OWN_CONFIDENCE_SEGMENT, ())},
        next((Values.of(cells[key]) for key in segments.get(CONFIDENCE_SEGMENT, ())), None),
    )


def _scores(keys: Sequence[SeriesKey], cells: Mapping[SeriesKey, I64]) -> dict[str, I64]:
    """Counts by domain over ascending scores of both signs."""
    signs = {key.value: cells[key][len(SCORE.scalars) :] for key in keys}
    domains = {name[:-1] for name in signs}
    return {domain: both_signs(signs.get(f"{domain}-"), signs.get(f"{domain}+")) for domain in domains}


def _version_blocks(key: SeriesKey, version: Version, wanted: Mapping[Subject, Sequence[Metric]]) -> list[Block]:
    blocks = []

    def add(subject: Subject, keys: Sequence[SeriesKey], source: Any, edges: F64) -> None:
        found = {metric: np.atleast_1d(metric.function(source)) for metric in wanted.get(subject, ())}
        if found:
            blocks.append(Block(subject, keys, edges, found))

    def rows(segment: str, sums: Sums) -> list[SeriesKey]:
        return [key._replace(segment=segment, value=name) for name in sums.names]

    add(Subject.VERSION, [key], version, version.everything.edges)
    previous = None if version.previous is None else version.previous.everything
    add(Subject.COMPARISON, [key], Comparison(version.everything, previous), version.everything.edges)
    tables = {metric: metric.function(version) for metric in wanted.get(Subject.TABLE, ())}
    if tables:
        blocks.append(Block(Subject.TABLE, [key], version.everything.edges, {metric: [rows] for metric, rows in tables.items()}))
    for subject, segment, sums in (
        (Subject.CLASS, CLASS_SEGMENT, version.classes),
        (Subject.OWN, ONE_VS_REST_SEGMENT, version.own),
    ):
        if sums is not None:
            add(subject, rows(segment, sums), sums, sums.edges)
    if version.positive is not None:
        add(Subject.POSITIVE, [key], version.positive, version.positive.edges)
    if version.reference is not None:
        add(Subject.DRIFT, [key], Drift(version, version.reference), version.everything.edges)
        for attribute in sorted(version.groups.keys() & version.reference.groups.keys()):
            mix = aligned(version.groups[attribute], version.reference.groups[attribute], "predictions")
            add(Subject.MIX, [key._replace(segment=attribute)], mix, version.everything.edges)
    return blocks


def _group_blocks(windows: Sequence[Mapping[SeriesKey, Version]], wanted: Mapping[Subject, Sequence[Metric]]) -> list[list[Block]]:
    """Attributes of all versions side by side, as far as they have settings and a number of bins in common."""
    tables: dict[tuple[Settings, int], list[tuple[int, SeriesKey, Sums, int]]] = {}
    for place, found in enumerate(windows):
        for key, version in found.items():
            for attribute, sums in version.groups.items():
                row = (place, key._replace(segment=attribute), sums, int(version.everything.used[0]))
                tables.setdefault((sums.settings, len(sums.edges)), []).append(row)
    blocks: list[list[Block]] = [[] for _ in windows]
    for rows in tables.values():
        edges = rows[0][2].edges
        table = GroupTable.of([(sums, used) for _, _, sums, used in rows])
        of_attributes = {metric: metric.function(table) for metric in wanted.get(Subject.ATTRIBUTE, ())}
        of_values = {metric: metric.function(table) for metric in wanted.get(Subject.VALUE, ())}
        for place, keys, part in _by_window([(place, key) for place, key, _, _ in rows]):
            if of_attributes:
                values = {metric: numbers[part] for metric, numbers in of_attributes.items()}
                blocks[place].append(Block(Subject.ATTRIBUTE, keys, edges, values))
            for key, number in zip(keys, range(part.start, part.stop), strict=True):
                names = table.names[number]
                if of_values and names:
                    values = {metric: numbers[number, : len(names)] for metric, numbers in of_values.items()}
                    blocks[place].append(Block(Subject.VALUE, [key._replace(value=name) for name in names], edges, values))
    return blocks
