"""How revisions are looked for, and which Prometheus is told of them."""

from __future__ import annotations

from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, Strict, model_validator

from monitor.config_value import Number, PathText, PositiveMs, Section, Text, report_faults, within
from monitor.duration import HOUR_MS, MINUTE_MS, format_duration

SHORTEST_EVERY_MS: Final = MINUTE_MS


def _check_every(value: int) -> int:
    if value < SHORTEST_EVERY_MS:
        raise ValueError(f"must be at least {format_duration(SHORTEST_EVERY_MS)}")
    return value


def check_url(value: str) -> str:
    """Refuse what is no http or https URL, or holds a password, which would end up in logs.

    Raises:
        ValueError: It is refused.
    """
    try:
        parts = urlsplit(value)
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(f"must be a URL such as http://127.0.0.1:9090: {error}") from error
    if not well_formed or parts.query or parts.fragment:
        raise ValueError("must be the http:// or https:// URL that Prometheus is at, such as http://127.0.0.1:9090")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must hold no name or password: they have keys of their own")
    return value.rstrip("/")


PrometheusUrl = Annotated[str, Strict(), AfterValidator(check_url)]


class RevisionsConfig(Section):
    """What becomes of changes in hours that have matured."""

    every_ms: Annotated[PositiveMs, AfterValidator(_check_every)] = Field(default=HOUR_MS, validation_alias="every")
    threshold: Annotated[Number, within(0.0, 1.0)] = 0.005
    prometheus: PrometheusUrl | None = None
    username: Text | None = None
    password_file: PathText | None = None
    bearer_token_file: PathText | None = None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        faults = []
        for key in ("username", "password_file", "bearer_token_file"):
            if getattr(self, key) is not None and self.prometheus is None:
                faults.append((key, "needs prometheus, the server that it is for"))
        if (self.username is None) != (self.password_file is None):
            faults.append(("password_file" if self.password_file is None else "username", "username and password_file go together"))
        if self.username is not None and self.bearer_token_file is not None:
            faults.append(("bearer_token_file", "cannot stand beside username: leave one of the two out"))
        report_faults(((key,), text) for key, text in faults)
        return self
