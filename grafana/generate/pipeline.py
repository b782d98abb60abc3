"""Pipeline health: is everything read, kept, joined and evaluated, and in time."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard, stat, timeseries

from grafana.generate.frame import PIPELINE, frame
from grafana.generate.panel import Query, course, number

_BY_INSTANCE = "{{instance}}"
_PER_SECOND = "cps"


def pipeline() -> dashboard.Dashboard:
    """The dashboard of the processes themselves."""
    text = "Whether calmon reads everything, in time, what it refuses, whether labels still come, and what it costs."
    board = frame(PIPELINE, text, []).with_row(dashboard.Row("Now"))
    for panel in _now():
        board = board.with_panel(panel)
    for title, panels in {"Reading": _reading(), "Joining and labels": _joining(), "Ticks and series": _ticks()}.items():
        board = board.with_row(dashboard.Row(title))
        for one in panels:
            board = board.with_panel(one)
    return board


def _now() -> Iterator[stat.Panel]:
    yield number(
        "Processes up", "Targets of the scrape job `calmon` that answer.", Query('count(up{job="calmon"} == 1) or vector(0)', "up")
    )
    yield number(
        "Reading everything",
        "`calmon_source_ok`: 1 while everything that should be read is being read; the status page and `/-/ready` say why not.",
        Query("min(calmon_source_ok)", "ok"),
    )
    yield number(
        "Behind in event time",
        "`calmon_clock_seconds` minus the newest event time of predictions: large where no predictions come, or they come late.",
        Query('max(calmon_clock_seconds - ignoring (kind) calmon_newest_event_timestamp_seconds{kind="prediction"})', "behind"),
        unit="s",
    )
    yield number(
        "Waiting for the quarantine",
        "`calmon_quarantine_waiting_records`: refused records that are not in the quarantine yet.",
        Query("sum(calmon_quarantine_waiting_records)", "records"),
        {1: "orange"},
    )
    yield number(
        "Given up",
        "`calmon_source_lost_records_total`: records given up by `--accept-loss`.",
        Query("sum(calmon_source_lost_records_total) or vector(0)", "records"),
        {1: "red"},
    )
    yield number(
        "Windows not evaluated",
        "`calmon_tick_errors_total` in the last hour.",
        Query("sum(increase(calmon_tick_errors_total[1h]))", "errors"),
        {1: "red"},
    )


def _reading() -> Iterator[timeseries.Panel]:
    yield course(
        "Records read",
        "`calmon_records_consumed_total`.",
        [Query("sum by (instance) (rate(calmon_records_consumed_total[$__rate_interval]))", _BY_INSTANCE)],
        _PER_SECOND,
    )
    yield course(
        "What became of them",
        "`calmon_records_total` by kind and outcome; they add up to the records read.",
        [Query("sum by (kind, outcome) (rate(calmon_records_total[$__rate_interval]))", "{{kind}} {{outcome}}")],
        _PER_SECOND,
    )
    yield course(
        "Refused, by reason",
        "`calmon_refused_total`; each refused record is in the quarantine with its reason.",
        [Query("sum by (kind, reason) (rate(calmon_refused_total[$__rate_interval]))", "{{kind}} {{reason}}")],
        _PER_SECOND,
    )
    yield course(
        "Lag of the log",
        "`calmon_source_lag_records`: records of each partition still to be read, where the source knows it (Kafka).",
        [Query("sum by (partition) (calmon_source_lag_records)", "{{partition}}")],
        "short",
    )
    yield course(
        "Lag in event time",
        "`calmon_clock_seconds` minus `calmon_newest_event_timestamp_seconds`, by kind.",
        [Query("max by (kind) (calmon_clock_seconds - on (instance) group_right () calmon_newest_event_timestamp_seconds)", "{{kind}}")],
        "s",
    )
    yield course(
        "What the source did",
        "`calmon_source_operations_total`: polls, assignments, seeks and retries of the source.",
        [Query("sum by (operation) (rate(calmon_source_operations_total[$__rate_interval]))", "{{operation}}")],
        _PER_SECOND,
    )


def _joining() -> Iterator[timeseries.Panel]:
    yield course(
        "Waiting to be joined",
        "`calmon_pending_predictions` have no label; `calmon_waiting_labels` have no prediction.",
        [
            Query("sum(calmon_pending_predictions)", "predictions without a label"),
            Query("sum(calmon_waiting_labels)", "labels without one"),
        ],
        "short",
    )
    yield course(
        "Labels that score",
        "First labels of predictions, by version, from `calmon_label_delay_seconds_count`: at zero the label feed is dead.",
        [
            Query(
                "sum by (model, model_version) (rate(calmon_label_delay_seconds_count[$__rate_interval]))",
                "{{model}} {{model_version}}",
            )
        ],
        _PER_SECOND,
    )
    delay = "sum by (model, le) (increase(calmon_label_delay_seconds_bucket[$__range]))"
    yield course(
        "Label delay, nine tenths",
        "`calmon_label_delay_seconds` over the chosen time: nine tenths of the first labels came at least that soon.",
        [Query(f"histogram_quantile(0.9, {delay})", "{{model}}")],
        "s",
    )
    yield course(
        "Too far apart to be joined",
        "`calmon_pairs_ineligible_total`: labels and predictions of one id, by reason.",
        [Query("sum by (reason) (rate(calmon_pairs_ineligible_total[$__rate_interval]))", "{{reason}}")],
        _PER_SECOND,
    )


def _ticks() -> Iterator[timeseries.Panel]:
    yield course(
        "Duration of a tick",
        "`calmon_tick_duration_seconds`, to be well below `evaluation.tick`.",
        [Query("max by (instance) (calmon_tick_duration_seconds)", _BY_INSTANCE)],
        "s",
    )
    yield course(
        "Duration of a scrape",
        "`scrape_duration_seconds` of the job `calmon`, as Prometheus sees it.",
        [Query('max by (instance) (scrape_duration_seconds{job="calmon"})', _BY_INSTANCE)],
        "s",
    )
    yield course(
        "Series",
        "`calmon_series_exported` and, summed into `__other__` for the cap, `calmon_series_folded`.",
        [
            Query("sum by (instance) (calmon_series_exported)", "exported by {{instance}}"),
            Query("sum by (instance) (calmon_series_folded)", "folded by {{instance}}"),
        ],
        "short",
    )
    yield course(
        "Free share of the state's disk",
        "`calmon_state_disk_free_bytes` of `calmon_state_disk_size_bytes`: without room nothing can be checkpointed.",
        [Query("min by (instance) (calmon_state_disk_free_bytes / calmon_state_disk_size_bytes)", _BY_INSTANCE)],
        "percentunit",
    )
    yield course(
        "Group values that lost their series",
        "`calmon_group_values_evicted_total`: values of a group attribute beyond what the store keeps.",
        [Query("sum by (instance) (calmon_group_values_evicted_total)", _BY_INSTANCE)],
        "short",
    )
    yield course(
        "Version",
        "`calmon_build_info`: which calmon runs; a step is an upgrade.",
        [Query("count by (version) (calmon_build_info)", "{{version}}")],
        "short",
    )
