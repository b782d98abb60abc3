"""Numbers that alerts compare with, and that users may set: `calmon rules render --set bound.NAME=VALUE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitor.alerts.alert import Form


@dataclass(frozen=True, slots=True)
class Bound:
    """One number.

    Attributes:
        name: As in expressions and texts.
        default: Unless the user says otherwise.
        form: How it is written in texts: a ratio, a duration in seconds, a count, or a number.
        meaning: For people.
    """

    name: str
    default: float
    form: Form
    meaning: str


BOUNDS: Sequence[Bound] = (
    Bound("log_e", 2.9957, Form.NUMBER, "ln E from which on evidence counts: -ln of `evidence.alpha` (0.05)"),
    Bound("log_run_length", 6.9077, Form.NUMBER, "ln R from which on the change detector counts: ln 1000"),
    Bound("still_log_e", 1, Form.NUMBER, "ln E of a window that began after the trouble, from which on the trouble goes on"),
    Bound("few_labelled", 30, Form.COUNT, "least labels of such a window"),
    Bound("labelled", 100, Form.COUNT, "least labels, predictions, scores or records that a ratio must rest on"),
    Bound(
        "unlabelled_right",
        1,
        Form.RATIO,
        "share of accepted predictions without a label that counts as right; 0 where labels are sampled at random",
    ),
    Bound("maturity_slack", 2 * 3600, Form.DURATION, "how far a window may reach beyond the hours that have matured, and still count"),
    Bound("label_silence", 3 * 86_400, Form.DURATION, "longest time without any label; a bit more than your longest ordinary gap"),
    Bound("prediction_silence", 6 * 3600, Form.DURATION, "longest time without any prediction"),
    Bound("completeness_drop", 0.5, Form.RATIO, "share of the version's own completeness below which labels are missing"),
    Bound("delay_growth", 2, Form.NUMBER, "how many times the usual label delay is too much"),
    Bound("log_lag", 900, Form.DURATION, "how far reading may be behind, in the log's own time"),
    Bound("maturity_lag", 6 * 3600, Form.DURATION, "how far the evidence may be behind its maturity"),
    Bound("refused", 0.01, Form.RATIO, "share of refused records"),
    Bound("conflicts", 10, Form.COUNT, "conflicting records in an hour"),
    Bound("disk_free", 0.1, Form.RATIO, "least free share of the disk with the state"),
    Bound("difference_z", 4, Form.NUMBER, "standard deviations of a difference that cannot be chance, though looked at often"),
    Bound("acceptance_drift", 0.05, Form.RATIO, "change of the share accepted as in distribution that matters"),
    Bound("false_acceptance", 0.5, Form.RATIO, "share of foreign inputs that may be accepted"),
    Bound("rejection_jump", 0.1, Form.RATIO, "rise of the rejection rate that matters"),
    Bound("disparity", 0.1, Form.RATIO, "spread of rejection rates between groups that matters"),
    Bound("disparity_p", 0.0001, Form.NUMBER, "p-value of such a spread that cannot be chance, though looked at often"),
    Bound("confidence_psi", 0.2, Form.NUMBER, "population stability index of the confidences that matters"),
)
"""All of them."""
