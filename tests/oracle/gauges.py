"""Every gauge from raw events, a clock and the windows.

`GAUGES` maps the golden cases' metric names to the exported families; a series without a prediction in its window is not there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.stats import fisher_exact

from tests.oracle.join import Scored
from tests.oracle.metrics import Metrics, ModelConfig, acceptance, bin_sums, defined, metrics, ratio, report_edges, wilson

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
OTHER = "__other__"

GaugeKey: TypeAlias = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True)
class Window:
    """A configured window."""

    name: str
    length_ms: int
    lag_ms: int = 0

    def span(self, now_ms: int) -> tuple[int, int]:
        """`[start, end)` at a moment; the end is floored to the minute, or to the hour for windows longer than six hours."""
        pane_ms = MINUTE_MS if self.length_ms <= 6 * HOUR_MS else HOUR_MS
        end_ms = (now_ms - self.lag_ms) // pane_ms * pane_ms
        return end_ms - self.length_ms, end_ms


SEGMENT_GAUGES = {
    "predictions": "calmon_predictions",
    "labelled": "calmon_labelled",
    "accuracy": "calmon_accuracy_ratio",
    "mean_confidence": "calmon_mean_confidence_ratio",
    "overconfidence": "calmon_overconfidence",
    "ece": "calmon_ece_ratio",
    "rejection_rate": "calmon_rejection_ratio",
    "rejection_rate_lower": "calmon_rejection_lower_ratio",
    "rejection_rate_upper": "calmon_rejection_upper_ratio",
}
"""Exported for every segment."""

GAUGES = SEGMENT_GAUGES | {
    "labelled_used": "calmon_labelled_used",
    "correct": "calmon_correct",
    "confidence_sum": "calmon_summed_confidence",
    "completeness": "calmon_completeness_ratio",
    "confidence_only_predictions": "calmon_confidence_only_predictions",
    "ece_over": "calmon_ece_over_ratio",
    "ece_under": "calmon_ece_under_ratio",
    "mce": "calmon_mce_ratio",
    "ece_floor": "calmon_ece_floor_ratio",
    "ece_floor_error_bound": "calmon_ece_floor_error_bound_ratio",
    "ece_floor_sd": "calmon_ece_floor_sd",
    "ece_z": "calmon_ece_z",
    "brier": "calmon_brier",
    "nll": "calmon_nll",
    "nll_clipped": "calmon_nll_clipped",
    "brier_multi": "calmon_brier_multi",
    "nll_multi": "calmon_nll_multi",
    "nll_multi_clipped": "calmon_nll_multi_clipped",
    "unknown_class": "calmon_unknown_class",
    "csr": "calmon_csr",
    "csr_sigma": "calmon_csr_sigma",
    "csr_null_mean": "calmon_csr_null_mean",
    "csr_z": "calmon_csr_z",
    "csr_skew": "calmon_csr_skew",
    "csr_clipped": "calmon_csr_clipped",
    "csr_clipped_errors": "calmon_csr_clipped_errors",
    "p_risk": "calmon_p_risk_ratio",
    "p_risk_gaussian_ok": "calmon_p_risk_gaussian_ok",
    "cw_accuracy": "calmon_cw_accuracy_ratio",
    "decided": "calmon_decided",
    "accepted": "calmon_accepted",
    "labelled_accepted": "calmon_labelled_accepted",
    "coverage": "calmon_coverage_ratio",
    "labelled_coverage": "calmon_labelled_coverage_ratio",
    "selective_risk": "calmon_selective_risk_ratio",
    "selective_risk_lower": "calmon_selective_risk_lower_ratio",
    "selective_risk_upper": "calmon_selective_risk_upper_ratio",
    "ood_scored": "calmon_ood_scored",
    "ood_acceptance_rate": "calmon_ood_acceptance_ratio",
    "ood_acceptance_rate_lower": "calmon_ood_acceptance_lower_ratio",
    "ood_acceptance_rate_upper": "calmon_ood_acceptance_upper_ratio",
    "id_acceptance_rate": "calmon_id_acceptance_ratio",
    "ood_false_acceptance_rate": "calmon_ood_false_acceptance_ratio",
    "ood_false_acceptance_rate_lower": "calmon_ood_false_acceptance_lower_ratio",
    "selective_risk_budget": "calmon_selective_risk_budget_ratio",
    "log_e_over": "calmon_log_e_over",
    "log_e_over_tolerance_0.02": "calmon_log_e_over_tolerance",
    "log_e_under": "calmon_log_e_under",
}
"""Exported for the segment `all`."""

BIN_GAUGES = ("calmon_bin_predictions", "calmon_bin_labelled", "calmon_bin_correct", "calmon_bin_summed_confidence")


def gauges(
    scored: Iterable[Scored],
    models: Mapping[str, ModelConfig],
    defaults: ModelConfig,
    now_ms: int,
    windows: Iterable[Window],
) -> dict[GaugeKey, float]:
    """Every gauge of the statistics that must be exported at a moment.

    Args:
        scored: The surviving predictions of `join`.
        models: Configuration by model; a model that is not listed has the defaults.
        defaults: The configuration of all other models.
        now_ms: The clock.
        windows: The configured windows.

    Returns:
        The value by gauge name and label items; what is undefined or has no prediction in its window is not there.
    """
    exported: dict[GaugeKey, float] = {}
    windows = list(windows)
    attributes: dict[tuple[str, str, str, str], list[Series]] = defaultdict(list)
    for series in series_at(scored, models, defaults, now_ms, windows):
        if series.segment != "all":
            attributes[series.window, series.model, series.model_version, series.segment].append(series)
        for metric, number in metrics(series.events, series.config, series.edges).items():
            if metric in series.families:
                exported[series.key(metric)] = number
        if series.segment == "all":
            for low, high, sums in bin_sums(series.events, series.edges):
                for name, number in zip(BIN_GAUGES, sums, strict=True):
                    exported[series.bin_key(name, low, high)] = number
    for window in windows:
        for name, moment_ms in zip(("start", "end"), window.span(now_ms), strict=True):
            exported[f"calmon_window_{name}_timestamp_seconds", frozenset({("window", window.name)})] = moment_ms / 1000
    for of_attribute in attributes.values():
        labels = replace(of_attribute[0], value="all").labels
        exported |= {(name, labels): number for name, number in between_groups(of_attribute).items()}
    return exported


@dataclass(frozen=True)
class Series:
    """One (model, model_version, segment, value) in one window, with its events."""

    model: str
    model_version: str
    window: str
    segment: str
    value: str
    events: list[Scored]
    config: ModelConfig
    edges: tuple[float, ...]

    @property
    def families(self) -> dict[str, str]:
        """Gauge names by metric, as far as this segment exports them."""
        return GAUGES if self.segment == "all" else SEGMENT_GAUGES

    @property
    def labels(self) -> frozenset[tuple[str, str]]:
        """The label items of its gauges."""
        names = ("model", "model_version", "window", "segment", "value")
        return frozenset((name, getattr(self, name)) for name in names)

    def key(self, metric: str) -> GaugeKey:
        """The gauge of a metric."""
        return self.families[metric], self.labels

    def bin_key(self, name: str, low: float, high: float) -> GaugeKey:
        """The gauge of a report bin."""
        return name, self.labels | {("bin", f"{low:.6g}-{high:.6g}")}


def between_groups(values: Sequence[Series]) -> dict[str, float]:
    """Gauges that compare the values of an attribute: Fisher's test of each against the others with enough decisions, and Holm."""
    counts = []
    for series in values:
        decisions = [decision for decision in (acceptance(event, series.config) for event in series.events) if decision is not None]
        if series.value != OTHER and len(decisions) >= series.config.min_group_count:
            counts.append((len(decisions), len(decisions) - sum(decisions)))
    found = {"calmon_groups_used": float(len(counts))}
    if len(counts) > 1:
        rates = [rejected / decided for decided, rejected in counts]
        found["calmon_group_rejection_spread_ratio"] = max(rates) - min(rates)
        if min(rates) < 1:
            found["calmon_group_acceptance_ratio"] = (1 - max(rates)) / (1 - min(rates))
        found["calmon_group_rejection_p_ratio"] = min(1.0, len(counts) * min(_fisher(one, counts) for one in counts))
    return found


def _fisher(one: tuple[int, int], counts: Sequence[tuple[int, int]]) -> float:
    decided, rejected = one
    others = sum(number for number, _ in counts) - decided
    rejected_others = sum(number for _, number in counts) - rejected
    table = np.array([[rejected, decided - rejected], [rejected_others, others - rejected_others]])
    return float(fisher_exact(table).pvalue)


def series_at(
    scored: Iterable[Scored],
    models: Mapping[str, ModelConfig],
    defaults: ModelConfig,
    now_ms: int,
    windows: Iterable[Window],
) -> Iterator[Series]:
    """Every series that has a prediction in a window at a moment; arguments as those of `gauges`."""
    events = list(scored)
    for window in windows:
        start_ms, end_ms = window.span(now_ms)
        inside = [event for event in events if start_ms <= event.prediction.predicted_at_ms < end_ms]
        for (model, model_version), of_version in by_version(inside).items():
            config = models.get(model, defaults)
            edges = report_edges(of_version, config)
            for (segment, value), members in segments(of_version, config).items():
                yield Series(model, model_version, window.name, segment, value, members, config, edges)


def golden_metrics(scored: Iterable[Scored], models: Mapping[str, ModelConfig], defaults: ModelConfig) -> dict[str, Metrics]:
    """The metrics of a whole stream, without a window, under the golden cases' names.

    Returns:
        For each `model@model_version` its metrics, those of its report bins (`bins[i].*`) and of the values of its first group
        attribute (`rejection_rate[v]`, `rejection_rate_lower[v]`, `rejection_rate_upper[v]`, `group_ece[v]`,
        `group_overconfidence[v]`).
    """
    result: dict[str, Metrics] = {}
    for (model, model_version), events in by_version(scored).items():
        config = models.get(model, defaults)
        edges = report_edges(events, config)
        found = metrics(events, config, edges)
        for index, (low, high, (_, count, correct, confidence_sum)) in enumerate(bin_sums(events, edges)):
            lower, upper = wilson(round(correct), round(count))
            of_bin = {
                "lo": low,
                "hi": high,
                "count": count,
                "correct": correct,
                "mean_confidence": ratio(confidence_sum, count),
                "accuracy": ratio(correct, count),
                "overconfidence": ratio(confidence_sum - correct, count),
                "accuracy_lower": lower,
                "accuracy_upper": upper,
            }
            found |= {f"bins[{index}].{name}": number for name, number in defined(of_bin).items()}
        for (segment, value), members in segments(events, config).items():
            if segment in config.groups[:1]:
                of_group = metrics(members, config, edges)
                for metric in ("rejection_rate", "rejection_rate_lower", "rejection_rate_upper", "ece", "overconfidence"):
                    if metric in of_group:
                        prefix = "" if metric.startswith("rejection") else "group_"
                        found[f"{prefix}{metric}[{value}]"] = of_group[metric]
        result[f"{model}@{model_version}"] = found
    return result


def by_version(scored: Iterable[Scored]) -> dict[tuple[str, str], list[Scored]]:
    """The events of each (model, model_version)."""
    versions: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for event in scored:
        versions[event.prediction.model, event.prediction.model_version].append(event)
    return dict(versions)


def segments(events: Sequence[Scored], config: ModelConfig) -> dict[tuple[str, str], list[Scored]]:
    """The events of each (segment, value) of one version; values beyond the top ones are one series."""
    series: dict[tuple[str, str], list[Scored]] = {("all", "all"): list(events)}
    for attribute in config.groups:
        values = [(dict(event.prediction.groups).get(attribute), event) for event in events]
        counts = Counter(value for value, _ in values if value is not None)
        top = sorted(counts, key=lambda value: (-counts[value], value))[: config.max_group_values]
        for value, event in values:
            if value is not None:
                series.setdefault((attribute, value if value in top else OTHER), []).append(event)
    return series
