"""What a file may ask for unless the user allows more."""

from __future__ import annotations

__all__ = ["MAX_MEMORY", "MAX_SECONDS"]

MAX_MEMORY = 4 << 30  # bytes, of what MuJoCo is given and makes of it
MAX_SECONDS = 60.0  # for MuJoCo's compiler in a process of its own
