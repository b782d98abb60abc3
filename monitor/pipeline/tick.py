"""The evaluation tick: windows move to the clock, every metric is computed, and one immutable snapshot takes over.

A scrape only ever reads the last snapshot; it never waits for a tick, and a tick never waits for the consumer longer
than it takes to copy the windows' sums.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from monitor.clock import Clock
from monitor.errors import CapacityError
from monitor.evidence.standing import Evidence
from monitor.metrics.evaluation import Block, WindowCells, evaluate, fold_groups, merge_cells
from monitor.metrics.metric import Metric, segments_read
from monitor.metrics.settings import SettingsOf, VersionName
from monitor.metrics.succession import previous_versions
from monitor.metrics.version import Version
from monitor.names import CLASS_SEGMENT, OTHER_VALUE
from monitor.pipeline.account import Account, merge_accounts
from monitor.pipeline.references import ConfiguredReferences, ReferenceState
from monitor.pipeline.shard import Shard, present_layouts
from monitor.statistics.fixed_point import I64
from monitor.statistics.series import SeriesKey
from monitor.windows.running import WindowSums

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WindowValues:
    """One window at one moment.

    Attributes:
        name: Of the window.
        start_ms: First event time.
        end_ms: Excluded.
        blocks: Values of its series.
        held_back: Models whose series are absent until the window lies inside their present epoch.
        previous: By version the one that it is compared with here.
    """

    name: str
    start_ms: int
    end_ms: int
    blocks: Sequence[Block]
    held_back: Sequence[str]
    previous: Mapping[VersionName, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is shown, as of one tick.

    Attributes:
        now_ms: What the clock showed.
        windows: Values by window; a window whose panes are not kept yet is absent.
        account: What became of every record so far.
        folded: Series that were folded into `__other__`.
        duration_s: How long the tick took.
        errors: Windows, and evidence of a tick, that could not be evaluated since the start.
        references: How each configured reference stands.
        evidence: How versions stand in the evidence tests.
    """

    now_ms: int
    windows: Sequence[WindowValues] = ()
    account: Account = field(default_factory=Account)
    folded: int = 0
    duration_s: float = 0.0
    errors: int = 0
    references: Sequence[ReferenceState] = ()
    evidence: Evidence = field(default_factory=Evidence)


class Evaluator:
    """Makes snapshots of shards.

    Args:
        shards: Whose windows are merged; all have the same ones.
        clock: What windows are moved to.
        settings_of: Settings by model.
        metrics: What is computed.
        references: What drift is told from.
        evidence: What a moment's evidence is; panes that have become mature enter the tests.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        clock: Clock,
        settings_of: SettingsOf,
        metrics: Sequence[Metric],
        references: ConfiguredReferences,
        evidence: Callable[[int], Evidence] = lambda now_ms: Evidence(),
    ) -> None:
        self._shards = shards
        self._clock = clock
        self._settings_of = settings_of
        self._metrics = metrics
        self._references = references
        self._reserved = segments_read(metrics)
        self._evidence = evidence
        self._errors = 0
        self._folded: set[tuple[str, str, str]] = set()
        # Counters go on where they were: a page that began at 0 after a restart would look like a burst of records.
        self.snapshot = Snapshot(clock.now_ms(), account=merge_accounts([shard.published for shard in shards]))

    def tick(self) -> Snapshot:
        """Move the windows, evaluate, and replace `snapshot`.

        Raises:
            CapacityError: Sums could overflow; there is no honest gauge to show.
            StateError: Panes could not be read.
        """
        began = time.perf_counter()
        now_ms = self._clock.now_ms()
        advanced = [shard.advance(now_ms, self._reserved) for shard in list(self._shards)]
        account = merge_accounts([account for _, account in advanced])
        references, states = self._references.look(present_layouts(self._shards))
        windows, folded = [], 0
        for views in zip(*(views for views, _ in advanced), strict=True):
            present = [view for view in views if view is not None]
            if len(present) == len(views):
                values, count = self._evaluate(present, account, references)
                windows.append(values)
                folded += count
        evidence = self._weigh(now_ms)
        self.snapshot = Snapshot(now_ms, windows, account, folded, time.perf_counter() - began, self._errors, states, evidence)
        return self.snapshot

    def _weigh(self, now_ms: int) -> Evidence:
        """The evidence of a moment; none where it fails, for it must not blank the page."""
        try:
            return self._evidence(now_ms)
        except (ArithmeticError, ValueError, LookupError, CapacityError):
            self._errors += 1
            log.exception("the evidence could not be evaluated")
            return Evidence()

    def _evaluate(self, views: Sequence[WindowSums], account: Account, references: Mapping[str, Version]) -> tuple[WindowValues, int]:
        cells = merge_cells([(view.keys, view.cells) for view in views])
        cells, held_back = self._current(cells, views[0].start_ms)
        layouts = {name: layout for shard in self._shards for name, layout in shard.layouts.copy().items()}
        folded_cells, folded = fold_groups(cells, layouts)
        previous = previous_versions(cells, account.first_ms, self._settings_of)
        self._say_what_was_folded(folded)
        blocks: list[Block] = []
        try:
            blocks = evaluate(WindowCells(folded_cells, previous, references), layouts, self._settings_of, self._metrics)
        except (ArithmeticError, ValueError, LookupError):
            # One broken window must not blank the page: it is absent, counted, and the log says why.
            self._errors += 1
            log.exception("window %s could not be evaluated", views[0].name)
        return WindowValues(views[0].name, views[0].start_ms, views[0].end_ms, blocks, held_back, previous), sum(folded.values())

    def _say_what_was_folded(self, folded: Mapping[tuple[str, str, str], int]) -> None:
        """Log each attribute of a version the first time that it has more values than are exported."""
        for name, values in folded.items():
            if name not in self._folded:
                self._folded.add(name)
                model, version, attribute = name
                what = "classes" if attribute == CLASS_SEGMENT else f"values of {attribute}"
                log.warning(
                    "model %s version %s: %d %s beyond max_group_values are summed as %s", model, version, values, what, OTHER_VALUE
                )

    def _current(self, cells: dict[SeriesKey, I64], start_ms: int) -> tuple[dict[SeriesKey, I64], list[str]]:
        """Cells of models whose present epoch holds the whole window, and the names of the other models."""
        begins = {model: epochs[-1].start_ms for shard in self._shards for model, epochs in list(shard.epochs.items())}
        held_back = {key.model for key in cells if start_ms < begins[key.model]}
        return {key: cell for key, cell in cells.items() if key.model not in held_back}, sorted(held_back)
