"""Numbers of a mechanism as parameters of a module, such as a mechanism can have whatever they are.

    mass        m = m₀ exp(θ), all moments of the body in proportion
    inertia     P = L T T* L*, P₀ = L L*, T lower triangular with diagonal exp(θ): `Bodies`
    placement   R = R₀ exp(θ̃), p = p₀ + d
    gravity     as it is

θ and d are 0 at the start, so that steps of one size suit all of them.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..identification.bodies import BACK, Bodies, inertia_from
from ..model.parameters import parameters, pose_of
from ..robot import Robot
from ..runtime.check import check_choice
from .operators import dtype_of

__all__ = ["LEARNT", "Numbers"]

torch: Any = import_module("torch")

LEARNT = ("mass", "inertia", "placement", "gravity")
_LOWER = np.tril_indices(4)


class Numbers(torch.nn.Module):
    """The numbers that are learnt: called, it gives them as `hinge.model.parameters` has them."""

    def __init__(self, robot: Robot, names: tuple[str, ...]) -> None:
        super().__init__()
        where = f"hinge.torch.robot of {robot.name!r}"
        for name in names:
            check_choice(where, "learn", name, LEARNT)
        if {"mass", "inertia"} <= set(names):
            raise ArgumentError(
                f"{where}: learn has mass and inertia; a mass is part of an inertia"
            )
        self.names, self.dtype = names, dtype_of(robot.dtype)
        own = parameters(robot.mechanism)
        if "mass" in names:
            self._constant("start_inertia", own["inertia"])
            self._zeros("log_mass", len(own["inertia"]), 1)
        if "inertia" in names:
            self._constant("factors", Bodies(own["inertia"]).factors)
            self._constant("forms", BACK)
            self._zeros("log_cholesky", len(own["inertia"]), 10)
        if "placement" in names:
            self._constant("start_placement", own["placement"])
            self._zeros("rotation", len(own["placement"]), 3)
            self._zeros("translation", len(own["placement"]), 3)
        if "gravity" in names:
            self.gravity = torch.nn.Parameter(self._as_tensor(own["gravity"]))

    def _as_tensor(self, x: np.ndarray) -> Any:
        return torch.tensor(np.array(x), dtype=self.dtype)

    def _constant(self, name: str, x: np.ndarray) -> None:
        self.register_buffer(name, self._as_tensor(x), persistent=False)

    def _zeros(self, name: str, *shape: int) -> None:
        self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape, dtype=self.dtype)))

    def forward(self) -> dict[str, Any]:
        """The numbers, by name."""
        made = {"inertia": self._inertia, "placement": self._placement}
        found = {"inertia" if n == "mass" else n for n in self.names}
        return {n: self.gravity if n == "gravity" else made[n]() for n in sorted(found)}

    def _inertia(self) -> Any:
        if "mass" in self.names:
            return self.start_inertia * torch.exp(self.log_mass)
        theta = self.log_cholesky
        T = torch.zeros(len(theta), 4, 4, dtype=theta.dtype, device=theta.device)
        T[:, _LOWER[0], _LOWER[1]] = theta
        diagonal = torch.diagonal(T, dim1=-2, dim2=-1)
        T = T - torch.diag_embed(diagonal) + torch.diag_embed(torch.exp(diagonal))
        L = self.factors @ T
        return torch.einsum("kab,nab->nk", self.forms, L @ L.mT)

    def _placement(self) -> Any:
        x, y, z = self.rotation.unbind(-1)
        zero = torch.zeros_like(x)
        rows = [zero, -z, y, z, zero, -x, -y, x, zero]
        turn = torch.linalg.matrix_exp(torch.stack(rows, -1).reshape(-1, 3, 3))
        start = self.start_placement
        R = start[:, :9].reshape(-1, 3, 3) @ turn
        return torch.cat([R.reshape(-1, 9), start[:, 9:] + self.translation], -1)

    def folded_in(self, robot: Robot) -> Robot:
        """A robot with the numbers as they are now."""
        with torch.no_grad():
            now = {n: x.cpu().numpy().astype(float) for n, x in self().items()}
        mech = robot.mechanism
        bodies = list(mech.bodies)
        for k, body in enumerate(mech.bodies[1:]):
            if "inertia" in now:
                body = replace(body, inertia=inertia_from(now["inertia"][k]))
            if "placement" in now:
                body = replace(body, placement=pose_of(now["placement"][k]))
            bodies[k + 1] = body
        gravity = tuple(map(float, now["gravity"])) if "gravity" in now else mech.gravity
        return robot._with_mechanism(replace(mech, bodies=tuple(bodies), gravity=gravity))
