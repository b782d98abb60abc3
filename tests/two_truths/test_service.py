"""A running service that is told labels late: the windows that moved come to Prometheus by themselves, also if it was away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.running import RunningCalmon, calmon, report, wait_until
from tests.recovery.stream import HOUR_MS, write_lines
from tests.services.prometheus import PrometheusServer, free_port
from tests.two_truths.conftest import AGE, RECEIVES, Served
from tests.two_truths.past import BEGIN_MS, HOURS, MODEL, VERSION, Page, Past, corrections, in_time, late_labels

CONFIG = """
source: {{files: [{folder}/events.ndjson], follow: true}}
state: {{directory: {folder}/state, horizon: none}}
windows: [{{name: day, length: 12h, lag: 2h}}]
evidence: {{maturity: 2h}}
evaluation: {{tick: 200ms, families: [classes, reliability, comparison]}}
revisions: {{every: 1s, threshold: 0.0, prometheus: {url}}}
defaults: {{bins: 4, groups: [region], min_group_count: 5, confidence_threshold: 0.7}}
http: {{port: 0}}
"""


def configure(folder: Path, url: str) -> Path:
    path = folder / "calmon.yaml"
    path.write_text(CONFIG.format(folder=folder, url=url))
    return path


def append(folder: Path, records: list[bytes]) -> None:
    with (folder / "events.ndjson").open("ab") as file:
        file.write(b"".join(record + b"\n" for record in records))


def journal(folder: Path, version: str = VERSION) -> list[dict[str, Any]]:
    words = ("history", MODEL, version, "--revisions", "--format", "json", "--state", str(folder / "state"))
    found: list[dict[str, Any]] = report(calmon(*words))
    return found


def moved(entries: list[dict[str, Any]]) -> list[int]:
    return sorted({at for entry in entries for first, last in entry["moved"]["day"] for at in range(first, last + 1, HOUR_MS)})


def stored(server: PrometheusServer, revision: int) -> dict[int, Page]:
    """What Prometheus holds of a revision of the version, by moment, without the label of the revision."""
    found: dict[int, Page] = {}
    selector = f'{{__name__=~"calmon_backfill_.+",revision="{revision}",model_version="{VERSION}"}}'
    for labels, points in server.query_range(selector, BEGIN_MS / 1000, (BEGIN_MS + 70 * HOUR_MS) / 1000, 3600):
        del labels["revision"]
        for at_s, value in points:
            found.setdefault(round(at_s * 1000), {})[tuple(sorted(labels.items()))] = value
    return found


@pytest.mark.timeout(200)
def test_moved_windows_come_to_prometheus(past: Past, served: Served, tmp_path: Path) -> None:
    write_lines(tmp_path / "events.ndjson", [record for _, record in in_time()])
    away = f"http://127.0.0.1:{free_port()}"
    with RunningCalmon(configure(tmp_path, away)) as running:
        matured_s = (BEGIN_MS + HOURS * HOUR_MS) / 1000
        name = "calmon_evidence_matured_until_timestamp_seconds"
        wait_until(lambda: (running.value(name) or 0) >= matured_s, f"everything has matured; log:\n{running.log}")
        append(tmp_path, late_labels())
        wait_until(lambda: f"moved windows are not in Prometheus yet: {away}: cannot be reached" in running.log, "it says why they wait")
        entries = journal(tmp_path)
        running.wait_for("calmon_revisions_total", len(entries) + len(journal(tmp_path, "v1")))
        assert "day: not written" in running.get("/")[1]
        assert running.stop() == 0
    assert [entry["published"] for entry in entries] == [{}] * len(entries)

    with served(RECEIVES, out_of_order=AGE) as prometheus, RunningCalmon(configure(tmp_path, prometheus.url)) as running:
        wait_until(lambda: all(entry["published"] == {"day": 1} for entry in journal(tmp_path)), f"all are written; log:\n{running.log}")
        at = moved(entries)
        assert len(at) > 40
        assert stored(prometheus, 1) == past.known_now(at)

        append(tmp_path, corrections())
        wait_until(lambda: journal(tmp_path)[-1]["published"] == {"day": 2}, f"the correction is written; log:\n{running.log}")
        correction = journal(tmp_path)[-1]
        assert {cause["kind"] for cause in correction["causes"]} == {"correction"}
        pages = stored(prometheus, 2)
        assert sorted(pages) == moved([correction])
        accuracies = {at_ms: page[key] for at_ms, page in pages.items() for key in page if _is_accuracy(key)}
        (move,) = (move for move in correction["moves"] if move["metric"] == "accuracy")
        assert accuracies[move["at_ms"]] == move["new"]
        assert stored(prometheus, 1) == past.known_now(at), "what was written stays"
        assert running.stop() == 0


def _is_accuracy(series: tuple[tuple[str, str], ...]) -> bool:
    return {("__name__", "calmon_backfill_accuracy_ratio"), ("segment", "all")} <= set(series)
