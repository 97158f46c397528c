"""docs/corpus.md: what became of the files of every package, and why some are refused."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import hinge
from corpus.refusals import Refusals
from corpus.verdicts import AGREES, PEER_REFUSES, REFUSED, Verdict

HEAD = """# The files people have

Every URDF and MJCF file in {packages} packages from PyPI, each read by hinge and by the program
whose format it is ({versions}): Pinocchio reads URDF, fixed and floating; MuJoCo reads MJCF. The
two are compared in random states: poses of all links, mass matrix, bias and gravity forces, inverse
and forward dynamics, springs, damping and friction of joints, energies. They **agree** where
nothing differs by more than 1e-9 of the largest entry, in units that give every degree of freedom
an inertia of one. In MuJoCo contacts, limits and motors are switched off, and what hinge's warnings
name as left out; nothing else, so that what is lost in silence shows.

Exceptions: accelerations may differ by 1e-15 times the condition of the mass matrix, and are not
compared beyond 1e10; the mass matrix is compared up to 300 degrees of freedom; where MuJoCo rounds
an inertial frame to the body's, by a thousand times what it rounded. Where both programs miss the
mass of a link (given as a `<density>`, say) they agree; hinge warns of it.

A file that hinge refuses is on a list, [refused.toml](../tests/corpus/refused.toml), with a reason.
The page is made by

```sh
python3 -m venv build/corpus
build/corpus/bin/pip install --no-deps -r tests/corpus/packages.txt
python -m tests.corpus --site build/corpus/lib/python3.11/site-packages --page docs/corpus.md
```

Of these packages drake and flygym need Python 3.12; below it, unpack their wheels there.
`python -m tests.corpus --folder robots` looks at your own files.

- *peer reads*: what is left are parts of other files, and files that miss theirs;
- *move*: those that agree and have at least one degree of freedom; the others are scenery;
- *else*: what differs, crashes a reader or is refused for a reason that is not on the list.
"""
TABLE = """
| package | files | peer reads | agree | of them move | refused, listed | else | % |
|---|--:|--:|--:|--:|--:|--:|--:|
"""


def write(path: Path, verdicts: Sequence[Verdict], listed: Refusals) -> None:
    """Write the page."""
    packages = sorted({(v.file.package, v.file.version) for v in verdicts})
    text = HEAD.format(packages=len(packages), versions=_versions())
    text += TABLE
    for package, version in packages:
        own = [v for v in verdicts if v.file.package == package]
        text += _row(f"{package} {version}", own, listed)
    for kind in ("urdf", "mjcf"):
        text += _row(f"**{kind.upper()}**", [v for v in verdicts if v.file.kind == kind], listed)
    # a thousand of pybullet's are small objects that differ by their numbers
    text += _row("**all**", verdicts, listed)
    others = [v for v in verdicts if v.file.package != "pybullet"]
    text += _row("**all but pybullet**", others, listed)
    text += "\n## Refused\n\n"
    text += "".join(_refusal(entry.reason, verdicts, listed) for entry in listed.entries)
    path.write_text(text)


def _row(name: str, verdicts: Sequence[Verdict], listed: Refusals) -> str:
    read = _count(verdicts, lambda v: v.outcome != PEER_REFUSES)
    agree = _count(verdicts, lambda v: v.outcome == AGREES)
    moves = _count(verdicts, lambda v: v.nv > 0)
    refused = _count(verdicts, lambda v: v.outcome == REFUSED and listed.reason(v) is not None)
    percent = f"{100 * agree / read:.1f}" if read else ""
    numbers = len(verdicts), read, agree, moves, refused, read - agree - refused, percent
    return f"| {name} | {' | '.join(str(n) for n in numbers)} |\n"


def _count(verdicts: Iterable[Verdict], chosen: Callable[[Verdict], bool]) -> int:
    return sum(chosen(v) for v in verdicts)


def _refusal(reason: str, verdicts: Sequence[Verdict], listed: Refusals) -> str:
    files = [v.file for v in verdicts if listed.reason(v) == reason]
    names = ", ".join(f"{file.package} `{file.path.name}`" for file in files)
    return f"- {reason} ({len(files)}: {names})\n"


def _versions() -> str:
    peers = [f"{name} {importlib.metadata.version(name)}" for name in ("pin", "mujoco")]
    return ", ".join([f"hinge {hinge.__version__}", *peers])
