"""Entries of drift from the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from monitor.metrics import acceptance
from monitor.metrics.comparison import Difference
from monitor.metrics.drift import Drift, Histograms
from monitor.metrics.metric import Family, Metric, Subject
from monitor.names import CLASS_SEGMENT, SCORE_SEGMENT
from monitor.statistics.fixed_point import F64, I64

_Of = Callable[[Any], Histograms]

_READS = {"score": (SCORE_SEGMENT,), "class": (CLASS_SEGMENT,)}


def _counted(name: str, text: str, function: Callable[[Drift], I64]) -> Metric:
    return Metric(name, name, text, function, "events", Subject.DRIFT, count="")


def _histograms(name: str, what: str, of: _Of, subject: Subject, count: str) -> tuple[Metric, ...]:
    """How far two histograms are apart, bins in any order."""

    def field(suffix: str, text: str, function: Callable[[Any], F64]) -> Metric:
        full = f"drift_{name}_{suffix}"
        return Metric(full, full, text, function, "1", subject, count=count, reads=_READS.get(name, ()))

    return (
        field("psi", f"Population stability index of {what} against the reference.", lambda drift: of(drift).psi()),
        field("psi_floor", "Value that it has on average without any drift.", lambda drift: of(drift).psi_floor()),
        field("js", f"Jensen-Shannon divergence of {what} from the reference, bits.", lambda drift: of(drift).js()),
    )


def _ordered(name: str, what: str, of: _Of, count: str) -> tuple[Metric, ...]:
    """How far two histograms over ascending bins are apart."""

    def field(suffix: str, text: str, function: Callable[[Drift], F64], bound: str = "") -> Metric:
        full = f"drift_{name}_ks_{suffix}"
        return Metric(full, full, text, function, "1", Subject.DRIFT, count=count, bound=bound, reads=_READS.get(name, ()))

    return (
        *_histograms(name, what, of, Subject.DRIFT, count),
        field("lower", f"Kolmogorov-Smirnov statistic of {what}, at least.", lambda drift: of(drift).ks_lower(), f"drift_{name}_ks_upper"),
        field("upper", "The same, at most.", lambda drift: of(drift).ks_upper()),
        field("p", "P-value of the lower one, for one look at a time fixed beforehand.", lambda drift: of(drift).ks_p()),
    )


def _difference(name: str, what: str, of: Callable[[Drift], Difference], count: str) -> tuple[Metric, ...]:
    """A difference of shares, the ends of its interval, and its z."""

    def field(suffix: str, text: str, function: Callable[[Drift], F64], unit: str = "1") -> Metric:
        full = f"drift_{name}_difference{suffix}"
        return Metric(full, full, text, function, unit, Subject.DRIFT, count=count)

    return (
        field("", f"{what} minus that of the reference.", lambda drift: of(drift).value),
        field("_lower", "Lower end of its interval at 95 % (Newcombe).", lambda drift: of(drift).lower),
        field("_upper", "Upper end of its interval at 95 % (Newcombe).", lambda drift: of(drift).upper),
        field("_z", "It in standard deviations of what it would be by chance.", lambda drift: of(drift).z, "sd"),
    )


DRIFT = Family(
    "drift",
    "whether inputs and outputs still look as they did in the `reference` of the model, whose configuration exports this too",
    False,
    (
        _counted(
            "drift_reference_predictions", "Predictions of the reference.", lambda drift: drift.reference.everything.count("predictions")
        ),
        _counted("drift_reference_scored", "Those with an OOD score.", lambda drift: acceptance.ood_scored(drift.reference.everything)),
        _counted("drift_reference_decided", "Those accepted or rejected.", lambda drift: drift.reference.everything.count("decided")),
        *_ordered("confidence", "the confidences", lambda drift: drift.confidences, "predictions"),
        *_ordered("score", "the OOD scores", lambda drift: drift.scores, "ood_scored"),
        *_histograms("class", "the predicted classes", lambda drift: drift.classes, Subject.DRIFT, "predictions"),
        *_histograms("group", "a group's values", lambda mix: mix, Subject.MIX, "predictions"),
        *_difference("ood_acceptance", "Share accepted as in distribution", lambda drift: drift.ood_acceptance, "ood_scored"),
        *_difference("rejection", "Share of rejected predictions", lambda drift: drift.rejection, "decided"),
    ),
)
"""Exported where a reference is configured (`pipeline.configured`)."""
