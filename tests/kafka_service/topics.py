"""A pair of topics and a quarantine for one run of calmon, what was sent to them, and what it must come to."""

from __future__ import annotations

import json
import random
import signal
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kafka import KafkaProducer

from monitor.cli import main
from monitor.produce.address import Address, address
from tests.integration.running import calmon, report
from tests.kafka_quarantine.topic import fields, read
from tests.recovery.stream import START_MS, write_lines
from tests.services.kafka import Kafka, open_client

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
KEPT = {"retention.ms": "-1"}
MOST_IN_A_RECORD = 6
DEFAULTS = {"bins": 15, "ood_threshold": 0.1, "confidence_threshold": 0.8, "groups": ["region", "shop"], "max_group_values": 5}


class Place(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A record as it was sent."""

    key: bytes | None
    events: tuple[bytes, ...]


class Topics:
    """Topics with names of their own, and what is in them.

    Args:
        kafka: Where.
        predictions: Count of partitions.
        labels: Count of partitions; as many as of the predictions if not said.
    """

    def __init__(self, kafka: Kafka, predictions: int = 2, labels: int | None = None) -> None:
        self.kafka = kafka
        self.predictions = kafka.new_topic("predictions", predictions, KEPT)
        self.labels = kafka.new_topic("labels", predictions if labels is None else labels, KEPT)
        self.partitions = {self.predictions: predictions, self.labels: predictions if labels is None else labels}
        self.sent: dict[Place, Sent] = {}

    @property
    def names(self) -> list[str]:
        """`predictions-0` and so on."""
        return [f"{topic}-{number}" for topic, count in self.partitions.items() for number in range(count)]

    def config(self, folder: Path, quarantine: str | None = None, **changes: Any) -> Path:
        """Write the configuration of a run whose state is `folder`/state; a group and a quarantine of its own.

        Args:
            folder: Takes it.
            quarantine: A topic; by default a new one.
            changes: Sections that win over the usual ones; `kafka` is a part of `source`.
        """
        kafka = {
            "bootstrap_servers": self.kafka.bootstrap.split(","),
            "group_id": f"group-{uuid.uuid4().hex[:12]}",
            "predictions": self.predictions,
            "labels": self.labels,
        }
        sections: dict[str, Any] = {
            "source": {"kafka": kafka | changes.pop("kafka", {})},
            "quarantine": {"topic": quarantine or self.kafka.new_topic("quarantine", 2, KEPT)},
            "state": {"directory": str(folder / "state"), "horizon": "none"},
            "windows": [{"name": "24h", "length": "24h", "lag": "0s"}],
            "evaluation": {"tick": "100ms"},
            "http": {"port": 0},
            "defaults": DEFAULTS,
        }
        path = folder / "calmon.yaml"
        path.write_text(json.dumps(sections | changes))
        return path

    def produce(self, folder: Path, lines: Sequence[bytes], chance: random.Random) -> None:
        """Send lines with `calmon produce`, in pieces of any size, each compressed in its own way."""
        words = ["--bootstrap", self.kafka.bootstrap, "--predictions", self.predictions, "--labels", self.labels]
        cuts = sorted(chance.sample(range(1, len(lines)), 2 * len(COMPRESSIONS) - 1))
        handlers = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
        for number, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(lines)], strict=True)):
            piece = write_lines(folder / f"piece-{number}.ndjson", lines[first:end])
            assert main(["produce", str(piece), *words, "--compression", COMPRESSIONS[number % len(COMPRESSIONS)]]) == 0
        for signal_number, handler in handlers:
            signal.signal(signal_number, handler)
        for topic in (self.predictions, self.labels):
            for record in read(self.kafka, topic):
                self.sent[Place(topic, record.partition, record.offset)] = Sent(record.key, (record.value,))

    def send(self, lines: Sequence[bytes], chance: random.Random, several: bool = True) -> None:
        """Send lines, each id to one partition number, in batches of any size and compression.

        Args:
            lines: Events and what is none.
            chance: Says how.
            several: Whether a record may have several events, as an array or as lines.
        """
        rest = list(lines)
        while rest:
            alone = chance.random() < 0.2  # each record a batch of its own: for few records, for it takes its time
            piece = [rest.pop(0) for _ in range(min(len(rest), chance.randrange(50, 200) if alone else chance.randrange(500, 9000)))]
            compression = chance.choice(COMPRESSIONS)
            options: dict[str, Any] = {
                "compression_type": None if compression == "none" else compression,
                "batch_size": 1 if alone else chance.choice((700, 16_384, 131_072)),
                "linger_ms": chance.choice((0, 2, 20)),
                "acks": "all",
                "enable_idempotence": True,
            }
            with closing(open_client(KafkaProducer, bootstrap_servers=self.kafka.bootstrap, **options)) as producer:
                self._send(producer, piece, chance, several)

    def _send(self, producer: Any, lines: Sequence[bytes], chance: random.Random, several: bool) -> None:
        waiting: list[tuple[Any, Sent]] = []
        for topic, number, key, events, time_ms in self._records(lines, chance, several):
            value = _joined(events, chance)
            waiting.append((producer.send(topic, value=value, key=key, partition=number, timestamp_ms=time_ms), Sent(key, tuple(events))))
            if chance.random() < 0.002:
                producer.flush(timeout=30)
        producer.flush(timeout=30)
        for future, sent in waiting:
            there = future.get(timeout=30)
            self.sent[Place(there.topic, there.partition, there.offset)] = sent

    def _records(
        self, lines: Sequence[bytes], chance: random.Random, several: bool
    ) -> Iterator[tuple[str, int, bytes | None, list[bytes], int]]:
        """Topic, partition, key, events and time of each record; events of a partition keep their order."""
        open_records: dict[tuple[str, int], list[tuple[bytes, Address]]] = {}

        def close(place: tuple[str, int]) -> Iterator[tuple[str, int, bytes | None, list[bytes], int]]:
            events = open_records.pop(place, [])
            if events:
                key = events[0][1].key if len(events) == 1 else chance.choice((None, b"several"))
                newest_ms = max(found.event_ms or START_MS for _, found in events)
                yield *place, key, [event for event, _ in events], newest_ms

        for line in lines:
            found = address(line)
            topic = self.labels if found.role == "label" else self.predictions
            number = (zlib.crc32(found.key) if found.key else chance.randrange(1 << 20)) % self.partitions[topic]
            place = topic, number
            if not several or found.key is None:  # what may be no JSON is a record of its own
                yield from close(place)
                open_records[place] = [(line, found)]
                yield from close(place)
                continue
            open_records.setdefault(place, []).append((line, found))
            if len(open_records[place]) >= chance.randint(1, MOST_IN_A_RECORD):
                yield from close(place)
        for place in list(open_records):
            yield from close(place)


def _joined(events: Sequence[bytes], chance: random.Random) -> bytes:
    if len(events) == 1:
        return events[0]
    return b"[%s]" % b", ".join(events) if chance.random() < 0.5 else b"\n".join(events) + chance.choice((b"", b"\n"))


class Wanted(NamedTuple):
    """What a stream must come to."""

    digest: str
    account: dict[str, Any]


def evaluate(file: Path, config: Path) -> Wanted:
    """What `calmon evaluate` says of a file."""
    result = calmon("evaluate", file, "-c", config, "--format", "json", "--digest")
    assert result.returncode == 0, result.stderr
    text, _, digest = result.stdout.rstrip().rpartition("\n")
    return Wanted(digest, json.loads(text)["account"])


def state_digest(folder: Path) -> str:
    """What `calmon state digest` says of a state."""
    result = calmon("state", "digest", folder / "state")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def windows_report(file: Path, config: Path, at_ms: int, window: str) -> Any:
    """The models of `calmon evaluate --at`."""
    return report(calmon("evaluate", file, "-c", config, "--format", "json", "--at", str(at_ms), "--window", window))["models"]


def check_quarantine(topics: Topics, quarantine: str, refused: Sequence[tuple[bytes, str]]) -> None:
    """Check that a quarantine topic holds exactly the refused events: value, key and place as they were, with the reason.

    Args:
        topics: Where they were sent.
        quarantine: The topic.
        refused: Events and reasons, in any order.
    """
    records = read(topics.kafka, quarantine)
    found = []
    places = set()
    for record in records:
        header = fields(record)
        place = Place(header["topic"], int(header["partition"]), int(header["offset"]))
        sent = topics.sent[place]
        assert record.value == sent.events[int(header["index"])]
        assert record.key == sent.key
        assert header["timestamp_ms"].isdecimal()
        places.add((place, header["index"]))
        found.append((record.value, header["reason"]))
    assert sorted(found) == sorted(refused)
    assert len(places) == len(records)
