"""Paper D equation by equation, in body axes on trees (math "diagonalized" §4 to §7).

The identities of operators are laws (`operators/test_laws.py`); the factor as Cholesky's, the
equations of motion, energies, scalar roots: `test_paper_d_sweeps.py`; closed forms (§8):
`test_paper_d_closed_forms.py`; curvature (§9): `test_paper_d_mass_metric.py`.  A formula of joints
whose H is constant in the body is left out for universal joints.
"""

import numpy as np
import pytest
from scipy.linalg import block_diag

from dense import biggest, crf, crm
from hinge.operators import derivative, simplify
from identities.paper_d_cases import CONSTANT, TREES, moving, near
from mechanisms import EPS, along, complex_step

on_every_robot = pytest.mark.parametrize("name", TREES)
with_constant_axes = pytest.mark.parametrize("name", CONSTANT)


# 4: rates and forces


@on_every_robot
def test_table_1_total_rates(name):
    c = moving(name)
    o = c.o
    near(c, c.qd + o.G.T @ c.v_plus, c.xi)
    near(c, c.L.T @ c.xi, c.nu)
    near(c, c.xi - o.K.T @ c.v, c.qd, biggest(c.xi))
    near(c, o.innovations.T @ c.xi, c.qd, biggest(c.xi))
    near(c, o.psi.T @ (o.H.T @ c.xi), c.v)
    near(c, 0.5 * c.xi @ (o.D @ c.xi), c.alg.kinetic_energy(c.q, c.qd))


@on_every_robot
def test_table_2_working_forces(name):
    """κ = τ − Hz, z = ψKτ = φKκ; power is that of the joints."""
    c = moving(name)
    o = c.o
    z = o.psi @ (o.K @ c.tau)
    kappa = o.innovations @ c.tau
    near(c, o.phi @ (o.K @ kappa), z)
    near(c, c.tau - o.H @ z, kappa)
    near(c, c.L.inv @ kappa, c.l @ c.tau, biggest(kappa))
    near(c, c.m @ (c.l @ c.tau), c.tau, biggest(c.m.dense()) * biggest(c.l @ c.tau))
    scale = np.abs(c.xi) @ np.abs(kappa)
    near(c, c.xi @ kappa, c.qd @ c.tau, scale)
    near(c, c.nu @ (c.l @ c.tau), c.qd @ c.tau, scale)


@on_every_robot
def test_4_factors_multiply_to_the_mass_and_undo_each_other(name):
    c = moving(name)
    near(c, (c.m @ c.m.T).dense(), c.alg.mass_matrix(c.q))
    near(c, (c.l @ c.m).dense(), np.eye(c.robot.nv), biggest(c.l.dense()) * biggest(c.m.dense()))


# 5: rates of the articulated quantities


def rate_of_P(c, left, right):
    """Ṗ by the recursion, with what stands for vJ×* on the left and vJ× on the right."""
    mech, s = c.robot.mechanism, c.o.free
    H, phi, rates = s.H.values, c.o.phi_blocks, mech.rates(c.qd)
    dP = [np.zeros((6, 6)) for _ in mech.bodies]
    for p, k in mech.inward():
        through = np.eye(6) - s.G.values[k] @ H[k]
        P_plus, vJ = through @ s.P.values[k], H[k].T @ rates[k]
        Lambda = through @ dP[k] @ through.T + left(vJ) @ P_plus - P_plus @ right(vJ)
        X = phi[k].T @ np.eye(6)
        dP[p] = dP[p] + X.T @ Lambda @ X
    return block_diag(*dP[1:])


def turning(v):
    return np.concatenate([v[:3], 0 * v[3:]])


@pytest.mark.parametrize("name", [name for name in CONSTANT if TREES[name].nv])
def test_5_rate_of_P(name):
    c = moving(name)
    near(c, rate_of_P(c, crf, crm), derivative(c.o.P, c.qd).dense())


def test_5_half_of_the_joint_velocity_is_not_enough():
    """vJ without its linear part, and × on both sides: right for hinges alone."""
    wrong = [
        (lambda v: crf(turning(v)), lambda v: crm(turning(v))),
        (crm, crm),
    ]
    for sides in wrong:
        c = moving("arm")
        near(c, rate_of_P(c, *sides), derivative(c.o.P, c.qd).dense())
        c = moving("mixed")
        assert biggest(rate_of_P(c, *sides) - derivative(c.o.P, c.qd).dense()) > 0.1


@pytest.mark.parametrize("name", ["arm", "humanoid", "mixed", "mixed with rotors"])
def test_5_sensitivity_to_one_joint(name):
    """P_,(ij) is zero but on the way to the ground, where Λ = s×*P⁺ − P⁺s× is carried inward."""
    c = moving(name)
    mech, s = c.robot.mechanism, c.o.free
    for body in range(1, len(mech.bodies), 3):
        start = mech.v_slice(mech.bodies[body].joint_name).start
        axis = s.H.values[body][0]
        dP = derivative(c.o.P, np.eye(c.robot.nv)[start]).values
        through = [np.eye(6) - G @ H for G, H in zip(s.G.values[1:], s.H.values[1:], strict=True)]
        P_plus = through[body - 1] @ s.P.values[body]
        Lambda = crf(axis) @ P_plus - P_plus @ crm(axis)
        expected = {}
        for p, k in mech.ancestors(body):
            X = c.o.phi_blocks[k].T @ np.eye(6)
            expected[p] = X.T @ Lambda @ X
            Lambda = through[p - 1] @ expected[p] @ through[p - 1].T
        for k in range(1, len(mech.bodies)):
            near(c, dP[k], expected.get(k, np.zeros((6, 6))))


@with_constant_axes
def test_5_rates_of_D_and_G(name):
    c = moving(name)
    o = c.o
    dP = derivative(o.P, c.qd)
    near(c, (o.H @ dP @ o.H.T).dense(), derivative(o.D, c.qd).dense())
    G_rate = o.tau_bar @ dP @ o.H.T @ o.D.inv
    near(c, G_rate.dense(), derivative(o.G, c.qd).dense())


# 6: equations of motion


@on_every_robot
def test_6_normalised_and_plain_coriolis_forces(name):
    """C = L⁻¹C_ξ − L̇ᵀξ, and C = D^{-½}(C_ξ − ½Ḋξ) where every joint has one DoF."""
    c = moving(name)
    C = c.alg.diagonal_coriolis(c.q, c.nu)
    C_xi = c.alg.diagonal_coriolis(c.q, c.xi, normalized=False)
    scale = biggest(c.L.inv.dense()) * biggest(C_xi)
    near(c, c.L.inv @ C_xi - c.L_rate.T @ c.xi, C, scale)
    scalar = c.L.inv @ (C_xi - 0.5 * (derivative(c.o.D, c.qd) @ c.xi))
    if max(c.o.joint.sizes) <= 1:
        near(c, scalar, C, scale)
    elif name in ("humanoid", "tree0", "snake", "mixed", "mixed with rotors"):
        assert biggest(scalar - C) > 1e-3


@with_constant_axes
def test_6_total_rates_feel_the_rate_of_the_gain(name):
    """ξ̇ = D⁻¹u + Ġᵀv⁺, u the articulated-body residual: the derivation in one line."""
    c = moving(name)
    o, alg = c.o, c.alg
    qdd = alg.forward_dynamics(c.q, c.qd, c.tau)
    # D⁻¹u = q̈ + Gᵀ a′, a′ the spatial acceleration of the parent seen at the joint, and c
    path = along(c.robot, c.q, c.qd)
    rate = complex_step(lambda h: alg.total_rates(path(h), c.qd + h * qdd, False))
    carried = np.concatenate([np.zeros(0), *motion_of_parents(c, qdd)])
    residual = qdd + o.G.T @ carried
    near(c, residual + derivative(o.G, c.qd).T @ c.v_plus, rate, biggest(residual, carried))


def motion_of_parents(c, qdd):
    """X a_λ + c of every body, spatial accelerations without gravity; c = v×vJ."""
    mech, H = c.robot.mechanism, c.o.H_blocks
    v, vJ = (c.o.body.split(x) for x in (c.v, c.vJ))
    a, out, qdd = [np.zeros(6)], [], mech.rates(qdd)
    for p, k in mech.outward():
        out.append(c.o.phi_blocks[k].T @ a[p] + crm(v[k]) @ vJ[k])
        a.append(out[-1] + H[k].T @ qdd[k])
    return out


@on_every_robot
def test_6_gravity_is_decoupled(name):
    """(I − HψK)T_g = D Gᵀ a_g joint by joint, and its power is what the potential loses."""
    c = moving(name)
    o, mech = c.o, c.robot.mechanism
    a_g = [mech.free_fall]
    for p, k in mech.outward():
        a_g.append(o.phi_blocks[k].T @ a_g[p])
    a_g = np.concatenate([np.zeros(0), *a_g[1:]])
    T_g = -c.alg.gravity_forces(c.q)
    near(c, o.H @ (o.phi @ (o.M @ a_g)), T_g)
    near(c, o.innovations @ T_g, o.D @ (o.G.T @ a_g), biggest(T_g))
    eps = c.L.T @ (o.G.T @ a_g)
    near(c, eps, c.alg.working_gravity(c.q))
    near(c, c.m @ eps, T_g)
    lost = -complex_step(lambda h: c.alg.potential_energy(along(c.robot, c.q, c.qd)(h)))
    near(c, c.nu @ eps, lost, np.abs(c.nu) @ np.abs(eps))


@on_every_robot
def test_6_external_forces_enter_through_psi(name):
    c = moving(name)
    o, f = c.o, c.s.f_ext.reshape(-1)
    joint = np.zeros(c.robot.nv)
    for body, force in zip(c.robot.body_names, c.s.f_ext, strict=True):
        joint += c.alg.jacobian(c.q, body, "body").T @ force
    near(c, o.H @ (o.psi @ f), o.innovations @ joint, biggest(joint))
    assert str(simplify(o.innovations @ o.H @ o.phi)) == "H @ psi"


@on_every_robot
def test_6_operational_space_inertia_is_a_square(name):
    """J M⁻¹ Jᵀ = (ℓJᵀ)ᵀ(ℓJᵀ), with ℓJᵀ = L⁻¹HψB."""
    c = moving(name)
    o = c.o
    B = o.B(c.robot.frame_names[-1])
    columns = (c.L.inv @ o.H @ o.psi @ B).dense()
    near(c, columns, (c.l @ (B.T @ o.phi.T @ o.H.T).T).dense(), biggest(c.l.dense()))
    J = c.alg.jacobian(c.q, c.robot.frame_names[-1])
    expected = J @ np.linalg.solve(o.mass.dense(), J.T) if J.size else np.zeros((6, 6))
    near(c, columns.T @ columns, expected)


# 7: block roots


def symmetric_root(D):
    """D^½ by the iteration of Denman and Beavers, for complex steps too."""
    Y, Z = D, np.eye(len(D))
    for _ in range(30):
        Y, Z = 0.5 * (Y + np.linalg.inv(Z)), 0.5 * (Z + np.linalg.inv(Y))
    return Y


@pytest.mark.parametrize("name", ["snake", "humanoid", "tree0", "mixed with rotors"])
def test_7_any_root_will_do_with_its_own_rate(name):
    """RṘ + ṘR = Ḋ for the symmetric root, and ν̇ + C = ε with C = R⁻¹C_ξ − Ṙξ."""
    c = moving(name)
    alg, path = c.alg, along(c.robot, c.q, c.qd)
    qdd = alg.forward_dynamics(c.q, c.qd, c.tau)

    def blocks(q):
        dense = alg.innovations(q, c.qd).covariance
        return [dense[a, a] for a in slices]

    ends = np.cumsum([n for n in c.o.joint.sizes if n])
    slices = [slice(e - n, e) for n, e in zip((n for n in c.o.joint.sizes if n), ends, strict=True)]
    roots = [symmetric_root(D) for D in blocks(c.q)]
    rates, D_rate = [], derivative(c.o.D, c.qd).dense()
    for R, a in zip(roots, slices, strict=True):
        r, U = np.linalg.eigh(R)
        rates.append(U @ ((U.T @ D_rate[a, a] @ U) / (r[:, None] + r)) @ U.T)
    R, R_rate = block_diag(*roots), block_diag(*rates)
    near(c, complex_step(lambda h: block_diag(*map(symmetric_root, blocks(path(h))))), R_rate)
    C = np.linalg.solve(R, alg.diagonal_coriolis(c.q, c.xi, False)) - R_rate @ c.xi
    kappa = alg.working_forces(c.q, c.tau, None, False) + alg.working_gravity(c.q, False)

    def nu(h):
        xi = alg.total_rates(path(h), c.qd + h * qdd, False)
        return block_diag(*map(symmetric_root, blocks(path(h)))) @ xi

    assert abs((R @ c.xi) @ C) <= 1e3 * EPS * np.linalg.norm(R @ c.xi) * np.linalg.norm(C)
    expected = np.linalg.solve(R, kappa) - C
    near(c, complex_step(nu), expected, biggest(C))
