"""Another name of `diagonal_dynamics.py`, for robots until they ask for that."""

from .diagonal_dynamics import ArticulatedRates

__all__ = ["ArticulatedRates"]
