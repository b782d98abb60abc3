"""What `calmon check` finds at the broker of a configuration: topics, how they are partitioned, how long they are kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from monitor.broker.topics import open_topics
from monitor.config import Config
from monitor.config_kafka import KafkaConfig
from monitor.duration import format_duration
from monitor.kafka_options import client_options

LONGEST_WAIT_S = 15.0

_Settings = dict[str, str]


@dataclass(slots=True)
class Finding:
    """What was found.

    Attributes:
        lines: What there is, and warnings about it.
        faults: What `calmon run` would refuse.
    """

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_broker(config: Config, kafka: KafkaConfig) -> Finding:
    """Reach the broker and look at the topics.

    Args:
        config: The whole configuration: its horizon and windows say how long records are needed.
        kafka: Its Kafka part.

    Raises:
        ConfigError: A file with a secret or a certificate cannot be read.
        CalmonError: The broker cannot be reached.
    """
    found = Finding()
    wanted = [kafka.predictions, kafka.labels]
    if config.quarantine.topic is not None:
        wanted.append(config.quarantine.topic)
    timeout_s = min(kafka.start_timeout_ms / 1000, LONGEST_WAIT_S)
    with open_topics(kafka.bootstrap_servers, client_options(kafka), timeout_s) as topics:
        servers = ",".join(kafka.bootstrap_servers)
        found.lines.append(f"kafka: {servers} reached, {topics.brokers()} broker(s), group {kafka.group_id}")
        partitions = topics.partitions(wanted)
        settings = topics.settings(list(partitions))
    found.faults += [
        f"topic {name} does not exist at {servers}, or may not be seen: create it" for name in wanted if name not in partitions
    ]
    for name, count in partitions.items():
        found.lines.append(f"topic {name}: {count} partitions, {describe(settings[name])}")
    _judge_partitions(found, kafka, partitions)
    for name in (kafka.predictions, kafka.labels):
        if name in partitions:
            found.lines += [f"warning: topic {name}: {warning}" for warning in warnings(settings[name], needed_ms(config))]
    return found


def needed_ms(config: Config) -> int | None:
    """How far back a lost state has to be read again: predictions that still wait for labels, and windows; None for ever."""
    if config.state.horizon_ms is None:
        return None
    return max(config.state.horizon_ms, *(window.length_ms + window.lag_ms for window in config.windows))


def describe(settings: _Settings) -> str:
    """Say in a line how a topic is set."""
    if not settings:
        return "settings unknown (this user may not read them)"
    retention = _number(settings, "retention.ms")
    kept = "kept for ever" if retention < 0 else f"kept {format_duration(retention)}"
    if (limit := _number(settings, "retention.bytes")) >= 0:
        kept += f" and at most {limit} bytes a partition"
    return f"{kept}, timestamps {settings.get('message.timestamp.type', 'unknown')}, cleanup {settings.get('cleanup.policy', 'unknown')}"


def warnings(settings: _Settings, needed: int | None) -> list[str]:
    """Say what a topic's settings will cost.

    Args:
        settings: Of the topic.
        needed: How long its records may be needed, None for ever.
    """
    found = []
    policies = settings.get("cleanup.policy", "").split(",")
    retention = _number(settings, "retention.ms")
    if "delete" in policies and retention >= 0 and (needed is None or retention < needed):
        why = "for ever, for nothing expires (horizon none)" if needed is None else f"{format_duration(needed)}, for horizon and windows"
        found.append(f"records are kept {format_duration(retention)} and may be needed {why}: a lost state could not be made again")
        if settings.get("message.timestamp.type") == "CreateTime":
            found.append(
                f"the broker counts the {format_duration(retention)} from the timestamp that the producer gave: records sent late with"
                " their event time (calmon produce, a backfill) are deleted soon after they came; retention.ms=-1 keeps them"
            )
    if "compact" in policies:
        found.append(
            "it is compacted: of an id only the newest record stays, so that what was read before cannot be read again; use delete"
        )
    return found


def _judge_partitions(found: Finding, kafka: KafkaConfig, partitions: dict[str, int]) -> None:
    first, second = partitions.get(kafka.predictions), partitions.get(kafka.labels)
    if first is None or second is None:
        return
    if kafka.shards == "one":
        found.lines.append("shards: one, for all partitions")
    elif first == second:
        found.lines.append(f"shards: {first}, co-partitioned (if the producers of both topics use the same partitioner)")
    else:
        found.faults.append(
            f"not co-partitioned: {kafka.predictions} has {first} partitions and {kafka.labels} has {second}, so that a label would not"
            " meet its prediction: give both the same count and partitioner, or set source.kafka.shards: one"
        )


def _number(settings: _Settings, key: str) -> int:
    """A setting that is a number; -1, for no limit, where it is not known."""
    try:
        return int(settings.get(key, "-1"))
    except ValueError:
        return -1
