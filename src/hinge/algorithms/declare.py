"""What an algorithm is, declared once, beside its function: every list is derived from that."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

import numpy as np

from ..errors import SingularError
from ..model.mechanism import Mechanism, did_you_mean
from .singular import loose_joint, why_singular

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Bound",
    "Served",
    "algorithm",
    "bound",
    "for_any_mechanism",
    "with_followers",
]

F = TypeVar("F", bound=FunctionType)
P = ParamSpec("P")
R = TypeVar("R")


class Served(Mechanism):
    """A mechanism of which some algorithms are answered otherwise than by their sweeps.

    answer: what an algorithm gives, by its name and arguments; None where its sweep is to be run.
    """

    answer: Callable[[str, dict[str, Any]], Any]

    @classmethod
    def by(cls, mech: Mechanism, answer: Callable[[str, dict[str, Any]], Any]) -> Served:
        """The same mechanism, so served."""
        served = cls(mech.name, mech.bodies, mech.frames, mech.gravity)
        served.__dict__["answer"] = answer
        return served


class Algorithm(NamedTuple):
    """A function of a mechanism and of arrays, and what a compiler may do with it.

    joint_level: its results, if they are one per DoF, depend neither on where the frames of bodies
    are nor on how inertia is shared by bodies that move alike: canonical frames serve it.
    loops: its sweeps may be traced once per kind of joint, as loops over bodies.
    independent_joints: its sweep releases joint after joint, so that none may follow another; where
    one does, what `with_followers` has for it is done instead.
    reads_passive: what bodies with passive DoF have after a sweep is read of each of them, so that
    loops have to know them from others.
    composed: it does little but call other algorithms, so that where these are loops over many
    bodies its source may run as it is.
    result: the symbol of its one result, such as tau; several have the names of their tuple.
    """

    name: str
    function: Callable[..., Any]
    joint_level: bool
    loops: bool
    independent_joints: bool
    composed: bool
    reads_passive: bool = False
    result: str = "result"

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it takes besides the mechanism."""
        _, *rest = inspect.signature(self.function).parameters.items()
        return dict(rest)

    @property
    def form(self) -> type:
        """The type that holds several results; tuple also where there is one."""
        found = get_type_hints(self.function).get("return")
        return found if isinstance(found, type) and issubclass(found, tuple) else tuple


# by name, aliases included
ALGORITHMS: dict[str, Algorithm] = {}

# what is done where a joint mimics another, by the name of the algorithm
_DENSE: dict[str, Callable[..., Any]] = {}


def algorithm(
    *,
    joint_level: bool = False,
    loops: bool = False,
    independent_joints: bool = False,
    composed: bool = False,
    reads_passive: bool = False,
    result: str = "result",
    aliases: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Declare a function as an algorithm; the words are those of `Algorithm`."""

    def declare(function: F) -> F:
        public = _answering(for_any_mechanism(function) if independent_joints else function)
        properties = joint_level, loops, independent_joints, composed, reads_passive, result
        declared = Algorithm(function.__name__, public, *properties)
        ALGORITHMS.update(dict.fromkeys((function.__name__, *aliases), declared))
        return public

    return declare


def with_followers(
    sweep: Callable[Concatenate[Any, P], R],
) -> Callable[[Callable[Concatenate[Any, P], R]], None]:
    """The same result as that of a sweep, for mechanisms in which joints mimic others."""

    def register(dense: Callable[Concatenate[Any, P], R]) -> None:
        _DENSE[sweep.__name__] = dense

    return register


def for_any_mechanism(sweep: F) -> F:
    """The sweep, or what stands in for it where a joint mimics another."""
    name = sweep.__name__

    @wraps(sweep)
    def call(mech: Any, *arguments: Any, **keywords: Any) -> Any:
        chosen = _DENSE[name] if mech.has_followers else sweep
        return chosen(mech, *arguments, **keywords)

    return cast(F, call)


def _answering(function: F) -> F:
    """The function; on numbers it raises where a joint that moves no inertia leaves no answer."""

    @wraps(function)
    def call(mech: Any, *arguments: Any, **keywords: Any) -> Any:
        for x in (*arguments, *keywords.values()):
            # arrays with a meaning of their own say how an algorithm is applied to them
            if hasattr(x, "on_plain_arrays"):
                return x.on_plain_arrays(partial(call, mech), arguments, keywords)
        if isinstance(mech, Served):
            given = inspect.signature(function).bind(mech, *arguments, **keywords).arguments
            _, *rest = given.items()
            if (found := mech.answer(function.__name__, dict(rest))) is not None:
                return found
        result = function(mech, *arguments, **keywords)
        if isinstance(mech, Mechanism) and not _finite(result):
            _refuse_loose_joints(function, mech, arguments, keywords)
        return result

    return cast(F, call)


def _refuse_loose_joints(
    function: FunctionType, mech: Mechanism, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    given = inspect.signature(function).bind(mech, *arguments, **keywords).arguments
    if "q" not in given or not all(_finite(x) for x in given.values()):
        return
    held = mech.driven(given["active"]) if "active" in given else None
    M = ALGORITHMS["mass_matrix"].function(mech, np.asarray(given["q"]))
    if joint := loose_joint(mech, M, held):
        raise SingularError(why_singular(f"{function.__name__} of {mech.name!r}", joint))


def _finite(x: Any) -> bool:
    """Whether no number in it is NaN or infinite; of traced scalars and symbols none is known."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind not in "fc" or bool(np.isfinite(x).all())
    return not isinstance(x, tuple) or all(map(_finite, x))


class bound(Generic[P, R]):  # noqa: N801 (reads as a decorator)
    """An attribute that is an algorithm without its first argument, the mechanism."""

    def __init__(self, function: Callable[Concatenate[Mechanism, P], R]) -> None:
        self.function = function

    @overload
    def __get__(self, owner: None, kind: type) -> bound[P, R]: ...

    @overload
    def __get__(self, owner: Bound, kind: type) -> Callable[P, R]: ...

    def __get__(self, owner: Bound | None, kind: type) -> Any:
        return self if owner is None else MethodType(self.function, owner.mechanism)


class Bound:
    """A mechanism whose algorithms are attributes."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def __dir__(self) -> list[str]:
        return sorted(name for name, x in vars(type(self)).items() if isinstance(x, bound))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = did_you_mean(name, dir(self))
            raise AttributeError(f"hinge.algorithms has no function {name!r}; {hint}")
