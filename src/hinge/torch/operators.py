"""Kernels as operators of PyTorch, each registered once, under a name of its own.

What an operator is made of, by the keys of PyTorch's dispatcher:

    CPU, CUDA          the kernel on tensors where they lie, with any leading shapes that broadcast
    Meta               shapes alone, for fake tensors: here is where wrong ones are refused
    Autograd           backward and forward derivatives: the kernels of `hinge.differentiable`
    FuncTorchBatched   a batch of batches is a batch

Derivatives are operators of the same kind, made when first asked for, so that they have derivatives
too.  `torch.func` transforms one level at a time, and so does the function below, which is what
`torch.autograd.Function` stands on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from itertools import count
from typing import Any, final

import numpy as np

from ..differentiable import Differentiable
from ..errors import ArgumentError

__all__ = [
    "LIBRARY",
    "Operator",
    "array",
    "as_given",
    "as_tuple",
    "differentiated",
    "dtype_of",
    "detached",
    "like",
    "place_of",
    "refuse",
    "require_tensors",
    "spread",
    "tensor",
    "title",
]

torch: Any = import_module("torch")
_single: Any = import_module("torch.autograd.function")._SingleLevelFunction
_forward_ad: Any = import_module("torch.autograd.forward_ad")
_one_level: Any = import_module("torch._functorch.utils").enable_single_level_autograd_function

# a fragment: other programs may have a library of that name
LIBRARY = torch.library.Library("hinge", "FRAGMENT")
_NUMBER = count()
_DTYPES = {np.dtype(np.float64): torch.float64, np.dtype(np.float32): torch.float32}


def dtype_of(dtype: np.dtype) -> Any:
    """PyTorch's name of a kind of number."""
    return _DTYPES[dtype]


def tensor(x: Any) -> Any:
    """An array of NumPy, or a number, as a tensor."""
    return torch.from_numpy(np.asarray(x))


def array(x: Any) -> np.ndarray:
    """A tensor as NumPy sees it, in the same memory."""
    return x.detach().numpy() if x.requires_grad else x.numpy()


def detached(x: Any) -> Any:
    """A tensor without what autograd knows of it."""
    return x.detach() if x.requires_grad else x


def place_of(backend: Any) -> Any:
    """Where a backend wants tensors to be."""
    number = getattr(backend, "device", None)
    return torch.device("cpu") if number is None else torch.device("cuda", number)


def refuse(
    where: str, names: Sequence[str], tensors: Sequence[Any], dtype: Any, place: Any
) -> None:
    """Say what is wrong with the kind of a tensor, if something is."""
    for name, x in zip(names, tensors, strict=True):
        if x.dtype is not dtype:
            raise ArgumentError(
                f"{where}: {name} has dtype {x.dtype}; expected {dtype}: convert it, or make the "
                f"robot with hinge.Robot(mechanism, dtype=…)"
            )
        if x.device not in (place, torch.device("meta")):
            raise ArgumentError(
                f"{where}: {name} is on {x.device}, the robot on {place}: move it there with "
                f".to({str(place)!r}), or the robot with robot.to({str(x.device)!r})"
            )


def title(name: str) -> str:
    """A name for an operator: readable, and of its own in this process."""
    words = re.sub(r"\W+", "_", name).strip("_")
    return f"{words}_{next(_NUMBER)}"


def require_tensors(where: str, names: Sequence[str], values: Sequence[Any]) -> None:
    """Refuse what is no tensor."""
    for name, x in zip(names, values, strict=True):
        if not isinstance(x, torch.Tensor):
            raise ArgumentError(
                f"{where}: {name} is a {type(x).__name__}; expected a tensor: torch.as_tensor(…)"
            )


def as_tuple(result: Any) -> tuple[Any, ...]:
    """The results of an operator, whether one or several."""
    return result if isinstance(result, tuple) else (result,)


def as_given(results: Sequence[Any]) -> Any:
    """Results as operators give them: one by itself."""
    return results[0] if len(results) == 1 else tuple(results)


@final
class Operator:
    """A differentiable kernel as an operator: `op` takes tensors, and gives one or a tuple."""

    def __init__(self, function: Differentiable) -> None:
        self.function, self.dtype = function, dtype_of(function.dtype)
        self.place = place_of(function.kernel.backend)
        on_host = self.place.type == "cpu"
        # kernels of a card take tensors, and give them
        self._taken, self._made = (array, tensor) if on_host else (detached, detached)
        self._derivatives: dict[Any, Operator] = {}
        self.name, self._kernel = title(function.name), function.kernel.call
        self._several = function.several
        taken = ", ".join(f"Tensor x{i}" for i in range(len(function.inputs)))
        given = ", ".join(["Tensor"] * len(function.outputs))
        LIBRARY.define(f"{self.name}({taken}) -> ({given})")
        for key in ("CPU", "CUDA"):
            LIBRARY.impl(self.name, self._run, key)
        qualified = f"hinge::{self.name}"
        torch.library.register_fake(qualified, self._shapes, lib=LIBRARY)
        torch.library.register_vmap(qualified, self._batched, lib=LIBRARY)
        self.op = getattr(torch.ops.hinge, self.name).default
        LIBRARY.impl(self.name, differentiated(self.op, self), "Autograd", with_keyset=True)

    def _run(self, *tensors: Any) -> Any:
        """The kernel, on tensors of the right kind."""
        for x in tensors:
            if x.dtype is not self.dtype or x.device != self.place:
                refuse(self.function.name, self.function.names, tensors, self.dtype, self.place)
        results = self._kernel(*[self._taken(x.contiguous()) for x in tensors])
        if self._several:
            return as_given([self._made(x) for x in results])
        return self._made(results)

    def _shapes(self, *tensors: Any) -> Any:
        """New tensors of the shapes of the results."""
        refuse(self.function.name, self.function.names, tensors, self.dtype, self.place)
        shapes = [x.shape for x in tensors]
        lead = self.function.lead(self.function.name, shapes, torch.broadcast_shapes)
        made = [tensors[0].new_empty((*lead, *shape)) for shape in self.function.outputs]
        return as_given(made)

    def _batched(self, info: Any, in_dims: tuple[Any, ...], *tensors: Any) -> Any:
        """The batch of `vmap` as one more leading dimension."""
        pairs = zip(tensors, in_dims, self.function.inputs, strict=True)
        result = self.op(*spread([(x, dim, len(shape), False) for x, dim, shape in pairs]))
        return result, (0,) * len(result) if isinstance(result, tuple) else 0

    # derivatives

    def pull(
        self, x: Sequence[Any], y: Sequence[Any], bars: Sequence[Any], wrt: Sequence[int]
    ) -> Any:
        """x̄ of the arguments in wrt, of the shapes of these."""
        known = y if self.function.uses_results else ()
        found = as_tuple(self._derivative("vjp", tuple(wrt)).op(*x, *known, *bars))
        return [like(bar, x[i]) for bar, i in zip(found, wrt, strict=True)]

    def push(self, x: Sequence[Any], y: Sequence[Any], dots: dict[int, Any]) -> Any:
        """ẏ along the changes of some arguments."""
        known = y if self.function.uses_results else ()
        return as_tuple(self._derivative("jvp", tuple(dots)).op(*x, *known, *dots.values()))

    def _derivative(self, kind: str, wrt: tuple[int, ...]) -> Operator:
        if (kind, wrt) not in self._derivatives:
            made: Differentiable = getattr(self.function, kind)(wrt)
            self._derivatives[kind, wrt] = Operator(made)
        return self._derivatives[kind, wrt]


def like(bar: Any, x: Any) -> Any:
    """A gradient with respect to what was broadcast."""
    return bar if bar.shape == x.shape else bar.sum_to_size(x.shape)


def spread(given: Sequence[tuple[Any, Any, int, bool]]) -> list[Any]:
    """Tensors with the dimension of `vmap` first, and leading shapes of one length after it.

    given: tensor, where that dimension is (None: nowhere), number of dimensions of a sample, and
    whether one of time is before all others, and stays there.
    """
    ranks = [x.dim() - (dim is not None) - sample - timed for x, dim, sample, timed in given]
    most, out = max(ranks), []
    for (x, dim, _, timed), rank in zip(given, ranks, strict=True):
        if dim is not None:
            x = x.movedim(dim, int(timed))
            before, after = x.shape[: 1 + timed], x.shape[1 + timed :]
            x = x.reshape(*before, *[1] * (most - rank), *after)
        out.append(x)
    return out


def _below_autograd(keyset: Any, op: Any, arguments: tuple[Any, ...]) -> Any:
    with torch._C._AutoDispatchBelowAutograd():
        return op.redispatch(keyset & torch._C._after_autograd_keyset, *arguments)


class _Applied(_single):
    """An operator with its derivatives, at one level: of `rules`, `pull` and `push`."""

    @staticmethod
    def forward(ctx: Any, keyset: Any, op: Any, rules: Any, *arguments: Any) -> Any:
        """The operator; what is below this level differentiates too."""
        with torch.enable_grad(), _forward_ad._set_fwd_grad_enabled(True):
            result = _below_autograd(keyset, op, arguments)
        ctx.rules, ctx.count = rules, sum(isinstance(a, torch.Tensor) for a in arguments)
        ctx.rest = arguments[ctx.count :]
        kept = *arguments[: ctx.count], *as_tuple(result)
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        return result

    @staticmethod
    def backward(ctx: Any, *bars: Any) -> Any:
        """Gradients of the arguments that have one."""
        x, y = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        wrt = [i for i in range(len(x)) if ctx.needs_input_grad[_FIRST + i]]
        found = dict(zip(wrt, ctx.rules.pull(x, y, bars, wrt, *ctx.rest), strict=True))
        return *[None] * _FIRST, *(found.get(i) for i in range(len(x))), *(None for _ in ctx.rest)

    @staticmethod
    def jvp(ctx: Any, *dots: Any) -> Any:
        """Changes of the results."""
        x, y = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        pairs = enumerate(dots[_FIRST : _FIRST + len(x)])
        changes = ctx.rules.push(x, y, {i: d for i, d in pairs if d is not None}, *ctx.rest)
        return as_given(changes)


# the arguments of an operator come after so many others
_FIRST = 3


def differentiated(op: Any, rules: Any) -> Any:
    """What an operator does under autograd; rules: has `pull` and `push`, of tuples of tensors."""

    def call(keyset: Any, *arguments: Any) -> Any:
        tracked = torch.is_grad_enabled() and torch._C._any_requires_grad(*arguments)
        if not tracked and _forward_ad._current_level < 0:
            return _below_autograd(keyset, op, arguments)
        if not torch._C._are_functorch_transforms_active():
            return _Applied.apply(keyset, op, rules, *arguments)
        with _one_level():
            return _Applied.apply(keyset, op, rules, *arguments)

    return call
