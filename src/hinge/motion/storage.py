"""Motions in files: arrays in .npz, or a table of one motion in .csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from ..errors import ArgumentError
from ..robot import Robot, check_robot
from ..viewer.output import check_ending
from ..write.whole import written_whole
from .curves import labels

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["DATA", "read_motion", "write_motion"]

DATA = (".npz", ".csv")
_COLUMNS = ("q", "qd", "tau")
_MORE = ("forces", "residual", "taken", "rejected")


def write_motion(motion: Trajectory, path: str | Path) -> None:
    """Write a motion by the ending of the path."""
    where = f"save of a motion of {motion.robot.name!r}"
    if check_ending(where, path, DATA) == ".npz":
        arrays = {n: getattr(motion, n) for n in ("t", *_COLUMNS, *_MORE)}
        arrays = {n: x for n, x in arrays.items() if x is not None}
        arrays |= {"kinetic": motion.kinetic_energy, "potential": motion.potential_energy}
        with written_whole(where, path) as beside:
            np.savez(beside, **arrays)
        return
    if motion.q.ndim != 2:
        raise ArgumentError(
            f"{where}: a table has one motion, and this is a batch of shape "
            f"{motion.q.shape[1:-1]}; take .npz, or one of motion.samples(i)"
        )
    rows = np.concatenate([motion.t[:, None], *(getattr(motion, n) for n in _COLUMNS)], axis=1)
    with (
        written_whole(where, path) as beside,
        open(beside, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(_header(motion.robot))
        writer.writerows(row.tolist() for row in rows)


def _header(robot: Robot) -> list[str]:
    """What the columns of a table are called."""
    slices = {n: robot.q_slice if n == "q" else robot.v_slice for n in _COLUMNS}
    return ["t", *(f"{n} {label}" for n in _COLUMNS for label in labels(robot, slices[n]))]


def read_motion(robot: Robot, path: str | Path) -> tuple[np.ndarray, dict[str, Any]]:
    """The times and the arrays of a motion of a robot in a file."""
    where = f"load of a motion of {check_robot('Trajectory.load', robot).name!r}"
    ending = Path(path).suffix.lower()
    if ending not in DATA:
        raise ArgumentError(f"{where}: cannot read {str(path)!r}; expected {', '.join(DATA)}")
    try:
        found = _arrays(path) if ending == ".npz" else _table(robot, path)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, csv.Error) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise ArgumentError(f"{where}: cannot read {str(path)!r}: {why}") from None
    _check(f"{where}: {str(path)!r}", robot, found)
    t = np.asarray(found.pop("t"), float)
    counts = ("taken", "rejected")
    return t, {n: x if n in counts else x.astype(robot.dtype) for n, x in found.items()}


def _arrays(path: str | Path) -> dict[str, np.ndarray]:
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        wanted = ("t", *_COLUMNS)
        return {n: file[n] for n in (*wanted, *(n for n in _MORE if n in file))}


def _table(robot: Robot, path: str | Path) -> dict[str, np.ndarray]:
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    wanted = _header(robot)
    if missing := [name for name in wanted if name not in header]:
        raise ValueError(f"it has no column {missing[0]!r}")
    numbers = np.array([[float(x) for x in row] for row in rows]).reshape(-1, len(header))
    columns = numbers[:, [header.index(name) for name in wanted]]
    ends = np.cumsum([1, robot.nq, robot.nv])
    t, *rest = np.split(columns, ends, axis=1)
    return {"t": t[:, 0], **dict(zip(_COLUMNS, rest, strict=True))}


def _check(where: str, robot: Robot, found: dict[str, np.ndarray]) -> None:
    """Whether arrays are those of a motion of the robot."""
    sizes: Iterable[tuple[str, int]] = (("q", robot.nq), ("qd", robot.nv), ("tau", robot.nv))
    t, lead = found["t"], found["q"].shape[1:-1]
    if t.ndim != 1 or not len(t) or t.dtype.kind != "f" or not (np.diff(t) > 0).all():
        raise ArgumentError(f"{where}: t has shape {t.shape}; expected times that grow")
    for name, size in sizes:
        if found[name].shape != (len(t), *lead, size) or found[name].dtype.kind != "f":
            raise ArgumentError(
                f"{where}: {name} has shape {found[name].shape}; expected numbers "
                f"({len(t)}, …, {size}) for a motion of {robot.name!r}"
            )
