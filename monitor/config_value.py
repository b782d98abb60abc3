"""What sections of the configuration are made of: the kinds of values that keys have, and how a fault is reported at its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, Strict, ValidationError, ValidationInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from monitor.duration import missing_unit, parse_duration

FROM_FILE: Final[Mapping[str, bool]] = {"from_file": True}
"""Validation context for values that people wrote: there a bare number is no duration and no time."""

MAX_TEXT_LENGTH: Final = 256

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_REFERENCE: Final = re.compile(r"([A-Za-z0-9_-]{1,64})(?:@([1-9][0-9]{0,8}))?")

_NumberT = TypeVar("_NumberT", int, float)


class Section(BaseModel):
    """Base of every section: frozen, no key but the known ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=False)


def report_faults(faults: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
    """Raise one error for every (place below the value at hand, message), if there are any."""
    errors = [
        InitErrorDetails(type=PydanticCustomError("fault", "{text}", {"text": text}), loc=place, input=None) for place, text in faults
    ]
    if errors:
        raise ValidationError.from_exception_data("configuration", errors)


def repeated(values: Iterable[str]) -> list[int]:
    """Places of the values that stood before."""
    seen: set[str] = set()
    places = []
    for place, value in enumerate(values):
        if value in seen:
            places.append(place)
        seen.add(value)
    return places


def empty_if_null(value: object) -> object:
    """Take a section whose keys are all commented out as an empty one."""
    return {} if value is None else value


def within(low: _NumberT, high: _NumberT) -> AfterValidator:
    """Refuse numbers outside [low, high]."""

    def check(value: _NumberT) -> _NumberT:
        if not low <= value <= high:
            raise ValueError(f"must be {low} to {high}")
        return value

    return AfterValidator(check)


def unique(what: str) -> Callable[[tuple[str, ...] | None], tuple[str, ...] | None]:
    """Refuse a list in which something (`what`, with its article) is given twice."""

    def check(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        report_faults(((place,), f"{what} is given twice") for place in repeated(values or ()))
        return values

    return check


def _check_text(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    if len(value) > MAX_TEXT_LENGTH:
        raise ValueError(f"must be at most {MAX_TEXT_LENGTH} characters")
    if _CONTROL.search(value):
        raise ValueError("must hold no control characters or lone surrogates")
    return value


def _check_path(value: str) -> str:
    if not value or "\0" in value:
        raise ValueError("must be a path")
    return value


def _check_secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text or _CONTROL.search(text):
        raise ValueError("must not be empty or hold control characters")
    return value


def parse_reference(text: str) -> tuple[str, int | None]:
    """Split NAME or NAME@NUMBER, as references are named.

    Raises:
        ValueError: It is neither.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ValueError("must be 1 to 64 of the characters A-Z a-z 0-9 _ -, and may end with @NUMBER")
    return found[1], None if found[2] is None else int(found[2])


def _check_reference(value: str) -> str:
    parse_reference(value)
    return value


def duration_ms(value: object, info: ValidationInfo) -> int:
    """Read a duration: a text with its unit, or from Python plain milliseconds."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number with a unit (ms, s, m, h or d), such as 30d, 1h or 15s")
    if info.context and value:
        raise ValueError(missing_unit(value))
    return value


def check_positive(value: int | None) -> int | None:
    """Refuse a duration of 0."""
    if value == 0:
        raise ValueError("must be longer than 0")
    return value


Text = Annotated[str, Strict(), AfterValidator(_check_text)]
PathText = Annotated[str, Strict(), AfterValidator(_check_path)]
Secret = Annotated[SecretStr, Strict(), AfterValidator(_check_secret)]
ReferenceText = Annotated[str, Strict(), AfterValidator(_check_reference)]
Count = Annotated[int, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
DurationMs = Annotated[int, BeforeValidator(duration_ms)]
PositiveMs = Annotated[DurationMs, AfterValidator(check_positive)]
