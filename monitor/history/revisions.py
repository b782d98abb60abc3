"""`calmon history MODEL VERSION --revisions`: the journal of revisions of a version, from a service's state."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from monitor.errors import ConfigError, StateError
from monitor.events.instant import instant
from monitor.history.answer import check_version
from monitor.names import ALL_VALUE
from monitor.pipeline.revisions.journal import Journal, Revision
from monitor.pipeline.revisions.page import cause_text, hours_text, move_text, published_text
from monitor.request.moment import COMMAND_LINE
from monitor.request.state import opened_shards
from monitor.request.sums import configuration
from monitor.state.rocks import MARKER, RocksStore


def revisions(options: argparse.Namespace) -> Iterator[str]:
    """The entries that a command line asks for, as text or JSON; see `calmon history --help`.

    Raises:
        CalmonError: There is no state, or a word does not go with --revisions.
    """
    given = [f"--{name}" for name in ("window", "step", "metrics") if getattr(options, name) is not None]
    given += [word for word, value in (("--from", options.begin), ("--to", options.end), ("-o", options.output)) if value is not None]
    given += ["--segment"] if options.segment != ALL_VALUE else []
    if given or options.format not in ("table", "json"):
        word = given[0] if given else f"--format {options.format}"
        raise ConfigError([f"{word}: --revisions tells every entry of a version, with --format table or json"], COMMAND_LINE)
    entries = revisions_of(configuration(options)[1], options.model, options.model_version)
    return iter([as_json(entries)]) if options.format == "json" else as_text(entries)


def revisions_of(directory: str, model: str, version: str) -> list[Revision]:
    """Entries of a version, the oldest first; a service may be running, and its last entry is among them.

    Raises:
        StateError: There is no state, or it cannot be read.
        CalmonError: There is no such version in it.
    """
    places = [path for path in (Path(directory), Path(directory, "evidence")) if (path / MARKER).exists()]
    if not places:
        raise StateError(f"there is no calmon state in {directory}: name the configured state.directory")
    with closing(RocksStore(places[0], read_only=True)) as store:
        found = [entry for entry in Journal(store).entries if (entry.model, entry.version) == (model, version)]
    if not found:
        with opened_shards(directory) as shards:
            check_version(shards, model, version)
    return found


def as_json(entries: Sequence[Revision]) -> str:
    """The entries as one JSON list; times are RFC 3339 beside the moments in epoch milliseconds."""
    return json.dumps([_as_object(entry) for entry in entries], indent=1, allow_nan=False)


def as_text(entries: Sequence[Revision]) -> Iterator[str]:
    """The entries for people, a few lines each."""
    for entry in entries:
        yield f"revision {entry.number}, noted {instant(entry.noted_ms)}: hours {hours_text(entry)}"
        yield from (f"  by {cause_text(cause)}" for cause in entry.causes)
        yield from (f"  {move_text(move)}" for move in entry.moves)
        yield f"  in Prometheus: {published_text(entry)}"
    if not entries:
        yield "no revision is noted: nothing has changed in hours of this version that had matured, or the journal has dropped it"


def _as_object(entry: Revision) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(entry)
    times = {"noted": entry.noted_ms, "start": entry.start_ms, "end": entry.end_ms}
    return told | {name: None if at_ms is None else instant(at_ms) for name, at_ms in times.items()}
