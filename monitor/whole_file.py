"""Files that are there only once they are whole."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from monitor.errors import CalmonError


@contextmanager
def whole_file(path: str | Path, binary: bool, over: bool = True) -> Iterator[IO[Any]]:
    """A file to write to: under its name when everything is on the disk; until then, and after an error, what was there stays.

    Args:
        path: Its name; a link of that name is replaced, not followed.
        binary: Whether bytes are written to it, else text.
        over: Whether it takes the place of a file that has the name.

    Raises:
        FileExistsError: The name is taken, and it is not to be replaced.
        OSError: It cannot be written.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is no regular file, which could be replaced")  # /dev/null would be one from then on
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        # A name that nobody can know, made anew: no link is followed, and no file of anybody is touched.
        with part.open("xb") if binary else part.open("x", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if over:
            os.replace(part, target)
        else:
            os.link(part, target)  # unlike a rename it refuses a name that is taken
        _sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def output_file(path: str, binary: bool) -> Iterator[IO[Any]]:
    """A whole file that somebody named on the command line.

    Raises:
        CalmonError: It cannot be written.
    """
    try:
        with whole_file(path, binary) as file:
            yield file
    except OSError as error:
        raise CalmonError(f"cannot write {path}: {error.strerror or error}; nothing of it is left") from error


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
