"""Telling Prometheus what is known now of windows that have moved; what could not be told waits in the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing

from monitor.errors import ConfigError
from monitor.export.backfill_series import Scope
from monitor.export.prometheus_http import RefusedError, UnavailableError
from monitor.export.publisher import Publisher, PublishError, RevisionsTakenError
from monitor.metrics.metric import Metric
from monitor.pipeline.revisions.journal import Revision
from monitor.pipeline.revisions.moves import moments_of
from monitor.pipeline.revisions.reviser import Reviser
from monitor.sources.protocol import never
from monitor.windows.running import WindowSpec

log = logging.getLogger(__name__)

NOT_WRITTEN = 0
"""In place of a revision: the panes or the window were gone before it could be written, or every revision is taken."""


class Publishing:
    """Writes moved windows by remote write, oldest entry first.

    Args:
        reviser: Whose journal is told.
        windows: Those that may have moved.
        metrics: What is written.
        connect: Makes a publisher, with credentials as they are now, that ends when what it is given says so.
    """

    def __init__(
        self,
        reviser: Reviser,
        windows: Sequence[WindowSpec],
        metrics: Sequence[Metric],
        connect: Callable[[Callable[[], bool]], Publisher],
    ) -> None:
        self._reviser = reviser
        self._windows = {window.name: window for window in windows}
        self._metrics = metrics
        self._connect = connect
        self._told: str | None = None

    def run(self, stopped: Callable[[], bool] = never) -> None:
        """Write what waits; what a Prometheus that is away, or that refuses it, does not have is written by the next run.

        The log says why, once as long as nothing else is the matter.

        Args:
            stopped: Whether nobody waits for it any more; then it ends after the request in work.

        Raises:
            StateError: The state could not be read or written.
            CapacityError: Sums could overflow.
        """
        waiting = waiting_windows(self._reviser.journal.entries)
        if not waiting:
            return
        trouble = None
        try:
            with closing(self._connect(stopped)) as publisher:
                refused = self._write_all(publisher, waiting, stopped)
            if refused:
                trouble = f"{len(refused)} are refused, first {refused[0]}"
        except (ConfigError, UnavailableError) as error:
            trouble = str(error)
        if stopped():
            return
        if trouble is not None and trouble != self._told:
            log.warning("%d moved windows are not in Prometheus yet: %s", len(waiting_windows(self._reviser.journal.entries)), trouble)
        self._told = trouble

    def _write_all(self, publisher: Publisher, waiting: Sequence[tuple[Revision, str]], stopped: Callable[[], bool]) -> list[str]:
        """Write windows, one after the other; which ones are refused, and why: a refusal of one says nothing of the next."""
        refused = []
        for entry, name in waiting:
            if stopped():
                break
            try:
                self._write(publisher, entry, name)
            except UnavailableError:
                raise
            except (RefusedError, PublishError) as error:
                refused.append(f"window {name} of revision {entry.number}: {error}")
        return refused

    def _write(self, publisher: Publisher, entry: Revision, name: str) -> None:
        """Write one window of an entry and note it."""
        window = self._windows.get(name)
        moments = [] if window is None else self._reviser.moments(entry, window, self._metrics, moments_of(entry.moved[name]))
        revision = NOT_WRITTEN
        if moments:
            try:
                revision = publisher.publish(Scope(entry.model, entry.version, name, self._metrics), moments).revision
            except RevisionsTakenError as error:
                log.warning("revision %d, window %s: %s", entry.number, name, error)
        else:
            gone = "it is not configured any more" if window is None else "its panes are not kept any more"
            log.warning("revision %d, window %s: nothing is written, for %s", entry.number, name, gone)
        self._reviser.journal.published(entry.number, name, revision)


def waiting_windows(entries: Sequence[Revision]) -> list[tuple[Revision, str]]:
    """Entries with the windows that Prometheus does not have, oldest first."""
    return [(entry, name) for entry in entries for name in entry.waiting]
