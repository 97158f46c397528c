"""What a format cannot hold of a mechanism: gathered while it is written, told at the end."""

from __future__ import annotations

from ..errors import ModelError, warn_of_model

__all__ = ["Losses"]


class Losses:
    """What is lost in writing, of three kinds, each told with names."""

    def __init__(self, name: str, kind: str, lenient: bool) -> None:
        self._name, self.kind, self._lenient = name, kind, lenient
        self._refused: dict[str, list[str]] = {}
        self._lost: dict[str, list[str]] = {}
        self._left_out: dict[str, list[str]] = {}

    def refuse(self, what: str, name: str) -> None:
        """Without this there is no file."""
        self._refused.setdefault(what, []).append(name)

    def lose(self, what: str, name: str) -> None:
        """The dynamics needs this; it may be left out if the user says so."""
        self._lost.setdefault(what, []).append(name)

    def leave_out(self, what: str, name: str) -> None:
        """The dynamics does not need this."""
        self._left_out.setdefault(what, []).append(name)

    def tell(self) -> None:
        """Refuse, or warn."""
        needed = {**self._refused, **({} if self._lenient else self._lost)}
        if needed:
            only_lost = needed.keys() <= self._lost.keys()
            hint = "; lenient=True leaves it out" if only_lost else ""
            raise ModelError(
                f"{self._name!r} cannot be saved as {self.kind}: {_listed(needed)}{hint}"
            )
        missing = {**self._left_out, **self._lost}
        if missing:
            warn_of_model(f"{self._name!r} saved as {self.kind}: {_listed(missing)}")


def _listed(found: dict[str, list[str]]) -> str:
    return "; ".join(f"{what}: {_names(names)}" for what, names in found.items())


def _names(names: list[str]) -> str:
    once = list(dict.fromkeys(names))
    return ", ".join(once[:8]) + (f" and {len(once) - 8} more" if len(once) > 8 else "")
