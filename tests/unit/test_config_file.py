"""Configuration files: what is read, from the file and from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from monitor.config import Config, HttpConfig, SourceConfig, StateConfig, WindowConfig
from monitor.config_file import load_config, parse_config
from monitor.config_model import ModelConfig
from monitor.duration import DAY_MS, HOUR_MS, MINUTE_MS
from monitor.errors import ConfigError


def faults_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "calmon.yaml", environ or {})
    assert caught.value.exit_code == 2
    assert caught.value.origin == "calmon.yaml"
    return caught.value.faults


class TestReading:
    def test_a_whole_file(self) -> None:
        text = """
source: {files: [a.ndjson, "-"], follow: yes}
state: {directory: /var/lib/calmon, horizon: none, history: 1d}
windows:
  - {name: 5m, length: 5m}
  - {name: 7d, length: 7d, lag: 48h}
evaluation: {tick: 500ms}
quarantine: {file: refused.ndjson}
http: {address: "::1", port: 0}
defaults: {bins: 10, groups: [region], epoch_start: 2026-01-01T01:00:00+01:00}
models:
  flights: {edges: [0, 0.5, 1], ood_threshold: -1e-3, ood_high_is: out_of_distribution, confidence_threshold: 1}
  "yes": {classes: ["no", "yes"]}
  plain:
"""
        config = parse_config(text, "calmon.yaml", {})
        assert config.source == SourceConfig(files=("a.ndjson", "-"), follow=True)
        assert config.state == StateConfig(directory="/var/lib/calmon", horizon_ms=None, history_ms=DAY_MS)
        assert config.windows == (
            WindowConfig(name="5m", length_ms=5 * MINUTE_MS),
            WindowConfig(name="7d", length_ms=7 * DAY_MS, lag_ms=48 * HOUR_MS),
        )
        assert config.evaluation.tick_ms == 500
        assert config.quarantine.file == "refused.ndjson"
        assert config.http == HttpConfig(address="::1", port=0)
        assert config.model("plain") == config.defaults
        assert config.model("yes").classes == ("no", "yes")
        flights = config.model("flights")
        assert (flights.edges, flights.ood_threshold, flights.confidence_threshold) == ((0.0, 0.5, 1.0), -0.001, 1.0)
        assert (flights.ood_high_is, flights.groups, flights.epoch_start_ms) == ("out_of_distribution", ("region",), 1_767_225_600_000)

    @pytest.mark.parametrize("section", list(Config.model_fields.keys() - {"windows"}))
    def test_a_section_without_keys_has_its_defaults(self, section: str) -> None:
        assert parse_config(f"{section}:", "calmon.yaml", {}) == Config()

    def test_none_keeps_everything_so_history_may_be_short(self) -> None:
        assert parse_config("state: {horizon: none, history: 1d}", "calmon.yaml", {}).state.history_ms == DAY_MS

    def test_the_shortest_history_that_does(self) -> None:
        config = parse_config("state: {horizon: 1h, history: 74h}\nwindows: [{name: w, length: 49h, lag: 1h}]", "calmon.yaml", {})
        assert config.state.history_ms == 74 * HOUR_MS


class TestEnvironment:
    def test_names_in_texts_are_replaced_once(self) -> None:
        text = 'state: {directory: "${HOME}/${HOME}$${HOME}", horizon: "${HORIZON}"}\nhttp: {address: $HOST}'
        config = parse_config(text, "calmon.yaml", {"HOME": "/${X}", "HORIZON": "10d"})
        assert (config.state.directory, config.state.horizon_ms) == ("/${X}//${X}${HOME}", 10 * DAY_MS)
        assert config.http.address == "$HOST"

    def test_keys_are_not_replaced(self) -> None:
        assert list(parse_config('models: {"${A}": {}}', "calmon.yaml", {}).models) == ["${A}"]

    @pytest.mark.parametrize(
        ("value", "fault"),
        [
            ("${TOKEN}", "the environment variable TOKEN is not set"),
            ("${}", "${} names no environment variable; write $${ for ${ itself"),
            ("${A B}", "${A B} names no environment variable; write $${ for ${ itself"),
            ("x${A", "${A names no environment variable; write $${ for ${ itself"),
        ],
    )
    def test_what_cannot_be_replaced_is_a_fault(self, value: str, fault: str) -> None:
        assert faults_of(f"state:\n  directory: {value}") == [f"state.directory: {fault} (line 2)"]

    def test_each_missing_name_is_a_fault_of_its_own(self) -> None:
        assert len(faults_of("state:\n  directory: ${A}${B}")) == 2

    def test_values_from_the_environment_are_not_shown(self) -> None:
        faults = faults_of("evaluation:\n  tick: ${TICK}", {"TICK": "secret"})
        assert "secret" not in faults[0]
        assert ", got ${TICK}; set CALMON__EVALUATION__TICK" in faults[0]

    def test_a_number_is_set_by_its_own_variable(self) -> None:
        hint = "set CALMON__HTTP__PORT to take it from the environment"
        expected = f"http.port: must be a whole number in plain digits, got ${{PORT}}; {hint} (line 2)"
        assert faults_of("http:\n  port: ${PORT}", {"PORT": "9000"}) == [expected]

    def test_braces_inside_braces_get_a_hint(self) -> None:
        assert "; quote a text with ${NAME} where braces or brackets are open" in faults_of("state: {directory: ${A}}")[0]

    def test_overrides_take_the_place_of_the_file(self) -> None:
        environ = {
            "CALMON__HTTP__PORT": "9000",
            "CALMON__STATE__HORIZON": "none",
            "CALMON__SOURCE__FOLLOW": "true",
            "CALMON__DEFAULTS__GROUPS": "[region, device]",
            "CALMON__DEFAULTS__OOD_THRESHOLD": "",
            "CALMON__WINDOWS": "[{name: w, length: 2h}]",
            "CALMON_OTHER": "left alone",
        }
        config = parse_config("http: {port: 1, address: localhost}\nstate:\ndefaults: {ood_threshold: 3}", "calmon.yaml", environ)
        assert config.http == HttpConfig(address="localhost", port=9000)
        assert config.state.horizon_ms is None
        assert config.source.follow is True
        assert config.defaults == ModelConfig(groups=("region", "device"))
        assert config.windows == (WindowConfig(name="w", length_ms=2 * HOUR_MS),)

    @pytest.mark.parametrize(
        ("variable", "value", "fault"),
        [
            ("CALMON__HTTP__PORT", "x", "http.port: must be a whole number in plain digits, got x (CALMON__HTTP__PORT)"),
            ("CALMON__STATE__DIRECTORY", "", "state.directory: must be a text, got no value (CALMON__STATE__DIRECTORY)"),
            (
                "CALMON__HTTP__ADDRESS",
                "1",
                'http.address: must be a text, but YAML reads 1 as a number; quote it: "1" (CALMON__HTTP__ADDRESS)',
            ),
            ("CALMON__HTTP__ADDRESS", "[", None),
            ("CALMON__HTTP__ADDRESS", "&a x", "http.address: YAML anchors (&a) are not supported: leave it out (CALMON__HTTP__ADDRESS)"),
            ("CALMON__HTTP", "{port: 1}", "CALMON__HTTP: no key has this name; did you mean CALMON__HTTP__PORT? (environment)"),
            ("CALMON__http__port", "1", "CALMON__http__port: no key has this name (environment)"),
            ("CALMON__", "1", "CALMON__: no key has this name; did you mean CALMON__WINDOWS? (environment)"),
            (
                "CALMON__MODELS__A__BINS",
                "1",
                "CALMON__MODELS__A__BINS: the keys of single models can be set in the file only (environment)",
            ),
            ("CALMON__WINDOWS", "[{name: w, length: 1}]", "windows[0].length: must have a unit: 1s, 1m, 1h or 1d, got 1 (CALMON__WINDOWS)"),
        ],
    )
    def test_an_override_that_does_not_fit_is_a_fault(self, variable: str, value: str, fault: str | None) -> None:
        faults = faults_of("{}", {variable: value})
        assert len(faults) == 1
        if fault is None:
            assert faults[0].startswith("http.address: not YAML: ")
            assert faults[0].endswith("(CALMON__HTTP__ADDRESS)")
        else:
            assert faults == [fault]

    def test_an_override_does_not_mend_a_section_that_is_none(self) -> None:
        assert faults_of("http: 3", {"CALMON__HTTP__PORT": "1"}) == ["http: must be a mapping of keys, got 3 (line 1)"]


class TestFiles:
    def test_a_file_is_read_with_the_environment_of_the_process(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "calmon.yaml"
        path.write_text("\ufeffhttp: {port: 1}\n", encoding="utf-8")
        monkeypatch.setenv("CALMON__HTTP__PORT", "9001")
        assert load_config(path).http.port == 9001
        assert load_config(str(path), {}).http.port == 1

    def test_a_missing_file(self, tmp_path: Path) -> None:
        path = tmp_path / "none.yaml"
        with pytest.raises(ConfigError) as caught:
            load_config(path, {})
        assert (caught.value.faults, caught.value.origin) == (["no such file"], str(path))

    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            (b"a: 1\nb: \xff", "not UTF-8 text (line 2)"),
            (b"\xff" * ((1 << 20) + 1), "larger than 1 MiB"),
            (b"", "the file is empty; {} is the configuration with every default"),
        ],
    )
    def test_a_file_that_cannot_be_used(self, tmp_path: Path, content: bytes, fault: str) -> None:
        path = tmp_path / "calmon.yaml"
        path.write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_config(path, {})
        assert caught.value.faults == [fault]

    def test_a_directory_or_an_impossible_path(self, tmp_path: Path) -> None:
        for path, fault in ((str(tmp_path), "cannot be read: Is a directory"), ("a\0b", "cannot be read: embedded null byte")):
            with pytest.raises(ConfigError) as caught:
                load_config(path, {})
            assert caught.value.faults == [fault]
