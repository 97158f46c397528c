"""Functions of hinge under JAX's transformations."""

import numpy as np
import pytest

import hinge

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
check_grads = pytest.importorskip("jax.test_util", reason="JAX is not installed").check_grads

ARM = hinge.zoo.arm(3)
LEGS = hinge.zoo.quadruped()
ROBOTS = [ARM, LEGS]


@pytest.fixture(autouse=True)
def in_double():
    with jax.enable_x64(True):
        yield


def states(robot, *lead):
    rng = np.random.default_rng(5)
    rates = rng.normal(size=(2, *lead, robot.nv))
    return robot.random_configuration(rng, lead), *rates


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_batches_are_the_kernels_own(robot):
    """By any nesting of vmap, and as leading shapes; what is shared is not copied."""
    f, (q, qd, tau) = hinge.jax.robot(robot).forward_dynamics, states(robot, 4, 5)
    expected = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_array_equal(f(q, qd, tau), expected)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(q, qd, tau), expected)
    # over the columns of q, then over the rows of all
    inner = jax.vmap(jax.vmap(f, (0, None, None)), (0, 0, None), 1)
    found = inner(q, qd[:, 0], tau[0, 0])
    other = robot.forward_dynamics(q, qd[:, :1], tau[0, 0])
    np.testing.assert_array_equal(found, np.swapaxes(other, 0, 1))
    shared = jax.vmap(f, (0, None, None))
    text = jax.jit(shared).lower(q[0], qd[0, 0], tau[0, 0]).as_text()
    assert "broadcast" not in text
    np.testing.assert_array_equal(
        shared(q[0], qd[0, 0], tau[0, 0]), robot.forward_dynamics(q[0], qd[0, 0], tau[0, 0])
    )


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_jacobians_are_matrices_of_the_recursions(robot):
    """Both modes, along coordinates: as many columns as there are of them."""
    f, (q, qd, tau) = hinge.jax.robot(robot).forward_dynamics, states(robot)
    d = robot.forward_dynamics_derivatives(q, qd, tau)
    for mode in (jax.jacfwd, jax.jacrev):
        J, Jd, Jt = mode(f, (0, 1, 2))(q, qd, tau)
        assert J.shape == (robot.nv, robot.nq)
        np.testing.assert_allclose(Jd, d.dqd, atol=1e-11)
        np.testing.assert_allclose(Jt, d.dtau, atol=1e-11)
        moved = jax.vmap(lambda dv: robot_step(robot, q, dv), out_axes=1)(np.eye(robot.nv))
        np.testing.assert_allclose(J @ moved, d.dq, atol=1e-9)
    many = states(robot, 6)
    each = np.stack([jax.jacrev(f)(*(x[i] for x in many)) for i in range(6)])
    np.testing.assert_allclose(jax.vmap(jax.jacrev(f))(*many), each, atol=1e-11)
    np.testing.assert_allclose(jax.vmap(jax.jacfwd(f))(*many), each, atol=1e-11)


def robot_step(robot, q, dv):
    """The change of coordinates along a tangent."""
    integrate = hinge.jax.robot(robot).integrate
    return jax.jvp(lambda dv: integrate(q, dv), (np.zeros(robot.nv),), (dv,))[1]


def test_one_direction_takes_no_matrices():
    """A gradient is one backward sweep, a Jacobian the recursion's matrices."""
    f, (q, qd, tau) = hinge.jax.robot(LEGS).forward_dynamics, states(LEGS)
    nv = LEGS.nv
    gradient = str(jax.make_jaxpr(jax.grad(lambda q: f(q, qd, tau).sum()))(q))
    jacobian = str(jax.make_jaxpr(jax.jacrev(lambda q: f(q, qd, tau)))(q))
    assert f"f64[{nv},{nv}]" not in gradient and f"f64[{nv},{nv}]" in jacobian


def test_the_length_of_a_quaternion_makes_no_difference():
    f, (q, qd, tau) = hinge.jax.robot(LEGS).forward_dynamics, states(LEGS)
    along = np.zeros(LEGS.nq)
    along[3:7] = q[3:7]
    _, change = jax.jvp(lambda q: f(q, qd, tau), (q,), (along,))
    np.testing.assert_allclose(change, 0, atol=1e-10)
    longer = q.copy()
    longer[3:7] *= 2
    J, other = jax.jacfwd(f)(q, qd, tau), jax.jacfwd(f)(longer, qd, tau)
    np.testing.assert_allclose(other[:, 3:7], J[:, 3:7] / 2, atol=1e-10)


def test_hessians_are_second_derivatives():
    f, (q, qd, tau) = hinge.jax.robot(ARM).inverse_dynamics, states(ARM)
    second = ARM.inverse_dynamics_derivatives(q, qd, tau, order=2)
    H = jax.hessian(f, (0, 1))(q, qd, tau)
    np.testing.assert_allclose(H[0][0], second.dq_dq, atol=1e-10)
    np.testing.assert_allclose(H[0][1], second.dq_dqd, atol=1e-10)
    np.testing.assert_allclose(H[1][1], second.dqd_dqd, atol=1e-10)


def test_scan_and_its_gradient():
    """A motion step by step, and how its end changes."""
    dyn, (q, qd, tau) = hinge.jax.robot(ARM), states(ARM)

    def end(tau):
        def step(state, _):
            q, qd = state
            qd = qd + 0.01 * dyn.forward_dynamics(q, qd, tau)
            return (dyn.integrate(q, 0.01 * qd), qd), None

        return jax.lax.scan(step, (q, qd), None, length=20)[0][0]

    q1, qd1 = q, qd
    for _ in range(20):
        qd1 = qd1 + 0.01 * ARM.forward_dynamics(q1, qd1, tau)
        q1 = ARM.integrate(q1, 0.01 * qd1)
    np.testing.assert_allclose(jax.jit(end)(tau), q1, atol=1e-12)
    assert check_grads(end, (tau,), order=1) is None


def test_shard_map_splits_a_batch():
    mesh = jax.make_mesh((1,), ("samples",), axis_types=(jax.sharding.AxisType.Auto,))
    spec, none = jax.sharding.PartitionSpec("samples"), jax.sharding.PartitionSpec()
    q, qd, tau = states(ARM, 8)
    f = jax.shard_map(
        jax.vmap(hinge.jax.robot(ARM).forward_dynamics, (0, 0, None)),
        mesh=mesh,
        in_specs=(spec, spec, none),
        out_specs=spec,
    )
    np.testing.assert_array_equal(jax.jit(f)(q, qd, tau[0]), ARM.forward_dynamics(q, qd, tau[0]))
    gradient = jax.jit(jax.grad(lambda tau: f(q, qd, tau).sum()))(tau[0])
    Minv = ARM.mass_matrix_inverse(q).sum(axis=(0, 1))
    np.testing.assert_allclose(gradient, Minv, rtol=1e-10)


def test_kernels_of_ones_own():
    kernel = ARM.compile(lambda q, k: (ARM.alg.potential_energy(q) * k, q * k))
    f, (q, _, _) = hinge.jax.function(kernel), states(ARM)
    for a, b in zip(f(q, 2.0), kernel(q, 2.0), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(f(q, k=2.0)[1], 2 * q)
    assert check_grads(f, (q, 2.0), order=2) is None
    power = hinge.jax.function(hinge.compile(lambda x: x @ x, x=(3,)))
    assert power(np.ones(3)) == 3 and jax.grad(power)(np.ones(3)).tolist() == [2, 2, 2]


def test_numbers_of_the_mechanism_are_arguments():
    """Gradients with respect to masses, per sample."""
    open_arm = hinge.Robot(ARM.mechanism, parameters=("inertia", "gravity"))
    f, (q, qd, qdd) = hinge.jax.robot(open_arm).inverse_dynamics, states(ARM)
    inertia = hinge.model.parameters.parameters(ARM.mechanism)["inertia"]
    Y = ARM.torque_regressor(q, qd, qdd)
    J = jax.jacfwd(lambda x: f(q, qd, qdd, inertia=x))(inertia)
    assert J.shape == (3, 3, 10)
    np.testing.assert_allclose(
        f(q, qd, qdd, inertia=inertia), open_arm.inverse_dynamics(q, qd, qdd), atol=1e-12
    )
    assert np.linalg.matrix_rank(np.asarray(J).reshape(3, 30)) == np.linalg.matrix_rank(Y)
    many = jax.vmap(lambda g: f(q, qd, qdd, gravity=g))(np.eye(3))
    np.testing.assert_allclose(many, open_arm.inverse_dynamics(q, qd, qdd, gravity=np.eye(3)))


def test_single_precision():
    robot = hinge.Robot(ARM.mechanism, dtype="float32")
    q, qd, tau = (np.float32(x) for x in states(ARM))
    with jax.enable_x64(False):
        f = hinge.jax.robot(robot).forward_dynamics
        result = f(q, qd, tau)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, robot.forward_dynamics(q, qd, tau), rtol=1e-5)
        assert jax.jacrev(f)(q, qd, tau).dtype == np.float32


def test_long_mechanisms():
    """Loops over bodies, matrices by columns, and gradients of both."""
    snake = hinge.zoo.snake(45)
    dyn, (q, qd, tau) = hinge.jax.robot(snake), states(snake)
    f = dyn.forward_dynamics
    np.testing.assert_allclose(f(q, qd, tau), snake.forward_dynamics(q, qd, tau), rtol=1e-9)
    np.testing.assert_allclose(
        dyn.forward_dynamics_derivatives(q, qd, tau).dtau,
        snake.forward_dynamics_derivatives(q, qd, tau).dtau,
        rtol=1e-6,
        atol=1e-9,
    )
    regressor = dyn.torque_regressor(q, qd, tau, joint_terms="damping")
    np.testing.assert_allclose(
        regressor, snake.torque_regressor(q, qd, tau, joint_terms="damping"), atol=1e-10
    )
    J = jax.jacfwd(f, 2)(q, qd, tau)
    np.testing.assert_allclose(J, snake.mass_matrix_inverse(q), rtol=1e-6, atol=1e-9)


def test_one_sample_of_a_large_robot_comes_by_parts():
    """Three kernels and products instead of one that is slow to make, as the robot does it."""
    robot = hinge.zoo.humanoid()
    dyn, (q, qd, tau) = hinge.jax.robot(robot), states(robot)
    assert robot.nv in range(30, 49)
    expected = robot.forward_dynamics_derivatives(q, qd, tau)
    found = dyn.forward_dynamics_derivatives(q, qd, tau)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(b).max())
