"""What can be configured: frozen models with every default, and the checks that need no file.

YAML keys carry no unit (``length: 1h``), attributes do (``length_ms``). Files are read by ``monitor.config_file``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr, Strict, ValidationInfo, field_validator

from monitor.config_kafka import KafkaConfig, Topic
from monitor.config_model import CostsConfig, ModelConfig
from monitor.config_revisions import RevisionsConfig
from monitor.config_value import (
    Count,
    DurationMs,
    Number,
    PathText,
    PositiveMs,
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

LONGEST_MINUTE_WINDOW_MS: Final = 6 * HOUR_MS
"""Windows up to this length move by minute panes, longer ones by hour panes."""

MAX_WINDOWS: Final = 16
SHORTEST_TICK_MS: Final = 100

_WINDOW_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")


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
    revisions: Annotated[RevisionsConfig, BeforeValidator(empty_if_null)] = RevisionsConfig()
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
    "revisions": RevisionsConfig,
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
