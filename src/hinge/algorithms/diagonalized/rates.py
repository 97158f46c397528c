"""Another name of `rates_and_forces.py`, for robots until they ask for that."""

from .rates_and_forces import Innovations

__all__ = ["Innovations"]
