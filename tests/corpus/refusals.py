"""refused.toml: files that a peer reads and hinge refuses, with reasons for people to read."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from corpus.verdicts import AGREES, PEER_REFUSES, REFUSED, Verdict

LIST = Path(__file__).with_name("refused.toml")


@dataclass(frozen=True)
class Refusal:
    """Why the files "package: name" of some patterns are refused, and words of the message."""

    reason: str
    says: str
    files: tuple[str, ...]

    def names(self, verdict: Verdict) -> bool:
        """Whether the file is among those of the patterns."""
        return any(fnmatchcase(str(verdict.file), pattern) for pattern in self.files)

    def explains(self, verdict: Verdict) -> bool:
        """Whether this is what became of the file."""
        refused = verdict.outcome == REFUSED and self.says in verdict.detail
        return refused and self.names(verdict)


@dataclass(frozen=True)
class Refusals:
    """The list."""

    entries: tuple[Refusal, ...]

    @classmethod
    def read(cls, path: Path = LIST) -> Refusals:
        """From the file."""
        listed = tomllib.loads(path.read_text())["refusal"]
        return cls(tuple(Refusal(e["reason"], e["says"], tuple(e["files"])) for e in listed))

    def reason(self, verdict: Verdict) -> str | None:
        """Why a file is refused, if the list says so."""
        return next((e.reason for e in self.entries if e.explains(verdict)), None)

    def surprises(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Verdicts that nobody expects: differences, crashes, refusals that are not listed."""
        fine = (AGREES, PEER_REFUSES)
        return [v for v in verdicts if v.outcome not in fine and not self.reason(v)]

    def stale(self, verdicts: Sequence[Verdict]) -> list[str]:
        """Where the list does not say what happens to a file that is there."""
        return [
            f"{v.file} is listed as refused: {entry.says!r}; it is: {v.outcome} {v.detail}"
            for entry in self.entries
            for v in verdicts
            if entry.names(v) and not entry.explains(v)
        ]

    def idle(self, verdicts: Sequence[Verdict]) -> list[str]:
        """Patterns that match no file, of packages that are there."""
        packages = {v.file.package for v in verdicts}
        patterns = [pattern for entry in self.entries for pattern in entry.files]
        return [
            f"{pattern} is listed as refused; there is no such file"
            for pattern in patterns
            if pattern.split(":")[0] in packages
            and not any(fnmatchcase(str(v.file), pattern) for v in verdicts)
        ]
