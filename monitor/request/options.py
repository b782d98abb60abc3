"""The command line of `calmon reference` and `calmon recommend`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TypeAlias

from monitor.clock import SystemClock
from monitor.request import reference
from monitor.request.recommend import recommend
from monitor.request.sums import add_options

Parsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it
"""Where a command's parser is added."""

Stoppable: TypeAlias = Callable[[argparse.Namespace, Callable[[], bool]], tuple[str, int]]
"""Work that ends early when it is told to; what to print, and the exit code."""

Runs: TypeAlias = Callable[[Stoppable], Callable[[argparse.Namespace], int]]
"""Makes a command of such work, that the first signal asks to end."""

_FORMATS = ("table", "json")


def add_reference(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon reference set|list|show`."""
    parser = parsers.add_parser(
        "reference",
        help="keep the sums of a good stretch of time, to tell drift from it",
        description="A reference is the sums of one model version over a stretch of time, under a name. A model whose configuration has "
        "`reference: NAME` is compared with it at every tick: the calmon_drift_* gauges. References lie in the state directory.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_set(actions)
    for name, text, function in (
        ("list", "list every reference", reference.list_references),
        ("show", "say what a reference is of", lambda options: [reference.show_reference(options)]),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == "show":
            action.add_argument("name", metavar="NAME", help="the newest of that name, or NAME@NUMBER")
        action.add_argument("-c", "--config", metavar="FILE", help="configuration: its state.directory is used")
        action.add_argument("--state", metavar="DIR", help="state directory; default: ./state")
        action.add_argument("--format", choices=_FORMATS, default="table", help="default: table")
        action.set_defaults(run=lambda options, function=function: _print(function(options)))


def _add_set(actions: Parsers[argparse.ArgumentParser]) -> None:
    action = actions.add_parser(
        "set",
        help="store the sums of a version under a name",
        description="Store the sums of a model version under a name: of event files (--from), or of a service's state; of one "
        "window (--at and --window), or of everything there is. Setting a name again makes its next version, nothing is overwritten; "
        "`reference: NAME` in a configuration means the newest, `reference: NAME@2` the second.",
        epilog="Example: calmon reference set spring --model flights --version 7 -c calmon.yaml --at 2026-06-01T00:00:00Z --window 30d:2d",
    )
    action.add_argument("name", metavar="NAME", help="1 to 64 of A-Z a-z 0-9 _ -")
    action.add_argument("--model", required=True, metavar="M", help="whose predictions")
    action.add_argument("--version", dest="model_version", metavar="V", help="of which of its versions; not needed where there is only one")
    add_options(action)
    action.set_defaults(run=lambda options: _print([reference.set_reference(options, SystemClock())]))


def add_recommend(parsers: Parsers[argparse.ArgumentParser]) -> None:
    """`calmon recommend`."""
    parser = parsers.add_parser(
        "recommend",
        help="recommend a temperature and thresholds for a version",
        description="Recommend, for one model version: a temperature (its effect is told on the half of the ids that did not choose it), "
        "an OOD threshold for a wanted acceptance, a confidence threshold certified to keep a wanted risk, and estimate the accuracy of "
        "what has no label. From event files (--from), or from the state of a service, running or not, which is not changed. Nothing is "
        "applied.",
        epilog="Example: calmon recommend flights 7 -c calmon.yaml --at 2026-06-01T00:00:00Z --window 30d:2d --max-risk 0.02",
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("model_version", metavar="VERSION")
    add_options(parser)
    parser.add_argument("--acceptance", type=float, default=0.95, metavar="SHARE", help="wanted OOD acceptance; default: 0.95")
    parser.add_argument(
        "--max-risk", type=float, default=0.05, metavar="RISK", help="wanted share of errors among the accepted; default: 0.05"
    )
    parser.add_argument("--delta", type=float, default=0.05, metavar="P", help="chance that the certificate is wrong; default: 0.05")
    parser.add_argument("--format", choices=_FORMATS, default="table", help="default: table")
    parser.set_defaults(run=lambda options: _print([recommend(options)]))


def _print(texts: Iterable[str]) -> int:
    for text in texts:
        print(text)
    return 0
