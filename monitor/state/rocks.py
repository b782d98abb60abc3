"""The state store on RocksDB, through rocksdict.

A directory holds the database and a marker file that says whose it is and in which format, so that a foreign, newer or
damaged directory is refused before anything touches it. Nothing is ever deleted to "repair" it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from monitor.errors import StateError, StateInUseError
from monitor.state.beside import BusyError, open_beside
from monitor.state.origin import FILE as ORIGIN
from monitor.state.protocol import Changes, StateStore
from monitor.state.references import FOLDER as REFERENCES

FORMAT = 1
"""Raised when stored bytes change their meaning; see CHANGELOG, "State format"."""

MARKER = "CALMON"
_BEGUN = "CALMON.new"
"""The marker while the database is being made: a first start that was interrupted goes on from there."""
_CACHE_BYTES = 32 << 20
_MEMTABLE_BYTES = 32 << 20
_STRETCH_BYTES = 1 << 20
_KEY_BYTES = 64
"""What a key and its tuple take about."""

log = logging.getLogger(__name__)


class RocksStore:
    """One RocksDB database.

    Args:
        directory: Made if it does not exist; refused if it holds anything that is not calmon's.
        read_only: Whether to look at it as of the last commit, also while another process has it open. Then it is neither made nor
            changed, commits are refused, and later ones of the other process are not seen.

    Raises:
        StateError: The directory is foreign, of a newer format, damaged or not writable, or locked by another process; to be read only,
            that there is none.
    """

    def __init__(self, directory: Path, read_only: bool = False) -> None:
        self._directory = directory
        # Who only looks reads long stretches of panes once; each is larger than what the cache keeps of them.
        self._caches_scans = not read_only
        if read_only:
            _recognise(directory)
        else:
            _claim(directory)
        try:
            database = directory / "db"
            self._db = open_beside(database, _options()) if read_only else Rdict(str(database), _options())
        except BusyError as error:
            raise StateError(f"cannot read the state in {directory}: {error}; try again, or stop the service that writes it") from error
        except OSError as error:
            raise StateError(f"cannot use the state directory {directory}: {error}") from error
        except Exception as error:  # rocksdict raises bare Exception for whatever RocksDB reports
            raise _open_error(directory, _one_line(error)) from error
        if not read_only:
            _sign(directory)
        self._durable = WriteOptions()
        self._durable.sync = True

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:  # as above
            raise _unreadable(self._directory, error) from error
        return value

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys, in their order."""
        try:
            # rocksdict's stub knows the single-key form only.
            return cast("list[bytes | None]", self._db.get(list(keys)))
        except Exception as error:  # as above
            raise _unreadable(self._directory, error) from error

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [first, end), ascending, as they were when the scan began."""
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        options.fill_cache(self._caches_scans)  # type: ignore[call-arg] # rocksdict's stub does not know the argument
        try:
            found = self._db.iter(options)
            found.seek(first)
            while found.valid():
                yield found.key(), found.value()
                found.next()
            # Damage ends an iteration like the end of the range does; only the status tells them apart.
            found.status()
        except Exception as error:  # as above
            raise _unreadable(self._directory, error) from error

    def commit(self, changes: Changes) -> None:
        """Apply all changes atomically; fsynced before it returns."""
        batch = WriteBatch(raw_mode=True)
        for first, end in changes.delete_ranges:
            batch.delete_range(first, end)
        for key in changes.deletes:
            batch.delete(key)
        put = batch.put
        for key, value in changes.puts:
            put(key, value)
        try:
            self._db.write(batch, self._durable)
        except Exception as error:  # as above
            raise StateError(
                f"cannot write the state in {self._directory}: {_one_line(error)}; nothing of this batch was stored"
            ) from error

    def snapshot(self) -> StateStore:
        """The database as of the last commit; while it is open the directory stays locked."""
        try:
            return _RocksSnapshot(self._db, self._directory)
        except Exception as error:  # as above
            raise _unreadable(self._directory, error) from error

    def close(self) -> None:
        """Release the database; safe to call twice."""
        try:
            self._db.close()
        except DbClosedError:
            pass
        except Exception as error:  # as above
            log.warning("%s: closed without a last flush (%s); what was committed is in the database's log", self._directory, error)


class _RocksSnapshot:
    """One RocksDB database as of a commit.

    An iterator stays at what the database was when it was made, wherever it is moved; rocksdict's own snapshots do not: to
    iterate over one shows what was committed since. Scans share the iterator, so each takes a stretch into memory at a time.
    """

    def __init__(self, database: Rdict, directory: Path) -> None:
        options = ReadOptions()
        options.fill_cache(False)  # type: ignore[call-arg] # rocksdict's stub does not know the argument
        self._found: RdictIter | None = database.iter(options)
        self._directory = directory

    def get(self, key: bytes) -> bytes | None:
        """Value of a key, or None."""
        return next((value for _, value in self.scan(key, key + b"\0")), None)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Values of many keys, in their order."""
        return [self.get(key) for key in keys]

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in [first, end), ascending."""
        while stretch := self._stretch(first, end):
            yield from stretch
            first = stretch[-1][0] + b"\0"

    def commit(self, changes: Changes) -> None:
        """Refused."""
        del changes
        raise StateError(f"the state in {self._directory} is only looked at")

    def snapshot(self) -> StateStore:
        """The same: it does not change."""
        return self

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        self._found = None

    def _stretch(self, first: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """The next keys and values in [first, end), some megabytes at most; none at the end."""
        found = self._found
        if found is None:
            raise StateError(f"what was seen of the state in {self._directory} is closed")
        stretch: list[tuple[bytes, bytes]] = []
        size = 0
        try:
            found.seek(first)
            while size < _STRETCH_BYTES and found.valid() and (key := found.key()) < end:
                stretch.append((key, found.value()))
                size += len(stretch[-1][1]) + _KEY_BYTES
                found.next()
            found.status()
        except Exception as error:  # as above
            raise _unreadable(self._directory, error) from error
        return stretch


def _unreadable(directory: Path, error: Exception) -> StateError:
    return StateError(
        f"cannot read the state in {directory}: {_one_line(error)}; restore it from a backup, or move it away "
        f"(mv {directory} {directory}.old) and start anew"
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(_MEMTABLE_BYTES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_compression_type(DBCompressionType.lz4())
    table = BlockBasedOptions()
    table.set_bloom_filter(10, False)
    table.set_block_cache(Cache(_CACHE_BYTES))
    table.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(table)
    return options


def _claim(directory: Path) -> None:
    """Make a directory ours, or see that it is."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if (directory / MARKER).exists():
            _recognise(directory)
        elif not (directory / _BEGUN).exists():
            if any(path.name not in (REFERENCES, ORIGIN) for path in directory.iterdir()):
                raise StateError(f"{directory} is not empty and not calmon's state: {_away(directory)}")
            (directory / _BEGUN).touch()
    except OSError as error:
        raise StateError(f"cannot use the state directory {directory}: {error}") from error


def _recognise(directory: Path) -> None:
    """See that a directory is ours, in a format that we read."""
    marker, away = directory / MARKER, _away(directory)
    try:
        word, _, version = marker.read_text(encoding="utf-8").strip().partition(" ")
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"cannot use the state directory {directory}: {error}") from error
    if word != "calmon-state" or not version.isdecimal():
        raise StateError(f"{marker} is damaged, so {directory} may not be calmon's state: {away}")
    if int(version) != FORMAT:
        raise StateError(
            f"{directory} has state format {version}, this calmon reads format {FORMAT}: use the calmon that wrote it, or {away}"
        )
    if not (directory / "db" / "CURRENT").exists():
        raise StateError(f"{directory} has lost its database: restore it from a backup, or {away}")


def _away(directory: Path) -> str:
    return f"move it away (mv {directory} {directory}.old) or name another state.directory"


def _sign(directory: Path) -> None:
    """Put the marker in its place, now that there is a database."""
    begun = directory / _BEGUN
    try:
        if begun.exists():
            with begun.open("w", encoding="utf-8") as file:
                file.write(f"calmon-state {FORMAT}\n")
                file.flush()
                os.fsync(file.fileno())
            begun.replace(directory / MARKER)
    except OSError as error:
        raise StateError(f"cannot use the state directory {directory}: {error}") from error


def _open_error(directory: Path, message: str) -> StateError:
    if "While lock file" in message or "lock hold by" in message:  # not just "lock": damage speaks of blocks
        return StateInUseError(
            f"the state in {directory} is in use by another process: stop it first, or name another state.directory ({message})"
        )
    return StateError(f"cannot open the state in {directory}: {message}; move it away (mv {directory} {directory}.old) and start anew")
