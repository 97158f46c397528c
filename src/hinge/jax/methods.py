"""A robot's compiled methods as functions of JAX.

A method is what the robot has: its name, docstring and arguments, but for `out`.  Which kernel
answers is decided as for the robot; what takes the place of Python around kernels, matrices by
columns and by parts, is done in JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..robot import Robot, check_robot
from ..robot.answers import ByColumns, ByKernel, ByParts, ByRows, BySplit
from ..robot.method import Method, bound, methods_of
from ..specialize.arrays import array_shape
from ..specialize.by_coordinates import looped_product
from ..specialize.programs import unrolled_program
from ..specialize.routing import is_long
from .kernels import applied, as_array
from .matrices import matrices_of
from .operation import Operation, Signature

__all__ = ["Dynamics", "dynamics"]

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")


def dynamics(robot: Any) -> Dynamics:
    """The methods of a robot."""
    return Dynamics(check_robot("hinge.jax.robot", robot))


class Dynamics:
    """The compiled methods of a robot, for arrays of JAX with any leading shape.

    What is not finite raises nothing here: such a sample gives NaN.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._methods = {n: m for m, names in methods_of(type(robot)).items() for n in names}
        self._made: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self._methods:
            raise AttributeError(
                f"hinge.jax.robot of {self.robot.name!r}: no compiled method is called {name!r}; "
                f"{did_you_mean(name, self._methods)}"
            )
        method = self._methods[name]
        fn = partial(self._call, method)
        fn.__name__, fn.__doc__ = method.name, method.__doc__  # pyright: ignore
        return fn

    def __dir__(self) -> list[str]:
        return ["robot", *self._methods]

    def __repr__(self) -> str:
        return f"<hinge.jax.robot of {self.robot.name!r}>"

    def _call(self, method: Method, *arguments: Any, **keywords: Any) -> Any:
        robot, where = self.robot, f"{method.name} of {self.robot.name!r}"
        parameters = method.of(robot)
        values = bound(where, parameters, arguments, keywords)
        given, static, out = method.told_apart(robot, where, parameters, values)
        if out is not None:
            raise ArgumentError(f"{where}: arrays of JAX are never written to; leave out away")
        answer = robot._answer(method.name, tuple(given), static, method.form)
        if isinstance(answer, (ByColumns, ByRows)):
            return self._in_pieces(where, answer, given)
        if isinstance(answer, BySplit):
            return self._by_split(where, answer, given)
        operation = self.operation(method.name, tuple(given), static, method.form)
        results = applied(where, operation, tuple(given), list(given.values()))
        if not operation.signature.several:
            return results[0]
        form: Any = answer.form if isinstance(answer, ByKernel) else method.form
        return tuple(results) if form is tuple else form(*results)

    def operation(
        self, name: str, arrays: tuple[str, ...], static: Mapping[str, Any], form: type = tuple
    ) -> Operation:
        """The operation that answers, made once."""
        robot = self.robot
        asked = name, arrays, robot._settings(name, static)
        if asked not in self._made:
            answer: Any = robot._answer(name, arrays, dict(static), form)
            kernel = robot.kernel(name, *arrays, **static)
            whole = answer.kernel if isinstance(answer, ByParts) else answer
            kernel = whole.kernel if isinstance(whole, ByKernel) else kernel
            unrolled, asking = None, (robot.mechanism, name, arrays)
            if is_long(robot.mechanism):
                unrolled = partial(unrolled_program, *asking, dict(static))
            by_parts = isinstance(answer, ByParts) and name == "forward_dynamics_derivatives"
            self._made[asked] = Operation(
                kernel,
                self._signature(arrays, static) if by_parts else None,
                matrices=matrices_of(self, name, arrays, static),
                unrolled=unrolled,
                parts=partial(self._parts, arrays, dict(static)) if by_parts else None,
                looped=None if static else partial(looped_product, *asking),
            )
        return self._made[asked]

    def _signature(self, arrays: tuple[str, ...], static: Mapping[str, Any]) -> Signature:
        """Of matrices by parts, whose one kernel may never be made."""
        robot = self.robot
        inputs = tuple(array_shape(robot.mechanism, a, static) for a in arrays)
        return Signature(inputs, ((robot.nv, robot.nv),) * 3)

    def _parts(self, arrays: tuple[str, ...], static: dict[str, Any], *values: Any) -> list[Any]:
        """−M⁻¹ B_D, −M⁻¹ A_D, M⁻¹, from three kernels."""
        x = dict(zip(arrays, values, strict=True))
        numbers = {n: x[n] for n in self.robot.parameters if n in x}
        loads = {n: x[n] for n in ("f_ext", "points") if n in x}
        force = {n: a for n, a in loads.items() if n == "f_ext"}
        qdd = self.forward_dynamics(x["q"], x["qd"], x["tau"], **force, **numbers)
        fixed = {n: s for n, s in static.items() if n == "load"}
        d = self.inverse_dynamics_derivatives(x["q"], x["qd"], qdd, **loads, **fixed, **numbers)
        M_inv = self.mass_matrix_inverse(x["q"], **numbers)
        product = partial(jnp.matmul, -M_inv, precision="highest")
        return [product(d.dq), product(d.dqd), M_inv]

    def _in_pieces(self, where: str, answer: Any, given: dict[str, Any]) -> Any:
        """Matrices of long mechanisms: unit vectors through products with them, as a batch."""
        robot, nv = self.robot, self.robot.nv
        x = {n: as_array(where, n, a, robot.dtype) for n, a in given.items()}
        pieces, many = answer.way.pieces, len(answer.way.pieces[0].along)
        units = jnp.eye(many * nv, dtype=robot.dtype).reshape(many * nv, many, nv)
        moved, rows = [units[:, i] for i in range(many)], isinstance(answer, ByRows)

        def column(*along: Any) -> Any:
            for piece in pieces:
                arrays = x | dict(zip(piece.along, along, strict=True))
                along = (self._piece(piece.algorithm, arrays, {} if rows else answer.static),)
            return along[0]

        columns = jax.vmap(column, out_axes=-1)(*moved)
        if rows:
            made = jnp.swapaxes(columns, -1, -2)
            if not answer.static:
                return made
            joints = self._piece("torque_regressor_joints", x, answer.static)
            return jnp.concatenate([made, joints], axis=-1)
        parts = jnp.split(columns, many, axis=-1)
        if pieces[-1].symmetric:
            parts[-1] = (parts[-1] + jnp.swapaxes(parts[-1], -1, -2)) / 2
        return parts[0] if many == 1 else answer.form(*parts)

    def _by_split(self, where: str, answer: BySplit, given: dict[str, Any]) -> Any:
        """The same of mechanisms in part driven."""
        robot = self.robot
        x = {n: as_array(where, n, a, robot.dtype) for n, a in given.items()}
        units = jnp.eye(robot.nv, dtype=robot.dtype)[answer.driven]

        def response(unit: Any) -> Any:
            return self._piece("hybrid_response", x | {"given": unit}, answer.split)

        columns = jax.vmap(response, out_axes=-2)(units)
        return answer.put_together(columns, lambda own: self._piece("jacobian", x, own))

    def _piece(self, name: str, arrays: dict[str, Any], static: Mapping[str, Any]) -> Any:
        """One kernel of those that matrices come from."""
        where = f"{name} of {self.robot.name!r}"
        operation = self.operation(name, tuple(arrays), static)
        return applied(where, operation, tuple(arrays), list(arrays.values()))[0]
