"""Which requests the server of a page answers: those of its own page, under a name of its own.

A browser lets every page open a WebSocket to this machine, and says whose page it is (Origin); a
name on the network may be made to lead here, and the browser says which it looked up (Host).
"""

from __future__ import annotations

import gzip
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Gate"]

_LOCAL = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("", "0.0.0.0", "::")
_STARTING = threading.Lock()


class Gate:
    """Stands before a server that listens on a host; page: from viser's page to that of hinge."""

    def __init__(self, host: str, page: Callable[[str], str]) -> None:
        self._page, self._anywhere = page, host in _EVERYWHERE
        own = (socket.gethostname(), socket.getfqdn()) if self._anywhere else (host,)
        self._names = {name.lower() for name in (*_LOCAL, *own)}
        self.stands = False
        # an address that only this scene has, for pages that ask whether it is still there
        self.sign = f"/{secrets.token_hex(8)}"

    @contextmanager
    def before_servers(self) -> Iterator[None]:
        """It stands before the server that viser starts meanwhile."""
        import websockets.asyncio.server as module

        serve: Any = module.serve

        def guarded(handler: Any, *where: Any, **settings: Any) -> Any:
            if not handler.__module__.startswith("viser."):
                return serve(handler, *where, **settings)
            self.stands = True
            settings["process_request"] = self._before(settings["process_request"])
            return serve(handler, *where, **settings)

        with _STARTING:
            module.serve = guarded
            try:
                yield
            finally:
                module.serve = serve

    def refusal(self, headers: Any) -> str:
        """Why a request with these headers is not answered; nothing, if it is."""
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        named = _named(f"//{hosts[0]}") if len(hosts) == 1 else None
        if named is None or not self._is_own(named[0]):
            return (
                f"hinge: this page is not called {', '.join(hosts)!r}; open it as localhost, or "
                f"give the name as host= of view"
            )
        upgrades = headers.get_all("Upgrade") != []
        if upgrades and any(_named(origin) != named for origin in origins):
            return f"hinge: pages of {', '.join(origins)!r} may not control this one"
        return ""

    def _is_own(self, name: str) -> bool:
        return name in self._names or (self._anywhere and _is_address(name))

    def _before(self, answer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """What answers a request, with this in front of it."""

        def answered(connection: Any, request: Any) -> Any:
            if why := self.refusal(request.headers):
                return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
            path = request.path.partition("?")[0]
            if path == self.sign:
                response = connection.respond(HTTPStatus.OK, "here\n")
                response.headers["Access-Control-Allow-Origin"] = "*"
                return response
            response = answer(connection, request)
            if response is not None and path in ("/", "/index.html"):
                self._change(response)
            return response

        return answered

    def _change(self, response: Any) -> None:
        """Make it the page of hinge."""
        packed = response.headers.get("Content-Encoding") == "gzip"
        body = gzip.decompress(response.body) if packed else response.body
        body = self._page(body.decode()).encode()
        response.body = gzip.compress(body) if packed else body
        del response.headers["Content-Length"]
        response.headers["Content-Length"] = str(len(response.body))


def _named(address: str) -> tuple[str, int | None] | None:
    """Name and port of an address; None: it has none."""
    try:
        parts = urlsplit(address)
        return (parts.hostname, parts.port) if parts.hostname else None
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    """Whether it is made of numbers, which nobody else can lead here."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
