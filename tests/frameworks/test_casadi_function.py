"""Kernels as functions of CasADi: their numbers, derivatives and sparsities, in both ways."""

import sys
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.errors import ArgumentError, HingeError
from mechanisms import BODY, JOINTS, empty

casadi = pytest.importorskip("casadi", reason="hinge.casadi needs casadi")

DYNAMICS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}


def mixed(*kinds):
    """A chain of joints of these kinds."""
    b = hinge.MechanismBuilder("mixed")
    for i, kind in enumerate(kinds):
        place = hinge.Transform(translation=(0.1, 0.2, 0.3))
        parent = f"body{i - 1}" if i else "world"
        b.add(f"body{i}", parent, JOINTS[kind], placement=place, inertia=BODY)
    return hinge.Robot(b.build())


def state(robot, seed=0):
    """A configuration whose quaternions are not of unit length, velocities, forces."""
    rng = np.random.default_rng(seed)
    q = robot.random_configuration(rng)
    for _, at in robot._quaternions():
        q[at] *= 1.3
    return q, *rng.normal(size=(2, robot.nv))


def complex_steps(fn, arguments):
    """∂f/∂x of each argument x, exact."""
    for i, x in enumerate(arguments):
        columns = []
        for j in range(len(x)):
            moved = [y.astype(complex) for y in arguments]
            moved[i][j] += 1e-30j
            columns.append(np.ravel(fn(*moved)).imag / 1e-30)
        yield np.array(columns).T


@pytest.fixture(params=["library", "callback"])
def way(request, monkeypatch):
    """Machine code by a shared library, or Python."""
    if request.param == "callback":
        monkeypatch.setattr(
            import_module("hinge.casadi.function"), "external", lambda piece, orders: None
        )
    elif not sys.platform.startswith("linux"):
        pytest.skip("shared libraries are made on Linux")
    return request.param


def test_it_is_what_was_asked_for(way):
    robot = zoo.arm(2)
    f = hinge.casadi.function(robot.kernel("forward_dynamics", "q", "qd", "tau"))
    assert isinstance(f, casadi.Function)
    assert f is hinge.casadi.function(robot.kernel("forward_dynamics", "q", "qd", "tau"))
    assert f.class_name() == {"library": "External", "callback": "CallbackInternal"}[way]
    assert f.name() == "forward_dynamics" and f.name_in() == ["q", "qd", "tau"]
    given = state(robot)
    assert np.array_equal(f(*given).full().ravel(), robot.forward_dynamics(*given))
    # an argument that CasADi knows to be zero comes as a null pointer
    nothing = casadi.DM(2, 1)
    found = f(given[0], nothing, given[2])
    assert np.array_equal(found.full().ravel(), robot.forward_dynamics(given[0], [0, 0], given[2]))


@pytest.mark.parametrize("name", DYNAMICS)
@pytest.mark.parametrize("kinds", [("revolute", "planar"), ("free", "revolute"), ("spherical",)])
def test_jacobians_are_by_coordinates(name, kinds):
    robot = mixed(*kinds)
    given = state(robot)
    f = hinge.casadi.function(robot.kernel(name, *DYNAMICS[name]))
    found = f.jacobian()(*given, 0)
    wanted = complex_steps(partial(getattr(hinge.algorithms, name), robot.mechanism), given)
    for J, exact in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.array(J), exact, rtol=0, atol=1e-12 * np.abs(exact).max())


def weighted(fn, robot, w, kind):
    """Σ w f of symbols, and the symbols."""
    sizes = robot.nq, robot.nv, robot.nv
    x = kind.sym("x", sum(sizes))
    parts = casadi.vertsplit(x, [0, *np.cumsum(sizes)])
    return x, casadi.dot(w, fn(*parts))


@pytest.mark.parametrize("name", DYNAMICS)
@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("planar",), ("spherical",)])
def test_hessians_are_those_of_casadi(name, kinds, way):
    robot = mixed(*kinds)
    f = hinge.casadi.function(robot.kernel(name, *DYNAMICS[name]))
    plain = getattr(robot.alg, name)

    def symbolic(*parts):
        return casadi.vertcat(*plain(*(np.array(casadi.vertsplit(p)) for p in parts)))

    w, found = np.array([1.5, -0.4, 0.7])[: robot.nv], []
    for fn, kind in ((f, casadi.MX), (symbolic, casadi.SX)):
        x, y = weighted(fn, robot, w, kind)
        H = casadi.Function("H", [x], list(casadi.hessian(y, x)))
        found.append([np.array(m) for m in H(np.concatenate(state(robot)))])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11 * np.abs(theirs).max())


def test_arrays_in_another_order():
    """The recursions' derivatives are found by the names of arrays."""
    robot = mixed("revolute", "planar")
    q, qd, tau = state(robot)
    x = casadi.MX.sym("x", 4)
    found = []
    for arrays, given in ((("q", "qd", "tau"), (q, x, tau)), (("tau", "q", "qd"), (tau, q, x))):
        f = hinge.casadi.function(robot.kernel("forward_dynamics", *arrays))
        H = casadi.Function("H", [x], list(casadi.hessian(casadi.sum1(f(*given)), x)))
        found.append([np.array(m) for m in H(qd)])
    for a, b in zip(*found, strict=True):
        assert np.abs(a).max() > 0 and np.array_equal(a, b)


def test_samples_are_columns_and_jacobians_block_diagonal(way):
    robot, n = zoo.arm(3), 11
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    f, one = hinge.casadi.function(kernel, samples=n), hinge.casadi.function(kernel)
    given = np.random.default_rng(0).normal(size=(3, 3, n))
    assert np.array_equal(np.array(f(*given)), np.array(one.map(n)(*given)))
    J, blocks = f.jacobian()(*given, 0), [one.jacobian()(*x, 0) for x in given.transpose(2, 0, 1)]
    for i, found in enumerate(J):
        wanted = casadi.diagcat(*(b[i] for b in blocks))
        assert found.sparsity() == wanted.sparsity()
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-13, atol=1e-13)


def test_zeros_of_jacobians_are_known():
    robot = zoo.pendulum(3)
    f = hinge.casadi.function(robot.kernel("gravity_forces", "q"))
    x = casadi.MX.sym("x", 3)
    # all joints are parallel and level: what the last one bears does not depend on how q is split
    assert casadi.jacobian(f(x), x).sparsity() == f.jacobian().sparsity_out(0)
    g = hinge.compile(lambda x: np.array([x[0] * x[1], x[2], 4.0]), x=(3,))
    assert hinge.casadi.function(g).jacobian().sparsity_out(0).nnz() == 3


def _my__function(x):
    return x


def test_matrices_lie_as_casadi_has_them(way):
    @partial(hinge.compile, x=(3,), A=(2, 3), s=())
    def product(x, A, s):
        return A @ x, np.outer(x, A[0]), s * s, np.stack([A, A + s])

    assert hinge.casadi.function(hinge.compile(_my__function, x=())).name() == "my_function"
    f = hinge.casadi.function(product, name="products")
    assert str(f).startswith("products:(x[3],A[2x3],s)->(o0[2],o1[3x3],o2,o3[4x3])")
    rng = np.random.default_rng(0)
    x, A, s = rng.normal(size=3), rng.normal(size=(2, 3)), 0.7
    for ours, numbers in zip(f(x, A, s), product(x, A, s), strict=True):
        np.testing.assert_allclose(np.array(ours), numbers.reshape(ours.shape), rtol=1e-14)
    J = f.jacobian()(x, A, s, 0, 0, 0, 0)
    # ∂(A x)/∂A, column after column
    np.testing.assert_allclose(np.array(J[1]), np.kron(x, np.eye(2)), rtol=1e-14)
    several = hinge.casadi.function(product, samples=2)
    wide = several(np.c_[x, x], np.c_[A, -A], np.array([[s, s]]))
    assert np.array_equal(np.array(wide[0])[:, 1], -np.array(wide[0])[:, 0])


def test_what_is_not_wanted_is_left_out_and_constants_have_no_derivatives(way):
    two = hinge.compile(lambda x: (x * x, np.ones(2)), x=(3,))
    f = hinge.casadi.function(two, samples=2)
    x = casadi.MX.sym("x", 3, 2)
    first = casadi.Function("first", [x], [f(x)[0]])
    assert np.array_equal(np.array(first(np.array([[1, 2]] * 3))), [[1, 4]] * 3)
    J = casadi.Function("J", [x], [casadi.jacobian(f(x)[1], x)])
    assert J.sparsity_out(0).nnz() == 0 and J.size_out(0) == (4, 6)
    fixed = hinge.casadi.function(hinge.compile(lambda x: np.ones(2), x=(3,)))
    assert np.array_equal(fixed.jacobian()(0, 0).full().ravel(), np.zeros(6))


def test_threads_of_casadi(way):
    if way == "callback":
        pytest.skip("Python is one thread at a time")
    robot, n = zoo.arm(3), 64
    f = hinge.casadi.function(robot.kernel("mass_matrix", "q"))
    q = np.random.default_rng(0).normal(size=(3, n))
    assert np.array_equal(np.array(f.map(n, "thread", 2)(q)), np.array(f.map(n)(q)))


def test_long_mechanisms_have_functions_but_no_derivatives():
    robot = zoo.snake(45)
    f = hinge.casadi.function(robot.kernel("inverse_dynamics", "q", "qd", "qdd"))
    given = state(robot)
    assert np.array_equal(f(*given).full().ravel(), robot.inverse_dynamics(*given))
    with pytest.raises(RuntimeError, match="[Jj]acobian"):
        f.jacobian()


def test_where_libraries_cannot_be_loaded_python_is_called(monkeypatch):
    monkeypatch.setattr(import_module("hinge.casadi.library"), "shared_library", lambda goals: b"")
    f = hinge.casadi.function(zoo.arm(2).kernel("mass_matrix", "q"))
    assert f.class_name() == "CallbackInternal" and f(0).shape == (2, 2)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are made on Linux")
@pytest.mark.parametrize("what", ["jacobian_nodes", "Kernel"])
def test_what_goes_wrong_inside_of_casadi_is_shown_and_refused(what, monkeypatch, capsys):
    pieces = import_module("hinge.casadi.pieces")
    f = hinge.casadi.function(hinge.compile(lambda x: x * x, x=(2,)), name="squares")

    def fail(*given, **named):
        raise MemoryError("no room for derivatives")

    monkeypatch.setattr(pieces, what, fail)
    with pytest.raises(RuntimeError):
        f.jacobian()
    assert "MemoryError: no room for derivatives" in capsys.readouterr().err


def test_a_robot_without_joints():
    f = hinge.casadi.function(empty().kernel("inverse_dynamics", "q", "qd", "qdd"))
    assert f(*np.zeros((3, 0, 1))).shape == (0, 1)


def test_what_makes_no_sense_is_refused(monkeypatch):
    kernel = zoo.arm(2).kernel("mass_matrix", "q")
    with pytest.raises(ArgumentError, match="got a function; expected a kernel"):
        hinge.casadi.function(lambda q: q)
    for samples in (0, 2.5):
        with pytest.raises(ArgumentError, match=f"samples is {samples}"):
            hinge.casadi.function(kernel, samples=samples)
    single = hinge.Robot(zoo.arm(2).mechanism, dtype=np.float32).kernel("mass_matrix", "q")
    with pytest.raises(ArgumentError, match="computes in float32, CasADi in float64"):
        hinge.casadi.function(single)
    elsewhere = hinge.Kernel(kernel.program, "mass", backend=SimpleNamespace())
    with pytest.raises(ArgumentError, match="mass is not for a CPU"):
        hinge.casadi.function(elsewhere)
    with pytest.raises(ArgumentError, match="name is 'my f'"):
        hinge.casadi.function(kernel, name="my f")
    long = zoo.snake(45).kernel("inverse_dynamics", "q", "qd", "qdd", "f_ext")
    with pytest.raises(ArgumentError, match="a loop over bodies with matrices"):
        hinge.casadi.function(long)
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(HingeError, match=r"needs casadi; pip install"):
        hinge.casadi.function(kernel)
