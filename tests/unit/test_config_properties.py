"""Whatever is given is a configuration or a `ConfigError`, and what is written reads back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.config import Config, HttpConfig, StateConfig
from monitor.config_file import load_config, parse_config
from monitor.config_model import CostsConfig, ModelConfig
from monitor.duration import HOUR_MS, format_duration
from monitor.errors import ConfigError

WORDS = [
    *(
        "- ",
        ": ",
        "\n  ",
        "${A}",
        "${",
        "yes",
        "1",
        "1e9",
        ".inf",
        "1h",
        "none",
        "null",
        "a",
        "\\x",
        "!!int",
        "---",
        "2026-01-01T00:00:00Z",
    ),
    *("files", "name", "length", "lag", "bins", "edges", "groups", "port", "epoch_start", "history", "horizon"),
]
YAML_SOUP = st.lists(st.sampled_from([*"{}[]:,-?&*!|>'\"%@`#~ \n\t", *WORDS, *Config.model_fields]), max_size=40).map("".join)

KEYS = [
    "name",
    "length",
    "lag",
    "port",
    "files",
    "history",
    "horizon",
    "tick",
    *Config.model_fields,
    *ModelConfig.model_fields,
    "epoch_start",
]
VALUES = ["1h", "30d", "none", "w", "mass", "2026-01-01T00:00:00Z"]
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


def _accept_or_refuse(text: str, environ: Mapping[str, str]) -> None:
    with suppress(ConfigError):
        assert isinstance(parse_config(text, "any", environ), Config)


@settings(deadline=None)
@given(st.text() | YAML_SOUP, st.sampled_from([{}, {"A": "x"}]))
def test_any_text_is_a_configuration_or_a_config_error(text: str, environ: dict[str, str]) -> None:
    _accept_or_refuse(text, environ)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(list(Config.model_fields)), DATA, max_size=4))
def test_any_tree_is_a_configuration_or_a_config_error(data: dict[str, object]) -> None:
    _accept_or_refuse(json.dumps(data), {})


@settings(deadline=None)
@given(st.sampled_from(["HTTP__PORT", "WINDOWS", "DEFAULTS__EDGES", "STATE__HISTORY", "X"]) | st.text(), st.text() | YAML_SOUP)
def test_any_override_is_taken_or_a_config_error(key: str, value: str) -> None:
    _accept_or_refuse("{}", {f"CALMON__{key}": value})


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_are_a_configuration_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    with suppress(ConfigError):
        load_config(path, {})


TEXTS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
MODELS = st.builds(
    ModelConfig,
    bins=st.integers(1, 1000),
    scheme=st.sampled_from(["width", "mass"]),
    classes=st.none() | st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(tuple),
    ood_threshold=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    ood_high_is=st.sampled_from(["in_distribution", "out_of_distribution"]),
    confidence_threshold=st.none() | st.floats(0, 1),
    groups=st.lists(TEXTS.filter(lambda text: text != "all" and not text.startswith("__")), max_size=4, unique=True).map(tuple),
    max_group_values=st.integers(1, 1000),
    min_group_count=st.integers(1, 1000),
    positive_class=st.none() | TEXTS,
    classwise=st.booleans(),
    temperature=st.booleans(),
    nll_clip=st.floats(1e-30, 0.5),
    csr_clip=st.floats(1e-6, 0.5),
    costs=st.builds(CostsConfig, error=st.floats(0, 1e9), handoff=st.floats(0, 1e9), human_error=st.floats(0, 1)),
) | st.lists(st.floats(0, 1), min_size=2, max_size=5, unique=True).map(lambda edges: ModelConfig(edges=tuple(sorted(edges))))


@settings(deadline=None)
@given(st.dictionaries(TEXTS, MODELS, max_size=3), MODELS, st.integers(1, 40 * 24), st.integers(0, 65535))
def test_what_is_written_reads_back(models: dict[str, ModelConfig], defaults: ModelConfig, horizon_hours: int, port: int) -> None:
    config = Config(state=StateConfig(horizon_ms=horizon_hours * HOUR_MS), http=HttpConfig(port=port), defaults=defaults, models=models)
    written = {
        "state": {"horizon": format_duration(horizon_hours * HOUR_MS)},
        "http": {"port": port},
        "defaults": defaults.model_dump(exclude_unset=True),
        "models": {name: model.model_dump(exclude_unset=True) for name, model in models.items()},
    }
    text = json.dumps(written, ensure_ascii=True).replace("${", "$${")
    read = parse_config(text, "calmon.yaml", {})
    assert read == config
    assert [read.model(name) for name in models] == [config.model(name) for name in models]
