"""What an alert is: one entry that says everything about it, which the rule files, the runbook index and the tests read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SCRAPED = ("job", "instance")
MODEL = (*SCRAPED, "model")
VERSION = (*MODEL, "model_version")
WINDOW = (*VERSION, "window")
ATTRIBUTE = (*WINDOW, "segment")
"""Labels that tell series apart: of a scraped calmon, a model, a version, one of its windows, a group attribute in it."""


class Severity(StrEnum):
    """Who learns of an alert, and how soon.

    PAGE: wakes somebody. TICKET: somebody looks at it in working hours. INFO: nobody is told, it is there to be seen.
    """

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


class Needs(StrEnum):
    """Without what an alert has nothing to say: the group by which Alertmanager inhibits.

    NOTHING: never inhibited. TARGET: speaks of what the target serves. LABELS: speaks of labels too.
    """

    NOTHING = "nothing"
    TARGET = "target"
    LABELS = "labels"


class Form(StrEnum):
    """How a number is written in a text."""

    RATIO = "humanizePercentage"
    DURATION = "humanizeDuration"
    TIME = "humanizeTimestamp"
    COUNT = 'printf "%.0f"'
    NUMBER = 'printf "%.3g"'


@dataclass(frozen=True, slots=True)
class Detail:
    """A number beside the value, asked for when the alert fires.

    Attributes:
        query: PromQL; `$m` in it stands for matchers of the labels, `$by` for their names.
        form: How it is written.
        labels: Labels of the alert that are asked for; empty for all of them.
    """

    query: str
    form: Form
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        name: CamelCase, begins with Calmon; also the runbook's file.
        severity: Who learns of it unless the user says otherwise.
        needs: By what it is inhibited.
        expression: PromQL; `${NAME}` in it are bounds.
        form: How its value is written.
        wait: `for`: how long the expression holds before it fires.
        hold: `keep_firing_for`: how long it goes on firing after that.
        labels: Labels that its series have.
        summary: One line. `{value}`, `{NAME}` of a detail or bound, and `{LABEL}` are filled in.
        description: Value, count, bound, version and since when; the same.
        dashboard: Where to look, as `UID` of a dashboard.
        details: Numbers for the texts, by name.
        families: Families of metrics that it needs and that are not exported by default.
    """

    name: str
    severity: Severity
    needs: Needs
    expression: str
    form: Form
    wait: str
    hold: str
    labels: tuple[str, ...]
    summary: str
    description: str
    dashboard: str
    details: Mapping[str, Detail] = field(default_factory=dict)
    families: tuple[str, ...] = ()
