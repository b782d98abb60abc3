"""Pure functions that cases ask for by name, with their arguments: the product's own functions, their results under golden names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from monitor.evidence.blocks import log_e_blocks
from monitor.evidence.many import e_bh
from monitor.metrics import divergence
from monitor.metrics.certified import choose_threshold
from monitor.metrics.label_free import cbpe
from monitor.metrics.temperature import fit_temperature, select_temperature, softmax_t, split_of
from monitor.statistics.fixed_point import PROBABILITY_BITS, fixed
from monitor.statistics.grid import OCTAVES, graded_edges

Arguments = Mapping[str, Any]


def call(name: str, arguments: Arguments) -> dict[str, Any]:
    """Results of a function by name; a function that is not known has none.

    Args:
        name: As in the case.
        arguments: As in the case.
    """
    return {f"{name}.{key}": value for key, value in FUNCTIONS[name](arguments).items()} if name in FUNCTIONS else {}


def _softmax_t(given: Arguments) -> dict[str, Any]:
    logits = np.array(given["logits"], dtype=np.float64)[0]
    found: dict[str, Any] = {}
    for place, temperature in enumerate(given["temperatures"]):
        p = softmax_t(logits, temperature)
        found |= {f"p[{place}]": p.tolist(), f"nll[{place}]": float(-np.log(p[given["true"]]))}
    return found


def _select_temperature(given: Arguments) -> dict[str, Any]:
    chosen, reported = select_temperature(given["cal_nll"], given["test_nll"])
    return {"chosen_index": chosen, "reported_nll": reported}


def _drift(given: Arguments) -> dict[str, Any]:
    current, reference = (np.array([given[name]], dtype=np.int64) for name in ("current", "reference"))
    names = {"psi": "psi", "psi_floor": "psi_floor", "js": "jensen_shannon", "ks_lo": "ks_lower", "ks_hi": "ks_upper", "ks_p": "ks_p"}
    return {key: float(getattr(divergence, function)(current, reference)[0]) for key, function in names.items()}


def _split_of(given: Arguments) -> dict[str, Any]:
    return {"split": split_of(given["ids"], given["salt"], given["fraction"])}


def _log_e_blocks(given: Arguments) -> dict[str, Any]:
    count, correct, confidence = np.array(given["blocks"], dtype=np.float64).T
    errors = (count - correct).astype(np.int64)
    return {"log_e": float(log_e_blocks(count.astype(np.int64), errors, fixed(confidence, PROBABILITY_BITS)))}


def _e_bh(given: Arguments) -> dict[str, Any]:
    return {"reported": np.flatnonzero(e_bh(np.array(given["log_e"], dtype=np.float64), given["alpha"])).tolist()}


def _graded_edges(given: Arguments) -> dict[str, Any]:
    assert given.get("octaves", OCTAVES) == OCTAVES
    edges = graded_edges(given["sub"]).tolist()
    return {"bins": len(edges) - 1, "first": edges[:4], "middle": [edges[len(edges) // 2]], "last": edges[-4:], "sum": sum(edges)}


def _fit_temperature(given: Arguments) -> dict[str, Any]:
    p, labels = np.array(_one(given, "probabilities", "p"), dtype=np.float64), np.array(_one(given, "labels", "true", "y"), dtype=np.int64)
    return {"temperature": fit_temperature(p, labels)}


def _choose_threshold(given: Arguments) -> dict[str, Any]:
    confidences = np.array(_one(given, "confidences", "confidence", "c"), dtype=np.float64)
    correct = np.array(_one(given, "correct", "y"), dtype=np.int64)
    found = choose_threshold(confidences, correct, _one(given, "max_risk", "risk", "r"), given["delta"])
    names = ("threshold", "accepted", "errors", "coverage", "risk")
    return {name: None if found is None else getattr(found, name) for name in names}


def _cbpe(given: Arguments) -> dict[str, Any]:
    confidences = np.array(_one(given, "confidences", "confidence", "c"), dtype=np.float64)
    unlabelled = np.array(_one(given, "unlabelled", "unlabelled_confidences"), dtype=np.float64)
    found = cbpe(confidences, np.array(_one(given, "correct", "y"), dtype=np.int64), unlabelled)
    return {"estimate": found.estimate, "sd": found.sd, "unsupported_share": found.unsupported_share}


def _one(given: Arguments, *names: str) -> Any:
    """The argument under any of the names that it may have."""
    return next(given[name] for name in names if name in given)


FUNCTIONS: Mapping[str, Callable[[Arguments], dict[str, Any]]] = {
    "softmax_t": _softmax_t,
    "select_temperature": _select_temperature,
    "drift": _drift,
    "split_of": _split_of,
    "log_e_blocks": _log_e_blocks,
    "e_bh": _e_bh,
    "graded_edges": _graded_edges,
    "fit_temperature": _fit_temperature,
    "choose_threshold": _choose_threshold,
    "cbpe": _cbpe,
}


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lists as one key an element, as `split[3]`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            found[f"{key}.length"] = len(value)
            found |= flat({f"{key}[{place}]": one for place, one in enumerate(value)})
        else:
            found[key] = value
    return found
