"""Results against arithmetic of 40 digits, and that against Lagrange's equations."""

from pathlib import Path

import mpmath
import numpy as np
import pytest

from hinge import algorithms
from hinge.algebra.rotation import axial

# differences of differences: a step h costs h² of what is differenced
STEP, DIGITS = mpmath.mpf("1e-12"), 60


@pytest.fixture
def accuracy(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    from bench import accuracy

    return accuracy


def slope(f, x, direction):
    """The derivative of f at x, by central differences."""
    return (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)


def poses(mech, q):
    """(R, p) of every body of a chain of hinges about z: products, nothing else."""
    R, p, out = np.eye(3), np.zeros(3), []
    for body, angle in zip(mech.bodies[1:], q, strict=True):
        c, s = mpmath.cos(angle), mpmath.sin(angle)
        p = R @ body.placement.translation + p
        R = R @ body.placement.rotation @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        out.append((R, p))
    return out


def lagrangian(mech, q, qd):
    """T − V: masses and inertias that move as the poses do."""
    centres = [lambda x, k=k: _centre(mech, x, k) for k in range(mech.n_bodies)]
    total = 0
    for k, body in enumerate(mech.bodies[1:]):
        I, R = body.inertia, poses(mech, q)[k][0]
        v = slope(centres[k], q, qd)
        w = axial(R.T @ slope(lambda x, k=k: poses(mech, x)[k][0], q, qd)) / 2
        total += I.mass * (v @ v) / 2 + w @ I.about_com @ w / 2
        total += I.mass * (np.array(mech.gravity) @ centres[k](q))
    return total


def _centre(mech, q, k):
    R, p = poses(mech, q)[k]
    return R @ mech.bodies[k + 1].inertia.com + p


def lagrange(mech, q, qd, qdd):
    """τ = d/dt ∂L/∂q̇ − ∂L/∂q."""
    tau = []
    for e in np.eye(mech.nv, dtype=int):

        def momentum(t, e=e):
            x, v = q + t * qd + t * t * qdd / 2, qd + t * qdd
            return slope(lambda u: lagrangian(mech, x, u), v, e)

        force = slope(lambda x: lagrangian(mech, x, qd), q, e)
        tau.append(slope(momentum, mpmath.mpf(0), 1) - force)
    return np.array(tau)


def test_the_reference_obeys_lagrange(accuracy):
    """Inverse dynamics does, in all its terms, and forward dynamics and M follow from it."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(DIGITS):
        mech = accuracy.exact_mechanism(accuracy.chain(3))
        q, qd, qdd = (np.array([mpmath.mpf(x) for x in a]) for a in rng.normal(size=(3, 3)))
        tau = algorithms.inverse_dynamics(mech, q, qd, qdd)
        expected = lagrange(mech, q, qd, qdd)
        assert max(abs(tau - expected)) < 1e-18 * max(abs(expected))
        assert max(abs(algorithms.forward_dynamics(mech, q, qd, tau) - qdd)) < 1e-50
        still = np.zeros(3)
        M = [
            algorithms.inverse_dynamics(mech, q, still, e)
            - algorithms.inverse_dynamics(mech, q, still, still)
            for e in np.eye(3)
        ]
        assert np.abs(algorithms.mass_matrix(mech, q) - np.array(M)).max() < 1e-50


FEW = ("inverse dynamics", "forward dynamics", "mass matrix", "potential energy")
# of eps; what the page says is less
BOUNDS = {"forward dynamics": 1000.0, "hybrid dynamics": 1000.0}


def assert_exact(found):
    for quantity, row in found.items():
        for who in ("hinge", "hinge, plain"):
            assert max(row[who]) < BOUNDS.get(quantity, 100.0), f"{quantity}, {who}: {row[who]}"


def test_digits_of_a_chain(accuracy):
    case = accuracy.Case("three links", "", lambda: accuracy.chain(3), states=2)
    assert_exact(accuracy.measured(case, FEW))


def test_momentum_far_away(accuracy):
    """About the centre of mass it does not depend on where that is, nor do its digits."""
    case = next(case for case in accuracy.CASES if case.away)
    (found,) = accuracy.measured(case, ["momentum"]).values()
    assert max(found["hinge"] + found["hinge, plain"]) < 50


@pytest.mark.long
@pytest.mark.parametrize("index", range(4))
def test_digits_of_hard_cases(accuracy, index):
    assert_exact(accuracy.measured(accuracy.CASES[index]))


@pytest.mark.long
def test_the_page_is_written(accuracy, tmp_path, capsys):
    assert accuracy.main(["--quick", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    assert "| inverse dynamics, 8 links |" in text and "## A chain of 8" in text
    assert (tmp_path / "accuracy.svg").read_text().count("<path") > 10
    assert "wrote" in capsys.readouterr().out


def test_a_wrong_digit_is_seen(accuracy):
    """The measure itself: one bit of the largest entry is half an eps to one."""
    exact = np.array([mpmath.mpf(1), mpmath.mpf("0.25")], dtype=object)
    assert accuracy.errors(np.array([1 + 2.0**-52, 0.25]), exact) == pytest.approx(1.0)
    assert accuracy.errors(np.array([1.0, 0.25]), exact) == 0
