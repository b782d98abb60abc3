"""Labels from NDJSON: each line an event as it is, or with its keys renamed and its values untouched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Never

import msgspec

from monitor.backfill.labels.column import FIELDS, check_mapped
from monitor.backfill.labels.label_file import LabelRow
from monitor.produce.lines import Files
from monitor.sources.protocol import never

_LOOKED_AT = 1000
"""Lines whose keys are the columns that there are, where a mapping names one that is not."""

_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class NdjsonLabels:
    """An NDJSON file, plain or ``.gz``.

    Args:
        path: The file.
        mapping: Columns by field.

    Raises:
        SourceError: It cannot be read, or none of its first lines has a mapped key.
    """

    def __init__(self, path: str, mapping: Mapping[str, str]) -> None:
        self.path = path
        self._files = Files([path], never)
        self.total_bytes = self._files.total_bytes or 0
        self._keys = {field: mapping.get(field, field) for field in FIELDS}
        self._renamed = any(field != key for field, key in self._keys.items())
        if self._renamed:
            columns: dict[str, None] = {}
            for line in islice(Files([path], never).in_order(), _LOOKED_AT):
                columns |= dict.fromkeys(_strict(line.value) or {})
            check_mapped({field: key for field, key in mapping.items() if columns}, columns, path)

    @property
    def read_bytes(self) -> int:
        """How much of it has been read."""
        return self._files.read_bytes

    def rows(self) -> Iterator[LabelRow]:
        """The lines in their order.

        Raises:
            SourceError: The file cannot be read on.
        """
        for line in self._files.in_order():
            yield LabelRow(line.number, self._event(line.value) if self._renamed else line.value)

    def _event(self, line: bytes) -> bytes:
        """The event that a line says under other keys; what is no JSON is left as it is, for the decoder to refuse."""
        if _strict(line) is None:
            return line
        values = _raw_fields(line)
        parts = [b'"type":' + bytes(values["type"])] if "type" in values else []
        parts += [f'"{field}":'.encode() + bytes(values[key]) for field, key in self._keys.items() if key in values]
        return b"{" + b",".join(parts) + b"}"


def _strict(line: bytes) -> dict[str, Any] | None:
    """The object of a line; None for what the contract calls no JSON object."""
    try:
        found = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse)
        _raw_fields(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key occurs twice")
    return fields


def _refuse(name: str) -> Never:
    raise ValueError(name)
