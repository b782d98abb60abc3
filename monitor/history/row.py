"""A moment's values as rows: one number each, with all that it needs to be read alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from monitor.events.instant import instant
from monitor.export.series import bin_names
from monitor.history.choice import LABELLED, PREDICTIONS, Choice, metric_name
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Subject
from monitor.names import ALL_VALUE
from monitor.pipeline.sweep import Moment

Counts = tuple[int, int]
"""Predictions, and labelled ones."""


class Row(NamedTuple):
    """One number.

    Attributes:
        at_ms: The moment.
        start_ms: First event time of its window.
        end_ms: Excluded.
        model: The model.
        model_version: The version.
        segment: `all`, or a group attribute.
        value: `all`, or the attribute's value.
        class_: Of which class; empty otherwise.
        bin: Of which report bin; empty otherwise.
        metric: Of which metric.
        number: None where it is undefined.
        predictions: Of the series that it is of; a class, a bin and an attribute are of the version.
        labelled: Those of them that a label scores.
        completeness: Their share.
    """

    at_ms: int
    start_ms: int
    end_ms: int
    model: str
    model_version: str
    segment: str
    value: str
    class_: str
    bin: str
    metric: str
    number: float | int | None
    predictions: int
    labelled: int
    completeness: float


COLUMNS = tuple(
    {"at_ms": "at", "start_ms": "window_start", "end_ms": "window_end", "class_": "class"}.get(name, name) for name in Row._fields
)
"""Names of the fields as they are written."""


def stamp(epoch_ms: int) -> str:
    """A time in RFC 3339, to the millisecond where it has any."""
    return instant(epoch_ms, "auto")


def counts_of(blocks: Sequence[Block]) -> dict[tuple[str, str], Counts]:
    """Predictions and labelled ones by segment and value."""
    return {
        (key.segment, key.value): (int(block.values[PREDICTIONS][row]), int(block.values[LABELLED][row]))
        for block in blocks
        if block.subject is Subject.SERIES
        for row, key in enumerate(block.keys)
    }


def rows(moment: Moment, choice: Choice) -> Iterator[Row]:
    """What is wanted of a moment; nothing where the version predicted nothing, or where the window holds a change of layout."""
    counts = counts_of(moment.blocks)
    for block in choice.of(moment.blocks):
        of_class = block.subject in (Subject.CLASS, Subject.OWN)
        bins = bin_names(block.edges) if block.subject is Subject.BIN else [""]
        for place, key in enumerate(block.keys):
            segment, value, class_ = (ALL_VALUE, ALL_VALUE, key.value) if of_class else (key.segment, key.value, "")
            own = block.subject in (Subject.SERIES, Subject.VALUE)
            predictions, labelled = counts[(segment, value) if own else (ALL_VALUE, ALL_VALUE)]
            head = (moment.at_ms, moment.start_ms, moment.end_ms, key.model, key.version, segment, value, class_)
            tail = (predictions, labelled, labelled / predictions)
            for metric, values in block.values.items():
                numbers = values[place].tolist()
                for bin_name, number in zip(bins, numbers if block.subject is Subject.BIN else [numbers], strict=True):
                    yield Row(*head, bin_name, metric_name(metric), _defined(number), *tail)


def _defined(number: float | int) -> float | int | None:
    return None if math.isnan(number) else number
