"""Operators against matrices built without them; adjoints, batches, spaces, plans, text."""

import re

import numpy as np
import pytest

import hinge
from dense import block_diagonal, condition, one_hop
from hinge.graph.program import trace
from hinge.operators import (
    Operators,
    block,
    coriolis,
    describe,
    latex,
    linearized,
    simplify,
)
from mechanisms import (
    EPS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    assert_close,
    random_split,
    random_state,
)
from pages import DOCS, blocks

SOME = ["arm", "tree0", "humanoid", "space_arm"]


def at(name, seed=0):
    """The operators of a robot at a random state, split in two, and the state."""
    robot = ROBOTS[name]
    state = random_state(robot, seed)
    return Operators(robot.mechanism, state.q, random_split(robot)), state


class Dense:
    """The same operators as matrices, made with NumPy from φ, H, M and the armature alone."""

    def __init__(self, robot, q, flags=None):
        mech, n = robot.mechanism, len(robot.body_names)
        H = mech.H(q)
        flags = np.ones(robot.nv, bool) if flags is None else ~flags
        rows = mech.rates(flags)
        self.I = np.eye(6 * n)
        self.H = block_diagonal([H[k][rows[k]] for k in range(1, n + 1)])
        self.M = block_diagonal([mech.M[k].matrix for k in range(1, n + 1)])
        self.J = np.diag(np.concatenate([np.zeros(0), *mech.armature])[flags])
        self.E_phi = one_hop(mech, mech.phi(q))
        self.phi = np.linalg.inv(self.I - self.E_phi)
        self._riccati(n)

    def _riccati(self, n):
        """P = M + blocks of ℰ_ψPℰ_φ*, solved by repeating it as often as the tree is deep."""
        self.P = self.M
        for _ in range(max(n, 1)):
            self.D = self.H @ self.P @ self.H.T + self.J
            self.G = self.P @ self.H.T @ np.linalg.inv(self.D)
            self.tau_bar = self.I - self.G @ self.H
            self.P = self.M + self.E_phi @ self.tau_bar @ self.P @ self.E_phi.T
        self.E_psi = self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(self.I - self.E_psi)
        self.K = self.E_phi @ self.G
        self.Omega = self.psi.T @ self.H.T @ np.linalg.solve(self.D, self.H @ self.psi)
        self.mass = self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.J


OF_ALL = ["H", "M", "J", "P", "D", "G", "K", "tau_bar", "E_phi", "E_psi", "phi", "psi"]
OF_ALL += ["Omega", "mass"]
OF_PASSIVE = ["H", "J", "P", "D", "G", "K", "tau_bar", "E_psi", "psi", "Omega", "mass"]


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_every_operator_is_its_matrix(name):
    robot = ROBOTS[name]
    o, state = at(name)
    for suffix, names, dense in (
        ("", OF_ALL, Dense(robot, state.q)),
        ("_p", OF_PASSIVE, Dense(robot, state.q, random_split(robot))),
    ):
        for symbol in names:
            expected = getattr(dense, symbol)
            scale = max(1.0, np.abs(expected).max(initial=0), condition(dense.D) ** 0.5)
            A = getattr(o, symbol + suffix)
            assert_close(A @ np.eye(A.into.dim), expected, 300 * EPS, scale)
            assert_close(A.dense(), expected, 300 * EPS, scale)


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_upsilon_is_the_block_diagonal_of_omega(name):
    o, _ = at(name)
    Omega, Upsilon = o.Omega.dense(), o.Upsilon.dense()
    kept = np.kron(np.eye(len(o.mechanism.body_names)), np.ones((6, 6)))
    assert_close(Upsilon, Omega * kept, 100 * EPS)


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_adjoint_by_the_dot_product(name):
    rng = np.random.default_rng(3)
    o, _ = at(name)
    L = o.I - o.H @ o.psi @ o.K
    for A in [o.H, o.G, o.E_phi, o.phi, o.psi, o.K, o.E_psi, o.Omega, o.mass, L, L.T @ o.D.inv @ L]:
        x, y = rng.normal(size=A.into.dim), rng.normal(size=A.out.dim)
        size = np.linalg.norm(A @ x) * np.linalg.norm(y) + 1
        assert abs(y @ (A @ x) - x @ (A.T @ y)) <= 100 * EPS * size
        assert_close(y @ A, A.T @ y, 0)


@pytest.mark.parametrize("name", SOME)
def test_columns_and_stacks_of_columns(name):
    o, _ = at(name)
    A = o.mass.inv
    x = np.random.default_rng(0).normal(size=(2, 3, A.into.dim, 4))
    matrix = A.dense()
    assert (A @ x).shape == (2, 3, A.out.dim, 4)
    assert_close(A @ x, matrix @ x, 200 * EPS)
    assert_close(A @ x[0, 0], matrix @ x[0, 0], 200 * EPS)
    assert_close(A @ x[0, 0, :, 0], matrix @ x[0, 0, :, 0], 200 * EPS)
    assert_close(x[0].swapaxes(1, 2) @ A, x[0].swapaxes(1, 2) @ matrix, 200 * EPS)
    assert (A @ np.zeros((A.into.dim, 0))).shape == (A.out.dim, 0)


@pytest.mark.parametrize("reference", ["aligned", "body", "world"])
@pytest.mark.parametrize("name", SOME)
def test_the_jacobian_falls_out(name, reference):
    robot = ROBOTS[name]
    o, state = at(name)
    frame = robot.frame_names[-1]
    J = o.B(frame, reference=reference).T @ o.phi.T @ o.H.T
    assert_close(J.dense(), robot.jacobian(state.q, frame, reference), 30 * EPS)


@pytest.mark.parametrize("name", SOME)
def test_blocks_of_operators(name):
    o, _ = at(name)
    A = block([[o.H @ o.phi, -o.D], [o.phi @ o.M, 2 * o.K]])
    dense = np.block([[e.dense() for e in row] for row in A.rows])
    assert_close(A.dense(), dense, 10 * EPS)
    assert_close(A.T.dense(), dense.T, 10 * EPS)
    B = A @ block([[o.phi.T @ o.H.T], [o.I]])
    expected = dense @ np.vstack([(o.phi.T @ o.H.T).dense(), np.eye(o.joint.dim)])
    assert_close(B.dense(), expected, 100 * EPS)
    x, y = np.ones(o.body.dim), np.ones(o.joint.dim)
    assert_close(A @ (x, y), A @ np.concatenate([x, y]), 0)
    C = A.T @ A + A.T @ A
    assert_close(C.dense(), 2 * dense.T @ dense, 100 * EPS)


def test_sums_join_and_cancel():
    o, _ = at("arm")
    assert o.phi + o.phi == 2 * o.phi
    assert (o.phi - o.phi).dense().any() == np.False_
    assert o.phi @ o.I == o.phi and o.I @ o.phi == o.phi
    assert o.phi == o.phi.T.T and o.M.T == o.M and o.mass == o.mass.T
    assert -1 * (-o.H) == o.H and (3 * o.H) / 3 == o.H
    assert (o.I - o.K @ o.H).T.T == o.I - o.K @ o.H
    assert ((o.phi - o.phi) @ o.K).T.shape == (o.joint.dim, o.body.dim)
    assert_close((o.phi - o.phi) @ np.ones((2, o.body.dim, 3)), np.zeros((2, o.body.dim, 3)), 0)
    assert_close((2 * o.I + o.I) @ np.ones(3), 3 * np.ones(3), 0)


def test_printed_as_it_is_typed():
    o, _ = at("arm")
    H, phi, M, psi, K, D, I = o.H, o.phi, o.M, o.psi, o.K, o.D, o.I
    assert str(H @ phi @ M @ phi.T @ H.T) == "H @ phi @ M @ phi.T @ H.T"
    assert str(o.mass.inv) == "(I - H @ psi @ K).T @ D.inv @ (I - H @ psi @ K)"
    assert str(-2 * (I - H @ psi @ K)) == "-2 * I + 2 * (H @ psi @ K)"
    assert str(o.D_p.inv @ o.H_p) == "D_p.inv @ H_p"
    assert str(o.D_root.inv.T) == "D_root.inv.T"
    assert str(block([[phi, K]])) == "block([[phi, K]])"
    assert str(phi - phi) == "0"
    assert str(o.B("tool").T) == "B('tool').T"
    assert latex(o.mass.inv) == (
        r"\left(I - H\,\psi\,K\right)^*\,D^{-1}\,\left(I - H\,\psi\,K\right)"
    )
    assert latex(block([[phi.T, 0.5 * K]])) == (r"\begin{bmatrix} \phi^* & 0.5\,K \end{bmatrix}")
    assert latex(o.D_root.inv.T @ D) == r"D^{1/2}^{-*}\,D"
    assert latex(phi - phi) == "0" and o.phi._repr_latex_() == r"$\phi$"


def test_the_plan_takes_the_fewest_sweeps():
    o, _ = at("arm")
    lines = describe(o.mass.inv).splitlines()
    assert lines[1] == "joint → joint, 7 × 7"
    assert lines[2] == (
        "inward    v1 = psi(E_phi(G x)); v2 = H v1; v3 = x - v2; v4 = D.inv v3; v5 = H.T v4"
    )
    assert lines[3] == "outward   v6 = psi.T v5; v7 = E_phi.T v6; v8 = G.T v7; v9 = v4 - v8"
    assert lines[4].startswith("cost      ") and len(lines) == 5
    two = describe(o.H @ o.phi @ o.M @ o.phi.T @ o.H.T).splitlines()
    assert [line.split()[0] for line in two[2:-1]] == ["outward", "inward"]
    local = describe(2 * (o.H @ o.M) - o.H @ o.P).splitlines()
    assert local[2] == "local     v1 = M x; v2 = P x; v3 = 2 v1 - v2; v4 = H v3"
    frames = describe(o.B("tool").T @ o.Omega @ o.B("tool") @ (2 * o.B("tool").T)).splitlines()
    assert [line.split()[0] for line in frames[2:-1]] == ["local", "inward", "outward", "local"]


def test_wrong_products_fail_where_they_are_written():
    o, _ = at("arm")
    with pytest.raises(hinge.ArgumentError, match="H acts on body vectors, H returns joint vect"):
        o.H @ o.H
    with pytest.raises(hinge.ArgumentError, match="cannot add H and phi"):
        o.H + o.phi
    with pytest.raises(hinge.ArgumentError, match=r"cannot add H and I.*any|cannot add H and I"):
        o.H - o.I
    with pytest.raises(hinge.ArgumentError, match="different configurations"):
        o.H @ at("arm", 1)[0].phi
    with pytest.raises(hinge.ArgumentError, match="compose with @"):
        o.H * o.phi
    with pytest.raises(TypeError):
        o.H + 1
    with pytest.raises(hinge.ArgumentError, match=r"entry \(1, 0\), K, takes joint to body"):
        block([[o.phi], [o.K], [o.H]])
    with pytest.raises(hinge.ArgumentError, match="same length.*got rows of length 2, 1"):
        block([[o.phi, o.K], [o.H]])
    with pytest.raises(hinge.ArgumentError, match=r"entry \(0, 1\) is a int"):
        block([[o.phi, 1]])


def test_wrong_vectors_are_named():
    o, _ = at("arm")
    with pytest.raises(hinge.ArgumentError, match=r"phi takes body vectors, \(42,\).*got shape"):
        o.phi @ np.zeros(7)
    with pytest.raises(hinge.ArgumentError, match=r"flatten it with x.reshape\(-1\)"):
        o.phi @ np.zeros((7, 6))
    with pytest.raises(hinge.ArgumentError, match=r"vectors are columns: give x.T"):
        o.mass @ np.zeros((5, 7))
    with pytest.raises(hinge.ArgumentError, match="takes numbers"):
        o.mass @ np.array(["a"] * 7)
    with pytest.raises(hinge.ArgumentError, match="takes 2 vectors"):
        block([[o.phi, o.K]]) @ (np.zeros(42),)
    with pytest.raises(hinge.ArgumentError, match="no size of its own"):
        o.I.dense()
    with pytest.raises(hinge.ArgumentError, match="name of a frame"):
        o.B()
    with pytest.raises(hinge.ArgumentError, match="reference is 'here'"):
        o.B("tool", reference="here")
    with pytest.raises(AttributeError, match="no 'Q'"):
        _ = o.Q
    with pytest.raises(AttributeError):
        _ = o._Q
    assert {"H", "psi", "psi_p"} <= set(dir(o))


def test_splits_and_followers():
    robot = ROBOTS["arm"]
    q = robot.neutral()
    o = robot.operators(q, [robot.joint_names[0], robot.joint_names[2]])
    assert o.H_a.shape == (2, 42) and o.H_p.shape == (5, 42)
    with pytest.raises(hinge.ArgumentError, match=r"not split.*operators\(q, active=…\)"):
        _ = robot.operators(q).psi_p
    with pytest.raises(hinge.ArgumentError, match="active has shape .*nv = 7 DoF"):
        robot.operators(q, [True, False])
    with pytest.raises(hinge.ArgumentError, match="mimics another"):
        gripper = ROBOTS["gripper"]
        gripper.operators(gripper.neutral())
    for wrong in (np.zeros(3), np.array([0.1, 0.2], dtype=object), None):
        with pytest.raises(hinge.ArgumentError, match="q has (shape|dtype object)"):
            robot.operators(wrong)


def test_vectors_that_operators_are_made_for_have_one_entry_per_degree_of_freedom():
    """Longer ones would be read up to their length."""
    robot = ROBOTS["arm"]
    o, rates = robot.operators(robot.neutral()), np.zeros(7)
    calls = {
        "motion_forces": o.motion_forces,
        "coriolis": lambda x: coriolis(o, x),
        "qd of linearized": lambda x: linearized(o, x, rates),
        "qdd of linearized": lambda x: linearized(o, rates, x),
    }
    for name, call in calls.items():
        for wrong in (np.zeros(6), np.zeros(8), np.zeros((7, 2))):
            with pytest.raises(hinge.ArgumentError, match=f"{name} takes (joint|one) vector"):
                call(wrong)
    for call in (o.motion_forces, lambda x, f: linearized(o, x, x, f)):
        with pytest.raises(hinge.ArgumentError, match="f_ext of .* takes body vectors"):
            call(rates, np.zeros((6, 6)))
    with pytest.raises(hinge.ArgumentError, match=r"\* str: \* scales by a number"):
        "a" * o.phi


def test_expressions_compile():
    robot = ROBOTS["arm"]
    _, state = at("arm")

    @robot.compile(x=(robot.nv,))
    def solve(q, x):
        return robot.operators(q).mass.inv @ x

    assert_close(solve(state.q, state.qd), robot.mass_matrix_inverse(state.q) @ state.qd, 300 * EPS)


def test_coefficients_may_be_traced():
    robot = ROBOTS["arm"]
    _, state = at("arm")

    @robot.compile(x=(robot.nv,))
    def blend(q, a, b, x):
        o = robot.operators(q)
        one = simplify((a * o.mass.inv) @ o.mass)
        return (a * o.mass.inv + b * o.D + 0.5 * o.I).T @ x + (a * o.D - b * o.D) @ (one @ x)

    o, x = robot.operators(state.q), state.qd
    expected = 2 * (o.mass.inv @ x) + 3 * (o.D @ x) + 0.5 * x - 2 * (o.D @ x)
    assert_close(blend(state.q, 2.0, 3.0, x), expected, 300 * EPS)


@pytest.mark.parametrize("name", SOME)
def test_forward_dynamics_as_one_expression_costs_what_the_sweep_costs(name):
    robot = ROBOTS[name]
    _, state = at(name)

    def expression(q, qd, tau):
        o = robot.operators(q)
        L = o.I - o.H @ o.psi @ o.K
        A = L.T @ o.D.inv @ block([[L, -o.H @ o.psi]])
        return A @ (tau, o.motion_forces(qd))

    def sweep(q, qd, tau):
        return robot.alg.forward_dynamics(q, qd, tau)

    given = state.q, state.qd, state.qdd
    assert_close(expression(*given), sweep(*given), 1000 * EPS)
    shapes = [x.shape for x in given]
    assert sum(trace(expression, shapes).ops[:3]) <= 1.02 * sum(trace(sweep, shapes).ops[:3])


class Counted:
    """A number that counts what is done with it."""

    __slots__ = ("x",)
    done = 0

    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        Counted.done += 1
        return Counted(self.x + getattr(other, "x", other))

    def __sub__(self, other):
        Counted.done += 1
        return Counted(self.x - getattr(other, "x", other))

    def __rsub__(self, other):
        Counted.done += 1
        return Counted(other - self.x)

    def __mul__(self, other):
        Counted.done += 1
        return Counted(self.x * getattr(other, "x", other))

    def __neg__(self):
        return Counted(-self.x)

    def __truediv__(self, other):
        Counted.done += 1
        return Counted(self.x / getattr(other, "x", other))

    __radd__, __rmul__ = __add__, __mul__


def operations(A):
    """How many operations it takes to apply A to a vector."""
    x = np.array([Counted(1.0) for _ in range(A.into.dim)])
    Counted.done = 0
    A @ x
    return Counted.done


def test_cost_grows_with_the_bodies():
    per_body = {}
    for n in (10, 100, 1000):
        robot = hinge.zoo.snake(n)
        o = robot.operators(np.linspace(-0.3, 0.3, robot.nq))
        for A in (o.mass, o.mass.inv, o.psi, o.Omega):
            per_body.setdefault(str(A), []).append(operations(A) / n)
    for name, (ten, hundred, thousand) in per_body.items():
        assert 50 < thousand < 600, name
        assert abs(thousand - hundred) < 0.02 * hundred and abs(ten - hundred) < 0.2 * hundred, name


def test_the_tutorial_prints_what_it_says():
    code = "\n".join(blocks(DOCS / "operators.md"))
    scope, checked = {}, 0
    exec(compile(code, "operators.md", "exec"), scope)
    for expression, said in re.findall(r"^ *print\((.+)\)  # (.+)$", code, flags=re.M):
        if expression != "error":
            assert str(eval(expression, scope)) == said
            checked += 1
    assert checked >= 6


def test_operators_are_plain_python():
    robot = ROBOTS["arm"]
    o = Operators(robot.mechanism, robot.neutral())
    assert not isinstance(o.H @ o.phi, np.ndarray)
    assert {o.phi: 1}[Operators.phi.__get__(o)] == 1
