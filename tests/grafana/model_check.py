"""Whether a dashboard is what Grafana's own models say: no field that they do not know, no value of another type."""

from __future__ import annotations

import enum
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()


def faults(data: Mapping[str, Any]) -> list[str]:
    """What is wrong with a dashboard, with its place."""
    board = Dashboard.from_json(dict(data))
    read = json.loads(json.dumps(board, cls=JSONEncoder))
    return [*_differences(data, read, "dashboard"), *_of_object(board, "dashboard")]


def _differences(given: Any, read: Any, place: str) -> Iterator[str]:
    """Where what the models have read is not what was given."""
    if isinstance(given, dict) and isinstance(read, dict):
        for key in sorted(given.keys() | read.keys()):
            if key not in read:
                yield f"{place}.{key}: no such field"
            elif key not in given:
                yield f"{place}.{key}: is missing"
            else:
                yield from _differences(given[key], read[key], f"{place}.{key}")
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from _differences(one, other, f"{place}[{number}]")
    elif given != read:
        yield f"{place}: {given!r} is read as {read!r}"


def _of_object(one: Any, place: str) -> Iterator[str]:
    """Attributes of a model whose values are not of their declared types."""
    if isinstance(one, UnknownDataquery):
        yield f"{place}: a query of no known data source"
        return
    for name, declared in typing.get_type_hints(type(one)).items():
        yield from _of_value(getattr(one, name), declared, f"{place}.{name}")


def _of_value(value: Any, declared: Any, place: str) -> Iterator[str]:
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        if value is not None or type(None) not in parts:
            found = [list(_of_value(value, part, place)) for part in parts if part is not type(None)]
            yield from min(found, key=len)
    elif origin is typing.Literal:
        if value not in parts:
            yield f"{place}: {value!r} is none of {parts}"
    elif origin is list or origin is dict:
        if not isinstance(value, origin):
            yield f"{place}: {value!r} is no {origin.__name__}"
            return
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from _of_value(member, parts[-1], f"{place}[{key!r}]")
    elif hasattr(value, "to_json"):
        yield from _of_object(value, place)
    elif hasattr(declared, "from_json") and isinstance(value, dict):
        model = declared.from_json(value)  # the models leave some of their parts as they were
        yield from _differences(value, json.loads(json.dumps(model, cls=JSONEncoder)), place)
        yield from _of_object(model, place)
    elif isinstance(declared, type) and not _is(value, declared):
        yield f"{place}: {value!r} is no {declared.__name__}"


def _is(value: Any, declared: type) -> bool:
    if issubclass(declared, enum.Enum):
        return value in [member.value for member in declared]
    if declared in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if declared is float else declared)
