"""`calmon history MODEL VERSION --revisions`: the journal of revisions of a version, from a service's state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from monitor.errors import StateError
from monitor.pipeline.revisions.journal import Journal, Revision
from monitor.pipeline.revisions.page import cause_text, move_text, published_text
from monitor.request.sums import instant
from monitor.state.rocks import MARKER, RocksStore


def revisions_of(directory: str, model: str, version: str) -> list[Revision]:
    """Entries of a version, the oldest first; a service may be running, and its last entry is among them.

    Raises:
        StateError: There is no state, or it cannot be read.
    """
    places = [path for path in (Path(directory), Path(directory, "evidence")) if (path / MARKER).exists()]
    if not places:
        raise StateError(f"there is no calmon state in {directory}: name the configured state.directory")
    with closing(RocksStore(places[0], read_only=True)) as store:
        return [entry for entry in Journal(store).entries if (entry.model, entry.version) == (model, version)]


def as_json(entries: Sequence[Revision]) -> str:
    """The entries as one JSON list; times are RFC 3339 beside the moments in epoch milliseconds."""
    return json.dumps([_as_object(entry) for entry in entries], indent=1, allow_nan=False)


def as_text(entries: Sequence[Revision]) -> Iterator[str]:
    """The entries for people, a few lines each."""
    for entry in entries:
        yield f"revision {entry.number}, noted {instant(entry.noted_ms)}: hours {instant(entry.start_ms)} to {instant(entry.end_ms)}"
        yield from (f"  by {cause_text(cause)}" for cause in entry.causes)
        yield from (f"  {move_text(move)}" for move in entry.moves)
        yield f"  in Prometheus: {published_text(entry)}"
    if not entries:
        yield "no revision is noted: nothing has changed in hours of this version that had matured, or the journal has dropped it"


def _as_object(entry: Revision) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(entry)
    return {**told, "noted": instant(entry.noted_ms), "start": instant(entry.start_ms), "end": instant(entry.end_ms)}
