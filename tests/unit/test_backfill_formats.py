"""Label files of every format: what becomes of a row, and what is said of a file or a mapping that cannot be used."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from monitor.backfill.labels.column import FIELDS, parse_mapping
from monitor.backfill.labels.label_file import LabelRow, open_label_file, partition_name
from monitor.backfill.labels.sieve import BAD_ROW, Sieve, event_of
from monitor.errors import ConfigError, SourceError
from monitor.events.contract import MAX_RECORD_BYTES
from monitor.events.decode import Decoder
from monitor.events.record import HeadTable, Label, Record, Refusal
from monitor.join.horizon import Horizon
from tests.backfill.late_labels import as_csv, as_parquet
from tests.integration.running import ROOT
from tests.recovery.stream import START_MS, encode, label, prediction, write_lines

NAMES = {"prediction_id": "id", "label": "truth", "labelled_at": "when", "domain": "camera"}
MAPPING = parse_mapping([f"{field}={column}" for field, column in NAMES.items()])


def decoded(path: Path, mapping: Mapping[str, str] | None = None) -> list[Record]:
    """What the contract's decoder says of each row."""
    decode = Decoder(lambda model: None, HeadTable()).decode
    return [Refusal(BAD_ROW) if row.fault else decode(row.event, "label") for row in open_label_file(str(path), mapping or {}).rows()]


def reasons(path: Path, mapping: Mapping[str, str] | None = None) -> list[str]:
    """The reason of each row, empty for a label."""
    return [record.reason if isinstance(record, Refusal) else "" for record in decoded(path, mapping)]


def write_csv(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def write_parquet(path: Path, columns: Mapping[str, Any]) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


EVENTS = [
    label("a", START_MS, "yes"),
    label("ü", START_MS + 1, "1", revision=3, model="m", model_version="v1", domain="camera-7"),
    label("c", START_MS + 2, "no, or yes", model="m"),
]
LABELS = [
    Label("a", "yes", START_MS, 0, None, None, None),
    Label("ü", "1", START_MS + 1, 3, "m", "v1", "camera-7"),
    Label("c", "no, or yes", START_MS + 2, 0, "m", None, None),
]


@pytest.mark.parametrize("mapped", [False, True])
def test_every_format_says_the_same_labels(tmp_path: Path, mapped: bool) -> None:
    names = NAMES if mapped else {}
    lines = [encode({names.get(key, key): value for key, value in event.items()}) for event in EVENTS]
    packed = tmp_path / "l.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\n".join(lines)))
    events = [encode(event) for event in EVENTS]
    files = [
        write_lines(tmp_path / "l.ndjson", lines),
        packed,
        as_csv(tmp_path / "l.csv", events, names),
        as_parquet(tmp_path / "l.parquet", events, names),
    ]
    for file in files:
        assert decoded(file, MAPPING if mapped else {}) == LABELS, file


TEXT = st.text(max_size=12) | st.sampled_from(
    ["01-09-2018", "2026-06-01T00:00:00", "2026-06-01T00:00:00Z", str(START_MS), "1", "-1", "1.5"]
)
JSON = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.lists(st.integers(), max_size=2)


@given(fields=st.dictionaries(st.sampled_from([*FIELDS, "type"]), JSON | TEXT))
def test_a_renamed_line_is_judged_as_the_line_itself(fields: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("rows")
    renamed = {NAMES.get(key, key): value for key, value in fields.items()}
    first = dict.fromkeys(NAMES.values())
    plain = write_lines(folder / "plain.ndjson", [json.dumps(fields).encode()])
    mapped = write_lines(folder / "mapped.ndjson", [json.dumps(renamed).encode(), json.dumps(first).encode()])
    assert decoded(mapped, MAPPING)[0] == decoded(plain)[0]


@given(cells=st.fixed_dictionaries(dict.fromkeys(FIELDS, TEXT)))
def test_a_cell_is_the_text_that_stands_in_it(cells: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = as_csv(tmp_path_factory.mktemp("rows") / "l.csv", [json.dumps(cells).encode()], {})
    fields: dict[str, Any] = {key: text for key, text in cells.items() if text or key in FIELDS[:3]}
    for key in ("labelled_at", "revision"):
        if cells[key].isascii() and cells[key].isdecimal():
            fields[key] = int(cells[key])
    found = decoded(path)
    if any(not set(text).isdisjoint("\r\n") for text in cells.values()):
        assert found == [Refusal(BAD_ROW)]
        return
    wanted = Decoder(lambda model: None, HeadTable()).decode(json.dumps(fields).encode(), "label")
    assert [found[0].reason] == [wanted.reason] if isinstance(wanted, Refusal) and isinstance(found[0], Refusal) else found == [wanted]


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("01-09-2018", "bad_time"),
        ("2018-09-01", "bad_time"),
        ("2026-06-01 00:00:00", "naive_time"),
        ("2026-06-01T00:00:00", "naive_time"),
        ("2026-06-01T00:00:00+02:00", ""),
        ("1780272000", "bad_time"),
        ("1780272000000", ""),
        ("1780272000000.0", "bad_time"),
        ("", "bad_time"),
        ("\uff19", "bad_time"),
        ("9" * 5000, "bad_time"),
    ],
)
def test_times_that_could_mean_two_things_are_refused(tmp_path: Path, when: str, reason: str) -> None:
    assert reasons(write_csv(tmp_path / "l.csv", f"prediction_id,label,labelled_at\na,yes,{when}\n")) == [reason]


def test_an_empty_cell_withdraws_nothing_and_a_null_says_so(tmp_path: Path) -> None:
    csv_file = write_csv(tmp_path / "l.csv", f"prediction_id,label,labelled_at,model\na,,{START_MS},\n,yes,{START_MS},\n")
    assert reasons(csv_file) == ["bad_label", "missing_id"]
    columns = {"prediction_id": ["a", None], "label": pyarrow.array([None, "x"], pyarrow.string()), "labelled_at": [START_MS, START_MS]}
    assert reasons(write_parquet(tmp_path / "l.parquet", columns)) == ["missing_label", "missing_id"]
    assert reasons(write_lines(tmp_path / "l.ndjson", [encode(label("a", START_MS, None))])) == [""]


def test_rows_that_are_none_are_refused_and_the_next_ones_are_read(tmp_path: Path) -> None:
    text = f'prediction_id,label,labelled_at\na,yes\n\n"b\nc",yes,{START_MS}\na,yes,{START_MS},4\nd,yes,{START_MS}\n'
    path = write_csv(tmp_path / "l.csv", text)
    assert reasons(path) == [BAD_ROW, BAD_ROW, BAD_ROW, ""]
    rows = list(open_label_file(str(path), {}).rows())
    assert [row.number for row in rows] == [2, 4, 6, 7]
    assert rows[0].fault == "2 cells under a header of 3"
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"prediction_id,label,labelled_at\n\xfc,yes,%d\nb,no,%d\n" % (START_MS, START_MS))
    assert reasons(latin) == ["bad_text", ""]
    broken = [b"{", encode(prediction("a", START_MS, 0.9)), b'{"prediction_id":"a","prediction_id":"b","label":"x","labelled_at":1}']
    assert reasons(write_lines(tmp_path / "l.ndjson", broken)) == ["bad_json", "unknown_type", "bad_json"]


def test_a_row_of_several_lines_is_told_by_its_first_line_and_its_span(tmp_path: Path) -> None:
    rows = [f"{one},yes,{START_MS},{note}\n" for one, note in (("a", '"of\ntwo"'), ("b", ""), ('"c', ""), ("d", ""), ('e"', ""), ("f", ""))]
    path = write_csv(tmp_path / "l.csv", f"prediction_id,label,labelled_at,note\n\n{''.join(rows)}g\n\n" + f'"h\n",yes,{START_MS}\n')
    found = list(open_label_file(str(path), {}).rows())
    assert [(row.number, row.fault) for row in found] == [
        (3, None),
        (5, None),
        (6, "prediction_id holds a line end, and the row is lines 6 to 8: is a quote missing, or one too many?"),
        (9, None),
        (10, "1 cells under a header of 4"),
        (12, "3 cells under a header of 4, in lines 12 to 13"),
    ]
    assert found[2].event.startswith(f"c,yes,{START_MS},\nd,yes".encode())


def test_a_quote_that_is_never_closed_is_found_where_its_row_begins(tmp_path: Path) -> None:
    row = f"a,yes,{START_MS}\n"
    path = write_csv(tmp_path / "l.csv", "prediction_id,label,labelled_at\n" + row * 3 + f'a,"yes,{START_MS}\n' + row * 5)
    read: list[int] = []
    with pytest.raises(SourceError, match=r"l\.csv:5: is no CSV from here on: unexpected end of data"):
        read.extend(row.number for row in open_label_file(str(path), {}).rows())
    assert read == [2, 3, 4]


def test_infinite_numbers_withdraw_nothing(tmp_path: Path) -> None:
    line = b'{"id":"a","truth":1e400,"when":%d,"camera":null}' % START_MS
    assert reasons(write_lines(tmp_path / "l.ndjson", [line, line.replace(b"1e400", b"NaN")]), MAPPING) == ["bad_label", "bad_json"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_parquet_timestamps_are_floored_to_milliseconds(tmp_path: Path, unit: str) -> None:
    per_ms = {"s": 1, "ms": 1, "us": 1_000, "ns": 1_000_000}[unit]
    number = START_MS // 1000 if unit == "s" else (START_MS + 1) * per_ms + (per_ms - 1)
    for zone, reason in (("UTC", ""), ("+05:30", ""), (None, "naive_time")):
        when = pyarrow.array([number, None], pyarrow.int64()).cast(pyarrow.timestamp(unit, zone))
        path = write_parquet(tmp_path / "l.parquet", {"prediction_id": ["a", "b"], "label": ["x", "y"], "labelled_at": when})
        assert reasons(path) == [reason, "bad_time"]
        if not reason:
            (found, _) = decoded(path)
            assert isinstance(found, Label)
            assert found.labelled_at == (START_MS if unit == "s" else START_MS + 1)


@pytest.mark.parametrize("kind", [pyarrow.int8(), pyarrow.int64(), pyarrow.uint64(), pyarrow.dictionary(pyarrow.int8(), pyarrow.int32())])
def test_whole_numbers_in_parquet_are_the_text_that_csv_has_of_them(tmp_path: Path, kind: Any) -> None:
    texts = ("prediction_id", "label", "model", "model_version", "domain")
    columns = {field: pyarrow.array([7, 12, None], kind) for field in texts} | {"labelled_at": [START_MS] * 3}
    wanted = [Label(text, text, START_MS, 0, text, text, text) for text in ("7", "12")]
    assert decoded(write_parquet(tmp_path / "l.parquet", columns))[:2] == wanted
    header, cells = ",".join(columns), "".join(f"{','.join([text] * 5)},{START_MS}\n" for text in ("7", "12"))
    assert decoded(write_csv(tmp_path / "l.csv", f"{header}\n{cells}")) == wanted


@pytest.mark.parametrize(
    "kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(), pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string())]
)
def test_every_text_type_of_parquet_is_text(tmp_path: Path, kind: Any) -> None:
    array = pyarrow.array(["yes", "ü", None], kind)
    columns = {"prediction_id": array, "label": array, "labelled_at": [START_MS] * 3}
    wanted = [Label(text, text, START_MS, 0, None, None, None) for text in ("yes", "ü")]
    assert decoded(write_parquet(tmp_path / "l.parquet", columns))[:2] == wanted


def test_parquet_text_is_read_as_it_is(tmp_path: Path) -> None:
    zone = timezone(timedelta(hours=2))
    texts = [datetime.fromtimestamp(START_MS / 1000, one).isoformat() for one in (UTC, zone)]
    coded = pyarrow.array(["yes", "no"]).dictionary_encode()
    path = write_parquet(tmp_path / "l.parquet", {"prediction_id": ["a", "b"], "label": coded, "labelled_at": texts})
    assert [record.labelled_at for record in decoded(path) if isinstance(record, Label)] == [START_MS, START_MS]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"label": [1.0]}, "column label (label) is of type double: must be text or whole numbers"),
        ({"label": [True]}, "is of type bool: true and false have no one spelling as text: must be text or whole numbers"),
        ({"prediction_id": [b"a"]}, "column prediction_id (prediction_id) is of type binary: must be text or whole numbers"),
        ({"labelled_at": [date(2026, 6, 1)]}, "of type date32[day]: a date without a time of day is ambiguous: must be a timestamp with a"),
        ({"labelled_at": [1.5]}, "must be a timestamp with a zone, text or whole milliseconds"),
        ({"revision": [True]}, "column revision (revision) is of type bool: must be a whole number"),
    ],
)
def test_a_parquet_column_of_another_type_is_refused_at_once(tmp_path: Path, columns: Mapping[str, Any], says: str) -> None:
    whole = {"prediction_id": ["a"], "label": ["x"], "labelled_at": [START_MS], **columns}
    with pytest.raises(SourceError) as caught:
        open_label_file(str(write_parquet(tmp_path / "l.parquet", whole)), {})
    assert says in str(caught.value)


def test_a_mapping_that_names_a_missing_column_says_which_there_are(tmp_path: Path) -> None:
    text = f"prediction_id,truth,when\na,yes,{START_MS}\n"
    lines = [b"broken", *(encode({"prediction_id": "a", "truth": "yes", "when": START_MS}) for _ in range(3))]
    columns = {"prediction_id": ["a"], "truth": ["yes"], "when": [START_MS]}
    files = [
        write_csv(tmp_path / "l.csv", text),
        write_lines(tmp_path / "l.ndjson", lines),
        write_parquet(tmp_path / "l.parquet", columns),
    ]
    for file in files:
        with pytest.raises(SourceError) as caught:
            open_label_file(str(file), {"label": "thruth", "labelled_at": "when"})
        wanted = f"{file}: there is no column thruth, which --map label=thruth names; there are prediction_id, truth, when"
        assert str(caught.value) == wanted
    for file in (files[0], files[2]):
        with pytest.raises(SourceError, match=r"there is no column labelled_at: --map labelled_at=COLUMN says which it is; there are pred"):
            open_label_file(str(file), {"label": "truth"})
    assert reasons(files[0], {"label": "truth", "labelled_at": "when"}) == [""]


@pytest.mark.parametrize("name", ["l.csv", "l.parquet"])
def test_a_column_may_stand_twice_unless_it_holds_a_field(tmp_path: Path, name: str) -> None:
    def table(*columns: str) -> Path:
        cells = [str(START_MS) if column == "labelled_at" else "a" for column in columns]
        if name.endswith(".csv"):
            return write_csv(tmp_path / name, f"{','.join(columns)}\n{','.join(cells)}\n")
        arrays = [pyarrow.array([int(cell) if cell.isdecimal() else cell]) for cell in cells]
        parquet.write_table(pyarrow.Table.from_arrays(arrays, names=list(columns)), tmp_path / name)
        return tmp_path / name

    assert reasons(table("prediction_id", "", "label", "labelled_at", "x", "x", "")) == [""]
    for mapping, columns in (({}, ("prediction_id", "label", "label", "labelled_at")), ({"label": "y"}, ("y", *FIELDS[:3], "y"))):
        with pytest.raises(SourceError, match=rf'column "{columns[-1] if mapping else "label"}" stands twice, .* which holds label'):
            open_label_file(str(table(*columns)), mapping)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["label"], "must be FIELD=COLUMN"),
        (["label="], "must be FIELD=COLUMN"),
        (["lable=x"], "there is no field lable; there are prediction_id, label, labelled_at"),
        (["label=x", "label=y"], "label is mapped already, to x"),
    ],
)
def test_a_mapping_that_is_none_is_refused(words: Sequence[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_mapping(words)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("l.txt", b"", "its name says no format that is known"),
        ("l.csv", b"", "there is no column prediction_id: --map prediction_id=COLUMN says which it is; there are none"),
        ("l.csv", b'prediction_id,label,labelled_at\na,"b"c,1\n', ":2: is no CSV from here on"),
        ("l.csv", b"prediction_id,label,labelled_at\n" + b"x" * (MAX_RECORD_BYTES + 10), "is no CSV from here on: a line is longer"),
        ("l.csv", b'prediction_id,label,labelled_at\n"' + b"x\n" * MAX_RECORD_BYTES, "is no CSV from here on: field larger"),
        (
            "l.csv",
            "prediction_id,label,labelled_at\n".encode("utf-16"),
            "l.csv: is not UTF-8: it begins with the mark of UTF-16; iconv -f UTF-16",
        ),
        ("l.csv", b"\xfe\xff\x00l", "l.csv: is not UTF-8: it begins with the mark of UTF-16"),
        ("l.parquet", b"PAR1 not", "cannot be read as Parquet"),
        ("l.ndjson.gz", b"not gzip", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        list(open_label_file(str(path), {}).rows())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError, match="no such file"):
        open_label_file(str(tmp_path / "away.csv"), {})


def test_without_pyarrow_one_line_says_what_to_install(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "l.parquet", {"prediction_id": ["a"]})
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from monitor.backfill.labels.label_file import open_label_file\n"
        "from monitor.errors import SourceError\n"
        f"try:\n    open_label_file({str(path)!r}, {{}})\n"
        "except SourceError as error:\n    print(error)"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "Parquet needs pyarrow: pip install 'calmon[parquet]', or convert the file to CSV or NDJSON\n"


def test_a_label_file_is_another_one_when_its_content_or_its_mapping_is(tmp_path: Path) -> None:
    one, two = write_lines(tmp_path / "l.ndjson", [b"{}"]), write_lines(tmp_path / "m.ndjson", [b"{ }"])
    names = [partition_name(str(path), mapping) for path in (one, two) for mapping in ({}, {"label": "x"})]
    assert len(set(names)) == 4
    assert names[0].startswith("l.ndjson@")
    assert partition_name(str(one), {}) == names[0]


@given(
    st.builds(
        Label,
        st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20),
        st.none() | st.sampled_from(["yes", "ü"]),
        st.integers(START_MS, START_MS + 10),
        st.integers(0, 3),
        st.sampled_from(["m"]),
        st.none() | st.sampled_from(["v1"]),
        st.none() | st.sampled_from(["id", 'a"b\\']),
    )
)
def test_the_one_form_of_a_label_says_the_same(wanted: Label) -> None:
    assert Decoder(lambda model: None, HeadTable()).decode(event_of(wanted), "any") == wanted


def test_without_a_state_only_the_decoder_judges() -> None:
    found = Sieve(Horizon(None), None, None).sort([LabelRow(1, encode(EVENTS[0])), LabelRow(2, b"{"), LabelRow(3, b"a,b", "2 cells")])
    assert [(one.number, one.label) for one in found.kept] == [(1, LABELS[0])]
    assert [(one.number, one.refusal.reason) for one in found.held] == [(2, "bad_json"), (3, BAD_ROW)]
    assert dict(found.tally.labels) == {"sent": 1, "bad_json": 1, BAD_ROW: 1}
