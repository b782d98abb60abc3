"""A RocksDB database opened beside the process that writes it: without its lock, read only, and as of one commit.

RocksDB opens a database for reading from its manifest (which table files there are) and its write-ahead logs (what came since). Neither
changes what it holds already, so the view is right unless the writer moves something from a log into a table in between: then a log can
be gone that the manifest, as read, still needs. That shows in the names of the logs and in the manifest's size; the opening is repeated.
Once it is open, the view stands still: all table files are open, also those that the writer deletes later.

rocksdict writes a small file into any directory that it opens. So it is shown a directory of links, and the writer's is never touched.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

_ATTEMPTS = 200
_PAUSE_S = 0.05
_MANIFEST = "MANIFEST-"
_LOG_SUFFIX = ".log"
_CURRENT = "CURRENT"
_SHOWN = (_LOG_SUFFIX, ".sst", _CURRENT)


class OpenError(Exception):
    """RocksDB cannot open it."""


class BusyError(Exception):
    """The writer moved something at every attempt."""


def open_beside(database: Path, options: Options) -> Rdict:
    """Open a database, whether or not another process has it open; nothing in its directory is changed.

    Args:
        database: RocksDB's own directory.
        options: As for its writer; all table files are opened at once, whatever they say.

    Raises:
        BusyError: It changed at every attempt.
        OpenError: It cannot be opened, and did not change meanwhile.
    """
    options.create_if_missing(False)
    options.set_max_open_files(-1)
    for _ in range(_ATTEMPTS):
        before = _standing(database)
        try:
            opened = _open_links(database, options)
        except OpenError:
            if _standing(database) == before:
                raise
        else:
            if _standing(database) == before:
                return opened
            opened.close()
        time.sleep(_PAUSE_S)
    raise BusyError(f"its files were moved at each of {_ATTEMPTS} attempts to read them as of one moment")


def _standing(database: Path) -> list[tuple[str, int]]:
    """What changes as soon as the writer begins or leaves a log, or another table file counts."""
    with os.scandir(database) as entries:
        names = [entry.name for entry in entries]
    logs = [(name, 0) for name in names if name.endswith(_LOG_SUFFIX)]
    # A file that goes between the listing and here is a change too; it has the size of none.
    return sorted(logs + [(name, _size(database / name)) for name in names if name.startswith(_MANIFEST)])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _open_links(database: Path, options: Options) -> Rdict:
    with tempfile.TemporaryDirectory(prefix="calmon-state-") as links:
        for path in database.resolve().iterdir():
            if path.name.endswith(_SHOWN) or path.name.startswith(_MANIFEST):
                Path(links, path.name).symlink_to(path)
        try:
            return Rdict(links, options, access_type=AccessType.read_only(False))
        except Exception as error:  # rocksdict raises bare Exception for whatever RocksDB reports
            raise OpenError(str(error).replace(links, str(database))) from error
