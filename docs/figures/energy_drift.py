"""Energy of free chains: Runge–Kutta in joint rates, ξ and ν; the midpoint rule in q̇, ξ and ν.

24 random chains of three hinges with 1 J for 10 s, nothing acting on them.
"""

from __future__ import annotations

import numpy as np
from common import panels, random_chain, save, with_energy

import hinge

SECONDS, STEP, CHAINS, JOINTS = 10.0, 0.02, 24, 3


def runge_kutta(robot: hinge.Robot, normalized: bool):
    """RK4 on (q, ν) or (q, ξ) as a rollout; hinges only, so that q is a vector."""
    alg, nv = robot.alg, robot.nv

    def rate(q, nu):
        qd = alg.joint_rates(q, nu, normalized)
        return qd, alg.diagonal_dynamics(q, nu, np.zeros(nv), None, normalized)

    def step(q, nu, h):
        k = [rate(q, nu)]
        for c in (0.5, 0.5, 1.0):
            k.append(rate(q + c * h * k[-1][0], nu + c * h * k[-1][1]))
        total = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(*k, strict=True)]
        return q + h * total[0], nu + h * total[1]

    return hinge.rollout(step, ("q", "nu"), q=(nv,), nu=(nv,), h=())


def midpoint_xi(robot: hinge.Robot):
    """The implicit midpoint rule on (q, ξ), by twelve iterations."""
    alg, nv = robot.alg, robot.nv

    def step(q, xi, h):
        q_mid, xi_mid = q, xi
        for _ in range(12):
            qd = alg.joint_rates(q_mid, xi_mid, False)
            xid = alg.diagonal_dynamics(q_mid, xi_mid, np.zeros(nv), None, False)
            q_mid, xi_mid = q + 0.5 * h * qd, xi + 0.5 * h * xid
        return 2 * q_mid - q, 2 * xi_mid - xi

    return hinge.rollout(step, ("q", "xi"), q=(nv,), xi=(nv,), h=())


def drifts(robot: hinge.Robot, q, qd, h: float) -> dict[str, float]:
    """The largest relative error of the kinetic energy in each way."""
    steps = round(SECONDS / h)
    out = {}
    for name, method in (
        ("RK4, q̇", "rk4"),
        ("midpoint, q̇", "joint_midpoint"),
        ("midpoint, ν", "implicit_midpoint"),
    ):
        run = hinge.simulate(robot, q, qd, duration=SECONDS, dt=h, method=method, limits=False)
        out[name] = np.abs(run.kinetic_energy - 1).max()
    for name, normalized in (("RK4, ξ", False), ("RK4, ν", True)):
        start = robot.total_rates(q, qd, normalized=normalized)
        qs, nus = runge_kutta(robot, normalized)(q, start, h, steps=steps)
        rates = robot.joint_rates(qs, nus, normalized=normalized)
        out[name] = np.abs(robot.kinetic_energy(qs, rates) - 1).max()
    return out


def error_of_position(robot: hinge.Robot, q, qd) -> tuple[float, float]:
    """|q − reference| at the end, of the midpoint rules in q̇ and in ν."""
    ways = {"duration": SECONDS, "limits": False}
    exact = hinge.simulate(robot, q, qd, dt=STEP / 20, every=20, **ways).q[-1]
    runs = (
        hinge.simulate(robot, q, qd, dt=STEP, method=method, **ways).q[-1]
        for method in ("joint_midpoint", "implicit_midpoint")
    )
    return tuple(float(np.abs(run - exact).max()) for run in runs)


def main() -> None:
    rng = np.random.default_rng(7)
    robots = [random_chain(JOINTS, rng) for _ in range(CHAINS)]
    states = [with_energy(robot, rng) for robot in robots]
    pairs = list(zip(robots, states, strict=True))
    found = [drifts(robot, *state, STEP) for robot, state in pairs]
    names = ["RK4, q̇", "RK4, ξ", "RK4, ν", "midpoint, q̇", "midpoint, ν"]
    table = {name: np.array([f[name] for f in found]) for name in names}
    for name, values in table.items():
        print(
            f"{name:14s} median {np.median(values):.1e}  "
            f"range {values.min():.1e} … {values.max():.1e}"
        )
    for name in ("RK4, ξ", "RK4, ν"):
        ratio = table[name] / table["RK4, q̇"]
        print(
            f"{name} over RK4, q̇: median {np.median(ratio):.2f}, range {ratio.min():.2f} … "
            f"{ratio.max():.2f}, smaller in {(ratio < 1).sum()} of {CHAINS}"
        )
    xi = []
    for robot, (q, qd) in pairs[:4]:
        start = robot.total_rates(q, qd, normalized=False)
        qs, xis = midpoint_xi(robot)(q, start, STEP, steps=round(SECONDS / STEP))
        energy = robot.kinetic_energy(qs, robot.joint_rates(qs, xis, normalized=False))
        xi.append(np.abs(energy - 1).max())
    print(f"midpoint, ξ: {min(xi):.1e} … {max(xi):.1e} (4 chains)")
    errors = np.array([error_of_position(robot, *state) for robot, state in pairs])
    print(
        f"|q − exact|, midpoint: q̇ median {np.median(errors[:, 0]):.1e}, "
        f"ν {np.median(errors[:, 1]):.1e}"
    )
    print(f"ν nearer than q̇ on {(errors[:, 1] < errors[:, 0]).sum()} of {CHAINS}")

    figure, (left, right) = panels(2)
    robot, (q, qd) = pairs[0]
    for label, method in (
        ("RK4, q̇", "rk4"),
        ("midpoint, q̇", "joint_midpoint"),
        ("midpoint, ν", "implicit_midpoint"),
    ):
        ways = {"dt": STEP, "method": method, "limits": False}
        run = hinge.simulate(robot, q, qd, duration=SECONDS, **ways)
        left.semilogy(run.t[1:], np.abs(run.kinetic_energy[1:] - 1) + 1e-17, label=label)
    left.set(xlabel="time  [s]", ylabel="|error of the energy|  [J of 1]", title="one chain, 20 ms")
    left.set(ylim=(3e-18, 1e-1))
    left.legend(ncols=3, fontsize="small", loc="upper center")
    for i, name in enumerate(names):
        right.semilogy(np.full(CHAINS, i), table[name], ".", alpha=0.6)
    right.set_xticks(range(len(names)), [n.replace(", ", "\n") for n in names])
    right.set(ylabel="largest error of the energy  [J of 1]", title="24 chains, 10 s, 20 ms")
    save(figure, "energy_drift")


if __name__ == "__main__":
    main()
