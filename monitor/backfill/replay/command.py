"""The words of `calmon backfill replay`, judged and put into effect."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from monitor.app import nothing
from monitor.backfill.replay.archive import Archive, archive_of_files, archive_of_topics
from monitor.backfill.replay.bound import EARLIEST, NOW, bound
from monitor.backfill.replay.run import replay
from monitor.backfill.replay.scratch import deciding_settings, refuse_live_state, refuse_other_settings, scratch_config
from monitor.backfill.replay.summary import summary
from monitor.config import Config
from monitor.config_file import load_config
from monitor.errors import CalmonError, ConfigError
from monitor.request.moment import COMMAND_LINE
from monitor.state.origin import Origin, read_origin, write_origin

EXIT_STOPPED = 130


def run(
    options: argparse.Namespace,
    stopped: Callable[[], bool],
    reached: Callable[[str], None] = nothing,
    batch_records: int | None = None,
) -> tuple[str, int]:
    """Replay as the command line says.

    Args:
        options: Those of `calmon backfill replay`.
        stopped: Whether to end early.
        reached: Told at `origin`, when the directory is claimed and nothing is read, and at each point of a checkpoint.
        batch_records: Most records in a batch; by default as many as the service takes.

    Returns:
        What to print, and the exit code: 0, or 130 if it was stopped.

    Raises:
        CalmonError: What is wrong with a word, an input or the directory.
    """
    given = load_config(options.config)
    directory = Path(options.into)
    refuse_live_state(directory, given)
    config = scratch_config(given, directory, files=bool(options.files))
    settings = deciding_settings(config)
    origin = read_origin(directory)
    if origin is not None:
        refuse_other_settings(origin, settings, directory)
    try:
        archive = _archive(options, config, origin, stopped)
    except CalmonError:
        if stopped():
            return "stopped before anything was read", EXIT_STOPPED
        raise
    if origin is None:
        write_origin(directory, Origin(archive.reads, settings))
    reached("origin")
    _tell(archive)
    outcome = replay(config, archive, stopped, reached, batch_records)
    return summary(outcome, options.config, options.into, origin is not None), EXIT_STOPPED if outcome.stopped else 0


def _archive(options: argparse.Namespace, config: Config, origin: Origin | None, stopped: Callable[[], bool]) -> Archive:
    if options.files:
        named = [
            name
            for name, given in (("--since", options.since), ("--until", options.until), ("--accept-loss", options.accept_loss))
            if given
        ]
        if named:
            raise ConfigError([f"{named[0]} is for topics: files are read whole"], COMMAND_LINE)
        return archive_of_files(options.files, origin)
    kafka = config.source.kafka
    if kafka is None:
        raise ConfigError(["FILE: name event files to read, or give a configuration with source.kafka to read its topics"], COMMAND_LINE)
    topics = (kafka.predictions, kafka.labels)
    since, until = bound("--since", options.since, EARLIEST, topics), bound("--until", options.until, NOW, topics)
    if since.time_ms is not None and until.time_ms is not None and since.time_ms >= until.time_ms:
        raise ConfigError(["--until must lie after --since"], COMMAND_LINE)
    return archive_of_topics(kafka, since, until, options.accept_loss, origin, stopped)


def _tell(archive: Archive) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    for line in archive.says:
        console.print(line)
