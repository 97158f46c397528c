"""Spatial operators: expressions that are formulas and O(N) algorithms at once."""

from .decompose import decompose
from .derivative import derivative
from .expr import Operator, block
from .laws import LAWS, Law
from .library import Operators
from .show import describe, latex
from .simplify import explain, simplify

__all__ = [
    "LAWS",
    "Law",
    "Operator",
    "Operators",
    "block",
    "decompose",
    "derivative",
    "describe",
    "explain",
    "latex",
    "simplify",
]
