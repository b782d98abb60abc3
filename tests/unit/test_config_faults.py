"""Every kind of fault in a configuration file, with its words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from monitor.config_file import parse_config
from monitor.errors import ConfigError


def faults_of(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "calmon.yaml", environ or {})
    assert caught.value.exit_code == 2
    assert caught.value.origin == "calmon.yaml"
    return caught.value.faults


ONE_FAULT = {
    # The text as a whole
    "": "the file is empty; {} is the configuration with every default",
    "# only a comment\n": "the file is empty; {} is the configuration with every default",
    "a: b: c": "not YAML: mapping values are not allowed here (line 1)",
    "x:\n\t- 1": "not YAML: while scanning for the next token found character '\\t' that cannot start any token (line 2)",
    "a: 1\nb: \x07": "not YAML: the character U+0007 is not allowed (line 2)",
    'a: "\\U00110000"': "not YAML: an escape or a version number is out of range",
    "- http": "must be a mapping of keys at the top, got a list (line 1)",
    "http": "must be a mapping of keys at the top, got http (line 1)",
    "{}\n---\n{}": "more than one YAML document (line 2)",
    "a: " + "[" * 16: "nested deeper than 16 levels (line 1)",
    " " * (1 << 20) + "{}": "larger than 1 MiB",
    # YAML that is refused
    "http: {port: 1}\nstate: {}\nhttp: {port: 2}": "http: this key is given twice, first on line 1 (line 3)",
    "http: &a {port: 1}": "http: YAML anchors (&a) are not supported: leave it out (line 1)",
    "http: *a": "http: YAML aliases (*a) are not supported: write the value out (line 1)",
    "*a": "YAML aliases (*a) are not supported: write the value out (line 1)",
    "http: !!map {port: 1}": "http: YAML tags (tag:yaml.org,2002:map) are not supported: leave it out (line 1)",
    "http: {!x port: 1}": "http.port: YAML tags (!x) are not supported: leave it out (line 1)",
    "models: {? [a] : {}}": "models: a key must be a text (line 1)",
    "<<: {http: 1}": '"<<": unknown key; known here: source, state, windows, evaluation, evidence, revisions, quarantine, '
    "http, defaults, models (line 1)",
    # Unknown keys
    "htpp: {}": "htpp: unknown key; did you mean http? (line 1)",
    "port: 1": "port: unknown key; did you mean http.port? (line 1)",
    "models:\n  flights:\n    bin: 3": "models.flights.bin: unknown key; did you mean bins? (line 3)",
    "http: {zzz: 1}": "http.zzz: unknown key; known here: address, port (line 1)",
    "windows: [{name: w, length: 1h, length_ms: 5}]": "windows[0].length_ms: unknown key; did you mean length? (line 1)",
    # Texts that YAML takes for something else
    "models: {yes: {}}": 'models.yes: must be a text, but YAML reads yes as true; quote it: "yes" (line 1)',
    "models: {1: {}}": 'models.1: must be a text, but YAML reads 1 as a number; quote it: "1" (line 1)',
    "models: {null: {}}": 'models.null: must be a text, but YAML reads null as no value; quote it: "null" (line 1)',
    "models: {? : {}}": 'models."": must be a text, but YAML reads this as no value; quote it: "" (line 1)',
    "defaults: {classes: [a, no]}": 'defaults.classes[1]: must be a text, but YAML reads no as false; quote it: "no" (line 1)',
    "defaults: {classes: [off]}": 'defaults.classes[0]: must be a text, but YAML reads off as false; quote it: "off" (line 1)',
    "defaults: {groups: [on]}": 'defaults.groups[0]: must be a text, but YAML reads on as true; quote it: "on" (line 1)',
    "defaults: {groups: [010]}": 'defaults.groups[0]: must be a text, but YAML reads 010 as a number; quote it: "010" (line 1)',
    "defaults: {groups: [1e3]}": 'defaults.groups[0]: must be a text, but YAML reads 1e3 as a number; quote it: "1e3" (line 1)',
    "windows: [{name: 1, length: 1h}]": 'windows[0].name: must be a text, but YAML reads 1 as a number; quote it: "1" (line 1)',
    "state: {directory: ~}": 'state.directory: must be a text, but YAML reads ~ as no value; quote it: "~" (line 1)',
    "state: {directory: }": "state.directory: must be a text, got no value (line 1)",
    # Kinds of values
    "http: 3": "http: must be a mapping of keys, got 3 (line 1)",
    "models: [a]": "models: must be a mapping of keys, got a list (line 1)",
    "models: {a: b}": "models.a: must be a mapping of keys, got b (line 1)",
    "source: {files: a.ndjson}": "source.files: must be a list, got a.ndjson (line 1)",
    "windows: {name: w}": "windows: must be a list, got a mapping (line 1)",
    "source: {follow: 'yes'}": 'source.follow: must be true or false, got "yes" (line 1)',
    "http: {port: '9779'}": 'http.port: must be a whole number in plain digits, got "9779" (line 1)',
    "http: {port: 017}": "http.port: must be a whole number in plain digits, got 017 (line 1)",
    "http: {port: 9_779}": "http.port: must be a whole number in plain digits, got 9_779 (line 1)",
    "http: {port: yes}": "http.port: must be a whole number in plain digits, got yes (line 1)",
    "http: {port: [1]}": "http.port: must be a whole number in plain digits, got a list (line 1)",
    "defaults: {ood_threshold: high}": "defaults.ood_threshold: must be a finite number, got high (line 1)",
    "defaults: {ood_threshold: .inf}": "defaults.ood_threshold: must be a finite number, got .inf (line 1)",
    "defaults: {ood_threshold: 1e999}": "defaults.ood_threshold: must be a finite number, got 1e999 (line 1)",
    "defaults: {edges: [0, .nan]}": "defaults.edges[1]: must be a finite number, got .nan (line 1)",
    # Ranges
    "http: {port: 65536}": "http.port: must be 0 to 65535, got 65536 (line 1)",
    "defaults: {bins: 0}": "defaults.bins: must be 1 to 1000, got 0 (line 1)",
    "defaults: {max_group_values: 1001}": "defaults.max_group_values: must be 1 to 1000, got 1001 (line 1)",
    "defaults: {confidence_threshold: 80}": "defaults.confidence_threshold: must be 0 to 1, got 80 (line 1)",
    "defaults: {scheme: mas}": "defaults.scheme: must be width or mass, got mas (line 1)",
    "defaults: {ood_high_is: id}": "defaults.ood_high_is: must be in_distribution or out_of_distribution, got id (line 1)",
    "defaults: {edges: [0.5]}": "defaults.edges: must be 2 to 1001 edges, 1 are given (line 1)",
    "defaults: {edges: [0.5, 1.5]}": "defaults.edges[1]: must be 0 to 1, got 1.5 (line 1)",
    "defaults: {edges: [0.5, 0.5]}": "defaults.edges[1]: must be greater than the edge before it, got 0.5 (line 1)",
    "defaults: {edges: [0, 1], bins: 3}": "defaults.bins: cannot stand beside edges: leave one of the two out (line 1)",
    "defaults: {edges: [0, 1], scheme: mass}": "defaults.scheme: must be width beside edges, which fix the bins, got mass (line 1)",
    "defaults: {classes: []}": "defaults.classes: must be 1 to 1000 classes, 0 are given (line 1)",
    "defaults: {classes: [a, a]}": "defaults.classes[1]: the class is given twice (line 1)",
    "defaults: {groups: [a, b, a]}": "defaults.groups[2]: the attribute is given twice (line 1)",
    "defaults: {groups: [all]}": 'defaults.groups[0]: must not be "all": that is the segment of everything, got all (line 1)',
    "defaults: {groups: [a, b, c, d, e, f, g, h, i]}": "defaults.groups: must be at most 8 attributes, 9 are given (line 1)",
    'defaults: {groups: [""]}': 'defaults.groups[0]: must not be empty, got "" (line 1)',
    'models: {"": {}}': 'models."": must not be empty (line 1)',
    'models: {"\\ud83d\\ude00": {bins: 0}}': 'models."\U0001f600".bins: must be 1 to 1000, got 0 (line 1)',
    'models: {"a\\ud83d": {}}': 'models."a\ufffd": must hold no lone surrogates (line 1)',
    'http: {address: "\\ude00"}': "http.address: must hold no lone surrogates (line 1)",
    'models: {"a\\tb": {}}': 'models."a\\tb": must hold no control characters or lone surrogates (line 1)',
    "models: {" + "m" * 257 + ": {}}": f'models."{"m" * 60}...": must be at most 256 characters (line 1)',
    "models: {a.b: {bins: 0}}": 'models."a.b".bins: must be 1 to 1000, got 0 (line 1)',
    "source: {files: [a, a]}": "source.files[1]: the file is given twice (line 1)",
    'source: {files: [""]}': 'source.files[0]: must be a path, got "" (line 1)',
    # Durations and times
    "evaluation: {tick: 15}": "evaluation.tick: must have a unit: 15s, 15m, 15h or 15d, got 15 (line 1)",
    "evaluation: {tick: '15'}": 'evaluation.tick: must have a unit: 15s, 15m, 15h or 15d, got "15" (line 1)',
    "evaluation: {tick: 1.5h}": (
        "evaluation.tick: must be a whole number with a unit (ms, s, m, h or d), such as 30d, 1h or 15s, got 1.5h (line 1)"
    ),
    "evaluation: {tick: yes}": (
        "evaluation.tick: must be a whole number with a unit (ms, s, m, h or d), such as 30d, 1h or 15s, got yes (line 1)"
    ),
    "evaluation: {tick: 99ms}": "evaluation.tick: must be 100ms to 1h, got 99ms (line 1)",
    "state: {horizon: 0}": "state.horizon: must be longer than 0, got 0 (line 1)",
    "state: {horizon: }": "state.horizon: must be a duration, or the word none for no limit, got no value (line 1)",
    "state: {history: 36501d}": "state.history: must be at most 36500d, got 36501d (line 1)",
    "defaults: {epoch_start: 2026-01-01}": (
        "defaults.epoch_start: must be an RFC 3339 time with an offset, such as 2026-03-01T00:00:00Z, got 2026-01-01 (line 1)"
    ),
    "defaults: {epoch_start: 1767222000000}": (
        "defaults.epoch_start: must be an RFC 3339 time with an offset, such as 2026-03-01T00:00:00Z, got 1767222000000 (line 1)"
    ),
    "defaults: {epoch_start: 2026-02-30T00:00:00Z}": (
        "defaults.epoch_start: must be a time that exists, got 2026-02-30T00:00:00Z (line 1)"
    ),
    "defaults: {epoch_start: 1999-12-31T23:00:00Z}": (
        "defaults.epoch_start: must lie in the years 2000 to 2099, got 1999-12-31T23:00:00Z (line 1)"
    ),
    "defaults: {epoch_start: 2026-01-01T00:00:00+05:30}": (
        "defaults.epoch_start: must be a whole hour of UTC, got 2026-01-01T00:00:00+05:30 (line 1)"
    ),
    # Revisions
    "revisions: {every: 999ms}": "revisions.every: must be at least 1s, got 999ms (line 1)",
    "revisions: {threshold: 1.5}": "revisions.threshold: must be 0.0 to 1.0, got 1.5 (line 1)",
    "revisions: {prometheus: localhost:9090}": (
        "revisions.prometheus: must begin with http:// or https:// and a host, got localhost:9090 (line 1)"
    ),
    "revisions: {bearer_token_file: b}": "revisions.bearer_token_file: needs prometheus, the server that it is for (line 1)",
    "revisions: {prometheus: 'http://a..b'}": (
        'revisions.prometheus: must name a host whose parts between dots have 1 to 63 characters, got "http://a..b" (line 1)'
    ),
    "revisions: {prometheus: 'http://a', username: 'b:c', password_file: d}": (
        'revisions.username: must be one line of text without a colon, which would end the name, got "b:c" (line 1)'
    ),
    "revisions: {prometheus: 'http://a', username: b}": "revisions.password_file: username and password_file go together (line 1)",
    # Windows and history
    "windows: []": "windows: must be 1 to 16 windows, 0 are given (line 1)",
    "windows: [{name: w}]": "windows[0].length: this key is needed (line 1)",
    "windows: [{name: a b, length: 1h}]": "windows[0].name: must be 1 to 32 of the characters A-Z a-z 0-9 _ . -, got a b (line 1)",
    "windows: [{name: w, length: 0s}]": "windows[0].length: must be longer than 0, got 0s (line 1)",
    "windows: [{name: w, length: 90s}]": "windows[0].length: must be whole minutes (window up to 6h), got 90s (line 1)",
    "windows: [{name: w, length: 390m}]": "windows[0].length: must be whole hours (window longer than 6h), got 390m (line 1)",
    "windows: [{name: w, length: 6h, lag: 1s}]": "windows[0].lag: must be whole minutes (window up to 6h), got 1s (line 1)",
    "windows: [{name: w, length: 7h, lag: 1m}]": "windows[0].lag: must be whole hours (window longer than 6h), got 1m (line 1)",
    "windows:\n- {name: w, length: 1h}\n- {name: w, length: 2h}": "windows[1].name: must be unique, got w (line 3)",
    "state: {history: 62d}": ("state.history: history 62d is too short by 1d: it must be at least 63d (2 x horizon 30d + 3d) (line 1)"),
    "state:\n  horizon: 44d": ("state.history: history 90d is too short by 1d: it must be at least 91d (2 x horizon 44d + 3d) (line 1)"),
    "windows:\n- name: w\n  length: 60d\n  lag: 30d": (
        "windows[0]: state.history 90d is too short by 1d: it must be at least 91d (length 60d + lag 30d + 1d) (line 2)"
    ),
    "state: {horizon: 1h, history: 74h}": (
        "windows[1]: state.history 74h is too short by 22h: it must be at least 4d (length 1d + lag 2d + 1d) (line 1)"
    ),
}


@pytest.mark.parametrize(("text", "fault"), ONE_FAULT.items(), ids=[text[:40] for text in ONE_FAULT])
def test_each_fault_has_its_words(text: str, fault: str) -> None:
    assert faults_of(text) == [fault]


class TestManyFaults:
    def test_all_are_reported_in_the_order_of_lines(self) -> None:
        text = """\
state: {directory: no, horizon: 60d}
htp: 1
windows:
  - {name: a, length: 1h}
  - {name: a, length: 7h, lag: 90m}
  - {name: b, length: 15}
  - {name: a, length: 1h, foo: 3}
models:
  flights:
    bins: 2000
    bin: 3
    classes: [yes, a, "no", a]
    groups: [all, sex, sex]
  flights: {edges: [1, 0]}
http: {port: 70000, adress: x}
"""
        environ = {"CALMON__EVALUATION__TICK": "15", "CALMON__HTTP__PRT": "1"}
        assert faults_of(text, environ) == [
            'state.directory: must be a text, but YAML reads no as false; quote it: "no" (line 1)',
            "state.history: history 90d is too short by 33d: it must be at least 123d (2 x horizon 60d + 3d) (line 1)",
            "htp: unknown key; did you mean http? (line 2)",
            "windows[1].lag: must be whole hours (window longer than 6h), got 90m (line 5)",
            "windows[1].name: must be unique, got a (line 5)",
            "windows[2].length: must have a unit: 15s, 15m, 15h or 15d, got 15 (line 6)",
            "windows[3].foo: unknown key; known here: name, length, lag (line 7)",
            "windows[3].name: must be unique, got a (line 7)",
            "models.flights.bins: must be 1 to 1000, got 2000 (line 10)",
            "models.flights.bin: unknown key; did you mean bins? (line 11)",
            'models.flights.classes[0]: must be a text, but YAML reads yes as true; quote it: "yes" (line 12)',
            "models.flights.classes[3]: the class is given twice (line 12)",
            'models.flights.groups[0]: must not be "all": that is the segment of everything, got all (line 13)',
            "models.flights.groups[2]: the attribute is given twice (line 13)",
            "models.flights: this key is given twice, first on line 9 (line 14)",
            "http.port: must be 0 to 65535, got 70000 (line 15)",
            "http.adress: unknown key; did you mean address? (line 15)",
            "CALMON__HTTP__PRT: no key has this name; did you mean CALMON__HTTP__PORT? (environment)",
            "evaluation.tick: must have a unit: 15s, 15m, 15h or 15d, got 15 (CALMON__EVALUATION__TICK)",
        ]

    def test_the_error_is_one_block_of_text(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_config("a: 1\nhttp: {port: -1}", "calmon.yaml", {})
        first, *rest = str(caught.value).splitlines()
        assert first == "calmon.yaml: 2 fault(s)"
        assert rest == [f"  {fault}" for fault in caught.value.faults]
