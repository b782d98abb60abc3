"""History as text: CSV and JSON for programs, written as it is found, and a table for people."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from monitor.duration import format_duration
from monitor.errors import CalmonError
from monitor.history.choice import Choice
from monitor.history.question import Asked
from monitor.history.row import COLUMNS, Row, counts_of, rows, stamp
from monitor.names import ALL_VALUE
from monitor.pipeline.report import models_report
from monitor.pipeline.sweep import Moment

MOST_COLUMNS = 16
_UNDEFINED = "-"


def write_csv(moments: Iterable[Moment], asked: Asked, file: TextIO) -> None:
    """One line a number; an undefined one is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for moment in moments:
        for row in rows(moment, asked.choice):
            writer.writerow([stamp(row.at_ms), stamp(row.start_ms), stamp(row.end_ms), *row[3:]])


def write_json(moments: Iterable[Moment], asked: Asked, file: TextIO) -> None:
    """One object; each moment has its metrics as `calmon evaluate --format json` has them, an undefined one is null."""
    head = {
        "model": asked.model,
        "model_version": asked.version,
        "window": f"{format_duration(asked.length_ms)}:{format_duration(asked.lag_ms)}",
        "segment": asked.choice.attribute or ALL_VALUE,
        "value": asked.choice.value or ALL_VALUE,
    }
    file.write(json.dumps(head)[:-1] + ', "moments": [')
    for number, moment in enumerate(moments):
        file.write((",\n" if number else "\n") + json.dumps(_as_object(moment, asked.choice), allow_nan=False))
    file.write("\n]}\n")


def _as_object(moment: Moment, choice: Choice) -> dict[str, Any]:
    counts = counts_of(moment.blocks)
    whole = (choice.attribute, choice.value) if choice.attribute and choice.value else (ALL_VALUE, ALL_VALUE)
    predictions, labelled = counts.get(whole, (0, 0))
    found = models_report(choice.of(moment.blocks))
    return {
        "at": stamp(moment.at_ms),
        "window_start": stamp(moment.start_ms),
        "window_end": stamp(moment.end_ms),
        "predictions": predictions if counts else None,
        "labelled": labelled if counts else None,
        "completeness": labelled / predictions if predictions else None,
        "metrics": next(iter(found.values()), {}),
    }


def write_table(moments: Iterable[Moment], asked: Asked, file: TextIO) -> None:
    """A line a moment and segment, a column a metric.

    Raises:
        CalmonError: There are more columns than a person can read.
    """
    names: dict[str, None] = {}
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for moment in moments:
        found = False
        for row in rows(moment, asked.choice):
            found = True
            line = lines.setdefault((stamp(row.at_ms), row.segment if row.segment == ALL_VALUE else f"{row.segment}={row.value}"), {})
            line |= {"predictions": str(row.predictions), "labelled": str(row.labelled), "completeness": f"{row.completeness:.4g}"}
            name = _column(row)
            line[name] = _UNDEFINED if row.number is None else f"{row.number:.6g}"
            names[name] = None
        if not found:
            lines[stamp(moment.at_ms), _UNDEFINED] = {}
        if len(names) > MOST_COLUMNS:
            raise CalmonError(f"more than {MOST_COLUMNS} columns are no table to read: name fewer --metrics, or take --format csv or json")
    columns = ["predictions", "labelled", "completeness", *names]
    table = [["at", "segment", *columns]]
    table += [[at, segment, *(line.get(name, _UNDEFINED) for name in columns)] for (at, segment), line in lines.items()]
    file.writelines(_aligned(table))


def _column(row: Row) -> str:
    within = row.class_ or row.bin
    return f"{row.metric}[{within}]" if within else row.metric


def _aligned(table: list[list[str]]) -> Iterator[str]:
    widths = [max(len(line[number]) for line in table) for number in range(len(table[0]))]
    for line in table:
        first = "  ".join(cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True))
        yield first + "  " + "  ".join(cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)) + "\n"
