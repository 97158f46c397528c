"""Methods that are kernels: declared once each, with one short way for every spelling of a call.

A method that is marked `compiled` is its signature and its docstring: which of its arguments are
arrays is known by their names, the others choose the kernel.  The first call goes the checked way,
in Python.  From the second on the method is a door (`runtime/door.py`), which has the docstring and
the signature too, takes every spelling, and goes the checked way with whatever it does not know.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..model.parameters import PARAMETERS
from ..runtime.arguments import plain
from ..runtime.door import Door, Parameter
from ..runtime.engine import fast_calls_work
from ..runtime.guests import Guest, guest_among
from ..runtime.streams import chosen_stream, using
from ..specialize.arrays import is_array
from .answers import ByCount, ByKernel, ByParts
from .settings import settled

if TYPE_CHECKING:
    from .front import Front

__all__ = ["Method", "Numbers", "bound", "compiled", "methods_of", "unknown_argument"]

# settings that are names of frames
_NAMES = ("frame", "frames")
# what other libraries, and habit, call an argument
_SYNONYMS = {
    **dict.fromkeys(("q_init", "q_start", "q_guess", "initial", "initial_guess", "x0"), "q0"),
    **dict.fromkeys(("v", "dq", "qdot", "qvel"), "qd"),
    **dict.fromkeys(("a", "ddq", "qddot", "qacc"), "qdd"),
    **dict.fromkeys(("u", "torque", "torques"), "tau"),
    **dict.fromkeys(("link", "body", "frame_name"), "frame"),
    **dict.fromkeys(("fext", "external_forces", "wrenches"), "f_ext"),
    **dict.fromkeys(("T", "time", "t_end", "tf", "t_final", "horizon", "t_span"), "duration"),
    **dict.fromkeys(("h", "timestep", "time_step", "step", "step_size", "delta_t"), "dt"),
    **dict.fromkeys(("integrator", "solver", "scheme"), "method"),
    **dict.fromkeys(("control", "controller", "law", "policy"), "tau"),
}

F = TypeVar("F", bound=Callable[..., Any])


class Numbers(TypedDict, total=False):
    """Numbers of the mechanism, per sample, of a robot that was made with `parameters=`."""

    gravity: ArrayLike
    inertia: ArrayLike
    placement: ArrayLike


def compiled(form: type = tuple, split_per_sample: bool = False) -> Callable[[F], F]:
    """Make a method of the algorithm of its name; form: the type of several results.

    split_per_sample: `active` may be a mask that comes with the samples.
    """

    def mark(fn: Any) -> Any:
        return Method(fn, form, split_per_sample)

    return mark


@final
class Method:
    """A compiled method as the class has it; of a robot it is a bound method, later a door."""

    def __init__(self, fn: Callable[..., Any], form: type, split_per_sample: bool) -> None:
        self.name, self.form, self.__doc__, self.__wrapped__ = fn.__name__, form, fn.__doc__, fn
        self.split_per_sample = split_per_sample

        @wraps(fn)
        def checked(robot: Front, *arguments: Any, **keywords: Any) -> Any:
            # one that was fetched before there was a door
            if isinstance(door := robot._doors.get(self), Door):
                return door.call(*arguments, **keywords)
            return self.call(robot, arguments, keywords)

        self.checked = checked

    def __get__(self, robot: Front | None, owner: type | None = None) -> Any:
        if robot is None:
            return self.checked
        found = robot._doors.get(self)
        return found.call if isinstance(found, Door) else MethodType(self.checked, robot)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes, but for numbers of the mechanism."""
        given = list(inspect.signature(self.__wrapped__).parameters.values())[1:]
        return tuple(
            Parameter(p.name, is_array(p.name), p.default is p.empty, p.default)
            for p in given
            if p.kind is not p.VAR_KEYWORD
        )

    def of(self, robot: Front) -> tuple[Parameter, ...]:
        """What it takes of a robot."""
        return self.parameters + tuple(Parameter(n, True, False, None) for n in robot.parameters)

    def call(self, robot: Front, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The checked way."""
        if robot.device == "cpu" or "stream" not in keywords:
            return self._called(robot, arguments, keywords)
        with using(keywords["stream"]):
            rest = {n: x for n, x in keywords.items() if n != "stream"}
            return self._called(robot, arguments, rest, short=False)

    def _called(
        self,
        robot: Front,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        short: bool = True,
    ) -> Any:
        """What a call gives; short: by machine code, if there is a door."""
        where, parameters = f"{self.name} of {robot.name!r}", self.of(robot)
        guest = None if _is_away(robot, arguments, keywords) else _guest(arguments, keywords)
        if guest is not None:
            again = lambda *x, **named: self.call(robot, x, named)  # noqa: E731
            return guest.answered(where, again, arguments, keywords)
        values = bound(where, parameters, arguments, keywords)
        given, static, out = self.told_apart(robot, where, parameters, values)
        if "constraints" in static and robot.device == "cpu":
            robot._look_at_loops(where, static["constraints"], given)
        answer = robot._answer(self.name, tuple(given), static, self.form)
        if short and isinstance(door := robot._doors.get(self), Door):
            named = {} if out is None else {"out": out}
            return self._learned(robot, door, values, answer)(*given.values(), **named)
        result = robot._answered(answer, where, given, out)
        if robot._doors.get(self) == "called once":
            self._learned(robot, self._opened(robot, parameters), values, answer)
        elif self not in robot._doors and not robot._numbers and fast_calls_work():
            robot._doors[self] = "called once"
        return result

    def told_apart(
        self, robot: Front, where: str, parameters: Sequence[Parameter], values: Sequence[Any]
    ) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """The arrays that are given, the settings that are not the default, and out."""
        arrays, static, out = {}, {}, None
        for p, value in zip(parameters, values, strict=True):
            if p.name == "out":
                out = value
            elif p.is_array:
                arrays[p.name] = value
            elif p.name in _NAMES and isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
                raise ArgumentError(
                    f"{where}: {p.name} is an array of shape {value.shape}; expected a name; it "
                    f"takes {', '.join(other.name for other in parameters)}"
                )
            elif p.required or not _is_default(p, value):
                x = settled(robot.mechanism, where, p.name, value, self.split_per_sample)
                (arrays if isinstance(x, np.ndarray) else static)[p.name] = x
        arrays.update(robot._numbers)
        return {n: x for n, x in arrays.items() if x is not None}, static, out

    def _opened(self, robot: Front, parameters: tuple[Parameter, ...]) -> Door:
        """The door that answers from now on."""

        def otherwise(*arguments: Any, **keywords: Any) -> Any:
            return self.call(robot, arguments, keywords)

        door = Door(robot, self.name, self.__doc__ or "", parameters, otherwise)
        robot._doors[self] = door
        # found there before the class is asked
        robot.__dict__.update(dict.fromkeys(methods_of(type(robot)).get(self, ()), door.call))
        return door

    def _learned(
        self, robot: Front, door: Door, values: list[Any], answer: Any
    ) -> Callable[..., Any]:
        """What takes the arrays of such a call; the door knows it from now on."""
        # kept with the robot: a thread may be in it when the door has forgotten it
        again = partial(self._again, robot, answer)
        entry = robot._keep((self, answer), lambda: answer.entry(again))
        if entry is None:
            return again
        door.learn(values, entry)
        return robot._keep((self, answer, "function"), lambda: entry.function(self.name))

    def _again(self, robot: Front, answer: Any, *arrays: Any, out: Any = None) -> Any:
        """For what machine code was given and handed on: as arrays, or else the checked way."""
        if robot.device != "cpu" and _is_away(robot, arrays, {"out": out}):
            return self._on_card(robot, answer, arrays, out)
        function = robot._kept.get((self, answer, "function"))
        guest = guest_among(arrays, out)
        if guest is not None:
            where, call = f"{self.name} of {robot.name!r}", partial(self._again, robot, answer)
            named = {} if out is None else {"out": out}
            return guest.answered(where, function or call, arrays, named)
        taken = [plain(x, robot.dtype) for x in arrays]
        if function and any(x is not y for x, y in zip(taken, arrays, strict=True)):
            return function(*taken, **({} if out is None else {"out": out}))
        where = f"{self.name} of {robot.name!r}"
        if isinstance(answer, (ByCount, ByParts)):
            result = answer.short(where, taken, out)
            if result is not None:
                return result
        given = dict(zip(answer.arrays, arrays, strict=True))
        missing = [n for n, x in given.items() if x is None]
        _require_none(where, missing, (p.name for p in self.of(robot)))
        return robot._answered(answer, where, given, out)

    def _on_card(self, robot: Front, answer: Any, arrays: tuple[Any, ...], out: Any) -> Any:
        """The same of a robot on a card: a launch as before, or else the checked way."""
        caller = answer.kernel.caller if isinstance(answer, ByKernel) else None
        found = None if caller is None else caller.again(arrays, out, chosen_stream())
        if found is not None:
            return answer.formed(found)
        given = dict(zip(answer.arrays, arrays, strict=True))
        return robot._answered(answer, f"{self.name} of {robot.name!r}", given, out)


def _guest(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Guest | None:
    return guest_among((*arguments, *keywords.values()), keywords.get("out"))


def _is_away(robot: Front, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether some of the arrays of a call live on a card, and the robot too."""
    if robot.device == "cpu":
        return False
    from ..runtime.array_kinds import on_card

    out = keywords.get("out")
    several = out if isinstance(out, (tuple, list)) else ()
    return any(map(on_card, (*arguments, *keywords.values(), *several)))


def _is_default(parameter: Parameter, value: Any) -> bool:
    default = parameter.default
    return value is default or (type(value) is type(default) and value == default)


@cache
def methods_of(kind: type) -> dict[Method, list[str]]:
    """The names under which a class has each of its compiled methods."""
    seen: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        seen.update(vars(base))
    found: dict[Method, list[str]] = {}
    for name, value in seen.items():
        if isinstance(value, Method):
            found.setdefault(value, []).append(name)
    return found


def bound(
    where: str,
    parameters: tuple[Parameter, ...],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> list[Any]:
    """The values of the parameters, in their order."""
    names = [p.name for p in parameters]
    if len(arguments) > len(names):
        raise ArgumentError(f"{where}: got {len(arguments)} arguments; it takes {', '.join(names)}")
    given = dict(zip(names, arguments, strict=False))
    for name, value in keywords.items():
        if name in given or name not in names:
            raise ArgumentError(f"{where}: {_strange(name, name in given, names)}")
        given[name] = value
    absent = [p for p in parameters if p.required and p.name not in given]
    absent += [p for p in parameters if p.required and p.is_array and given.get(p.name, p) is None]
    _require_none(where, [p.name for p in absent], names)
    return [given.get(p.name, p.default) for p in parameters]


def _require_none(where: str, missing: list[str], names: Iterable[str]) -> None:
    if missing:
        raise ArgumentError(
            f"{where}: {' and '.join(missing)} is missing, or None; it takes {', '.join(names)}"
        )


def _strange(name: str, twice: bool, names: list[str]) -> str:
    """What is wrong with an argument of that name."""
    if twice:
        return f"{name} is given twice, by place and by name"
    return unknown_argument(name, names)


def unknown_argument(name: str, names: Sequence[str]) -> str:
    """What is wrong with a keyword that is not among the names, and which was meant."""
    if name in PARAMETERS:
        return (
            f"{name} is folded into this robot's kernels; to give it with calls, make the robot "
            f"with hinge.Robot(mechanism, parameters=({name!r},)), or another with "
            f"hinge.model.parameters.with_parameters(mechanism, {name}=…)"
        )
    meant = _SYNONYMS.get(name)
    hint = f"did you mean {meant!r}?" if meant in names else did_you_mean(name, names)
    return f"{name} is not an argument; {hint}"
