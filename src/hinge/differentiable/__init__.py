"""Kernels with their derivatives, for frameworks that differentiate what calls them."""

from .function import Differentiable, of_kernel, of_robot
from .rollouts import DifferentiableRollout

__all__ = ["Differentiable", "DifferentiableRollout", "of_kernel", "of_robot"]
