"""Robots and kernels as functions of JAX: under jit, vmap, grad, scan, on its arrays.

    dyn = hinge.jax.robot(robot)                  the robot's methods
    f = hinge.jax.function(kernel)                anything compiled, rollouts too

JAX is imported when one of them is called: the extra `jax` installs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..functions.reducing import ReducingRollout
    from ..robot import Robot
    from ..runtime.kernel import Kernel
    from ..runtime.rollout import Rollout
    from .methods import Dynamics

__all__ = ["function", "robot"]


def __dir__() -> list[str]:
    return __all__


def robot(robot: Robot) -> Dynamics:
    """The robot's compiled methods as functions of JAX arrays, called as the robot's are.

    Derivatives with respect to q are along its coordinates, those of quaternions included: a
    quaternion is normalised first, so that its length makes no difference.
    """
    _require_jax("hinge.jax.robot")
    from .methods import dynamics

    return dynamics(robot)


def function(kernel: Kernel | Rollout | ReducingRollout) -> Callable[..., Any]:
    """What `robot.compile`, `hinge.compile`, `rollout` made, as a function of JAX arrays."""
    _require_jax("hinge.jax.function")
    from .kernels import kernel_function

    return kernel_function(kernel)


def _require_jax(where: str) -> None:
    # a folder of that name, where Python looks for modules, is no package
    found = find_spec("jax")
    if found is None or found.origin is None:
        raise ArgumentError(
            f"{where} needs JAX, which is not installed: pip install 'hinge-dynamics[jax]'"
        )
