"""Standard output that ends a command with one line where it can be written no more, whoever writes to it and when."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

from monitor.errors import CalmonError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def check_output() -> None:
    """Put such a one in the place of the process's standard output, if it has one."""
    given = sys.stdout
    if isinstance(given, TextIOWrapper):
        buffer = BufferedWriter(_Descriptor(given.fileno(), "wb", closefd=False))
        by_line = given.line_buffering or given.write_through
        sys.stdout = TextIOWrapper(buffer, given.encoding, given.errors, line_buffering=by_line)


class _Descriptor(FileIO):
    """After a fault it swallows what is still buffered: otherwise the interpreter would tell of the fault once more as it exits."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes.

        Raises:
            BrokenPipeError: Whoever read them has gone.
            CalmonError: They cannot be written.
        """
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise
            raise CalmonError(f"cannot write standard output: {error.strerror or error}") from error
