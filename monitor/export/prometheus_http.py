"""Talking to a Prometheus over HTTP: where it is, who asks, how patiently, and what a refusal means."""

from __future__ import annotations

import base64
import http.client
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from monitor.errors import CalmonError
from monitor.prometheus_address import Address

TIMEOUT_S: Final = 30.0
PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)
"""Between attempts; a server may ask for more."""

_LONGEST_PAUSE_S: Final = 30.0
_QUOTED: Final = 300

SETTINGS: Final = {
    "remote write receiver needs to be enabled": "start Prometheus with --web.enable-remote-write-receiver",
    "out of bounds": "",
    "too old sample": "",
    "out of order sample": "",
    "duplicate sample for timestamp": "another writer was here meanwhile: run it again, and the next revision is taken",
}
"""What to change, by a part of Prometheus's answer; empty for what is older than it takes."""

_TOO_OLD: Final = (
    "set storage.tsdb.out_of_order_time_window in prometheus.yml to more than the age of the oldest moment, and "
    "--storage.tsdb.retention.time to more than that; or import blocks: calmon backfill openmetrics"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request is allowed by; nothing that prints it shows it."""

    header: str = field(repr=False)

    @classmethod
    def basic(cls, username: str, password: str) -> Credentials:
        """A user and a password."""
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    @classmethod
    def bearer(cls, token: str) -> Credentials:
        """A token."""
        return cls(f"Bearer {token}")


class RefusedError(CalmonError):
    """A Prometheus that does not do what it was asked."""


class UnavailableError(RefusedError):
    """A Prometheus that takes nothing from us now, whatever it is: away, busy, another server, or one that does not let us in."""


class PrometheusHttp:
    """Posts to a Prometheus over one connection, patiently: what is overloaded or away is asked again, what refuses is not.

    Args:
        address: Where it is.
        credentials: Who asks, if it wants to know.
        pauses_s: Between attempts.
        wait: Waits so many seconds.
        given_up: Whether nobody waits for an answer any more; then nothing more is sent.
    """

    def __init__(
        self,
        address: Address,
        credentials: Credentials | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
        wait: Callable[[float], object] = time.sleep,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.address = address
        self._headers = {"User-Agent": "calmon"} | ({} if credentials is None else {"Authorization": credentials.header})
        self._pauses_s = pauses_s
        self._wait = wait
        self._given_up = given_up
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Send a body; what is answered.

        Raises:
            UnavailableError: The server cannot be reached or takes nothing, after all attempts, or it was given up.
            RefusedError: It is refused.
        """
        pauses = iter(self._pauses_s)
        while True:
            if self._given_up():
                raise UnavailableError(f"{self.address}: given up")
            asked_s = 0.0
            try:
                answer = self._once(path, body, headers)
                if 200 <= answer.status < 300:  # noqa: PLR2004 - HTTP's own numbers
                    return answer.body
                failure = _refusal(self.address, path, answer)
                again = answer.again
                asked_s = answer.retry_after_s
            except ssl.SSLCertVerificationError as error:
                self.close()
                advice = "SSL_CERT_FILE names a file of certificates to trust instead of the system's"
                raise UnavailableError(f"{self.address}: its certificate is not trusted: {error.verify_message}; {advice}") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failure = UnavailableError(f"{self.address}: cannot be reached: {type(error).__name__}: {error}")
                again = True
            except ValueError as error:
                self.close()
                # http.client says so of a host or a header that cannot be sent, and quotes it: it may be a secret.
                raise UnavailableError(f"{self.address}: cannot be asked: {type(error).__name__} in its name or the credentials") from None
            pause_s = next(pauses, None) if again else None
            if pause_s is None:
                raise failure
            self._wait(min(max(pause_s, asked_s), _LONGEST_PAUSE_S))

    def close(self) -> None:
        """Leave the server; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _once(self, path: str, body: bytes, headers: Mapping[str, str]) -> _Answer:
        if self._connection is None:
            self._connection = _connect(self.address)
        self._connection.request("POST", self.address.prefix + path, body, {**self._headers, **headers})
        answer = self._connection.getresponse()
        return _Answer(answer.status, answer.read(), answer.headers.get("Retry-After", ""))


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    retry_after: str

    @property
    def text(self) -> str:
        """What it says, in one line."""
        return " ".join(self.body[:4096].decode(errors="replace").split())[:_QUOTED]

    @property
    def again(self) -> bool:
        """Whether asking again may help: Prometheus 2.42 says 500 to samples that are too old, now and for ever."""
        busy = self.status == http.client.TOO_MANY_REQUESTS or self.status >= http.client.INTERNAL_SERVER_ERROR
        return busy and not any(part in self.text for part in SETTINGS)

    @property
    def to_all(self) -> bool:
        """Whether it would be the same to any request: nobody is there, or we are not let in."""
        closed = self.status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN, http.client.NOT_FOUND)
        return self.again or closed or self.status < http.client.BAD_REQUEST

    @property
    def retry_after_s(self) -> float:
        """How long the server asks to wait."""
        return float(self.retry_after) if self.retry_after.isdecimal() else 0.0


def _refusal(address: Address, path: str, answer: _Answer) -> RefusedError:
    advice = next((setting or _TOO_OLD for part, setting in SETTINGS.items() if part in answer.text), _of_status(answer.status))
    said = f'"{answer.text}"' if answer.text else "nothing more"
    kind = UnavailableError if answer.to_all else RefusedError
    return kind(f"{address}{path} answers {answer.status}: {said}" + (f"; {advice}" if advice else ""))


def _of_status(status: int) -> str:
    if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
        return "name the user or the token that may: see calmon backfill remote-write --help"
    if status == http.client.NOT_FOUND:
        return "is this the address of a Prometheus?"
    if 300 <= status < 400:  # noqa: PLR2004 - HTTP's own numbers
        return "it sends elsewhere: name the address that it leads to"
    return ""


def _connect(address: Address) -> http.client.HTTPConnection:
    if address.secure:
        return http.client.HTTPSConnection(address.host, address.port, timeout=TIMEOUT_S, context=ssl.create_default_context())
    return http.client.HTTPConnection(address.host, address.port, timeout=TIMEOUT_S)
