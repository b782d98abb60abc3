"""The windows that a command line wants told to Prometheus, and how far they are computed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from monitor.config import Config
from monitor.duration import format_duration
from monitor.errors import ConfigError
from monitor.events.instant import instant
from monitor.export.backfill_series import Scope
from monitor.history.choice import Choice, gauges
from monitor.history.question import Asked, asked
from monitor.pipeline.configured import exported_metrics
from monitor.pipeline.sweep import Moment
from monitor.request.moment import COMMAND_LINE
from monitor.request.sums import configuration

_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Run:
    """What a command line asks for.

    Attributes:
        config: Its configuration.
        state: The state directory.
        question: The windows.
        scope: Their series.
    """

    config: Config
    state: str
    question: Asked
    scope: Scope

    def __str__(self) -> str:
        moments = self.question.moments
        return (
            f"model {self.scope.model} version {self.scope.version}, window {self.scope.window}, {len(moments)} moments from "
            f"{instant(moments[0])} to {instant(moments[-1])}"
        )


def run_of(options: argparse.Namespace) -> Run:
    """Read a command line.

    Raises:
        ConfigError: A word of it cannot be understood.
    """
    config, state = configuration(options)
    choice = Choice(exported_metrics(config)) if options.metrics is None else gauges(options.metrics)
    question = asked(options, choice)
    window = _window_name(question, config) if options.window_name is None else options.window_name
    if not 0 < len(window) <= _LONGEST_NAME or not window.isprintable():
        raise ConfigError([f"--window-name: must be 1 to {_LONGEST_NAME} characters that can be printed"], COMMAND_LINE)
    return Run(config, state, question, Scope(question.model, question.version, window, choice.metrics))


def _window_name(question: Asked, config: Config) -> str:
    """Name of the configured window of that length and lag, else what they are."""
    length_ms, lag_ms = question.length_ms, question.lag_ms
    names = [window.name for window in config.windows if (window.length_ms, window.lag_ms) == (length_ms, lag_ms)]
    return names[0] if names else f"{format_duration(length_ms)}:{format_duration(lag_ms)}"


def progress_bar() -> Progress:
    """A bar on standard error, where that is a terminal; gone at the end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def watched(moments: Iterable[Moment], run: Run, bar: Progress) -> Iterator[Moment]:
    """The moments, shown as they are computed."""
    task = bar.add_task("windows computed", total=len(run.question.moments))
    for moment in moments:
        yield moment
        bar.advance(task)
