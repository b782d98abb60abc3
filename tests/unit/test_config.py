"""The models alone: defaults, inheritance, and what they refuse when they are made in Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import monitor.config
from monitor.config import SECTIONS, Config, HttpConfig, SourceConfig, StateConfig, WindowConfig, config_keys
from monitor.config_file import load_config, parse_config
from monitor.config_kafka import KafkaConfig
from monitor.config_model import ModelConfig
from monitor.config_revisions import RevisionsConfig
from monitor.duration import DAY_MS, HOUR_MS, MINUTE_MS

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `(?P<key>[^`]+)` \|[^|]+\| (?P<default>[^|]+) \|", re.MULTILINE)


def test_defaults() -> None:
    config = Config()
    assert config.source.files == ()
    assert config.source.follow is False
    assert config.state == StateConfig(directory="./state", horizon_ms=30 * DAY_MS, history_ms=90 * DAY_MS)
    assert config.windows == (
        WindowConfig(name="1h", length_ms=HOUR_MS, lag_ms=0),
        WindowConfig(name="24h", length_ms=24 * HOUR_MS, lag_ms=48 * HOUR_MS),
    )
    assert config.evaluation.tick_ms == 15_000
    assert config.quarantine.file is None
    assert config.http == HttpConfig(address="127.0.0.1", port=9779)
    assert config.models == {}
    model = config.model("anything")
    assert (model.bins, model.edges, model.scheme, model.classes) == (15, None, "width", None)
    assert (model.ood_threshold, model.ood_high_is, model.confidence_threshold) == (None, "in_distribution", None)
    assert (model.groups, model.max_group_values, model.epoch_start_ms) == ((), 50, None)


def test_an_empty_mapping_is_the_defaults() -> None:
    assert parse_config("{}", "test", {}) == Config()


def test_a_configuration_cannot_be_changed() -> None:
    key = "port"
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Config().http, key, 1)


def test_python_callers_give_times_in_milliseconds_under_the_attributes_names() -> None:
    assert WindowConfig(name="w", length_ms=5 * MINUTE_MS).lag_ms == 0
    assert StateConfig(horizon_ms=None).horizon_ms is None
    assert ModelConfig(epoch_start_ms=1_767_222_000_000).epoch_start_ms == 1_767_222_000_000
    with pytest.raises(ValidationError, match=r"length_ms\n.*required"):
        WindowConfig.model_validate({"name": "w", "length": "1h"})


@pytest.mark.parametrize("epoch_start_ms", [1_767_222_000_001, 0])
def test_python_callers_get_the_same_checks(epoch_start_ms: int) -> None:
    with pytest.raises(ValidationError, match="must"):
        ModelConfig(epoch_start_ms=epoch_start_ms)


def test_a_model_inherits_the_keys_it_does_not_set() -> None:
    config = Config(
        defaults=ModelConfig(bins=10, ood_threshold=0.5, groups=("region",)),
        models={"m": ModelConfig(confidence_threshold=0.8, ood_threshold=None)},
    )
    model = config.model("m")
    assert (model.bins, model.groups, model.confidence_threshold) == (10, ("region",), 0.8)
    assert model.ood_threshold is None
    assert config.model("unlisted") is config.defaults


def test_setting_a_key_to_its_default_is_setting_it() -> None:
    config = Config(defaults=ModelConfig(bins=10), models={"m": ModelConfig(bins=15)})
    assert config.model("m").bins == 15


def test_edges_of_a_model_replace_bins_and_scheme_of_the_defaults() -> None:
    model = ModelConfig(edges=(0.5, 1.0)).inherit(ModelConfig(bins=10, scheme="mass", max_group_values=3))
    assert (model.edges, model.scheme, model.max_group_values) == ((0.5, 1.0), "width", 3)


@pytest.mark.parametrize("own", [ModelConfig(bins=4), ModelConfig(scheme="mass")])
def test_bins_or_mass_of_a_model_replace_edges_of_the_defaults(own: ModelConfig) -> None:
    model = own.inherit(ModelConfig(edges=(0.5, 1.0), max_group_values=3))
    assert (model.edges, model.bins, model.scheme, model.max_group_values) == (None, own.bins, own.scheme, 3)


def test_a_model_may_take_back_the_edges_of_the_defaults() -> None:
    model = ModelConfig(edges=None).inherit(ModelConfig(edges=(0.5, 1.0)))
    assert (model.edges, model.bins) == (None, 15)


def test_other_keys_of_a_model_leave_the_edges_of_the_defaults() -> None:
    assert ModelConfig(max_group_values=3).inherit(ModelConfig(edges=(0.5, 1.0))).edges == (0.5, 1.0)


def test_equal_edges_have_equal_bytes() -> None:
    edges = ModelConfig(edges=(-0.0, 1)).edges
    assert edges is not None
    assert [edge.hex() for edge in edges] == ["0x0.0p+0", "0x1.0000000000000p+0"]


def test_every_section_lists_its_keys() -> None:
    assert set(SECTIONS) == {*Config.model_fields, "source.kafka", "defaults.costs"}
    assert {
        "source.files",
        "source.kafka.start_timeout",
        "state.horizon",
        "windows[].length",
        "http.port",
        "defaults.bins",
        "models.NAME.epoch_start",
    } <= set(config_keys())
    assert not [key for key in config_keys() if key.endswith("_ms")]


def _documented() -> dict[str, str]:
    rows = ROW.findall((DOCS / "configuration.md").read_text(encoding="utf-8"))
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_every_key_is_documented_and_no_other() -> None:
    keys = {key.removeprefix("models.NAME.") for key in config_keys() if not key.startswith("defaults.")}
    assert set(_documented()) == keys


def test_documented_defaults_are_the_defaults() -> None:
    for key, default in _documented().items():
        if default in ("needed", "not set"):
            continue
        section, _, name = key.rpartition(".") if "." in key else ("defaults", ".", key)
        text = default.strip("`")
        if section == "source.kafka":
            got_kafka = parse_config(f"source: {{kafka: {{bootstrap_servers: [a:1], {name}: {text}}}}}", "doc", {}).source.kafka
            assert got_kafka == KafkaConfig(bootstrap_servers=("a:1",)), key
        elif section == "windows[]":
            got = parse_config(f"windows: [{{name: w, length: 1h, {name}: {text}}}]", "doc", {}).windows
            assert got == (WindowConfig(name="w", length_ms=HOUR_MS),), key
        elif section == "costs":
            assert parse_config(f"defaults: {{costs: {{{name}: {text}}}}}", "doc", {}) == Config(), key
        else:
            assert parse_config(f"{section}: {{{name}: {text}}}", "doc", {}) == Config(), key


def test_keys_without_a_default_are_documented_as_such() -> None:
    documented = _documented()
    needed = {"windows[].name", "windows[].length", "source.kafka.bootstrap_servers"}
    assert {key for key, default in documented.items() if default == "needed"} == needed
    unset = {key for key in SECTIONS["models"].model_fields if getattr(ModelConfig(), key) is None}
    expected = {key.removesuffix("_ms") for key in unset} | {"quarantine.file", "quarantine.topic"}
    expected |= {f"source.kafka.{key}" for key, field in KafkaConfig.model_fields.items() if field.default is None}
    expected |= {f"revisions.{key}" for key, field in RevisionsConfig.model_fields.items() if field.default is None}
    assert {key for key, default in documented.items() if default == "not set"} == expected


def test_the_example_shows_every_key_and_loads() -> None:
    path = DOCS / "calmon.example.yaml"
    config = load_config(path, {})
    assert config.source == SourceConfig(files=("events.ndjson",))
    assert (config.state, config.windows, config.http, config.evaluation) == (
        Config().state,
        Config().windows,
        Config().http,
        Config().evaluation,
    )
    assert config.defaults == ModelConfig()
    assert config.model("employment").classes == ("no", "yes")
    text = path.read_text(encoding="utf-8")
    assert not [key for key in config_keys() if not re.search(rf"^ +(- |#  )?{key.rpartition('.')[2]}: ", text, re.MULTILINE)]


def test_the_example_loads_with_kafka_instead_of_files_too() -> None:
    text = re.sub(r"^  #(?=kafka:|  )", "  ", (DOCS / "calmon.example.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    config = parse_config(re.sub(r"^  (files|follow): .*$", "", text, flags=re.MULTILINE), "example", {})
    assert config.source == SourceConfig(kafka=KafkaConfig(bootstrap_servers=("localhost:9092",)))


def test_the_models_read_no_clock_and_no_environment() -> None:
    source = Path(monitor.config.__file__).read_text(encoding="utf-8")
    imported = {alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"time", "os", "logging"}
