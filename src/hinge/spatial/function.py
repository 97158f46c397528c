"""A function of rotations or poses: its generic code, compiled for every form of its arguments.

A rotation is a matrix or a quaternion, a pose a homogeneous matrix or (p, quaternion), as their
shapes say; each form has a kernel in float64 and one in float32, made when it is first called.
NumPy's arrays go to machine code at once: the kernels stand one behind the other, and the last one
leaves what fits none to `GroupFunction.answer`.  Arrays of PyTorch, JAX and CasADi take the kernel
as a function of theirs, with its derivatives; any other scalar takes the generic code itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, final

import numpy as np

from ..algebra.rotation import skew
from ..algebra.small import one_below_zero
from ..algebra.spatial import Transform
from ..errors import ArgumentError
from ..robot.method import bound
from ..runtime.arguments import Argument, no_check
from ..runtime.door import Door, Parameter
from ..runtime.engine import fast_calls_work
from ..runtime.kernel import Kernel
from .foreign import answered, family

if TYPE_CHECKING:
    from ..graph.program import Program

__all__ = ["ANY_POSE", "ANY_ROTATION", "FUNCTIONS", "POSE", "ROTATION", "GroupFunction", "compiled"]

F = TypeVar("F", bound=Callable[..., Any])
Shape = tuple[int, ...]


class Element(NamedTuple):
    """What an argument may be: a matrix or coordinates with a quaternion; checked: if it is one."""

    shapes: tuple[Shape, Shape]
    what: tuple[str, str]
    checked: bool = True

    def excess(self, x: np.ndarray) -> Any:
        """What is above zero if x is none: how far a matrix is from one, or minus a square."""
        if x.shape != self.shapes[0]:
            quat = x[-4:]
            return -(quat @ quat)
        left = _defect(x[:3, :3])
        return left if x.shape == (3, 3) else left + np.sum((x[3] - np.array([0, 0, 0, 1])) ** 2)


ROTATION = Element(((3, 3), (4,)), ("a rotation matrix", "a quaternion (w, x, y, z)"))
POSE = Element(((4, 4), (7,)), ("a pose [R p; 0 0 0 1]", "(p, quaternion)"))
ANY_ROTATION, ANY_POSE = (x._replace(checked=False) for x in (ROTATION, POSE))


def _defect(R: np.ndarray) -> Any:
    """How far R is from a rotation, squared: its rows x and y from unit ones, z from x × y."""
    x, y, z = R
    off = np.concatenate([[x @ x - 1, y @ y - 1, x @ y], z - skew(x) @ y])
    return np.sum(off * off)


# by their names, such as "so3.log"
FUNCTIONS: dict[str, GroupFunction] = {}


def compiled(**arguments: Shape | Element) -> Callable[[F], F]:
    """Make a compiled function of generic code, whose arrays have these shapes."""

    def made(fn: F) -> F:
        function = GroupFunction(fn, arguments)
        FUNCTIONS[function.name] = function
        return cast(F, function.call)

    return made


class _Home:
    """What a function belongs to: its module, as which it pickles."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __reduce__(self) -> Any:
        return import_module, (self._module,)

    def __repr__(self) -> str:
        return f"<module {self._module!r}>"


@final
class GroupFunction:
    """The function; call: what users call, machine code where Python has all that it needs."""

    call: Callable[..., Any]

    def __init__(self, fn: Callable[..., Any], arguments: dict[str, Shape | Element]) -> None:
        self.fn, self.arguments = fn, arguments
        self.name = f"{fn.__module__.rpartition('.')[2]}.{fn.__name__}"
        found = inspect.signature(fn).parameters.values()
        self.parameters = tuple(
            Parameter(p.name, p.name in arguments, p.default is p.empty, p.default) for p in found
        )
        self._kernels: dict[tuple[int, str], Kernel] = {}
        self._chains: list[Any] = []
        self._door: Door | None = None
        if not fast_calls_work():
            self.call = wraps(fn)(lambda *given, **named: self.answer(*given, **named))
            return
        home, doc = _Home(fn.__module__), fn.__doc__ or ""
        self._door = Door(home, fn.__name__, doc, self.parameters, self.answer)
        self.call = self._door.call

    def answer(self, *given: Any, **named: Any) -> Any:
        """The result for any arguments that make sense."""
        *values, out = bound(self.name, self.parameters, given, named)
        values = [x.matrix if isinstance(x, Transform) else x for x in values]
        package = family(values)
        if package is not None:
            if out is not None:
                raise ArgumentError(f"{self.name}: out is for results of NumPy, not of {package}")
            return answered(package, self, values)
        arrays = [_array(x) for x in values]
        if any(x.dtype.kind in "Oc" for x in arrays):
            if out is not None:
                raise ArgumentError(
                    f"{self.name}: out is for float64 and float32, not other scalars"
                )
            return self.plain(arrays)
        # numbers have the dtype of the arrays beside them
        single = {x.dtype.name for x in arrays if x.ndim} == {"float32"}
        form = self.form([x.shape for x in arrays])
        kernel = self.kernel(form, "float32" if single else "float64")
        pairs = zip(self.arguments, values, strict=True)
        asked = [self._argument(n, x, form, kernel.dtype) for n, x in pairs]
        return kernel.evaluate(self.name, asked, out)

    def form(self, shapes: Sequence[Shape]) -> int:
        """0: elements are matrices, 1: they have quaternions."""
        elements = [
            (x, shape)
            for x, shape in zip(self.arguments.values(), shapes, strict=True)
            if isinstance(x, Element)
        ]
        return int(bool(elements) and all(s[-1:] == x.shapes[1] for x, s in elements))

    def kernel(self, form: int, dtype: str) -> Kernel:
        """What computes one form; with NumPy's arrays the function goes there from now on."""
        found = self._kernels.get((form, dtype))
        if found is None:
            key = f"hinge.spatial {self.name} {self.shapes(form)}"
            make = partial(self._program, form, dtype)
            made = Kernel(make, self.name, list(self.arguments), dtype, key=key, strict=True)
            found = self._kernels.setdefault((form, dtype), made)
            self._learn()
        return found

    def shapes(self, form: int) -> list[Shape]:
        """Those of the arguments of one sample."""
        parts = self.arguments.values()
        return [x.shapes[form] if isinstance(x, Element) else x for x in parts]

    def _program(self, form: int, dtype: str) -> Program:
        from ..graph.program import trace

        return trace(partial(self._checked, form, dtype), self.shapes(form), self.name)

    def _checked(self, form: int, dtype: str, *arrays: np.ndarray) -> Any:
        """The generic code, with NaN in its first result where an argument is no such element."""
        result = self.fn(*arrays)
        first, *others = result if isinstance(result, tuple) else (result,)
        entries = np.ravel(first).tolist()
        for x, element in zip(arrays, self.arguments.values(), strict=True):
            if isinstance(element, Element) and element.checked:
                least = -_NONE if form else _least(dtype) ** 2
                entries[0] = entries[0] * one_below_zero(element.excess(x) - least)
        first = np.array(entries).reshape(np.shape(first))
        return (first, *others) if isinstance(result, tuple) else first

    def _learn(self) -> None:
        """All kernels, one behind the other, for the machine code that sorts out arguments."""
        if self._door is None:
            return
        after: Callable[..., Any] = self.answer
        entry = None
        # double precision comes first: lists are copied for the first kernel that takes them
        for kernel in sorted(self._kernels.values(), key=lambda k: k.dtype.itemsize):
            entry = kernel.entry(after)
            if entry is None:
                return
            after = entry.function(self.name)
        # kept: a thread may be in one that the door has forgotten
        self._chains.append(after)
        given = [np.zeros(0) if p.is_array else p.default for p in self.parameters]
        if entry is not None:
            self._door.learn(given, entry)

    def plain(self, arrays: Sequence[np.ndarray]) -> Any:
        """The generic code, sample by sample."""
        shapes = self.shapes(self.form([x.shape for x in arrays]))
        for name, x, shape in zip(self.arguments, arrays, shapes, strict=True):
            if x.shape[x.ndim - len(shape) :] != shape:
                raise ArgumentError(
                    f"{self.name}: {name} has shape {x.shape}; expected (…, "
                    f"{', '.join(map(str, shape))})"
                )
        leads = [x.shape[: x.ndim - len(s)] for x, s in zip(arrays, shapes, strict=True)]
        lead = np.broadcast_shapes(*leads)
        if lead == ():
            return self.fn(*(x if x.ndim else x[()] for x in arrays))
        wide = [np.broadcast_to(x, lead + s) for x, s in zip(arrays, shapes, strict=True)]
        results = [self.fn(*(x[i] for x in wide)) for i in np.ndindex(lead)]
        if not isinstance(results[0], tuple):
            return _stacked(results, lead)
        return tuple(_stacked(column, lead) for column in zip(*results, strict=True))

    def _argument(self, name: str, value: Any, form: int, dtype: np.dtype) -> Argument:
        spec = self.arguments[name]
        if not isinstance(spec, Element):
            return Argument(name, value, spec)
        check = partial(_wrong, name, spec, _least(dtype)) if spec.checked else no_check
        return Argument(name, value, spec.shapes[form], " or ".join(spec.what), check)


# the square of a quaternion that is none
_NONE = 1e-300


def _least(dtype: Any) -> float:
    """How far from a rotation a matrix may be: six digits, as files have, or as there are."""
    return max(1e-6, 64 * float(np.finfo(dtype).eps))


def _wrong(name: str, element: Element, least: float, x: np.ndarray) -> str:
    """What is wrong with a sample that is no element of the group, or nothing."""
    matrix = x.shape == element.shapes[0]
    excess = float(element.excess(x))
    if not matrix:
        return f"{name} is a zero quaternion; (1, 0, 0, 0) is no rotation" if excess == 0 else ""
    if excess <= least**2:
        return ""
    return (
        f"{name} is not {element.what[0]}: orthonormal rows are {excess**0.5:.2g} away; "
        f"normalize gives the nearest one"
    )


def _array(x: Any) -> np.ndarray:
    try:
        return np.asarray(x)
    except ValueError:
        # ragged: the kernel's own checks have the words for it
        return np.zeros(0)


def _stacked(results: Sequence[Any], lead: Shape) -> np.ndarray:
    parts = [np.asarray(x) for x in results]
    return np.array(parts).reshape(lead + parts[0].shape)
