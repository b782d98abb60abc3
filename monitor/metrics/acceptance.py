"""Selective prediction, group rejection and OOD acceptance: shares of counts, each with its Wilson interval.

Source: FORMULAS sections 7 and 8. Coverage, rejection and OOD rates are over all predictions; `labelled_coverage` and
`selective_risk` over the labelled ones.
"""

from __future__ import annotations

import numpy as np

from monitor.metrics.interval import wilson
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64, I64

DOMAINS = ("unknown", "id", "ood")
"""What can be known of a prediction's domain."""


def decided(sums: Sums) -> I64:
    """Predictions that were accepted or rejected."""
    return sums.count("decided")


def accepted(sums: Sums) -> I64:
    """Predictions that were accepted."""
    return sums.count("accepted")


def labelled_accepted(sums: Sums) -> I64:
    """Accepted predictions with a label."""
    return sums.count("labelled_accepted")


def completeness(sums: Sums) -> F64:
    """Share of predictions that have a label."""
    return divide(sums.count("labelled"), sums.count("predictions"))


def coverage(sums: Sums) -> F64:
    """Share of accepted predictions among those with a decision."""
    return divide(sums.count("accepted"), sums.count("decided"))


def labelled_coverage(sums: Sums) -> F64:
    """Share of accepted predictions among the labelled ones with a decision."""
    return divide(sums.count("labelled_accepted"), sums.count("labelled_decided"))


def selective_risk(sums: Sums) -> F64:
    """Share of errors among the accepted labelled predictions."""
    return divide(sums.count("labelled_accepted_errors"), sums.count("labelled_accepted"))


def selective_risk_lower(sums: Sums) -> F64:
    """Lower Wilson bound of `selective_risk`."""
    return wilson(sums.count("labelled_accepted_errors"), sums.count("labelled_accepted"))[0]


def selective_risk_upper(sums: Sums) -> F64:
    """Upper Wilson bound of `selective_risk`."""
    return wilson(sums.count("labelled_accepted_errors"), sums.count("labelled_accepted"))[1]


def rejection_rate(sums: Sums) -> F64:
    """Share of rejected predictions among those with a decision."""
    return divide(_rejected(sums), sums.count("decided"))


def rejection_rate_lower(sums: Sums) -> F64:
    """Lower Wilson bound of `rejection_rate`."""
    return wilson(_rejected(sums), sums.count("decided"))[0]


def rejection_rate_upper(sums: Sums) -> F64:
    """Upper Wilson bound of `rejection_rate`."""
    return wilson(_rejected(sums), sums.count("decided"))[1]


def ood_scored(sums: Sums) -> I64:
    """Predictions with a score."""
    return _scored(sums, *DOMAINS)


def ood_acceptance_rate(sums: Sums) -> F64:
    """Share of scored predictions on the in-distribution side of the threshold."""
    return divide(ood_passed(sums), ood_tested(sums))


def ood_acceptance_rate_lower(sums: Sums) -> F64:
    """Lower Wilson bound of `ood_acceptance_rate`."""
    return wilson(ood_passed(sums), ood_tested(sums))[0]


def ood_acceptance_rate_upper(sums: Sums) -> F64:
    """Upper Wilson bound of `ood_acceptance_rate`."""
    return wilson(ood_passed(sums), ood_tested(sums))[1]


def id_acceptance_rate(sums: Sums) -> F64:
    """`ood_acceptance_rate` of the predictions known to be in distribution."""
    return divide(_passed(sums, "id"), _tested(sums, "id"))


def ood_false_acceptance_rate(sums: Sums) -> F64:
    """`ood_acceptance_rate` of the predictions known to be out of distribution."""
    return divide(_passed(sums, "ood"), _tested(sums, "ood"))


def ood_false_acceptance_rate_lower(sums: Sums) -> F64:
    """Lower Wilson bound of `ood_false_acceptance_rate`."""
    return wilson(_passed(sums, "ood"), _tested(sums, "ood"))[0]


def selective_risk_budget(sums: Sums) -> F64:
    """What the configuration allows `selective_risk` to be."""
    budget = sums.settings.selective_risk_budget
    return np.full(len(sums), np.nan if budget is None else budget)


def ood_passed(sums: Sums) -> I64:
    """Scored predictions on the in-distribution side of the threshold: none without one that counts."""
    passed = _passed(sums, *DOMAINS)
    return passed if sums.has_ood_threshold else passed * 0


def ood_tested(sums: Sums) -> I64:
    """Scored predictions that were held against a threshold."""
    return _tested(sums, *DOMAINS)


def _rejected(sums: Sums) -> I64:
    return sums.count("decided") - sums.count("accepted")


def _passed(sums: Sums, *domains: str) -> I64:
    passed = sums.count(f"scored_{domains[0]}_accepted")
    for domain in domains[1:]:
        passed = passed + sums.count(f"scored_{domain}_accepted")
    return passed


def _scored(sums: Sums, *domains: str) -> I64:
    scored = _passed(sums, *domains)
    for domain in domains:
        scored = scored + sums.count(f"scored_{domain}_rejected")
    return scored


def _tested(sums: Sums, *domains: str) -> I64:
    """Scored predictions that were held against a threshold: none where none is configured."""
    scored = _scored(sums, *domains)
    return scored if sums.has_ood_threshold else scored * 0
