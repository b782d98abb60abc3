"""`calmon produce` without a broker: where lines go, when they are due, how files are read, and what the command line refuses."""

from __future__ import annotations

import gzip
import os
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.cli import main
from monitor.errors import ConfigError, SourceError
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Refusal
from monitor.produce.address import Address, address
from monitor.produce.command import run
from monitor.produce.lines import Files
from monitor.produce.pace import FullSpeed, Rate, TimeScale
from monitor.produce.run import Outcome
from monitor.produce.sender import Account
from tests.recovery.stream import START_MS, encode, label, make_stream, prediction, write_lines


def never() -> bool:
    return False


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (encode(prediction("a-1", START_MS, 0.9)), Address("prediction", b"a-1", START_MS)),
        (encode(label("ü", START_MS, None)), Address("label", "ü".encode(), START_MS)),
        (b'{"type":"label","prediction_id":"a","labelled_at":"2026-06-01T00:00:00Z"}', Address("label", b"a", START_MS)),
        (b'{"type":"label","prediction_id":"a","labelled_at":"2026-06-01T00:00:00"}', Address("label", b"a", None)),
        (b'{"type":"prediction","prediction_id":"a","predicted_at":1780272000}', Address("prediction", b"a", None)),
        (b'{"type":"prediction","prediction_id":7,"predicted_at":1780272000000.0}', Address("prediction", None, START_MS)),
        (b'{"type":"prediction","prediction_id":""}', Address("prediction", None, None)),
        (b'{"type":"label"}', Address("label", None, None)),
        (b'{"type":"guess","prediction_id":"a"}', Address("prediction", None, None)),
        (b'{"type":null,"prediction_id":"a"}', Address("prediction", None, None)),
        (b'{"type":"label","prediction_id":"\\ud800"}', Address("prediction", None, None)),
        (b"[]", Address("prediction", None, None)),
        (b"\xff", Address("prediction", None, None)),
        (b"\x00\x00\x00\x00\x01{}", Address("prediction", None, None)),
        (b'{"type":"label","prediction_id":"a","x":NaN}', Address("prediction", None, None)),
        (b"[" * 100_000, Address("prediction", None, None)),
    ],
)
def test_where_a_line_goes(line: bytes, expected: Address) -> None:
    assert address(line) == expected


FIELDS: dict[str, Any] = {
    **{key: value for key, value in prediction("a", START_MS, 0.9).items() if key != "type"},
    **{key: value for key, value in label("a", START_MS, "yes").items() if key != "type"},
}


@given(st.sets(st.sampled_from(sorted(FIELDS))), st.sampled_from([None, "guess", "prediction", "label", 0]))
def test_a_topic_takes_no_line_that_a_file_refuses(keys: set[str], kind: object) -> None:
    if kind == 0:
        keys -= {"labelled_at"}  # without a type and complete as both, there is no topic that refuses it
    event = {key: FIELDS[key] for key in keys} | ({} if kind == 0 else {"type": kind})
    line = encode(event)
    decoder = Decoder(lambda _: None, HeadTable())
    in_file, in_topic = decoder.decode(line, "any"), decoder.decode(line, address(line).role)
    assert isinstance(in_file, Refusal) == isinstance(in_topic, Refusal)
    if not isinstance(in_file, Refusal):
        assert address(line).key == b"a"


@given(st.binary(max_size=40))
def test_any_line_has_an_address(line: bytes) -> None:
    assert address(line).role in ("prediction", "label")


def test_paces() -> None:
    assert [FullSpeed().due_s(one) for one in (None, 5)] == [0.0, 0.0]
    rate = Rate(4)
    assert [rate.due_s(None) for _ in range(4)] == [0.0, 0.25, 0.5, 0.75]
    scale = TimeScale(60)
    assert [scale.due_s(one) for one in (None, START_MS, START_MS + 90_000, START_MS - 1000, None)] == [0.0, 0.0, 1.5, -1 / 60, 0.0]


class TestFiles:
    def test_lines_come_as_they_are_with_their_places(self, tmp_path: Path) -> None:
        first = tmp_path / "a.ndjson"
        first.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  {"b":\t2} \nlast')
        second = tmp_path / "b.ndjson.gz"
        second.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
        files = Files([str(first), str(second)], never)
        assert files.total_bytes == first.stat().st_size + second.stat().st_size
        assert [(Path(line.path).name, line.number, line.value) for line in files.in_order()] == [
            ("a.ndjson", 1, b'{"a": 1}'),
            ("a.ndjson", 3, b'  {"b":\t2} '),
            ("a.ndjson", 4, b"last"),
            ("b.ndjson.gz", 1, b"one"),
            ("b.ndjson.gz", 2, b"two"),
        ]
        assert files.read_bytes == files.total_bytes

    def test_a_stream_is_read_whole(self, tmp_path: Path) -> None:
        values = [line.value for line in make_stream(dense=300, sparse=50)]
        path = tmp_path / "events.ndjson.gz"
        path.write_bytes(gzip.compress(b"\n".join(values)))
        assert [line.value for line in Files([str(path)], never).in_order()] == values

    def test_by_event_time_files_keep_their_own_order(self, tmp_path: Path) -> None:
        predictions = write_lines(
            tmp_path / "p", [encode(prediction(one, START_MS + at, 0.9)) for one, at in (("a", 0), ("b", 40), ("c", 30))]
        )
        labels = write_lines(tmp_path / "l", [b"broken", encode(label("a", START_MS + 35, "yes")), b"broken too"])
        lines = list(Files([str(labels), str(predictions)], never).by_event_time())
        assert [(Path(line.path).name, line.number) for line in lines] == [("l", 1), ("p", 1), ("l", 2), ("l", 3), ("p", 2), ("p", 3)]

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading, writing = os.pipe()
        os.write(writing, b"one\ntwo")
        os.close(writing)
        with os.fdopen(reading) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            files = Files(["-"], never)
            assert files.total_bytes is None
            assert [(line.path, line.value) for line in files.in_order()] == [("-", b"one"), ("-", b"two")]

    def test_standard_input_that_says_nothing_is_left_when_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading, writing = os.pipe()
        with os.fdopen(reading) as stdin, os.fdopen(writing, "wb"):
            monkeypatch.setattr("sys.stdin", stdin)
            answers = iter([False, True])
            assert list(Files(["-"], lambda: next(answers)).in_order()) == []

    @pytest.mark.parametrize(("name", "said"), [("none", "no such file"), (".", "is a directory")])
    def test_a_missing_file_is_known_at_once(self, tmp_path: Path, name: str, said: str) -> None:
        with pytest.raises(SourceError, match=said):
            Files([str(tmp_path / name)], never)

    @pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"line\n" * 1000)[:-9], gzip.compress(b"x" * 1000)[:40] + b"damaged"])
    def test_a_damaged_gzip(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "a.gz"
        path.write_bytes(content)
        with pytest.raises(SourceError, match=r"a\.gz: cannot be read: "):
            list(Files([str(path)], never).in_order())


def options(**changes: object) -> Namespace:
    words: dict[str, object] = {"files": ["-"], "bootstrap": "a:1", "predictions": None, "labels": None, "config": None}
    words |= {"rate": None, "time_scale": None, "create": None, "compression": "none"}
    return Namespace(**words | changes)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"rate": 0.0}, "--rate 0: must be a number greater than 0"),
        ({"rate": float("nan")}, "--rate nan: must be a number greater than 0"),
        ({"time_scale": -1.0}, "--time-scale -1: must be a number greater than 0"),
        ({"create": 0}, "--create 0: must be 1 to 10000 partitions"),
        ({"bootstrap": None}, "--bootstrap HOST:PORT is needed, or -c FILE with source.kafka"),
        ({"bootstrap": "a:1,b"}, "--bootstrap: must be host:port, such as broker-1:9092"),
        ({"predictions": "a b"}, "--predictions: must be a topic's name: 1 to 249 of the characters A-Z a-z 0-9 . _ -"),
        ({"labels": "predictions"}, "--labels: must be another topic than that of the predictions"),
    ],
)
def test_wrong_words(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(options(**changes), never)
    assert (caught.value.faults, caught.value.origin) == ([fault], "command line")


def test_a_configuration_without_kafka(tmp_path: Path) -> None:
    path = tmp_path / "calmon.yaml"
    path.write_text("{}")
    with pytest.raises(ConfigError) as caught:
        run(options(config=str(path)), never)
    assert caught.value.faults == ["source.kafka: this key is needed here: it says how to reach the broker"]


@pytest.mark.parametrize("words", [["f", "--rate", "1", "--time-scale", "2"], [], ["f", "--compression", "zip"]])
def test_wrong_usage(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["produce", *words])
    assert caught.value.code == 2
    assert "usage: calmon produce" in capsys.readouterr().err


def test_the_help_warns_of_retention(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["produce", "--help"])
    assert "retention.ms=-1" in capsys.readouterr().out


def test_the_summary() -> None:
    account = Account(Counter({"p": 1200}), 3, [f"f:{number}" for number in range(7)])
    assert Outcome(account, 2.04, stopped=True).summary({"prediction": "p", "label": "l"}).splitlines() == [
        "p: 1,200 records",
        "l: 0 records",
        "unreadable: 3 of them, sent without a key for calmon to refuse",
        "not sent: 7 lines are larger than the broker takes: f:0, f:1, f:2, f:3, f:4, ...",
        "stopped after 2.0 s",
    ]
    assert Outcome(Account(), 0.0, stopped=False).summary({"prediction": "p"}) == "p: 0 records\nin 0.0 s"
