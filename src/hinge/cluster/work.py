"""What is mapped over blocks: something compiled, in a form that travels.

A robot goes as its mechanism.  With it, or with a kernel or a rollout, goes the code that was
compiled here; where it comes to, that code is used if the machine is of the same kind, and other
code is compiled there if it is not (`runtime/artifact.py`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, final

import numpy as np

from ..errors import ArgumentError, DeviceError, OpenLoopWarning
from ..robot import Robot
from ..robot.method import Method, bound, methods_of
from ..runtime.arguments import Argument, named
from ..runtime.cache import digest
from ..runtime.check import check_whole
from ..runtime.cpu import Cpu
from ..runtime.devices import backend_of, check_device
from ..runtime.door import owner_of
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from ..runtime.threads import limited
from ..specialize.arrays import array_shape

__all__ = ["Place", "Work", "check_place", "work_of"]

Call = Callable[..., Any]


class Place(NamedTuple):
    """Where blocks are worked on: "cpu", a card, or "auto"; by how many threads each."""

    device: str
    threads: int

    def found(self) -> str:
        """The device on the machine that asks: "auto" is a card if there is one."""
        if self.device != "auto":
            return self.device
        from ..runtime.driver import driver

        try:
            driver().card(0)
        except DeviceError:
            return "cpu"
        return "cuda:0"


def check_place(where: str, device: str | None, threads: int, lives: str) -> Place:
    """The place that is asked for; lives: where it is if none is."""
    chosen = lives if device is None else device
    if chosen != "auto":
        chosen = check_device(where, chosen)
    return Place(chosen, check_whole(where, "threads", threads))


@final
class Work:
    """What is done with a block.

    takes: the arrays, in order; gives: the shapes of results of a sample; records: how many rows
    for time come before the samples, None if results have no time; form: of several results.
    parts: what tells it from other work, besides the places.
    """

    def __init__(
        self,
        where: str,
        takes: Sequence[Argument],
        gives: Sequence[tuple[int, ...]],
        dtype: np.dtype,
        form: type | None,
        call: Any,
        records: int | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        self.where, self.dtype, self.form, self.call = where, dtype, form, call
        self.takes = [(a.name, a.shape, a.timed) for a in takes]
        self.gives, self.records = tuple(gives), records
        self.token = digest(where, repr((self.takes, self.gives, records)), *parts)
        self._ready: dict[str, Call] = {}

    @property
    def name(self) -> str:
        """What its tasks are called."""
        words = "".join(c if c.isalnum() else " " for c in self.where).split()
        return "_".join(words)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ready": {}}

    def __call__(
        self, arrays: Sequence[np.ndarray], place: Place, alone: bool
    ) -> tuple[np.ndarray, ...]:
        """The results for a block; alone: there are no other samples anywhere.

        One of many samples is worked on as two: some code for one sample rounds otherwise.
        """
        leads = [
            x.shape[int(timed) : x.ndim - len(shape)]
            for x, (_, shape, timed) in zip(arrays, self.takes, strict=True)
        ]
        twice = not alone and prod(np.broadcast_shapes(*leads)) == 1
        if twice:
            arrays = [self._doubled(x, i, leads) for i, x in enumerate(arrays)]
        with limited(place.threads):
            device = place.found()
            if device not in self._ready:
                self._ready[device] = self.call.on(device)
            results = self._ready[device](*arrays)
        several = results if self.form is not None else (results,)
        return tuple(np.take(x, 0, axis=self.time) if twice else x for x in several)

    @property
    def time(self) -> int:
        """How many axes of results come before those of samples."""
        return 0 if self.records is None else 1

    def _doubled(self, x: np.ndarray, i: int, leads: Sequence[tuple[int, ...]]) -> np.ndarray:
        """An array with every sample twice, along a new first axis of samples."""
        if len(leads[i]) < max(map(len, leads)):
            return x
        return np.stack([x, x], axis=int(self.takes[i][2]))


# what travels: each is put on a device where it comes to


class _MethodCall:
    """A method of a robot; kernels: those that answered a call here, by what was asked."""

    def __init__(
        self, robot: Robot, name: str, arrays: Sequence[str], settings: Mapping[str, Any]
    ) -> None:
        self.robot, self.name, self.arrays, self.settings = robot, name, arrays, settings
        self.kernels: dict[Any, Kernel] = {}

    def on(self, device: str) -> Call:
        robot = self.robot
        if device == "cpu":
            robot._kept.update(self.kernels)
        else:
            robot = robot.to(device)
        method, names, settings = getattr(robot, self.name), self.arrays, self.settings
        return lambda *arrays: method(**dict(zip(names, arrays, strict=True)), **settings)

    def tried(self, shapes: Sequence[tuple[int, ...]]) -> Any:
        """The results of two samples with any numbers, and with that all code compiled."""
        call, given = self.on("cpu"), []
        for name, shape in zip(self.arrays, shapes, strict=True):
            one = self.robot.neutral() if name in ("q", "q0", "q1") else np.zeros(shape)
            given.append(np.broadcast_to(one, (2, *shape)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OpenLoopWarning)
            results = call(*given)
        kept = self.robot._kept.items()
        self.kernels = {k: x for k, x in kept if isinstance(x, Kernel) and x.is_compiled}
        return results


class _KernelCall:
    """A kernel, or a rollout with its settings."""

    def __init__(self, kernel: Kernel | Rollout, settings: Mapping[str, Any]) -> None:
        self.kernel: Any = kernel if isinstance(kernel.backend, Cpu) else kernel.on(Cpu())
        self.settings = settings

    def on(self, device: str) -> Call:
        kernel, settings = self.kernel, self.settings
        if device != "cpu":
            kernel = kernel.on(backend_of(device))
        return lambda *arrays: kernel(*arrays, **settings)


# from what is given


def work_of(
    where: str, what: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Work, list[Argument], str]:
    """The work, its arrays as they are given, and the device that it lives on."""
    if isinstance(what, Kernel):
        return _kernel_work(what, arguments, keywords)
    if isinstance(what, Rollout):
        return _rollout_work(what, arguments, keywords)
    owner = owner_of(what)
    known = {m.name: m for m in methods_of(type(owner))} if isinstance(owner, Robot) else {}
    if isinstance(owner, Robot) and what.__name__ in known:
        return _method_work(owner, known[what.__name__], tuple(arguments), dict(keywords))
    raise ArgumentError(
        f"{where} takes a compiled method of a robot, such as robot.inverse_dynamics, or what "
        f"robot.compile, hinge.compile or rollout made; got {getattr(what, '__name__', what)!r}"
    )


def _kernel_work(
    kernel: Kernel, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Work, list[Argument], str]:
    arrays = kernel._in_order(tuple(arguments), dict(keywords)) if keywords else tuple(arguments)
    call = _KernelCall(kernel, {})
    made = call.kernel.artifact
    shapes = dict(zip(kernel.names, made.inputs, strict=True))
    takes = named(kernel.name, arrays, shapes)
    form = tuple if made.several else None
    parts = _parts(call.kernel)
    work = Work(kernel.name, takes, made.outputs, kernel.dtype, form, call, parts=parts)
    return work, takes, _lives(kernel)


def _rollout_work(
    rollout: Rollout, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[Work, list[Argument], str]:
    rest = dict(keywords)
    every = check_whole(rollout.name, "every", rest.pop("every", 1))
    asked = rest.pop("steps", None)
    if unknown := [n for n in rest if n not in list(rollout.shapes)[len(arguments) :]]:
        raise ArgumentError(
            f"{rollout.name}: {', '.join(unknown)} is not an argument, or given twice; it takes "
            f"{', '.join(rollout.shapes)}, and steps and every"
        )
    arrays = [*arguments, *(rest[n] for n in rollout.shapes if n in rest)]
    timed = list(rollout.shapes)[rollout.states : rollout.states + rollout.inputs]
    takes = named(rollout.name, arrays, rollout.shapes, timed)
    steps = rollout._steps(arrays, asked)
    call = _KernelCall(rollout, {"steps": steps, "every": every})
    # for two samples or more
    made = call.kernel._code((2,))[0]
    form = tuple if made.several else None
    own = made.outputs, rollout.dtype, form, call, steps // every
    work = Work(rollout.name, takes, *own, parts=(*_parts(call.kernel), f"{steps} {every}"))
    return work, takes, _lives(rollout)


def _parts(kernel: Kernel | Rollout) -> tuple[str, str, str]:
    """What tells one from another."""
    source = kernel._source
    return source.own_key, source.settings.scalar, str(source.settings.strict)


def _lives(kernel: Kernel | Rollout) -> str:
    return "cpu" if isinstance(kernel.backend, Cpu) else "cuda"


def _method_work(
    robot: Robot, method: Method, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Work, list[Argument], str]:
    where, parameters = f"{method.name} of {robot.name!r}", method.of(robot)
    values = bound(where, parameters, arguments, keywords)
    arrays, settings, told = {}, {}, []
    for p, x in zip(parameters, values, strict=True):
        per_sample = p.is_array or getattr(x, "ndim", 0) > 1
        if p.name == "out" and x is not None:
            raise ArgumentError(f"{where}: blocks are new arrays; leave out away")
        if per_sample and x is not None:
            arrays[p.name] = x
            # stands for it where settings are looked at
            x = np.ones((1, *array_shape(robot.mechanism, p.name)))
        elif x is not p.default:
            settings[p.name] = x
        told.append(x)
    _, static, _ = method.told_apart(robot, where, parameters, told)
    own = robot.to("cpu")
    takes = [own._argument(n, x, static) for n, x in arrays.items()]
    call = _MethodCall(own, method.name, tuple(arrays), settings)
    results = call.tried([a.shape for a in takes])
    form = type(results) if isinstance(results, tuple) else None
    several: Any = results if form is not None else (results,)
    parts = [digest(*_parts(k)) for k in call.kernels.values()]
    gives = [x.shape[1:] for x in several]
    told_all = (repr(sorted(settings.items())), str(robot.dtype), *parts)
    work = Work(where, takes, gives, robot.dtype, form, call, parts=told_all)
    return work, takes, robot.device
