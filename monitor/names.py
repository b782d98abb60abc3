"""Names that users see and that several rooms share: label names, reserved values, the metric prefix."""

PREFIX = "calmon_"

ALL_VALUE = "all"
"""Segment and value of the series that holds every prediction."""

OTHER_VALUE = "__other__"
"""Value under which the group values beyond the cap are summed."""

SERIES_LABELS = ("model", "model_version", "window", "segment", "value")
BIN_LABEL = "bin"
IN_DISTRIBUTION = "id"
"""The `domain` that is in distribution; any other word is a kind of OOD."""
