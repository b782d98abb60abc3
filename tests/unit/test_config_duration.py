from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.duration import LONGEST_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("30d", 2_592_000_000),
        ("1h", 3_600_000),
        ("90m", 5_400_000),
        ("15s", 15_000),
        ("500ms", 500),
        ("0s", 0),
        ("0", 0),
        ("36500d", LONGEST_MS),
    ],
)
def test_reads_a_number_with_a_unit(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


def test_a_number_without_a_unit_is_refused_with_the_spellings_that_may_be_meant() -> None:
    with pytest.raises(ValueError, match=r"^must have a unit: 15s, 15m, 15h or 15d$"):
        parse_duration("15")


@pytest.mark.parametrize(
    "text", ["", "none", "1.5h", "1h30m", "-1h", "+1h", " 1h", "1h ", "1 h", "1H", "1w", "h", "\u0661h", "1h\n", "9" * 16 + "d"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must be a whole number with a unit \(ms, s, m, h or d\), such as 30d, 1h or 15s$"):
        parse_duration(text)


def test_more_than_a_century_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^must be at most 36500d$"):
        parse_duration("36501d")


@given(st.integers(min_value=0, max_value=LONGEST_MS))
def test_what_is_written_reads_back(duration_ms: int) -> None:
    assert parse_duration(format_duration(duration_ms)) == duration_ms


@given(st.text())
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert 0 <= parse_duration(text) <= LONGEST_MS
