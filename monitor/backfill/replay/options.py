"""The command line of `calmon backfill replay`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from monitor.request.options import Parsers, Runs


def add_replay(actions: Parsers[argparse.ArgumentParser], runs: Runs) -> None:
    """`calmon backfill replay`."""
    parser = actions.add_parser(
        "replay",
        help="read archived events or topics again, under any settings, into a scratch state",
        description="Read event files, or the topics of the configuration's source.kafka up to their present ends, through the same "
        "join and sums as the service, into a state of its own: the bins, edges, clips, groups and horizon are those of the configuration "
        "given here. The running service is not touched: topics are read without its consumer group, its state.directory is refused. "
        "Ctrl-C finishes the batch in work; the same command goes on, also after kill -9, and does nothing where nothing is left.",
        epilog="Example: calmon backfill replay -c twenty-bins.yaml --into ./scratch january.ndjson.gz february.ndjson.gz",
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="NDJSON event files (.gz too), in the order to read them; default: the topics"
    )
    parser.add_argument(
        "-c", "--config", required=True, metavar="FILE", help="configuration: the settings to compute under, and the topics"
    )
    parser.add_argument("--into", required=True, metavar="DIR", help="the scratch state: a new directory, or one that this command began")
    parser.add_argument(
        "--since",
        action="append",
        default=[],
        metavar="TIME",
        help="begin topics at the first record that is not before TIME, by the log's timestamps (RFC 3339 with an offset, or epoch "
        "milliseconds), or at TOPIC:PARTITION:OFFSET, which may be given for each partition; default: earliest",
    )
    parser.add_argument(
        "--until", action="append", default=[], metavar="TIME", help="end topics before TIME or TOPIC:PARTITION:OFFSET; default: now"
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on at the start of a log that no longer holds what was to be read next; what is lost is counted",
    )
    parser.set_defaults(run=runs(_replay))


def _replay(options: argparse.Namespace, stopped: Callable[[], bool]) -> tuple[str, int]:
    from monitor.backfill.replay.command import run  # noqa: PLC0415 - only commands that need Kafka wait for its import

    return run(options, stopped)
