"""History as Parquet: the rows of the CSV with their types."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import Any, BinaryIO

from monitor.errors import CalmonError
from monitor.history.question import Asked
from monitor.history.row import COLUMNS, rows
from monitor.pipeline.sweep import Moment

_ROWS_TOGETHER = 65_536
_TIMES, _TEXTS = 3, 7


def pyarrow() -> Any:
    """The library, which comes with an extra.

    Raises:
        CalmonError: It is not installed; what to do.
    """
    try:
        import pyarrow as arrow  # noqa: PLC0415 - optional
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise CalmonError("Parquet needs pyarrow: pip install 'calmon[parquet]'") from error
    return arrow


def write_parquet(moments: Iterable[Moment], asked: Asked, file: BinaryIO) -> None:
    """One row a number; an undefined one is null."""
    arrow = pyarrow()
    times, text, count, number = arrow.timestamp("ms", tz="UTC"), arrow.string(), arrow.int64(), arrow.float64()
    types = [times] * _TIMES + [text] * _TEXTS + [number, count, count, number]
    schema = arrow.schema(list(zip(COLUMNS, types, strict=True)))
    all_rows = chain.from_iterable(rows(moment, asked.choice) for moment in moments)
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        while together := list(islice(all_rows, _ROWS_TOGETHER)):
            columns = zip(*together, strict=True)
            arrays = [arrow.array(column, one) for column, one in zip(columns, types, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
