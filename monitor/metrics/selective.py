"""What the operating point of selective prediction costs, beside its shares in `acceptance`. Source: FORMULAS section 8."""

from __future__ import annotations

from monitor.metrics.interval import clopper_pearson_upper
from monitor.metrics.sums import Sums, divide
from monitor.statistics.fixed_point import F64


def selective_risk_cp_upper(sums: Sums) -> F64:
    """One-sided 95 % Clopper-Pearson bound of `selective_risk`; NaN without an accepted labelled prediction."""
    return clopper_pearson_upper(sums.count("labelled_accepted_errors"), sums.count("labelled_accepted"))


def cost_per_event(sums: Sums) -> F64:
    """Mean cost of a labelled prediction with a decision, in the unit of the configured costs; NaN without one.

    [error x errors of the accepted + rejected x (handoff + error x share that people get wrong)] over their number.
    """
    costs, decided = sums.settings, sums.count("labelled_decided")
    rejected = decided - sums.count("labelled_accepted")
    cost_of_rejection = costs.handoff_cost + costs.error_cost * costs.human_error
    return divide(costs.error_cost * sums.count("labelled_accepted_errors") + cost_of_rejection * rejected, decided)
