"""Where reading of a file stands, with what is needed to know that file again after it was renamed or replaced."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from monitor.errors import SourceError
from monitor.sources.protocol import Position

HEAD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A place after a whole line of one certain file.

    Attributes:
        byte: Offset of the next byte; in a ``.gz`` of the decompressed ones.
        line: Number of the last line before it.
        device: Device number the file was on.
        inode: Its inode there.
        head: SHA-256 (hex) of its first `head_length` bytes, as stored on disk.
        head_length: ``min(size when last looked at, HEAD_BYTES)``; covers at least the bytes read up to there.
    """

    byte: int
    line: int
    device: int
    inode: int
    head: str
    head_length: int

    def to_position(self) -> Position:
        """The form that a checkpoint stores."""
        return {
            "byte": self.byte,
            "line": self.line,
            "device": self.device,
            "inode": self.inode,
            "head": self.head,
            "head_length": self.head_length,
        }

    def is_inode_of(self, status: os.stat_result) -> bool:
        """Whether `status` is of the very file, which may hold other content by now."""
        return (self.device, self.inode) == (status.st_dev, status.st_ino)

    def is_head_of(self, fd: int) -> bool:
        """Whether the open file still begins with the bytes it had when this position was taken."""
        head = os.pread(fd, self.head_length, 0)
        return len(head) == self.head_length and hash_of_head(head) == self.head


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file and the name it had.

    Attributes:
        path: Its name when it was opened.
        fd: The descriptor, owned by whoever gets this.
    """

    path: str
    fd: int


def hash_of_head(head: bytes) -> str:
    """Fingerprint of a file's first bytes."""
    return hashlib.sha256(head).hexdigest()


def parse_position(path: str, position: Position | None) -> FilePosition | None:
    """Read a stored position; None where it is the start of the file.

    Raises:
        SourceError: It is not a position of a file.
    """
    if position is None:
        return None
    numbers = [position.get(key, 0) for key in ("byte", "line", "device", "inode", "head_length")]
    head = position.get("head", "")
    whole = [number for number in numbers if isinstance(number, int) and number >= 0]
    if len(whole) < len(numbers) or not isinstance(head, str):
        raise SourceError(f"{path}: the stored position {dict(position)} is not one of a file; was the source of another kind before?")
    byte, line, device, inode, head_length = whole
    return FilePosition(byte, line, device, inode, head, head_length) if byte else None


def open_regular(path: str) -> int:
    """Open a file for reading; the caller closes the descriptor.

    Raises:
        FileNotFoundError: There is nothing at this path (now).
        SourceError: It is no regular file, or may not be read.
    """
    try:
        # Not blocking: opening a named pipe would wait for its writer before it can be refused.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise SourceError(f"{path}: is a directory; name the files in it")
    raise SourceError(f"{path}: is not a regular file; pipe it to standard input and name that as '-'")


def unreadable(path: str, error: OSError) -> SourceError:
    """The error for a file that the system does not let us read."""
    return SourceError(f"{path}: cannot be read: {error.strerror or error}")


def missing(path: str) -> SourceError:
    """The error for a file that is not there."""
    return SourceError(f"{path}: no such file")
