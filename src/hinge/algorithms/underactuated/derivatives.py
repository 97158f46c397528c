"""Another name of `hybrid_derivatives.py`, for robots until they ask for that."""

from .hybrid_derivatives import HybridDerivatives

__all__ = ["HybridDerivatives"]
