"""What a scratch state was made from: a file beside it, so that a replay knows its own state and goes on with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from monitor.errors import StateError

FILE: Final = "replay.json"
FORMAT: Final = 1


class OfFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="files"):
    """Event files, by their absolute paths in the order of the first start; later ones may have been given more."""

    files: list[str]


class OfTopics(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="topics"):
    """The two topics.

    Attributes:
        topics: Of the predictions, of the labels.
        shards: As configured.
        since_ms: The log's time from which on they are read, or None.
        since_offsets: Offsets from which on they are read, by partition, where these were given.
        begun: Where the first start began each partition.
    """

    topics: list[str]
    shards: str
    since_ms: int | None
    since_offsets: dict[str, int]
    begun: dict[str, int]


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a scratch state is a replay of.

    Attributes:
        reads: What is read, and from where on.
        settings: What of the configuration decides the state.
        format: Of the file.
    """

    reads: OfFiles | OfTopics
    settings: dict[str, Any]
    format: int = FORMAT


def write_origin(directory: Path, origin: Origin) -> None:
    """Write it, before anything else is in the directory, which is made.

    Raises:
        StateError: The directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with (directory / FILE).open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(origin)))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StateError(f"cannot use the directory {directory}: {error.strerror or error}") from error


def read_origin(directory: Path) -> Origin | None:
    """What the state in a directory is a replay of; None where there is nothing yet.

    Raises:
        StateError: Something else is in the directory, or it cannot be read.
    """
    another = "name another directory with --into"
    try:
        if not directory.exists():
            return None
        names = {path.name for path in directory.iterdir()}
        content = (directory / FILE).read_bytes() if FILE in names else b""
    except OSError as error:
        raise StateError(f"cannot use the directory {directory}: {error.strerror or error}") from error
    if not names:
        return None
    if FILE not in names:
        raise StateError(f"{directory} is not empty and holds no replay of its own (there is no {FILE} in it): {another}")
    try:
        origin = msgspec.json.decode(content, type=Origin)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if names == {FILE}:
            return None  # a crash in the middle of its writing: nothing has been read yet
        raise StateError(f"{directory / FILE} is damaged ({error}): {another}") from error
    if origin.format != FORMAT:
        raise StateError(f"{directory / FILE} has format {origin.format}, this calmon reads format {FORMAT}: {another}")
    return origin
