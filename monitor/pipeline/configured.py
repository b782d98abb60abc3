"""From configuration to what the pipeline is made of: layouts and windows."""

from __future__ import annotations

from functools import cache

from monitor.config import Config, WindowConfig
from monitor.duration import HOUR_MS
from monitor.errors import ConfigError
from monitor.metrics.catalogue import FAMILIES, exported
from monitor.metrics.entries.drift import DRIFT
from monitor.metrics.evaluation import STORED_FACTOR
from monitor.metrics.metric import Metric
from monitor.metrics.settings import Settings, SettingsOf
from monitor.pipeline.epochs import LayoutOf
from monitor.pipeline.evidence.tracker import Rules
from monitor.pipeline.pages import Surroundings
from monitor.pipeline.revisions.reviser import RevisionRules
from monitor.statistics.layout import Layout, report_edges
from monitor.windows.running import WindowSpec


def layouts_of(config: Config) -> LayoutOf:
    """Layout and configured epoch start of each model, listed or not."""
    made: dict[str, tuple[Layout, int | None]] = {}

    def layout_of(model: str) -> tuple[Layout, int | None]:
        # Models that are not listed share one entry: there may be any number of them.
        name = model if model in config.models else ""
        if name not in made:
            made[name] = (_layout(config, model), config.model(model).epoch_start_ms)
        return made[name]

    return layout_of


def _layout(config: Config, model: str) -> Layout:
    one = config.model(model)
    mass = one.scheme == "mass"
    return Layout(
        report_edges=(0.0, 1.0) if mass else report_edges(one.bins, one.edges),
        mass_bins=one.bins if mass else None,
        ood_threshold=one.ood_threshold,
        ood_high_is_in=one.ood_high_is == "in_distribution",
        confidence_threshold=one.confidence_threshold,
        groups=one.groups,
        stored_group_values=STORED_FACTOR * one.max_group_values,
        positive_class=one.positive_class,
        positive_edges=report_edges(one.bins, one.positive_edges),
        classwise=one.classwise,
        temperature=one.temperature,
        nll_clip=one.nll_clip,
        csr_clip=one.csr_clip,
    )


def settings_of(config: Config) -> SettingsOf:
    """Costs and least counts of each model, listed or not."""

    @cache
    def of_listed(model: str) -> Settings:
        one = config.model(model)
        prior = tuple(sorted(one.target_prior.items()))
        return Settings(
            one.costs.error,
            one.costs.handoff,
            one.costs.human_error,
            one.min_group_count,
            one.positive_class,
            prior,
            one.selective_risk_budget,
        )

    return lambda model: of_listed(model if model in config.models else "")


def exported_metrics(config: Config) -> tuple[Metric, ...]:
    """Metrics that a tick computes.

    Raises:
        ConfigError: A family that there is not.
    """
    names = [family.name for family in FAMILIES]
    unknown = [name for name in config.evaluation.families if name not in names]
    if unknown:
        raise ConfigError([f"evaluation.families: there is no family {unknown[0]}; there are {', '.join(names)}"], "configuration")
    drift = (DRIFT.name,) if references_of(config) else ()
    return exported((*config.evaluation.families, *drift))


def references_of(config: Config) -> dict[str, str]:
    """Reference of each model that has one."""
    named = {name: config.model(name).reference for name in config.models}
    return {model: reference for model, reference in named.items() if reference is not None}


def window_specs(windows: tuple[WindowConfig, ...]) -> list[WindowSpec]:
    """The configured windows."""
    return [WindowSpec(window.name, window.length_ms, window.lag_ms) for window in windows]


def evidence_rules(config: Config) -> Rules:
    """Rules of the evidence tests; a version is shown as long as the longest window could show it, or maturity takes."""
    spans_ms = [window.length_ms + window.lag_ms for window in config.windows]
    return Rules(config.evidence.maturity_ms, config.evidence.alpha, max(config.evidence.maturity_ms, *spans_ms))


def revision_rules(config: Config) -> RevisionRules:
    """Rules of the journal of revisions: windows count that are made of whole hours, all of which had matured when they were shown."""
    windows = [
        WindowSpec(window.name, window.length_ms, window.lag_ms, by_hours=True)
        for window in config.windows
        if window.lag_ms >= config.evidence.maturity_ms and window.length_ms % HOUR_MS == 0 and window.lag_ms % HOUR_MS == 0
    ]
    return RevisionRules(windows, config.revisions.threshold, settings_of(config))


def surroundings(config: Config) -> Surroundings:
    """What rules ask of the configuration."""
    return Surroundings(config.evidence.maturity_ms, {window.name: window.lag_ms for window in config.windows})
