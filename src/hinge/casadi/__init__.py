"""Compiled kernels as functions of CasADi, with exact derivatives, for optimisation."""

from .function import function
from .methods import robot

__all__ = ["function", "robot"]


def __dir__() -> list[str]:
    return __all__
