"""The command line of `calmon backfill`."""

from __future__ import annotations

import argparse

from monitor.backfill.prometheus.options import add_openmetrics, add_remote_write
from monitor.request.options import Parsers


def add_backfill(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon backfill openmetrics|remote-write`."""
    parser = parsers.add_parser(
        "backfill",
        help="put history right: past windows as known now, into Prometheus",
        description="Put history right with the labels that came late; docs/backfill.md has the whole way.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add_openmetrics(actions)
    add_remote_write(actions)
