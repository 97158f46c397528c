"""Spatial operators: expressions that are formulas and O(N) algorithms at once."""

from .block import block
from .constrained import ConstrainedOperators, constrained
from .decompose import decompose
from .derivative import derivative
from .diagonal import coriolis
from .laws import LAWS, Law
from .library import Operators
from .linear_models import LinearOperators, linearized
from .operator import Operator
from .show import describe, latex
from .simplify import explain, simplify
from .split import SplitOperators, split

__all__ = [
    "LAWS",
    "ConstrainedOperators",
    "Law",
    "LinearOperators",
    "Operator",
    "Operators",
    "SplitOperators",
    "block",
    "constrained",
    "coriolis",
    "decompose",
    "derivative",
    "describe",
    "explain",
    "latex",
    "linearized",
    "simplify",
    "split",
]


def __dir__() -> list[str]:
    return __all__
