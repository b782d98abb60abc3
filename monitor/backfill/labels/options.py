"""The command line of `calmon backfill labels`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from monitor.request.options import Parsers, Runs


def add_labels(actions: Parsers[argparse.ArgumentParser], runs: Runs) -> None:
    """`calmon backfill labels`."""
    parser = actions.add_parser(
        "labels",
        help="take label files in that came late or are corrected",
        description="Take labels in from NDJSON (.gz too), CSV or Parquet files: to the labels topic with source.kafka; else straight into "
        "the state of a stopped service, or by --append-to into a file that a running one follows. A label that can score nothing (of an "
        "unknown id, of another model or version, late or early) or that breaks the contract is held back with its reason in "
        "STATE.backfill. Start with --dry-run: it says what would change and writes nothing. After Ctrl-C or a crash the same command "
        "goes on; run again it finds nothing to do.",
        epilog="Example: calmon backfill labels truth.csv -c calmon.yaml --map label=truth --map labelled_at=when --dry-run",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="label files; the name says the format")
    parser.add_argument("-c", "--config", required=True, metavar="CONFIG", help="configuration of the service")
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="FIELD=COLUMN",
        help="which column holds a field of the label; default: the one of the same name. Fields: prediction_id, label, labelled_at, "
        "revision, model, model_version, domain; may be given often",
    )
    parser.add_argument("--append-to", metavar="FOLLOWED", help="one of source.files, with source.follow: labels go to the end of it")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, by version and reason, and the largest moves")
    parser.add_argument(
        "--rate", type=float, metavar="N", help="take in at most N rows a second; default: 5000, straight into a state as fast as it goes"
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    parser.set_defaults(run=runs(_labels))


def _labels(options: argparse.Namespace, stopped: Callable[[], bool]) -> tuple[str, int]:
    from monitor.backfill.labels.command import run  # noqa: PLC0415 - other commands need not wait for its imports

    return run(options, stopped)
