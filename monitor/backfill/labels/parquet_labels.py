"""Labels from Parquet, through pyarrow: a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from monitor.backfill.labels.column import NUMBERS, resolve
from monitor.backfill.labels.label_file import LabelRow, size
from monitor.errors import SourceError

try:
    import pyarrow
    from pyarrow import parquet
except ImportError as error:
    raise SourceError("Parquet needs pyarrow: pip install 'calmon[parquet]', or convert the file to CSV or NDJSON") from error

_BATCH_ROWS = 5_000
_UNIT_PER_MS = {"us": 1_000, "ns": 1_000_000}
_MS_PER_UNIT = {"s": 1_000, "ms": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ParquetLabels:
    """A Parquet file. A null leaves its field out: nothing tells a withdrawn label from one that is not known.

    Args:
        path: The file.
        mapping: Columns by field.

    Raises:
        SourceError: It cannot be read, lacks a column, has one twice, or a column is of a type that its field cannot have.
    """

    def __init__(self, path: str, mapping: Mapping[str, str]) -> None:
        self.path = path
        self.total_bytes = size(path)
        self.read_bytes = 0
        try:
            with parquet.ParquetFile(path) as file:
                schema = file.schema_arrow
        except (OSError, pyarrow.ArrowException) as error:
            raise self._unreadable(error) from error
        self._columns = resolve(mapping, schema.names, path)
        self._readers = {field: self._reader(field, schema.field(column)) for field, column in self._columns.items()}

    def rows(self) -> Iterator[LabelRow]:
        """The rows in their order, numbered from 1.

        Raises:
            SourceError: The file cannot be read on.
        """
        number = 0
        try:
            with parquet.ParquetFile(self.path) as file:
                total = max(file.metadata.num_rows, 1)
                for batch in file.iter_batches(_BATCH_ROWS, columns=list(dict.fromkeys(self._columns.values()))):
                    columns = {field: self._readers[field](batch.column(column)) for field, column in self._columns.items()}
                    for values in zip(*columns.values(), strict=True):
                        number += 1
                        fields = {field: value for field, value in zip(columns, values, strict=True) if value is not None}
                        yield LabelRow(number, msgspec.json.encode(fields))
                    self.read_bytes = self.total_bytes * number // total
        except (OSError, pyarrow.ArrowException) as error:
            raise self._unreadable(error) from error

    def _reader(self, field: str, column: Any) -> Callable[[Any], list[Any]]:
        """What makes the JSON values of a column, by its type."""
        types = pyarrow.types
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            return lambda values: values.to_pylist()
        if types.is_integer(kind):
            return lambda values: values.to_pylist() if field in NUMBERS else _digits(values)
        if field == "labelled_at" and types.is_timestamp(kind):
            return lambda values: _instants(values, kind)
        wanted = {"labelled_at": "a timestamp with a zone, text or whole milliseconds", "revision": "a whole number"}
        fault = f"must be {wanted.get(field, 'text or whole numbers')}"
        if field == "labelled_at" and types.is_date(kind):
            fault = f"a date without a time of day is ambiguous: {fault}"
        elif field not in NUMBERS and types.is_boolean(kind):
            fault = f"true and false have no one spelling as text: {fault}"
        raise SourceError(f"{self.path}: column {column.name} ({field}) is of type {column.type}: {fault}")

    def _unreadable(self, error: Exception) -> SourceError:
        return SourceError(f"{self.path}: cannot be read as Parquet: {str(error).splitlines()[0]}")


def _digits(values: Any) -> list[str | None]:
    """Whole numbers as the text that CSV has of them."""
    return [None if value is None else str(value) for value in values.to_pylist()]


def _instants(values: Any, kind: Any) -> list[int | str | None]:
    """Timestamps in whole milliseconds, floored; without a zone as text without an offset, which the decoder refuses."""
    scaled = [_floored(value, kind.unit) for value in values.cast(pyarrow.int64()).to_pylist()]
    if kind.tz is not None:
        return list(scaled)
    return [None if value is None else _naive(value) for value in scaled]


def _floored(value: int | None, unit: str) -> int | None:
    if value is None:
        return None
    return value * _MS_PER_UNIT[unit] if unit in _MS_PER_UNIT else value // _UNIT_PER_MS[unit]


def _naive(epoch_ms: int) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=epoch_ms)).replace(tzinfo=None).isoformat()
    except OverflowError:
        return str(epoch_ms)
