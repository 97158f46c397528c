"""Steps on rigid ground: gymnasium's ant on its four feet, against MuJoCo's own rollout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import hinge

from .measure import Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import Contestant
from .robots import Case

__all__ = ["STEPS", "ant", "grounds"]

STEPS, SAMPLES, FEW = 100, 1024, 64
ANKLES = (1.0, -1.0, -1.0, 1.0)
# standing on soft and on hard ground, heights of the trunk differ by what MuJoCo's margin is
HEIGHT = 0.03


def ant() -> tuple[Path, Case, hinge.Ground]:
    """The file, the robot, and the ground under the far ends of its shins."""
    where = find_spec("gymnasium")
    if where is None or where.origin is None:
        raise ModuleNotFoundError("gymnasium is not installed")
    path = Path(where.origin).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        mechanism = hinge.load(path).mechanism
    shins = [b for b in mechanism.bodies if b.joint_name.startswith("ankle")]
    feet = []
    for body in shins:
        (shape,) = body.collisions
        radius, length = shape.size
        ends = [shape.placement @ np.array([0.0, 0.0, s * length]) for s in (-0.5, 0.5)]
        feet.append((body.name, max(ends, key=np.linalg.norm), radius))
    return path, Case("ant", "Ant", mechanism), hinge.Ground(feet, friction=1.0, law="rigid")


def standing(robot: hinge.Robot, ground: hinge.Ground) -> np.ndarray:
    """Knees bent, feet on the ground."""
    q = robot.neutral()
    for i, angle in enumerate(ANKLES):
        q[robot.q_slice(f"ankle_{i + 1}")] = angle
    q[2] -= ground.positions(robot, q)[:, 2].min()
    return q


def grounds(settings: Settings) -> Iterator[Row]:
    """Seconds per step and sample, on one thread, Euler's steps of both."""
    if not (installed("mujoco") and find_spec("gymnasium")):
        return
    path, case, ground = ant()
    robot = hinge.Robot(case.mechanism, threads=1)
    stand, rng = standing(robot, ground), np.random.default_rng(0)
    speeds = np.concatenate([np.zeros((SAMPLES, 6)), 0.1 * rng.normal(size=(SAMPLES, 8))], axis=1)
    taus = np.zeros((STEPS, SAMPLES, robot.nv))
    taus[..., 6:] = 0.5 * rng.normal(size=(STEPS, SAMPLES, 8))
    ours = _hinge(robot, ground, stand, speeds, taus)
    other = _mujoco(path, case, stand, speeds[:FEW], taus[:, :FEW])
    times = interleave([ours, other], settings)
    heights = ours.result()[:FEW] - other.result()
    if not np.abs(heights).max() < HEIGHT:
        raise WrongResultError(f"the ants stand {np.abs(heights).max():.3f} m apart")
    each = {"hinge": times["hinge"] / SAMPLES / STEPS, "mujoco": times["mujoco"] / FEW / STEPS}
    apart = {"mujoco": float(np.abs(heights).max())}
    what = f"{STEPS} steps on four feet"
    yield Row.of(case, what, "ground", SAMPLES, [ours, other], each, apart)


def _hinge(
    robot: hinge.Robot, ground: hinge.Ground, q: np.ndarray, qd: np.ndarray, taus: np.ndarray
) -> Contestant:
    scope: dict[str, Any] = {"simulate": hinge.simulate, "robot": robot, "ground": ground}
    scope |= {"q": q, "qd": qd, "taus": taus, "out": [], "every": 10}
    call = "simulate(robot, q, qd, taus=taus, dt=0.01, every=every, ground=ground)"
    return Contestant("hinge", f"out[:] = [{call}]", scope, lambda: scope["out"][0].q[-1, :, 2])


def _mujoco(path: Path, case: Case, q: np.ndarray, qd: np.ndarray, taus: np.ndarray) -> Contestant:
    mujoco: Any = import_module("mujoco")
    rollout: Any = import_module("mujoco.rollout")
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    # hips and ankles in the order of the file, as joint forces
    own = [model.jnt_dofadr[model.joint(n).id] for n in case.mechanism.joint_names[1:]]
    start = np.zeros((len(qd), 1 + model.nq + model.nv))
    start[:, 1 : 1 + model.nq] = q
    start[:, 1 + model.nq :][:, own] = qd[:, 6:]
    forces = np.zeros((len(qd), len(taus), model.nv))
    forces[:, :, own] = taus.transpose(1, 0, 2)[..., 6:]
    scope: dict[str, Any] = {"rollout": rollout.rollout, "model": model, "start": start}
    scope |= {
        "data": mujoco.MjData(model),
        "forces": forces,
        "spec": int(mujoco.mjtState.mjSTATE_QFRC_APPLIED),
    }
    scope["state"] = np.zeros((len(qd), len(taus), start.shape[1]))
    text = "rollout(model, data, start, forces, control_spec=spec, state=state)"
    return Contestant("mujoco", text, scope, lambda: scope["state"][:, -1, 3])
