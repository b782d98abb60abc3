"""The only place where adapters are built: from a configuration to something that runs."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from apscheduler.schedulers.background import BackgroundScheduler

from monitor.clock import Clock
from monitor.config import Config
from monitor.errors import CalmonError
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable
from monitor.export.http import MetricsServer, Pages
from monitor.join.horizon import Horizon
from monitor.pipeline.configured import layouts_of, window_specs
from monitor.pipeline.pages import Rendered, render_snapshot
from monitor.pipeline.processor import Processor
from monitor.pipeline.quarantine import QuarantineFile
from monitor.pipeline.runner import Runner
from monitor.pipeline.shard import Shard
from monitor.pipeline.tick import Evaluator, Snapshot
from monitor.pipeline.upkeep import Upkeep
from monitor.pipeline.worker import Worker
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import WHOLE, Source
from monitor.state.protocol import StateStore
from monitor.state.rocks import RocksStore

log = logging.getLogger(__name__)


def nothing(point: str) -> None:
    """What happens at a point of a checkpoint outside recovery tests."""
    del point


class Engine:
    """All shards of a source up to the snapshot, without threads: `evaluate`, tests, and the inside of `Service`.

    Args:
        config: What to watch and how.
        clock: What windows are moved to.
        source: Where records come from; by default the configured files.
        store: Where the state of an unsharded source is kept; by default the configured directory.
        reached: Told at each point of a checkpoint.

    Attributes:
        source: As given or built.
        shards: One of each worker, in the order they were made.
        runner: Drives them.
        evaluator: Evaluates them together.

    Raises:
        CalmonError: The state or the quarantine cannot be used.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        source: Source | None = None,
        store: StateStore | None = None,
        reached: Callable[[str], None] = nothing,
    ) -> None:
        self._config = config
        self._clock = clock
        self._reached = reached
        self._store = store
        self._layout_of = layouts_of(config)
        self.source = NdjsonSource(config.source.files, follow=config.source.follow) if source is None else source
        self.shards: list[Shard] = []
        self.runner = Runner(self.source, self._new_worker)
        for name in self._known_shards():
            self.runner.worker(name)
        self.evaluator = Evaluator(self.shards, clock)

    @property
    def shard(self) -> Shard:
        """The shard of a source that has only one."""
        (shard,) = self.shards
        return shard

    def close(self) -> None:
        """Finish the quarantine; close source and stores."""
        self.runner.close()

    def _known_shards(self) -> list[str]:
        """Shards that there are before anything is read."""
        return [WHOLE]

    def _new_worker(self, name: str) -> Worker:
        config = self._config
        directory = Path(config.state.directory)
        store = RocksStore(directory) if self._store is None else self._store
        shard = Shard(store, self._layout_of, window_specs(config.windows))
        heads = HeadTable()
        horizon = Horizon(config.state.horizon_ms)
        history_ms = None if config.state.horizon_ms is None else config.state.history_ms
        quarantine = QuarantineFile(Path(config.quarantine.file or directory / "quarantine.ndjson"), shard)
        decoder = Decoder(lambda model: config.model(model).classes, heads)
        processor = Processor(shard, decoder, heads, horizon, quarantine, self._reached)
        upkeep = Upkeep(shard, heads, horizon, history_ms, self._clock, lambda: self.source.live_partitions(name), self._reached)
        self.shards.append(shard)
        return Worker(shard, processor, upkeep, quarantine)


class Service:
    """`calmon run`: a consumer thread, a scheduled tick, and the HTTP server.

    Args:
        config: What to watch, how often, and where to serve.
        engine: Built from the same configuration.
    """

    def __init__(self, config: Config, engine: Engine) -> None:
        self._engine = engine
        self._host = config.http.address
        self._tick_s = config.evaluation.tick_ms / 1000
        self._rendered: Rendered = render_snapshot(engine.evaluator.snapshot)
        self._stop = threading.Event()
        self._ready = False
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

    def start(self) -> None:
        """Listen, open the source, and begin to consume and to tick.

        Raises:
            CalmonError: The port is taken or the source cannot be opened; nothing is left running.
        """
        self.server.start()
        try:
            self._engine.runner.start()
        except CalmonError:
            self.server.close()
            raise
        self._consumer.start()
        # The first tick at once, so that a restart leaves no gap; a late one is still a tick.
        self._scheduler.add_job(
            lambda: self._guard(self._tick),
            "interval",
            seconds=self._tick_s,
            next_run_time=datetime.now(UTC),
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
        self._rendered = render_snapshot(self._engine.evaluator.tick())
        self._ready = True

    def _guard(self, work: Callable[[], None]) -> None:
        """Run a thread's work; whatever it raises ends the service, for gauges without it would be stale and look well."""
        try:
            work()
        except BaseException as error:
            self._failure = self._failure or error
            self._stop.set()

    def _readiness(self) -> tuple[bool, str]:
        return (self._ready, "ready" if self._ready else "the first tick is still to come")

    def _health(self) -> tuple[bool, str]:
        alive = self._failure is None
        return alive, "healthy" if alive else f"stopping: {self._failure}"
