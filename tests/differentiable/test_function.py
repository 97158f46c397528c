"""Kernels and their derivatives: against complex steps and differences, and against each other."""

import numpy as np
import pytest

import hinge
from hinge.differentiable import of_kernel, of_robot
from hinge.errors import ArgumentError
from hinge.graph.loop import LoopProgram
from hinge.graph.program import Program
from hinge.specialize import by_coordinates

ARM, FLOATING = hinge.zoo.arm(4), hinge.zoo.space_arm(2)
ROBOTS = [ARM, FLOATING]

# algorithms with the arrays and settings of a call
CALLS = {
    "inverse_dynamics": (("q", "qd", "qdd", "f_ext"), {}),
    "forward_dynamics": (("q", "qd", "tau", "f_ext"), {}),
    "mass_matrix": (("q",), {}),
    "mass_matrix_inverse": (("q",), {}),
    "bias_forces": (("q", "qd"), {}),
    "poses": (("q",), {}),
    "center_of_mass": (("q",), {}),
    "momentum": (("q", "qd"), {}),
    "kinetic_energy": (("q", "qd"), {}),
    "potential_energy": (("q",), {}),
    "integrate": (("q", "dv"), {}),
    "inverse_dynamics_derivatives": (("q", "qd", "qdd"), {}),
}


def sample(robot, arrays, seed=0):
    rng = np.random.default_rng(seed)
    # a quaternion need not be of unit length
    made = {
        "q": 1.3 * robot.random_configuration(rng),
        "f_ext": rng.normal(size=(robot.n_bodies, 6)),
    }
    return [made[a] if a in made else rng.normal(size=robot.nv) for a in arrays]


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def dot(xs, ys):
    return sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_are_those_of_the_algorithm(robot, name):
    arrays, static = CALLS[name]
    f, x = of_robot(robot, name, arrays, static), sample(robot, arrays)
    rng = np.random.default_rng(1)
    dots = [rng.normal(size=a.shape) for a in x]
    y = as_tuple(f.kernel(*x))
    known = y if f.uses_results else ()
    wrt = range(len(x))
    push = f.jvp(wrt).kernel(*x, *known, *dots)
    algorithm = getattr(robot.alg, name)
    step = [a + 1e-30j * d for a, d in zip(x, dots, strict=True)]
    exact = as_tuple(algorithm(**dict(zip(arrays, step, strict=True)), **static))
    for mine, there in zip(push, exact, strict=True):
        change = np.imag(there) / 1e-30
        assert np.abs(mine - change).max() <= 1e-10 * max(1, np.abs(change).max())
    bars = [rng.normal(size=np.shape(a)) for a in y]
    pull = f.vjp(wrt).kernel(*x, *known, *bars)
    assert dot(bars, push) == pytest.approx(dot(dots, pull), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_second_derivatives(name):
    robot, (arrays, _) = FLOATING, CALLS[name]
    arrays = arrays[:3]
    f, x = of_robot(robot, name, arrays), sample(robot, arrays)
    w, direction = np.random.default_rng(2).normal(size=(2, robot.nv))

    def gradient(qd):
        given = [x[0], qd, x[2]]
        known = [f.kernel(*given)] if f.uses_results else []
        return f.vjp((0,)).kernel(*given, *known, w)[0]

    along = f.vjp((0,)).jvp(range(4 if f.uses_results else 3))
    still = [np.zeros_like(a) for a in x]
    still[1] = direction
    known = [f.kernel(*x)] if f.uses_results else []
    moved = [f.jvp((1,)).kernel(*x, *known, direction)[0]] if f.uses_results else []
    mine = along.kernel(*x, *known, w, *still, *moved)[0]
    h = 1e-5
    there = (gradient(x[1] + h * direction) - gradient(x[1] - h * direction)) / (2 * h)
    assert np.abs(mine - there).max() <= 1e-7 * np.abs(there).max()


def test_along_a_quaternion_nothing_changes():
    f, (q, qd) = of_robot(FLOATING, "momentum", ("q", "qd")), sample(FLOATING, ("q", "qd"))
    along = np.zeros(FLOATING.nq)
    along[3:7] = q[3:7]
    (change,) = f.jvp((0,)).kernel(q, qd, along)
    assert np.abs(change).max() <= 100 * np.finfo(float).eps


def test_long_mechanisms_are_differentiated_too():
    robot = hinge.zoo.snake(44)
    f, x = (
        of_robot(robot, "inverse_dynamics", ("q", "qd", "qdd")),
        sample(robot, ("q", "qd", "qdd")),
    )
    d, w = np.random.default_rng(3).normal(size=(2, robot.nv))
    zero = np.zeros(robot.nv)
    (bar,) = f.vjp((1,)).kernel(*x, w)
    assert w @ robot.inverse_dynamics_jvp(*x, zero, d, zero) == pytest.approx(bar @ d, rel=1e-9)


@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_first_derivatives_of_long_mechanisms_are_loops(name, monkeypatch):
    """Both of them, by coordinates, against complex steps; by forces on bodies they are not."""
    monkeypatch.setattr(by_coordinates, "LEAST_BODIES", 0)
    third = "qdd" if name == "inverse_dynamics" else "tau"
    arrays = ("q", "f_ext", "qd", third)
    robot, rng = hinge.Robot(hinge.zoo.snake(44).mechanism), np.random.default_rng(4)
    f, x, wrt = of_robot(robot, name, arrays), sample(robot, arrays), (0, 2, 3)
    known = (f.kernel(*x),) if f.uses_results else ()
    dots, w = [rng.normal(size=x[i].shape) for i in wrt], rng.normal(size=robot.nv)
    push, pull = f.jvp(wrt), f.vjp(wrt)
    assert isinstance(push.kernel.program, LoopProgram)
    assert isinstance(pull.kernel.program, LoopProgram)
    (change,), back = push.kernel(*x, *known, *dots), pull.kernel(*x, *known, w)
    assert w @ change == pytest.approx(dot(back, dots), rel=1e-9)
    assert isinstance(f.vjp((1,)).kernel.program, Program)
    step = [a + 1e-30j * d for a, d in zip(x, [dots[0], 0, *dots[1:]], strict=True)]
    expected = getattr(robot.alg, name)(step[0], step[2], step[3], step[1]).imag / 1e-30
    assert change == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())


def test_second_derivatives_of_long_mechanisms_come_from_the_graph(monkeypatch):
    monkeypatch.setattr(by_coordinates, "LEAST_BODIES", 0)
    robot, rng = hinge.Robot(hinge.zoo.snake(44).mechanism), np.random.default_rng(5)
    arrays = ("q", "qd", "qdd")
    first, x = of_robot(robot, "inverse_dynamics", arrays).vjp((1,)), sample(robot, arrays)
    w, d = rng.normal(size=(2, robot.nv))
    (change,) = first.jvp((1,)).kernel(*x, w, d)
    # τ is quadratic in the rates: differences of its gradient are exact
    there, back = (first.kernel(x[0], x[1] + e * d, x[2], w)[0] for e in (0.5, -0.5))
    assert isinstance(first.kernel.program, LoopProgram)
    assert change == pytest.approx(there - back, rel=1e-8, abs=1e-9 * np.abs(change).max())


def test_a_kernel_of_ones_own_and_second_order_results():
    kernel = hinge.compile(lambda x, a: (a * x @ x, np.sin(x)), x=(3,), a=())
    f, x = of_kernel(kernel), np.array([0.1, 0.2, 0.3])
    bars = 2.0, np.array([1.0, 0.0, 0.0])
    x_bar, a_bar = f.vjp((0, 1)).kernel(x, 0.5, *bars)
    assert x_bar == pytest.approx(2 * x + [np.cos(0.1), 0, 0]) and a_bar == pytest.approx(2 * x @ x)
    assert not f.uses_results and f.several and f.outputs == ((), (3,))
    second = of_robot(ARM, "inverse_dynamics_derivatives", ("q", "qd", "qdd"), {"order": 2})
    assert len(second.outputs) == 4 and second.vjp((0,)).outputs == ((ARM.nq,),)


def test_shapes_are_looked_at():
    f = of_robot(ARM, "inverse_dynamics", ("q", "qd", "qdd"))
    assert f.lead("here", [(5, 1, 4), (2, 4), (4,)]) == (5, 2)
    with pytest.raises(ArgumentError, match=r"takes 3 arrays \(q, qd, qdd\), got 2"):
        f.lead("here", [(4,), (4,)])
    with pytest.raises(ArgumentError, match=r"here: qd has shape \(3,\); expected shape \(…, 4\)"):
        f.lead("here", [(4,), (3,), (4,)])
    with pytest.raises(ArgumentError, match=r"do not broadcast: q \(2,\), qd \(3,\), qdd \(\)"):
        f.lead("here", [(2, 4), (3, 4), (4,)])
