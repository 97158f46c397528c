"""Another name of `forward_derivatives.py`, for robots until they ask for that."""

from .forward_derivatives import ForwardDynamicsDerivatives, Method

__all__ = ["ForwardDynamicsDerivatives", "Method"]
