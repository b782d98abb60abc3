"""What evaluation asks of a model's configuration, beside the layout: it changes no sum, only what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Costs and least counts of a model.

    Attributes:
        error_cost: Cost of an accepted error.
        handoff_cost: Cost of handing one prediction to people.
        human_error: How often people are wrong on what is handed to them.
        min_group_count: Least events for a group value, or a cell of one, to enter what is said about groups.
        positive_class: The class whose own probability is watched, or None.
        target_prior: Classes and the shares that they are reweighted to; empty for no reweighting.
        selective_risk_budget: Selective risk that is allowed, or None.
    """

    error_cost: float = 1.0
    handoff_cost: float = 0.0
    human_error: float = 0.0
    min_group_count: int = 30
    positive_class: str | None = None
    target_prior: tuple[tuple[str, float], ...] = ()
    selective_risk_budget: float | None = None


SettingsOf = Callable[[str], Settings]
"""Settings of a model."""

VersionName = tuple[str, str]
"""Model and version."""
