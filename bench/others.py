"""More contestants: MuJoCo, CasADi's generated C, and frax on JAX; each only if it is installed."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import hinge

from .peers import Contestant
from .robots import ARGUMENTS, Case, States

__all__ = ["Casadi", "Frax", "Mujoco", "installed", "mujoco_model"]

# compilers give up on straight-line code at some point; so do we, in seconds
GCC_PATIENCE = 120.0


def installed(name: str) -> bool:
    """Whether a library can be imported."""
    return importlib.util.find_spec(name) is not None


class Mujoco:
    """MuJoCo without contacts and constraints.

    It has no batch of inverse dynamics or mass matrices; its rollouts of one step are forward
    dynamics and an Euler step, from which the accelerations are read off.
    """

    name = "mujoco"
    needs = ("mujoco",)
    largest = 128

    def __init__(self, case: Case) -> None:
        import mujoco

        from hinge.load.mjcf import MujocoState

        self.mujoco = mujoco
        self.model = mujoco_model(mujoco, case.mechanism)
        self.convert = MujocoState(self.model, case.mechanism)

    def batch(self, quantity: str, states: States, threads: int) -> Contestant | None:
        if quantity != "forward_dynamics":
            return None
        import mujoco.rollout as rollout

        qpos = self.convert.qpos(states.q)
        qvel = self.convert.qvel(states.q, states.qd)
        force = self.convert.qfrc(states.q, states.tau)
        pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        atexit.register(pool.close)
        start = np.concatenate([np.zeros((len(qpos), 1)), qpos, qvel], axis=1)
        scope: dict[str, Any] = {"pool": pool, "model": self.model, "start": start}
        scope["data"] = [self.mujoco.MjData(self.model) for _ in range(threads)]
        scope["out"] = np.zeros((len(qpos), 1, start.shape[1]))
        scope["force"] = force[:, None, :].copy()
        scope["applied"] = int(self.mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        call = "model, data, start, force, control_spec=applied, nstep=1, state=out"

        def result() -> np.ndarray:
            rate = scope["out"][:, 0, -self.model.nv :] - qvel
            return self.convert.a(qpos, qvel, rate / self.model.opt.timestep)

        return Contestant(self.name, f"pool.rollout({call})", scope, result)

    def single(self, quantity: str, states: States) -> Contestant:
        m, d = self.model, self.mujoco.MjData(self.model)
        one, convert = states.head(1), self.convert
        M, force = np.zeros((m.nv, m.nv)), np.zeros(m.nv)
        qpos, qvel = convert.qpos(one.q), convert.qvel(one.q, one.qd)
        qacc, tau = convert.qacc(one.q, one.qd, one.qdd), convert.qfrc(one.q, one.tau)
        scope = {"mj": self.mujoco, "m": m, "d": d, "q": qpos[0], "v": qvel[0], "a": qacc[0]}
        scope |= {"qpos": d.qpos, "qvel": d.qvel, "qacc": d.qacc, "qfrc": d.qfrc_applied}
        scope |= {"tau": tau[0], "M": M, "out": force}
        results = {
            "inverse_dynamics": lambda: convert.tau(qpos, force[None]),
            "forward_dynamics": lambda: convert.a(qpos, qvel, d.qacc[None]),
            "mass_matrix": lambda: self._mass(one.q, M),
        }
        return Contestant(self.name, _MUJOCO[quantity], scope, results[quantity])

    def _mass(self, q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """M in hinge's rates, Tᵀ M T with qvel = T qd."""
        columns = [self.convert.qvel(q, e[None])[0] for e in np.eye(len(M))]
        T = np.array(columns).T
        return (T.T @ M @ T)[None]


_MUJOCO = {
    "inverse_dynamics": "qpos[:] = q; qvel[:] = v; qacc[:] = a; mj.mj_kinematics(m, d); "
    "mj.mj_comPos(m, d); mj.mj_comVel(m, d); mj.mj_rne(m, d, 1, out)",
    "forward_dynamics": "qpos[:] = q; qvel[:] = v; qfrc[:] = tau; mj.mj_forward(m, d)",
    "mass_matrix": "qpos[:] = q; mj.mj_kinematics(m, d); mj.mj_comPos(m, d); mj.mj_crb(m, d); "
    "mj.mj_fullM(m, d, M)",
}


def mujoco_model(mujoco: Any, mechanism: hinge.Mechanism) -> Any:
    """The mechanism as an MjModel that has nothing but bodies and joints."""
    spec, bodies = mujoco.MjSpec(), [None] * len(mechanism.bodies)
    bodies[0] = spec.worldbody
    spec.option.gravity = mechanism.gravity
    # the rate of one step is then the acceleration itself, to the last digits
    spec.option.timestep = 1.0
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    kinds = {
        hinge.Revolute: mujoco.mjtJoint.mjJNT_HINGE,
        hinge.Prismatic: mujoco.mjtJoint.mjJNT_SLIDE,
        hinge.Free: mujoco.mjtJoint.mjJNT_FREE,
    }
    for k, body in enumerate(mechanism.bodies[1:], 1):
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, np.asarray(body.placement.rotation).ravel())
        place = {"pos": body.placement.translation, "quat": quaternion}
        added = bodies[body.parent].add_body(name=body.name, **place)
        I, own = np.asarray(body.inertia.about_com), body.inertia
        added.mass, added.ipos, added.explicitinertial = own.mass, own.com, True
        added.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        axis = {} if isinstance(body.joint, hinge.Free) else {"axis": body.joint.axis}
        added.add_joint(name=body.joint_name, type=kinds[type(body.joint)], **axis)
        bodies[k] = added
    return spec.compile()


class Casadi:
    """hinge's generic code on `casadi.SX`, written as C by CasADi and compiled by gcc.

    Its arrays are bound beforehand: a call is one trigger, without any conversion.
    """

    name = "casadi"
    needs = ("casadi",)
    largest = 38

    def __init__(self, case: Case) -> None:
        import casadi

        if shutil.which("gcc") is None:
            raise RuntimeError("casadi's C needs gcc")
        self.casadi, self.case = casadi, case
        self.functions: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}

    def batch(self, quantity: str, states: States, threads: int) -> Contestant | None:
        function = self._compiled(quantity)
        if function is None:
            return None
        kind = ("thread", threads) if threads > 1 else ("serial",)
        return self._bound(function.map(len(states.q), *kind), quantity, states)

    def single(self, quantity: str, states: States) -> Contestant | None:
        function = self._compiled(quantity)
        return None if function is None else self._bound(function, quantity, states.head(1))

    def _bound(self, function: Any, quantity: str, states: States) -> Contestant:
        shape = (self.case.nv,) * (2 if quantity == "mass_matrix" else 1)
        out = np.zeros((len(states.q), *shape))
        buffer, trigger = function.buffer()
        given = states.arguments(quantity)
        for i, x in enumerate(given):
            buffer.set_arg(i, memoryview(x))
        buffer.set_res(0, memoryview(out))
        scope = {"trigger": trigger, "keep": (buffer, function, given)}
        return Contestant(self.name, "trigger()", scope, lambda: out)

    def _compiled(self, quantity: str) -> Any:
        if quantity not in self.functions:
            start = time.perf_counter()
            self.functions[quantity] = self._compile(quantity)
            self.seconds[quantity] = time.perf_counter() - start
        return self.functions[quantity]

    def _compile(self, quantity: str) -> Any:
        casadi, mechanism = self.casadi, self.case.mechanism
        sizes = [mechanism.nq if name == "q" else mechanism.nv for name in ARGUMENTS[quantity]]
        symbols = [casadi.SX.sym(f"a{i}", n) for i, n in enumerate(sizes)]
        arrays = [np.array(casadi.vertsplit(x), dtype=object) for x in symbols]
        values = getattr(hinge.algorithms, quantity)(mechanism, *arrays)
        name = f"{quantity}_{self.case.name}"
        function = casadi.Function(name, symbols, [casadi.densify(casadi.vertcat(*values.ravel()))])
        folder = Path(tempfile.mkdtemp(prefix="bench"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        generator = casadi.CodeGenerator(f"{name}.c")
        generator.add(function)
        generator.generate(f"{folder}/")
        library = folder / f"{name}.so"
        command = ["gcc", "-O3", "-march=native", "-fPIC", "-shared", f"{folder / name}.c", "-o"]
        try:
            subprocess.run([*command, str(library)], check=True, timeout=GCC_PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        return casadi.external(name, str(library))


class Frax:
    """frax on JAX with the settings that it recommends, among them one thread; fixed bases only."""

    name = "frax"
    needs = ("jax", "frax")
    largest = 128

    def __init__(self, case: Case) -> None:
        if case.urdf is None or case.floating:
            raise RuntimeError("frax reads files, and its floating base has other rates")
        for name, value in FRAX_SETTINGS.items():
            os.environ.setdefault(name, value)
        import jax
        from frax.core.robot import Robot

        with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
            file.write(case.urdf)
            file.flush()
            self.robot = Robot(file.name, joint_ordering=list(case.mechanism.joint_names))
        self.jax = jax

    def batch(self, quantity: str, states: States, threads: int) -> Contestant | None:
        if threads > 1:
            return None
        return self._timed(self.jax.vmap(self._function(quantity)), quantity, states)

    def single(self, quantity: str, states: States) -> Contestant:
        return self._timed(self._function(quantity), quantity, states.head(1), first=0)

    def _function(self, quantity: str) -> Any:
        robot, up = self.robot, np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
        return {
            "inverse_dynamics": lambda q, v, a: robot.rnea(q, v, a, up, None),
            "forward_dynamics": lambda q, v, tau: robot.forward_dynamics(q, v, tau, None),
            "mass_matrix": lambda q: robot.mass_matrix(q),
        }[quantity]

    def _timed(self, fn: Any, quantity: str, states: States, first: Any = ...) -> Contestant:
        compiled, names = self.jax.jit(fn), ARGUMENTS[quantity]
        given = [self.jax.numpy.asarray(x[first]) for x in states.arguments(quantity)]
        scope = {"f": compiled, **dict(zip(names, given, strict=True))}
        statement = f"f({', '.join(names)}).block_until_ready()"

        def result() -> np.ndarray:
            return np.asarray(compiled(*given)).reshape(
                len(states.q), *_shape(quantity, self.robot)
            )

        return Contestant(self.name, statement, scope, result)


FRAX_SETTINGS = {
    "JAX_ENABLE_X64": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false "
    "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


def _shape(quantity: str, robot: Any) -> tuple[int, ...]:
    return (robot.nv,) * (2 if quantity == "mass_matrix" else 1)
