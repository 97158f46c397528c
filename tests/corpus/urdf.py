"""A URDF file as hinge and as Pinocchio read it, fixed to the ground and floating."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

import hinge
from corpus.compare import DiffersError, PeerRefusesError, agree, of_accelerations, poses, units
from mechanisms import Generic, random_state
from oracle.pinocchio_bridge import PinocchioRobot, followers, pin


def compare_urdf(path: Path, seed: int = 0) -> int:
    """The degrees of freedom that were compared; raises if the two differ or one refuses."""
    fixed = _read(path, floating=False)
    _compare(fixed, seed)
    if "root_joint" in fixed.robot.joint_names:
        return fixed.robot.nv  # the other reader has two of that name
    floating = _read(path, floating=True)
    _compare(floating, seed)
    return floating.robot.nv


def _read(path: Path, floating: bool) -> PinocchioRobot:
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    try:
        model = pin.buildModelFromUrdf(str(path), *root)
    except (ValueError, RuntimeError) as e:
        raise PeerRefusesError(" ".join(str(e).split())) from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        robot = hinge.load(path, floating_base=floating)
    # names like `a:b`, whose prefix many files do not declare, as `b`
    text = re.sub(rb"([</\s])\w+:(?=\w)", rb"\1", path.read_bytes()).strip()
    oracle = PinocchioRobot(Generic(robot), model, followers(text))
    if robot.body_names[:1] == ("world_link",):
        oracle.links["world_link"] = oracle.links.pop("world")  # a root that floats
    return oracle


def _compare(oracle: PinocchioRobot, seed: int) -> None:
    robot = oracle.robot
    if odd := set(robot.joint_names) ^ set(oracle.joints):
        raise DiffersError(f"joints that move here or there only: {sorted(odd)[:8]}")
    if odd := set(oracle.links) - set(robot.frame_names):
        raise DiffersError(f"links that are not here: {sorted(odd)[:8]}")
    q = random_state(robot, seed).q
    theirs = [oracle.frame_pose(q, name) for name in oracle.links]
    agree("poses", poses(robot.mechanism, q, oracle.links), theirs)
    joints = {body.joint_name: body.joint for body in robot.mechanism.bodies}
    for what in ("damping", "friction"):
        ours = [getattr(joints[name], what)[0] for name in oracle.joints]
        theirs = [getattr(oracle.model, what)[joint.idx_v] for joint in oracle.joints.values()]
        agree(what, ours, theirs)
    if robot.nv:
        _compare_dynamics(oracle, seed)


def _compare_dynamics(oracle: PinocchioRobot, seed: int) -> None:
    robot, s = oracle.robot, random_state(oracle.robot, seed)
    M = oracle.mass_matrix(s.q)
    u = units(M)
    agree("mass matrix", robot.mass_matrix(s.q), M, 1 / np.outer(u, u))
    least = np.abs(u * s.qd).max() * np.abs(s.qd).max()
    for name, *args in (
        ("inverse_dynamics", s.q, s.qd, s.qdd),
        ("bias_forces", s.q, s.qd),
        ("gravity_forces", s.q),
    ):
        ours, theirs = (getattr(who, name)(*args) for who in (robot, oracle))
        agree(name, ours, theirs, 1 / u, least=least)
    agree("kinetic energy", robot.kinetic_energy(s.q, s.qd), oracle.kinetic_energy(s.q, s.qd))
    places = s.q, random_state(robot, seed + 1).q
    heights = [[who.potential_energy(q) for q in places] for who in (robot, oracle)]
    agree("potential energy", *np.diff(heights), least=np.abs(heights).max())
    if tolerance := of_accelerations(M, u):
        tau = u * s.qdd
        ours, theirs = (who.forward_dynamics(s.q, s.qd, tau) for who in (robot, oracle))
        agree("accelerations", ours, theirs, u, tolerance=tolerance)
