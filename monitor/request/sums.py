"""The sums that a question is asked of: of files, or of a service's state; over everything, or over one window."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monitor.config import Config
from monitor.config_file import load_config
from monitor.duration import format_duration
from monitor.errors import CalmonError, ConfigError
from monitor.events.instant import instant
from monitor.names import ALL_VALUE
from monitor.pipeline.report import cells_between, whole_cells
from monitor.pipeline.shard import Shard
from monitor.request.files import engine_of_files
from monitor.request.moment import BY_HOURS, COMMAND_LINE, moment
from monitor.request.state import opened_shards
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.pane import MINUTE
from monitor.statistics.series import SeriesKey
from monitor.windows.running import WindowSpec


@dataclass(frozen=True, slots=True)
class Gathered:
    """Sums and what they are of.

    Attributes:
        cells: By series, each model in its newest layout.
        layouts: By fingerprint.
        older: Predictions by (model, version) that count in an older layout, and are left out.
        start_ms: First event time that could be in them.
        end_ms: Excluded.
        source: Where they came from, in words.
    """

    cells: Mapping[SeriesKey, I64]
    layouts: Mapping[str, Layout]
    older: Mapping[tuple[str, str], int]
    start_ms: int
    end_ms: int
    source: str

    def version(self, model: str, version: str | None) -> SeriesKey:
        """Key of segment `all` of a version; of the model's only one where none is named.

        Raises:
            CalmonError: There is no such model or version here, or none is named of several.
        """
        wholes = [key for key in self.cells if key.segment == ALL_VALUE]
        models = sorted({key.model for key in wholes})
        if model not in models:
            known = f"there are {', '.join(models)}" if models else "there is no prediction at all"
            raise CalmonError(f"no prediction of model {model} in {self.source}; {known}")
        found = {key.version: key for key in wholes if key.model == model}
        names = ", ".join(sorted(found))
        if version is None and len(found) > 1:
            raise CalmonError(f"model {model} has several versions in {self.source}: name one of {names} with --version")
        if version is None:
            return next(iter(found.values()))
        if version not in found:
            raise CalmonError(f"no prediction of version {version} of model {model} in {self.source}; there are {names}")
        return found[version]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The words that say where sums come from."""
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration: its models, defaults and state.directory are used")
    parser.add_argument("--state", metavar="DIR", help="state directory; default: state.directory of the configuration, else ./state")
    parser.add_argument("--from", dest="files", nargs="+", metavar="FILE", help="NDJSON event files to read instead of the state")
    parser.add_argument("--at", metavar="TIME", help="moment of the window: RFC 3339 with an offset, or epoch milliseconds")
    parser.add_argument("--window", metavar="LENGTH:LAG", help="such as 24h:48h; needs --at; default: everything there is")


def configuration(options: argparse.Namespace) -> tuple[Config, str]:
    """The configuration that `-c` names, else the defaults; and the state directory.

    Raises:
        ConfigError: It cannot be used.
    """
    config = load_config(options.config) if options.config else Config()
    return config, options.state or config.state.directory


def gather(options: argparse.Namespace) -> Gathered:
    """The sums that a command line asks for.

    Raises:
        CalmonError: They cannot be had.
    """
    window, at_ms = moment(options.at, options.window)
    config, directory = configuration(options)
    if options.files:
        if options.state:
            raise ConfigError(["--from and --state exclude each other: sums come from files or from a state"], COMMAND_LINE)
        with engine_of_files(config, options.files, window, at_ms) as engine:
            return _gather(engine.shards, window, at_ms, f"{', '.join(options.files)}{_words(window, options.at)}")
    with opened_shards(directory, [] if window is None else [window]) as shards:
        return _gather(shards, window, at_ms, f"the state in {directory}{_words(window, options.at)}")


def _words(window: WindowSpec | None, at: str | None) -> str:
    return "" if window is None else f", window {format_duration(window.length_ms)}:{format_duration(window.lag_ms)} at {at}"


def _gather(shards: Sequence[Shard], window: WindowSpec | None, at_ms: int, source: str) -> Gathered:
    if window is None:
        cells = whole_cells(shards)
        spans = [span for span in (shard.span_ms() for shard in shards) if span is not None]
        start_ms, end_ms = min((span[0] for span in spans), default=0), max((span[1] for span in spans), default=0)
    else:
        first, end = window.panes(at_ms)
        start_ms, end_ms = first * window.level.pane_ms, end * window.level.pane_ms
        floor_ms = max((shard.kept_from_ms(window.level) for shard in shards), default=0)
        if start_ms < floor_ms:
            longer = f"; {BY_HOURS}" if window.level is MINUTE else ""
            raise CalmonError(f"{source}: its panes are kept from {instant(floor_ms)} on only{longer}")
        cells = cells_between(shards, window.level, first, end)
    newest = {model: epochs[-1].layout for shard in shards for model, epochs in shard.epochs.items()}
    layouts = {name: layout for shard in shards for name, layout in shard.layouts.items()}
    older: dict[tuple[str, str], int] = {}
    for key, cell in cells.items():
        if key.segment == ALL_VALUE and key.layout != newest[key.model]:
            older[key.model, key.version] = older.get((key.model, key.version), 0) + int(cell[0])
    present = {key: cell for key, cell in cells.items() if key.layout == newest[key.model]}
    return Gathered(present, layouts, older, start_ms, end_ms, source)
