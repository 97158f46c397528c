"""Algorithms with a mechanism bound, typed: what is left of each is known to a type checker."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from ..model.mechanism import Mechanism, did_you_mean

__all__ = ["Bound", "bound"]

P = ParamSpec("P")
R = TypeVar("R")


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
