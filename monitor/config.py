"""What can be configured: frozen models with every default, and the checks that need no file.

YAML keys carry no unit (``length: 1h``), attributes do (``length_ms``). Files are read by ``monitor.config_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, Strict, ValidationInfo, field_validator

from monitor.config_kafka import KafkaConfig, Topic
from monitor.config_value import (
    Count,
    DurationMs,
    Number,
    PathText,
    PositiveMs,
    ReferenceText,
    Section,
    Text,
    check_positive,
    duration_ms,
    empty_if_null,
    repeated,
    report_faults,
    unique,
    within,
)
from monitor.duration import DAY_MS, HOUR_MS, MINUTE_MS, format_duration
from monitor.names import RESERVED_PREFIX

LONGEST_MINUTE_WINDOW_MS: Final = 6 * HOUR_MS
"""Windows up to this length move by minute panes, longer ones by hour panes."""

MAX_WINDOWS: Final = 16
MAX_GROUPS: Final = 8
MAX_BINS: Final = 1000
MIN_EDGES: Final = 2
MAX_CLASSES: Final = 1000
MAX_GROUP_VALUES: Final = 1000
MAX_GROUP_COUNT: Final = 1_000_000
PRIOR_TOLERANCE: Final = 1e-6
MAX_COST: Final = 1_000_000_000
SHORTEST_TICK_MS: Final = 100
FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 2099

_WINDOW_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")
_RFC3339: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")


def _duration_or_none(value: object, info: ValidationInfo) -> int | None:
    if value == "none" or (value is None and not info.context):
        return None
    if value is None:
        raise ValueError("must be a duration, or the word none for no limit")
    return duration_ms(value, info)


def _check_tick(value: int) -> int:
    if not SHORTEST_TICK_MS <= value <= HOUR_MS:
        raise ValueError(f"must be {format_duration(SHORTEST_TICK_MS)} to {format_duration(HOUR_MS)}")
    return value


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


HorizonMs = Annotated[int | None, BeforeValidator(_duration_or_none), AfterValidator(check_positive)]


_DEFAULT_HISTORY: Any = "90d"
"""As it is written, for it is validated like what people write: a longer horizon may ask for more."""


def _empty_from_file(value: object, info: ValidationInfo) -> object:
    return {} if value is None and info.context else value


class SourceConfig(Section):
    """Where events come from: `files`, read in the order given (``-`` is standard input), or Kafka, never both."""

    files: Annotated[tuple[PathText, ...], AfterValidator(unique("the file"))] = ()
    follow: Annotated[bool, Strict()] = False
    kafka: Annotated[KafkaConfig | None, BeforeValidator(_empty_from_file)] = None

    @field_validator("kafka")
    @classmethod
    def _kafka_or_files(cls, kafka: KafkaConfig | None, info: ValidationInfo) -> KafkaConfig | None:
        if kafka is not None and info.data.get("files"):
            raise ValueError("cannot stand beside files: leave one of the two out")
        if kafka is not None and info.data.get("follow"):
            raise ValueError("cannot stand beside follow, which is for files: a topic is always followed")
        return kafka


class StateConfig(Section):
    """Where state is kept and for how long; `horizon_ms` None means that nothing expires, whatever `history_ms` says."""

    directory: PathText = "./state"
    horizon_ms: HorizonMs = Field(default=30 * DAY_MS, validation_alias="horizon")
    history_ms: PositiveMs = Field(default=_DEFAULT_HISTORY, validation_alias="history", validate_default=True)

    @field_validator("history_ms")
    @classmethod
    def _history_covers_horizon(cls, history_ms: int, info: ValidationInfo) -> int:
        horizon_ms = info.data.get("horizon_ms")
        if horizon_ms is not None and history_ms < (needed_ms := 2 * horizon_ms + 3 * DAY_MS):
            raise ValueError(_too_short(history_ms, needed_ms, f"2 x horizon {format_duration(horizon_ms)} + 3d"))
        return history_ms


def _too_short(history_ms: int, needed_ms: int, rule: str) -> str:
    short = format_duration(needed_ms - history_ms)
    return f"history {format_duration(history_ms)} is too short by {short}: it must be at least {format_duration(needed_ms)} ({rule})"


class WindowConfig(Section):
    """A run of panes ``[now - lag - length, now - lag)``, ends floored to its pane (minute up to 6 h, else hour)."""

    name: Annotated[str, Strict()]
    length_ms: PositiveMs = Field(validation_alias="length")
    lag_ms: DurationMs = Field(default=0, validation_alias="lag")

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _WINDOW_NAME.fullmatch(name):
            raise ValueError("must be 1 to 32 of the characters A-Z a-z 0-9 _ . -")
        return name

    @field_validator("length_ms", "lag_ms")
    @classmethod
    def _check_whole_panes(cls, value: int, info: ValidationInfo) -> int:
        length_ms = value if info.field_name == "length_ms" else info.data.get("length_ms")
        by_minutes = length_ms is not None and length_ms <= LONGEST_MINUTE_WINDOW_MS
        if length_ms is not None and value % (MINUTE_MS if by_minutes else HOUR_MS):
            raise ValueError("must be whole minutes (window up to 6h)" if by_minutes else "must be whole hours (window longer than 6h)")
        return value


class EvaluationConfig(Section):
    """How often windows move and gauges are computed, and which families of metrics are exported beside the usual ones."""

    tick_ms: Annotated[DurationMs, AfterValidator(_check_tick)] = Field(default=15_000, validation_alias="tick")
    families: Annotated[tuple[Text, ...], AfterValidator(unique("the family"))] = ()


def _check_maturity(value: int) -> int:
    if value % HOUR_MS or value == 0:
        raise ValueError("must be whole hours, at least 1h")
    return value


def _check_alpha(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError("must be greater than 0 and less than 1")
    return value


class EvidenceConfig(Section):
    """When an hour of predictions enters the evidence tests, and their level."""

    maturity_ms: Annotated[DurationMs, AfterValidator(_check_maturity)] = Field(default=48 * HOUR_MS, validation_alias="maturity")
    alpha: Annotated[Number, AfterValidator(_check_alpha)] = 0.05


class QuarantineConfig(Section):
    """Where refused records go; without `topic` and `file` to ``quarantine.ndjson`` in the state directory."""

    file: PathText | None = None
    topic: Topic | None = None


class HttpConfig(Section):
    """Where ``/metrics`` is served; `port` 0 picks a free one."""

    address: Text = "127.0.0.1"
    port: Annotated[Count, within(0, 65535)] = 9779


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


def _default_windows() -> tuple[WindowConfig, ...]:
    return (
        WindowConfig(name="1h", length_ms=HOUR_MS, lag_ms=0),
        WindowConfig(name="24h", length_ms=24 * HOUR_MS, lag_ms=48 * HOUR_MS),
    )


ModelEntry = Annotated[ModelConfig, BeforeValidator(empty_if_null)]


class Config(Section):
    """The whole configuration; without any key it watches every model with the defaults."""

    source: Annotated[SourceConfig, BeforeValidator(empty_if_null)] = SourceConfig()
    state: Annotated[StateConfig, BeforeValidator(empty_if_null)] = StateConfig()
    windows: tuple[WindowConfig, ...] = Field(default_factory=_default_windows, validate_default=True)
    evaluation: Annotated[EvaluationConfig, BeforeValidator(empty_if_null)] = EvaluationConfig()
    evidence: Annotated[EvidenceConfig, BeforeValidator(empty_if_null)] = EvidenceConfig()
    quarantine: Annotated[QuarantineConfig, BeforeValidator(empty_if_null)] = QuarantineConfig()
    http: Annotated[HttpConfig, BeforeValidator(empty_if_null)] = HttpConfig()
    defaults: ModelEntry = ModelConfig()
    models: Annotated[dict[Text, ModelEntry], BeforeValidator(empty_if_null)] = Field(default_factory=dict)

    @field_validator("quarantine")
    @classmethod
    def _check_quarantine(cls, quarantine: QuarantineConfig, info: ValidationInfo) -> QuarantineConfig:
        source = info.data.get("source")
        if quarantine.topic is None or not isinstance(source, SourceConfig):
            return quarantine
        faults = []
        if quarantine.file is not None:
            faults.append("cannot stand beside file: leave one of the two out")
        if source.kafka is None:
            faults.append("needs source.kafka, the broker that the topic is on")
        elif quarantine.topic in (source.kafka.predictions, source.kafka.labels):
            faults.append("must be another topic than those that are read")
        report_faults((("topic",), text) for text in faults[:1])
        return quarantine

    @field_validator("defaults")
    @classmethod
    def _check_defaults(cls, defaults: ModelConfig) -> ModelConfig:
        if defaults.reference is not None:
            report_faults([(("reference",), "belongs to one model: set it in models.NAME")])
        return defaults

    @field_validator("windows")
    @classmethod
    def _check_windows(cls, windows: tuple[WindowConfig, ...], info: ValidationInfo) -> tuple[WindowConfig, ...]:
        if not 1 <= len(windows) <= MAX_WINDOWS:
            raise ValueError(f"must be 1 to {MAX_WINDOWS} windows, {len(windows)} are given")
        twice = repeated(window.name for window in windows)
        faults: list[tuple[tuple[str | int, ...], str]] = [((place, "name"), "must be unique") for place in twice]
        state = info.data.get("state")
        if isinstance(state, StateConfig) and state.horizon_ms is not None:
            for place, window in enumerate(windows):
                needed_ms = window.length_ms + window.lag_ms + DAY_MS
                rule = f"length {format_duration(window.length_ms)} + lag {format_duration(window.lag_ms)} + 1d"
                if state.history_ms < needed_ms:
                    faults.append(((place,), f"state.{_too_short(state.history_ms, needed_ms, rule)}"))
        report_faults(faults)
        return windows

    def model(self, name: str) -> ModelConfig:
        """Return what holds for a model: its own keys over the defaults; the defaults alone for a model that is not listed."""
        own = self.models.get(name)
        return self.defaults if own is None else own.inherit(self.defaults)


SECTIONS: Final[Mapping[str, type[BaseModel]]] = {
    "source": SourceConfig,
    "source.kafka": KafkaConfig,
    "state": StateConfig,
    "windows": WindowConfig,
    "evaluation": EvaluationConfig,
    "evidence": EvidenceConfig,
    "quarantine": QuarantineConfig,
    "http": HttpConfig,
    "defaults": ModelConfig,
    "defaults.costs": CostsConfig,
    "models": ModelConfig,
}
"""The model that holds each section's keys: for `windows` those of an item, for `models` those of an entry."""


def section_at(place: tuple[str | int, ...]) -> str:
    """Name the section that a place below the top lies in: ``source.kafka`` for one of its keys, ``windows`` for an item's."""
    if place[0] == "models" and place[2:3] == ("costs",):
        return "defaults.costs"
    inner = ".".join(str(part) for part in place[:2])
    return inner if inner in SECTIONS else str(place[0])


def section_keys(section: str) -> list[str]:
    """List the keys of a section as they are written in YAML."""
    return [str(field.validation_alias or name) for name, field in SECTIONS[section].model_fields.items()]


def config_keys() -> list[str]:
    """List every key as a path: ``http.port``, ``source.kafka.group_id``, ``windows[].length``, ``models.NAME.bins``."""
    prefix = {"windows": "windows[]", "models": "models.NAME"}
    keys = [(section, key) for section in SECTIONS for key in section_keys(section) if f"{section}.{key}" not in SECTIONS]
    keys = [(section, key) for section, key in keys if (section, key) != ("models", "costs")]
    keys += [("models.NAME.costs", key) for key in section_keys("defaults.costs")]
    return [f"{prefix.get(section, section)}.{key}" for section, key in keys]


def _is_secret(annotation: object) -> bool:
    return annotation is SecretStr or any(_is_secret(part) for part in get_args(annotation))


SECRETS: Final = frozenset(
    (*section.split("."), name)
    for section, model in SECTIONS.items()
    for name, field in model.model_fields.items()
    if _is_secret(field.annotation)
)
"""Places of the values that no message may show."""
