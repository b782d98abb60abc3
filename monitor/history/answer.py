"""A question about the past, answered moment by moment from the panes that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from monitor.config import Config
from monitor.duration import format_duration
from monitor.errors import CalmonError
from monitor.events.contract import LATEST_MS
from monitor.events.instant import instant
from monitor.history.question import Asked
from monitor.metrics.settings import SettingsOf
from monitor.names import ALL_VALUE
from monitor.pipeline.configured import references_of, settings_of
from monitor.pipeline.references import ConfiguredReferences
from monitor.pipeline.shard import Shard, present_layouts
from monitor.pipeline.sweep import Moment, Question, sweep
from monitor.request.state import opened_shards
from monitor.state.references import References
from monitor.statistics.pane import HOUR, MINUTE
from monitor.statistics.series import SeriesKey


@contextmanager
def answered(asked: Asked, config: Config, directory: str) -> Iterator[Iterator[Moment]]:
    """What is known now of each moment, in their order, from the state in a directory; a service may be running.

    Raises:
        CalmonError: There is no state, no such version or group value, or the panes of a moment are not kept.
    """
    settings = settings_of(config)
    references = ConfiguredReferences(References(Path(directory)), references_of(config), settings)
    with opened_shards(directory, list({asked.window(at_ms) for at_ms in asked.moments})) as shards:
        yield answer(shards, asked, settings, references)


def answer(shards: Sequence[Shard], asked: Asked, settings: SettingsOf, references: ConfiguredReferences) -> Iterator[Moment]:
    """What is known now of each moment, in their order.

    Raises:
        CalmonError: There is no such version or group value, or the panes of a moment are not kept.
    """
    check_version(shards, asked.model, asked.version)
    _check_segment(shards, asked)
    _check_kept(shards, asked)
    found = references.look(present_layouts(shards))[0]
    windows = [asked.window(at_ms) for at_ms in asked.moments]
    sweeps = {}
    for window in set(windows):
        question = Question(asked.model, asked.version, window, asked.choice.computed, settings, found)
        sweeps[window] = sweep(shards, question, [at_ms for at_ms, one in zip(asked.moments, windows, strict=True) if one == window])
    return (next(sweeps[window]) for window in windows)


def check_version(shards: Sequence[Shard], model: str, version: str) -> None:
    """See that there is a version.

    Raises:
        CalmonError: No prediction of it is in the state; with the names that are.
    """
    wholes = {key for key in _keys(shards) if key.segment == ALL_VALUE}
    models = sorted({key.model for key in wholes})
    if model not in models:
        known = f"there are {', '.join(models)}" if models else "there is no prediction at all"
        raise CalmonError(f"no prediction of model {model} in the state; {known}")
    versions = sorted({key.version for key in wholes if key.model == model})
    if version not in versions:
        raise CalmonError(f"no prediction of version {version} of model {model} in the state; there are {', '.join(versions)}")


def _keys(shards: Sequence[Shard]) -> set[SeriesKey]:
    return {shard.series.key(slot) for shard in shards for slot in range(len(shard.series))}


def _check_segment(shards: Sequence[Shard], asked: Asked) -> None:
    attribute, value = asked.choice.attribute, asked.choice.value
    if attribute is None:
        return
    layouts = [shard.layouts[epoch.layout] for shard in shards for epoch in shard.epochs.get(asked.model, ())]
    attributes = sorted({name for layout in layouts for name in layout.groups})
    if attribute not in attributes:
        known = f"there are {', '.join(attributes)}" if attributes else "its configuration declares none (groups: [...])"
        raise CalmonError(f"model {asked.model} has no group attribute {attribute}; {known}")
    ours = [key for key in _keys(shards) if (key.model, key.version) == (asked.model, asked.version)]
    values = sorted({key.value for key in ours if key.segment == attribute})
    if value is not None and value not in values:
        known = f"there are {', '.join(values)}" if values else "there is none with any"
        raise CalmonError(f"no prediction of version {asked.version} with {attribute}={value}; {known}")


def _check_kept(shards: Sequence[Shard], asked: Asked) -> None:
    """See that the panes of the first window of each level are kept: those of later ones are then too."""
    for level in (MINUTE, HOUR):
        kept_ms = max(shard.kept_from_ms(level) for shard in shards)
        for at_ms in asked.moments:
            window = asked.window(at_ms)
            if window.level is level:
                start_ms = window.panes(at_ms)[0] * level.pane_ms
                if start_ms < kept_ms:
                    raise CalmonError(_not_kept(asked, at_ms, start_ms, kept_ms, by_minutes=level is MINUTE))
                break


def _not_kept(asked: Asked, at_ms: int, start_ms: int, kept_ms: int, by_minutes: bool) -> str:
    lead = f"the window at {instant(at_ms)} begins at {instant(start_ms)}"
    if not by_minutes:
        earliest_ms = kept_ms + asked.length_ms + asked.lag_ms
        return f"{lead}, panes are kept from {instant(kept_ms)} on only: ask from {instant(earliest_ms)} on"
    since = (
        "the state has no panes by the minute" if kept_ms >= LATEST_MS else f"panes are kept by the minute from {instant(kept_ms)} on only"
    )
    hour = format_duration(HOUR.pane_ms)
    return f"{lead}, and {since}: there the finest step is {hour}, with --from and the window's length and lag at whole hours"
