"""The split of ids against its definition, computed in whole numbers, and against the one that `temperature` has."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.metrics.temperature import split_of
from monitor.statistics.split import FRACTION, SALT, fits

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def uniform(name: str, salt: str) -> Fraction:
    return Fraction(int(hashlib.sha256(salt.encode() + b"\x1f" + name.encode()).hexdigest()[:16], 16), 2**64)


@given(name=NAMES, salt=NAMES, fraction=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 5e-324])))
def test_an_id_fits_where_its_hash_is_below_the_fraction(name: str, salt: str, fraction: float) -> None:
    assert fits(name, salt, fraction) == (uniform(name, salt) < Fraction(fraction))
    assert split_of([name], salt, fraction) == ["cal" if fits(name, salt, fraction) else "eval"]


@given(name=NAMES)
def test_the_fraction_itself_does_not_fit(name: str) -> None:
    """Compared exactly: doubles next to the hash lie on their own sides of it."""
    exact = uniform(name, SALT)
    nearest = float(exact)
    assert fits(name, SALT, nearest) == (exact < Fraction(nearest))


def test_nobody_all_and_half() -> None:
    names = [f"em-{number:06}" for number in range(20_000)]
    assert not any(fits(name, SALT, 0.0) for name in names)
    assert all(fits(name, SALT, 1.0) for name in names)
    assert FRACTION == 0.5
    share = sum(fits(name) for name in names) / len(names)
    assert share == pytest.approx(0.5, abs=4 * 0.5 / len(names) ** 0.5)
