"""The running service: a consumer thread, a scheduled tick, and the HTTP server around an engine."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler

from monitor.app import Engine
from monitor.config import Config
from monitor.errors import CalmonError, CapacityError
from monitor.export.http import MetricsServer, Pages
from monitor.pipeline.configured import surroundings
from monitor.pipeline.pages import Rendered, Surroundings, render_snapshot
from monitor.pipeline.tick import Snapshot
from monitor.sources.protocol import never

log = logging.getLogger(__name__)


class Service:
    """`calmon run`: a consumer thread, a scheduled tick, and the HTTP server.

    Args:
        config: What to watch, how often, and where to serve.
        engine: Built from the same configuration.
    """

    def __init__(self, config: Config, engine: Engine) -> None:
        self._engine = engine
        self._host = config.http.address
        self._state_directory = config.state.directory
        self._configured = surroundings(config)
        self._tick_s = config.evaluation.tick_ms / 1000
        self._revise_s = config.revisions.every_ms / 1000
        self._rendered: Rendered = render_snapshot(engine.evaluator.snapshot)
        self._stop = threading.Event()
        self._open = False
        self._ticked = False
        self._failure: BaseException | None = None
        self._consumer = threading.Thread(target=self._consume, name="consumer", daemon=True)
        self._scheduler = BackgroundScheduler(timezone="UTC")
        self.server = MetricsServer(
            config.http.address,
            config.http.port,
            Pages(lambda: self._rendered.metrics, lambda: self._rendered.status, self._readiness, self._health),
        )

    @property
    def snapshot(self) -> Snapshot:
        """What the last tick saw."""
        return self._engine.evaluator.snapshot

    @property
    def address(self) -> str:
        """Host and port that are served, as in a URL."""
        return f"[{self._host}]:{self.server.port}" if ":" in self._host else f"{self._host}:{self.server.port}"

    def start(self, given_up: Callable[[], bool] = never) -> None:
        """Listen, begin to tick, open the source, and begin to consume.

        Args:
            given_up: Whether nobody waits for the start any more: a source may wait long for its broker.

        Raises:
            CalmonError: The port is taken or the source cannot be opened, or it was given up; nothing is left running.
        """
        self.server.start()
        self._begin_ticks()
        try:
            self._engine.runner.start(lambda: given_up() or self._stop.is_set())
        except CalmonError as error:
            self._scheduler.shutdown(wait=True)
            self.server.close()
            if self._failure is not None:
                raise self._failure from error
            raise
        self._open = True
        self._consumer.start()

    def _begin_ticks(self) -> None:
        """Tick from now on: what the state holds is shown while the source is still to be opened.

        The first tick comes at once, so that a restart leaves no gap; a late one is still a tick.
        """
        self._scheduler.add_job(
            lambda: self._guard(self._tick),
            "interval",
            seconds=self._tick_s,
            next_run_time=datetime.now(UTC),
            misfire_grace_time=None,
            max_instances=1,
            coalesce=True,
        )
        self._scheduler.add_job(
            lambda: self._guard(self._revise),
            "interval",
            seconds=self._revise_s,
            misfire_grace_time=None,
            max_instances=1,
            coalesce=True,
        )
        self._scheduler.start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for `stop` or a failure; whether it came within `timeout_s`."""
        return self._stop.wait(timeout_s)

    def stop(self) -> None:
        """Ask everything to end after the batch in work; returns at once."""
        self._stop.set()

    def close(self) -> None:
        """Finish the batch in work, checkpoint, and release everything.

        Raises:
            CalmonError: What ended the consumer or the tick, if they did not end by `stop`; a fault of calmon's own is raised as it is.
        """
        self._stop.set()
        self._scheduler.shutdown(wait=True)
        self._consumer.join()
        self.server.close()
        try:
            self._engine.close()
        finally:
            # The first failure is the one to tell; that the store then cannot be closed follows from it.
            if self._failure is not None:
                raise self._failure

    def _consume(self) -> None:
        # Batches make millions of short-lived objects without cycles: look for cycles seldom, and never among what is here now.
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        self._guard(lambda: self._engine.runner.run(self._stop))

    def _tick(self) -> None:
        waiting = sum(outbox.waiting for outbox in self._engine.outboxes())
        snapshot, status = self._engine.evaluator.tick(), self._engine.source.status()
        journal = None if self._engine.reviser is None else self._engine.reviser.journal
        self._rendered = render_snapshot(snapshot, status, waiting, self._surroundings(), journal)
        self._ticked = True

    def _revise(self) -> None:
        try:
            if self._engine.reviser is not None:
                self._engine.reviser.run(self.snapshot.now_ms, self._stop.is_set)
            if self._engine.publishing is not None:
                self._engine.publishing.run(self._stop.is_set)
        except (ArithmeticError, ValueError, LookupError, CapacityError):
            # No gauge depends on it: what is pending waits, and what is served stays true.
            log.exception("revisions could not be looked for; the next look tries again")

    def _surroundings(self) -> Surroundings:
        try:
            disk = os.statvfs(self._state_directory)
        except OSError:  # a state that is somewhere else
            return self._configured
        return replace(self._configured, disk_free_bytes=disk.f_bavail * disk.f_frsize, disk_size_bytes=disk.f_blocks * disk.f_frsize)

    def _guard(self, work: Callable[[], None]) -> None:
        """Run a thread's work; whatever it raises ends the service, for gauges without it would be stale and look well."""
        try:
            work()
        except BaseException as error:
            self._failure = self._failure or error
            self._stop.set()

    def _readiness(self) -> tuple[bool, str]:
        troubles = [self._engine.source.status().trouble, *(outbox.trouble for outbox in self._engine.outboxes())]
        told = "; ".join(dict.fromkeys(trouble for trouble in troubles if trouble is not None))
        if told:
            return False, told
        if not self._open:
            return False, "the source is being opened"
        return self._ticked, "ready" if self._ticked else "the first tick is still to come"

    def _health(self) -> tuple[bool, str]:
        alive = self._failure is None
        return alive, "healthy" if alive else f"stopping: {self._failure}"
