"""MJCF against MuJoCo: the same poses, mass matrix, forces, accelerations, energies and momenta."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from hinge import algorithms as alg
from hinge.algebra.rotation import quaternion_matrix
from hinge.algebra.spatial import Transform
from hinge.errors import ArgumentError, ModelError, ModelWarning
from hinge.load.mjcf import MujocoState, mechanism_from_model, read_mjcf
from hinge.load.mujoco_state import unique
from hinge.model.joints import Free, Prismatic, Revolute, Spherical, Translation
from mechanisms import EPS, assert_close
from robot_files import odd_models_allowed

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

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
    "free_with_armature": """
      <body name="b" pos="1 2 3" euler="10 0 0">
        <joint name="float" type="free" armature=".7" stiffness="2" damping=".3"/>
        <geom type="box" size=".1 .2 .3" pos=".3 .1 0"/>
        <body name="c" pos="0 0 .5"><joint name="a" axis="0 1 0" armature=".1"/>
          <geom size=".1" pos=".2 .1 0"/></body>
      </body>
      <body name="d"><freejoint name="rubbed"/><geom size=".1" pos=".1 0 0"/></body>""",
    "two_free_and_an_arm": """
      <body name="stone" pos="0 0 1"><freejoint/><geom size=".1" pos=".1 0 0"/></body>
      <body name="arm"><joint name="shoulder" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/>
        <body name="hand" pos="0 0 .6"><joint name="elbow" axis="1 0 0"/><geom size=".1"/></body>
      </body>
      <body name="bird" pos="1 0 1"><joint name="fly" type="free"/><geom size=".1" pos="0 0 .1"/>
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
        <body name="c" pos="0 0 .4"><joint name="w" class="wrist"/>
          <geom pos="0 0 .3" density="2000"/></body></body></worldbody></mujoco>""",
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
    "inertial_almost_at_the_origin": """<mujoco><worldbody><body name="b"><freejoint/>
      <inertial mass="2" pos="1e-9 2e-9 -3e-9" diaginertia=".3 .4 .5"/></body>
      </worldbody></mujoco>""",
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


def close(ours, theirs, bound: float = 500 * EPS) -> None:
    assert_close(ours, theirs, bound)


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
        tau = alg.bias_forces(case.mech, case.q, case.v)
        close(case.state.qfrc(case.q, tau), case.data.qfrc_bias)


def inverse_dynamics(case: Case) -> None:
    case.data.qacc = case.qacc
    mujoco.mj_inverse(case.model, case.data)
    a = case.state.a(case.qpos, case.qvel, case.qacc)
    tau = alg.inverse_dynamics(case.mech, case.q, case.v, a)
    close(tau, case.state.tau(case.qpos, case.data.qfrc_inverse))


def forward_dynamics(case: Case) -> None:
    tau = case.state.tau(case.qpos, case.qfrc)
    a = alg.forward_dynamics(case.mech, case.q, case.v, tau)
    close(case.state.qacc(case.q, case.v, a), case.data.qacc, 2000 * EPS)
    close(a, case.state.a(case.qpos, case.qvel, case.data.qacc), 2000 * EPS)


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
    with odd_models_allowed():
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


# files


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 2 0\nv 0 0 3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to put files in, which is not the working folder."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    model = tmp_path / "model"
    for sub in ("parts/more", "meshes", "textures"):
        (model / sub).mkdir(parents=True)
    (model / "meshes" / "wedge.v2.obj").write_text(TETRAHEDRON)
    (model / "meshes" / "other.obj").write_text(TETRAHEDRON.replace("v 0 0 3", "v 1 1 2"))
    return model


def both(folder: Path, text: str):
    """The model as MuJoCo reads it from the disk, and the mechanism; nothing else is left there."""
    (folder / "main.xml").write_text(text)
    before = sorted(folder.parent.rglob("*"))
    mech = quietly(text, "main.xml", folder=folder)
    assert sorted(folder.parent.rglob("*")) == before
    return mujoco.MjModel.from_xml_path(str(folder / "main.xml")), mech


def agree(folder: Path, text: str) -> tuple:
    model, mech = both(folder, text)
    for law in LAWS:
        law(Case(model, mech, 0))
    return model, mech


def test_includes(folder):
    (folder / "parts" / "arm.xml").write_text("""<mujocoinclude>
      <body name="b"><joint name="a" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/>
        <include file="more/hand.xml"/><include file="parts/more/tool.xml"/></body>
      <!-- seen from the file itself, then from the main file --></mujocoinclude>""")
    (folder / "parts" / "more" / "hand.xml").write_text(
        '<x><body name="hand" pos="0 0 1"><joint name="h"/><geom size=".1" pos="1 0 0"/></body></x>'
    )
    (folder / "parts" / "more" / "tool.xml").write_text('<x><site name="tip" pos="0 0 2"/></x>')
    _, mech = agree(
        folder, '<mujoco><worldbody><include file="parts/arm.xml"/></worldbody></mujoco>'
    )
    assert mech.joint_names == ("a", "h")
    assert "tip" in mech.frame_names


@pytest.mark.parametrize(
    "compiler",
    [
        'meshdir="meshes"',
        'assetdir="meshes"',
        'assetdir="textures" meshdir="meshes"',
        'meshdir="meshes" texturedir="textures"',
        'meshdir="meshes" strippath="true"',
    ],
)
def test_meshes(folder, compiler):
    shift = 'file="../../wedge.v2.obj"' if "strip" in compiler else 'file="wedge.v2.obj"'
    model, mech = agree(
        folder,
        f"""<mujoco><compiler {compiler}/><asset><mesh {shift} scale="1 2 -.5"/>
        <mesh name="turned" file="other.obj" refpos="1 2 3" refquat="1 2 3 4" scale="2 2 2"/>
        </asset><worldbody><body name="b"><joint name="a"/>
          <geom name="first" type="mesh" mesh="wedge.v2" pos=".3 .2 .1" euler="10 20 30"/>
          <geom name="second" type="mesh" mesh="turned" euler="0 0 50"/></body></worldbody>
        </mujoco>""",
    )
    first, second = mech.bodies[1].visuals
    assert Path(first.mesh).samefile(folder / "meshes" / "wedge.v2.obj")
    assert first.size == (1, 2, -0.5)
    other = CORNERS.copy()
    other[3] = (1, 1, 2)
    for shape, corners in ((first, CORNERS), (second, other)):
        g = model.geom(shape.name).id
        m = model.geom_dataid[g]
        start = model.mesh_vertadr[m]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[m]]
        X = Transform(quaternion_matrix(model.geom_quat[g]), model.geom_pos[g])
        theirs = [X @ x for x in vertices]
        ours = [shape.placement @ (np.array(shape.size) * x) for x in corners]
        close(ours, theirs, 2 * np.finfo(np.float32).eps)  # MuJoCo keeps vertices in float32


SOLIDS = """<mujoco><asset>
  <mesh name="sheared" file="meshes/other.obj" refquat="1 2 3 4" scale="1 2 3"/>
  <mesh name="inline" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale="1 2 .5"/>
  <mesh name="made" builtin="sphere" params="1" scale=".1 .1 .2"/>
  <hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset><worldbody>
  <geom type="hfield" hfield="hills"/><body name="b"><joint/><geom type="mesh" mesh="sheared"/>
  <geom type="mesh" mesh="inline" pos="1 0 0" euler="10 20 30" rgba="1 0 0 1"/>
  <geom type="mesh" mesh="made" group="4"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("isolate", [False, True])
def test_meshes_without_a_file_are_kept_as_triangles(folder, isolate):
    model, _ = agree(folder, SOLIDS)
    mech = quietly(SOLIDS, "x", folder=folder, isolate=isolate)
    assert mech.bodies[0].visuals == ()
    body = mech.bodies[1]
    # those of group 4 only collide
    assert [shape.mesh for shape in body.visuals] == [None, None] and len(body.collisions) == 3
    assert body.visuals[1].rgba == (1, 0, 0, 1)
    for m, shape in enumerate(body.collisions):
        g, solid = m + 1, shape.triangles
        at, count = model.mesh_vertadr[m], model.mesh_vertnum[m]
        np.testing.assert_array_equal(solid.vertices, model.mesh_vert[at : at + count])
        assert len(solid.faces) == model.mesh_facenum[m] > 0
        close(shape.placement.translation, model.geom_pos[g], 1e-15)
        close(shape.placement.rotation, quaternion_matrix(model.geom_quat[g]), 1e-15)


@pytest.mark.parametrize(("looks", "seen"), [("mesh", ["skin"]), ("sphere", ["hull", "skin"])])
def test_what_collides_is_not_seen_where_meshes_are(looks, seen):
    """Some files have shapes to collide with in group 0, and meshes to look at in group 1."""
    text = f"""<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
      <body><joint/><geom name="hull" size="1"/><geom name="skin" type="{looks}" size=".1"
      {'mesh="m"' if looks == "mesh" else ""} group="1" contype="0" conaffinity="0"/></body>
      </worldbody></mujoco>"""
    body = read_mjcf(text, "x").bodies[1]
    assert [shape.name for shape in body.visuals] == seen
    assert [shape.name for shape in body.collisions] == ["hull"]


def test_equal_names_in_two_folders(folder):
    (folder / "parts" / "other.obj").write_text(TETRAHEDRON.replace("v 0 0 3", "v 0 0 7"))
    agree(
        folder,
        """<mujoco><asset><mesh name="m" file="meshes/other.obj"/>
        <mesh name="n" file="parts/other.obj"/><mesh name="o" file="meshes/other.obj"/></asset>
        <worldbody><body name="b"><joint name="a"/><geom type="mesh" mesh="m"/></body>
        <body name="c"><joint name="d" axis="1 1 0"/><geom type="mesh" mesh="n"/></body>
        <body name="e"><joint name="f" axis="1 1 0"/><geom type="mesh" mesh="o"/></body>
        </worldbody></mujoco>""",
    )


def test_backslashes_are_slashes(folder):
    text = r'<mujoco><asset><mesh name="m" file="meshes\other.obj"/></asset></mujoco>'
    assert quietly(text, folder=folder).n_bodies == 0


def test_files_from_a_folder_that_the_user_gave(folder):
    (folder / "parts" / "setup.py").touch()  # a project of its own
    text = """<mujoco><compiler meshdir="../meshes"/><asset><mesh file="other.obj"/></asset>
      <worldbody><body name="b"><joint/><geom type="mesh" mesh="other"/></body></worldbody>
      </mujoco>"""
    with pytest.raises(ModelError, match=r"^parts/main.xml:1: <mesh> names '../meshes/other.obj'"):
        read_mjcf(text, "parts/main.xml", folder=folder / "parts")
    mech = read_mjcf(text, "x", folder=folder / "parts", package_dirs=[folder / "meshes"])
    assert mech.bodies[1].inertia.mass > 0


@pytest.mark.parametrize("name", ["more/wedge.obj", "../meshes/other.obj"])
def test_meshes_beside_the_included_file_that_names_them(folder, name):
    (folder / "parts" / "more" / "wedge.obj").write_text(TETRAHEDRON)
    (folder / "parts" / "assets.xml").write_text(
        f'<mujocoinclude><asset><mesh name="m" file="{name}"/></asset></mujocoinclude>'
    )
    agree(
        folder,
        """<mujoco><include file="parts/assets.xml"/><worldbody>
          <body><joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>""",
    )


def test_what_a_mechanism_has_no_use_for_is_not_read(folder):
    """Textures, height fields, sensors and such may be missing, wrong or vast."""
    body = """<worldbody>
      <geom type="hfield" hfield="hills"/><geom type="hfield" hfield="grid"/>
      <body name="b"><joint name="a"/><joint name="c" axis="1 0 0"/>
        <geom name="g" size=".1" pos=".2 0 0" material="grey"/>
        <geom type="hfield" hfield="hills" mass="2"/></body></worldbody>"""
    asked = """<mujoco><asset>
        <texture name="t" type="cube" fileup="no.png"/><texture file="../../secret.png"/>
        <texture name="vast" width="99999" height="99999" builtin="flat"/>
        <material name="grey" texture="t" rgba=".1 .2 .3 1"/>
        <material name="two"><layer texture="t" role="rgb"/></material>
        <hfield file="hills.png" size="1 2 3 .4"/>
        <hfield name="grid" nrow="90000" ncol="90000" size="1 1 1 .1"/></asset>
      <custom><numeric name="n" size="2000000000"/>
        <tuple name="t"><element objtype="texture" objname="t"/></tuple></custom>
      <deformable><skin file="no.skn"/></deformable>
      <sensor><jointpos joint="nobody"/><user dim="2000000000"/></sensor>
      <keyframe><key qpos="1 2 3 4 5"/></keyframe><visual><map znear="-1"/></visual>
      """
    plain = """<mujoco><asset><material name="grey" rgba=".1 .2 .3 1"/>
      <hfield name="hills" nrow="3" ncol="3" elevation="0 1 0 1 2 1 0 1 0" size="1 2 3 .4"/>
      <hfield name="grid" nrow="9" ncol="9" size="1 1 1 .1"/></asset>"""
    mech = quietly(asked + body + "</mujoco>", "model.xml", folder=folder)
    model = mujoco.MjModel.from_xml_string(plain + body + "</mujoco>")
    for law in LAWS:
        law(Case(model, mech, 0))
    close(mech.bodies[-1].visuals[0].rgba, np.float32([0.1, 0.2, 0.3, 1]))


def test_attached_models(folder):
    (folder / "parts" / "finger.xml").write_text("""<mujoco model="finger">
      <asset><mesh name="tip" file="../meshes/other.obj"/></asset>
      <worldbody><body name="finger"><joint name="bend" axis="0 1 0"/>
        <geom type="mesh" mesh="tip" pos=".1 0 0"/></body></worldbody></mujoco>""")
    (folder / "parts" / "hand.xml").write_text("""<mujoco model="hand">
      <asset><model name="f" file="finger.xml"/></asset>
      <worldbody><body name="hand"><joint name="turn"/><geom size=".1" pos="0 0 .2"/>
      <frame pos="0 0 1"><attach model="f" body="finger" prefix="l/"/></frame>
      <frame pos="0 1 1"><attach model="f" body="finger" prefix="r/"/></frame></body>
      </worldbody></mujoco>""")
    mech = quietly(
        """<mujoco><asset><model name="h" file="parts/hand.xml"/></asset><worldbody>
        <body name="arm"><joint name="lift" type="slide"/><geom size=".1"/>
        <attach model="h" body="hand" prefix="h/"/></body></worldbody></mujoco>""",
        folder=folder,
    )
    finger = """<body name="h/{0}/finger" pos="0 {1} 1"><joint name="h/{0}/bend" axis="0 1 0"/>
      <geom type="mesh" mesh="tip" pos=".1 0 0"/></body>"""
    flat = f"""<mujoco><asset><mesh name="tip" file="meshes/other.obj"/></asset><worldbody>
      <body name="arm"><joint name="lift" type="slide"/><geom size=".1"/>
      <body name="h/hand"><joint name="h/turn"/><geom size=".1" pos="0 0 .2"/>
      {finger.format("l", 0)}{finger.format("r", 1)}</body></body></worldbody></mujoco>"""
    model, _ = both(folder, flat)
    for law in LAWS:
        law(Case(model, mech, 0))
    assert mech.joint_names == ("lift", "h/turn", "h/l/bend", "h/r/bend")


# names and data


ARM = """<mujoco model="arm"><worldbody><body name="b"><joint name="a" {}/><geom size=".1"/></body>
  </worldbody>{}</mujoco>"""


def joint(attributes: str, rest: str = ""):
    return quietly(ARM.format(attributes, rest)).bodies[1].joint


def test_joints():
    assert isinstance(joint('type="hinge" axis="0 2 0"'), Revolute)
    assert joint('type="hinge" axis="0 2 0"').axis == (0, 1, 0)
    assert isinstance(joint('type="slide"'), Prismatic)
    assert isinstance(joint('type="ball"'), Spherical)
    assert isinstance(joint('type="free"'), Free)


def test_joint_data():
    data = joint('range="-90 180" armature=".1" damping="2" frictionloss="3"')
    assert (data.lower, data.upper) == ((-np.pi / 2,), (np.pi,))
    assert (data.armature, data.damping, data.friction) == ((0.1,), (2,), (3,))
    assert data.effort_limit == (np.inf,)
    assert joint("").lower == (-np.inf,)
    assert joint('range="-1 1" limited="false"').upper == (np.inf,)
    assert joint('actuatorfrcrange="-3 2"').effort_limit == (3,)
    assert joint('type="ball" damping="2"').damping == (2, 2, 2)
    assert joint('type="free" damping="2"').damping == (2,) * 6


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_armature"), reason="an older MuJoCo")
def test_armature_of_actuators(folder):
    motors = """<actuator><motor joint="a" gear="3" armature=".5" damping=".1"/>
      <motor joint="a" gear="2" armature="1"/></actuator>"""
    data = joint('armature=".1" damping="2"', motors)
    close(data.armature, [0.1 + 9 * 0.5 + 4], 4 * EPS)
    close(data.damping, [2 + 9 * 0.1], 4 * EPS)
    for kind in ("hinge", "slide", "ball", "free"):
        agree(folder, ARM.format(f'type="{kind}"', motors))


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_outadr"), reason="an older MuJoCo")
def test_actuators_of_several_dimensions(folder):
    motors = """<actuator><orientation joint="a" kp="1"/>
      <motor joint="a" gear="3" armature=".5"/></actuator>"""
    agree(folder, ARM.format('type="ball"', motors))


@pytest.mark.parametrize("attribute", ["armature", "frictionloss"])
def test_a_free_joint_that_resists_in_its_own_axes_is_two(attribute):
    mech = quietly(ARM.format(f'type="free" stiffness="3" {attribute}="2"', ""))
    slide, turn = (body.joint for body in mech.bodies[1:])
    assert mech.joint_names == ("a/position", "a/orientation")
    assert (type(slide), type(turn)) == (Translation, Spherical)
    assert slide.stiffness == turn.stiffness == (3, 3, 3)
    other = "friction" if attribute == "frictionloss" else attribute
    assert getattr(slide, other) == getattr(turn, other) == (2, 2, 2)


@pytest.mark.parametrize("flags", ["", 'spring="disable"', 'damper="disable"'])
@pytest.mark.parametrize("kind", ["hinge", "slide", "ball", "free"])
@pytest.mark.parametrize("armature", [0, 1])
def test_passive_forces_are_those_of_mujoco(flags, kind, armature):
    text = ARM.format(
        f'type="{kind}" stiffness="3" damping="2" armature="{armature}" pos=".1 0 0"',
        f"<option><flag {flags}/></option>",
    )
    model, mech = mujoco.MjModel.from_xml_string(text), quietly(text)
    data, state = mujoco.MjData(model), MujocoState(model, mech)
    rng = np.random.default_rng(3)
    data.qpos = qpos = state.qpos(alg.random_configuration(mech, rng))
    data.qvel = qvel = rng.normal(size=model.nv)
    mujoco.mj_forward(model, data)
    tau = alg.passive_forces(mech, state.q(qpos), state.v(qpos, qvel))
    close(state.qfrc(state.q(qpos), tau), data.qfrc_passive)


def test_friction_that_is_switched_off():
    off = '<option><flag {}="disable"/></option>'
    assert joint('frictionloss="2"', off.format("frictionloss")).friction == (0,)
    assert joint('frictionloss="2"', off.format("constraint")).friction == (0,)
    assert joint('frictionloss="2"', off.format("contact")).friction == (2,)


def test_names():
    mech = mechanism("without_names")
    assert mech.joint_names == ("joint0", "joint1", "joint3", "joint3_")
    assert mech.body_names == ("body1/joint0", "body1", "body2", "body3")
    assert set(mech.frame_names) == {"world", *mech.body_names, "site0", "body2_"}
    assert mechanism("two_free_and_an_arm").joint_names[0] == "joint0"
    assert mechanism("degree").name == "model"
    assert mechanism("half_cheetah").name == "cheetah"


def test_names_that_clash():
    mech = quietly("""<mujoco><worldbody>
      <body name="b"><joint name="x"/><joint name="y" axis="1 0 0"/><geom size=".1"/>
      <body name="b/x"><site name="b"/><body name="y"/>
      <body name="z"><joint name="y_joint"/><geom size=".1"/></body></body></body>
      </worldbody></mujoco>""")
    assert mech.body_names == ("b/x_", "b", "z")
    assert mech.joint_names == ("x", "y", "y_joint")
    assert "b_" in mech.frame_names


def test_unnamed_parts_avoid_given_names():
    taken = {"a"}
    assert [unique("a", taken), unique("a", taken), unique("b", taken)] == ["a_", "a__", "b"]


def test_gravity():
    assert mechanism("gravity_off").gravity == (0, 0, 0)
    assert mechanism("gravity_aslant").gravity == (1, 2, -3)


def test_mocap_and_welded_bodies_are_frames():
    mech = mechanism("welded_and_mocap")
    assert mech.body_names == ("b", "finger")
    assert {"goal", "stand", "tool", "tip"} <= set(mech.frame_names)
    assert [s.name for s in mech.bodies[0].visuals] == ["floor", "geom1", "geom2"]


def test_shapes():
    mech = quietly("""<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody>
      <geom name="floor" type="plane" size="0 3 1"/>
      <body name="b" ><joint/>
        <geom name="seen" type="box" size=".1 .2 .3" contype="0" conaffinity="0" material="red"/>
        <geom name="felt" type="sphere" size=".1" group="3"/>
        <geom name="both" type="capsule" size=".1 .2" contype="0" rgba="0 1 0 1" material="red"/>
        <geom name="can" type="cylinder" size=".1 .2" pos="1 2 3" euler="0 90 0"/>
        <geom name="egg" type="ellipsoid" size=".1 .2 .3"/>
        <geom name="rod" type="capsule" fromto="0 0 0 0 0 2" size=".1"/>
      </body></worldbody></mujoco>""")
    body, ground = mech.bodies[1], mech.bodies[0]
    sizes = {s.name: (s.kind, s.size) for s in body.visuals}
    assert sizes == {
        "seen": ("box", (0.2, 0.4, 0.6)),
        "both": ("capsule", (0.1, 0.4)),
        "can": ("cylinder", (0.1, 0.4)),
        "egg": ("ellipsoid", (0.1, 0.2, 0.3)),
        "rod": ("capsule", (0.1, 2.0)),
    }
    assert [s.name for s in body.collisions] == ["felt", "both", "can", "egg", "rod"]
    shapes = {s.name: s for s in body.visuals}
    assert shapes["seen"].rgba == (1, 0, 0, 1)
    assert shapes["both"].rgba == (0, 1, 0, 1)
    close(shapes["can"].placement.translation, (1, 2, 3), 10 * EPS)
    close(shapes["can"].placement.rotation[:, 2], (1, 0, 0), 10 * EPS)
    close(abs(shapes["rod"].placement.rotation[:, 2]), (0, 0, 1), 10 * EPS)
    assert (ground.visuals[0].kind, ground.visuals[0].size) == ("plane", (0, 3))


# what is left out


def warned(text: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_mjcf(text, "arm.xml")
    assert all(w.category is ModelWarning for w in caught)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(
    ("attributes", "rest", "said"),
    [
        ('type="ball" range="0 90"', "", "limits of ball joints a"),
        ("", '<equality><joint name="eq" joint1="a"/></equality>', "equality constraints eq"),
        ("", '<equality><joint joint1="a"/></equality>', "equality constraints equality0"),
        (
            "",
            '<tendon><fixed name="t" stiffness="1"><joint joint="a" coef="1"/></fixed></tendon>',
            "tendons t",
        ),
        (
            "",
            '<actuator><position name="p" joint="a"/></actuator>',
            "servos, whose law is hinge.control.ActuatorForces: p",
        ),
        (
            "",
            '<tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>'
            '<actuator><motor name="m" tendon="t" armature="1"/></actuator>',
            "armature and damping of tendons by actuators m",
        ),
        (
            "",
            '<actuator><motor name="m" joint="a" damping="0 1"/></actuator>',
            "polynomial damping of actuators m",
        ),
        ("", '<option density="1.2"/>', "the fluid (density 1.2, viscosity 0)"),
    ],
)
def test_what_a_mechanism_cannot_hold_is_said(attributes, rest, said):
    assert warned(ARM.format(attributes, rest)) == [f"arm.xml: left out: {said}"]


def test_gravity_compensation_is_said():
    text = ARM.format("", "").replace('<body name="b"', '<body name="b" gravcomp="1"')
    assert warned(text) == ["arm.xml: left out: gravity compensation of bodies b"]


def test_a_long_list_is_cut():
    fingers = "".join(
        f'<body><joint name="s{i}" type="ball" range="0 90"/><geom size=".1"/></body>'
        for i in range(12)
    )
    (said,) = warned(f"<mujoco><worldbody>{fingers}</worldbody></mujoco>")
    assert said.endswith("limits of ball joints s0, s1, s2, s3, s4, s5, s6, s7 and 4 more")


@pytest.mark.parametrize(
    ("attributes", "rest"),
    [
        ("", ""),
        ("", '<equality><joint joint1="a" active="false"/></equality>'),
        ("", '<tendon><fixed><joint joint="a" coef="1"/></fixed></tendon>'),
        (
            "",
            '<option><flag equality="disable" actuation="disable"/></option>'
            '<equality><joint joint1="a"/></equality>'
            '<actuator><position joint="a"/></actuator>',
        ),
        ('type="free" armature="1"', ""),
        ("", '<actuator><motor joint="a"/></actuator><sensor><jointpos joint="a"/></sensor>'),
    ],
)
def test_nothing_is_said_about_what_does_not_matter(attributes, rest):
    assert warned(ARM.format(attributes, rest)) == []


def test_warnings_of_mujoco_are_passed_on(monkeypatch):
    compile_model = mujoco.MjModel.from_xml_string

    def warns(*args):
        mujoco.get_mju_user_warning()("take care")
        return compile_model(*args)

    monkeypatch.setattr(mujoco.MjModel, "from_xml_string", warns)
    assert warned(ARM.format("", "")) == ["arm.xml: MuJoCo warns: take care"]
    assert mujoco.get_mju_user_warning() is None


# a floating base


def test_floating_base():
    text = MODELS["welded_and_mocap"].replace('mocap="true"', "")
    mech = quietly(text, floating_base=True)
    assert mech.joint_names == ("root_joint", "a", "f")
    assert mech.body_names == ("stand", "b", "finger")
    fixed, q = mechanism("welded_and_mocap"), alg.neutral(mech)
    q[:3], q[3:7] = (0, 0, 0.5), (np.cos(np.pi / 12), 0, 0, np.sin(np.pi / 12))
    close(alg.frame_pose(mech, q, "tip"), alg.frame_pose(fixed, alg.neutral(fixed), "tip"))


def test_floating_base_of_a_model_that_does_not_move():
    mech = quietly(MODELS["nothing_moves"], floating_base=True)
    assert mech.body_names == ("b",)


def test_floating_base_that_is_free_already():
    assert quietly(MODELS["free"], floating_base=True) == mechanism("free")


def test_floating_base_beside_a_body_of_the_same_joint_name():
    mech = quietly(
        """<mujoco><worldbody><body name="b"><geom size=".1"/><body name="root"/></body>
        </worldbody></mujoco>""",
        floating_base=True,
    )
    assert mech.joint_names == ("root_joint",)


def test_floating_base_that_hangs_on_a_joint():
    with pytest.raises(
        ModelError, match="^model.xml: floating_base needs .* 'b' hangs on joint 'a'"
    ):
        quietly(ARM.format("", ""), floating_base=True)


def test_floating_base_without_a_body():
    with pytest.raises(ModelError, match="^model.xml: floating_base needs a body"):
        quietly("<mujoco/>", floating_base=True)


# the state of both


def test_state_of_many_at_once():
    case = Case(compiled("two_free_and_an_arm"), mechanism("two_free_and_an_arm"), 0)
    s, rng = case.state, np.random.default_rng(1)
    q = np.array([alg.random_configuration(case.mech, rng) for _ in range(6)]).reshape(2, 3, -1)
    v, a = rng.normal(size=(2, 2, 3, case.mech.nv))
    qpos, qvel, qacc, qfrc = s.qpos(q), s.qvel(q, v), s.qacc(q, v, a), s.qfrc(q, a)
    close(s.q(qpos), q)
    close(s.v(qpos, qvel), v)
    close(s.a(qpos, qvel, qacc), a)
    close(s.tau(qpos, qfrc), a)
    for i in np.ndindex(2, 3):
        close(s.qvel(q[i], v[i]), qvel[i])
        close(s.qacc(q[i], v[i], a[i]), qacc[i])


def test_state_takes_quaternions_of_any_length():
    case = Case(compiled("free"), mechanism("free"), 0)
    longer = case.qpos.copy()
    longer[3:] *= 3
    close(case.state.v(longer, case.qvel), case.v)


def test_acceleration_is_the_rate_of_the_velocity():
    case = Case(compiled("free"), mechanism("free"), 0)
    h, s = 1e-6, case.state
    ahead, behind = (case.qpos.copy() for _ in range(2))
    mujoco.mj_integratePos(case.model, ahead, case.qvel, h)
    mujoco.mj_integratePos(case.model, behind, case.qvel, -h)
    rate = s.v(ahead, case.qvel + h * case.qacc) - s.v(behind, case.qvel - h * case.qacc)
    # what rounding leaves of a difference
    close(rate / (2 * h), s.a(case.qpos, case.qvel, case.qacc), 2 * EPS / h)


def test_state_of_another_model():
    with pytest.raises(ArgumentError, match="has nq = 7, nv = 6; 'model' has nq = 1, nv = 1"):
        MujocoState(compiled("free"), mechanism("radian"))
    with pytest.raises(ArgumentError, match="has no joint 'float'"):
        MujocoState(compiled("free"), quietly(MODELS["free"].replace("float", "sink")))


def test_state_of_a_model_with_another_joint_of_that_name():
    swapped = [
        f'<mujoco><worldbody><body><joint name="{a}" type="ball"/><geom size=".1"/></body>'
        f'<body><joint name="{b}"/><geom size=".1"/></body></worldbody></mujoco>'
        for a, b in ("xy", "yx")
    ]
    with pytest.raises(ArgumentError, match="joint 'x' has 3 DoF in the MuJoCo model and 1 in"):
        MujocoState(mujoco.MjModel.from_xml_string(swapped[0]), quietly(swapped[1]))


def test_state_vectors_of_a_wrong_size():
    state = MujocoState(compiled("free"), mechanism("free"))
    with pytest.raises(ArgumentError, match=r"qvel has shape \(7,\); the last dimension must be 6"):
        state.v(np.zeros(7), np.zeros(7))


# through other doors


def test_a_model_that_is_compiled_already():
    mech = mechanism_from_model(compiled("humanoid"), "humanoid")
    assert mech == mechanism("humanoid")


def test_bytes_in_another_encoding():
    text = '<?xml version="1.0" encoding="utf-16"?>' + MODELS["free"].replace("float", "fließt")
    mech = read_mjcf(text.encode("utf-16"), "model.xml")
    assert mech.joint_names == ("fließt",)


def test_mujoco_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(
        ModelError, match=r'^model.xml: .* pip install "hinge-dynamics\[mjcf\]"'
    ) as caught:
        read_mjcf(MODELS["free"], "model.xml")
    assert caught.value.__suppress_context__


def test_nothing_is_left_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quietly(gym_models()["half_cheetah"].read_text(), "half_cheetah.xml")  # MuJoCo has warnings
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("end", ["now & then <!-- <a/> -->", "\n\ntext\n"])
def test_what_follows_the_root_element_is_left_out(end, tmp_path):
    text = ARM.format('type="hinge"', "")
    with pytest.warns(ModelWarning, match="what follows </mujoco> is left out"):
        assert read_mjcf(text + end, "arm.xml") == read_mjcf(text, "arm.xml")
    (tmp_path / "part.xml").write_text(f"<mujoco><size/></mujoco>{end}")
    whole = text.replace("<worldbody>", '<include file="part.xml"/><worldbody>', 1)
    with pytest.warns(ModelWarning, match="part.xml:[13]: what follows </mujoco> is left out"):
        read_mjcf(whole, "arm.xml", folder=tmp_path)


def test_lights_and_their_textures_are_not_needed():
    light = '<light name="sun" texture="sky" pos="0 0 3"/>'
    text = ARM.format('type="hinge"', "")
    assert read_mjcf(text.replace("<worldbody>", f"<worldbody>{light}"), "arm.xml") == read_mjcf(
        text, "arm.xml"
    )
    default = '<default><light texture="sky"/></default>'
    assert read_mjcf(text.replace("<worldbody>", f"{default}<worldbody>"), "arm.xml")
