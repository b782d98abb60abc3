"""The backfill itself: batch by batch from label files through the sieve to their destination, resumable at every batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from monitor.backfill.labels.beside import Folder, Standing
from monitor.backfill.labels.destination import Destination
from monitor.backfill.labels.label_file import LabelFile
from monitor.backfill.labels.sieve import Sieve
from monitor.backfill.labels.tally import Tally
from monitor.pipeline.runner import BATCH_RECORDS

_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Input:
    """A label file and the name of the partition that it is."""

    file: LabelFile
    partition: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a label file.

    Attributes:
        file: As given.
        before: Rows that earlier runs had taken in.
        tally: What became of its rows, earlier runs included.
        quarantine: Where the rows are that were held back; None if there are none.
        same_as: The file of this run, as given, that is the same partition and counts for both; None if it counts for itself.
    """

    file: str
    before: int
    tally: Tally
    quarantine: str | None
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """How label files are taken in.

    Attributes:
        sieve: Judges rows.
        destination: Takes labels.
        folder: Takes what is held back; None to keep nothing.
        rate: Rows a second; None for as many as it goes.
        stopped: Whether somebody asked for the end.
        batch_records: Most rows in a batch.
    """

    sieve: Sieve
    destination: Destination
    folder: Folder | None
    rate: float | None
    stopped: Callable[[], bool]
    batch_records: int = BATCH_RECORDS

    def run(self, inputs: Sequence[Input]) -> list[Outcome]:
        """Take files in, one after the other, until they end or somebody asks for the end; what was not taken in comes in the next run.

        A file that is given again, also from another folder, is the same partition, and counts nothing.

        Raises:
            CalmonError: A file, the state or the broker stands in the way.
        """
        first: dict[str, Input] = {}
        for one in inputs:
            first.setdefault(one.partition, one)
        outcomes = []
        with _progress(list(first.values())) as show:
            for one in inputs:
                if self.stopped():
                    break
                same = first[one.partition]
                outcomes.append(self._take_in(one, show) if same is one else Outcome(one.file.path, 0, Tally(), None, same.file.path))
        return outcomes

    def _take_in(self, one: Input, show: Callable[[int], None]) -> Outcome:
        standing = self.destination.standing(one.partition)
        tally, before, size = standing.counts(), standing.counts().rows, standing.quarantine_bytes
        if self.folder is not None:
            self.folder.put_back(one.partition, standing)
        rows = (row for row in one.file.rows() if row.number > standing.row)
        size_of_batch = self.batch_records if self.rate is None else max(1, min(self.batch_records, int(self.rate / 4)))
        began, done = time.monotonic(), 0
        while not self.stopped() and (batch := list(islice(rows, size_of_batch))):
            found = self.sieve.sort(batch)
            if self.folder is not None:
                size = self.folder.append(one.partition, found.held)
            tally.merge(found.tally)
            if not self.destination.deliver(one.partition, found.kept, Standing(batch[-1].number, size, tally.to_text()), self.stopped):
                return self._outcome(one, before, standing)
            standing = Standing(batch[-1].number, size, tally.to_text())
            done += len(batch)
            show(len(batch))
            self._wait(began + done / self.rate if self.rate else 0.0)
        return self._outcome(one, before, standing)

    def _outcome(self, one: Input, before: int, standing: Standing) -> Outcome:
        kept = standing.quarantine_bytes and self.folder is not None
        return Outcome(
            one.file.path, before, standing.counts(), str(self.folder.quarantine(one.partition)) if kept and self.folder else None
        )

    def _wait(self, until_s: float) -> None:
        while not self.stopped() and (remaining := until_s - time.monotonic()) > 0:
            time.sleep(min(remaining, _LOOK_S))


@contextmanager
def _progress(inputs: Sequence[Input]) -> Iterator[Callable[[int], None]]:
    began, rows = time.monotonic(), 0
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("labels", total=sum(one.file.total_bytes for one in inputs))

        def show(more: int) -> None:
            nonlocal rows
            rows += more
            rate = rows / max(time.monotonic() - began, 0.001)
            progress.update(task, completed=sum(one.file.read_bytes for one in inputs), description=f"{rows:,} labels, {rate:,.0f}/s")

        yield show
