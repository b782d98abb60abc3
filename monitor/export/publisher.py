"""What is known now of past windows, into a running Prometheus beside what was known then, and never over it.

    publisher = Publisher(parse_address("http://127.0.0.1:9090"), credentials=None)
    published = publisher.publish(Scope(model, version, window_name, metrics), moments)   # Moments of `pipeline.sweep`
    published.revision, published.written, published.equal

A stored sample is never changed: what differs from what an earlier backfill wrote is a revision of its own. The newest
revision at the moments is compared first. Where it holds nothing else than what is to be written, the rest of it is
written there (nothing, where all of it is there: doing it twice changes nothing); else the next revision is begun. It
counts predictions at every moment, also where no other value is defined any more. So of the samples of a moment the highest
revision is what is known now. Afterwards everything is read back and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from monitor.errors import CalmonError
from monitor.events.instant import instant
from monitor.export.backfill_series import Samples, Scope, SeenMoment, Series, backfill_samples, count, text
from monitor.export.prometheus_http import PAUSES_S, Credentials, PrometheusHttp
from monitor.export.read_back import read_back
from monitor.export.remote_write import remote_write
from monitor.names import REVISIONS
from monitor.prometheus_address import Address


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a run of windows.

    Attributes:
        revision: Where its samples are.
        written: Samples that were written, and read back equal.
        equal: Samples that were there already.
    """

    revision: int
    written: int
    equal: int


class PublishError(CalmonError):
    """Samples that cannot be written, or that are not what was written when they are read back."""


class RevisionsTakenError(PublishError):
    """Samples for which there is no revision left."""


class Publisher:
    """Writes windows to a Prometheus by remote write.

    Args:
        address: Where it is.
        credentials: Who writes, if it wants to know.
        pauses_s: Between attempts to reach it.
        given_up: Whether nobody waits for it any more; then it ends after the request in work.
    """

    def __init__(
        self,
        address: Address,
        credentials: Credentials | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._http = PrometheusHttp(address, credentials, pauses_s, given_up=given_up)

    def publish(self, scope: Scope, moments: Iterable[SeenMoment], wrote: Callable[[int], object] = lambda samples: None) -> Published:
        """Write a window at its moments, and read it back.

        Args:
            scope: Which series.
            moments: Ascending.
            wrote: Told how many samples each request had.

        Raises:
            UnavailableError: The server cannot be reached or takes nothing, or it was given up.
            RefusedError: It refuses these samples; with its answer and the setting to change.
            RevisionsTakenError: Every revision is taken by other values, and nothing was written.
            PublishError: A moment that has samples has no prediction now, and nothing was written; or what is read back differs.
        """
        samples, stamps = backfill_samples(scope, moments)
        if not stamps:
            return Published(REVISIONS[0], 0, 0)
        stored = read_back(self._http, scope, stamps, len(samples))
        _check_told(samples, stored)
        revision = _free_revision(samples, stored)
        lacking = _lacking(samples, stored.get(revision, {}))
        written, total = count(lacking), count(samples)
        if written:
            remote_write(self._http, samples, lacking, stamps, revision, wrote)
            self._verify(samples, read_back(self._http, scope, stamps, len(samples)).get(revision, {}), revision)
        return Published(revision, written, total - written)

    def close(self) -> None:
        """Leave the server; safe to call twice."""
        self._http.close()

    def _verify(self, samples: Samples, stored: Samples, revision: int) -> None:
        differences = list(_differences(samples, stored))
        if differences:
            raise PublishError(
                f"{self._http.address}: {len(differences)} of {count(samples)} samples of revision {revision} are not what was written: "
                f"{differences[0]}; does another process write them too, or does Prometheus drop what is that old?"
            )


def _check_told(samples: Samples, stored: dict[int, Samples]) -> None:
    """Refuse moments of which nothing is to be written, so that what is stored of them would stay the newest.

    Raises:
        PublishError: There are some: the samples come from a state that held more than this one.
    """
    there = {at_ms for found in stored.values() for values in found.values() for at_ms in values}
    untold = sorted(there.difference(*samples.values()))
    if untold:
        raise PublishError(
            f"nothing is written: {len(untold)} moments have samples of an earlier backfill and no prediction now, the first at "
            f"{instant(untold[0])}: is this the state that they came from? If so leave these moments out, or delete calmon_backfill_* "
            "of this window in Prometheus to begin anew"
        )


def _free_revision(samples: Samples, stored: dict[int, Samples]) -> int:
    """The newest revision if it holds nothing else than these samples, else the next.

    Raises:
        RevisionsTakenError: There is no next one.
    """
    newest = max(stored, default=REVISIONS[0])
    others = [said for said in _differences(samples, stored.get(newest, {})) if not said.missing]
    if not others:
        return newest
    if newest == REVISIONS[-1]:
        raise RevisionsTakenError(
            f"nothing is written: revisions {REVISIONS[0]} to {REVISIONS[-1]} are all taken at these moments, and the newest differs in "
            f"{len(others)} samples: {others[0]}; delete calmon_backfill_* of this window in Prometheus to begin anew"
        )
    return newest + 1


def _lacking(samples: Samples, stored: Samples) -> Samples:
    """Samples that are not stored."""
    nothing: dict[int, float] = {}
    parts = {
        series: {at_ms: value for at_ms, value in values.items() if at_ms not in stored.get(series, nothing)}
        for series, values in samples.items()
    }
    return {series: values for series, values in parts.items() if values}


@dataclass(frozen=True, slots=True)
class _Difference:
    series: Series
    at_ms: int
    ours: float | None
    theirs: float | None

    @property
    def missing(self) -> bool:
        """Whether it is there not at all."""
        return self.theirs is None

    def __str__(self) -> str:
        at = instant(self.at_ms, "milliseconds")
        ours, theirs = ("no sample" if value is None else repr(value) for value in (self.ours, self.theirs))
        return f"{text(self.series)} at {at} is {ours} here and {theirs} there"


def _differences(samples: Samples, stored: Samples) -> Iterable[_Difference]:
    for series in sorted(samples.keys() | stored.keys()):
        ours, theirs = samples.get(series, {}), stored.get(series, {})
        for at_ms in sorted(ours.keys() | theirs.keys()):
            if ours.get(at_ms) != theirs.get(at_ms):
                yield _Difference(series, at_ms, ours.get(at_ms), theirs.get(at_ms))
