"""The only place where adapters are built: from a configuration to something that runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from monitor.clock import Clock
from monitor.config import Config
from monitor.config_revisions import RevisionsConfig
from monitor.errors import StateError
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable
from monitor.evidence.standing import Evidence
from monitor.export.prometheus_http import Credentials
from monitor.export.publisher import Publisher
from monitor.export.quarantine_file import FileSink
from monitor.export.quarantine_sink import Sink
from monitor.join.horizon import Horizon
from monitor.pipeline.configured import (
    evidence_rules,
    exported_metrics,
    layouts_of,
    references_of,
    revision_rules,
    settings_of,
    window_specs,
)
from monitor.pipeline.evidence.book import Book
from monitor.pipeline.evidence.tracker import Tracker
from monitor.pipeline.processor import Processor
from monitor.pipeline.quarantine import Outbox
from monitor.pipeline.references import ConfiguredReferences
from monitor.pipeline.revisions.journal import Journal
from monitor.pipeline.revisions.publishing import Publishing
from monitor.pipeline.revisions.reviser import Reviser
from monitor.pipeline.runner import Runner
from monitor.pipeline.shard import Shard
from monitor.pipeline.tick import Evaluator
from monitor.pipeline.upkeep import Upkeep
from monitor.pipeline.worker import Worker
from monitor.prometheus_address import parse_address
from monitor.secret_file import read_secret, read_token
from monitor.sources.ndjson import NdjsonSource
from monitor.sources.protocol import WHOLE, Source
from monitor.state.protocol import StateStore
from monitor.state.references import References
from monitor.state.rocks import MARKER, RocksStore

_SHARD_PREFIX = "shard-"


def nothing(point: str) -> None:
    """What happens at a point of a checkpoint outside recovery tests."""
    del point


class Engine:
    """All shards of a source up to the snapshot, without threads: `evaluate`, tests, and the inside of `Service`.

    Args:
        config: What to watch and how.
        clock: What windows are moved to.
        source: Where records come from; by default what is configured.
        store: Where the state of an unsharded source is kept; by default the configured directory.
        reached: Told at each point of a checkpoint.
        accept_loss: Whether to go on where a Kafka log no longer holds what was to be read next.
        references_at: State directory whose references are used; by default the configured one.
        weigh: Whether ticks look at the evidence; windows of past moments need none.

    Attributes:
        source: As given or built.
        shards: One of each worker, in the order they were made.
        runner: Drives them.
        evaluator: Evaluates them together.
        references: What drift is told from.
        tracker: Keeps the evidence; None if ticks do not look at it.
        reviser: Notes what changes after it has entered the evidence; None without a tracker.
        publishing: Tells Prometheus of windows that have moved; None where nobody is to be told.

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
        accept_loss: bool = False,
        references_at: str | None = None,
        weigh: bool = True,
    ) -> None:
        self._config = config
        self._clock = clock
        self._reached = reached
        self._store = store
        self._layout_of = layouts_of(config)
        self.source = _source(config, accept_loss) if source is None else source
        self.shards: list[Shard] = []
        self.tracker: Tracker | None = None
        self.runner = Runner(self.source, self._new_worker, clock)
        for name in self._known_shards():
            self.runner.worker(name)
        settings = settings_of(config)
        store_at = Path(config.state.directory if references_at is None else references_at)
        self.references = ConfiguredReferences(References(store_at), references_of(config), settings)
        self._book_store: StateStore | None = None
        self.reviser: Reviser | None = None
        self.publishing: Publishing | None = None
        if weigh:
            self._judge()
        self.evaluator = Evaluator(self.shards, clock, settings, exported_metrics(config), self.references, self._weigh)

    @property
    def shard(self) -> Shard:
        """The shard of a source that has only one."""
        (shard,) = self.shards
        return shard

    def outboxes(self) -> list[Outbox]:
        """Where each shard's refused records wait."""
        return [worker.outbox for worker in list(self.runner.workers.values())]

    def close(self) -> None:
        """Finish the quarantine; close source and stores."""
        try:
            self.runner.close()
        finally:
            if self._book_store is not None:
                self._book_store.close()

    def _known_shards(self) -> list[str]:
        """Shards that there are before anything is read.

        Raises:
            StateError: The state was kept the other way round.
        """
        kafka = self._config.source.kafka
        directory = Path(self._config.state.directory)
        parts = sorted(directory.glob(f"{_SHARD_PREFIX}*"))
        whole = (directory / MARKER).exists()
        if kafka is None or kafka.shards == "one":
            if parts:
                raise StateError(
                    f"{directory} holds a shard for each partition ({parts[0].name}, ...), the configuration wants one: "
                    "set source.kafka.shards to partitions, or name another state.directory"
                )
            return [WHOLE]
        if whole:
            raise StateError(
                f"{directory} holds one shard for everything, the configuration wants one for each partition: "
                "set source.kafka.shards to one, or name another state.directory"
            )
        return [part.name.removeprefix(_SHARD_PREFIX) for part in parts]

    def _judge(self) -> None:
        """Begin with evidence and revisions of all shards; both are kept in the one shard's store, else in one of their own beside them."""
        kafka = self._config.source.kafka
        if kafka is None or kafka.shards == "one":
            store = self.shard.store
        else:
            store = self._book_store = RocksStore(Path(self._config.state.directory) / "evidence")
        self.tracker = Tracker(self.shards, Book(store), evidence_rules(self._config), self._reached)
        rules = revision_rules(self._config)
        address = self._config.revisions.prometheus
        self.reviser = Reviser(self._named_shards, Journal(store, publishes=address is not None), rules, self._reached)
        if address is not None:
            connect = partial(_publisher, address, self._config.revisions)
            self.publishing = Publishing(self.reviser, rules.windows, exported_metrics(self._config), connect)

    def _named_shards(self) -> dict[str, Shard]:
        return {name: worker.shard for name, worker in self.runner.workers.copy().items()}

    def _weigh(self, now_ms: int) -> Evidence:
        return Evidence() if self.tracker is None else self.tracker.tick(now_ms, self.runner.known_ms)

    def _new_worker(self, name: str) -> Worker:
        config = self._config
        directory = Path(config.state.directory)
        if name != WHOLE:
            directory /= _SHARD_PREFIX + name
        store = RocksStore(directory) if self._store is None else self._store
        shard = Shard(store, self._layout_of, window_specs(config.windows))
        outbox = Outbox(shard, quarantine_sink(config, directory, name))
        horizon = Horizon(config.state.horizon_ms)
        self.shards.append(shard)
        if self.tracker is not None:
            self.tracker.join(shard)
        return new_worker(config, shard, outbox, horizon, self._clock, lambda: self.source.live_partitions(name), self._reached)


def new_worker(
    config: Config,
    shard: Shard,
    outbox: Outbox,
    horizon: Horizon,
    clock: Clock,
    live_partitions: Callable[[], frozenset[str]],
    reached: Callable[[str], None] = nothing,
) -> Worker:
    """What takes the batches of a shard in, as configured.

    Args:
        config: Models, and how long history is kept.
        shard: The state.
        outbox: Takes its refused records.
        horizon: The waiting rules.
        clock: What windows are moved to.
        live_partitions: Partitions of the shard that may still deliver.
        reached: Told at each point of a checkpoint.
    """
    heads = HeadTable()
    decoder = Decoder(lambda model: config.model(model).classes, heads)
    processor = Processor(shard, decoder, heads, horizon, outbox, reached)
    history_ms = None if config.state.horizon_ms is None else config.state.history_ms
    upkeep = Upkeep(shard, heads, horizon, history_ms, clock, live_partitions, reached)
    return Worker(shard, processor, upkeep, outbox)


def _source(config: Config, accept_loss: bool) -> Source:
    kafka = config.source.kafka
    if kafka is None:
        return NdjsonSource(config.source.files, follow=config.source.follow)
    from monitor.kafka_wiring import kafka_source  # noqa: PLC0415 - who reads files need not wait for the client

    return kafka_source(kafka, accept_loss)


def _publisher(address: str, revisions: RevisionsConfig, given_up: Callable[[], bool]) -> Publisher:
    """A publisher with credentials as they are in their files now.

    Raises:
        ConfigError: A file cannot be used.
    """
    credentials = None
    if revisions.bearer_token_file is not None:
        credentials = Credentials.bearer(read_token("revisions.bearer_token_file", revisions.bearer_token_file))
    elif revisions.username is not None and revisions.password_file is not None:
        credentials = Credentials.basic(revisions.username, read_secret("revisions.password_file", revisions.password_file))
    # What fails is written by the next look: a service that is asked to end must not wait for a Prometheus that is away.
    return Publisher(parse_address(address), credentials, pauses_s=(), given_up=given_up)


def quarantine_sink(config: Config, directory: Path, shard: str) -> Sink:
    """Where a shard's refused records go: the topic, else a file; each shard has a file of its own."""
    kafka = config.source.kafka
    if kafka is not None and config.quarantine.topic is not None:
        from monitor.kafka_wiring import topic_sink  # noqa: PLC0415 - as above

        return topic_sink(kafka, config.quarantine.topic)
    path = Path(config.quarantine.file or directory / "quarantine.ndjson")
    if shard != WHOLE and config.quarantine.file is not None:
        path = path.with_name(f"{path.stem}-{shard}{path.suffix}")
    return FileSink(path)
