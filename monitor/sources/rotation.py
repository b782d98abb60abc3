"""Finds the file a stored position speaks of among its rotated siblings, and the files that came after it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from monitor.errors import SourceError
from monitor.sources.file_position import FilePosition, OpenedFile, open_regular, unreadable

_COUNTER = re.compile(r"\d{1,3}")
_DATE = re.compile(r"\d[\dT_.:-]*")
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class _Rotated:
    """A sibling with a number or a date in its name."""

    name: str
    inode: int
    mtime_ns: int
    number: int | None
    token: str

    @property
    def written(self) -> tuple[int, int]:
        """Order of last writing; of two within one tick of the file system's clock, the lower number is the usual newer one."""
        return self.mtime_ns, -(self.number or 0)


def find_rotated(path: str, position: FilePosition, copies: bool) -> OpenedFile | None:
    """Open the sibling that holds the stored position.

    Args:
        path: The file as configured; itself not a candidate.
        position: What to look for.
        copies: Whether to look for another file with the same content (as copytruncate leaves one) instead of the very
            file under another name.
    """
    # Only files with a name like this one's are opened to look at their content.
    prefix = os.path.basename(path).split(".", 1)[0] if copies else ""
    for name in _siblings(path, prefix):
        try:
            if not copies and not position.is_inode_of(os.stat(name)):
                continue
            fd = open_regular(name)
        except (OSError, SourceError):
            continue  # gone, or not readable as a file: not the one we are looking for
        if holds_position(fd, position, compressed=path.endswith(".gz")):
            return OpenedFile(name, fd)
        os.close(fd)
    return None


def holds_position(fd: int, position: FilePosition, compressed: bool) -> bool:
    """Whether an open file begins as the position's file did and reaches up to it (unknown, so assumed, for a ``.gz``)."""
    return position.is_head_of(fd) and (compressed or os.fstat(fd).st_size >= position.byte)


def open_newer(path: str, old_fd: int) -> list[OpenedFile]:
    """Open the files that came after a rotated one, oldest first, the last of them the one at `path` now.

    Files between the two are known by their names: dated ones by the date (``log-20260101`` before ``log-20260102``),
    numbered ones by when they were last written, since some programs count upwards and some downwards. If the old file
    has left the folder, all that were written after it count: a file read twice gives duplicates, a file left out a loss.

    Args:
        path: The file as configured.
        old_fd: The rotated file, open.

    Returns:
        Open files; empty if the path is gone again.
    """
    old = os.fstat(old_fd)
    for _ in range(_ATTEMPTS):
        opened = _open_all([*_names_between(path, old), (path, _inode_at(path))])
        if opened is not None:
            return opened
    return []


def _siblings(path: str, prefix: str = "") -> Iterator[str]:
    folder, own_name = os.path.split(path)
    try:
        names = sorted(os.listdir(folder or "."))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(folder or ".", error) from error
    # The usual place first.
    names.sort(key=lambda name: name != f"{own_name}.1")
    yield from (os.path.join(folder, name) for name in names if name != own_name and name.startswith(prefix))


def _rotation_token(own_name: str, name: str) -> str | None:
    """What rotation put into the name: "1" of app.log.1 and app.1.log, "20260101" of app.log-20260101."""
    common = 0
    while common < len(own_name) and name[common : common + 1] == own_name[common]:
        common += 1
    rest = own_name[common:]
    if len(name) <= len(own_name) or not name.endswith(rest):
        return None
    return name[common : len(name) - len(rest)].strip("._-")


def _names_between(path: str, old: os.stat_result) -> list[tuple[str, int]]:
    """Names and inodes of the files rotated after the given one, oldest first."""
    own_name = os.path.basename(path)
    rotated: list[_Rotated] = []
    own: _Rotated | None = None
    for name in _siblings(path):
        token = _rotation_token(own_name, os.path.basename(name))
        if token is None or not (_COUNTER.fullmatch(token) or _DATE.fullmatch(token)):
            continue
        try:
            status = os.stat(name)
        except OSError:
            continue
        number = int(token) if _COUNTER.fullmatch(token) else None
        rotated.append(_Rotated(name, status.st_ino, status.st_mtime_ns, number, token))
        if (status.st_dev, status.st_ino) == (old.st_dev, old.st_ino):
            own = rotated[-1]
    if own is not None and own.number is None:
        newer = sorted((file for file in rotated if file.number is None and file.token > own.token), key=lambda file: file.token)
    elif own is not None:
        newer = sorted((file for file in rotated if file.number is not None and file.written > own.written), key=lambda file: file.written)
    else:
        newer = sorted((file for file in rotated if file.mtime_ns > old.st_mtime_ns), key=lambda file: file.written)
    return [(file.name, file.inode) for file in newer]


def _inode_at(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return -1


def _open_all(names: list[tuple[str, int]]) -> list[OpenedFile] | None:
    """Open each name if it still is the file with that inode; None if another rotation came between."""
    opened: list[OpenedFile] = []
    for name, inode in names:
        try:
            opened.append(OpenedFile(name, open_regular(name)))
        except FileNotFoundError:
            break
        if os.fstat(opened[-1].fd).st_ino != inode:
            break
    else:
        return opened
    for file in opened:
        os.close(file.fd)
    return None
