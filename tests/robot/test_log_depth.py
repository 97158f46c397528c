"""Forward and hybrid dynamics by scans, against the sweeps and against 40 digits."""

import re

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import hinge
from dense import condition
from hinge import ArgumentError, SingularError, zoo
from hinge.algorithms import log_depth
from hinge.algorithms.log_depth import Element, product, semidefinite_root
from hinge.robot.log_depth import ByScan
from hinge.specialize.paths import levels, stretches
from mechanisms import (
    EPS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    Generic,
    assert_close,
    random_chain,
    random_mask,
    random_state,
)
from pages import DOCS


def spread(robot, q):
    """How far the two ways may be from each other: what the mass matrix makes of rounding."""
    return 100 * EPS * condition(Generic(robot).mass_matrix(q))


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_scans_are_the_sweep(name):
    robot = ROBOTS[name]
    state = random_state(robot, 3)
    q, qd, qdd, f_ext = state.q, state.qd, state.qdd, state.f_ext
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext)
    bound = spread(robot, q)
    got = robot.forward_dynamics(q, qd, tau, f_ext, method="scan")
    assert_close(got, qdd, bound)
    active = random_mask(robot, 4)
    got = robot.hybrid_dynamics(q, qd, qdd, tau, active, f_ext, method="scan")
    assert_close(got.qdd, qdd, bound)
    assert_close(got.tau, tau, bound)


def as_mp(x):
    return np.array([mpmath.mpf(float(v)) for v in x], dtype=object)


def off_by(got, exact):
    scale = max(abs(x) for x in exact)
    return float(max(abs(a - b) for a, b in zip(got, exact, strict=True)) / scale)


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("snake", 100),
        ("any", 60),
        pytest.param("snake", 1024, marks=pytest.mark.long),
        pytest.param("snake", 4096, marks=pytest.mark.long),
    ],
)
def test_against_forty_digits(kind, n):
    """No further off than the sweep, or than a few roundings for each doubling."""
    rng = np.random.default_rng(n)
    robot = zoo.snake(n) if kind == "snake" else random_chain(n, rng)
    q = robot.random_configuration(rng)
    qd, tau = rng.normal(size=(2, robot.nv))
    with mpmath.workdps(40):
        exact = robot.alg.forward_dynamics(as_mp(q), as_mp(qd), as_mp(tau))
    scan = off_by(robot.forward_dynamics(q, qd, tau, method="scan"), exact)
    sweep = off_by(robot.forward_dynamics(q, qd, tau), exact)
    assert scan < max(2 * sweep, 8 * EPS * np.log2(n))


@pytest.mark.parametrize("seed", [30000, 30002])
def test_joints_of_any_kind_cost_a_few_digits(seed):
    """Where the sweep loses hardly any (30002 is the worst of four chains of that length)."""
    rng = np.random.default_rng(seed)
    robot = random_chain(30, rng)
    q = robot.random_configuration(rng)
    qd, tau = rng.normal(size=(2, robot.nv))
    with mpmath.workdps(40):
        exact = robot.alg.forward_dynamics(as_mp(q), as_mp(qd), as_mp(tau))
    assert off_by(robot.forward_dynamics(q, qd, tau), exact) < 100 * EPS
    assert off_by(robot.forward_dynamics(q, qd, tau, method="scan"), exact) < 1e4 * EPS


def with_massless_links(n):
    """A chain in which two links of three have no mass, and no joint has armature."""
    b = hinge.MechanismBuilder("gimbals")
    body = hinge.Inertia(1.0, (0.1, 0.2, -0.1), 0.02 * np.eye(3))
    for i in range(n):
        b.add(
            f"link{i}",
            f"link{i - 1}" if i else "world",
            hinge.Revolute(axis=np.eye(3)[i % 3]),
            placement=hinge.Transform(translation=(0.3 * (i % 3 == 0), 0, 0)),
            inertia=body if i % 3 == 2 else None,
        )
    return hinge.Robot(b.build())


def test_massless_links_stay_with_their_neighbours():
    robot = with_massless_links(150)
    mech = robot.mechanism
    (level,) = levels(mech)
    for stretch in stretches(mech, level, 32):
        assert mech.bodies[stretch[-1][0]].inertia.mass == 1
    rng = np.random.default_rng(0)
    q, qd, tau = rng.uniform(-0.5, 0.5, size=(3, robot.nv))
    got = robot.forward_dynamics(q, qd, tau, method="scan")
    assert_close(got, robot.forward_dynamics(q, qd, tau), spread(robot, q))


def elements(count, rng):
    """Elements with parts of full and of lesser rank."""
    for i in range(count):
        X, Y = rng.normal(size=(2, 6, 6 - i % 3))
        A, b, eta = rng.normal(size=(6, 6)), rng.normal(size=6), rng.normal(size=6)
        yield Element(A, b, X @ X.T, eta, Y @ Y.T)


def test_products_are_associative_and_have_a_one():
    rng = np.random.default_rng(1)
    i, j, k = elements(3, rng)
    left, right = product(product(i, j, EPS), k, EPS), product(i, product(j, k, EPS), EPS)
    for name, a, b in zip(Element._fields, left, right, strict=True):
        assert_close(a, b, 1e4 * EPS, what=name)
    E = np.linalg.inv(np.eye(6) + i.C @ j.J)
    got = product(i, j, EPS)
    assert_close(got.A, j.A @ E @ i.A, 1e3 * EPS)
    assert_close(got.C, j.A @ E @ i.C @ j.A.T + j.C, 1e3 * EPS)
    assert_close(got.eta, i.A.T @ E.T @ (j.eta - j.J @ i.b) + i.eta, 1e3 * EPS)
    one = Element(np.eye(6), np.zeros(6), np.zeros((6, 6)), np.zeros(6), np.zeros((6, 6)))
    for a, b in zip(product(one, j, EPS), j, strict=True):
        assert_allclose(a, b, rtol=4 * EPS, atol=0)


def test_roots_of_singular_matrices():
    X = np.random.default_rng(2).normal(size=(6, 4))
    C = X @ X.T
    U = semidefinite_root(C, EPS)
    assert_close(U @ U.T, C, 100 * EPS)
    assert_allclose(U[:, 4:], 0)


def test_paths_of_a_tree():
    """Every body once, parents before their limbs, at most log₂ N levels."""
    mech = zoo.humanoid().mechanism
    found = levels(mech)
    assert sorted(k for level in found for k in level.bodies) == list(range(1, len(mech.bodies)))
    assert len(found) <= np.log2(mech.n_bodies) + 1
    seen = {0}
    for level in found:
        assert {mech.bodies[level.bodies[row]].parent for row in level.starts} <= seen
        seen |= set(level.bodies)


def test_batches_go_state_by_state():
    robot, rng = zoo.quadruped(), np.random.default_rng(5)
    q = np.array([robot.random_configuration(rng) for _ in range(6)]).reshape(2, 3, -1)
    qd, tau = rng.normal(size=(2, 2, 3, robot.nv))
    q[1, 1, 3] = np.nan
    out = np.empty_like(tau)
    got = robot.forward_dynamics(q, qd, tau, method="scan", out=out)
    assert got is out
    assert np.isnan(got[1, 1]).all()
    got[1, 1] = 0
    expected = robot.forward_dynamics(q, qd, tau)
    expected[1, 1] = 0
    assert_close(got, expected, 1e5 * EPS)
    single = hinge.Robot(robot.mechanism, dtype=np.float32)
    got = single.forward_dynamics(q[0, 0], qd[0, 0], tau[0, 0], method="scan")
    assert got.dtype == np.float32
    assert_close(got, expected[0, 0], 1e-3)


def test_what_scans_refuse():
    arm = zoo.arm(3)
    q, qd, tau = np.zeros((3, 3))
    with pytest.raises(ArgumentError, match="method is 'articulated'; expected one of 'sweep'"):
        arm.forward_dynamics(q, qd, tau, method="articulated")
    with pytest.raises(ArgumentError, match="expected one of 'articulated', 'conventional'"):
        arm.forward_dynamics_derivatives(q, qd, tau, method="scan")
    follows = ROBOTS["gripper"]
    with pytest.raises(ArgumentError, match="joints mimic others, which a scan does not know"):
        follows.forward_dynamics(follows.neutral(), *np.zeros((2, follows.nv)), method="scan")
    open_ = hinge.Robot(arm.mechanism, parameters=("gravity",))
    with pytest.raises(ArgumentError, match="gravity comes with each sample"):
        open_.forward_dynamics(q, qd, tau, gravity=np.zeros(3), method="scan")
    loose = hinge.MechanismBuilder("loose")
    loose.add("link", "world", hinge.Revolute(axis=(0, 0, 1)), "joint")
    with pytest.raises(SingularError, match="joint"):
        hinge.Robot(loose.build()).forward_dynamics([0.0], [0.0], [1.0], method="scan")
    assert "by scans" in arm.explain("forward_dynamics", method="scan")


ALONG = ["rigid_step", "rigid_step", "velocity_step", "force_step", "element_step"]
ALONG += ["articulated_step", "change_step", "acceleration_step"]


def work(kernel):
    return kernel.ops.multiplications + kernel.ops.additions


def test_the_page_counts_as_the_kernels_do():
    """The sweep a body, steps along a stretch a degree of freedom, a product."""
    snake = zoo.snake(200)
    scan = ByScan(snake, "forward_dynamics", ("q", "qd", "tau"), {})
    along = sum(work(scan.way.steps.kernel(getattr(log_depth, fn))) for fn in ALONG)
    sweep = work(snake.kernel("forward_dynamics", "q", "qd", "tau")) // 200
    page = (DOCS / "theory" / "log_depth.md").read_text()
    told = [int(x) for x in re.findall(r"^\| .* \| (\d+) \|$", page, re.M)]
    assert told == [sweep, along, work(scan.way.steps.product)]
