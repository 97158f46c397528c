"""Control in total rates: W only falls, targets are met, and the law as printed fails."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, simulate, zoo
from hinge.algebra.rotation import about_axis
from hinge.control import PoseFeedback, RateFeedback
from mechanisms import EPS, assert_close, random_state

ARM = zoo.arm(7)
RNG = np.random.default_rng(3)
STEP = 1e-3  # of differences of fourth order
GOAL = ARM.alg.frame_pose(ARM.random_configuration(11), "tool")


def rate_of(robot, law, q, qd):
    """dW/dt along the motion that the law makes, by a difference of fourth order."""
    qdd = robot.forward_dynamics(q, qd, law(0.0, q, qd))

    def W(t):
        return law.lyapunov(robot.integrate(q, t * qd + 0.5 * t * t * qdd), qd + t * qdd)

    return (8 * (W(STEP) - W(-STEP)) - (W(2 * STEP) - W(-2 * STEP))) / (12 * STEP)


@pytest.mark.parametrize("damping", [2.0, np.linspace(0.5, 4, 7)], ids=["one", "each"])
def test_rate_feedback_takes_energy_out(damping):
    law, s = RateFeedback(ARM, damping), random_state(ARM, 0)
    assert_close(law.lyapunov(s.q, s.qd), ARM.kinetic_energy(s.q, s.qd), 10 * EPS)
    nu = ARM.alg.total_rates(s.q, s.qd)
    m = ARM.alg.mass_factor(s.q)
    expected = ARM.alg.gravity_forces(s.q) - m @ (damping * nu)
    assert_close(law(0.0, s.q, s.qd), expected, 500 * EPS)
    assert_close(rate_of(ARM, law, s.q, s.qd), law.lyapunov_rate(s.q, s.qd), 100 * STEP**4)


def test_energy_decays_at_the_rate_of_the_gain():
    """With one number for c, ν and so the speed of every total rate decays as e^(−ct)."""
    law, s = RateFeedback(ARM, 2.0), random_state(ARM, 0)
    run = simulate(ARM, s.q, s.qd, law, duration=2.0, dt=2e-3, compiled=True, limits=False)
    expected = run.kinetic_energy[0] * np.exp(-4.0 * run.t)
    # rk4 leaves 2 c⁵ dt⁴ t / 120 = 2e-11
    np.testing.assert_allclose(run.kinetic_energy, expected, rtol=1e-10)


@pytest.mark.parametrize("orientation", ["angle", "axes"])
def test_pose_feedback_is_the_slope_of_its_potential(orientation):
    law = PoseFeedback(ARM, "tool", GOAL, stiffness=(5.0, 20.0), orientation=orientation)
    s = random_state(ARM, 1)
    still = np.zeros(7)
    for e in np.eye(7):
        W = [law.lyapunov(s.q + k * STEP * e, still) for k in (-2, -1, 1, 2)]
        slope = (8 * (W[2] - W[1]) - (W[3] - W[0])) / (12 * STEP)
        assert_close(-slope, e @ law.pull(s.q), 20 * STEP**4)
    assert_close(rate_of(ARM, law, s.q, s.qd), law.lyapunov_rate(s.q, s.qd), 5e5 * STEP**4)


def test_axes_are_those_of_the_paper():
    """|e|² = |p̂ − p|² + Σ|ŷ − y|² and the moment Σ y × ŷ."""
    law = PoseFeedback(ARM, "tool", GOAL, stiffness=20.0, orientation="axes")
    q = ARM.random_configuration(1)
    X = ARM.alg.frame_pose(q, "tool")
    e = GOAL[:3] - X[:3]
    assert_close(law.lyapunov(q, np.zeros(7)), 0.5 * 20.0 * (e * e).sum(), 100 * EPS)
    moment = sum(np.cross(X[:3, i], GOAL[:3, i]) for i in range(3))
    w = 20.0 * np.concatenate([moment, e[:, 3]])
    assert_close(law.pull(q), ARM.alg.jacobian(q, "tool").T @ w, 100 * EPS)


@pytest.mark.parametrize("orientation", ["angle", "axes"])
def test_pose_feedback_meets_the_target_and_W_only_falls(orientation):
    law = PoseFeedback(ARM, "tool", GOAL, damping=4.0, stiffness=30.0, orientation=orientation)
    q = ARM.random_configuration(11) + 0.4 * RNG.normal(size=7)
    ways = {"every": 10, "compiled": True, "limits": False}
    run = simulate(ARM, q, None, law, duration=20.0, dt=2e-3, **ways)
    W = law.lyapunov(run.q, run.qd)
    assert np.diff(W).max() < 50 * EPS * W[0]
    assert np.abs(law.error(run.q[-1])).max() < 1e-3


def test_small_errors_feel_the_same_in_both_forms():
    q, small = ARM.random_configuration(1), 1e-4
    near = ARM.alg.frame_pose(q + small, "tool")
    pulls = [PoseFeedback(ARM, "tool", near, orientation=o).pull(q) for o in ("angle", "axes")]
    assert_close(pulls[0], pulls[1], 5 * small**2, np.abs(pulls[0]).max())


# a half turn


def ball(orientation):
    """A ball joint and a target half a turn away about its first principal axis."""
    b = hinge.MechanismBuilder("ball", gravity=(0, 0, 0))
    b.add("ball", "world", hinge.Spherical(), inertia=hinge.Inertia(1.0, about_com=np.eye(3)))
    robot = hinge.Robot(b.build())
    target = np.eye(4)
    target[:3, :3] = np.diag([1.0, -1.0, -1.0])
    return robot, PoseFeedback(robot, "ball", target, 2.0, 5.0, orientation)


def test_half_a_turn_is_an_equilibrium_of_the_axes_and_not_of_the_angle():
    robot, law = ball("axes")
    assert np.abs(law.pull(robot.neutral())).max() < 10 * EPS
    assert_close(np.linalg.norm(law.error(robot.neutral())), np.pi, 10 * EPS)
    robot, law = ball("angle")
    assert_close(np.abs(law.pull(robot.neutral())), [2 * 5.0 * np.pi, 0, 0], 10 * EPS)
    run = simulate(robot, robot.neutral(), None, law, duration=15.0, dt=5e-3, compiled=True)
    assert np.abs(law.error(run.q[-1])).max() < 1e-4
    assert np.diff(law.lyapunov(run.q, run.qd)).max() < 10 * EPS


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 2.0, np.pi - 1e-7, np.pi])
def test_rotation_vector_at_any_angle(angle):
    robot, _ = ball("angle")
    for axis in (*np.eye(3), np.array([0.6, -0.48, 0.64])):
        target = np.eye(4)
        target[:3, :3] = about_axis(axis, np.array([angle]))
        error = PoseFeedback(robot, "ball", target).error(robot.neutral())
        sign = np.sign(error[:3] @ axis) if angle == np.pi else 1.0
        assert_close(error[:3], sign * angle * axis, 20 * EPS)


# a singular pose


def test_a_stretched_arm_is_stuck_until_it_is_nudged():
    robot = zoo.pendulum(2)
    target = np.eye(4)
    target[:3, 3] = (0, 0, -1.2)
    law = PoseFeedback(robot, "tip", target, stiffness=(0.0, 20.0))
    still = np.zeros(2)
    assert np.abs(law.pull(still)).max() == 0
    assert_close(law.error(still)[5], 0.8, 10 * EPS)
    run = simulate(robot, [0.01, -0.02], None, law, duration=20.0, dt=5e-3, compiled=True)
    assert np.abs(law.error(run.q[-1])[3:]).max() < 1e-3


# as printed: −c₁ν − c₂ HψBe, no root, a gain per joint


def printed_rates(change):
    """Ẇ + νᵀcν of a law ε = −c₁ν + change(κ, ε): zero where the proof holds."""
    law = PoseFeedback(ARM, "tool", GOAL, 3.0, 20.0, "axes")
    out = []
    for seed in range(6):
        s = random_state(ARM, seed)
        nu, pull = ARM.alg.total_rates(s.q, s.qd), law.pull(s.q)
        eps = ARM.alg.working_forces(s.q, pull)
        kappa = ARM.alg.working_forces(s.q, pull, normalized=False)
        # W = ½|ν|² + U, and the rate of U is −νᵀ ℓ pull
        out.append(nu @ change(kappa, eps) - nu @ eps)
    return np.array(out)


def test_the_corrected_law_is_the_one_whose_energy_falls():
    assert np.abs(printed_rates(lambda kappa, eps: eps)).max() == 0
    printed = printed_rates(lambda kappa, eps: -kappa)
    rootless = printed_rates(lambda kappa, eps: kappa)
    gains = np.array([1.0, 0.2, 3.0, 0.5, 2.0, 0.1, 1.0])
    per_joint = printed_rates(lambda kappa, eps: gains * eps)
    for wrong in (printed, rootless, per_joint):
        assert wrong.max() > 0.1


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ArgumentError, match="RateFeedback for 'arm7': damping is -1"):
        RateFeedback(ARM, -1)
    with pytest.raises(ArgumentError, match="expected a positive number, or nv = 7"):
        PoseFeedback(ARM, "tool", GOAL, damping=[1, 2])
    with pytest.raises(ArgumentError, match="with one for each joint the error need not decrease"):
        PoseFeedback(ARM, "tool", GOAL, stiffness=np.ones(7))
    with pytest.raises(ArgumentError, match="target is not a pose"):
        PoseFeedback(ARM, "tool", 2 * GOAL)
    with pytest.raises(ArgumentError, match="orientation is 'euler'"):
        PoseFeedback(ARM, "tool", GOAL, orientation="euler")
    with pytest.raises(ArgumentError, match="has no frame 'hand'"):
        PoseFeedback(ARM, "hand", GOAL)
    for wrong in ("much", None, [[1.0], [1.0, 2.0]], 1j):
        with pytest.raises(ArgumentError, match="damping is .*; expected a positive number"):
            RateFeedback(ARM, wrong)
        with pytest.raises(ArgumentError, match="stiffness is .*; expected a number, or two"):
            PoseFeedback(ARM, "tool", GOAL, stiffness=wrong)
    with pytest.raises(ArgumentError, match="RateFeedback needs a Robot, got Mechanism"):
        RateFeedback(ARM.mechanism)


def test_laws_take_what_kernels_take():
    """Lists and whole numbers; what would lose an imaginary part is refused, the law named."""
    law = PoseFeedback(ARM, "tool", GOAL)
    q = np.arange(7)
    assert_close(law(0.0, q.tolist(), q), law(0.0, q.astype(float), q.astype(float)), 0.0)
    told = "of PoseFeedback for 'arm7': q has dtype complex128"
    for call in (lambda x: law(0.0, x, q), lambda x: law.lyapunov(x, q), law.error, law.pull):
        with pytest.raises(ArgumentError, match=told):
            call(q + 0j)
