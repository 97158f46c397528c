"""What is put together of many kernels on a card, recorded once and replayed: graphs of PyTorch's.

Each kernel of a scan takes a few microseconds, and to start it from Python takes longer than that;
a graph of CUDA's starts them all at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__all__ = ["Replay", "are_tensors_on_card"]


def are_tensors_on_card(arrays: Mapping[str, Any], shapes: Mapping[str, Any], dtype: Any) -> bool:
    """Whether all are tensors of these shapes and numbers, on one card, with nothing to record."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not all(type(x) is torch.Tensor for x in arrays.values()):
        return False
    kind = getattr(torch, str(dtype))
    fits = (x.is_cuda and x.dtype == kind and not x.requires_grad for x in arrays.values())
    return (
        all(fits)
        and len({x.device for x in arrays.values()}) == 1
        and all(tuple(x.shape) == tuple(shapes[n]) for n, x in arrays.items())
    )


@final
class Replay:
    """A function of tensors on a card; what it does must not depend on what is in them."""

    def __init__(
        self, function: Callable[[Mapping[str, Any]], Sequence[Any]], arrays: Mapping[str, Any]
    ) -> None:
        torch: Any = sys.modules["torch"]
        self._given = {n: x.clone() for n, x in arrays.items()}
        device = next(iter(arrays.values())).device
        beside = torch.cuda.Stream(device)
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.device(device), torch.cuda.stream(beside):
            # twice, so that everything is compiled and knows its calls
            for _ in range(2):
                function(self._given)
        torch.cuda.current_stream(device).wait_stream(beside)
        torch.cuda.synchronize(device)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device), torch.cuda.graph(self._graph):
            self._results = list(function(self._given))

    def __call__(self, arrays: Mapping[str, Any]) -> list[Any]:
        """Its results, in tensors of their own."""
        for name, x in arrays.items():
            self._given[name].copy_(x)
        self._graph.replay()
        return [x.clone() for x in self._results]
