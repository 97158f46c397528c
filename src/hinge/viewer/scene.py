"""The studio: a page in the browser that shows a robot, moves it by hand and follows a program."""

from __future__ import annotations

import time
from collections.abc import Mapping
from html import escape
from threading import Event, Lock, Thread
from typing import Any, Self

import numpy as np

from ..errors import ArgumentError
from .actor import Actor, all_poses, place_of
from .arrows import Arrows, check_arrows, lengths, of_bodies, show_arrows, weight_of
from .look import look_of
from .mesh import tapered
from .page import page_of
from .panel import Panel
from .player import Curves, Player
from .puppet import Puppet
from .server import HOST, PORT, address, quiet, show_page, start
from .stance import standing

__all__ = ["Scene"]

_RATE = 60.0  # frames a second
_BESIDE = 0.2  # heights of the page, for the controls on the right
_TRAIL = 400  # points that a trail has
_NOTHING: Mapping[str, Curves] = {}


class Scene:
    """A robot on a page; `show` moves it, as often as a program likes.

    push: (n_bodies, 6), the force of the mouse on each body, to be given as `f_ext`: hold Shift and
    pull at a body.  It is zero while nobody pulls.
    """

    def __init__(
        self,
        actor: Actor,
        q: Any = None,
        host: str = HOST,
        port: int = PORT,
        browser: bool = True,
        around: Any = None,
    ) -> None:
        """host: "0.0.0.0" lets other machines look; browser: open it, or only say the address.

        around: configurations (…, nq) that the camera should see; q alone by default.
        """
        self.actor, self.q = actor, np.array(standing(actor) if q is None else q, dtype=float)
        mech = actor.mechanism
        poses = all_poses(actor, self.q)
        self.look = look_of(mech)
        seen = poses if around is None else all_poses(actor, around)
        self.place = place_of(mech, self.look, seen)
        self.push = np.zeros((mech.n_bodies, 6))
        self._arrows = check_arrows("", None)
        self.served = start(actor.name, host, port, self.place, _BESIDE)
        self.server = self.served.server
        self._next = self.q, poses, self._arrows
        self._wake, self._closed, self._drawing = Event(), Event(), Lock()
        self._trail: list[np.ndarray] = []
        self._player: Player | None = None
        self.traced = self._tips()
        self.marks = {"centre of mass": False, "forces": True, "trails": False}
        self.puppet = Puppet(self.server, mech, self.look, self.place.size)
        self.panel = Panel(self)
        self._drawn(poses)
        self._hand = Thread(target=self._follow, daemon=True)
        self._hand.start()
        if browser:
            show_page(self.server)

    # from a program

    def show(self, q: Any, f_ext: Any = None, forces: Any = None) -> None:
        """Move the robot to q (nq,), with forces as arrows, half as long as it for its weight.

        f_ext: (n_bodies, 6), on bodies in their axes; forces: points and vectors in world axes,
        each (n, 3), of contacts for example.  Without f_ext the pull of the mouse is drawn.
        This comes back at once: the page shows the latest, 60 times a second at most.
        """
        q, where = np.array(q, dtype=float), f"scene of {self.actor.name!r}"
        nq, rows = self.q.shape, self.push.shape
        if q.shape != nq or (f_ext is not None and np.shape(f_ext) != rows):
            raise ArgumentError(
                f"{where}: show takes one configuration of shape {nq} and "
                f"f_ext {rows}; got q {q.shape} and f_ext {np.shape(f_ext)}"
            )
        poses, given = all_poses(self.actor, q), check_arrows(where, forces)
        on_bodies = self.push if f_ext is None else np.array(f_ext, dtype=float)
        arrows = [of_bodies(poses[1:], on_bodies, self.place.size), given]
        self._next = q, poses, Arrows.together(arrows)
        self._wake.set()

    def play(
        self,
        t: np.ndarray,
        q: np.ndarray,
        curves: Mapping[str, Curves] = _NOTHING,
        f_ext: Any = None,
        forces: Any = None,
    ) -> Player:
        """Play a motion, t (T,) and q (T, …, nq), with controls of its time and plots of curves.

        f_ext: (n_bodies, 6) or (T, n_bodies, 6); forces: points and vectors, each (T, n, 3).
        """
        t, q = np.asarray(t, dtype=float), np.asarray(q, dtype=float)
        self.player = self._player = Player(self, t, q, curves, f_ext, forces)
        return self.player

    def trace(self, *frames: str) -> None:
        """Of which frames trails are drawn; without any, of the origins of the outermost bodies."""
        mech = self.actor.mechanism
        found = [mech.frame(name) for name in frames]
        self.traced = [(f.body, f.placement.translation) for f in found] or self._tips()
        self.forget()

    def forget(self) -> None:
        """Begin trails anew."""
        self._trail = []

    @property
    def address(self) -> str:
        """Of the page."""
        return address(self.server)

    @property
    def running(self) -> bool:
        """Until it is closed."""
        return not self._closed.is_set()

    def wait(self) -> None:
        """Stay until the scene is closed, or Ctrl-C."""
        try:
            while not self._closed.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Take the page off."""
        if self.running:
            self._closed.set()
            self._wake.set()
            self._hand.join(timeout=2.0)
            with quiet():
                self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """The scene for a notebook: live while it runs, and as it was shown afterwards."""
        player, live = self._player, (self.address, self.served.gate.sign)
        t, q, forces = np.zeros(1), self.q[None], None
        if player is not None:
            t, q, forces = player.t, player.q, player.arrows
        page = page_of(self.actor, t, q, forces, live=live if self.running else ("", ""))
        size = 'width="100%" height="560" frameborder="0"'
        return f'<iframe srcdoc="{escape(page)}" {size}></iframe>'

    # from the page

    def switch(self, what: str, on: bool) -> None:
        """Show or hide: one of SWITCHES, "centre of mass", "forces" or "trails"."""
        if what in self.marks:
            self.marks[what] = on
            self.forget()
            self._drawn(all_poses(self.actor, self.q))
        else:
            self.puppet.switch(what, on)
        self.panel.boxes[what].value = on

    # the thread that draws

    def _follow(self) -> None:
        while self._wake.wait() and self.running:
            self._wake.clear()
            self.q, poses, self._arrows = self._next
            self._drawn(poses)
            self.panel.follow()
            time.sleep(1 / _RATE)

    def _drawn(self, poses: np.ndarray) -> None:
        with self._drawing, self.server.atomic():
            self.puppet.pose(poses)
            self._draw_center()
            self._draw_forces()
            self._draw_trails(poses)

    def _draw_center(self) -> None:
        on, scene, radius = self.marks["centre of mass"], self.server.scene, 0.015 * self.place.size
        if on:
            ball = tapered(radius, radius, 0.0)
            at = self.actor.center_of_mass(self.q)
            scene.add_mesh_simple(
                "/center", ball.vertices, ball.faces, color=(250, 204, 21), position=at
            )
        else:
            scene.remove_by_name("/center")

    def _draw_forces(self) -> None:
        arrows = self._arrows if self.marks["forces"] else check_arrows("", None)
        show_arrows(self.server.scene, arrows, self.place.size, self.newton)

    @property
    def weight(self) -> float:
        """Of the robot on Earth, N; 1 for one without mass."""
        return weight_of(self.actor.mechanism)

    @property
    def newton(self) -> float:
        """How long the arrow of 1 N is, m."""
        return lengths(self.actor.mechanism, self.place.size)

    def _tips(self) -> list[tuple[int, np.ndarray]]:
        """The outermost bodies, each with its origin."""
        bodies = self.actor.mechanism.bodies
        parents = {b.parent for b in bodies}
        return [(k, np.zeros(3)) for k in range(1, len(bodies)) if k not in parents]

    def _draw_trails(self, poses: np.ndarray) -> None:
        """Where the traced points went lately."""
        scene = self.server.scene
        if not self.marks["trails"] or not self.traced:
            scene.remove_by_name("/trail")
            return
        now = np.stack([poses[k, :3, :3] @ point + poses[k, :3, 3] for k, point in self.traced])
        self._trail = [*self._trail, now][-_TRAIL:]
        if len(self._trail) > 1:
            points = np.stack(self._trail)
            lines = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 3)
            thin = 0.004 * self.place.size
            scene.add_line_segments("/trail", lines, (242, 107, 33), thickness=thin)
