"""The words of `calmon produce`, judged and put into effect."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from pydantic import ValidationError

from monitor.config_file import load_config
from monitor.config_kafka import KafkaConfig
from monitor.errors import ConfigError
from monitor.kafka_options import client_options
from monitor.produce.lines import Files
from monitor.produce.pace import FullSpeed, Pace, Rate, TimeScale
from monitor.produce.run import Target, produce

EXIT_INCOMPLETE = 1
EXIT_STOPPED = 130
MAX_PARTITIONS = 10_000

_OPTIONS = {"bootstrap_servers": "--bootstrap", "predictions": "--predictions", "labels": "--labels"}


def run(options: argparse.Namespace, stopped: Callable[[], bool]) -> tuple[str, int]:
    """Send files as the command line says.

    Args:
        options: Those of `calmon produce`.
        stopped: Whether to end early.

    Returns:
        What to print, and the exit code: 0, 1 if lines were too large to send, 130 if it was stopped.

    Raises:
        CalmonError: What is wrong with a word, a file or the broker.
    """
    pace = _pace(options)
    if options.create is not None and not 1 <= options.create <= MAX_PARTITIONS:
        raise _wrong(f"--create {options.create}: must be 1 to {MAX_PARTITIONS} partitions")
    kafka = _kafka(options)
    files = Files(options.files, stopped)
    target = Target(
        kafka.bootstrap_servers,
        {"prediction": kafka.predictions, "label": kafka.labels},
        client_options(kafka),
        None if options.compression == "none" else options.compression,
        options.create,
    )
    outcome = produce(files, target, pace, stopped)
    code = EXIT_STOPPED if outcome.stopped else EXIT_INCOMPLETE if outcome.account.too_large else 0
    return outcome.summary(target.topics), code


def _pace(options: argparse.Namespace) -> Pace:
    for option, value, pace in (("--rate", options.rate, Rate), ("--time-scale", options.time_scale, TimeScale)):
        if value is not None:
            if not (math.isfinite(value) and value > 0):
                raise _wrong(f"{option} {value:g}: must be a number greater than 0")
            return pace(value)
    return FullSpeed()


def _kafka(options: argparse.Namespace) -> KafkaConfig:
    """The configuration's Kafka part, or its defaults, with what the command line says instead."""
    base = load_config(options.config).source.kafka if options.config else None
    if options.config and base is None:
        raise ConfigError(["source.kafka: this key is needed here: it says how to reach the broker"], options.config)
    given = {
        "bootstrap_servers": tuple(options.bootstrap.split(",")) if options.bootstrap else None,
        "predictions": options.predictions,
        "labels": options.labels,
    }
    own = {key: value for key, value in given.items() if value is not None}
    if base is None and "bootstrap_servers" not in own:
        raise _wrong("--bootstrap HOST:PORT is needed, or -c FILE with source.kafka")
    kept = {} if base is None else {key: getattr(base, key) for key in base.model_fields_set - own.keys()}
    try:
        return KafkaConfig(**kept, **own)
    except ValidationError as error:
        faults = [f"{_OPTIONS[str(fault['loc'][0])]}: {fault['msg'].removeprefix('Value error, ')}" for fault in error.errors()]
        raise ConfigError(faults, "command line") from error


def _wrong(fault: str) -> ConfigError:
    return ConfigError([fault], "command line")
