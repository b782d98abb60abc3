"""What the demo shows of a snapshot: one row a version and window, as a table or as plain lines, and what it teaches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter

from rich.table import Table
from rich.text import Text

from monitor.duration import DAY_MS
from monitor.metrics.metric import Subject
from monitor.names import ALL_VALUE
from monitor.pipeline.tick import Snapshot

MISSING = "-"
LARGE_CSR = 10.0
FEW_LABELS = 200

_SURE = 100.0
"""CSR from which on decimals say nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """The values of one version in one window.

    Attributes:
        window: Name of the window.
        model: Name of the model.
        version: Its version.
        values: By metric name, without the undefined ones.
    """

    window: str
    model: str
    version: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a row.

    Attributes:
        title: Head of the column.
        metric: Name in the catalogue.
        form: Writes it.
        phrase: How it reads in a sentence.
    """

    title: str
    metric: str
    form: Callable[[float], str]
    phrase: str


def _csr(value: float) -> str:
    return f"{value:,.0f}" if value >= _SURE else f"{value:.2f}"


COLUMNS = (
    Column("pred", "predictions", "{:,.0f}".format, "{} predictions"),
    Column("lab", "completeness", "{:.0%}".format, "{} labelled"),
    Column("accur", "accuracy", "{:.3f}".format, "accuracy {}"),
    Column("over", "overconfidence", "{:+.3f}".format, "overconfidence {}"),
    Column("ECE", "ece", "{:.3f}".format, "ECE {}"),
    Column("floor", "ece_floor", "{:.3f}".format, "floor {}"),
    Column("CSR", "csr", _csr, "CSR {}"),
    Column("P_risk", "p_risk", "{:.3f}".format, "P_risk {}"),
    Column("OOD", "ood_acceptance_rate", "{:.3f}".format, "OOD acceptance {}"),
    Column("rej", "rejection_rate", "{:.3f}".format, "rejection {}"),
)


def summary_rows(snapshot: Snapshot) -> list[Row]:
    """Rows of a snapshot, windows in configured order, versions by name."""
    rows = []
    for window in snapshot.windows:
        found = []
        for block in (one for one in window.blocks if one.subject is Subject.SERIES):
            for position, key in enumerate(block.keys):
                if key.segment == ALL_VALUE:
                    values = {metric.name: float(values[position]) for metric, values in block.values.items()}
                    defined = {name: value for name, value in values.items() if not math.isnan(value)}
                    found.append(Row(window.name, key.model, key.version, defined))
        rows += sorted(found, key=attrgetter("model", "version"))
    return rows


def latest_windows(rows: Sequence[Row], lines: int) -> list[Row]:
    """Rows of as many windows as fit into `lines` with a title each, at least of one; the first ones give way."""
    kept: list[Row] = []
    for _, group in reversed([(name, list(group)) for name, group in groupby(rows, attrgetter("window"))]):
        lines -= len(group) + 1
        if kept and lines < 0:
            break
        kept = group + kept
    return kept


def summary_table(rows: Sequence[Row]) -> Table:
    """Rows as a table of at most 80 columns."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column.title, justify="right", no_wrap=True)
    for window, group in groupby(rows, attrgetter("window")):
        table.add_row(Text(window, style="bold"))
        for row in group:
            table.add_row(f"{row.model} {row.version}", *[_cell(row, column) for column in COLUMNS])
    return table


def summary_lines(rows: Sequence[Row]) -> list[str]:
    """Rows as sentences, for a terminal that is none."""
    return [
        f"  {row.window} {row.model} {row.version}: "
        + ", ".join(column.phrase.format(column.form(row.values[column.metric])) for column in COLUMNS if column.metric in row.values)
        for row in rows
    ]


def progress_line(snapshot: Snapshot, start_ms: int, span_ms: int, records: int) -> str:
    """The simulated moment and what was read by then, in at most 80 columns."""
    moment = datetime.fromtimestamp(snapshot.now_ms / 1000, UTC)
    day, days = (snapshot.now_ms - start_ms) / DAY_MS, -(-span_ms // DAY_MS)
    account = snapshot.account
    read = f"{account.consumed:,} of {records:,} records"
    return f"{moment:%Y-%m-%d %H:%M}Z (day {day:.1f} of {days}), {read}, {account.pending:,} unlabelled"


def lesson(rows: Sequence[Row]) -> str:
    """What the numbers of one window teach; it says so if they do not yet."""
    raw = {row.model: row.values for row in rows if row.version == "raw"}
    deceptive = [row for row in rows if row.version == "iso" and row.model in raw and _deceives(row.values, raw[row.model])]
    if not deceptive:
        return (
            "What to look for: as labels come, iso gets a lower ECE than raw. Is it the safer one? "
            "Watch its CSR, which is 1 for calibrated confidences."
        )
    worst = max(deceptive, key=lambda row: row.values["csr_clipped_errors"])
    ece, csr, wrong = (worst.values[name] for name in ("ece", "csr", "csr_clipped_errors"))
    return (
        f"What it shows: {worst.model} iso has a low ECE ({ece:.3f}, raw {raw[worst.model]['ece']:.3f}), but its CSR is far above 1 "
        f"({_csr(csr)}): {wrong:.0f} answers with a confidence of exactly 1 were wrong."
    )


def _deceives(iso: Mapping[str, float], raw: Mapping[str, float]) -> bool:
    """Whether a version looks better by ECE and is certain of wrong answers."""
    if iso.get("labelled_used", 0) < FEW_LABELS or iso.get("csr", 0) < LARGE_CSR or not iso.get("csr_clipped_errors"):
        return False
    return iso["ece"] < raw.get("ece", -math.inf)


def _cell(row: Row, column: Column) -> Text:
    value = row.values.get(column.metric)
    if value is None:
        return Text(MISSING, style="dim")
    return Text(column.form(value), style="red" if column.metric == "csr" and value >= LARGE_CSR else "")
