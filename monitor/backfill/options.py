"""The command line of `calmon backfill`."""

from __future__ import annotations

import argparse

from monitor.backfill.labels.options import add_labels
from monitor.backfill.prometheus.options import add_openmetrics, add_remote_write
from monitor.backfill.replay.options import add_replay
from monitor.request.options import Parsers, Runs


def add_backfill(parsers: Parsers[argparse.ArgumentParser], runs: Runs) -> None:
    """`calmon backfill labels|replay|openmetrics|remote-write`."""
    parser = parsers.add_parser(
        "backfill",
        help="put history right: labels in bulk, replays under other settings, past windows as known now into Prometheus",
        description="Put history right with the labels that came late; docs/backfill.md has the whole way.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add_labels(actions, runs)
    add_replay(actions, runs)
    add_openmetrics(actions)
    add_remote_write(actions)
