"""The split of ids into a half that fits and a half that reports: the same for every version, run and machine.

Source: FORMULAS section 8, "Temperature".
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

SALT = "split"
FRACTION = 0.5
"""Share of the ids in the half that fits."""

_SPACE = 1 << 64


def fits(prediction_id: str, salt: str = SALT, fraction: float = FRACTION) -> bool:
    """Whether an id is in the half that fits: u < fraction, u = the first 8 bytes of sha256(salt, 0x1f, id) over 2^64.

    Args:
        prediction_id: The id.
        salt: Names the split.
        fraction: Share that fits, in [0, 1]; compared exactly.
    """
    digest = hashlib.sha256(f"{salt}\x1f{prediction_id}".encode()).digest()
    return Fraction(int.from_bytes(digest[:8], "big"), _SPACE) < Fraction(fraction)
