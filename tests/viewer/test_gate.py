"""Who may open the page of a scene, and control it."""

import asyncio
import socket
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import hinge

viser = pytest.importorskip("viser")
from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from hinge.viewer.gate import Gate  # noqa: E402


@pytest.fixture(scope="module")
def port():
    with hinge.zoo.pendulum(1).view(browser=False) as scene:
        yield scene.server.get_port()


def status(port, origin=None, host="localhost"):
    """What a WebSocket with this Origin and Host gets: 101 if it is taken."""
    raw = socket.create_connection(("127.0.0.1", port))
    settings = {"sock": raw, "origin": origin, "subprotocols": [f"viser-v{viser.__version__}"]}
    try:
        with connect(f"ws://{host}:{port}", **settings):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


def fetched(port, host, path="/"):
    """Status and text of a page that is asked for under a name."""
    request = Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
    try:
        with urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_page_itself_may_control_the_scene(port, host):
    assert status(port, f"http://{host}:{port}", host) == 101


def test_programs_that_are_no_browser_may_control_it(port):
    assert status(port) == 101


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://localhost.evil.example", "null", "http://[", ""]
)
def test_pages_of_other_sites_may_not(port, origin):
    assert status(port, origin) == 403


def test_other_ports_of_this_machine_may_not(port):
    assert status(port, f"http://localhost:{port + 1}") == 403


def test_names_that_were_made_to_lead_here_are_not_answered(port):
    assert status(port, f"http://evil.example:{port}", "evil.example") == 403
    code, said = fetched(port, f"evil.example:{port}")
    assert code == 403 and "host=" in said


def test_the_page_is_that_of_hinge(port):
    code, page = fetched(port, f"localhost:{port}")
    assert code == 200 and "hinge" in page and "<title>pendulum1</title>" in page
    assert fetched(port, f"localhost:{port}", "/?darkMode")[0] == 200
    assert fetched(port, f"localhost:{port}", "/nowhere")[0] == 404


class Headers(dict):
    """Of a request, each with a list of values."""

    def get_all(self, name):
        return self.get(name, [])


@pytest.mark.parametrize(
    ("host", "named", "taken"),
    [
        ("127.0.0.1", "192.168.1.4:8080", False),
        ("192.168.1.4", "192.168.1.4:8080", True),
        ("192.168.1.4", "192.168.1.5:8080", False),
        ("robot.lab", "ROBOT.lab:8080", True),
        ("0.0.0.0", "192.168.1.4:8080", True),
        ("0.0.0.0", "[fe80::1]:8080", True),
        ("0.0.0.0", f"{socket.gethostname()}:8080", True),
        ("0.0.0.0", "evil.example:8080", False),
        ("0.0.0.0", "evil.example:none", False),
    ],
)
def test_names_of_a_page(host, named, taken):
    gate = Gate(host, lambda page: page)
    assert (gate.refusal(Headers(Host=[named])) == "") == taken


def test_a_request_without_one_name_is_not_answered():
    gate = Gate("127.0.0.1", lambda page: page)
    assert gate.refusal(Headers()) and gate.refusal(Headers(Host=["localhost", "evil.example"]))


def test_a_viser_that_starts_its_server_otherwise_is_refused(monkeypatch):
    class Other:
        stopped = False

        def __init__(self, *where, **settings):
            pass

        def stop(self):
            Other.stopped = True

    monkeypatch.setattr(viser, "ViserServer", Other)
    with pytest.raises(hinge.HingeError, match="pip install 'viser~=1.1.0'"):
        hinge.zoo.pendulum(1).view(browser=False)
    assert Other.stopped


def test_other_servers_start_as_they_are():
    from websockets.asyncio import server

    gate = Gate("127.0.0.1", lambda page: page)

    async def listening():
        async with server.serve(print, "127.0.0.1", 0) as started:
            return started.is_serving()

    with gate.before_servers():
        assert asyncio.run(listening())
    assert not gate.stands
