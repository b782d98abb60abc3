"""The replay itself: batch after batch into the scratch state, until the archive ends or someone says stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from monitor.app import Engine, nothing
from monitor.backfill.replay.archive import Archive
from monitor.backfill.replay.holding import Holding, holdings, span_ms
from monitor.clock import SystemClock
from monitor.config import Config
from monitor.errors import CalmonError, SourceError, StoppedError
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.shard import Shard
from monitor.sources.protocol import Position

Show = Callable[[int, int], None]
"""Told how much of the archive has been read, and the records of this run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has done, and what the state holds now.

    Attributes:
        records: Read in this run.
        seconds: That it took.
        stopped: Whether it was stopped before the end of the archive.
        account: Of all runs.
        versions: What the state holds.
        span_ms: Event time from the first to the end of the last hour that holds anything; None without one.
        digest: Of the state, at the end of the archive.
    """

    records: int
    seconds: float
    stopped: bool
    account: Account
    versions: Sequence[Holding]
    span_ms: tuple[int, int] | None
    digest: str | None


def replay(
    config: Config,
    archive: Archive,
    stopped: Callable[[], bool],
    reached: Callable[[str], None] = nothing,
    batch_records: int | None = None,
) -> Outcome:
    """Read an archive to its end, or until `stopped` says so; each batch is finished and checkpointed.

    Args:
        config: Its `state.directory` is the scratch state.
        archive: What to read.
        stopped: Whether to end early.
        reached: Told at each point of a checkpoint.
        batch_records: Most records in a batch; by default as many as the service takes.

    Raises:
        CalmonError: The archive or the state stands in the way; what was read before is kept.
    """
    began_s = time.monotonic()
    engine = Engine(config, SystemClock(), source=archive.source, reached=reached, weigh=False)
    try:
        archive.done(_positions(engine.shards))
        before = _consumed(engine.shards)
        ended = _read(engine, archive, stopped, batch_records)
        account = merge_accounts([shard.account for shard in engine.shards])
        return Outcome(
            account.consumed - before,
            time.monotonic() - began_s,
            not ended,
            account,
            holdings(engine.shards),
            span_ms(engine.shards),
            digest(dump(engine.shards)) if ended else None,
        )
    finally:
        engine.close()


def _read(engine: Engine, archive: Archive, stopped: Callable[[], bool], batch_records: int | None) -> bool:
    """Whether the archive was read to its end."""
    before = _consumed(engine.shards)
    with _progress(archive.total) as show:
        try:
            engine.runner.start(stopped)
        except StoppedError:
            return False
        fine_s = time.monotonic()
        while not stopped():
            records = engine.runner.step(batch_records)
            show(archive.done(_positions(engine.shards)), _consumed(engine.shards) - before)
            if not records and archive.source.exhausted:
                if (failure := archive.failure()) is not None:
                    raise CalmonError(f"the replay is not whole: {failure}")
                return True
            trouble = None if records else archive.source.status().trouble
            if trouble is None:
                fine_s = time.monotonic()
            elif time.monotonic() - fine_s > archive.patience_s:
                raise SourceError(f"{trouble}, for {archive.patience_s:g} s; what was read is kept: run the same command again to go on")
    return False


def _positions(shards: Sequence[Shard]) -> dict[str, Position]:
    return {name: position for shard in shards for name, position in shard.positions.items()}


def _consumed(shards: Sequence[Shard]) -> int:
    return sum(shard.account.consumed for shard in shards)


@contextmanager
def _progress(total: int) -> Iterator[Show]:
    began_s = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("reading", total=total)

        def show(done: int, records: int) -> None:
            rate = records / max(time.monotonic() - began_s, 0.001)
            progress.update(task, completed=done, description=f"{records:,} records, {rate:,.0f}/s")

        yield show
