"""What the HTTP server shows: the exposition and the status page of the last tick."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client.core import Metric

from monitor import __version__
from monitor.export import exposition
from monitor.export.evidence import evidence_families
from monitor.metrics.catalogue import CATALOGUE
from monitor.metrics.metric import Subject
from monitor.pipeline.account import DELAY_BOUNDS_S, Account
from monitor.pipeline.evidence.page import evidence_section
from monitor.pipeline.revisions.journal import Journal
from monitor.pipeline.revisions.page import revisions_section
from monitor.pipeline.tick import Snapshot
from monitor.sources.protocol import SourceStatus


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What rules ask beside a snapshot.

    Attributes:
        maturity_ms: How long after its end an hour enters the evidence tests.
        lags_ms: How long each window waits for labels.
        disk_free_bytes: What can still be written to the disk with the state; None where there is none.
        disk_size_bytes: Of the whole.
    """

    maturity_ms: int
    lags_ms: Mapping[str, int]
    disk_free_bytes: int | None = None
    disk_size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Rendered:
    """Bytes of one tick, never changed.

    Attributes:
        metrics: `/metrics`.
        status: `/`.
        series: Series in `metrics`.
    """

    metrics: bytes
    status: bytes
    series: int


def render_snapshot(
    snapshot: Snapshot,
    status: SourceStatus | None = None,
    waiting: int = 0,
    surroundings: Surroundings | None = None,
    journal: Journal | None = None,
) -> Rendered:
    """Render a snapshot, how reading is going, how many refused records wait, what is around it, and what was revised, once."""
    status = SourceStatus() if status is None else status
    families = exposition.series_families(snapshot.windows) + evidence_families(snapshot.evidence)
    series = exposition.count_samples(families)
    families += [*_previous_versions(snapshot), *_references(snapshot), *_account_families(snapshot.account)]
    families += [*_window_families(snapshot), *_surroundings(surroundings), *_source_families(status)]
    families += _revision_families(journal)
    families.append(
        exposition.gauge("quarantine_waiting_records", "Refused records that are not in the quarantine yet.", (), [((), waiting)])
    )
    families += [
        exposition.gauge(
            "clock_seconds", "What the clock showed at the last tick; rules compare with it.", (), [((), snapshot.now_ms / 1000)]
        ),
        exposition.gauge("tick_duration_seconds", "How long the last tick took.", (), [((), snapshot.duration_s)]),
        exposition.counter("tick_errors", "Windows, and evidence of a tick, that could not be evaluated.", (), [((), snapshot.errors)]),
        exposition.gauge("series_exported", "Series of models on this page.", (), [((), series)]),
        exposition.gauge("series_folded", "Series that the last tick summed into __other__.", (), [((), snapshot.folded)]),
        exposition.build_info(),
    ]
    return Rendered(exposition.render(families), _status_page(snapshot, status, series, journal), series)


def _window_families(snapshot: Snapshot) -> list[Metric]:
    """Which event times each window holds: rules tell by its end whether its hours have matured."""
    starts = [((window.name,), window.start_ms / 1000) for window in snapshot.windows]
    ends = [((window.name,), window.end_ms / 1000) for window in snapshot.windows]
    return [
        exposition.gauge("window_start_timestamp_seconds", "First event time that the window holds.", ("window",), starts),
        exposition.gauge("window_end_timestamp_seconds", "End of the event times that the window holds.", ("window",), ends),
    ]


def _revision_families(journal: Journal | None) -> list[Metric]:
    if journal is None:
        return []
    text = "Entries of the journal of revisions: a version's matured hours were changed."
    return [exposition.counter("revisions", text, (), [((), journal.next_number)])]


def _surroundings(around: Surroundings | None) -> list[Metric]:
    if around is None:
        return []
    facts = (
        ("evidence_maturity_seconds", "How long after its end an hour enters the evidence tests.", around.maturity_ms / 1000),
        ("state_disk_free_bytes", "What can still be written to the disk with the state.", around.disk_free_bytes),
        ("state_disk_size_bytes", "Size of the disk with the state.", around.disk_size_bytes),
    )
    lags = [((window,), lag_ms / 1000) for window, lag_ms in around.lags_ms.items()]
    return [
        exposition.gauge("window_lag_seconds", "How long a window waits for labels.", ("window",), lags),
        *(exposition.gauge(name, text, (), [((), value)]) for name, text, value in facts if value is not None),
    ]


def _previous_versions(snapshot: Snapshot) -> list[Metric]:
    """Says which version each one is compared with, where that is exported."""
    pairs = [
        ((key.model, key.version, window.name, window.previous[key.model, key.version]), 1.0)
        for window in snapshot.windows
        for block in window.blocks
        if block.subject is Subject.COMPARISON
        for key in block.keys
        if (key.model, key.version) in window.previous
    ]
    labels = ("model", "model_version", "window", "previous_version")
    return [exposition.gauge("previous_version_info", "Which version the differences of a version are from.", labels, pairs)] * bool(pairs)


def _references(snapshot: Snapshot) -> list[Metric]:
    """Which reference each model is compared with, and why it or a part of it is not used."""
    used = [(state, state.reference) for state in snapshot.references]
    families = [
        exposition.gauge(
            "reference_info",
            "Which reference a model is compared with, and the version that it is of.",
            ("model", "reference", "reference_version"),
            [((state.model, found.label, found.version), 1.0) for state, found in used if found is not None],
        ),
        exposition.gauge(
            "reference_refused",
            "1 for each reason for which a configured reference, or a part of it, is not used.",
            ("model", "reference", "reason"),
            [((state.model, state.name, reason), 1.0) for state, _ in used for reason in state.refused],
        ),
    ]
    return [family for family in families if family.samples]


def _account_families(account: Account) -> list[Metric]:
    delays = [(version, counts, account.delay_sums_ms[version] / 1000) for version, counts in sorted(account.delays.items())]
    return [
        exposition.counter("records_consumed", "Records read.", (), [((), account.consumed)]),
        exposition.counter("records", "Records by what became of them.", ("kind", "outcome"), sorted(account.outcomes.items())),
        exposition.counter("refused", "Refused records by reason.", ("kind", "reason"), sorted(account.refused.items())),
        exposition.counter(
            "pairs_ineligible",
            "Labels and predictions of one id that are too far apart in time to be joined.",
            ("reason",),
            [((reason,), count) for reason, count in sorted(account.ineligible.items())],
        ),
        exposition.counter("group_values_evicted", "Group values that lost their own series in the store.", (), [((), account.folded)]),
        exposition.gauge("pending_predictions", "Predictions that no label scores.", (), [((), account.pending)]),
        exposition.gauge("waiting_labels", "Labels whose id nobody has predicted.", (), [((), account.waiting)]),
        exposition.histogram(
            "label_delay_seconds", "Delay of the first label of a prediction.", ("model", "model_version"), DELAY_BOUNDS_S, delays
        ),
        exposition.gauge(
            "newest_event_timestamp_seconds",
            "Newest event time of the records of a kind.",
            ("kind",),
            [((kind,), time_ms / 1000) for kind, time_ms in sorted(account.newest_ms.items())],
        ),
    ]


_STYLE = (
    "body{font:14px system-ui;margin:2em}table{border-collapse:collapse}"
    "td,th{padding:.2em .7em;border-bottom:1px solid #ccc;text-align:right}"
)
_SHOWN = ("predictions", "completeness", "accuracy", "overconfidence", "ece", "ece_floor", "csr", "p_risk", "coverage", "selective_risk")


def _source_families(status: SourceStatus) -> list[Metric]:
    def by_partition(values: Mapping[str, int]) -> list[tuple[tuple[str, ...], int]]:
        return [((name,), value) for name, value in sorted(values.items())]

    return [
        exposition.gauge("source_ok", "1 while everything that should be read is being read.", (), [((), float(status.trouble is None))]),
        exposition.gauge(
            "source_reading",
            "1 while a partition is being read: it is assigned, and its shard has not stopped.",
            ("partition",),
            by_partition(status.reading),
        ),
        exposition.gauge(
            "source_lag_records", "Records of a log that are still to be read.", ("partition",), by_partition(status.lag_records)
        ),
        exposition.gauge(
            "source_read_until_timestamp_seconds",
            "The log's own time of the last record read.",
            ("partition",),
            [(labels, time_ms / 1000) for labels, time_ms in by_partition(status.read_until_ms)],
        ),
        exposition.counter("source_lost_records", "Records given up by --accept-loss.", ("partition",), by_partition(status.lost_records)),
        exposition.counter(
            "source_operations",
            "What the source has done since the start.",
            ("operation",),
            [((name,), count) for name, count in sorted(status.counts.items())],
        ),
    ]


def _status_page(snapshot: Snapshot, status: SourceStatus, series: int, journal: Journal | None) -> bytes:
    shown = [metric for metric in CATALOGUE if metric.name in _SHOWN and metric.subject is Subject.SERIES]
    rows = []
    for window in snapshot.windows:
        for block in (one for one in window.blocks if one.subject is Subject.SERIES):
            for position, key in enumerate(block.keys):
                if key.segment == "all":
                    cells = [key.model, key.version, window.name]
                    cells += [f"{block.values[metric][position]:.6g}".replace("nan", "&ndash;") for metric in shown]
                    rows.append(
                        "<tr>" + "".join(f"<td>{cell if cell == '&ndash;' else html.escape(cell)}</td>" for cell in cells) + "</tr>"
                    )
    notes = [
        f"<p>Window {html.escape(window.name)}: {html.escape(model)} is held back until the window lies inside its new epoch.</p>"
        for window in snapshot.windows
        for model in window.held_back
    ]
    if status.trouble is not None:
        notes.append(f"<p>Not everything is being read: {html.escape(status.trouble)}</p>")
    account = snapshot.account
    outcomes = ", ".join(f"{kind} {outcome} {count}" for (kind, outcome), count in sorted(account.outcomes.items()))
    head = "".join(f"<th>{name}</th>" for name in ("model", "version", "window", *(metric.name for metric in shown)))
    moment = datetime.fromtimestamp(snapshot.now_ms / 1000, UTC).isoformat(timespec="seconds")
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>calmon</title>
<style>{_STYLE}</style>
<h1>calmon {html.escape(__version__)}</h1>
<p>Clock {moment}; {account.consumed} records read ({html.escape(outcomes)}); {account.pending} predictions without a label,
{account.waiting} labels without a prediction; {series} series on <a href="/metrics">/metrics</a>.</p>
{"".join(notes)}
<table><tr>{head}</tr>
{"".join(rows)}
</table>
{evidence_section(snapshot.evidence)}
{"" if journal is None else revisions_section(journal.entries)}
</html>
"""
    return page.encode()
