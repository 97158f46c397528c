"""Every law of the algebra by name, over every robot; which of them armature breaks; inverses."""

import numpy as np
import pytest

import hinge
from hinge.operators import LAWS, Operators, block, decompose, derivative, explain, simplify
from hinge.operators.laws import laws_of
from mechanisms import (
    EPS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    assert_close,
    random_split,
    random_state,
)

OF_ALL = ["H", "phi", "M", "P", "D", "G", "psi", "K", "tau_bar", "E_psi", "Omega", "mass"]
OF_ALL += ["D_root", "mass_factor"]
SOME = ["arm", "tree0", "humanoid", "space_arm"]


def sets(name):
    """The operators of all joints, and of the passive ones of a split."""
    robot = ROBOTS[name]
    o = Operators(robot.mechanism, random_state(robot, 0).q, random_split(robot))
    return o.free, o.passive


def discrepancy(a, b):
    a, b = a.dense(), b.dense()
    return np.abs(a - b).max(initial=0) / max(1.0, np.abs(a).max(initial=0))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_law(law):
    assert law.equation
    broken = 0.0
    for name in WITHOUT_FOLLOWERS:
        for s in sets(name):
            error = discrepancy(*law.sides(s))
            if law.holds(s):
                assert error <= 30 * EPS * len(ROBOTS[name].body_names) ** 2, name
            else:
                broken = max(broken, error)
    assert broken > 1e-3 if law.without_armature else broken == 0


def test_laws_that_armature_breaks_are_left_alone():
    s = sets("arm")[0]
    assert s.has_armature and len(laws_of(s)) < len(LAWS)
    free = s.H @ s.psi @ s.M @ s.psi.T @ s.H.T
    assert simplify(free) is free
    assert "no law makes this shorter" in explain(free)
    plain = sets("humanoid")[0]
    assert not plain.has_armature and laws_of(plain) == LAWS
    assert simplify(plain.H @ plain.psi @ plain.M @ plain.psi.T @ plain.H.T) == plain.D


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_inverses_undo(name):
    for s in sets(name):
        for A in (s.mass, s.factor, s.innovations, s.psi, s.phi.T, s.D, s.mass_factor, s.D_root):
            size = np.linalg.cond(A.dense()) if A.shape[0] else 1.0
            assert_close((A.inv @ A).dense(), np.eye(A.shape[0]), 100 * EPS * size)
            assert_close(A.inv.inv.dense(), A.dense(), 100 * EPS * size)


def test_inverses_by_name():
    s = sets("arm")[0]
    I = hinge.zoo.arm(2).operators(np.zeros(2)).I
    assert s.phi.inv == I - s.E_phi and s.psi.inv == I - s.E_psi
    assert (I - s.E_psi).inv == s.psi and (I - s.E_phi).T.inv == s.phi.T
    assert s.factor.inv == s.innovations and s.innovations.T.inv == s.factor.T
    assert str(s.mass.inv.inv) == str(s.mass)
    assert (2 * s.D).inv == 0.5 * s.D.inv and s.D.inv.inv == s.D
    assert (s.factor @ s.D).inv == s.D.inv @ s.innovations
    assert I.inv == I
    assert s.E_psi.definition == s.E_psi.definition.T.T


def test_no_rule_no_inverse():
    s = sets("arm")[0]
    with pytest.raises(hinge.ArgumentError, match="it takes body vectors to joint vectors, 7 × 42"):
        _ = s.H.inv
    with pytest.raises(hinge.ArgumentError, match=r"no rule inverts P; rules are known for"):
        _ = s.P.inv
    with pytest.raises(hinge.ArgumentError, match="no rule inverts phi \\+ psi"):
        _ = (s.phi + s.psi).inv
    with pytest.raises(hinge.ArgumentError, match="leaves out the armature J"):
        _ = (s.H @ s.phi @ s.M @ s.phi.T @ s.H.T).inv
    with pytest.raises(hinge.ArgumentError, match="no rule inverts K @ H|no rule inverts"):
        _ = s.E_psi.inv


@pytest.mark.parametrize("name", SOME)
def test_simplify_finds_the_papers_results(name):
    s = sets(name)[0]
    J = s.phi.T @ s.H.T
    for long, short in [
        (s.innovations @ s.H @ s.phi, s.H @ s.psi),
        (s.phi @ s.K @ s.innovations, s.psi @ s.K),
        (s.mass.inv @ s.H @ s.phi, s.innovations.T @ s.D.inv @ s.H @ s.psi),
        (J @ s.mass.inv @ J.T, s.Omega),
        (s.P - s.E_psi @ s.P @ s.E_phi.T, s.M),
        (s.factor @ s.innovations, s.H.at.I),
    ]:
        found = simplify(long)
        assert str(found) == str(short)
        assert discrepancy(found, long) <= 1e3 * EPS
    for A in (s.mass.inv @ s.mass, s.mass @ s.mass.inv):
        assert str(simplify(A)) == "I"
    fd = simplify(s.mass.inv @ block([[s.H.at.I, -s.H @ s.phi]]))
    assert str(fd.rows[0][1]) == "-(I - H @ psi @ K).T @ D.inv @ H @ psi"
    both = simplify(block([[s.mass.inv @ s.mass, s.K.T]]).T @ s.D)
    assert str(both) == "block([[D], [K @ D]])"


def test_explain_names_each_law():
    s = sets("arm")[0]
    text = explain(s.mass.inv @ s.mass)
    assert (
        "by [I − HψK] (HφMφ*H* + J) = D [I + HφK]*  (4.2, 4.3)  [innovations_of_the_mass]" in text
    )
    assert text.count("\n    by ") == 3 and text.splitlines()[-2] == "= I"
    stacked = explain(block([[s.innovations @ s.H @ s.phi], [s.psi]]))
    assert "= H @ psi" in stacked and "no law makes this shorter" in stacked


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_decompositions(name):
    for s in sets(name):
        X = s.H.T @ s.D.inv @ s.H
        for A in (
            s.phi @ s.M @ s.phi.T,
            s.psi @ s.M @ s.phi.T,
            s.psi @ s.M @ s.psi.T,
            s.psi.T @ X @ s.psi,
            s.phi.T @ s.P @ s.phi,
            s.psi.T @ s.M @ s.phi,
        ):
            assert discrepancy(A, decompose(A)) <= 30 * EPS * len(ROBOTS[name].body_names)


def test_branches_add_a_term_to_the_outward_decompositions():
    s = sets("humanoid")[0]
    A = s.psi.T @ s.H.T @ s.D.inv @ s.H @ s.psi
    printed = (s.psi.T - s.H.at.I) @ s.Upsilon + s.Upsilon + s.Upsilon @ (s.psi - s.H.at.I)
    assert discrepancy(A, printed) > 1e-3
    assert discrepancy(A, decompose(A)) <= 100 * EPS
    chain = sets("snake")[0]
    serial = decompose(chain.phi.T @ chain.M @ chain.phi)
    assert len(serial.terms) == 3 and len(decompose(s.phi.T @ s.M @ s.phi).terms) == 4
    with pytest.raises(hinge.ArgumentError, match="cannot decompose phi"):
        decompose(s.phi)
    with pytest.raises(hinge.ArgumentError, match="as in phi @ M @ phi.T"):
        decompose(s.phi @ s.M @ s.phi)


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_derivatives_by_complex_step(name):
    robot = ROBOTS[name]
    state = random_state(robot, 0)
    flags = np.arange(robot.nv) % 2 == 0
    made = [*OF_ALL, "H_a", "H_p", "P_p", "D_p", "G_p", "psi_p", "mass_p"]
    h = 1e-30
    nearby = robot.alg.integrate(state.q, 1j * h * state.qd)
    here, there = (
        Operators(robot.mechanism, state.q, flags),
        Operators(robot.mechanism, nearby, flags),
    )
    for symbol in made:
        A, B = getattr(here, symbol), getattr(there, symbol)
        expected = B.dense().imag / h
        assert_close(derivative(A, state.qd).dense(), expected, 300 * EPS)
        assert_close(derivative(A.T, state.qd).dense(), expected.T, 300 * EPS)
    rate, expected = derivative(here.mass.inv, state.qd).dense(), there.mass.inv.dense().imag / h
    size = np.linalg.cond(here.mass.dense()) if robot.nv else 1.0
    assert_close(rate, expected, 10 * EPS * size)


def test_derivatives_along_one_joint():
    robot = ROBOTS["tree0"]
    o = robot.operators(random_state(robot, 0).q)
    qd = np.random.default_rng(1).normal(size=robot.nv)
    each = [derivative(o.psi, e) @ np.ones(o.body.dim) for e in np.eye(robot.nv)]
    assert_close(derivative(o.psi, qd) @ np.ones(o.body.dim), qd @ np.array(each), 100 * EPS)


def test_what_has_no_derivative():
    robot = ROBOTS["arm"]
    o = robot.operators(robot.neutral())
    v = np.zeros(robot.nv)
    tool = o.B("tool", reference="body")
    assert str(derivative(tool, v)) == "0" and str(derivative(o.I @ (o.phi - o.phi), v)) == "0"
    assert str(derivative(block([[o.M, o.M]]), v)) == "block([[0, 0]])"
    with pytest.raises(hinge.ArgumentError, match="no rule differentiates B.*reference='body'"):
        derivative(o.B("tool"), v)
    with pytest.raises(hinge.ArgumentError, match="no rule differentiates Upsilon"):
        derivative(o.Upsilon, v)
    with pytest.raises(hinge.ArgumentError, match="the direction of a derivative takes one vector"):
        derivative(o.phi, np.zeros((robot.nv, 2)))


@pytest.mark.parametrize("name", [*SOME, "gripper"])
def test_operational_space_inertia(name):
    robot = ROBOTS[name]
    state = random_state(robot, 0)
    M = robot.alg.mass_matrix(state.q)
    frames = (robot.frame_names[-1], robot.frame_names[-2])
    for reference in ("aligned", "body", "world"):
        J = np.vstack([robot.alg.jacobian(state.q, f, reference) for f in frames])
        got = robot.alg.operational_space_inertia_inverse(state.q, frames, reference)
        assert_close(got, J @ np.linalg.solve(M, J.T), 1e3 * EPS)
    one = robot.alg.operational_space_inertia_inverse(state.q, frames[0])
    if not robot.mechanism.has_followers:
        o = robot.operators(state.q)
        B = o.B(frames[0])
        assert_close((B.T @ o.Omega @ B).dense(), one, 1e3 * EPS)


def test_operational_space_inertia_of_a_robot():
    robot = ROBOTS["arm"]
    q = np.stack([random_state(robot, seed).q for seed in range(3)])
    inverse = robot.operational_space_inertia_inverse(q, "tool")
    Lambda = robot.operational_space_inertia(q, ["tool"], "aligned")
    for a, b in zip(Lambda, inverse, strict=True):
        assert_close(a @ b, np.eye(6), 10 * EPS * np.linalg.cond(b))
    with pytest.raises(hinge.ArgumentError, match="reference is 'here' for frame 'tool'"):
        robot.operational_space_inertia(q, "tool", "here")
