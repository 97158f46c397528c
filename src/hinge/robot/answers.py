"""What answers a call: a kernel, or something made of several, for certain arrays and settings.

Mass matrices and derivatives of N bodies take O(N²) straight-line operations, too many to compile
for hundreds of bodies.  Where they cannot be loops inside loops, what they do to a vector takes
O(N) and is compiled as a loop over bodies; applied to all unit vectors at once, as a batch, it
gives all columns: many times slower, but the code is there in a second, whatever N.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from math import prod
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from ..algebra.small import is_masked
from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError, TooLongError
from ..model.mechanism import Mechanism, did_you_mean
from ..model.parameters import PARAMETERS
from ..runtime.arguments import Argument, broadcast, checked
from ..runtime.backend import Backend
from ..runtime.cache import digest
from ..runtime.entry import Entry
from ..runtime.forks import made_once
from ..runtime.kernel import Kernel
from ..specialize.arrays import PER_DOF, array_shape, is_array
from ..specialize.programs import robot_program
from ..specialize.routing import MOST_UNROLLED, Piece, Route, is_large, is_long, route
from ..specialize.systems import robot_systems
from .parts import parts_of
from .results import as_results
from .second_order import FORMS, second_order_kernel
from .slopes import known_hessian, known_jacobian

if TYPE_CHECKING:
    from .front import Front

__all__ = [
    "Answer",
    "ByColumns",
    "ByCount",
    "ByKernel",
    "ByParts",
    "BySplit",
    "answer_of",
    "by_columns",
    "known_key",
    "robot_kernel",
]


class Answer(Protocol):
    """Results for arrays that are not checked yet; static: the other arguments."""

    arrays: tuple[str, ...]
    static: Mapping[str, Any]

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        """The results, checked, in new arrays or in those of out."""
        ...

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The machine code that gives the same, if there is any."""
        ...


def answer_of(
    robot: Front, name: str, arrays: tuple[str, ...], static: dict[str, Any], form: type
) -> Answer:
    """What answers calls of an algorithm with these arrays and settings."""
    if static.get("order", 1) == 2:
        return _second_order(robot, name, arrays, static)
    if static.get("method") == "scan":
        from .log_depth import ByScan

        return ByScan(robot, name, arrays, {n: x for n, x in static.items() if n != "method"})
    static = {n: x for n, x in static.items() if n != "order"}
    can = robot._backend.climbs, robot._backend.solves
    many, one = (route(robot.mechanism, name, arrays, static, n, *can) for n in (None, 1))
    if many.plan == "columns" and many.pieces[0].algorithm == "hybrid_response":
        return BySplit(robot, many, arrays, static)
    if many.plan == "columns":
        return ByColumns(robot, many, arrays, static, form)
    if many.plan == "rows":
        return ByRows(robot, many, arrays, static)
    if many.plan == "parts":
        from .held import ByHeld

        held = ByHeld(robot, name, arrays, static, form)
        if one.pieces == many.pieces or robot.device != "cpu":
            return held
        return ByParts(robot, held, parts_of(robot, ALGORITHMS[name].name, arrays, static))
    kernel = robot.kernel(name, *arrays, **static)
    if many.plan == "source" or _is_too_long(robot, many, kernel):
        from .source import BySource

        return BySource(robot, name, arrays, static, form)
    if one.plan == "parts" and robot.device == "cpu":
        whole = ByKernel(kernel, arrays, static, form, least=2)
        return ByParts(robot, whole, parts_of(robot, ALGORITHMS[name].name, arrays, static))
    if one.inertias != many.inertias and robot.device == "cpu":
        alone = robot.kernel(name, *arrays, **static, inertias=one.inertias)
        each = ByKernel(kernel, arrays, static, form, least=2)
        return ByCount(ByKernel(alone, arrays, static, form), each)
    return ByKernel(kernel, arrays, static, form)


def _is_too_long(robot: Front, way: Route, kernel: Kernel) -> bool:
    """Whether straight-line code for many bodies cannot be compiled: known once it was tried."""
    mech = robot.mechanism
    if way.plan != "unrolled" or (mech.n_bodies <= MOST_UNROLLED and not is_large(mech)):
        return False
    try:
        _ = kernel.artifact
    except TooLongError:
        return True
    return False


@final
class ByKernel:
    """One kernel; least: how many samples go straight to its machine code."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: tuple[str, ...],
        static: Mapping[str, Any],
        form: type,
        least: int = 0,
    ) -> None:
        self.kernel, self.arrays, self.static = kernel, arrays, static
        self.form, self.least = form, least

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        result = self.kernel.evaluate(where, given, out)
        return self.form(*result) if self.form is not tuple else result

    def formed(self, results: Sequence[Any]) -> Any:
        """Results as a call gives them."""
        if not self.kernel.artifact.several:
            return results[0]
        return tuple(results) if self.form is tuple else self.form(*results)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The kernel's own function."""
        return self.kernel.entry(otherwise, self.form, self.least)


@final
class ByCount:
    """One sample by one kernel, more of them by another, which needs less memory for each."""

    def __init__(self, one: ByKernel, many: ByKernel) -> None:
        self.one, self.many = one, many
        self.arrays, self.static = many.arrays, many.static

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        is_one = all(prod(np.shape(a.value)) == prod(a.shape) for a in given)
        return (self.one if is_one else self.many)(where, given, out)

    def short(self, where: str, arrays: Sequence[Any], out: Any) -> Any:
        """The result for one sample of exactly the expected kind, None for others."""
        if [np.shape(x) for x in arrays] != list(self.one.kernel.artifact.inputs):
            return None
        return self._alone(*arrays, **({} if out is None else {"out": out}))

    @made_once
    def _alone(self) -> Callable[..., Any]:
        """The code for one sample; None for what it does not take."""
        entry = self.one.entry(_nothing)
        return _nothing if entry is None else entry.function(self.one.kernel.name)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The one for batches; a single sample is handed on."""
        return self.many.entry(otherwise)


@final
class ByColumns:
    """Matrices of long mechanisms."""

    def __init__(
        self,
        robot: Front,
        way: Route,
        arrays: tuple[str, ...],
        static: Mapping[str, Any],
        form: type,
    ) -> None:
        self.robot, self.way, self.arrays = robot, way, arrays
        self.static, self.form = static, form

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        put = by_columns
        if self.robot.device != "cpu" and _on_card([a.value for a in given], out):
            from .card_columns import columns_on_card as put
        parts = put(self.robot, where, self.way.pieces, self.static, given, out)
        if len(parts) == 1:
            return parts[0]
        return tuple(parts) if self.form is tuple else self.form(*parts)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Columns are put together in Python."""
        return None


def _on_card(values: Sequence[Any], out: Any) -> bool:
    """Whether an array lives on a card."""
    from ..runtime.array_kinds import on_card

    return any(map(on_card, (*values, *(out if isinstance(out, (tuple, list)) else (out,)))))


# more samples than any batch has
_NEVER = 1 << 60


def _nothing(*arrays: Any, out: Any = None) -> None:
    """For what machine code hands on."""


@final
class ByRows:
    """The regressor of a long mechanism: a row for each unit velocity; columns of joints apart."""

    def __init__(
        self, robot: Front, way: Route, arrays: tuple[str, ...], static: Mapping[str, Any]
    ) -> None:
        self.robot, self.way, self.arrays, self.static = robot, way, arrays, static

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        robot, (piece,) = self.robot, self.way.pieces
        at = _before_columns(where, given)
        rows = robot._ask(piece.algorithm, {}, **at, **{piece.along[0]: np.eye(robot.nv)})
        rows[~np.isfinite(rows).all(axis=(-2, -1))] = np.nan
        if self.static:
            own = {a.name: a.value for a in given}
            joints = robot._ask("torque_regressor_joints", self.static, **own)
            rows = np.concatenate([rows, joints], axis=-1)
        return as_results(robot, where, [rows], out)[0]

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Rows are put together in Python."""
        return None


@final
class BySplit:
    """Jacobians and inertias of a long mechanism in part driven: columns of the driven DoF."""

    def __init__(
        self, robot: Front, way: Route, arrays: tuple[str, ...], static: Mapping[str, Any]
    ) -> None:
        self.robot, self.arrays, self.static = robot, arrays, static
        self.name = ALGORITHMS[way.name].name

    @property
    def split(self) -> dict[str, Any]:
        """Which DoF are driven, as it was given."""
        return {"active": self.static["active"]}

    @property
    def driven(self) -> np.ndarray:
        """The same as a mask."""
        return np.asarray(self.robot.mechanism.driven(self.static["active"])) == 1

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        ask, at = self.robot._ask, _before_columns(where, given)
        units = np.eye(self.robot.nv)[self.driven]
        columns = ask("hybrid_response", self.split, **at, given=units)
        columns[~np.isfinite(columns).all(axis=(-2, -1))] = np.nan
        plain = {a.name: a.value for a in given}
        found = self.put_together(columns, lambda settings: ask("jacobian", settings, **plain))
        return as_results(self.robot, where, [found], out)[0]

    def put_together(self, columns: Any, jacobian: Callable[[dict[str, Any]], Any]) -> Any:
        """The result from the responses to unit vectors, rows (…, na, nv), in any arrays."""
        driven = self.driven
        if self.name == "active_inertia":
            return _symmetric(columns[..., driven])
        yielding = columns[..., ~driven].swapaxes(-1, -2)
        if self.name == "disturbance_jacobian":
            return yielding
        J = jacobian({n: x for n, x in self.static.items() if n != "active"})
        return J[..., driven] + J[..., ~driven] @ yielding

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Columns are put together in Python."""
        return None


@final
class ByParts:
    """Derivatives of a large robot: one sample from three kernels and products, more otherwise.

    kernel: for batches, one kernel, which is not made before there is a batch, or `ByHeld`.
    """

    def __init__(self, robot: Front, kernel: Any, parts: Any) -> None:
        self.robot, self.kernel, self.parts = robot, kernel, parts
        self.arrays, self.static = kernel.arrays, kernel.static
        self._shapes = [array_shape(robot.mechanism, a, kernel.static) for a in kernel.arrays]

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        if any(is_masked(a.value) for a in given):
            checked(where, given, self.robot.dtype)
        try:
            values = {a.name: np.asarray(a.value) for a in given}
            leads = [values[a.name].shape[: values[a.name].ndim - len(a.shape)] for a in given]
            if any(n != 1 for lead in leads for n in lead):
                return self.kernel(where, given, out)
            single = {a.name: values[a.name].reshape(a.shape) for a in given}
            return self._one(where, single, out, max(leads, key=len))
        except ValueError:
            # what is wrong with an argument is said of this call, not of one of its parts
            checked(where, given, self.robot.dtype, strict=True)
            raise

    def _one(
        self, where: str, values: Mapping[str, Any], out: Any, lead: tuple[int, ...] = ()
    ) -> Any:
        parts = self.parts(values)
        if lead:
            parts = [x.reshape(*lead, *x.shape) for x in parts]
        if out is not None:
            parts = as_results(self.robot, where, parts, out)
        return self.kernel.form(*parts)

    def short(self, where: str, arrays: Sequence[Any], out: Any) -> Any:
        """The result for arrays of exactly the expected kind, None for others or if it fails."""
        dtype = self.robot.dtype
        if any(type(x) is not np.ndarray or x.dtype != dtype for x in arrays):
            return None
        if [x.shape for x in arrays] != self._shapes:
            if is_long(self.robot.mechanism):
                return None
            return self._many(*arrays, **({} if out is None else {"out": out}))
        try:
            return self._one(where, dict(zip(self.arrays, arrays, strict=True)), out)
        except ValueError:
            return None

    @made_once
    def _many(self) -> Callable[..., Any]:
        """The kernel's code for batches; None for what it does not take."""
        entry = self.kernel.entry(_nothing)
        return _nothing if entry is None else entry.function(self.kernel.kernel.name)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The kernel's, for batches; or code that hands all on, for which none need be made."""
        if not self.parts.waits:
            return self.kernel.entry(otherwise)
        return self.parts.first.entry(otherwise, tuple, least=_NEVER)


def _second_order(
    robot: Front, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Answer:
    asked = "second order", name, arrays, robot._settings(name, static)
    own = robot.mechanism, name, arrays, static, robot.dtype, robot._backend
    kernel = robot._keep(asked, lambda: second_order_kernel(*own))
    return ByKernel(kernel, arrays, static, FORMS[name])


def by_columns(
    robot: Front,
    where: str,
    pieces: Sequence[Piece],
    static: Mapping[str, Any],
    given: Sequence[Argument],
    out: Any,
) -> list[np.ndarray]:
    """Matrices (…, nv, nv), as many as the first piece has directions.

    pieces: algorithms that take unit vectors through the matrices, one after the other.
    """
    nv, at, many = robot.nv, _before_columns(where, given), len(pieces[0].along)
    units = np.eye(many * nv).reshape(many * nv, many, nv)
    moved = [units[:, i] for i in range(many)]
    for piece in pieces:
        along = dict(zip(piece.along, moved, strict=True))
        moved = [robot._ask(piece.algorithm, static, **{**at, **along})]
    columns = moved[0].reshape(*moved[0].shape[:-2], many, nv, nv)
    columns[~np.isfinite(columns).all(axis=(-3, -2, -1))] = np.nan
    parts = list(np.swapaxes(np.moveaxis(columns, -3, 0), -1, -2))
    if pieces[-1].symmetric:
        parts[-1] = _symmetric(parts[-1])
    return as_results(robot, where, parts, out)


def _before_columns(where: str, given: Sequence[Argument]) -> dict[str, np.ndarray]:
    """The arguments with one more leading dimension, for the columns."""
    values = broadcast(where, given)
    return {a.name: np.expand_dims(values[a.name], -1 - len(a.shape)) for a in given}


def _symmetric(x: np.ndarray) -> np.ndarray:
    """What is symmetric but for rounding, symmetric."""
    return 0.5 * x + 0.5 * x.swapaxes(-1, -2)


def robot_kernel(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: tuple[tuple[str, Any], ...],
    dtype: Any = np.float64,
    backend: Backend | None = None,
) -> Kernel:
    """The named algorithm on a mechanism, compiled; arrays in order, other arguments fixed.

    Arrays named gravity, inertia or placement are numbers of the mechanism left open.
    """
    if name not in ALGORITHMS:
        hint = did_you_mean(name, ALGORITHMS)
        raise ArgumentError(f"kernel of {mech.name!r}: no algorithm is called {name!r}; {hint}")
    static = _rounded(name, static, np.dtype(dtype))
    shapes = {a: array_shape(mech, a, dict(static)) for a in arrays}
    for unknown in (a for a in arrays if shapes[a] == () and not is_array(a)):
        hint = did_you_mean(unknown, ("q", "f_ext", "points", *PARAMETERS, *PER_DOF))
        raise ArgumentError(f"kernel of {mech.name!r}: no array is called {unknown!r}; {hint}")
    climbs = backend is None or backend.climbs
    make = partial(robot_program, mech, name, arrays, dict(static), climbs)
    maker = ALGORITHMS[name].function.__module__
    key = known_key(mech, name, arrays, static, maker=maker)
    title = f"{name} of {mech.name!r}"
    asked = mech, name, arrays, dict(static)
    known = known_jacobian(*asked), known_hessian(*asked)
    plan = route(*asked, climbs=climbs, solves=True).plan
    systems = partial(robot_systems, *asked) if plan == "systems" else None
    results = (ALGORITHMS[name].result,)
    return Kernel(make, title, arrays, dtype, backend, key, True, *known, systems, results)


def _rounded(
    name: str, static: tuple[tuple[str, Any], ...], dtype: np.dtype
) -> tuple[tuple[str, Any], ...]:
    """The other arguments, with the rounding of the numbers, if not double, for what asks."""
    asks = "rounding" in ALGORITHMS[name].parameters and "rounding" not in dict(static)
    own = (("rounding", float(np.finfo(dtype).eps)),) if asks and dtype != np.float64 else ()
    return (*static, *own)


def known_key(mech: Mechanism, *asked: Any, maker: str | None = __name__) -> str | None:
    """What the code for a mechanism is kept under, known before anything is traced.

    None if a joint, something asked, or the module that makes the function, is not of this package:
    its source may change while its name stays, so that only the program that tracing gives can
    tell.
    """
    makers = {maker, *(type(body.joint).__module__ for body in mech.bodies)}
    if not all(map(_is_our_module, makers)) or not _is_ours(asked):
        return None
    return digest(_mechanism_key(mech), *map(_spelled_out, asked))


def _spelled_out(x: Any) -> str:
    """A value with all that it is made of, of which its own repr may give a summary."""
    if is_dataclass(x) and not isinstance(x, type):
        parts = ((f.name, getattr(x, f.name)) for f in fields(x))
        return f"{type(x).__qualname__}{_spelled_out(tuple(parts))}"
    if isinstance(x, Mapping):
        return f"{type(x).__qualname__}{_spelled_out(tuple(x.items()))}"
    if isinstance(x, (tuple, list)):
        return f"{type(x).__qualname__}({', '.join(map(_spelled_out, x))})"
    return f"{x.dtype} {x.tolist()}" if isinstance(x, np.ndarray) else repr(x)


def _is_ours(x: Any) -> bool:
    """Whether all code of a value is of this package, of Python or of NumPy."""
    if isinstance(x, Mapping):
        return _is_ours((*x, *x.values()))
    if isinstance(x, FunctionType):
        return _is_our_module(x.__module__)
    home = type(x).__module__
    if home not in ("builtins", "numpy") and not _is_our_module(home):
        return False
    parts = x if isinstance(x, tuple) else vars(x).values() if is_dataclass(x) else ()
    return all(map(_is_ours, parts))


def _is_our_module(name: str | None) -> bool:
    return str(name).partition(".")[0] == __name__.partition(".")[0]


@lru_cache(maxsize=4)
def _mechanism_key(mech: Mechanism) -> str:
    """The same for all that is asked of a mechanism, which may have thousands of bodies."""
    return digest(pickle.dumps(mech))
