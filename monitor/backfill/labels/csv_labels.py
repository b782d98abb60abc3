"""Labels from CSV: text in UTF-8 with a header, every cell a text but whole numbers of times and revisions."""

from __future__ import annotations

import csv
import json
from codecs import BOM_UTF16, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from monitor.backfill.labels.column import NUMBERS, REQUIRED, resolve
from monitor.backfill.labels.label_file import LabelRow, size
from monitor.errors import SourceError
from monitor.events.contract import MAX_RECORD_BYTES

_LONGEST_DIGITS = 20
_LINE_ENDS = frozenset("\r\n")


class _Record(NamedTuple):
    """A record's cells, and its first and last line."""

    first: int
    last: int
    cells: list[str]


class CsvLabels:
    """A CSV file with a header.

    An empty cell is the empty text where a label needs one, which is refused, and leaves the field out elsewhere: nothing in
    CSV says that a label is withdrawn.

    Args:
        path: The file.
        mapping: Columns by field.

    Raises:
        SourceError: It cannot be read, is not UTF-8 by its first bytes, has no header, lacks a column, or has one twice.
    """

    def __init__(self, path: str, mapping: Mapping[str, str]) -> None:
        self.path = path
        self.total_bytes = size(path)
        self.read_bytes = 0
        csv.field_size_limit(MAX_RECORD_BYTES)
        self._refuse_utf16()
        with self._open() as file:
            header = next(self._records(file), _Record(0, 0, [])).cells
        self._width = len(header)
        self._places = {field: header.index(column) for field, column in resolve(mapping, header, path).items()}

    def rows(self) -> Iterator[LabelRow]:
        """The records in their order, numbered by their first line.

        Raises:
            SourceError: The file cannot be read on.
        """
        with self._open() as file:
            records = self._records(file)
            next(records, None)
            for record in records:
                fault = self._fault(record)
                if fault is None:
                    yield LabelRow(record.first, json.dumps(self._fields(record.cells)).encode())
                elif record.cells:  # an empty line is none
                    yield LabelRow(record.first, ",".join(record.cells).encode("utf-8", "surrogateescape"), fault)

    def _fault(self, record: _Record) -> str | None:
        """Why no event can be made of a record: a stray quote makes one of many lines, which nobody would find by its number alone."""
        span = f"lines {record.first} to {record.last}" if record.last > record.first else ""
        if len(record.cells) != self._width:
            return f"{len(record.cells)} cells under a header of {self._width}{span and f', in {span}'}"
        for field, place in self._places.items() if span else ():
            if not _LINE_ENDS.isdisjoint(record.cells[place]):
                return f"{field} holds a line end, and the row is {span}: is a quote missing, or one too many?"
        return None

    def _fields(self, cells: list[str]) -> dict[str, str | int]:
        fields: dict[str, str | int] = {}
        for field, place in self._places.items():
            text = cells[place]
            if field in NUMBERS and text.isascii() and text.isdecimal() and len(text) <= _LONGEST_DIGITS:
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

    def _refuse_utf16(self) -> None:
        """What spreadsheets call Unicode text would be one row without a single readable column name."""
        with self._open() as file:
            marked = file.buffer.read(len(BOM_UTF16)) in (BOM_UTF16_BE, BOM_UTF16_LE)
        if marked:
            raise SourceError(f"{self.path}: is not UTF-8: it begins with the mark of UTF-16; iconv -f UTF-16 -t UTF-8 converts it")

    def _records(self, file: TextIO) -> Iterator[_Record]:
        reader = csv.reader(self._lines(file), strict=True)
        first = 1
        try:
            for cells in reader:
                yield _Record(first, reader.line_num, cells)
                first = reader.line_num + 1
        except csv.Error as error:
            raise SourceError(f"{self.path}:{first}: is no CSV from here on: {error}; put it right and run this again") from error
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
