"""Entries of selective prediction and OOD acceptance."""

from __future__ import annotations

from monitor.metrics import acceptance, selective
from monitor.metrics.metric import Family, Metric

SELECTION = Family(
    "selection",
    "whether what is accepted is right often enough, and how much is handed to people",
    True,
    (
        Metric("decided", "decided", "Predictions that were accepted or rejected.", acceptance.decided, "events", count=""),
        Metric("accepted", "accepted", "Predictions that were accepted.", acceptance.accepted, "events", count=""),
        Metric(
            "labelled_accepted", "labelled_accepted", "Accepted predictions with a label.", acceptance.labelled_accepted, "events", count=""
        ),
        Metric("coverage", "coverage_ratio", "Share of accepted predictions among the decided ones.", acceptance.coverage, count="decided"),
        Metric(
            "labelled_coverage",
            "labelled_coverage_ratio",
            "Share of accepted predictions among the labelled.",
            acceptance.labelled_coverage,
            count="labelled",
        ),
        Metric(
            "selective_risk",
            "selective_risk_ratio",
            "Share of errors among accepted labelled predictions.",
            acceptance.selective_risk,
            count="labelled_accepted",
        ),
        Metric(
            "selective_risk_lower",
            "selective_risk_lower_ratio",
            "Lower 95 % Wilson bound of it.",
            acceptance.selective_risk_lower,
            count="labelled_accepted",
        ),
        Metric(
            "selective_risk_upper",
            "selective_risk_upper_ratio",
            "Upper 95 % Wilson bound of it.",
            acceptance.selective_risk_upper,
            count="labelled_accepted",
        ),
        Metric(
            "selective_risk_budget",
            "selective_risk_budget_ratio",
            "Selective risk that the configuration allows.",
            acceptance.selective_risk_budget,
            count="",
        ),
        Metric(
            "rejection_rate", "rejection_ratio", "Share of rejected predictions.", acceptance.rejection_rate, groups=True, count="decided"
        ),
        Metric(
            "rejection_rate_lower",
            "rejection_lower_ratio",
            "Lower 95 % Wilson bound of it.",
            acceptance.rejection_rate_lower,
            groups=True,
            count="decided",
        ),
        Metric(
            "rejection_rate_upper",
            "rejection_upper_ratio",
            "Upper 95 % Wilson bound of it.",
            acceptance.rejection_rate_upper,
            groups=True,
            count="decided",
        ),
    ),
)

COSTS = Family(
    "costs",
    "what decisions cost as they are made, and how bad the risk of the accepted could be",
    False,
    (
        Metric(
            "selective_risk_cp_upper",
            "selective_risk_cp_upper_ratio",
            "One-sided 95 % Clopper-Pearson bound of selective risk.",
            selective.selective_risk_cp_upper,
            count="labelled_accepted",
        ),
        Metric("cost_per_event", "cost_per_event", "Mean cost of a labelled decision.", selective.cost_per_event, "1", count="labelled"),
    ),
)

OOD_ACCEPTANCE = Family(
    "ood_acceptance",
    "whether inputs still come from where the model was made for, and whether the OOD threshold keeps the others out",
    True,
    (
        Metric("ood_scored", "ood_scored", "Predictions with an OOD score.", acceptance.ood_scored, "events", count=""),
        Metric(
            "ood_acceptance_rate",
            "ood_acceptance_ratio",
            "Share of scored predictions accepted as in distribution.",
            acceptance.ood_acceptance_rate,
            count="ood_scored",
        ),
        Metric(
            "ood_acceptance_rate_lower",
            "ood_acceptance_lower_ratio",
            "Lower 95 % Wilson bound.",
            acceptance.ood_acceptance_rate_lower,
            count="ood_scored",
        ),
        Metric(
            "ood_acceptance_rate_upper",
            "ood_acceptance_upper_ratio",
            "Upper 95 % Wilson bound.",
            acceptance.ood_acceptance_rate_upper,
            count="ood_scored",
        ),
        Metric(
            "id_acceptance_rate",
            "id_acceptance_ratio",
            "The same of those known to be in distribution.",
            acceptance.id_acceptance_rate,
            count="ood_scored",
        ),
        Metric(
            "ood_false_acceptance_rate",
            "ood_false_acceptance_ratio",
            "The same of those known to be out of distribution.",
            acceptance.ood_false_acceptance_rate,
            count="ood_scored",
        ),
        Metric(
            "ood_false_acceptance_rate_lower",
            "ood_false_acceptance_lower_ratio",
            "Lower 95 % Wilson bound of it.",
            acceptance.ood_false_acceptance_rate_lower,
            count="ood_scored",
        ),
    ),
)
