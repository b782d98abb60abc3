"""Compare expected values with what the product says, and tell what it has no metric for."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Wanted = Mapping[str, Any]
"""Expected values by key: `model@version.metric`, `account.*`, or `function.name`; None where undefined."""

Found = Mapping[str, Any]
"""The product's values under the same keys."""

APPROXIMATE = ("auc", "aurc", "auroc", "aupr", "fpr_at_95tpr", "rc[")
"""Substrings of the keys of rank metrics, where an expectation does not list them itself."""

ACCOUNT = "account."
REJECTED = "account.rejected."


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a value may be off, relative to what is wanted where that is above 1.

    Attributes:
        default: Where no pattern fits.
        patterns: (substring of the key, tolerance); the first that fits holds.
        approximate: Substrings of the keys that come from ranks: these may be off by the bound that the product reports.
    """

    default: float
    patterns: Sequence[tuple[str, float]] = ()
    approximate: Sequence[str] = ()

    def allows(self, key: str, got: Any, want: Any, bound: float | None = None) -> bool:
        """Whether a value is right; counts of the account have no tolerance.

        Args:
            key: The value's.
            got: What the product says.
            want: What is expected.
            bound: The error bound that the product reports beside it.
        """
        if key.startswith(ACCOUNT) or any(one is None or isinstance(one, str) for one in (got, want)):
            return bool(got == want)
        relative = next((value for substring, value in self.patterns if substring in key), self.default)
        allowed = relative * max(1.0, abs(want))
        if bound is not None and any(substring in key for substring in self.approximate):
            allowed += bound
        return bool(abs(got - want) <= allowed)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a comparison found.

    Attributes:
        total: Keys with an expected value.
        missing: Keys that the product has no metric for, with their families.
        wrong: Got and wanted value of the keys that differ.
    """

    total: int
    missing: Mapping[str, str]
    wrong: Mapping[str, tuple[float | None, float | None]]

    def __str__(self) -> str:
        text = f"covered {self.total - len(self.missing)} of {self.total} keys"
        return f"{text}; no metric for: {', '.join(sorted(set(self.missing.values())))}" if self.missing else text


def family(key: str, models: Collection[str]) -> str:
    """Name of a metric without its model and without what stands in brackets.

    Args:
        key: Such as `m@1.bins[0].count`.
        models: Every `model@version` there is; a version may contain a point.

    >>> family("m@1.0.bins[0].count", ["m@1", "m@1.0"]), family("m@2.ece", []), family("account.rejected.missing_id", [])
    ('bins.count', 'ece', 'account.rejected.missing_id')
    """
    model = max((model for model in models if key.startswith(f"{model}.")), key=len, default=None)
    name = re.sub(r"^[^@\[]*@[^.\[]*\.", "", key) if model is None else key[len(model) + 1 :]
    return re.sub(r"\[.*\]", "", name)


def compare(want: Wanted, got: Found, models: Collection[str], known: Collection[str], tolerance: Tolerance) -> Outcome:
    """Compare every wanted key whose metric the product has.

    Args:
        want: Expected values.
        got: The product's; what is absent is undefined, or 0 for a count of the account.
        models: Every `model@version`.
        known: Families of the metrics that the product has.
        tolerance: How far values may be off.
    """
    missing: dict[str, str] = {}
    wrong: dict[str, tuple[float | None, float | None]] = {}
    for key, wanted in want.items():
        name = family(key, models)
        if name not in known and not key.startswith(REJECTED):
            missing[key] = name
            continue
        value = got.get(key, 0 if key.startswith(ACCOUNT) else None)
        if not tolerance.allows(key, value, wanted, got.get(f"{key}_bound")):
            wrong[key] = (value, wanted)
    return Outcome(len(want), missing, wrong)
