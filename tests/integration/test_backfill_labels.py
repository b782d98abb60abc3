"""`calmon backfill labels` with files: into a stopped service's state, through a followed file of a running one, and what it says."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.backfill.labels.command import run
from monitor.backfill.labels.moves import MOST_MOMENTS, moments
from monitor.config_file import load_config
from monitor.pipeline.account import Account
from monitor.pipeline.configured import exported_metrics, settings_of
from monitor.pipeline.digest import digest, dump
from monitor.pipeline.revisions.moves import whole_values
from monitor.pipeline.sweep import Question, sweep
from monitor.request.files import engine_of_files
from monitor.request.state import opened_shards, opened_stores
from monitor.sources.protocol import never
from monitor.windows.running import WindowSpec
from tests.backfill.late_labels import REAL, STREAMS, Late, as_csv, as_parquet, hold_back, packaged
from tests.integration.running import RunningCalmon, calmon, refusal, wait_until
from tests.recovery.stream import DAY_MS, HOUR_MS, START_MS, encode, label, make_stream, prediction, write_lines

NAMES = {"label": "truth", "labelled_at": "when"}
MAPPED = ("label=truth", "labelled_at=when")


def configure(folder: Path, follow: bool = False, **changes: Any) -> Path:
    """A configuration that reads `folder`/events.ndjson."""
    sections: dict[str, Any] = {
        "source": {"files": [str(folder / "events.ndjson")], "follow": follow},
        "state": {"directory": str(folder / "state"), "horizon": "none"},
        "windows": [{"name": "24h", "length": "24h", "lag": "48h"}, {"name": "1h", "length": "1h"}],
        "evaluation": {"tick": "100ms"},
        "http": {"port": 0},
        "defaults": REAL,
    }
    path = folder / "calmon.yaml"
    path.write_text(json.dumps(sections | changes))
    return path


def live(config: Path, records: int) -> None:
    """Let the service read its files to their end."""
    with RunningCalmon(config) as running:
        wait_until(lambda: (running.value("calmon_records_consumed_total") or 0) >= records, "everything is read")
        assert running.stop() == 0


def account(folder: Path) -> Account:
    """The account of a state."""
    with opened_shards(str(folder / "state")) as (shard,):
        return shard.account


def label_counts(found: Account) -> Counter[str]:
    """What became of labels, refused ones by reason."""
    counts = Counter({word: count for (kind, word), count in found.outcomes.items() if kind == "label" and word != "refused"})
    return counts + Counter({reason: count for (kind, reason), count in found.refused.items() if kind == "label"})


def whole_state(folder: Path) -> str:
    """A fingerprint of everything in a state."""
    with opened_stores(str(folder / "state")) as stores:
        (store,) = stores.values()
        state = hashlib.sha256()
        for key, value in store.scan(b"", b"\xff" * 8):
            state.update(b"%d %b %d %b" % (len(key), key, len(value), value))
        return state.hexdigest()


def backfill(config: Path, *files: Path, dry_run: bool = False, append_to: Path | None = None, **words: Any) -> Any:
    """The report of a backfill, in this process."""
    given = {"map": [], "rate": None, "append_to": None if append_to is None else str(append_to), "dry_run": dry_run, **words}
    text, code = run(Namespace(files=list(map(str, files)), config=str(config), format="json", **given), never)
    assert code == 0
    return json.loads(text)


def state_digest(folder: Path) -> str:
    """Digest of a state."""
    with opened_shards(str(folder / "state")) as shards:
        return digest(dump(shards))


def digest_in_time(file: Path, config: Path) -> str:
    """Digest of what a file comes to."""
    with engine_of_files(load_config(config, {}), [str(file)], None, 0) as engine:
        return digest(dump(engine.shards))


def held_back(found: Mapping[str, Any]) -> list[tuple[str, int, Any]]:
    """Reason, row and bytes of each row in the quarantine of the one file."""
    (file,) = found["files"]
    lines = [json.loads(line) for line in Path(file["quarantine"]).read_bytes().splitlines()]
    return [(line["reason"], line["offset"], line["record"]) for line in lines]


@pytest.fixture(scope="module", params=STREAMS)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Late, str]:
    """A folder where a service has read what came in time, what did not, and the digest with everything in time."""
    folder = tmp_path_factory.mktemp(request.param)
    lines = packaged(request.param)
    late = hold_back(lines)
    write_lines(folder / "events.ndjson", late.in_time)
    config = configure(folder)
    live(config, len(late.in_time))
    return folder, late, digest_in_time(write_lines(folder / "all.ndjson", lines), config)


def as_files(folder: Path, labels: Sequence[bytes]) -> list[Path]:
    """A third of the labels in each format; withdrawals are for NDJSON alone. Labels of an id stay in order and in one format."""
    third: dict[str, int] = {}
    parts: list[list[bytes]] = [[], [], []]
    withdrawn = {json.loads(line)["prediction_id"] for line in labels if json.loads(line)["label"] is None}
    for line in labels:
        one = json.loads(line)["prediction_id"]
        parts[0 if one in withdrawn else third.setdefault(one, len(third) % 3)].append(line)
    renamed = [encode({NAMES.get(key, key): value for key, value in json.loads(line).items()}) for line in parts[0]]
    return [
        write_lines(folder / "part.ndjson", renamed),
        as_csv(folder / "part.csv", parts[1], NAMES),
        as_parquet(folder / "part.parquet", parts[2], NAMES),
    ]


def test_straight_into_a_stopped_state_the_sums_are_those_of_labels_in_time(lived: tuple[Path, Late, str]) -> None:
    folder, late, wanted = lived
    config = folder / "calmon.yaml"
    files = as_files(folder, late.labels)
    before, state = account(folder), whole_state(folder)
    rehearsed = backfill(config, *files, map=MAPPED, dry_run=True)
    assert whole_state(folder) == state
    assert not (folder / "state.backfill").exists()
    done = backfill(config, *files, map=MAPPED)
    after = account(folder)
    assert state_digest(folder) == wanted
    assert rehearsed["total"] == done["total"]
    assert done["total"]["rows"] == len(late.labels) == after.consumed - before.consumed
    assert label_counts(after) - label_counts(before) == Counter(done["total"]["labels"])
    assert {"applied", "corrected"} <= done["total"]["labels"].keys()
    state = whole_state(folder)
    again = backfill(config, *files, map=MAPPED)
    assert again["total"] == done["total"]
    assert [file["rows_before"] for file in again["files"]] == [file["rows"] for file in done["files"]]
    assert whole_state(folder) == state


Values = list[dict[str, float]]
"""Metrics of a version, moment by moment."""


def at_moments(folder: Path, config: Path, name: str, change: Mapping[str, Any]) -> Values:
    """Metrics of a version in the state as it is at the moments of a dry run, each window made by itself."""
    model, _, version = name.partition("@")
    parsed = load_config(config, {})
    window = WindowSpec("any", change["length_ms"], change["lag_ms"], by_hours=True)
    question = Question(model, version, window, exported_metrics(parsed), settings_of(parsed), {})
    at_ms = [change["first_at_ms"] + number * change["step_ms"] for number in range(change["moments"])]
    with opened_shards(str(folder / "state")) as shards:
        return [whole_values(moment.blocks) for one in at_ms for moment in sweep(shards, question, [one])]


def largest(change: Mapping[str, Any], before: Values, after: Values) -> dict[str, Any]:
    """The largest move of each metric, the first of equals; where it becomes defined only if it moves nowhere else."""
    found: dict[str, Any] = {}
    for metric in {name for one in (*before, *after) for name in one}:
        rows = [(old.get(metric), new.get(metric), number) for number, (old, new) in enumerate(zip(before, after, strict=True))]
        moved = [row for row in rows if row[0] != row[1]]
        if not moved:
            continue
        numbers = [row for row in moved if row[0] is not None and row[1] is not None]
        old, new, number = max(numbers, key=lambda row: (abs((row[1] or 0) - (row[0] or 0)), -row[2])) if numbers else moved[0]
        found[metric] = {"at_ms": change["first_at_ms"] + number * change["step_ms"], "old": old, "new": new}
    return found


def test_the_largest_moves_are_those_of_the_real_run_recomputed(tmp_path: Path) -> None:
    late = hold_back([line.value for line in make_stream(dense=150, sparse=120) if line.refused is None])
    write_lines(tmp_path / "events.ndjson", late.in_time)
    config = configure(tmp_path)
    live(config, len(late.in_time))
    labels = write_lines(tmp_path / "late.ndjson", late.labels)
    rehearsed = backfill(config, labels, dry_run=True)["changes"]
    assert rehearsed.keys() == {"m@v1", "m@v2"}
    before = {name: at_moments(tmp_path, config, name, change) for name, change in rehearsed.items()}
    backfill(config, labels)
    for name, change in rehearsed.items():
        assert change["moments"] > 150
        assert change["labelled_after"] > change["labelled_before"]
        assert change["largest_moves"] == largest(change, before[name], at_moments(tmp_path, config, name, change))
        assert len(change["largest_moves"]) > 20


@pytest.mark.parametrize(("first", "moments_seen"), [(-80, 84), (-115, 49)])
def test_a_dry_run_leaves_out_the_moments_whose_panes_are_gone(tmp_path: Path, first: int, moments_seen: int) -> None:
    """Near the floor of history a real run takes the labels; so the dry run must tell of them."""
    hours = 14 * 24
    write_lines(tmp_path / "events.ndjson", [encode(prediction(f"id-{hour}", START_MS + hour * HOUR_MS, 0.8)) for hour in range(hours)])
    state = {"directory": str(tmp_path / "state"), "horizon": "1d", "history": "5d"}
    config = configure(tmp_path, state=state, windows=[{"name": "3d", "length": "3d", "lag": "1d"}])
    live(config, hours)
    with opened_shards(str(tmp_path / "state")) as (shard,):
        floor_ms = shard.hour_floor_ms
    assert floor_ms > START_MS + 7 * DAY_MS
    late = [encode(label(f"id-{hour}", START_MS + (hour + 1) * HOUR_MS, "yes")) for hour in range(hours + first, hours + first + 20)]
    labels = write_lines(tmp_path / "late.ndjson", late)
    rehearsed = backfill(config, labels, dry_run=True)
    (change,) = rehearsed["changes"].values()
    assert change["moments"] == moments_seen
    assert change["first_at_ms"] == floor_ms + 4 * DAY_MS
    assert "accuracy" in change["largest_moves"]
    assert backfill(config, labels)["total"] == rehearsed["total"]


@given(hours=st.tuples(st.integers(400_000, 500_000), st.integers(0, 3000)), length=st.integers(1, 800), lag=st.integers(0, 100))
def test_the_moments_of_a_dry_run_are_those_that_see_what_it_touches(hours: tuple[int, int], length: int, lag: int) -> None:
    first, last = hours[0], sum(hours)
    window = WindowSpec("any", length * HOUR_MS, lag * HOUR_MS, by_hours=True)
    found = moments(window, first, last, 0)
    assert 1 <= len(found) <= MOST_MOMENTS
    sees = [pane for at_ms in (found[0], found[-1]) for pane in window.panes(at_ms)]
    assert sees[1] == first + 1
    assert sees[2] <= last
    if found.step == HOUR_MS:
        assert sees[2] == last


@given(first=st.integers(0, 50), hours=st.integers(0, 50), length=st.integers(1, 50), lag=st.integers(0, 50), kept_from=st.integers(0, 200))
def test_moments_begin_where_panes_are_kept(first: int, hours: int, length: int, lag: int, kept_from: int) -> None:
    window = WindowSpec("any", length * HOUR_MS, lag * HOUR_MS, by_hours=True)
    everything = moments(window, first, first + hours, 0)
    kept = [at_ms for at_ms in everything if window.panes(at_ms)[0] >= kept_from]
    assert list(moments(window, first, first + hours, kept_from * HOUR_MS)) == kept


def test_each_reason_is_told_before_and_after_and_what_is_held_back_is_kept(tmp_path: Path) -> None:
    events = [prediction("a", START_MS, 0.9), prediction("a", START_MS + 3 * DAY_MS, 0.8, "v2"), prediction("b", START_MS, 0.7)]
    events += [prediction(f"c{number}", START_MS + number, 0.6) for number in range(4)]
    events += [label("c1", START_MS + 5, "yes"), label("c2", START_MS + 5, "yes"), label("c3", START_MS + 5, "yes")]
    write_lines(tmp_path / "events.ndjson", [encode(event) for event in events])
    config = configure(tmp_path, state={"directory": str(tmp_path / "state"), "horizon": "2d"})
    live(config, len(events))
    rows = [
        ("applied", label("c0", START_MS + HOUR_MS, "no")),
        ("unknown_id", label("nobody", START_MS, "yes")),
        ("applied", label("a", START_MS + 2 * DAY_MS + 1, "yes")),  # late for v1 alone
        ("late_label", label("b", START_MS + 2 * DAY_MS + 1, "yes")),
        ("early_label", label("b", START_MS - 4 * DAY_MS - 1, "yes")),
        ("other_model", label("b", START_MS, "yes", model="other")),
        ("other_version", label("b", START_MS, "yes", model="m", model_version="v9")),
        ("duplicate", label("c1", START_MS + 5, "yes")),
        ("conflicting_label", label("c2", START_MS + 5, "no")),
        ("corrected", label("c2", START_MS + 6, "no", revision=1)),
        ("withdrawn", label("c3", START_MS + 6, None, revision=1)),
        ("stale", label("c2", START_MS + 4, "maybe")),
        ("naive_time", {**label("b", 0, "yes"), "labelled_at": "2026-06-01T00:00:00"}),
        ("bad_time", {**label("b", 0, "yes"), "labelled_at": "01-09-2018"}),
        ("bad_label", {**label("b", START_MS, "yes"), "label": 1}),
    ]
    file = write_lines(tmp_path / "late.ndjson", [encode(event) for _, event in rows])
    before = account(tmp_path)
    rehearsed = backfill(config, file, dry_run=True)
    done = backfill(config, file)
    assert rehearsed["total"] == done["total"]
    assert done["total"]["labels"] == dict(sorted(Counter(reason for reason, _ in rows).items()))
    assert done["total"]["versions"] == {
        "m@v1": {
            "applied": 1,
            "conflicting_label": 1,
            "corrected": 1,
            "duplicate": 1,
            "early_label": 1,
            "late_label": 2,
            "stale": 1,
            "withdrawn": 1,
        },
        "m@v2": {"applied": 1},
    }
    gone = {"unknown_id", "late_label", "early_label", "other_model", "other_version", "naive_time", "bad_time", "bad_label"}
    wanted = [(reason, number, encode(event).decode()) for number, (reason, event) in enumerate(rows, 1) if reason in gone]
    assert held_back(done) == wanted
    assert label_counts(account(tmp_path)) - label_counts(before) == Counter(reason for reason, _ in rows if reason not in gone)
    (refused,) = [json.loads(line) for line in (tmp_path / "state" / "quarantine.ndjson").read_bytes().splitlines()]
    assert (refused["reason"], refused["offset"]) == ("conflicting_label", 9)
    assert refused["partition"].startswith("late.ndjson@")
    backfill(config, file)
    assert held_back(done) == wanted


def test_a_file_that_is_given_again_counts_once(tmp_path: Path) -> None:
    events = [prediction("a", START_MS, 0.9)]
    write_lines(tmp_path / "events.ndjson", [encode(event) for event in events])
    config = configure(tmp_path)
    live(config, len(events))
    (tmp_path / "folder").mkdir()
    paths = [tmp_path / name for name in ("late.ndjson", "late.ndjson", "renamed.ndjson", "folder/late.ndjson")]
    files = [write_lines(path, [encode(label("a", START_MS + 1, "yes"))]) for path in paths]
    for already in (0, 1):
        for dry_run in (True, False):
            found = backfill(config, *files, dry_run=dry_run)
            assert found["total"]["labels"] == {"applied": 1, "duplicate": 1}
            assert [(one["rows"], one["rows_before"]) for one in found["files"]] == [(1, already), (0, 0), (1, already), (0, 0)]
            assert [one["same_as"] for one in found["files"]] == [None, str(files[0]), None, str(files[0])]
    said = calmon("backfill", "labels", *files, "-c", config).stdout
    assert f"{files[3]}: the same file as {files[0]}, and counted there" in said


def test_nothing_expires_and_no_label_is_refused_for_its_age(tmp_path: Path) -> None:
    """Labels from newest to oldest over twelve days, under a horizon of two: the oldest rows are there because one file is behind."""
    ids = [f"i{number:03d}" for number in range(300)]
    at = {one: START_MS + number * HOUR_MS for number, one in enumerate(ids)}
    write_lines(tmp_path / "events.ndjson", [encode(prediction(one, at[one], 0.5 + number % 50 / 100)) for number, one in enumerate(ids)])
    (tmp_path / "behind.ndjson").write_bytes(encode(prediction("z", START_MS, 0.5)) + b"\n")
    files = [str(tmp_path / "behind.ndjson"), str(tmp_path / "events.ndjson")]
    config = configure(
        tmp_path, source={"files": files, "follow": True}, state={"directory": str(tmp_path / "state"), "horizon": "2d", "history": "7d"}
    )
    live(config, len(ids) + 1)
    labels = [encode(label(one, at[one] + HOUR_MS, "yes" if number % 3 else "no")) for number, one in enumerate(ids)][::-1]
    done = backfill(config, write_lines(tmp_path / "late.ndjson", labels), rate=2000)
    assert done["total"]["labels"] == {"applied": len(ids)}
    every = write_lines(
        tmp_path / "all.ndjson", [*(tmp_path / "events.ndjson").read_bytes().splitlines(), *labels, encode(prediction("z", START_MS, 0.5))]
    )
    assert state_digest(tmp_path) == digest_in_time(every, config)
    assert account(tmp_path).pending == 1
    with RunningCalmon(config) as running:  # and the service goes on as if nothing had been
        running.wait_for("calmon_pending_predictions", 1)
        assert running.stop() == 0
    assert state_digest(tmp_path) == digest_in_time(every, config)


@pytest.mark.parametrize("stream", ["employment", pytest.param("flights", marks=pytest.mark.soak)])
def test_through_a_followed_file_the_sums_are_those_of_labels_in_time(tmp_path: Path, stream: str) -> None:
    lines = packaged(stream)
    late = hold_back(lines)
    followed = write_lines(tmp_path / "events.ndjson", late.in_time)
    config = configure(tmp_path, follow=True)
    files = as_files(tmp_path, [*late.labels, encode(label("nobody", START_MS, "yes"))])
    with RunningCalmon(config) as running:
        running.wait_for("calmon_records_consumed_total", len(late.in_time))
        error = refusal(calmon("backfill", "labels", files[0], "--map", "label=truth", "--map", "labelled_at=when", "-c", config))
        advice = "labels go through a file that it follows: --append-to FILE, one of"
        assert error.endswith(f"a service is using the state in {tmp_path / 'state'}; {advice} {followed}")
        rehearsed = backfill(config, *files, map=MAPPED, append_to=followed, dry_run=True)
        before = label_counts(account(tmp_path))
        done = backfill(config, *files, map=MAPPED, append_to=followed)
        running.wait_for("calmon_records_consumed_total", len(lines))
        again = backfill(config, *files, map=MAPPED, append_to=followed)
        assert again["total"] == done["total"]
        assert running.value("calmon_source_ok") == 1
        assert running.stop() == 0
    assert done["total"]["labels"] == {"sent": len(late.labels), "unknown_id": 1}
    wanted = Counter(rehearsed["total"]["labels"])
    assert wanted.pop("unknown_id") == 1
    assert label_counts(account(tmp_path)) - before == wanted
    assert followed.read_bytes().count(b"\n") == len(lines)
    assert state_digest(tmp_path) == digest_in_time(write_lines(tmp_path / "all.ndjson", lines), config)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--append-to", "other.ndjson"], "--append-to other.ndjson: is not one of source.files: "),
        (["--append-to", "{events}"], "is not followed: without source.follow: true a service does not see what is appended"),
        (["--rate", "0"], "--rate 0: must be a number greater than 0"),
        (["--map", "truth"], "--map truth: must be FIELD=COLUMN, such as label=truth"),
    ],
)
def test_words_that_cannot_be_meant_are_refused(tmp_path: Path, words: list[str], says: str) -> None:
    config = configure(tmp_path)
    file = write_lines(tmp_path / "late.ndjson", [])
    result = calmon("backfill", "labels", file, "-c", config, *(word.format(events=tmp_path / "events.ndjson") for word in words))
    assert result.returncode == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_without_a_state_there_is_nothing_to_score(tmp_path: Path) -> None:
    config = configure(tmp_path)
    file = write_lines(tmp_path / "late.ndjson", [encode(label("a", START_MS, "yes"))])
    for words in ([], ["--dry-run"]):
        assert "there is no calmon state of files in" in refusal(calmon("backfill", "labels", file, "-c", config, *words))
    assert not (tmp_path / "state").exists()
