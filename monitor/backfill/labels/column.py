"""Which column of a label file holds which field of a label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from monitor.errors import ConfigError, SourceError

FIELDS = ("prediction_id", "label", "labelled_at", "revision", "model", "model_version", "domain")
"""Fields of a label event; a column of the same name holds each of them unless a mapping says otherwise."""

REQUIRED = FIELDS[:3]

NUMBERS = ("labelled_at", "revision")
"""Fields that whole numbers stand in as such; in the others they are text."""

_SHOWN_COLUMNS = 30


def parse_mapping(words: Iterable[str]) -> dict[str, str]:
    """Columns by field, from `FIELD=COLUMN` words.

    Raises:
        ConfigError: A word is none, names no field, or names one again.

    >>> parse_mapping(["label=truth"])
    {'label': 'truth'}
    """
    mapping: dict[str, str] = {}
    for word in words:
        field, equals, column = word.partition("=")
        if not equals or not column:
            raise _wrong(f"--map {word}: must be FIELD=COLUMN, such as label=truth")
        if field not in FIELDS:
            raise _wrong(f"--map {word}: there is no field {field}; there are {', '.join(FIELDS)}")
        if field in mapping:
            raise _wrong(f"--map {word}: {field} is mapped already, to {mapping[field]}")
        mapping[field] = column
    return mapping


def resolve(mapping: Mapping[str, str], columns: Sequence[str], path: str) -> dict[str, str]:
    """The column of each field that a table has.

    Args:
        mapping: Columns by field; fields that are not in it are looked for under their own names.
        columns: Those that there are.
        path: Named in errors.

    Raises:
        SourceError: A column that is mapped or required is missing, or one that holds a field is there twice.
    """
    check_mapped(mapping, columns, path)
    for field in REQUIRED:
        if field not in mapping and field not in columns:
            raise SourceError(f"{path}: there is no column {field}: --map {field}=COLUMN says which it is; {_there_are(columns)}")
    wanted = {field: mapping.get(field, field) for field in FIELDS}
    found = {field: column for field, column in wanted.items() if column in columns}
    for field, column in found.items():
        if columns.count(column) > 1:
            raise SourceError(f'{path}: column "{column}" stands twice, so that it cannot be told which holds {field}: rename one of them')
    return found


def check_mapped(mapping: Mapping[str, str], columns: Collection[str], path: str) -> None:
    """See that the mapped columns are there.

    Raises:
        SourceError: One is not.
    """
    for field, column in mapping.items():
        if column not in columns:
            raise SourceError(f"{path}: there is no column {column}, which --map {field}={column} names; {_there_are(columns)}")


def _there_are(columns: Collection[str]) -> str:
    shown = ", ".join(list(columns)[:_SHOWN_COLUMNS]) + (", ..." if len(columns) > _SHOWN_COLUMNS else "")
    return f"there are {shown}" if columns else "there are none"


def _wrong(fault: str) -> ConfigError:
    return ConfigError([fault], "command line")
