"""The command line of `calmon history`."""

from __future__ import annotations

import argparse

from monitor.history.choice import USUAL
from monitor.history.command import FORMATS, history
from monitor.history.revisions import revisions
from monitor.request.options import Parsers

_DESCRIPTION = """\
Compute any metric at any past moment from the panes in a state directory, with predictions, labelled ones and completeness beside it.
A service may be running: it is not disturbed, and its last checkpoint is what is read. An undefined value is empty or null; a moment
has no values where the version predicted nothing, or where the window holds a change of layout."""

_EPILOG = """\
moments are TIME of --from, then every --step, up to TIME of --to; at each one the window is [at - LAG - LENGTH, at - LAG), as in
`calmon evaluate --at`, and the numbers are the same to the last bit. Each is as known now: labels that came later are in it.
A window whose length, lag and moment are whole hours is made of hours, which are kept as long as history; other windows up to 6h
are made of minutes, as long as these are kept.

examples:
  calmon history flights iso -c calmon.yaml --window 24h:48h --step 1h --from 2026-06-01T00:00:00Z --to 2026-07-01T00:00:00Z
  calmon history flights iso --window 7d --step 1d --from 2026-06-01T00:00:00Z --to 2026-07-01T00:00:00Z \\
    --segment origin=JFK --metrics ece,rejection_rate --format parquet -o jfk.parquet"""


def add_history(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon history`."""
    parser = parsers.add_parser(
        "history",
        help="show metrics at past moments, from the stored panes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_moments(parser)
    parser.add_argument(
        "--segment",
        default="all",
        metavar="NAME[=VALUE]",
        help="values of a group attribute: one, or with NAME alone each; default: all, the version as a whole",
    )
    parser.add_argument(
        "--metrics",
        metavar="NAME[,...]",
        help=f"names as `calmon evaluate` has them, those of report bins as bins.NAME; all for every one; default: {', '.join(USUAL)}",
    )
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="table",
        help="table for people; json as evaluate has it, with tables such as the risk-coverage curve; csv and parquet have one row a "
        "number; parquet needs -o and calmon[parquet]; default: table",
    )
    parser.add_argument("-o", dest="output", metavar="FILE", help="write there, whole or not at all; default: standard output")
    parser.add_argument(
        "--revisions",
        action="store_true",
        help="instead: what late records have changed in hours of the version that had matured, by which records, old and new values",
    )
    parser.set_defaults(run=_run)


def add_moments(parser: argparse.ArgumentParser) -> None:
    """The words that name a version, a window and its moments, and the state that they are asked of."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("model_version", metavar="VERSION")
    parser.add_argument("--window", metavar="LENGTH[:LAG]", help="such as 24h:48h; without LAG it ends at the moment")
    parser.add_argument("--step", metavar="DURATION", help="time between moments, such as 1h; the finest is a pane's width")
    parser.add_argument("--from", dest="begin", metavar="TIME", help="first moment: RFC 3339 with an offset, or epoch ms")
    parser.add_argument("--to", dest="end", metavar="TIME", help="no moment is after it")
    parser.add_argument("-c", "--config", metavar="FILE", help="configuration of the service: costs, references, state.directory")
    parser.add_argument("--state", metavar="DIR", help="state directory; default: state.directory of the configuration, else ./state")


def _run(options: argparse.Namespace) -> int:
    if options.revisions:
        for text in revisions(options):
            print(text)
    else:
        history(options)
    return 0
