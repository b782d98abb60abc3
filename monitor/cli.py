"""The command line: `calmon --help` teaches what each command does."""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from types import FrameType

from monitor import __version__, commands
from monitor.backfill import options as backfill_options
from monitor.errors import CalmonError
from monitor.history import options as history_options
from monitor.request import options as request_options
from monitor.request.options import Parsers, Stoppable
from monitor.service import Service
from monitor.sources.kafka_log import RepeatFilter

EXIT_INTERRUPTED = 130
_SIGNAL_POLL_S = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Words after `calmon`; by default the process's own.

    Returns:
        0 if all went well, 1 for an error with one clear line on standard error, 2 for wrong usage or configuration,
        130 after Ctrl-C.
    """
    try:
        return _run(arguments)
    except CalmonError as error:
        print(f"calmon: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("calmon: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 1  # whoever read our output has gone; there is nobody left to tell


def _run(arguments: Sequence[str] | None) -> int:
    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.addFilter(RepeatFilter())
    logging.basicConfig(level=logging.INFO, handlers=[to_stderr], format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("apscheduler", "kafka"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        options = _parser().parse_args(arguments)
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    finally:
        print(end="", flush=True)  # at exit it would be too late to say that the disk is full


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="calmon",
        description="Watches classifiers in production: joins late labels to the model version that made the prediction and serves "
        "calibration, overconfidence risk, OOD acceptance and rejection as Prometheus gauges.",
        epilog="Start with `calmon demo`, or `calmon evaluate events.ndjson`. Events are described by `calmon schema`.",
    )
    parser.add_argument("--version", action="version", version=f"calmon {__version__}")
    commands_parser = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands_parser)
    _add_evaluate(commands_parser)
    _add_demo(commands_parser)
    _add_check(commands_parser)
    _add_produce(commands_parser)
    schema = commands_parser.add_parser("schema", help="print the JSON Schema of an event")
    schema.set_defaults(run=lambda options: _print(commands.schema()))
    metrics = commands_parser.add_parser("metrics", help="print the reference of every metric, as Markdown")
    metrics.set_defaults(run=lambda options: _print(commands.metric_reference()))
    _add_rules(commands_parser)
    _add_state(commands_parser)
    request_options.add_reference(commands_parser)
    request_options.add_recommend(commands_parser)
    history_options.add_history(commands_parser)
    backfill_options.add_backfill(commands_parser, stoppable)
    return parser


def _add_run(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser(
        "run",
        help="consume events and serve gauges until stopped",
        description="Consume events, keep the state, and serve /metrics, /-/healthy, /-/ready and a status page. Ctrl-C or SIGTERM "
        "finishes the batch in work and checkpoints; a second one ends at once, and the next start goes on from the last checkpoint.",
    )
    parser.add_argument("-c", "--config", required=True, metavar="FILE", help="configuration, see docs/configuration.md")
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on at the start of a Kafka log that no longer holds what was to be read next; what is lost is counted",
    )
    parser.set_defaults(run=lambda options: serve(commands.service(options.config, options.accept_loss)))


def _add_evaluate(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser(
        "evaluate",
        help="compute every metric from event files",
        description="Read NDJSON event files (predictions and labels, .gz too, - for standard input), join them and print every metric: "
        "over everything, or over the window that ended LAG before TIME.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="NDJSON files in the order to read them")
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration: its models and defaults are used")
    parser.add_argument("--at", metavar="TIME", help="moment of the window: RFC 3339 with an offset, or epoch milliseconds")
    parser.add_argument("--window", metavar="LENGTH:LAG", help="such as 24h:48h; needs --at")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--digest", action="store_true", help="print the digest of the exact sums as the last line")
    parser.add_argument("--dump", metavar="FILE", help="write the canonical dump that the digest is made of")
    parser.set_defaults(run=commands.evaluate_files)


def _add_demo(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser(
        "demo",
        help="replay two real streams on a scaled clock and serve their gauges",
        description="Replay the packaged streams of two models with two versions each, so that labels come late and windows slide "
        "while you watch; gauges on http://127.0.0.1:9779/metrics. Ctrl-C ends it, and nothing is left behind.",
    )
    parser.add_argument("--rate", metavar="DURATION", help="simulated time in a real second, such as 1h or 1d; default: 3h")
    parser.add_argument("--port", type=int, default=None, help="default: 9779; 0 picks a free one")
    parser.set_defaults(run=show_demo)


def _add_check(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser(
        "check",
        help="validate a configuration and say what it would watch and cost",
        description="Read a configuration, name every fault with its place, else say what would be watched and how many series it costs. "
        "With source.kafka: reach the broker and say how the topics are partitioned and how long they are kept. Starts nothing.",
    )
    parser.add_argument("-c", "--config", required=True, metavar="FILE")
    parser.set_defaults(run=lambda options: _print_all(commands.check(options.config)))


def _add_produce(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser(
        "produce",
        help="send event files to Kafka topics",
        description="Send the lines of NDJSON event files (.gz too, - for standard input) to two Kafka topics by their type: key = "
        "prediction_id, record timestamp = event time (now where it cannot be read, or is more than 5 minutes ahead), value = the line "
        "as it is. A line without a readable type or id is sent without a key, for calmon to refuse. Ctrl-C waits until what was sent is "
        "acknowledged and says how much that was; a second one ends at once.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="NDJSON files in the order to send them")
    parser.add_argument("--bootstrap", metavar="HOST:PORT[,...]", help="some of the cluster's brokers; default: those of the configuration")
    parser.add_argument("--predictions", metavar="TOPIC", help="default: that of the configuration, else predictions")
    parser.add_argument("--labels", metavar="TOPIC", help="default: that of the configuration, else labels")
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration: its source.kafka says how to log in, and the defaults above")
    speed = parser.add_mutually_exclusive_group()
    speed.add_argument("--rate", type=float, metavar="N", help="send N records a second; default: as fast as it goes")
    speed.add_argument(
        "--time-scale",
        type=float,
        metavar="X",
        help="let event time pass X times as fast as real time, from the first event on; files are read side by side, by event time",
    )
    parser.add_argument(
        "--create",
        type=int,
        metavar="PARTITIONS",
        help="make topics that are missing, with so many partitions and retention.ms=-1: a broker deletes records by their timestamps, "
        "which are event times here, so that with a retention it would delete old events as soon as they came",
    )
    parser.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="of the batches; default: none"
    )
    parser.set_defaults(run=stoppable(commands.produce))


def _add_rules(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser("rules", help="make alert rules")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    render = actions.add_parser(
        "render",
        help="render the alerts for Prometheus and for Grafana, and the index of runbooks",
        description="Print the Prometheus rules, or write all files below DIR. Everything that can be set is in docs/alerts.md.",
    )
    render.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="severity.ALERT=page|ticket|info|off, bound.NAME=NUMBER, for.ALERT=DURATION, keep_firing_for.ALERT=DURATION, job=NAME, "
        "url.runbooks=URL, url.dashboards=URL; may be given often",
    )
    render.add_argument("--output", metavar="DIR", help="write deploy/ and grafana/ below it; default: print the Prometheus rules")
    render.set_defaults(run=lambda options: _print_all(commands.render_rules(options.set, options.output)))


def _add_state(parsers: Parsers[argparse.ArgumentParser]) -> None:
    parser = parsers.add_parser("state", help="look at a state directory")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    digest = actions.add_parser(
        "digest",
        help="print the digest of the exact sums",
        description="Print the sha256 of the canonical dump of the hour panes of a service's state, which may be running: then of its last "
        "checkpoint. Equal digests mean equal sums, bit for bit.",
    )
    digest.add_argument("directory", metavar="DIR")
    digest.set_defaults(run=lambda options: _print(commands.state_digest(options.directory)))


def _print(text: str) -> int:
    print(text)
    return 0


def _print_all(texts: Iterable[str]) -> int:
    for text in texts:
        print(text, flush=True)
    return 0


class _Signals:
    """From its making on, the first signal asks for an end, and the second one ends the process at once.

    A handler runs between any two steps of the main thread, so it only takes a note: a lock that it took might be held.
    """

    def __init__(self, *numbers: int) -> None:
        self._received: list[int] = []
        self.before_exit: Callable[[], None] = lambda: None
        for number in numbers:
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._received:
            self.before_exit()
            os._exit(128 + number)
        self._received.append(number)

    @property
    def received(self) -> bool:
        """Whether a signal came."""
        return bool(self._received)

    def ended(self, service: Service, timeout_s: float) -> bool:
        """Wait at most so long; whether a signal came or the service stopped by itself."""
        deadline = time.monotonic() + timeout_s
        while not self._received:
            remaining_s = deadline - time.monotonic()
            if service.wait(min(max(remaining_s, 0), _SIGNAL_POLL_S)):
                return True
            if remaining_s <= 0:
                return False
        return True


def serve(service: Service) -> int:
    """Run a service until a signal or a failure ends it; 0 after a signal.

    Raises:
        CalmonError: What the service ended with, or that a signal came before it had begun.
    """
    signals = _Signals(signal.SIGINT, signal.SIGTERM)
    service.start(lambda: signals.received)
    print(f"calmon {__version__}: http://{service.address}/metrics", file=sys.stderr)
    signals.ended(service, math.inf)
    service.close()
    return 0


def show_demo(options: argparse.Namespace) -> int:
    """Replay the packaged streams until a signal ends it; 0 after a signal.

    Raises:
        CalmonError: What kept it from starting, or ended it.
    """
    # A closed terminal must not leave the temporary state behind either; `nohup` has the last word.
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    signals = _Signals(signal.SIGINT, signal.SIGTERM, *hangup)
    with commands.demo(options) as demo:
        signals.before_exit = demo.discard
        demo.run(lambda timeout_s: signals.ended(demo.service, timeout_s))
    return 0


def stoppable(work: Stoppable) -> Callable[[argparse.Namespace], int]:
    """A command of work that the first signal asks to end, and that the second one ends at once."""

    def run(options: argparse.Namespace) -> int:
        signals = _Signals(signal.SIGINT, signal.SIGTERM)
        text, code = work(options, lambda: signals.received)
        return _print(text) or code

    return run
