"""Telling Prometheus what is known now of windows that have moved; what could not be told waits in the journal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing

from monitor.errors import ConfigError
from monitor.export.backfill_series import Scope
from monitor.export.prometheus_http import RefusedError
from monitor.export.publisher import Publisher, PublishError
from monitor.metrics.metric import Metric
from monitor.pipeline.revisions.journal import Revision
from monitor.pipeline.revisions.moves import moments_of
from monitor.pipeline.revisions.reviser import Reviser
from monitor.windows.running import WindowSpec

log = logging.getLogger(__name__)

NOT_WRITTEN = 0
"""In place of a revision: the panes were gone before the windows could be written, or every revision is taken."""


class Publishing:
    """Writes moved windows by remote write, oldest entry first.

    Args:
        reviser: Whose journal is told.
        windows: Those that may have moved.
        metrics: What is written.
        connect: Makes a publisher, with credentials as they are now.
    """

    def __init__(
        self, reviser: Reviser, windows: Sequence[WindowSpec], metrics: Sequence[Metric], connect: Callable[[], Publisher]
    ) -> None:
        self._reviser = reviser
        self._windows = {window.name: window for window in windows}
        self._metrics = metrics
        self._connect = connect
        self._told: str | None = None

    def run(self) -> None:
        """Write what waits; a Prometheus that is away or refuses is told of in the log, and asked again at the next run.

        Raises:
            StateError: The state could not be read or written.
            CapacityError: Sums could overflow.
        """
        waiting = waiting_windows(self._reviser.journal.entries)
        try:
            with closing(self._connect()) as publisher:
                for entry, name in waiting:
                    self._write(publisher, entry, name)
                self._told = None
        except (ConfigError, RefusedError) as error:
            if str(error) != self._told:
                self._told = str(error)
                log.warning("%d moved windows are not in Prometheus yet: %s", len(waiting), error)

    def _write(self, publisher: Publisher, entry: Revision, name: str) -> None:
        """Write one window of an entry and note it."""
        window = self._windows.get(name)
        moments = [] if window is None else self._reviser.moments(entry, window, self._metrics, moments_of(entry.moved[name]))
        revision = NOT_WRITTEN
        if moments:
            try:
                revision = publisher.publish(Scope(entry.model, entry.version, name, self._metrics), moments).revision
            except PublishError as error:
                log.warning("revision %d, window %s: %s", entry.number, name, error)
        self._reviser.journal.published(entry.number, name, revision)


def waiting_windows(entries: Sequence[Revision]) -> list[tuple[Revision, str]]:
    """Entries with the windows that Prometheus does not have, oldest first."""
    return [(entry, name) for entry in entries for name in entry.moved if name not in entry.published]
