"""Arrays of other packages on the host: taken without a copy, and results given in their kind.

PyTorch's tensors, JAX's arrays, and whatever else has DLPack.  No package is imported here that did
not make an array which came.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np

from ..errors import ArgumentError

__all__ = ["Guest", "guest_among"]

# of DLPack: memory of the host
_HOST = 1


@final
class Guest:
    """A package whose arrays come and go."""

    def __init__(self, package: str) -> None:
        # JAX's arrays are of jaxlib, or traced ones of its own
        self.package = "jax" if package == "jaxlib" else package

    def taken(self, where: str, x: Any) -> Any:
        """An array as NumPy sees it, in the same memory; what is none of a package stays."""
        kind = _guest(type(x))
        if kind is None:
            return x
        if kind.package == "torch":
            return _tensor(where, x)
        if self.package == "jax" and isinstance(x, sys.modules["jax"].core.Tracer):
            raise ArgumentError(
                f"{where}: an array is being traced by JAX; hinge.jax has functions for that"
            )
        if x.__dlpack_device__()[0] != _HOST:
            raise _elsewhere(where, x)
        return np.from_dlpack(x)

    def given(self, x: Any) -> Any:
        """A result as the package has it."""
        if isinstance(x, tuple):
            parts = [self.given(part) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        if not isinstance(x, (np.ndarray, np.floating)):
            return x
        module = sys.modules["jax.numpy" if self.package == "jax" else self.package]
        return module.from_dlpack(np.asarray(x)) if hasattr(module, "from_dlpack") else x

    def answered(
        self, where: str, call: Callable[..., Any], arrays: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        """What a function of arrays of NumPy gives for such arrays; into out, what out is."""
        values = {n: x for n, x in named.items() if n != "out"}
        result, out = None, named.get("out")
        if out is not None:
            parts = [self.taken(where, x) for x in out] if isinstance(out, (tuple, list)) else None
            values["out"] = self.taken(where, out) if parts is None else type(out)(parts)
        taken = [self.taken(where, x) for x in arrays]
        result = call(*taken, **{n: self.taken(where, x) for n, x in values.items()})
        if out is None:
            return self.given(result)
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*out)
        return tuple(out) if isinstance(result, tuple) else out


def _tensor(where: str, x: Any) -> np.ndarray:
    """A tensor of PyTorch as NumPy sees it."""
    if x.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise ArgumentError(
            f"{where}: a tensor requires grad, and no gradient would come through this call; "
            f"hinge.torch has functions with gradients, x.detach() has none"
        )
    if x.device.type != "cpu":
        raise _elsewhere(where, x)
    return x.detach().numpy()


def _elsewhere(where: str, x: Any) -> ArgumentError:
    return ArgumentError(
        f"{where}: an array is on {x.device}, the robot on the CPU; bring it here, or the robot "
        f"there with robot.to(…)"
    )


def guest_among(values: Sequence[Any], out: Any = None) -> Guest | None:
    """Whose arrays these are: that of the first that is not NumPy's; None if all are."""
    for x in (*values, *(out if isinstance(out, (tuple, list)) else (out,))):
        found = _guest(type(x))
        if found is not None:
            return found
    return None


@lru_cache(maxsize=256)
def _guest(kind: type) -> Guest | None:
    if issubclass(
        kind, (np.ndarray, np.generic, int, float, complex, list, tuple, str, type(None))
    ):
        return None
    package = next((b.__module__ for b in kind.__mro__ if b.__module__ == "torch"), kind.__module__)
    package = package.partition(".")[0]
    # what JAX traces has no memory, and says so when asked
    is_array = hasattr(kind, "__dlpack_device__") or (package == "jax" and hasattr(kind, "aval"))
    return Guest(package) if is_array else None
