"""Which panes are mature: long enough ago by the clock, and by what has been read of every partition.

A pane enters when its maturity has passed both by the clock and in what was read: of every partition that may still deliver,
a record that new has been taken in, or the partition was seen to be read to its end since. So a shard that lags behind,
or one that another process reads, holds maturity back for all: half a pane never enters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from monitor.events.contract import LATEST_MS
from monitor.statistics.pane import HOUR


def known_until_ms(live: Collection[str], newest_ms: Mapping[str, int], caught_up_ms: Mapping[str, int]) -> int:
    """Until when everything is known.

    Args:
        live: Partitions that may still deliver.
        newest_ms: Newest record time that was taken in of each partition.
        caught_up_ms: When each partition was last seen to be read to its end, by the clock.

    Returns:
        The time of the slowest partition; the end of time if none may deliver any more.
    """
    return min((max(newest_ms.get(name, 0), caught_up_ms.get(name, 0)) for name in live), default=LATEST_MS)


def mature_pane(now_ms: int, known_ms: int, maturity_ms: int) -> int:
    """Number of the hour pane before which all are mature."""
    return max(0, (min(now_ms, known_ms) - maturity_ms) // HOUR.pane_ms)
