"""A robot or its motion as one HTML file that needs nothing else, neither Python nor a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..write.whole import written_whole
from .actor import MOST_DRAWN, Actor, all_poses, place_of
from .arrows import check_arrows, lengths, show_arrows
from .head import page_with
from .look import look_of
from .puppet import Puppet
from .server import HOST, PORT, quiet, start

__all__ = ["page_of", "write_page"]

_FRAMES = 30  # recorded of a second


def write_page(
    where: str,
    path: str | Path,
    actor: Actor,
    t: np.ndarray,
    q: Any,
    forces: Any = None,
    caption: str = "",
) -> None:
    """Write a motion, t (T,) and q (T, …, nq), as a page that plays it; T may be 1.

    forces: points and vectors in world axes, each (T, n, 3); caption: above the scene.
    """
    text = page_of(actor, t, q, forces, caption)
    with written_whole(where, path) as beside:
        beside.write_text(text, encoding="utf-8")


def page_of(
    actor: Actor,
    t: np.ndarray,
    q: Any,
    forces: Any = None,
    caption: str = "",
    live: tuple[str, str] = ("", ""),
) -> str:
    """The same page as a text; live: of `page_with`."""
    mech, arrows = actor.mechanism, check_arrows(f"page of {actor.name!r}", forces, (len(t),))
    count = int(round((t[-1] - t[0]) * _FRAMES)) + 1
    index = np.searchsorted(t, t[0] + np.arange(count) / _FRAMES).clip(0, len(t) - 1)
    q = np.asarray(q)[index].reshape(count, -1, mech.nq)[:, :MOST_DRAWN]
    poses = all_poses(actor, q)
    look = look_of(mech)
    place = place_of(mech, look, poses)
    server, framing, _ = start(actor.name, HOST, PORT, place)
    try:
        names = ["robot", *(f"ghost{i}" for i in range(1, q.shape[1]))]
        puppets = [Puppet(server, mech, look, place.size, name) for name in names]
        recorder = server.get_scene_serializer()
        newton = lengths(mech, place.size)
        for frame, i in zip(poses, index, strict=True):
            for puppet, X in zip(puppets, frame, strict=True):
                puppet.pose(X)
            if forces is not None:
                show_arrows(server.scene, arrows.at(i), place.size, newton)
            if count > 1:
                recorder.insert_sleep(1 / _FRAMES)
        return page_with(recorder.as_html(), framing, actor.name, caption, live)
    finally:
        with quiet():
            server.stop()
