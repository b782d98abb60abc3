"""Entries of group values against each other."""

from __future__ import annotations

from collections.abc import Callable

from monitor.metrics import group
from monitor.metrics.group import GroupCalibration, GroupDecisions
from monitor.metrics.group_table import GroupTable
from monitor.metrics.metric import Family, Metric, Subject
from monitor.statistics.fixed_point import F64, I64


def _decided(function: Callable[[GroupDecisions], F64 | I64]) -> Callable[[GroupTable], F64 | I64]:
    return lambda table: function(table.decisions)


def _calibrated(function: Callable[[GroupCalibration], F64 | I64]) -> Callable[[GroupTable], F64 | I64]:
    return lambda table: function(table.calibration)


GROUP_REJECTION = Family(
    "group_rejection",
    "whether one group is handed to people more often than others",
    True,
    (
        Metric(
            "groups_used",
            "groups_used",
            "Values with enough decisions to be compared.",
            _decided(group.groups_used),
            "1",
            subject=Subject.ATTRIBUTE,
            count="",
        ),
        Metric(
            "rejection_rate_spread",
            "group_rejection_spread_ratio",
            "Largest minus smallest rejection rate of these.",
            _decided(group.rejection_rate_spread),
            subject=Subject.ATTRIBUTE,
            count="groups_used",
            minimum=2,
        ),
        Metric(
            "group_acceptance_ratio",
            "group_acceptance_ratio",
            "Smallest over largest acceptance rate of these.",
            _decided(group.group_acceptance_ratio),
            subject=Subject.ATTRIBUTE,
            count="groups_used",
            minimum=2,
        ),
        Metric(
            "rejection_disparity_p",
            "group_rejection_p_ratio",
            "Smallest p-value of one value against the others, corrected by Holm.",
            _decided(group.rejection_disparity_p),
            subject=Subject.ATTRIBUTE,
            count="groups_used",
            minimum=2,
        ),
    ),
)

GROUP_TESTS = Family(
    "group_tests",
    "for which groups, and in which range of confidence, a version is miscalibrated or rejects unevenly",
    False,
    (
        Metric(
            "rejection_rate_p_holm",
            "rejection_p_holm_ratio",
            "Fisher's exact p-value of the value against the others, corrected by Holm.",
            _decided(group.rejection_rate_p_holm),
            subject=Subject.VALUE,
            count="groups_used",
            minimum=2,
        ),
        Metric(
            "multicalibration_groups",
            "multicalibration_groups",
            "Values with enough labels.",
            _calibrated(group.multicalibration_groups),
            "1",
            subject=Subject.ATTRIBUTE,
            count="",
        ),
        Metric(
            "multicalibration_cells",
            "multicalibration_cells",
            "Bins of values with enough labels.",
            _calibrated(group.multicalibration_cells),
            "1",
            subject=Subject.ATTRIBUTE,
            count="",
        ),
        Metric(
            "group_overconfidence_max",
            "group_overconfidence_max",
            "Largest size of overconfidence of a value.",
            _calibrated(group.group_overconfidence_max),
            "1",
            subject=Subject.ATTRIBUTE,
            count="multicalibration_groups",
        ),
        Metric(
            "group_ece_max",
            "group_ece_max_ratio",
            "Largest ECE of a value.",
            _calibrated(group.group_ece_max),
            subject=Subject.ATTRIBUTE,
            count="multicalibration_groups",
        ),
        Metric(
            "multicalibration_max_gap",
            "multicalibration_max_gap_ratio",
            "Largest gap of a bin of a value.",
            _calibrated(group.multicalibration_max_gap),
            subject=Subject.ATTRIBUTE,
            count="multicalibration_cells",
        ),
        Metric(
            "multicalibration_max_weighted_gap",
            "multicalibration_max_weighted_gap_ratio",
            "Largest part of such a bin in the version's ECE.",
            _calibrated(group.multicalibration_max_weighted_gap),
            subject=Subject.ATTRIBUTE,
            count="multicalibration_cells",
        ),
        Metric(
            "multicalibration_p_holm",
            "multicalibration_p_holm_ratio",
            "Smallest exact p-value of such a bin, corrected by Holm.",
            _calibrated(group.multicalibration_p_holm),
            subject=Subject.ATTRIBUTE,
            count="multicalibration_cells",
        ),
    ),
)
