"""MJCF against MuJoCo: the same poses, mass matrix, forces, accelerations, energies and momenta."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from hinge import algorithms as alg  # noqa: E402
from hinge.errors import ModelWarning  # noqa: E402
from hinge.joints import Free  # noqa: E402
from hinge.load.mjcf import read_mjcf  # noqa: E402
from hinge.load.mujoco_state import MujocoState  # noqa: E402

TOLERANCE = 1e-10

INLINE = {
    "three_joints_on_a_body": """
      <body name="b" pos=".1 .2 .3" euler="10 20 30">
        <joint name="x" type="slide" axis="1 2 0"/>
        <joint name="y" axis="0 1 1" pos=".1 0 .2"/>
        <joint name="z" axis="1 0 0" pos="0 .3 0"/>
        <geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
        <body name="c" pos="0 0 .5"><joint name="u" type="slide"/>
          <joint name="w" type="ball" pos=".1 0 0"/><geom size=".1" pos=".2 .1 0"/></body>
      </body>""",
    "position_and_reference": """
      <body name="b" pos="0 1 0" quat="1 2 3 4">
        <joint name="a" axis="1 1 0" pos=".3 .2 .1" ref="40"/>
        <geom type="capsule" fromto="0 0 0 .1 .2 .5" size=".05"/>
        <body name="c" pos=".1 .2 .5">
          <joint name="s" type="slide" axis="1 0 1" pos=".1 .1 .1" ref=".7"/>
          <joint name="r" axis="0 1 1" pos="-.1 0 .2" ref="-200"/>
          <geom type="cylinder" size=".05 .2" euler="30 0 40"/>
        </body>
      </body>""",
    "ball": """
      <body name="b" pos="0 0 1" euler="0 90 0"><joint name="ball" type="ball" pos="0 0 .3"/>
        <geom type="ellipsoid" size=".1 .2 .3" pos=".1 .1 0"/>
        <body name="c" pos=".2 0 0"><joint name="again" type="ball" armature=".3"/>
          <geom type="box" size=".1 .1 .2"/></body>
      </body>""",
    "free": """
      <body name="b" pos="1 2 3" euler="10 0 0"><freejoint name="float"/>
        <geom type="box" size=".1 .2 .3" pos=".3 .1 0"/></body>""",
    "two_free_and_an_arm": """
      <body name="stone" pos="0 0 1"><freejoint/><geom size=".1" pos=".1 0 0"/></body>
      <body name="arm"><joint name="shoulder" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/>
        <body name="hand" pos="0 0 .6"><joint name="elbow" axis="1 0 0"/><geom size=".1"/></body>
      </body>
      <body name="bird" pos="1 0 1"><joint name="fly" type="free"/><geom type="box" size=".1 .2 .3"/>
        <body name="wing" pos="0 .2 0"><joint name="flap"/><geom size=".1" pos="0 .3 .1"/></body>
      </body>""",
    "armature_damping_friction": """
      <body name="b"><joint name="a" axis="0 1 0" armature=".5" damping="2" frictionloss=".3"/>
        <geom size=".1" pos="0 0 .3"/>
        <body name="c" pos="0 0 .6"><joint name="l" type="slide" armature="1.5" damping=".1"/>
          <geom size=".1"/></body>
      </body>""",
    "welded_and_mocap": """
      <geom name="floor" type="plane" size="1 2 .1"/>
      <body name="goal" mocap="true" pos="1 1 1"><geom size=".1"/></body>
      <body name="stand" pos="0 0 .5" euler="0 0 30"><geom size=".1"/>
        <body name="b" pos=".1 0 0"><joint name="a" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/>
          <body name="tool" pos=".3 0 .1" euler="20 0 0"><geom type="box" size=".1 .1 .3"/>
            <site name="tip" pos="0 0 .4" euler="0 30 0"/></body>
          <body name="finger" pos=".3 0 0"><joint name="f" type="slide"/><geom size=".05"/></body>
        </body>
      </body>""",
    "without_names": """
      <body><joint/><joint axis="1 0 0"/><geom size=".1" pos=".2 0 0"/><site/>
        <body name="body2"><joint name="joint3" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>
        <body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/><site name="body2"/></body>
      </body>""",
    "nothing_moves": '<body name="b"><geom size=".1"/></body>',
}

WHOLE = {
    "nested_defaults": """<mujoco>
      <default><joint armature=".1" damping="1"/><geom density="500"/>
        <default class="arm"><joint axis="0 1 0"/><geom type="capsule" size=".05 .2"/>
          <default class="wrist"><joint type="ball" armature=".02"/></default></default></default>
      <worldbody><body name="b" childclass="arm"><joint name="a"/><geom pos="0 0 .2"/>
        <body name="c" pos="0 0 .4"><joint name="w" class="wrist"/><geom pos="0 0 .3" density="2000"/>
        </body></body></worldbody></mujoco>""",
    "radian": """<mujoco><compiler angle="radian" eulerseq="ZYX"/><worldbody>
      <body name="b" euler=".3 .2 .1"><joint name="a" axis="0 1 0" range="-1 2" ref=".4"/>
        <geom size=".1" pos="0 0 .3"/></body></worldbody></mujoco>""",
    "degree": """<mujoco><compiler angle="degree"/><worldbody>
      <body name="b" euler="30 20 10"><joint name="a" axis="0 1 0" range="-90 180" ref="45"/>
        <geom size=".1" pos="0 0 .3"/></body></worldbody></mujoco>""",
    "gravity_off": """<mujoco><option><flag gravity="disable"/></option><worldbody>
      <body name="b"><joint name="a" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body>
      </worldbody></mujoco>""",
    "gravity_aslant": """<mujoco><option gravity="1 2 -3"/><worldbody>
      <body name="b"><freejoint/><geom size=".1" pos="0 0 .3"/></body></worldbody></mujoco>""",
    "inertial": """<mujoco><worldbody><body name="b"><joint name="a" axis="0 1 0"/>
      <inertial mass="2" pos=".1 .2 .3" fullinertia=".3 .4 .5 .01 .02 .03"/></body>
      <body name="c" pos="0 0 1"><freejoint/>
      <inertial mass="2" pos=".1 .2 .3" quat="1 2 3 4" diaginertia=".3 .4 .5"/></body>
      </worldbody></mujoco>""",
    "replicated": """<mujoco><worldbody><replicate count="4" offset=".5 0 0" euler="0 0 20">
      <body name="b" pos="0 0 1"><joint name="a" axis="0 1 0" pos="0 0 .1"/>
      <geom size=".1" pos="0 0 .3"/></body></replicate></worldbody></mujoco>""",
}
MODELS = {name: f"<mujoco><worldbody>{body}</worldbody></mujoco>" for name, body in INLINE.items()}
MODELS |= WHOLE


def gym_models() -> dict[str, Path]:
    gymnasium = pytest.importorskip("gymnasium")
    folder = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
    return {path.stem: path for path in sorted(folder.glob("*.xml"))}


class Case:
    """A MuJoCo model, the mechanism read from the same text, and a random state of both."""

    def __init__(self, model, mech, seed: int) -> None:
        rng = np.random.default_rng(seed)
        # nothing but inertia and gravity
        every = (1 << int(mujoco.mjtDisableBit.mjNDISABLE)) - 1
        model.opt.disableflags |= every & ~int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        model.opt.density = model.opt.viscosity = 0
        self.model, self.mech, self.state = model, mech, MujocoState(model, mech)
        self.data = mujoco.MjData(model)
        self.qpos = self.state.qpos(alg.random_configuration(mech, rng))
        self.qvel, self.qacc, self.qfrc = rng.normal(size=(3, model.nv))
        self.data.qpos, self.data.qvel, self.data.qfrc_applied = self.qpos, self.qvel, self.qfrc
        mujoco.mj_forward(model, self.data)
        self.q, self.v = self.state.q(self.qpos), self.state.v(self.qpos, self.qvel)

    def matrix(self) -> np.ndarray:
        columns = []
        for unit in np.eye(self.model.nv):
            column = np.zeros(self.model.nv)
            mujoco.mj_mulM(self.model, self.data, column, unit)
            columns.append(column)
        return np.array(columns).reshape(self.model.nv, self.model.nv)

    def moving(self) -> np.ndarray:
        """Which bodies move: MuJoCo counts the mass of the others, a mechanism does not."""
        return np.array([self._joints_above(b) > 0 for b in range(self.model.nbody)])

    def _joints_above(self, b: int) -> int:
        count = 0
        while b:
            count, b = count + self.model.body_jntnum[b], self.model.body_parentid[b]
        return count


def close(ours, theirs) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * scale)


def body_poses(case: Case) -> None:
    named = {case.model.body(b).name: b for b in range(case.model.nbody)}
    for name in set(named) - {""}:
        pose = alg.frame_pose(case.mech, case.q, name)
        close(pose[:3, 3], case.data.xpos[named[name]])
        close(pose[:3, :3], case.data.xmat[named[name]].reshape(3, 3))


def site_poses_and_jacobians(case: Case) -> None:
    turns = case.state.v(
        np.broadcast_to(case.qpos, (case.model.nv, case.model.nq)), np.eye(case.model.nv)
    )
    for s in range(case.model.nsite):
        name, body = case.model.site(s).name, case.model.site_bodyid[s]
        if not name or name in case.mech.body_names:
            continue
        pose = alg.frame_pose(case.mech, case.q, name)
        close(pose[:3, 3], case.data.site_xpos[s])
        close(pose[:3, :3], case.data.site_xmat[s].reshape(3, 3))
        linear, angular = np.zeros((2, 3, case.model.nv))
        mujoco.mj_jac(case.model, case.data, linear, angular, case.data.site_xpos[s], body)
        close(alg.jacobian(case.mech, case.q, name) @ turns.T, np.vstack([angular, linear]))


def body_jacobians(case: Case) -> None:
    turns = case.state.v(
        np.broadcast_to(case.qpos, (case.model.nv, case.model.nq)), np.eye(case.model.nv)
    )
    for b in range(1, case.model.nbody):
        if name := case.model.body(b).name:
            linear, angular = np.zeros((2, 3, case.model.nv))
            mujoco.mj_jac(case.model, case.data, linear, angular, case.data.xpos[b], b)
            close(alg.jacobian(case.mech, case.q, name) @ turns.T, np.vstack([angular, linear]))


def mass_matrix(case: Case) -> None:
    # rows of T: v for every unit qvel
    T = case.state.v(
        np.broadcast_to(case.qpos, (case.model.nv, case.model.nq)), np.eye(case.model.nv)
    )
    close(T @ alg.mass_matrix(case.mech, case.q) @ T.T, case.matrix())


def bias_forces(case: Case) -> None:
    a = case.state.a(case.qpos, case.qvel, np.zeros(case.model.nv))
    tau = alg.inverse_dynamics(case.mech, case.q, case.v, a)
    close(case.state.qfrc(case.q, tau), case.data.qfrc_bias)
    if not any(isinstance(b.joint, Free) for b in case.mech.bodies):
        close(
            case.state.qfrc(case.q, alg.bias_forces(case.mech, case.q, case.v)), case.data.qfrc_bias
        )


def inverse_dynamics(case: Case) -> None:
    case.data.qacc = case.qacc
    mujoco.mj_inverse(case.model, case.data)
    a = case.state.a(case.qpos, case.qvel, case.qacc)
    tau = alg.inverse_dynamics(case.mech, case.q, case.v, a)
    close(tau, case.state.tau(case.qpos, case.data.qfrc_inverse))


def forward_dynamics(case: Case) -> None:
    tau = case.state.tau(case.qpos, case.qfrc)
    a = alg.forward_dynamics(case.mech, case.q, case.v, tau)
    close(case.state.qacc(case.q, case.v, a), case.data.qacc)
    close(a, case.state.a(case.qpos, case.qvel, case.data.qacc))


def energies(case: Case) -> None:
    still = ~case.moving()
    gravity = np.array(case.mech.gravity)
    mass = case.model.body_mass[still]
    static = -mass @ case.data.xipos[still] @ gravity
    close(alg.potential_energy(case.mech, case.q) + static, case.data.energy[0])
    close(alg.kinetic_energy(case.mech, case.q, case.v), case.data.energy[1])


def centre_of_mass_and_momentum(case: Case) -> None:
    moving = case.moving()
    mass = case.model.body_mass[moving]
    close(alg.total_mass(case.mech), mass.sum())
    if mass.sum() == 0:
        return
    close(alg.center_of_mass(case.mech, case.q), mass @ case.data.xipos[moving] / mass.sum())
    mujoco.mj_subtreeVel(case.model, case.data)
    momentum = alg.momentum(case.mech, case.q, case.v, about="world")
    # MuJoCo's is about the centre of mass of everything, what does not move included
    shift = np.cross(case.data.subtree_com[0], momentum[3:])
    close(momentum[3:], case.data.subtree_linvel[0] * case.model.body_subtreemass[0])
    close(momentum[:3] - shift, case.data.subtree_angmom[0])


def round_trips(case: Case) -> None:
    s = case.state
    close(s.qpos(case.q), case.qpos)
    close(s.qvel(case.q, case.v), case.qvel)
    close(s.qfrc(case.q, s.tau(case.qpos, case.qfrc)), case.qfrc)
    close(s.qacc(case.q, case.v, s.a(case.qpos, case.qvel, case.qacc)), case.qacc)
    close(s.tau(case.qpos, case.qfrc) @ case.v, case.qfrc @ case.qvel)


LAWS = [
    body_poses,
    site_poses_and_jacobians,
    body_jacobians,
    mass_matrix,
    bias_forces,
    inverse_dynamics,
    forward_dynamics,
    energies,
    centre_of_mass_and_momentum,
    round_trips,
]


def quietly(text: str, source: str = "model.xml", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return read_mjcf(text, source, **options)


@functools.cache
def mechanism(name: str):
    path = gym_models().get(name)
    return quietly(MODELS[name]) if path is None else quietly(path.read_text(), path.name)


def compiled(name: str):
    path = gym_models().get(name)
    if path is None:
        return mujoco.MjModel.from_xml_string(MODELS[name])
    return mujoco.MjModel.from_xml_path(str(path))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", [*MODELS, *gym_models()])
def test_agrees_with_mujoco(name, law, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo logs what it warns of where it is
    for seed in range(2):
        law(Case(compiled(name), mechanism(name), seed))
