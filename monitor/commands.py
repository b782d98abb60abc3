"""What the commands do; each raises `CalmonError` with one clear line if it cannot."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from monitor.alerts.choice import chosen
from monitor.alerts.render import RULES, rendered
from monitor.app import Engine
from monitor.clock import SystemClock
from monitor.config import Config, WindowConfig
from monitor.config_file import load_config
from monitor.duration import format_duration, parse_duration
from monitor.errors import CalmonError, ConfigError
from monitor.events.contract import json_schema
from monitor.export.evidence import MOST_SERIES
from monitor.metrics.catalogue import FAMILIES, expanded
from monitor.metrics.evaluation import Block
from monitor.metrics.metric import Subject
from monitor.metrics.reference import reference
from monitor.pipeline.configured import exported_metrics, settings_of
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.report import account_report, models_report, report_blocks
from monitor.request.files import engine_of_files
from monitor.request.moment import moment
from monitor.request.reference import check_references
from monitor.request.state import opened_shards
from monitor.service import Service

if TYPE_CHECKING:
    from monitor.demo.show import Demo

SERIES_BUDGET = 20_000


def schema() -> str:
    """The event contract as JSON Schema."""
    return json.dumps(json_schema(), indent=2)


def metric_reference() -> str:
    """Every metric, as Markdown."""
    return reference()


def render_rules(words: Sequence[str], output: str | None) -> Iterator[str]:
    """The Prometheus rules, or where each file made from the alerts was written."""
    files = rendered(chosen(words))
    if output is None:
        yield files[RULES].rstrip("\n")
        return
    for name, text in files.items():
        path = Path(output, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CalmonError(f"cannot write {path}: {error.strerror}") from error
        yield str(path)


def service(config_path: str, accept_loss: bool = False) -> Service:
    """The service of a configuration, built and not started."""
    config = load_config(config_path)
    if not config.source.files and config.source.kafka is None:
        raise ConfigError(["source.files: name at least one NDJSON file, or - for standard input, or set source.kafka"], config_path)
    return Service(config, Engine(config, SystemClock(), accept_loss=accept_loss))


def evaluate_files(options: argparse.Namespace) -> int:
    """Read files whole, print every metric; see `calmon evaluate --help`."""
    window, at_ms = moment(options.at, options.window)
    base = load_config(options.config) if options.config else Config()
    with engine_of_files(base, options.files, window, at_ms) as engine:
        blocks = report_blocks([engine.shard], settings_of(base), engine.references, window, at_ms)
        report = {
            "account": account_report(engine.shard.account),
            "models": models_report(blocks),
            "basis": _basis(engine, options, blocks),
        }
        _write_report(report, options.format)
        if options.dump:
            _write_dump(engine, options.dump)
        if options.digest:
            print(digest(dump([engine.shard])))  # noqa: T201 - asked for on standard output
    return 0


def demo(options: argparse.Namespace) -> AbstractContextManager[Demo]:
    """The replay of the packaged streams, built and not started; see `calmon demo --help`.

    Raises:
        ConfigError: The rate is no duration.
    """
    from monitor.demo.show import DEFAULT_RATE_MS, demo  # noqa: PLC0415 - only this command needs the packaged data

    try:
        rate_ms = DEFAULT_RATE_MS if options.rate is None else parse_duration(options.rate)
        if rate_ms == 0:
            raise ValueError("must be longer than 0")
    except ValueError as error:
        raise ConfigError([f"--rate {options.rate}: {error}"], "command line") from error
    return demo(options.port, rate_ms)


def produce(options: argparse.Namespace, stopped: Callable[[], bool]) -> tuple[str, int]:
    """Send event files to Kafka; what to print, and the exit code. See `calmon produce --help`.

    Raises:
        CalmonError: What is wrong with a word, a file or the broker.
    """
    from monitor.produce.command import run  # noqa: PLC0415 - only commands that need Kafka wait for its import

    return run(options, stopped)


def check(config_path: str) -> Iterator[str]:
    """Validate a configuration; say what it would watch and what that costs in series, then what is at the broker, if it has one.

    Raises:
        ConfigError: With every fault.
        CalmonError: The broker cannot be reached, or its topics cannot be watched.
    """
    config = load_config(config_path)
    yield _what_it_watches(config, config_path)
    yield from check_references(config)
    if config.source.kafka is not None:
        from monitor.broker.check import check_broker  # noqa: PLC0415 - only commands that need Kafka wait for its import

        found = check_broker(config, config.source.kafka)
        yield "\n".join(found.lines)
        if found.faults:
            raise CalmonError("kafka: " + "; ".join(found.faults))


def _what_it_watches(config: Config, config_path: str) -> str:
    lines = [f"{config_path}: valid"]
    lines.append("windows: " + ", ".join(_window_text(window) for window in config.windows))
    horizon = "none, nothing expires" if config.state.horizon_ms is None else format_duration(config.state.horizon_ms)
    lines.append(f"state: {config.state.directory}, horizon {horizon}")
    kafka = config.source.kafka
    topics = "" if kafka is None else f"topics {kafka.predictions} and {kafka.labels} at {','.join(kafka.bootstrap_servers)}"
    files = f"{', '.join(config.source.files) or 'no files named'}{' (followed)' if config.source.follow else ''}"
    lines.append(f"sources: {topics or files}")
    for name in [*sorted(config.models), None]:
        lines.append(_what_a_model_costs(config, name))
    lines.append(f"budget: {SERIES_BUDGET} series a process")
    return "\n".join(lines)


def _what_a_model_costs(config: Config, name: str | None) -> str:
    """Series of each version by family, those of groups and classes at their most."""
    model = config.defaults if name is None else config.model(name)
    bins = model.bins if model.edges is None else len(model.edges) - 1
    attributes, values = len(model.groups), len(model.groups) * (model.max_group_values + 1)
    classes = model.max_group_values + 1 if model.classes is None else len(model.classes)
    rows = {
        Subject.BIN: bins,
        Subject.POSITIVE: int(model.positive_class is not None),
        Subject.CLASS: classes,
        Subject.OWN: classes if model.classwise else int(model.positive_class is not None),
        Subject.ATTRIBUTE: attributes,
        Subject.VALUE: values,
        Subject.DRIFT: int(model.reference is not None),
        Subject.MIX: attributes * (model.reference is not None),
    }
    chosen = exported_metrics(config)
    costs = []
    for family in FAMILIES:
        metrics = [metric for metric in expanded(family) if metric in chosen]
        series = sum(rows.get(metric.subject, 1) + values * metric.groups for metric in metrics) * len(config.windows)
        costs.append((family.name, series if metrics else None))
    costs.append(("evidence", MOST_SERIES))
    parts = ", ".join(f"{family} {series}" for family, series in costs if series)
    off = ", ".join(family for family, series in costs if series is None)
    title = "any other model" if name is None else f"model {name}"
    text = f"{title}: {bins} bins, groups {', '.join(model.groups) or 'none'}; series of each version at most "
    return f"{text}{sum(series or 0 for _, series in costs)} ({parts}); not exported: {off or 'none'}"


def state_digest(directory: str) -> str:
    """Digest of the sums in a state directory.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    with opened_shards(directory) as shards:
        return digest(dump(shards))


def _window_text(window: WindowConfig) -> str:
    return f"{window.name} ({format_duration(window.length_ms)}, lag {format_duration(window.lag_ms)})"


def _write_dump(engine: Engine, path: str) -> None:
    try:
        with Path(path).open("wb") as file:
            file.writelines(dump([engine.shard]))
    except OSError as error:
        raise CalmonError(f"cannot write the dump {path}: {error.strerror or error}") from error


def _basis(engine: Engine, options: argparse.Namespace, blocks: Sequence[Block]) -> dict[str, Any]:
    """What the numbers rest on."""
    newest = engine.shard.account.newest_ms
    return {
        "files": options.files,
        "span_ms": engine.shard.span_ms(),
        "newest_prediction_ms": newest.get("prediction"),
        "newest_label_ms": newest.get("label"),
        "at": options.at,
        "window": options.window,
        "edges": {
            f"{key.model}@{key.version}": block.edges.tolist() for block in blocks if block.subject is Subject.BIN for key in block.keys
        },
        "late_pairs": engine.shard.account.ineligible,
    }


def _write_report(report: dict[str, Any], form: str) -> None:
    if form == "json":
        print(json.dumps(report, indent=1, allow_nan=False))  # noqa: T201 - the command's output
        return
    console = Console()
    account = report["account"]
    console.print(
        f"{account['records']} records: {account['predictions']} predictions, {account['duplicates']} duplicates, "
        f"{account['orphan_labels']} labels without a prediction, {account['rejected_total']} refused {account['rejected'] or ''}"
    )
    names = sorted(report["models"])
    table = Table("metric", *names)
    for metric in dict.fromkeys(name for model in names for name, value in report["models"][model].items() if not isinstance(value, list)):
        cells = [report["models"][model].get(metric) for model in names]
        table.add_row(metric, *["-" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in cells])
    console.print(table)
