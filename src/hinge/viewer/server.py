"""The server behind the page: for this machine alone unless told, on the next free port."""

from __future__ import annotations

import math
import os
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rich import get_console

from ..errors import HingeError
from ..runtime.check import check_whole
from .actor import Place
from .gate import Gate
from .head import Framing, page_with

if TYPE_CHECKING:
    from viser import ViserServer

__all__ = ["HOST", "PORT", "address", "is_local", "quiet", "Served", "show_page", "start"]

HOST, PORT = "127.0.0.1", 8080
_TRIES = 100
_BRAND = (242, 107, 33)


class Served(NamedTuple):
    """A page that is served: where its camera begins, and who may open it."""

    server: ViserServer
    framing: Framing
    gate: Gate


def start(name: str, host: str, port: int, place: Place, beside: float = 0.0) -> Served:
    """A page with a floor and a camera that sees all of a robot; if the port is taken, on the next.

    beside: how far left of the middle the robot is, in heights of the page.
    """
    if find_spec("viser") is None:
        raise HingeError(
            'looking at a robot in the browser needs viser; pip install "hinge-dynamics[view]"; '
            "robot.draw(q, path) makes a picture without it"
        )
    import viser

    free = _free_port(f"view of {name!r}", host, port)
    framing = Framing(place, beside)
    gate = Gate(host, lambda page: page_with(page, framing, name))
    with quiet(), gate.before_servers():
        server = viser.ViserServer(host, free, label=name, verbose=False)
        if not gate.stands:
            server.stop()
            raise HingeError(
                f"view of {name!r}: viser {viser.__version__} starts its server in a way in which "
                f"hinge cannot keep other sites from it; expected 1.1: pip install 'viser~=1.1.0'"
            )
    server.gui.configure_theme(
        brand_color=_BRAND, show_logo=False, show_share_button=False, control_width="medium"
    )
    server.scene.set_up_direction("+z")
    _add_floor(server, place)
    first = framing.first
    server.initial_camera.position = tuple(first.eye)
    server.initial_camera.look_at = tuple(first.target)
    server.initial_camera.fov = first.fov
    return Served(server, framing, gate)


def _free_port(where: str, host: str, port: int) -> int:
    """The first port from there on at which one can listen."""
    check_whole(where, "port", port)
    problem: Exception | None = None
    for candidate in range(port, min(port + _TRIES, 65536)):
        try:
            with socket.socket() as trial:
                trial.bind((host, candidate))
            return candidate
        except OSError as error:
            problem = error
    raise HingeError(
        f"{where}: cannot listen on {host!r}, ports {port} to {port + _TRIES - 1}: "
        f"{problem or 'ports end at 65535'}; give another host or port"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """While viser says by itself what it does, on a terminal or in a notebook."""
    console = get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _add_floor(server: ViserServer, place: Place) -> None:
    """Light, and a grid to stand on."""
    size = place.size
    cell = 10.0 ** round(math.log10(max(size, 1e-6) / 8))
    server.scene.configure_default_lights()
    server.scene.add_grid(
        "/floor",
        infinite_grid=True,
        cell_size=cell,
        section_size=5 * cell,
        cell_color=(222, 226, 232),
        section_color=(196, 202, 211),
        fade_distance=12 * size,
        fade_strength=2.0,
        shadow_opacity=0.25,
        position=(0.0, 0.0, place.ground),
    )


def address(server: ViserServer) -> str:
    """What to type into a browser."""
    host = server.get_host()
    return f"http://{'localhost' if host in ('0.0.0.0', HOST) else host}:{server.get_port()}"


def is_local() -> bool:
    """Whether a browser can show something to whoever sits here; a notebook shows it itself."""
    return "ipykernel" not in sys.modules and (
        os.name == "nt"
        or sys.platform == "darwin"
        or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    )


def show_page(server: ViserServer) -> None:
    """Open the browser, and say where the page is in any case."""
    try:
        opened = is_local() and webbrowser.open(address(server))
    except webbrowser.Error:
        opened = False
    told = "the studio is open in the browser" if opened else "open this in a browser"
    print(f"{told}: {address(server)}", file=sys.stderr)
