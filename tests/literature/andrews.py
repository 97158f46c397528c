"""Andrews' squeezing mechanism: seven bodies, three loops, no gravity.

W. Schiehlen (ed.), Multibody Systems Handbook, Springer 1990; E. Hairer and G. Wanner, Solving
Ordinary Differential Equations II, Springer 1996, VI.9 (figures, parameters, start); reference
solution at t = 0.03 s: F. Mazzia and C. Magherini, Test Set for IVP Solvers, release 2.4, INdAM and
University of Bari, 2008, problem "Andrews" (PSIDE, tolerances 1e-14, on a Cray C90).
"""

import numpy as np

import hinge
from hinge import Inertia, LoopConstraint, MechanismBuilder, Revolute, Transform
from hinge.algebra.small import cos, sin, sqrt

# kg, kg m²: of bodies 1 … 7
MASS = (0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498)
SPREAD = (2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5)
# m, with the letters of the book
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
RR, RA, D, DA = 0.007, 0.00092, 0.028, 0.0115
SS, SA, SB, SC, SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
E, EA, ZT, TA, TB = 0.02, 0.01421, 0.04, 0.02308, 0.00916
ZF, FA, U, UA, UB = 0.02, 0.01421, 0.04, 0.01228, 0.00449
TORQUE, STIFFNESS, LENGTH = 0.033, 4530.0, 0.07785

# in the order of the book: β, Θ, γ, Φ, δ, Ω, ε
ANGLES = ("beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon")
START = (
    -0.0617138900142764496358948458001,
    0.0,
    0.455279819163070380255912382449,
    0.222668390165885884674473185609,
    0.487364979543842550225598953530,
    -0.222668390165885884674473185609,
    1.23054744454982119249735015568,
)
# q̈ and the forces of the first loop at the start
FIRST_ACCELERATION = (
    14222.4439199541138705911625887,
    -10666.8329399655854029433719415,
    0,
    0,
    0,
    0,
    0,
)
FIRST_FORCE = (98.5668703962410896057654982170, -6.12268834425566265503114393122)
# angles and rates at t = 0.03 s
END = (
    0.1581077119629904e2,
    -0.1575637105984298e2,
    0.4082224013073101e-1,
    -0.5347301163226948,
    0.5244099658805304,
    0.5347301163226948,
    0.1048080741042263e1,
)
END_RATES = (
    0.1139920302151208e4,
    -0.1424379294994111e4,
    0.1103291221937134e2,
    0.1929337464421385e2,
    0.5735699284790808,
    -0.1929337464421385e2,
    0.3231791658026955,
)


def _body(i, x, y=0.0):
    return Inertia(MASS[i - 1], (x, y, 0.0), SPREAD[i - 1] * np.diag([0.5, 0.5, 1.0]))


def squeezer():
    """The robot, its loops, and where the book's angles are among its coordinates."""
    b, axis = MechanismBuilder("squeezer", gravity=(0, 0, 0)), Revolute((0, 0, 1))

    def at(x, y):
        return Transform(translation=(x, y, 0.0))

    b.add("K1", "world", axis, "beta", inertia=_body(1, RA))
    b.add("K2", "K1", axis, "Theta", placement=at(RR, 0), inertia=_body(2, -DA))
    b.add("K3", "world", axis, "gamma", placement=at(*B), inertia=_body(3, SA, -SB))
    b.add("K5", "world", axis, "delta", placement=at(*A), inertia=_body(5, TA, -TB))
    b.add("K4", "K5", axis, "Phi", placement=at(ZT, 0), inertia=_body(4, 0, EA - E))
    b.add("K7", "world", axis, "epsilon", placement=at(*A), inertia=_body(7, UA, -UB))
    b.add("K6", "K7", axis, "Omega", placement=at(0, -U), inertia=_body(6, ZF - FA))
    for name, body, x, y in (
        ("F", "K2", -D, 0),
        ("F3", "K3", 0, -SS),
        ("F4", "K4", 0, -E),
        ("F6", "K6", ZF, 0),
    ):
        b.add_frame(name, body, at(x, y))
    loops = [LoopConstraint("F", end, (3, 4), 0.0, 0.0) for end in ("F3", "F4", "F6")]
    robot = hinge.Robot(b.build())
    return robot, loops, np.array([robot.v_slice(name).start for name in ANGLES])


def acting(robot):
    """(t, q, q̇) ↦ τ: the motor on β, and on γ the spring from body 3 to point C."""
    beta, gamma = (robot.v_slice(name).start for name in ("beta", "gamma"))

    def tau(t, q, qd):
        c, s = cos(q[gamma]), sin(q[gamma])
        # from C to the spring's end, and how that end moves with γ
        x, y = B[0] + SD * c + SC * s - C[0], B[1] + SD * s - SC * c - C[1]
        pull = STIFFNESS * (LENGTH / sqrt(x * x + y * y) - 1)
        turn = pull * (x * (SC * c - SD * s) + y * (SD * c + SC * s))
        force = [0.0] * robot.nv
        force[beta], force[gamma] = TORQUE, turn
        return np.array(force)

    return tau


def accelerations_by_the_book(q, qd):
    """q̈ (7,) from the equations of the book, M q̈ + Gᵀλ = f and G q̈ = −Ġ q̇, hinge not asked."""
    M, f = _inertia_and_forces(q, qd)
    G, bent = _loops_of_the_book(q, qd)
    both = np.block([[M, G.T], [G, np.zeros((6, 6))]])
    return np.linalg.solve(both, np.concatenate([f, -bent]))[:7]


def _inertia_and_forces(q, qd):
    _, Theta, gamma, Phi, _, Omega, _ = q
    b, t, _, p, d, o, e = qd
    m, I, ea, fa = MASS, SPREAD, E - EA, ZF - FA
    M = np.zeros((7, 7))
    M[0, 1] = M[1, 0] = m[1] * DA * (DA - RR * np.cos(Theta)) + I[1]
    M[1, 1] = m[1] * DA**2 + I[1]
    M[0, 0] = m[0] * RA**2 + I[0] + m[1] * RR * (RR - DA * np.cos(Theta)) + M[0, 1]
    M[2, 2] = m[2] * (SA**2 + SB**2) + I[2]
    M[3, 3] = m[3] * ea**2 + I[3]
    M[3, 4] = M[4, 3] = M[3, 3] + m[3] * ZT * ea * np.sin(Phi)
    M[4, 4] = 2 * M[3, 4] - M[3, 3] + m[3] * ZT**2 + m[4] * (TA**2 + TB**2) + I[4]
    M[5, 5] = m[5] * fa**2 + I[5]
    M[5, 6] = M[6, 5] = M[5, 5] - m[5] * U * fa * np.sin(Omega)
    M[6, 6] = 2 * M[5, 6] - M[5, 5] + m[5] * U**2 + m[6] * (UA**2 + UB**2) + I[6]
    c, s = np.cos(gamma), np.sin(gamma)
    arm = np.array([SD * c + SC * s, SD * s - SC * c])
    rope = arm + B - np.array(C)
    pull = -STIFFNESS * (1 - LENGTH / np.hypot(*rope)) * rope
    first = m[1] * DA * RR * np.sin(Theta)
    second, third = m[3] * ZT * ea * np.cos(Phi), m[5] * U * fa * np.cos(Omega)
    spring = arm[0] * pull[1] - arm[1] * pull[0]
    turned = [TORQUE - first * t * (t + 2 * b), first * b**2, spring]
    return M, np.array(
        [*turned, second * d**2, -second * p * (p + 2 * d), -third * e**2, third * o * (o + 2 * e)]
    )


def _loops_of_the_book(q, qd):
    """G (6, 7) of the three loops, and Ġ q̇: each bar turns with the sum of some angles."""
    bars = {  # length, phase, the angles that turn it, the loops that it is in
        "crank": (RR, 0.0, (0,), (0, 1, 2)),
        "rod": (-D, 0.0, (0, 1), (0, 1, 2)),
        "third": (-SS, -np.pi / 2, (2,), (0,)),
        "fourth": (-E, -np.pi / 2, (3, 4), (1,)),
        "fifth": (-ZT, 0.0, (4,), (1,)),
        "sixth": (-ZF, 0.0, (5, 6), (2,)),
        "seventh": (-U, -np.pi / 2, (6,), (2,)),
    }
    G, bent = np.zeros((6, 7)), np.zeros(6)
    for length, phase, turning, loops in bars.values():
        angle, rate = phase + sum(q[i] for i in turning), sum(qd[i] for i in turning)
        along = length * np.array([np.cos(angle), np.sin(angle)])
        for loop in loops:
            rows = slice(2 * loop, 2 * loop + 2)
            bent[rows] -= along * rate**2
            for i in turning:
                G[rows, i] += -along[1], along[0]
    return G, bent
