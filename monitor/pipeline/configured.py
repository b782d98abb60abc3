"""From configuration to what the pipeline is made of: layouts and windows."""

from __future__ import annotations

from monitor.config import Config, WindowConfig
from monitor.metrics.evaluation import STORED_FACTOR
from monitor.pipeline.epochs import LayoutOf
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
    )


def window_specs(windows: tuple[WindowConfig, ...]) -> list[WindowSpec]:
    """The configured windows."""
    return [WindowSpec(window.name, window.length_ms, window.lag_ms) for window in windows]
