"""A robot on the page: one node per body, its meshes sent once, its pose with every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.rotation import quaternion_from_matrix
from ..algebra.spatial import Transform
from ..model.mechanism import Body, Mechanism
from .look import Look, inertia_box, joint_axes
from .mesh import Mesh, Rgba, tapered

if TYPE_CHECKING:
    from viser import ViserServer

__all__ = ["SWITCHES", "Puppet"]

SWITCHES = ("visuals", "collisions", "frames", "joint axes", "inertias")
_BLUE: Rgba = (0.20, 0.45, 0.85, 0.45)
_YELLOW: Rgba = (0.98, 0.75, 0.10, 0.45)
_GREEN: Rgba = (0.10, 0.65, 0.35, 1.0)
_GHOST = 0.25


class Puppet:
    """The nodes of a robot; what a switch shows is sent when it is first switched on."""

    def __init__(
        self,
        server: ViserServer,
        mechanism: Mechanism,
        look: Look,
        size: float,
        name: str = "robot",
    ) -> None:
        """size: of the robot, m; name: of its nodes, "ghost…" for one that is seen through."""
        self.server, self.mechanism, self.look, self.size = server, mechanism, look, size
        self.opacity = _GHOST if name.startswith("ghost") else None
        self.nodes = [
            server.scene.add_frame(f"/{name}/{k}", show_axes=False)
            for k in range(len(mechanism.bodies))
        ]
        self.shown: dict[str, list[Any]] = {}
        self.switch("visuals", True)

    def pose(self, poses: np.ndarray) -> None:
        """Put every body where it is: (1 + n_bodies, 4, 4), the ground first.

        One that is not finite leaves all where they were.
        """
        if not np.isfinite(poses).all():
            return
        for node, X in zip(self.nodes[1:], poses[1:], strict=True):
            node.position = X[:3, 3]
            node.wxyz = quaternion_from_matrix(X[:3, :3])

    def switch(self, what: str, on: bool) -> None:
        """Show or hide one of SWITCHES."""
        if on and what not in self.shown:
            make = getattr(self, f"_{what.replace(' ', '_')}")
            bodies = enumerate(zip(self.nodes, self.mechanism.bodies, strict=True))
            self.shown[what] = [h for k, (node, body) in bodies for h in make(k, node.name, body)]
        for handle in self.shown.get(what, ()):
            handle.visible = on

    def meshes(self) -> list[tuple[int, Any]]:
        """The nodes of all visual meshes, each with the number of its body."""
        return [(int(h.name.split("/")[2]), h) for h in self.shown["visuals"]]

    def _visuals(self, k: int, node: str, body: Body) -> list[Any]:
        parts = enumerate(self.look.visuals[k])
        return [self._add(f"{node}/visual{i}", mesh, self.opacity) for i, mesh in parts]

    def _collisions(self, k: int, node: str, body: Body) -> list[Any]:
        parts = enumerate(self.look.collisions[k])
        return [self._add(f"{node}/collision{i}", mesh.painted(_BLUE)) for i, mesh in parts]

    def _frames(self, k: int, node: str, body: Body) -> list[Any]:
        return [
            self.server.scene.add_frame(
                f"{node}/frame{i}",
                axes_length=0.06 * self.size,
                axes_radius=0.003 * self.size,
                origin_radius=0.005 * self.size,
                wxyz=quaternion_from_matrix(frame.placement.rotation),
                position=frame.placement.translation,
            )
            for i, frame in enumerate(self.mechanism.frames)
            if frame.body == k
        ]

    def _joint_axes(self, k: int, node: str, body: Body) -> list[Any]:
        long, thin = 0.16 * self.size, 0.004 * self.size
        rod = tapered(thin, thin, long).placed(Transform(translation=(0.0, 0.0, -long / 2)))
        axes = enumerate(joint_axes(body))
        return [self._add(f"{node}/axis{i}", rod.painted(_GREEN).placed(X)) for i, X in axes]

    def _inertias(self, k: int, node: str, body: Body) -> list[Any]:
        if k == 0 or body.inertia.mass <= 0:
            return []
        X, sides = inertia_box(body.inertia)
        # an even ellipsoid of half axes a has the moments of a box of sides √(12/5) a
        half = np.maximum(sides * np.sqrt(5 / 12), 1e-3 * self.size)
        egg = tapered(1.0, 1.0, 0.0).scaled(tuple(half)).painted(_YELLOW).placed(X)
        return [self._add(f"{node}/inertia", egg)]

    def _add(self, name: str, mesh: Mesh, opacity: float | None = None) -> Any:
        """A mesh of one colour as it is; one of many goes as a file that keeps them."""
        scene = self.server.scene
        if mesh.colors is not None and opacity is None:
            import trimesh

            paint = np.concatenate([mesh.colors, np.ones((len(mesh.colors), 1))], axis=1)
            whole = trimesh.Trimesh(
                mesh.vertices,
                mesh.faces,
                vertex_colors=(255 * paint).astype(np.uint8),
                process=False,
            )
            return scene.add_mesh_trimesh(name, whole)
        r, g, b = (int(round(255 * x)) for x in mesh.paint.mean(axis=0))
        alpha = mesh.rgba[3] if mesh.rgba else 1.0
        seen_through = opacity or (alpha if alpha < 1 else None)
        return scene.add_mesh_simple(
            name,
            mesh.vertices,
            mesh.faces,
            color=(r, g, b),
            opacity=seen_through,
            side="double",
            cast_shadow=seen_through is None,
        )
