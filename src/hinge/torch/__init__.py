"""Robots, kernels and rollouts as functions of PyTorch, with derivatives from the recursions.

dyn = hinge.torch.robot(robot)                 # an nn.Module with the robot's methods
qdd = dyn.forward_dynamics(q, qd, tau)         # tensors in, tensors out; autograd, vmap, compile
step = hinge.torch.function(robot.compile(fn)) # the same for a kernel or a rollout of one's own
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..functions.reducing import ReducingRollout
    from ..robot import Robot
    from ..runtime.kernel import Kernel
    from ..runtime.rollout import Rollout

__all__ = ["function", "robot"]


def __dir__() -> list[str]:
    return __all__


def robot(robot: Robot, learn: Sequence[str] = ()) -> Any:
    """The robot's methods on tensors, as an `nn.Module`.

    learn: numbers of the mechanism that are parameters of the module: "mass" or "inertia" of the
    bodies, which stay such as bodies can have, "placement" of the joints, "gravity".
    """
    return _room("module").Dynamics(robot, learn)


def function(kernel: Kernel | Rollout | ReducingRollout) -> Any:
    """A kernel of `robot.compile`, `hinge.compile`, `robot.kernel`, or a rollout, on tensors."""
    return _room("module").function(kernel)


def _room(name: str) -> Any:
    """A module of this room; it needs PyTorch."""
    try:
        import_module("torch.library")
    except ImportError:
        raise ArgumentError(
            "hinge.torch needs PyTorch, which is not installed: pip install 'hinge-dynamics[torch]'"
        ) from None
    return import_module(f".{name}", __name__)
