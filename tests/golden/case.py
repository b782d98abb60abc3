"""A golden case: read, turned into event lines, and its keys made comparable with a report's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.golden.comparison import APPROXIMATE, REJECTED, Found, Tolerance, Wanted
from tests.golden.functions import call, flat

T0_MS = 1_780_000_000_000
NOT_FINITE = "_not_finite"
BAD_JSON = "account.rejected.bad_json"


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        name: Of the case.
        config: In the case's own words.
        events: In order of arrival; empty for a pure function.
        found: Results of the pure function that the case asks for.
        want: Expected values.
        tolerance: How far values may be off.
    """

    name: str
    config: Mapping[str, Any]
    events: list[dict[str, Any]]
    found: Found
    want: Wanted
    tolerance: Tolerance

    @property
    def models(self) -> set[str]:
        """Every `model@version` that predicts anything."""
        return {f"{event.get('model')}@{event.get('model_version')}" for event in self.events if event.get("type") == "prediction"}

    def lines(self) -> bytes:
        """The events as they are sent; a number that JSON cannot write is the bare token NaN, Infinity or -Infinity."""
        return b"".join(json.dumps(event).encode() + b"\n" for event in self.events)

    def settled(self, got: Found) -> Found:
        """Count refusals as JSON under the reasons that the case names for its non-finite numbers, where those came short.

        A strict parser refuses the bare tokens before anyone looks at the field; either reason is right.
        """
        settled = dict(got)
        unexplained = (settled.get(BAD_JSON) or 0) - self.want.get(BAD_JSON, 0)
        for key in self.want:
            if key.startswith(REJECTED) and key.endswith(NOT_FINITE):
                short = min(unexplained, self.want[key] - (settled.get(key) or 0))
                if short > 0:
                    settled[key] = (settled.get(key) or 0) + short
                    settled[BAD_JSON] = (settled.get(BAD_JSON) or 0) - short
                    unexplained -= short
        return settled


def load_case(path: Path) -> Case:
    """Read a case.

    Raises:
        KeyError: The file is no golden case.
    """
    content: dict[str, Any] = json.loads(path.read_text("utf-8"), object_hook=_special)
    want: dict[str, Any] = content["expect"]
    config: dict[str, Any] = content.get("config", {})
    function = content.get("function")
    found: dict[str, Any] = {}
    if function == "group_rejection":
        config = {"min_group_count": content["args"]["min_n"]}
        # The one function that is a question to a stream: so many predictions of each group, so many rejected.
        events = list(_group_events(content["args"]["counts"]))
        want = {f"m@1.{key}": value for key, value in want.items()}
    elif function is not None:
        events = []
        want = flat({f"{function}.{key}": value for key, value in want.items()})
        found = flat(call(function, content["args"]))
    elif "arrays" in content:
        events = list(_array_events(content["arrays"]))
    else:
        events = content["events"]
    given = content["tolerance"]
    patterns = tuple((substring, float(value)) for substring, value in given["patterns"])
    return Case(
        content["name"],
        config,
        events,
        found,
        want,
        Tolerance(float(given["default"]), patterns, tuple(given.get("approximate", APPROXIMATE))),
    )


def _special(value: dict[str, Any]) -> Any:
    return float(value["$float"]) if value.keys() == {"$float"} else value


def _prediction(number: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    head = {"type": "prediction", "prediction_id": str(number), "model": "m", "model_version": "1", "predicted_at": T0_MS + number}
    return {**head, "predicted_class": "a", **fields}


def _array_events(arrays: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number, (confidence, correct) in enumerate(zip(arrays["confidence"], arrays["correct"], strict=True)):
        yield _prediction(number, {"confidence": confidence})
        yield {"type": "label", "prediction_id": str(number), "label": "a" if correct else "b", "labelled_at": T0_MS + number}


def _group_events(counts: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, Any]]:
    number = 0
    for value, (rejected, total) in counts.items():
        for place in range(total):
            yield _prediction(number, {"confidence": 0.5, "accepted": place >= rejected, "groups": {"group": value}})
            number += 1
