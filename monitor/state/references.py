"""References on disk: one JSON file each, `references/NAME.NUMBER.json` under the state directory, written once and never changed.

Integers are strings, for they may exceed 2^53; a sha256 tells a file that was damaged from one that is sound.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from monitor.config_value import parse_reference
from monitor.errors import StateError
from monitor.statistics.fixed_point import I64
from monitor.statistics.layout import Layout
from monitor.statistics.reference import Reference
from monitor.statistics.series import SeriesKey
from monitor.whole_file import whole_file

FOLDER = "references"
FORMAT = 1
MAX_BYTES = 256 << 20
MAX_DIGITS = 20
_SUFFIX = ".json"


class _Sums(msgspec.Struct, forbid_unknown_fields=True):
    """The sums of one series that are not zero, by position in its cell."""

    segment: str
    value: str
    positions: list[int]
    values: list[str]


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    name: str
    number: int
    model: str
    version: str
    start_ms: int
    end_ms: int
    created_ms: int
    source: str
    fingerprint: str
    layout: dict[str, Any]
    sums: list[_Sums]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sha256: str
    reference: _Content


class References:
    """The references under a state directory.

    Args:
        state_directory: Need not exist yet.
    """

    def __init__(self, state_directory: Path) -> None:
        self._directory = state_directory / FOLDER

    def names(self) -> dict[str, list[int]]:
        """Version numbers of each name, ascending.

        Raises:
            StateError: The directory cannot be read.
        """
        found: dict[str, list[int]] = {}
        try:
            files = [path.name.removesuffix(_SUFFIX) for path in self._directory.iterdir() if path.name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StateError(f"cannot read {self._directory}: {error.strerror or error}") from error
        for stem in files:
            name, _, number = stem.rpartition(".")
            with contextlib.suppress(ValueError):
                parse_reference(f"{name}@{number}")
                found.setdefault(name, []).append(int(number))
        return {name: sorted(numbers) for name, numbers in sorted(found.items())}

    def resolve(self, text: str) -> tuple[str, int] | None:
        """Name and number that NAME (its newest version) or NAME@NUMBER stands for; None where there is none.

        Raises:
            ValueError: The text is neither.
            StateError: The directory cannot be read.
        """
        name, number = parse_reference(text)
        numbers = self.names().get(name, [])
        if number is None:
            return (name, numbers[-1]) if numbers else None
        return (name, number) if number in numbers else None

    def load(self, name: str, number: int) -> Reference:
        """Read a reference.

        Raises:
            StateError: It cannot be read, is damaged, or its sums mean something else than they do in this calmon.
        """
        path = self._path(name, number)
        away = f"move it away (mv {path} {path}.old) and set it again"
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise StateError(f"cannot read the reference {path}: {error.strerror or error}") from error
        if len(data) > MAX_BYTES:
            raise StateError(f"the reference {path} is larger than {MAX_BYTES >> 20} MiB: {away}")
        try:
            stored = msgspec.json.decode(data, type=_File)
            if stored.reference.format != FORMAT:
                raise StateError(f"the reference {path} has format {stored.reference.format}, this calmon reads {FORMAT}: {away}")
            if _digest(stored.reference) != stored.sha256:
                raise ValueError("its sha256 is another")
            if (stored.reference.name, stored.reference.number) != (name, number):
                raise ValueError("its name is another")
            return _reference(stored.reference, path)
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
            raise StateError(f"the reference {path} is damaged ({error}): {away}") from error

    def save(self, reference: Reference) -> Reference:
        """Write a reference under the next free number of its name, durably; returns it with that number.

        Raises:
            StateError: It cannot be written, or is too large.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            number = max(self.names().get(reference.name, [0])) + 1
            while True:
                numbered = replace(reference, number=number)
                data = _to_bytes(numbered)
                if len(data) > MAX_BYTES:
                    raise StateError(
                        f"the reference would be larger than {MAX_BYTES >> 20} MiB: lower max_group_values or watch fewer groups"
                    )
                try:
                    with whole_file(self._path(reference.name, number), binary=True, over=False) as file:
                        file.write(data)
                except FileExistsError:
                    number += 1  # another process took it meanwhile
                else:
                    return numbered
        except OSError as error:
            raise StateError(f"cannot write a reference to {self._directory}: {error.strerror or error}") from error

    def _path(self, name: str, number: int) -> Path:
        return self._directory / f"{name}.{number}{_SUFFIX}"


def _to_bytes(reference: Reference) -> bytes:
    content = _Content(
        FORMAT,
        reference.name,
        reference.number,
        reference.model,
        reference.version,
        reference.start_ms,
        reference.end_ms,
        reference.created_ms,
        reference.source,
        reference.layout.fingerprint,
        reference.layout.to_json(),
        list(_sums(reference.cells)),
    )
    return msgspec.json.encode(_File(_digest(content), content))


def _digest(content: _Content) -> str:
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def _sums(cells: Mapping[SeriesKey, I64]) -> Iterator[_Sums]:
    for key in sorted(cells):
        positions = np.flatnonzero(cells[key])
        yield _Sums(key.segment, key.value, positions.tolist(), [str(value) for value in cells[key][positions].tolist()])


def _reference(stored: _Content, path: Path) -> Reference:
    layout = Layout.from_json(stored.layout)
    if layout.fingerprint != stored.fingerprint:
        raise StateError(f"the sums of the reference {path} mean something else than in this version of calmon: set it again")
    cells = {}
    for sums in stored.sums:
        key = SeriesKey(stored.model, layout.fingerprint, stored.version, sums.segment, sums.value)
        cells[key] = _cell(sums.positions, sums.values, layout.width(key.shape))
    reference = Reference(
        stored.name,
        stored.number,
        stored.model,
        stored.version,
        layout,
        stored.start_ms,
        stored.end_ms,
        stored.created_ms,
        stored.source,
        cells,
    )
    if not any(key.segment == key.value == "all" for key in cells):
        raise ValueError("it has no sums over everything")
    return reference


def _cell(positions: Sequence[int], values: Sequence[str], width: int) -> I64:
    if len(positions) != len(values) or any(len(value) > MAX_DIGITS for value in values):
        raise ValueError("its sums are no integers by position")
    cell = np.zeros(width, dtype=np.int64)
    if positions:
        if not 0 <= min(positions) <= max(positions) < width:
            raise ValueError("its sums lie outside their cell")
        try:
            cell[positions] = [int(value) for value in values]
        except OverflowError as error:
            raise ValueError("a sum is no int64") from error
    return cell
