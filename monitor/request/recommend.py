"""`calmon recommend MODEL VERSION`: each recommendation with what it rests on, or with what would have to be there."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import Any

from monitor.errors import ConfigError
from monitor.events.instant import instant
from monitor.metrics.evaluation import versions
from monitor.metrics.recommendation import (
    advise_confidence_threshold,
    advise_ood_threshold,
    advise_temperature,
    estimate_accuracy,
)
from monitor.metrics.settings import Settings
from monitor.metrics.version import Version
from monitor.pipeline.configured import settings_of
from monitor.request.moment import COMMAND_LINE
from monitor.request.sums import Gathered, configuration, gather
from monitor.statistics.layout import Layout
from monitor.statistics.series import SeriesKey
from monitor.statistics.split import FRACTION, SALT

_NO_SPLIT = "none: nothing else was chosen on these events"


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommendation.

    Attributes:
        name: Key in JSON.
        says: In words; what is missing where it is not available.
        available: Whether there is anything to recommend.
        values: What is recommended, and its effect.
        data: Counts of the events that it rests on.
        split: How events were split between choosing and reporting.
    """

    name: str
    says: str
    available: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    data: dict[str, int] = field(default_factory=dict)
    split: str = _NO_SPLIT


def recommend(options: argparse.Namespace) -> str:
    """Every recommendation for a version, as text or JSON.

    Raises:
        CalmonError: There are no such sums, or a wish is outside its range.
    """
    _check_wishes(options)
    config = configuration(options)[0]
    gathered = gather(options)
    key = gathered.version(options.model, options.model_version)
    layout = gathered.layouts[key.layout]
    cells = {one: cell for one, cell in gathered.cells.items() if (one.model, one.version) == (key.model, key.version)}
    version = versions(cells, gathered.layouts, settings_of(config))[key]
    settings = settings_of(config)(key.model)
    advices = [
        _temperature(version, layout, key.model),
        _ood_threshold(version, layout, settings, options.acceptance),
        _confidence_threshold(version, options.max_risk, options.delta),
        _accuracy(version),
    ]
    return _as_json(advices, gathered, key, version) if options.format == "json" else _as_text(advices, gathered, key, version)


def _check_wishes(options: argparse.Namespace) -> None:
    faults = []
    if not 0 < options.acceptance <= 1:
        faults.append(f"--acceptance {options.acceptance}: must be above 0 and at most 1")
    faults += [
        f"--{name} {value}: must be between 0 and 1"
        for name, value in (("max-risk", options.max_risk), ("delta", options.delta))
        if not 0 < value < 1
    ]
    if faults:
        raise ConfigError(faults, COMMAND_LINE)


def _temperature(version: Version, layout: Layout, model: str) -> Advice:
    name = "temperature"
    if not layout.temperature:
        return Advice(name, f"not available: set models.{model}.temperature: true; likelihoods are summed from then on")
    found = advise_temperature(version)
    if found is None:
        return Advice(name, "not available: no labelled event whose probabilities hold the label; events need the whole `probabilities`")
    split = f'by id: sha256 of "{SALT}" and the id below {FRACTION:g} fits, the others report'
    data = {"fit_events": found.fitted_on, "report_events": found.reported_on}
    values: dict[str, Any] = {"temperature": found.temperature, "at_the_end_of_the_grid": found.at_the_end}
    says = f"divide ln p by {found.temperature:.4g} before the softmax, fitted on {found.fitted_on} labelled events"
    if found.at_the_end:
        says += " (the end of the grid from 1/8 to 8: the best one lies there or beyond)"
    if found.nll is None or found.ece is None:
        says += "; no event in the other half, so its effect is not known"
    else:
        effect = {"nll_before": found.nll[0], "nll_after": found.nll[1], "ece_before": found.ece[0], "ece_after": found.ece[1]}
        values |= {**effect, "ece_after_is_at_temperature": found.ece_temperature}
        says += (
            f"; on the {found.reported_on} of the other half NLL goes from {found.nll[0]:.5g} to {found.nll[1]:.5g} and ECE from "
            f"{found.ece[0]:.4g} to {found.ece[1]:.4g} (summed at T = {found.ece_temperature:.4g}, the nearest of the grid)"
        )
        if found.ece[1] > found.ece[0]:
            says += ", which is worse: a temperature does not fit how this version is off"
    values["predicted_class_and_accuracy"] = "unchanged"
    return Advice(name, f"{says}; predicted classes and accuracy do not change", True, values, data, split)


def _ood_threshold(version: Version, layout: Layout, settings: Settings, acceptance: float) -> Advice:
    name = "ood_threshold"
    found = advise_ood_threshold(version, acceptance, layout.ood_high_is_in, settings.min_group_count)
    if found is None:
        missing = "the wanted share lies among scores beyond the grid's ends" if version.scores else "no prediction has an `ood_score`"
        return Advice(name, f"not available: {missing}")
    whose = "known to be in distribution" if found.known_in_distribution else "with a score, whatever their domain"
    side = "at or above" if layout.ood_high_is_in else "at or below"
    says = (
        f"accept scores {side} {found.threshold!r}: {found.acceptance:.4%} of the {found.events} predictions {whose} (wanted "
        f"{acceptance:.4g}); the tightest threshold that does it is at most {found.bound:.3g} further in"
    )
    values = {
        "ood_threshold": found.threshold,
        "wanted_acceptance": acceptance,
        "acceptance": found.acceptance,
        "threshold_bound": found.bound,
        "chosen_on": "in_distribution" if found.known_in_distribution else "scored",
    }
    return Advice(name, says, True, values, {"events": found.events})


def _confidence_threshold(version: Version, max_risk: float, delta: float) -> Advice:
    name = "confidence_threshold"
    found = advise_confidence_threshold(version, max_risk, delta)
    data = {"labelled": found.labelled}
    if found.certified is None:
        says = (
            f"not available: no threshold can be certified to keep the risk at {max_risk:g} with confidence {1 - delta:g} on "
            f"{found.labelled} labelled events; the least it takes is {found.needed} labelled events at or above a threshold without an "
            "error among them, and more with errors"
        )
        return Advice(name, says, values={"events_needed_without_an_error": found.needed}, data=data)
    best = found.certified
    says = (
        f"accept confidences at or above {best.threshold!r}: the risk of what is accepted is at most {max_risk:g}, except with probability "
        f"{delta:g} (Learn-then-Test; for independent events of the same kind); here {best.errors} of {best.accepted} are wrong "
        f"({best.risk:.4%}) at coverage {best.coverage:.4g}"
    )
    values = {"confidence_threshold": best.threshold, "max_risk": max_risk, "delta": delta, "risk": best.risk, "coverage": best.coverage}
    return Advice(name, says, True, values, {**data, "accepted": best.accepted, "errors": best.errors})


def _accuracy(version: Version) -> Advice:
    name = "label_free_accuracy"
    found = estimate_accuracy(version)
    if found is None:
        return Advice(name, "not available: it needs labelled predictions for the map and predictions without a label to use it on")
    says = (
        f"an estimate, not a measurement: accuracy {found.estimate:.4g} (sd {found.sd:.2g}) of the {found.unlabelled} predictions "
        f"without a label, if confidences mean for them what they mean for the {found.labelled} labelled ones; "
        f"{found.unsupported_share:.2%} of them lie where no labelled one does"
    )
    values = {
        "estimate": found.estimate,
        "sd": found.sd,
        "unsupported_share": found.unsupported_share,
        "rests_on": "the map from confidence to accuracy of the labelled predictions; wrong once a confidence means something else",
    }
    return Advice(name, says, True, values, {"unlabelled": found.unlabelled, "labelled": found.labelled}, "labelled and unlabelled events")


def _basis(gathered: Gathered, key: SeriesKey, version: Version) -> dict[str, Any]:
    counts = {name: int(version.everything.count(name)[0]) for name in ("predictions", "labelled")}
    return {
        "model": key.model,
        "model_version": key.version,
        "source": gathered.source,
        "start_ms": gathered.start_ms,
        "end_ms": gathered.end_ms,
        "start": instant(gathered.start_ms),
        "end": instant(gathered.end_ms),
        **counts,
        "predictions_of_older_layouts": gathered.older.get((key.model, key.version), 0),
        "layout_fingerprint": key.layout,
    }


def _as_json(advices: list[Advice], gathered: Gathered, key: SeriesKey, version: Version) -> str:
    basis = _basis(gathered, key, version)
    window = {name: basis[name] for name in ("model_version", "start", "end")}
    advice = {
        one.name: {"available": one.available, **one.values, "says": one.says, "data": {**one.data, **window}, "split": one.split}
        for one in advices
    }
    return json.dumps({"basis": basis, "recommendations": advice}, indent=1, allow_nan=False)


def _as_text(advices: list[Advice], gathered: Gathered, key: SeriesKey, version: Version) -> str:
    basis = _basis(gathered, key, version)
    older = basis["predictions_of_older_layouts"]
    left_out = f"; {older} predictions of an older layout are left out" if older else ""
    lines = [
        f"model {key.model} version {key.version}, {basis['start']} to {basis['end']}: {basis['predictions']} predictions, "
        f"{basis['labelled']} labelled, from {gathered.source}{left_out}"
    ]
    for one in advices:
        lines.append(f"\n{one.name}\n  {one.says}")
        if one.available:
            lines.append(f"  data: {', '.join(f'{count} {name}' for name, count in one.data.items())}; split: {one.split}")
    return "\n".join(lines)
