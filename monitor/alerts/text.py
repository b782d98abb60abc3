"""Texts of alerts: names in braces become what Prometheus or Grafana fills in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from string import Template

from monitor.alerts.alert import Alert, Detail, Form

_NAME = re.compile(r"\{(\w+)\}")
_SPACE = re.compile(r"\s+")


class TextError(ValueError):
    """A text names something that the alert does not have."""


def filled(alert: Alert, text: str, told: Mapping[str, str], value: str, detail: Callable[[str, Detail], str]) -> str:
    """A text with its names replaced.

    Args:
        alert: Whose text it is.
        text: With names in braces.
        told: Bounds as people read them.
        value: What stands for the value.
        detail: What stands for a detail, by its name.

    Raises:
        TextError: A name is neither the value, a detail, a label nor a bound.
    """

    def of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "value":
            return value
        if name in alert.details:
            return detail(name, alert.details[name])
        if name in alert.labels:
            return f"{{{{ $labels.{name} }}}}"
        if name in told:
            return told[name]
        raise TextError(f"{alert.name}: nothing is called {name}")

    return _NAME.sub(of, text)


def piped(form: Form, number: str) -> str:
    """A number in a form, inside braces of Go's templates."""
    return f"{number} | {form}"


def prometheus_detail(alert: Alert, detail: Detail, numbers: Mapping[str, str]) -> str:
    """A template that asks Prometheus for a number when the alert fires."""
    labels = detail.labels or alert.labels
    matchers = ",".join(f"{label}=%[{place}]q" for place, label in enumerate(labels, 1))
    query = _one_line(detail.query.replace(" by ($by)", ""), {**numbers, "m": matchers})
    arguments = " ".join(f"$labels.{label}" for label in labels)
    found = piped(detail.form, ". | first | value")
    return f"{{{{ with printf `{query}` {arguments} | query }}}}{{{{ {found} }}}}{{{{ else }}}}unknown{{{{ end }}}}"


def grafana_query(alert: Alert, detail: Detail, numbers: Mapping[str, str]) -> str:
    """The query of a detail for all series at once; Grafana matches them by their labels."""
    bare = detail.query.replace("{$m}", "").replace("$m,", "")
    return _one_line(bare, {**numbers, "by": ", ".join(detail.labels or alert.labels)})


def grafana_detail(detail: Detail, letter: str) -> str:
    """A template that writes what the query of that letter found."""
    found = piped(detail.form, ".Value")
    return f"{{{{ with $values.{letter} }}}}{{{{ if .Labels }}}}{{{{ {found} }}}}{{{{ else }}}}unknown{{{{ end }}}}{{{{ end }}}}"


def _one_line(query: str, names: Mapping[str, str]) -> str:
    return Template(_SPACE.sub(" ", query)).substitute(names)
