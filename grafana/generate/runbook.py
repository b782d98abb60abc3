"""Which alerts a panel helps to understand: links from panels to their runbooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grafana_foundation_sdk.models.dashboard import Dashboard, DashboardLink, DashboardLinkType, Panel

from grafana.generate.frame import PIPELINE, VERSION

ALERTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    VERSION: {
        "Evidence, ln E": ("CalmonOverconfident", "CalmonUnderconfident", "CalmonErrorsBeyondConfidence"),
        "Change detector, ln R": ("CalmonOverconfident", "CalmonUnderconfident"),
        "Accuracy: difference": ("CalmonWorseThanPreviousVersion",),
        "Drift of confidence": ("CalmonConfidenceDrift",),
        "OOD acceptance since the reference": ("CalmonOodAcceptanceDrift",),
        "Selective risk: errors among the accepted": ("CalmonSelectiveRiskOverBudget",),
        "Coverage: share accepted": ("CalmonRejectionJump",),
        "By what is known of the domain": ("CalmonOodFalseAcceptance",),
        "Uneven rejection": ("CalmonGroupDisparity",),
        "Share with a label: then and now": ("CalmonCompletenessLow",),
        "Label delay": ("CalmonLabelDelayGrew",),
    },
    PIPELINE: {
        "Processes up": ("CalmonTargetDown",),
        "Reading everything": ("CalmonShardMissing",),
        "Behind in event time": ("CalmonNoPredictions", "CalmonEventTimeLag"),
        "Refused, by reason": ("CalmonQuarantineRatio",),
        "What became of them": ("CalmonConflicts",),
        "Labels that score": ("CalmonLabelFeedDead",),
        "Label delay, nine tenths": ("CalmonLabelDelayGrew",),
        "Lag in event time": ("CalmonEventTimeLag",),
        "Duration of a tick": ("CalmonTickStalled",),
        "Series": ("CalmonSeriesFolded",),
        "Free share of the state's disk": ("CalmonStateDisk",),
    },
}
"""Alerts by dashboard and title of the panel."""


def link_runbooks(board: Dashboard) -> None:
    """Put the links on a dashboard's panels.

    Raises:
        KeyError: The dashboard has no panel of a title.
    """
    panels = {panel.title: panel for panel in board.panels or [] if isinstance(panel, Panel)}
    for title, alerts in ALERTS.get(board.uid or "", {}).items():
        panels[title].links = [
            DashboardLink(f"Runbook: {alert}", DashboardLinkType.LINK, url=f"${{runbooks}}/{alert}.md", target_blank=True)
            for alert in alerts
        ]
