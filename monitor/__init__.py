"""calmon: a streaming production monitor for classifiers."""

__version__ = "0.1.0"
