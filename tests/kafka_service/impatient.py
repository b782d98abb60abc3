"""`calmon run` whose requests to Kafka time out sooner: `python -m tests.kafka_service.impatient run -c CONFIG`."""

from __future__ import annotations

import sys

from monitor import cli, kafka_wiring
from monitor.config_kafka import KafkaConfig
from monitor.kafka_options import client_options

REQUEST_TIMEOUT_MS = 2_000


def impatient_options(kafka: KafkaConfig) -> dict[str, object]:
    """The configuration's, and a short timeout."""
    return {**client_options(kafka), "request_timeout_ms": REQUEST_TIMEOUT_MS}


if __name__ == "__main__":
    setattr(kafka_wiring, "client_options", impatient_options)  # noqa: B010 - no name that is exported
    sys.exit(cli.main())
