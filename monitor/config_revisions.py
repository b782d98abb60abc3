"""How revisions are looked for, and which Prometheus is told of them."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from monitor.config_value import Number, PathText, PositiveMs, Section, Text, report_faults, within
from monitor.duration import HOUR_MS, SECOND_MS, format_duration
from monitor.prometheus_address import check_username, parse_address

SHORTEST_EVERY_MS: Final = SECOND_MS


def _check_every(value: int) -> int:
    if value < SHORTEST_EVERY_MS:
        raise ValueError(f"must be at least {format_duration(SHORTEST_EVERY_MS)}")
    return value


def _check_address(value: str) -> str:
    return str(parse_address(value))


PrometheusAddress = Annotated[str, Strict(), AfterValidator(_check_address)]


Username = Annotated[Text, AfterValidator(check_username)]


class RevisionsConfig(Section):
    """What becomes of changes in hours that have matured."""

    every_ms: Annotated[PositiveMs, AfterValidator(_check_every)] = Field(default=HOUR_MS, validation_alias="every")
    threshold: Annotated[Number, within(0.0, 1.0)] = 0.005
    prometheus: PrometheusAddress | None = None
    username: Username | None = None
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
