"""What a replay says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from monitor.backfill.replay.run import Outcome
from monitor.events.instant import instant
from monitor.pipeline.account import Account

_KINDS = {"prediction": "predictions", "label": "labels", "unknown": "unreadable"}


def summary(outcome: Outcome, config: str, directory: str, resumed: bool) -> str:
    """Say what was read, what became of it, and what to do next.

    Args:
        outcome: Of the run.
        config: The configuration, as the user named it.
        directory: The scratch state, likewise.
        resumed: Whether there was a replay to go on with.
    """
    account = outcome.account
    if resumed and not outcome.records and not outcome.stopped:
        first = f"{directory}: nothing to do, all {account.consumed:,} records are in it"
    else:
        rate = outcome.records / max(outcome.seconds, 0.001)
        before = account.consumed - outcome.records
        earlier = f" and {before:,} before" if before else ""
        first = f"{directory}: {outcome.records:,} records{earlier}, {outcome.seconds:.1f} s, {rate:,.0f}/s"
    lines = [first, *_of_records(account, directory)]
    for one in outcome.versions:
        lines.append(f"{one.model} {one.version}: {one.predictions:,} predictions, {one.labelled:,} with a label")
    if outcome.stopped:
        lines.append("stopped before the end; what was read is kept: run the same command again to go on")
        return "\n".join(lines)
    lines.append(f"digest: {outcome.digest}")
    lines += [f"next: {command}" for command in _next(outcome, config, directory)]
    return "\n".join(lines)


def _of_records(account: Account, directory: str) -> list[str]:
    """Every record has one outcome; the lines add up to all of them."""
    lines = []
    for kind, name in _KINDS.items():
        outcomes = {outcome: count for (one, outcome), count in sorted(account.outcomes.items()) if one == kind and count}
        if outcomes:
            lines.append(f"{name}: {_counts(outcomes)}")
    reasons: dict[str, int] = {}
    for (_, reason), count in account.refused.items():
        reasons[reason] = reasons.get(reason, 0) + count
    if reasons:
        lines.append(f"refused: {_counts(dict(sorted(reasons.items())))}; each with its reason in quarantine.ndjson under {directory}")
    if account.ineligible:
        lines.append(f"labels too far from their prediction: {_counts(account.ineligible)}")
    if account.pending or account.waiting:
        lines.append(f"waiting: {account.pending:,} predictions without a label, {account.waiting:,} labels without a prediction")
    return lines


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _next(outcome: Outcome, config: str, directory: str) -> list[str]:
    commands = []
    if outcome.versions and outcome.span_ms is not None:
        one = outcome.versions[0]
        first, end = map(instant, outcome.span_ms)
        names = shlex.join([one.model, one.version, "-c", config, "--state", directory])
        commands.append(f"calmon history {names} --window 24h --step 1h --from {first} --to {end}")
    return [*commands, f"calmon state digest {shlex.quote(directory)}"]
