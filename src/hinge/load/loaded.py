"""What a file gives."""

from __future__ import annotations

from typing import NamedTuple

from ..model.actuator import Actuator
from ..model.mechanism import Mechanism
from .mujoco_equality import Loop

__all__ = ["Loaded"]


class Loaded(NamedTuple):
    """The mechanism of a file, what closes its loops, and what drives its joints."""

    mechanism: Mechanism
    loops: tuple[Loop, ...] = ()
    actuators: tuple[Actuator, ...] = ()
