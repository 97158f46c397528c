"""Paper D: closed forms, in body axes on trees (math "diagonalized" §8).

Where a formula is lost for joints whose axes do not commute, that is shown.  Which of the printed
recursions survives which joint: `test_paper_d_scope.py`.
"""

import numpy as np
import pytest

from dense import biggest, crf, of_bodies
from hinge.operators import derivative
from identities.paper_d_cases import CONSTANT, TREES, moving, near
from mechanisms import along, complex_step

on_every_robot = pytest.mark.parametrize("name", TREES)
with_constant_axes = pytest.mark.parametrize("name", CONSTANT)


@with_constant_axes
def test_8_rate_of_the_mass_factor(name):
    """ṁ = [Hφ̃ vJ×* φG + Hφ̃Ġ] L + (I + HφK) L̇, and ṁ = m Φ(ℓṀℓᵀ)."""
    c = moving(name)
    o, alg = c.o, c.alg
    expected = complex_step(lambda h: alg.mass_factor(along(c.robot, c.q, c.qd)(h)))
    across = (o.H @ (o.phi - o.I)).dense()
    inner = of_bodies(crf, c.vJ) @ (o.phi @ o.G).dense() + derivative(o.G, c.qd).dense()
    near(c, across @ inner @ c.L.dense() + (o.factor @ c.L_rate).dense(), expected)
    A = (c.l @ derivative(o.mass, c.qd) @ c.l.T).dense()
    half = np.triu(A, 1) + 0.5 * np.diag(np.diag(A))
    near(c, c.m.dense() @ half, expected, biggest(c.m.dense()) * biggest(A))


@with_constant_axes
def test_8_slopes_of_the_mass_matrix(name):
    """∂M = N + Nᵀ, N = Hφ̃[s×*]φMφ*H*; φ for φ̃ only where the axes of a joint commute."""
    c = moving(name)
    o, mech = c.o, c.robot.mechanism
    R = (o.phi @ o.M @ o.phi.T @ o.H.T).dense()
    strict, full = (o.H @ (o.phi - o.I)).dense(), (o.H @ o.phi).dense()
    for i in range(0, c.robot.nv, 2):
        e = np.eye(c.robot.nv)[i]
        expected = complex_step(lambda h, e=e: c.alg.mass_matrix(along(c.robot, c.q, e)(h)))
        turn = of_bodies(crf, o.H.T @ e)
        N, printed = strict @ turn @ R, full @ turn @ R
        near(c, N + N.T, expected)
        joint = next(b.joint for b in mech.bodies if b.joint.nv and i in indices(mech, b))
        if joint.commuting:
            near(c, printed + printed.T, expected)
        elif joint.nv == 3:
            assert biggest(printed + printed.T - expected) > 1e-3


def indices(mech, body):
    where = mech.v_slice(body.joint_name)
    return range(where.start, where.stop)


@with_constant_axes
def test_8_bias_and_coriolis_forces_from_momenta(name):
    """bias = Ṁq̇ + H v×*h;  C = ℓ(ṁν + H v×*h) = ℓ bias − ṁᵀq̇."""
    c = moving(name)
    o = c.o
    gyroscopic = o.H @ (of_bodies(crf, c.v) @ c.h)
    M_rate, m_rate = (derivative(A, c.qd) for A in (o.mass, c.m))
    gravity = c.alg.gravity_forces(c.q)
    bias = c.alg.bias_forces(c.q, c.qd) - gravity
    near(c, M_rate @ c.qd + gyroscopic, bias, biggest(gravity))
    C = c.alg.diagonal_coriolis(c.q, c.nu)
    scale = biggest(c.l.dense()) * biggest(bias, gravity, gyroscopic)
    near(c, c.l @ (m_rate @ c.nu + gyroscopic), C, scale)
    near(c, c.l @ bias - m_rate.T @ c.qd, C, scale)


@with_constant_axes
def test_8_lagrange_needs_hamels_term(name):
    """q̇ᵀ∂M q̇ = −2 s·(v⁺×*h); Ṁq̇ − ½q̇ᵀ∂Mq̇ is the bias with S·(vJ×*h) added, else only where
    the axes of every joint commute."""
    c = moving(name)
    o = c.o
    slopes = np.einsum("abi,a,b->i", c.alg.mass_matrix_sensitivity(c.q), c.qd, c.qd)
    near(c, -2 * (o.H @ (of_bodies(crf, c.v_plus) @ c.h)), slopes)
    hamel = o.H @ (of_bodies(crf, c.vJ) @ c.h)
    gravity = c.alg.gravity_forces(c.q)
    bias = c.alg.bias_forces(c.q, c.qd) - gravity
    lagrange = derivative(o.mass, c.qd) @ c.qd - 0.5 * slopes
    near(c, lagrange + hamel, bias, biggest(gravity, lagrange))
    if all(b.joint.commuting for b in c.robot.mechanism.bodies[1:]):
        near(c, hamel, 0 * hamel, biggest(c.h))
    else:
        assert biggest(hamel) > 1e-3


@on_every_robot
def test_B_7_and_B_10_with_any_joint(name):
    """φ[v×*] − [v×*]φ = φ̃[vJ×*]φ = φ̇ and [v×*]ℰ_φ = ℰ_φ[v×* − vJ×*], on trees."""
    c = moving(name)
    o, v, vJ = c.o, of_bodies(crf, c.v), of_bodies(crf, c.vJ)
    phi, hop = o.phi.dense(), o.E_phi.dense()
    rate = derivative(o.phi, c.qd).dense()
    near(c, phi @ v - v @ phi, rate, biggest(v))
    near(c, (phi - np.eye(len(phi))) @ vJ @ phi, rate)
    near(c, v @ hop, hop @ (v - vJ))
