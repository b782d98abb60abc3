"""The process `calmon`, also `python -m monitor`: the command line, ready for Ctrl-C and a full disk from the first moment on."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from monitor.standard_output import check_output


def main() -> int:
    """Run the command that the process was started with; its exit code."""
    check_output()
    # An exception might be swallowed by whatever is being imported, and nothing has been begun that would have to be ended well.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _end)
    from monitor import cli  # noqa: PLC0415 - the second that it takes is when people change their minds

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.main()


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    try:
        os.write(2, b"calmon: interrupted\n")
    finally:
        os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
