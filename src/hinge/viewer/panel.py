"""The controls beside the robot: switches, sliders of its joints, a handle to drag it by."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.rotation import quaternion_from_matrix, quaternion_matrix
from .dials import dials
from .puppet import SWITCHES
from .reach import reach

if TYPE_CHECKING:
    from .scene import Scene

__all__ = ["Panel"]

_TIPS = "outermost bodies"
_STEP = 1e-3  # rad or m
_FOLLOW = 0.1  # s between two updates of sliders by a program


class Panel:
    """What a hand can do on the page of a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.gui = scene, scene.server.gui
        self.boxes: dict[str, Any] = {}
        self.sliders: dict[int, Any] = {}
        self._followed = 0.0
        self._gizmo: Any = None
        with self.gui.add_folder("Show"):
            for what in (*SWITCHES, *scene.marks):
                self._add_switch(what)
            frames = (_TIPS, *scene.actor.mechanism.frame_names[1:])
            self.trailing = self.gui.add_dropdown("Trails of", frames)
            self.trailing.on_update(lambda _: self._trail())
        with self.gui.add_folder("Drag", expand_by_default=False):
            self._add_gizmo()
        with self.gui.add_folder("Joints"):
            self.gui.add_button("Reset").on_click(lambda _: self.reset())
            self._add_sliders()
        self._home = scene.q.copy()
        for k, handle in scene.puppet.meshes():
            if k:
                handle.on_drag("left", modifier="shift")(lambda event, k=k: self._pull(k, event))

    def reset(self) -> None:
        """Back to the configuration that the scene began with."""
        self.scene.show(self._home)

    def follow(self) -> None:
        """Put sliders and handle where the robot is; not so often that it takes time."""
        if time.monotonic() - self._followed > _FOLLOW:
            self._followed = time.monotonic()
            for i, slider in self.sliders.items():
                value = np.clip(self.dials[i].read(self.scene.q), slider.min, slider.max)
                slider.value = round(float(value), 3)
            self._put_gizmo()

    def _add_switch(self, what: str) -> None:
        on = self.scene.marks.get(what, what == "visuals")
        box = self.gui.add_checkbox(what.capitalize(), on)
        self.boxes[what] = box
        box.on_update(lambda event: event.client and self.scene.switch(what, event.target.value))

    def _trail(self) -> None:
        chosen = self.trailing.value
        self.scene.trace(*([] if chosen == _TIPS else [chosen]))

    # sliders

    def _add_sliders(self) -> None:
        scene = self.scene
        self.dials = dials(scene.actor.mechanism, scene.q)
        for i, dial in enumerate(self.dials):
            value = float(np.clip(dial.read(scene.q), dial.low, dial.high))
            step = min(_STEP, dial.high - dial.low)
            ends = (dial.low, f"{dial.low:.3g}"), (dial.high, f"{dial.high:.3g}")
            slider = self.gui.add_slider(dial.label, dial.low, dial.high, step, value, marks=ends)
            self.sliders[i] = slider
            slider.on_update(lambda event, i=i: self._slid(i, event))

    def _slid(self, i: int, event: Any) -> None:
        # a program that moves the robot moves sliders too: those have no client
        if event.client is not None:
            self.scene.show(self.dials[i].turned(self.scene.q, event.target.value))

    # the handle

    def _add_gizmo(self) -> None:
        names = self.scene.actor.mechanism.frame_names[1:]
        if names:
            self.frame = self.gui.add_dropdown("Frame", names, initial_value=names[-1])
            self.holds = self.gui.add_checkbox("Handle", False)
            for control in (self.frame, self.holds):
                control.on_update(lambda _: self._hold())

    def _hold(self) -> None:
        if self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if self.holds.value:
            scale = 0.2 * self.scene.place.size
            self._gizmo = self.scene.server.scene.add_transform_controls(
                "/handle", scale=scale, depth_test=False
            )
            self._put_gizmo()
            self._gizmo.on_update(self._dragged)

    def _put_gizmo(self) -> None:
        if self._gizmo is not None and time.monotonic() - self._dragged_at > 0.3:
            X = self.scene.actor.frame_pose(self.scene.q, self.frame.value)
            self._gizmo.position, self._gizmo.wxyz = X[:3, 3], quaternion_from_matrix(X[:3, :3])

    _dragged_at = 0.0

    def _dragged(self, event: Any) -> None:
        self._dragged_at = time.monotonic()
        target = np.eye(4)
        target[:3, :3] = quaternion_matrix(np.array(event.target.wxyz))
        target[:3, 3] = event.target.position
        scene = self.scene
        scene.show(reach(scene.actor, scene.q, self.frame.value, target))

    # the mouse as a force

    def _pull(self, k: int, event: Any) -> None:
        """A spring from the point that was taken to the mouse, where its arrow ends."""
        scene = self.scene
        X = scene.actor.poses(scene.q)[k - 1]
        at, to = np.array(event.start_position), np.array(event.end_position)
        force = (to - at) / scene.newton
        moment = np.cross(at - X[:3, 3], force)
        push = np.zeros_like(scene.push)
        if event.phase != "end":
            push[k - 1] = np.concatenate([X[:3, :3].T @ moment, X[:3, :3].T @ force])
        scene.push = push
        scene.show(scene.q)
