"""What can be configured of a model: its bins, thresholds, groups and costs, with every default and the checks of each key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationInfo, field_validator

from monitor.config_value import Count, Number, ReferenceText, Section, Text, empty_if_null, report_faults, unique, within
from monitor.names import RESERVED_PREFIX

MAX_GROUPS: Final = 8
MAX_BINS: Final = 1000
MIN_EDGES: Final = 2
MAX_CLASSES: Final = 1000
MAX_GROUP_VALUES: Final = 1000
MAX_GROUP_COUNT: Final = 1_000_000
PRIOR_TOLERANCE: Final = 1e-6
MAX_COST: Final = 1_000_000_000
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2099
LEAST_NLL_CLIP: Final = 1e-30
LEAST_CSR_CLIP: Final = 1e-6
LARGEST_CLIP: Final = 0.5
_RFC3339: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")


def _epoch_start_ms(value: object, info: ValidationInfo) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not info.context:
        moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=value)
    elif isinstance(value, str) and _RFC3339.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError("must be a time that exists") from None
    else:
        raise ValueError("must be an RFC 3339 time with an offset, such as 2026-03-01T00:00:00Z")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}")
    if moment.minute or moment.second or moment.microsecond:
        raise ValueError("must be a whole hour of UTC")
    return int(moment.timestamp()) * 1000


def _check_groups(groups: tuple[str, ...]) -> tuple[str, ...]:
    if len(groups) > MAX_GROUPS:
        raise ValueError(f"must be at most {MAX_GROUPS} attributes, {len(groups)} are given")
    own = 'must not begin with "__": such names are calmon\'s own'
    faults = [((place,), 'must not be "all": that is the segment of everything') for place, group in enumerate(groups) if group == "all"]
    faults += [((place,), own) for place, group in enumerate(groups) if group.startswith(RESERVED_PREFIX)]
    report_faults(faults)
    return groups


def _check_edges(edges: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if edges is None:
        return None
    if not MIN_EDGES <= len(edges) <= MAX_BINS + 1:
        raise ValueError(f"must be {MIN_EDGES} to {MAX_BINS + 1} edges, {len(edges)} are given")
    outside = [((place,), "must be 0 to 1") for place, edge in enumerate(edges) if not 0 <= edge <= 1]
    pairs = enumerate(pairwise(edges), start=1)
    falling = [((place,), "must be greater than the edge before it") for place, (before, edge) in pairs if not before < edge]
    report_faults(outside + falling)
    return tuple(edge + 0.0 for edge in edges)  # turns -0.0 into 0.0: equal edges must have equal bytes in the fingerprint


def _check_prior(prior: Mapping[str, float]) -> Mapping[str, float]:
    if prior and abs(sum(prior.values()) - 1) > PRIOR_TOLERANCE:
        raise ValueError(f"must be shares of classes that sum to 1, they sum to {sum(prior.values()):g}")
    return prior


class CostsConfig(Section):
    """What decisions cost, in any one unit: an accepted error, a prediction handed to people, and how often these are wrong."""

    error: Annotated[Number, within(0, MAX_COST)] = 1.0
    handoff: Annotated[Number, within(0, MAX_COST)] = 0.0
    human_error: Annotated[Number, within(0, 1)] = 0.0


class ModelConfig(Section):
    """What calmon has to know of a model; `edges` or `bins`, never both: with `edges` set, `bins` has no meaning."""

    edges: Annotated[tuple[Number, ...] | None, AfterValidator(_check_edges)] = None
    bins: Annotated[Count, within(1, MAX_BINS)] = 15
    scheme: Literal["width", "mass"] = "width"
    classes: Annotated[tuple[Text, ...] | None, AfterValidator(unique("the class"))] = None
    ood_threshold: Number | None = None
    ood_high_is: Literal["in_distribution", "out_of_distribution"] = "in_distribution"
    confidence_threshold: Annotated[Number, within(0, 1)] | None = None
    selective_risk_budget: Annotated[Number, within(0, 1)] | None = None
    groups: Annotated[tuple[Text, ...], AfterValidator(_check_groups), AfterValidator(unique("the attribute"))] = ()
    max_group_values: Annotated[Count, within(1, MAX_GROUP_VALUES)] = 50
    min_group_count: Annotated[Count, within(1, MAX_GROUP_COUNT)] = 30
    positive_class: Text | None = None
    positive_edges: Annotated[tuple[Number, ...] | None, AfterValidator(_check_edges)] = None
    classwise: Annotated[bool, Strict()] = False
    temperature: Annotated[bool, Strict()] = False
    nll_clip: Annotated[Number, within(LEAST_NLL_CLIP, LARGEST_CLIP)] = 1e-12
    csr_clip: Annotated[Number, within(LEAST_CSR_CLIP, LARGEST_CLIP)] = 1e-6
    target_prior: Annotated[Mapping[Text, Annotated[Number, within(0, 1)]], AfterValidator(_check_prior)] = Field(default_factory=dict)
    costs: Annotated[CostsConfig, BeforeValidator(empty_if_null)] = CostsConfig()
    reference: ReferenceText | None = None
    epoch_start_ms: Annotated[int | None, BeforeValidator(_epoch_start_ms)] = Field(default=None, validation_alias="epoch_start")

    @field_validator("bins")
    @classmethod
    def _bins_or_edges(cls, bins: int, info: ValidationInfo) -> int:
        # Defaults are not validated, so this runs only where bins is set; `edges` comes first and is known here.
        if info.data.get("edges") is not None:
            raise ValueError("cannot stand beside edges: leave one of the two out")
        return bins

    @field_validator("scheme")
    @classmethod
    def _mass_or_edges(cls, scheme: str, info: ValidationInfo) -> str:
        if scheme == "mass" and info.data.get("edges") is not None:
            raise ValueError("must be width beside edges, which fix the bins")
        return scheme

    @field_validator("classes")
    @classmethod
    def _check_classes(cls, classes: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if classes is not None and not 1 <= len(classes) <= MAX_CLASSES:
            raise ValueError(f"must be 1 to {MAX_CLASSES} classes, {len(classes)} are given")
        return classes

    def inherit(self, base: ModelConfig) -> ModelConfig:
        """Fill every key that is not set here from `base`; how bins are made (`edges`, or `bins` and `scheme`) is taken as one choice."""
        own = {key: getattr(self, key) for key in self.model_fields_set}
        dropped = set(own)
        if self.edges is not None:
            dropped |= {"bins", "scheme"}
        elif "bins" in own or self.scheme == "mass":
            dropped.add("edges")
        return ModelConfig(**own, **{key: getattr(base, key) for key in base.model_fields_set - dropped})
