"""Paper D, lemma 2.2: sensitivities, Christoffel symbols and curvature of the mass metric."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, ModelError, zoo
from mechanisms import EPS, ROBOTS, along, assert_close, complex_step, random_chain, random_state


def chart_tree(seed=0):
    """A branched mechanism of hinges, sliders, screws and universal joints with armature."""
    rng = np.random.default_rng(seed)
    b = hinge.MechanismBuilder("chart tree")
    joints = [
        hinge.Revolute(rng.normal(size=3), armature=0.1),
        hinge.Prismatic(rng.normal(size=3), armature=0.2),
        hinge.Universal(rng.normal(size=3), rng.normal(size=3)),
        hinge.Helical(rng.normal(size=3), 0.3),
        hinge.Cylindrical(rng.normal(size=3), armature=(0.1, 0.3)),
    ]
    for i, (joint, parent) in enumerate(zip(joints, (None, 0, 0, 1, 2), strict=True)):
        placement = hinge.Transform(translation=0.4 * rng.normal(size=3))
        inertia = hinge.Inertia(rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), 0.1 * np.eye(3))
        parent = "world" if parent is None else f"body{parent}"
        b.add(f"body{i}", parent, joint, placement=placement, inertia=inertia)
    return hinge.Robot(b.build())


TREE = chart_tree()


def planar_arm(offset=0.25):
    """Two bodies in the plane; offset: of the second centre of mass from its joint, along x."""
    b = hinge.MechanismBuilder("planar", gravity=(0, 0, 0))
    b.add(
        "one", "world", hinge.Revolute(), inertia=hinge.Inertia(1.0, (0.3, 0, 0), 0.1 * np.eye(3))
    )
    body = hinge.Inertia(2.0, (offset, 0, 0), 0.2 * np.eye(3))
    elbow = hinge.Transform(translation=(0.7, 0, 0))
    b.add("two", "one", hinge.Revolute(), placement=elbow, inertia=body)
    return hinge.Robot(b.build())


def gantry(*axes):
    b = hinge.MechanismBuilder("gantry")
    parent = "world"
    for i, axis in enumerate(axes):
        body = hinge.Inertia(1.0 + i, (0.1, 0, 0), np.eye(3))
        b.add(f"body{i}", parent, hinge.Prismatic(axis), inertia=body)
        parent = f"body{i}"
    return hinge.Robot(b.build())


def polar(arm_inertia):
    """A point mass on a slider on a hinge."""
    b = hinge.MechanismBuilder("polar", gravity=(0, 0, 0))
    b.add("arm", "world", hinge.Revolute(armature=arm_inertia))
    reach = hinge.Transform(translation=(0.8, 0, 0))
    b.add("mass", "arm", hinge.Prismatic((1, 0, 0)), placement=reach, inertia=hinge.Inertia(1.5))
    return hinge.Robot(b.build())


# sensitivities


@pytest.mark.parametrize("name", ROBOTS)
def test_sensitivity_of_the_mass_matrix(name):
    robot = ROBOTS[name]
    s = random_state(robot, 1)
    got = robot.alg.mass_matrix_sensitivity(s.q)
    assert got.shape == (robot.nv,) * 3
    for i, e in enumerate(np.eye(robot.nv)):
        path = along(robot, s.q, e)
        expected = complex_step(lambda h, path=path: robot.alg.mass_matrix(path(h)))
        assert_close(got[:, :, i], expected, 100 * EPS)


@pytest.mark.parametrize("robot", [TREE, zoo.tree(3, 6), ROBOTS["gripper"]], ids=lambda r: r.name)
def test_second_sensitivity_of_the_mass_matrix(robot):
    """Along joint tangents, in the order of the directions where they do not commute."""
    s = random_state(robot, 1)
    got = robot.alg.mass_matrix_second_sensitivity(s.q)
    for j, e in enumerate(np.eye(robot.nv)):
        path = along(robot, s.q, e)
        expected = complex_step(lambda h, path=path: robot.alg.mass_matrix_sensitivity(path(h)))
        assert_close(got[..., j], expected, 200 * EPS)


def test_rate_of_energy_from_momentum():
    """q̇ᵀ ∂_i M q̇ = −2 s ·(V⁺ ×* h), s the motion of joint i and h the momentum beyond it."""
    from hinge.algebra.spatial import cross_force

    robot = ROBOTS["arm"]
    s, mech = random_state(robot, 2), robot.mechanism
    slopes = np.einsum("abi,a,b->i", robot.alg.mass_matrix_sensitivity(s.q), s.qd, s.qd)
    H, phi = mech.H(s.q), mech.phi(s.q)
    V, h = mech.slots(2)
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ s.qd[k - 1 : k]
        h[k] = mech.M[k] @ V[k]
    for p, k in mech.inward():
        h[p] = h[p] + phi[k] @ h[k]
    for p, k in mech.outward():
        expected = -2 * H[k] @ cross_force(phi[k].T @ V[p], h[k])
        assert_close(slopes[k - 1 : k], expected, 500 * EPS)


# symbols and curvature


def test_christoffel_symbols_give_the_coriolis_forces():
    s = random_state(TREE, 0)
    first, second = (TREE.alg.christoffel(s.q, kind) for kind in (1, 2))
    bias = TREE.alg.bias_forces(s.q, s.qd) - TREE.alg.gravity_forces(s.q)
    assert_close(np.einsum("ijk,i,j->k", first, s.qd, s.qd), bias, 500 * EPS)
    qdd = -np.linalg.solve(TREE.alg.mass_matrix(s.q), bias)
    assert_close(-np.einsum("lij,i,j->l", second, s.qd, s.qd), qdd, 5000 * EPS)


def test_symmetries_of_the_riemann_tensor():
    R = TREE.alg.curvature(random_state(TREE, 0).q)
    assert np.abs(R).max() > 0.1
    for other in (
        -R.transpose(1, 0, 2, 3),
        -R.transpose(0, 1, 3, 2),
        R.transpose(2, 3, 0, 1),
        -R.transpose(0, 2, 3, 1) - R.transpose(0, 3, 1, 2),
    ):
        assert_close(R, other, 1e4 * EPS)


@pytest.mark.parametrize(("nv", "count"), [(2, 1), (3, 6), (4, 20)])
def test_number_of_independent_components(nv, count):
    """N²(N²−1)/12, which N(N+1)/2 is for N = 3 only."""
    assert count == nv**2 * (nv**2 - 1) // 12
    rng = np.random.default_rng(0)
    robots = [random_chain(nv, rng) for _ in range(count + 6)]
    tensors = [r.alg.curvature(r.random_configuration(rng)).ravel() for r in robots]
    assert np.linalg.matrix_rank(np.array(tensors), tol=100 * EPS) == count


def test_curvature_of_the_planar_arm():
    """M = [[a + 2b c, e + b c], [·, e]]: R₁₂₁₂ = b c (e(a − e) − b²) / det M."""
    robot = planar_arm()
    q = np.array([0.4, 0.7])
    M, c = robot.alg.mass_matrix(q), np.cos(q[1])
    e = M[1, 1]
    b = (M[0, 1] - e) / c
    a = M[0, 0] - 2 * b * c
    expected = b * c * (e * (a - e) - b * b) / np.linalg.det(M)
    assert_close(robot.alg.curvature(q)[0, 1, 0, 1], expected, 100 * EPS)


# flatness: system → flat, total rates integrable
TABLE = {
    "gantry": (gantry((1, 0, 0), (0, 1, 0), (0, 0, 1)), True, True),
    "skewed gantry": (gantry((1, 0, 0), (1, 1, 0), (0.3, 1, 1)), True, True),
    "one hinge": (zoo.pendulum(1), True, True),
    "planar arm, centred": (planar_arm(offset=0.0), True, True),
    "cart and pole": (zoo.cartpole(), True, False),
    "polar, massless arm": (polar(0.0), True, False),
    "planar arm": (planar_arm(), False, False),
    "polar, arm with inertia": (polar(0.5), False, False),
    "spatial arm": (zoo.arm(3), False, False),
}


@pytest.mark.parametrize("name", TABLE)
def test_table_of_flatness(name):
    robot, flat, integrable = TABLE[name]
    report = robot.is_flat()
    assert (report.flat, report.integrable) == (flat, integrable), report
    assert bool(report) is flat and report.configurations == 4
    s = random_state(robot, 0)
    C = robot.alg.diagonal_coriolis(s.q, s.qd)
    assert bool(np.abs(C).max() < 10 * EPS) is integrable
    words = {
        (True, True): "C(q, ν) = 0",
        (True, False): "another factor of M has to be found",
        (False, False): "no coordinates",
    }
    assert words[flat, integrable] in str(report)


def test_flat_mechanism_moves_freely_in_the_right_coordinates():
    """Of the cart and pole the other Cholesky factor is a gradient, so that ϑ̈ = ℓ τ."""
    robot = zoo.cartpole()
    s = random_state(robot, 4)
    tau = s.qdd + robot.alg.gravity_forces(s.q)
    qdd = robot.alg.forward_dynamics(s.q, s.qd, tau)
    path = along(robot, s.q, s.qd)

    def lower_rates(h):
        M = robot.alg.mass_matrix(path(h))
        a, b, c = M[0, 0], M[1, 0], M[1, 1]
        m = np.array([[np.sqrt(a), 0], [b / np.sqrt(a), np.sqrt(c - b * b / a)]])
        return m.T @ (s.qd + h * qdd)

    m = np.linalg.cholesky(robot.alg.mass_matrix(s.q))
    assert_close(complex_step(lower_rates), np.linalg.solve(m, s.qdd), 100 * EPS)


def test_a_vanishing_coriolis_force_does_not_make_rates_integrable():
    """A ball with equal inertias: C = 0, and yet no coordinates have ω as their rates."""
    b = hinge.MechanismBuilder("ball")
    b.add("ball", "world", hinge.Spherical(), inertia=hinge.Inertia(1.0, about_com=np.eye(3)))
    robot = hinge.Robot(b.build())
    s = random_state(robot, 0)
    assert np.abs(robot.alg.diagonal_coriolis(s.q, s.qd)).max() < EPS
    with pytest.raises(ModelError, match=r"curvature of 'ball': joint 'ball_joint' is Spherical"):
        robot.curvature(s.q)


@pytest.mark.parametrize("joint", [hinge.Planar(), hinge.Free()])
@pytest.mark.parametrize("name", ["christoffel", "mass_factor_curl", "is_flat"])
def test_rates_that_are_not_of_coordinates_are_refused(name, joint):
    b = hinge.MechanismBuilder("loose")
    b.add("body", "world", joint, inertia=hinge.Inertia(1.0, about_com=np.eye(3)))
    robot = hinge.Robot(b.build())
    with pytest.raises(ModelError, match="build it from hinges and sliders"):
        getattr(robot, name)(robot.neutral())


def test_front_door():
    robot, s = zoo.arm(2), random_state(zoo.arm(2), 0)
    for name in (
        "mass_matrix_sensitivity",
        "mass_matrix_second_sensitivity",
        "christoffel",
        "curvature",
        "mass_factor_curl",
    ):
        assert_close(getattr(robot, name)(s.q), getattr(robot.alg, name)(s.q), 1000 * EPS)
    assert_close(robot.christoffel(s.q, kind=2), robot.alg.christoffel(s.q, 2), 1000 * EPS)
    twice = robot.curvature(np.array([s.q, s.q]))
    assert twice.shape == (2, 2, 2, 2, 2)
    assert_close(twice[1], robot.kernel("curvature", "q")(s.q), 1000 * EPS)
    with pytest.raises(ArgumentError, match="kind is 3; expected one of 1, 2"):
        robot.christoffel(s.q, kind=3)
    with pytest.raises(ArgumentError, match="tolerance is -1"):
        robot.is_flat(s.q, tolerance=-1)
    for none in (np.zeros((0, 2)), [s.q, [np.nan, 0.0]]):
        with pytest.raises(ArgumentError, match="configurations, of which .* are finite"):
            robot.is_flat(none)


def test_no_verdict_without_a_mass_matrix_to_judge():
    """A joint that moves no inertia: NaN must not pass for flat."""
    b = hinge.MechanismBuilder("whip")
    b.add("a", "world", hinge.Revolute(), inertia=hinge.Inertia(1.0, (1, 0, 0)))
    b.add("b", "a", hinge.Revolute(), placement=hinge.Transform(translation=(1, 0, 0)))
    robot = hinge.Robot(b.build())
    for call in (robot.is_flat, robot.curvature):
        with pytest.raises(hinge.SingularError, match="joint 'b_joint' moves no inertia here"):
            call(np.ones(2))
    assert np.isnan(robot.curvature(np.ones((3, 2)))).all()
    empty = ROBOTS["empty"]
    assert empty.is_flat().flat and empty.curvature(np.zeros((3, 0))).shape == (3, 0, 0, 0, 0)
