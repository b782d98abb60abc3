"""The words of `calmon backfill labels`, judged and put into effect."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.column import parse_mapping
from monitor.backfill.labels.destination import Destination
from monitor.backfill.labels.into_file import IntoFile
from monitor.backfill.labels.into_state import into_state, state_of_files
from monitor.backfill.labels.join_rows import JoinRows, rows_beside
from monitor.backfill.labels.label_file import open_label_file, partition_name
from monitor.backfill.labels.moves import changes
from monitor.backfill.labels.rehearsal import Rehearsal
from monitor.backfill.labels.report import Report, render
from monitor.backfill.labels.run import Backfill, Input
from monitor.backfill.labels.sieve import Arrival, Sieve
from monitor.backfill.labels.way import Kind, Way
from monitor.clock import Clock, SystemClock
from monitor.config import Config
from monitor.config_file import load_config
from monitor.errors import ConfigError, StateInUseError
from monitor.pipeline.shard import Shard
from monitor.request.state import opened_stores
from monitor.state.rocks import MARKER

EXIT_STOPPED = 130
USUAL_RATE = 5_000.0
"""Labels a second beside a service: at more its slowest scrapes took three times as long (tests/bench/test_backfill_lag.py)."""


def run(options: argparse.Namespace, stopped: Callable[[], bool]) -> tuple[str, int]:
    """Take label files in as the command line says.

    Args:
        options: Those of `calmon backfill labels`.
        stopped: Whether to end early.

    Returns:
        What to print, and the exit code: 0, or 130 if it was stopped.

    Raises:
        CalmonError: What is wrong with a word or a file, or stands in the way.
    """
    config = load_config(options.config)
    if options.rate is not None and not (math.isfinite(options.rate) and options.rate > 0):
        raise ConfigError([f"--rate {options.rate:g}: must be a number greater than 0"], "command line")
    way = Way.of(config, options.append_to)
    mapping = parse_mapping(options.map)
    inputs = [Input(open_label_file(path, mapping), partition_name(path, mapping)) for path in options.files]
    report = Report(way, options.dry_run, _unchecked(config, way))
    if options.dry_run:
        _rehearse(config, way, inputs, report, stopped)
    else:
        with _sieve_and_destination(config, way, report) as (sieve, destination):
            rate = USUAL_RATE if options.rate is None and way.kind is not Kind.STATE else options.rate
            report.outcomes = Backfill(sieve, destination, Folder(config.state.directory), rate, stopped).run(inputs)
            report.paused_s = destination.paused_s
    report.stopped = stopped()
    return render(report, options.format), EXIT_STOPPED if report.stopped else 0


def _unchecked(config: Config, way: Way) -> str | None:
    """Why labels cannot be checked against the state; None if they can."""
    directory = Path(config.state.directory)
    if way.kind is Kind.STATE or (directory / MARKER).exists() or list(directory.glob(f"shard-*/{MARKER}")):
        return None
    return f"there is no state in {directory} on this machine: labels are sent unchecked, and the service counts what becomes of them"


@contextmanager
def _sieve_and_destination(config: Config, way: Way, report: Report) -> Iterator[tuple[Sieve, Destination]]:
    """What judges labels, and where they go."""
    with ExitStack() as stack:
        if way.kind is Kind.STATE:
            try:
                state = stack.enter_context(into_state(config, way.horizon))
            except StateInUseError as error:
                raise _in_use(config) from error
            # Nothing expires on this way, so no partition's newest time matters.
            arrival = Arrival(lambda shard, prediction_id: way.name, lambda shard, partition: 0)
            yield Sieve(way.horizon, JoinRows({0: state.shard.store}), arrival), state
            return
        rows = None if report.unchecked else stack.enter_context(rows_beside(config.state.directory))
        folder = Folder(config.state.directory)
        destination: Destination = IntoFile(way.name, folder)
        if config.source.kafka is not None:
            from monitor.backfill.labels.into_topic import into_topic  # noqa: PLC0415 - only this way needs the client

            whole = config.source.kafka.shards == "one" or (Path(config.state.directory) / MARKER).exists()
            by_shard = not report.unchecked and not whole
            destination = stack.enter_context(into_topic(config.source.kafka, folder, by_shard))
        yield Sieve(way.horizon, rows, None, _clock(way)), destination


def _rehearse(config: Config, way: Way, inputs: list[Input], report: Report, stopped: Callable[[], bool]) -> None:
    """Find out what would become of labels; nothing is written."""
    if way.kind is Kind.STATE:
        state_of_files(config)
    with ExitStack() as stack:
        stores = {} if report.unchecked else stack.enter_context(opened_stores(config.state.directory))
        before = {number: Shard(store, None, ()) for number, store in stores.items()}
        folder = Folder(config.state.directory)

        def standing(partition: str) -> Standing:
            return Standing.from_position(before[0].positions.get(partition)) if way.kind is Kind.STATE else folder.load(partition)

        rehearsal = Rehearsal(config, before, way.horizon, way.partition(config, before.values()), standing)
        after = rehearsal.shards
        rows = JoinRows({number: shard.store for number, shard in after.items()}) if after else None
        sieve = Sieve(way.horizon, rows, rehearsal.arrival, _clock(way))
        report.outcomes = Backfill(sieve, rehearsal, None, None, stopped).run(inputs)
        if not stopped():
            report.changes = changes(config, list(before.values()), list(after.values()))


def _clock(way: Way) -> Clock | None:
    """What tells the future: records of a log have the time at which they were sent, those of files have none."""
    return SystemClock() if way.kind is Kind.TOPIC else None


def _in_use(config: Config) -> StateInUseError:
    """Say how labels reach a service that is using its state."""
    files = ", ".join(path for path in config.source.files if path != "-")
    if config.source.follow and files:
        advice = f"labels go through a file that it follows: --append-to FILE, one of {files}"
    else:
        advice = "it follows no file that labels could go through: stop it, or wait for its end"
    return StateInUseError(f"a service is using the state in {config.state.directory}; {advice}")
