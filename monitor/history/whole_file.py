"""A file that is there only once it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from monitor.errors import CalmonError


@contextmanager
def whole_file(path: str, binary: bool) -> Iterator[IO[Any]]:
    """A file to write to: under its name when everything is on the disk; until then, and after an error, what was there stays.

    Raises:
        CalmonError: It cannot be written.
    """
    part = Path(f"{path}.part")
    try:
        try:
            with part.open("wb") if binary else part.open("w", encoding="utf-8", newline="") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CalmonError(f"cannot write {path}: {error.strerror or error}; nothing of it is left") from error
