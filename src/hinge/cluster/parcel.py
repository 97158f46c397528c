"""What travels to workers, opened in the task that uses it.

A worker of Dask that cannot unpickle what it is sent ends; another is started, is sent the same,
and so on for ever.  Opened in a task, it is that task that fails, and says why.
"""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any, final

from ..errors import HingeError

__all__ = ["Parcel"]


@final
class Parcel:
    """A value on its way; where: what it is for."""

    def __init__(self, where: str, value: Any) -> None:
        self.where = where
        self._opened: tuple[Any] | None = (value,)
        self._closed = b""

    def __getstate__(self) -> tuple[str, bytes]:
        if self._opened is not None:
            (value,) = self._opened
            return self.where, import_module("cloudpickle").dumps(value, protocol=5)
        return self.where, self._closed

    def __setstate__(self, state: tuple[str, bytes]) -> None:
        (self.where, self._closed), self._opened = state, None

    def open(self) -> Any:
        """The value, unpickled once a worker."""
        if self._opened is None:
            try:
                self._opened = (pickle.loads(self._closed),)
            except Exception as error:
                raise HingeError(
                    f"{self.where}: a worker could not unpickle it: {type(error).__name__}: "
                    f"{error}; workers need the packages of this process, and the files of modules "
                    f"whose functions it uses: client.upload_file('module.py')"
                ) from error
        return self._opened[0]
