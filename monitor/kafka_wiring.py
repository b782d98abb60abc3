"""What the engine makes of a configuration with Kafka; apart from it, for a service that reads files need not wait for the client."""

from __future__ import annotations

from monitor.config_kafka import KafkaConfig
from monitor.export.quarantine_topic import TopicSink
from monitor.kafka_options import client_options
from monitor.sources.kafka import KafkaSource
from monitor.sources.kafka_settings import KafkaSettings


def kafka_source(kafka: KafkaConfig, accept_loss: bool) -> KafkaSource:
    """The configured topics.

    Raises:
        ConfigError: A file with a secret or a certificate cannot be read.
    """
    return KafkaSource(kafka_settings(kafka, accept_loss))


def kafka_settings(kafka: KafkaConfig, accept_loss: bool) -> KafkaSettings:
    """How the service reads its topics.

    Raises:
        ConfigError: A file with a secret or a certificate cannot be read.
    """
    return KafkaSettings(
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=kafka.group_id,
        predictions=kafka.predictions,
        labels=kafka.labels,
        single_shard=kafka.shards == "one",
        options=client_options(kafka),
        accept_loss=accept_loss,
        client_id=f"{kafka.group_id}-worker",
        poll_watchdog_s=kafka.poll_watchdog_ms / 1000,
        start_timeout_s=kafka.start_timeout_ms / 1000,
    )


def topic_sink(kafka: KafkaConfig, topic: str) -> TopicSink:
    """The quarantine topic.

    Raises:
        ConfigError: A file with a secret or a certificate cannot be read.
    """
    return TopicSink({**client_options(kafka), "bootstrap_servers": list(kafka.bootstrap_servers)}, topic)
