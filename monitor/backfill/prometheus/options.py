"""The command line of `calmon backfill openmetrics` and `calmon backfill remote-write`."""

from __future__ import annotations

import argparse

from monitor.backfill.prometheus.credentials import PASSWORD, TOKEN
from monitor.history.options import add_moments
from monitor.request.options import Parsers

_WHAT = (
    "The windows are computed as known now from the panes of a service's state, which may be running. Each metric becomes a series "
    "calmon_backfill_* with the labels of the live gauge and a revision, each sample at the moment that its window is seen from; live "
    "series are never touched."
)


def add_openmetrics(actions: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon backfill openmetrics`."""
    parser = actions.add_parser(
        "openmetrics",
        help="write past windows as known now to a file for promtool tsdb create-blocks-from openmetrics",
        description=f"Write past windows to a file that `promtool tsdb create-blocks-from openmetrics FILE DIR` makes blocks of. {_WHAT} "
        "The file appears when it is whole.",
        epilog="Example: calmon backfill openmetrics flights 7 -c calmon.yaml --window 24h:48h --step 1h --from 2026-06-01T00:00:00Z "
        "--to 2026-06-30T00:00:00Z --revision 1 -o flights.txt",
    )
    _add_windows(parser)
    parser.add_argument("--revision", required=True, type=int, metavar="N", help="1 to 8: one that was not imported for these moments yet")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="where to write; what is there is replaced")
    parser.set_defaults(run=_openmetrics)


def add_remote_write(actions: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon backfill remote-write`."""
    parser = actions.add_parser(
        "remote-write",
        help="write past windows as known now to a running Prometheus",
        description=f"Write past windows to a Prometheus by remote write, and read them back. {_WHAT} What is there and equal is not "
        "written again; what differs becomes the next revision, of at most 8. Prometheus needs --web.enable-remote-write-receiver, and "
        "storage.tsdb.out_of_order_time_window for what is older than an hour. Secrets come from files or from the environment: "
        f"{PASSWORD}, {TOKEN}. After Ctrl-C or a lost connection run it again: it goes on.",
        epilog="Example: calmon backfill remote-write flights 7 -c calmon.yaml --window 24h:48h --step 1h --from 2026-06-01T00:00:00Z "
        "--to 2026-06-30T00:00:00Z --url http://127.0.0.1:9090",
    )
    _add_windows(parser)
    parser.add_argument("--url", required=True, metavar="URL", help="of Prometheus itself, such as http://127.0.0.1:9090")
    parser.add_argument("--username", metavar="NAME", help="user for basic authentication")
    parser.add_argument("--password-file", metavar="FILE", help=f"file with the user's password; default: {PASSWORD}")
    parser.add_argument("--bearer-token-file", metavar="FILE", help=f"file with a bearer token; default: {TOKEN}")
    parser.set_defaults(run=_remote_write)


def _add_windows(parser: argparse.ArgumentParser) -> None:
    add_moments(parser)
    parser.add_argument(
        "--metrics",
        metavar="NAME[,...]",
        help="names as in `calmon history`; default: those that the service exports, with all their series; predictions go along",
    )
    parser.add_argument(
        "--window-name",
        metavar="NAME",
        help="value of the label `window`; default: the configured window of that length and lag, else LENGTH:LAG",
    )


def _openmetrics(options: argparse.Namespace) -> int:
    from monitor.backfill.prometheus.command import write_openmetrics  # noqa: PLC0415 - other commands need not wait for its imports

    print(write_openmetrics(options))
    return 0


def _remote_write(options: argparse.Namespace) -> int:
    from monitor.backfill.prometheus.command import write_remote  # noqa: PLC0415 - as above

    print(write_remote(options))
    return 0
