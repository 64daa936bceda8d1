"""Test the gate: it admits this computer or a token, and refuses other web sites."""

import asyncio
import http.client
import socket
from urllib.parse import urlsplit

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.guide.gate import Gate, serve_page

LOCAL_HEADERS = {"Host": "127.0.0.1:8080"}
REMOTE_HEADERS = {"Host": "robot:8080"}


@pytest.fixture
def gate(tmp_path):
    folder = tmp_path / "guide"
    folder.mkdir()
    return Gate("127.0.0.1", folder, "<arm>", lambda: "the arm rests")


@pytest.fixture
def open_gate(gate):
    return Gate.for_host("0.0.0.0", gate.folder, gate.title, gate.stop)


def get_reply(gate, target, **headers):
    return asyncio.run(gate.reply(target, LOCAL_HEADERS | headers))


def test_local_host_needs_no_token(gate):
    assert not Gate.for_host("127.0.0.1", gate.folder, "", gate.stop).token
    assert gate.refusal("/", LOCAL_HEADERS) == ""
    assert gate.address(8080) == "http://127.0.0.1:8080/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:8080"},  # DNS rebinding
        {},
        LOCAL_HEADERS | {"Origin": "http://evil.example"},
        LOCAL_HEADERS | {"Origin": "null"},
        LOCAL_HEADERS | {"Origin": "http://127.0.0.1:9999"},
    ],
)
@pytest.mark.parametrize("target", ["/", "/view/", "/stop"])
def test_other_web_sites_are_refused(gate, target, headers):
    assert asyncio.run(gate.reply(target, headers)).status == 403


def test_remote_host_needs_the_token(open_gate):
    token = open_gate.token
    assert len(token) > 15
    for headers in (REMOTE_HEADERS, REMOTE_HEADERS | {"Cookie": "dynid_guide=wrong"}):
        assert "token" in open_gate.refusal("/?token=wrong", headers)
    assert open_gate.refusal(f"/?token={token}", REMOTE_HEADERS) == ""
    assert open_gate.refusal("/view/", REMOTE_HEADERS | {"Cookie": f"a=b; dynid_guide={token}"}) == ""
    assert open_gate.address(8080).endswith(f":8080/?token={token}")


def test_token_becomes_a_cookie(gate, open_gate):
    page = asyncio.run(open_gate.reply(f"/?token={open_gate.token}", REMOTE_HEADERS))
    assert open_gate.token in page.headers["Set-Cookie"]
    assert "Set-Cookie" not in get_reply(gate, "/").headers


def test_stop_is_answered(gate):
    assert get_reply(gate, "/stop", **{"X-Dynid": "stop"}).body == b"the arm rests"


def test_stop_by_a_link_is_refused(gate):
    assert get_reply(gate, "/stop").status == 403


def test_robot_name_is_escaped(gate):
    page = get_reply(gate, "/")
    assert page.status == 200
    assert b"&lt;arm&gt;" in page.body
    assert page.headers["X-Frame-Options"] == "SAMEORIGIN"


def test_other_requests_are_left_to_viser(gate):
    assert get_reply(gate, "/view/") is None
    assert get_reply(gate, "/", Upgrade="websocket") is None


def test_only_results_in_the_folder_are_served(gate, tmp_path):
    (gate.folder / "gravity").mkdir()
    for name in ("guide/gravity/report.html", "guide/key.pem", "secret.html"):
        (tmp_path / name).write_text("x")
    (gate.folder / "link.html").symlink_to(tmp_path / "secret.html")
    report = get_reply(gate, "/files/gravity/report.html")
    assert report.status == 200
    assert report.headers["Content-Security-Policy"] == "sandbox allow-scripts"
    for name in ("../secret.html", "%2e%2e/secret.html", "key.pem", "link.html", "gravity", f"/{tmp_path}/secret.html"):
        assert get_reply(gate, f"/files/{name}").status == 404


def test_port_in_use_is_one_line(gate):
    pytest.importorskip("viser")
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(DynidError, match="--port"):
        serve_page(gate, other.getsockname()[1])


def test_page_is_served_behind_the_gate(gate):
    pytest.importorskip("viser")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = serve_page(gate, port)
    try:
        assert urlsplit(gate.address(server.get_port())).port == port
        for path, headers, status, text in (
            ("/", {}, 200, "&lt;arm&gt;"),
            ("/view/", {}, 200, "viser"),
            ("/stop", {"X-Dynid": "stop"}, 200, "the arm rests"),
            ("/", {"Host": "evil.example"}, 403, "this machine alone"),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            assert (response.status, text in response.read().decode().lower()) == (status, True)
    finally:
        server.stop()
