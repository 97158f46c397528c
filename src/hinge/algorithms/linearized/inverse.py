"""Another name of `inverse_derivatives.py`, for robots until they ask for that."""

from .inverse_derivatives import InverseDynamicsDerivatives

__all__ = ["InverseDynamicsDerivatives"]
