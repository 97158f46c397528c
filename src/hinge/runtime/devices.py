"""Devices by name: "cpu", "cuda", "cuda:1"."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .backend import Backend
from .cpu import Cpu

__all__ = ["backend_of", "check_device"]


def check_device(where: str, device: Any) -> str:
    """The name of a device: "cpu", or a card with its number."""
    kind, colon, number = str(device).partition(":")
    if kind == "cuda" and (not colon or number.isdecimal()):
        return f"cuda:{int(number or 0)}"
    if kind != "cpu" or colon:
        raise ArgumentError(
            f"{where}: device is {device!r}; expected 'cpu', 'cuda' or 'cuda:1' and so on"
        )
    return "cpu"


def backend_of(device: str, threads: int | None = None) -> Backend:
    """What runs kernels on a device; says at once if it is not there."""
    if device == "cpu":
        return Cpu(threads)
    from .cuda import Cuda

    return Cuda(int(device.partition(":")[2]))
