"""What a backfill keeps beside the state: how far it has come, and the rows that it held back.

For each label file there are two files in `STATE.backfill`: `NAME.progress.json` where the position is not part of the state, and
`NAME.quarantine.ndjson`. The position says how long the quarantine was, so that after a crash each row is in it once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monitor.backfill.labels.sieve import Held
from monitor.backfill.labels.tally import Tally
from monitor.errors import StateError
from monitor.export.quarantine_file import to_line
from monitor.export.quarantine_sink import KEPT_BYTES, RefusedRecord
from monitor.sources.protocol import Position
from monitor.whole_file import whole_file


class Standing(msgspec.Struct):
    """How far a label file has been taken in.

    Attributes:
        row: Number of the last row that was.
        quarantine_bytes: How long its quarantine was then.
        tally: What became of its rows until then.
    """

    row: int = 0
    quarantine_bytes: int = 0
    tally: str = ""

    def counts(self) -> Tally:
        """The tally, to go on with."""
        return Tally.from_text(self.tally) if self.tally else Tally()

    def to_position(self) -> Position:
        """The form that a checkpoint stores."""
        return {"row": self.row, "quarantine_bytes": self.quarantine_bytes, "tally": self.tally}

    @classmethod
    def from_position(cls, position: Position | None) -> Standing:
        """What `to_position` made."""
        return cls() if position is None else msgspec.convert(dict(position), cls)


class Folder:
    """The folder beside a state.

    Args:
        state_directory: The state's own.
    """

    def __init__(self, state_directory: str) -> None:
        state = Path(state_directory)
        self.path = state.with_name(f"{state.name}.backfill")

    def quarantine(self, partition: str) -> Path:
        """Where the rows of a label file go that are held back."""
        return self.path / f"{partition}.quarantine.ndjson"

    def load(self, partition: str) -> Standing:
        """How far a label file has been taken in.

        Raises:
            StateError: What is kept of it cannot be read.
        """
        path = self._progress(partition)
        try:
            return msgspec.json.decode(path.read_bytes(), type=Standing)
        except FileNotFoundError:
            return Standing()
        except NotADirectoryError as error:
            raise self._unwritable(path, error) from error
        except (OSError, msgspec.DecodeError) as error:
            raise StateError(f"cannot read {path}: {error}; without that file the labels are sent again, which changes nothing") from error

    def save(self, partition: str, standing: Standing) -> None:
        """Keep how far a label file has been taken in, all or nothing.

        Raises:
            StateError: It cannot be written.
        """
        path = self._progress(partition)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with whole_file(path, binary=True) as file:
                file.write(msgspec.json.encode(standing))
        except OSError as error:
            raise self._unwritable(path, error) from error

    def put_back(self, partition: str, standing: Standing) -> None:
        """Cut the quarantine of a label file to what it was when it stood there: what is after that comes again.

        Raises:
            StateError: It cannot be written.
        """
        path = self.quarantine(partition)
        try:
            if path.exists() and path.stat().st_size > standing.quarantine_bytes:
                os.truncate(path, standing.quarantine_bytes)
        except OSError as error:
            raise self._unwritable(path, error) from error

    def append(self, partition: str, held: Sequence[Held]) -> int:
        """Quarantine rows, durably; how long the quarantine is then.

        Raises:
            StateError: It cannot be written.
        """
        path = self.quarantine(partition)
        try:
            if not held:
                return path.stat().st_size if path.exists() else 0
            self.path.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.writelines(to_line(_refused(partition, one)) for one in held)
                file.flush()
                os.fsync(file.fileno())
                return file.tell()
        except OSError as error:
            raise self._unwritable(path, error) from error

    def _unwritable(self, path: Path, error: OSError) -> StateError:
        if self.path.exists() and not self.path.is_dir():
            return StateError(f"{self.path} is no directory: move it away, and run this again")
        advice = "; make room, and run this again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return StateError(f"cannot write {path}: {error.strerror or error}{advice}")

    def _progress(self, partition: str) -> Path:
        return self.path / f"{partition}.progress.json"


def _refused(partition: str, held: Held) -> RefusedRecord:
    return RefusedRecord(held.refusal, partition, held.number, None, held.event[:KEPT_BYTES], len(held.event))
