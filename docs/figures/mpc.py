"""An arm that plans again at every tick, from where it is: the tool's way to its goal, a kick."""

from __future__ import annotations

import numpy as np
from common import panels, save

import hinge

TICKS, KICK, DT, HORIZON = 150, 60, 0.01, 40
HOME = np.array([0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0])
GOAL = np.array([0.57, 0.72, 0.20])


def planner(robot: hinge.Robot) -> hinge.control.ILQR:
    """The tool to its goal, slowly and with little force."""

    def away(q):
        return robot.alg.frame_pose(q, "tool")[:3, 3] - GOAL

    return hinge.control.ILQR(
        robot,
        lambda q, qd, tau: np.concatenate([10 * away(q), 0.5 * qd, 0.01 * tau]),
        lambda q, qd: np.concatenate([10 * away(q), qd]),
        dt=DT,
    )


def main() -> None:
    robot = hinge.zoo.arm(7)
    plan_for, q, qd = planner(robot), HOME, np.zeros(7)
    plan = plan_for(q, qd, np.tile(robot.gravity_forces(q), (HORIZON, 1)))
    states, forces = [q], []
    for tick in range(TICKS):
        qd = qd + (tick == KICK) * 2.0 * np.eye(7)[1]
        plan = plan_for(q, qd, np.vstack([plan.tau[1:], plan.tau[-1:]]), iterations=2)
        real = hinge.simulate(robot, q, qd, tau=plan.tau[0], duration=DT, dt=1e-3)
        q, qd = real.q[-1], real.qd[-1]
        states.append(q)
        forces.append(plan.tau[0])
    tools = robot.frame_pose(np.array(states), "tool")[:, :3, 3]
    distance, t = np.linalg.norm(tools - GOAL, axis=-1), DT * np.arange(TICKS + 1)
    print(f"the tool ends {1e3 * distance[-1]:.2f} mm from its goal")
    figure, (left, right) = panels(2)
    left.semilogy(t, 1e3 * distance)
    left.set(xlabel="t in s", ylabel="distance of the tool in mm")
    right.plot(t[:-1], forces)
    right.set(xlabel="t in s", ylabel="joint forces in N m")
    for axes in (left, right):
        axes.axvline(KICK * DT, color="gray", linestyle=":", label="a kick")
    left.legend()
    save(figure, "mpc")


if __name__ == "__main__":
    main()
