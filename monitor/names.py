"""Names that users see and that several rooms share: label names, reserved values, the metric prefix."""

PREFIX = "calmon_"

BACKFILL_PREFIX = f"{PREFIX}backfill_"
"""Prefix of what is known now of past moments; the rest of the name is the live gauge's."""

REVISION_LABEL = "revision"
"""Which writing of the past a backfilled sample is of."""

REVISIONS = range(1, 9)
"""Values of it: few, for each is a series of its own."""

ALL_VALUE = "all"
"""Segment and value of the series that holds every prediction."""

OTHER_VALUE = "__other__"
"""Value under which the group values beyond the cap are summed."""

CLASS_SEGMENT = "__class__"
"""Internal segment: counts and confidence by predicted and by true class."""

ONE_VS_REST_SEGMENT = "__one_vs_rest__"
"""Internal segment: a class's own probability against "the label is this class"."""

CONFIDENCE_SEGMENT = "__confidence__"
"""Internal segment: labelled confidences that repeat."""

OWN_CONFIDENCE_SEGMENT = "__own_confidence__"
"""Internal segment: a watched class's own probabilities that repeat."""

SCORE_SEGMENT = "__score__"
"""Internal segment: OOD scores by what is known of the domain."""

TEMPERATURE_SEGMENT = "__temperature__"
"""Internal segment: likelihoods at a grid of temperatures, by split half."""

RESERVED_SEGMENTS = (
    CLASS_SEGMENT,
    ONE_VS_REST_SEGMENT,
    CONFIDENCE_SEGMENT,
    OWN_CONFIDENCE_SEGMENT,
    SCORE_SEGMENT,
    TEMPERATURE_SEGMENT,
)

FIXED_SEGMENTS = (ALL_VALUE, CONFIDENCE_SEGMENT, SCORE_SEGMENT, TEMPERATURE_SEGMENT)
"""Segments whose values are few and known beforehand: no cap holds for them, and none is ever part of `__other__`."""

RESERVED_PREFIX = "__"
"""No group attribute may begin with it."""

SERIES_LABELS = ("model", "model_version", "window", "segment", "value")
BIN_LABEL = "bin"
CLASS_LABEL = "class"
IN_DISTRIBUTION = "id"
"""The `domain` that is in distribution; any other word is a kind of OOD."""
