"""A robot as a module of PyTorch, and kernels and rollouts as functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, final

from ..differentiable import DifferentiableRollout, of_kernel, of_robot
from ..errors import ArgumentError
from ..functions.reducing import ReducingRollout
from ..model.parameters import PARAMETERS
from ..robot import Robot, check_robot
from ..robot.method import Method, bound, methods_of
from ..runtime.door import Parameter
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from .numbers import Numbers
from .operators import Operator, require_tensors
from .rollouts import ReducingOperator, RolloutOperator

__all__ = ["Dynamics", "Function", "function"]

torch: Any = import_module("torch")


@final
class Function:
    """A kernel on tensors, with any leading shapes that broadcast."""

    def __init__(self, kernel: Kernel) -> None:
        made = Operator(of_kernel(kernel))
        self.name, self.names, self._op = kernel.name, kernel.names, made.op
        self._alone = kernel.artifact.several and len(kernel.artifact.outputs) == 1

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        if named or len(tensors) != len(self.names):
            parameters = tuple(Parameter(n, True, True, None) for n in self.names)
            tensors = tuple(bound(self.name, parameters, tensors, named))
        require_tensors(self.name, self.names, tensors)
        result = self._op(*tensors)
        return (result,) if self._alone else result

    def __repr__(self) -> str:
        return f"<hinge.torch.function {self.name}({', '.join(self.names)})>"


def function(kernel: Any) -> Any:
    """A kernel or a rollout as a function of tensors."""
    if isinstance(kernel, Rollout):
        return RolloutOperator(DifferentiableRollout(kernel))
    if isinstance(kernel, ReducingRollout):
        return ReducingOperator(kernel)
    if isinstance(kernel, Kernel):
        return Function(kernel)
    raise ArgumentError(
        f"hinge.torch.function: got a {type(kernel).__name__}; expected a kernel (robot.compile, "
        f"hinge.compile, robot.kernel) or a rollout; a robot goes to hinge.torch.robot"
    )


class Dynamics(torch.nn.Module):
    """The compiled methods of a robot, on tensors with any leading shape.

    Called itself it is forward dynamics.  What is not finite raises nothing here: such a sample
    gives NaN.  `numbers()` are those of the mechanism that are learnt, as parameters of the module;
    every method uses them.
    """

    def __init__(self, robot: Robot, learn: Sequence[str] = ()) -> None:
        super().__init__()
        self.robot = check_robot("hinge.torch.robot", robot)
        names = (learn,) if isinstance(learn, str) else tuple(learn)
        self.learnt = Numbers(robot, names) if names else None
        self._start()

    def _start(self) -> None:
        robot = self.robot
        # operators of calls that are plain, by method
        self._quick: dict[Method, Any] = {}

        def make(name: str, arrays: tuple[str, ...], settings: Any) -> str:
            return Operator(of_robot(robot, name, arrays, dict(settings))).name

        def operator(*asked: Any) -> str:
            return robot._kept.get(asked) or robot._keep(asked, lambda: make(*asked[1:]))

        # it gives a name, the same for the same names: `torch.compile` need not look into it
        self._operator = torch.compiler.assume_constant_result(operator)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """The robot goes where its parameters go: `dyn.to("cuda")`."""
        place = fn(torch.empty(0, device=self.robot.device)).device
        if place.type in ("cpu", "cuda") and str(place) != self.robot.device:
            self.robot = self.robot.to(str(place))
            self._start()
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict[str, Any]:
        return {n: x for n, x in self.__dict__.items() if n not in ("_operator", "_quick")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._start()

    def numbers(self) -> dict[str, Any]:
        """The numbers that are learnt, as `hinge.model.parameters` has them."""
        return {} if self.learnt is None else self.learnt()

    def learnt_robot(self) -> Robot:
        """A robot with the numbers as they are now."""
        return self.robot if self.learnt is None else self.learnt.folded_in(self.robot)

    def forward(self, q: Any, qd: Any, tau: Any, *more: Any, **others: Any) -> Any:
        """q̈ of forward dynamics."""
        return self.forward_dynamics(q, qd, tau, *more, **others)

    def extra_repr(self) -> str:
        """What it stands for."""
        return repr(self.robot)

    def _call(self, method: Method, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        robot, where = self.robot, f"{method.name} of {self.robot.name!r}"
        parameters = tuple(p for p in method.parameters if p.name != "out")
        parameters += tuple(Parameter(n, True, False, None) for n in PARAMETERS)
        values = bound(where, parameters, arguments, {**self.numbers(), **keywords})
        given, static, _ = method.told_apart(robot, where, parameters, values)
        require_tensors(where, tuple(given), tuple(given.values()))
        settings = robot._settings(method.name, static)
        name = self._operator("torch", method.name, tuple(given), settings)
        result = getattr(torch.ops.hinge, name).default(*given.values())
        if not isinstance(result, tuple) or method.form is tuple:
            return result
        return method.form(*result)


def _method(method: Method) -> Callable[..., Any]:
    """A method of the robot as one of the module."""
    required = sum(p.required and p.is_array for p in method.parameters)
    plain = required == sum(p.required for p in method.parameters)
    names = tuple(p.name for p in method.parameters[:required])

    def call(self: Dynamics, *arguments: Any, **keywords: Any) -> Any:
        if keywords or len(arguments) != required or not plain or self.learnt is not None:
            return self._call(method, arguments, keywords)
        op = None if torch.compiler.is_compiling() else self._quick.get(method)
        if op is None:
            require_tensors(f"{method.name} of {self.robot.name!r}", names, arguments)
            op = getattr(torch.ops.hinge, self._operator("torch", method.name, names, ())).default
            if not torch.compiler.is_compiling():
                self._quick[method] = op
        try:
            result = op(*arguments)
        except RuntimeError:
            require_tensors(f"{method.name} of {self.robot.name!r}", names, arguments)
            raise
        several = isinstance(result, tuple) and method.form is not tuple
        return method.form(*result) if several else result

    call.__name__, call.__doc__ = method.name, method.__doc__
    call.__wrapped__ = method.__wrapped__  # pyright: ignore
    return call


for _found, _names in methods_of(Robot).items():
    for _name in _names:
        setattr(Dynamics, _name, _method(_found))
