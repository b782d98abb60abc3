"""Pieces of PromQL that several alerts share.

Times are compared with `calmon_clock_seconds`, never with `time()`: calmon's clock need not be Prometheus's.
"""

from __future__ import annotations

from collections.abc import Sequence

from monitor.alerts.alert import SCRAPED, VERSION, WINDOW, Detail, Form


def names(labels: Sequence[str]) -> str:
    """Names of labels as in `on (...)`."""
    return ", ".join(labels)


SCRAPED_NAMES, VERSION_NAMES, WINDOW_NAMES = names(SCRAPED), names(VERSION), names(WINDOW)

_MATURE_WINDOWS = f"""(
  calmon_window_lag_seconds >= on ({SCRAPED_NAMES}) group_left () calmon_evidence_maturity_seconds
  and
  calmon_window_end_timestamp_seconds - on ({SCRAPED_NAMES}) group_left () calmon_evidence_matured_until_timestamp_seconds
    <= ${{maturity_slack}}
)"""

MATURE = f"and on ({SCRAPED_NAMES}, window) {_MATURE_WINDOWS}"
"""Keeps series of windows that wait as long for labels as the evidence does, and whose hours have matured (but for the one that is
about to): none on a fresh start or while a backlog is read, and never a provisional one."""

WINDOW_START = Detail("calmon_window_start_timestamp_seconds{$m}", Form.TIME, (*SCRAPED, "window"))
"""When the window began: since when what is wrong may have been so."""


def indented(text: str, by: int = 2) -> str:
    """Every line further to the right, but the first."""
    return text.replace("\n", "\n" + " " * by)


def since_clock(gauge: str) -> str:
    """How long ago a time was, by calmon's clock."""
    return f"(calmon_clock_seconds - on ({SCRAPED_NAMES}) {gauge})"


def ended(side: str, window_evidence: str) -> str:
    """Versions with a mature window that began after the trouble, unless such a window still speaks for it.

    A crossing is for ever; whether it goes on is told by windows. The trouble began where the change detector says, else (where
    only the whole history has crossed) it had begun at the first crossing. A window without labels does not speak: then the page
    for labels stands instead. Without any mature window only the evidence itself ends an alert.
    """
    return f"""(
  max by ({VERSION_NAMES}) (
    {indented(_later_windows(side), 4)}
  )
  unless on ({VERSION_NAMES})
  max by ({VERSION_NAMES}) (
    {window_evidence}{{segment="all"}} >= ${{still_log_e}}
    and calmon_labelled_used{{segment="all"}} >= ${{few_labelled}}
    and on ({WINDOW_NAMES})
    {indented(_later_windows(side), 4)}
  )
)"""


def _later_windows(side: str) -> str:
    """Mature windows of each version that began after its trouble, by the time that they began."""
    matchers = f'side="{side}",tolerance="0.02"'
    return f"""(
  (
    calmon_predictions{{segment="all"}} * 0
    + on ({SCRAPED_NAMES}, window) group_left () calmon_window_start_timestamp_seconds
    {indented(MATURE, 4)}
  )
  >= on ({VERSION_NAMES}) group_left () (
    min by ({VERSION_NAMES}) (calmon_evidence_change_start_timestamp_seconds{{{matchers}}})
    or
    min by ({VERSION_NAMES}) (
      calmon_evidence_first_crossing_timestamp_seconds{{statistic=~"e_process|run_length",{matchers}}}
    )
  )
)"""


def crossed_and_there(side: str, window_evidence: str) -> str:
    """Evidence of a side has crossed at tolerance 0.02, is still there, and no window says that it is over."""
    matchers = f'side="{side}",tolerance="0.02"'
    return f"""max by ({VERSION_NAMES}) (
  calmon_evidence_log_run_length{{{matchers}}} >= ${{log_run_length}}
  or
  (
    calmon_evidence_log_e{{{matchers}}} >= ${{log_e}}
    and on ({VERSION_NAMES})
    calmon_evidence_crossed{{statistic="e_process",{matchers}}} == 1
  )
)
unless on ({VERSION_NAMES}) {ended(side, window_evidence)}"""
