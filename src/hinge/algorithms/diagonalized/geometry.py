"""Another name of `mass_metric.py`, for robots until they ask for that."""

from .mass_metric import Flatness

__all__ = ["Flatness"]
