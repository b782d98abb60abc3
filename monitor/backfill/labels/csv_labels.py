"""Labels from CSV: text in UTF-8 with a header, every cell a text but whole numbers of times and revisions."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from monitor.backfill.labels.column import REQUIRED, resolve
from monitor.backfill.labels.label_file import LabelRow, size
from monitor.errors import SourceError
from monitor.events.contract import MAX_RECORD_BYTES

_NUMBERS = ("labelled_at", "revision")
_LONGEST_DIGITS = 20


class CsvLabels:
    """A CSV file with a header.

    An empty cell is the empty text where a label needs one, which is refused, and leaves the field out elsewhere: nothing in
    CSV says that a label is withdrawn.

    Args:
        path: The file.
        mapping: Columns by field.

    Raises:
        SourceError: It cannot be read, has no header, lacks a column, or has one twice.
    """

    def __init__(self, path: str, mapping: Mapping[str, str]) -> None:
        self.path = path
        self.total_bytes = size(path)
        self.read_bytes = 0
        csv.field_size_limit(MAX_RECORD_BYTES)
        with self._open() as file:
            header = next(self._cells(file), (0, []))[1]
        self._width = len(header)
        self._places = {field: header.index(column) for field, column in resolve(mapping, header, path).items()}

    def rows(self) -> Iterator[LabelRow]:
        """The records in their order, numbered by their last line.

        Raises:
            SourceError: The file cannot be read on.
        """
        with self._open() as file:
            records = self._cells(file)
            next(records, None)
            for number, cells in records:
                if len(cells) == self._width:
                    yield LabelRow(number, json.dumps(self._fields(cells)).encode())
                elif cells:
                    fault = f"{len(cells)} cells under a header of {self._width}"
                    yield LabelRow(number, ",".join(cells).encode("utf-8", "surrogateescape"), fault)

    def _fields(self, cells: list[str]) -> dict[str, str | int]:
        fields: dict[str, str | int] = {}
        for field, place in self._places.items():
            text = cells[place]
            if field in _NUMBERS and text.isascii() and text.isdecimal() and len(text) <= _LONGEST_DIGITS:
                fields[field] = int(text)
            elif text or field in REQUIRED:
                fields[field] = text
        return fields

    def _open(self) -> TextIO:
        try:
            # A byte that is no UTF-8 becomes a character that the decoder refuses, in its own row.
            return Path(self.path).open(encoding="utf-8-sig", errors="surrogateescape", newline="")
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error.strerror or error}") from error

    def _cells(self, file: TextIO) -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(self._lines(file), strict=True)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            raise SourceError(f"{self.path}:{reader.line_num}: is no CSV from here on: {error}; put it right and run this again") from error
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error.strerror or error}") from error

    def _lines(self, file: TextIO) -> Iterator[str]:
        """Lines, none of them longer than a record may be: a file without line ends must not fill the memory."""
        self.read_bytes = 0
        while line := file.readline(MAX_RECORD_BYTES):
            if len(line) == MAX_RECORD_BYTES and not line.endswith("\n"):
                raise csv.Error(f"a line is longer than {MAX_RECORD_BYTES} characters")
            self.read_bytes += len(line)
            yield line
