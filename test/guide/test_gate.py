"""The gate lets in the page of this machine, or one with the token; STOP passes it, other web sites do not."""

import asyncio
import http.client
import socket
from urllib.parse import urlsplit

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.guide.gate import Gate, serve_page

LOCAL = {"Host": "127.0.0.1:8080"}
THERE = {"Host": "robot:8080"}


@pytest.fixture
def gate(tmp_path):
    folder = tmp_path / "guide"
    folder.mkdir()
    return Gate("127.0.0.1", folder, "<arm>", lambda: "the arm rests")


@pytest.fixture
def open_gate(gate):
    return Gate.for_host("0.0.0.0", gate.folder, gate.title, gate.stop)


def reply(gate, target, **headers):
    return asyncio.run(gate.reply(target, LOCAL | headers))


def test_this_machine_needs_no_token(gate):
    assert not Gate.for_host("127.0.0.1", gate.folder, "", gate.stop).token
    assert gate.refusal("/", LOCAL) == ""
    assert gate.address(8080) == "http://127.0.0.1:8080/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:8080"},  # DNS rebinding
        {},
        LOCAL | {"Origin": "http://evil.example"},
        LOCAL | {"Origin": "null"},
        LOCAL | {"Origin": "http://127.0.0.1:9999"},
    ],
)
@pytest.mark.parametrize("target", ["/", "/view/", "/stop"])
def test_another_web_site_is_refused(gate, target, headers):
    assert asyncio.run(gate.reply(target, headers)).status == 403


def test_another_host_needs_the_token(open_gate):
    token = open_gate.token
    assert len(token) > 15
    for headers in (THERE, THERE | {"Cookie": "dynid_guide=wrong"}):
        assert "token" in open_gate.refusal("/?token=wrong", headers)
    assert open_gate.refusal(f"/?token={token}", THERE) == ""
    assert open_gate.refusal("/view/", THERE | {"Cookie": f"a=b; dynid_guide={token}"}) == ""
    assert open_gate.address(8080).endswith(f":8080/?token={token}")


def test_the_token_becomes_a_cookie(gate, open_gate):
    page = asyncio.run(open_gate.reply(f"/?token={open_gate.token}", THERE))
    assert open_gate.token in page.headers["Set-Cookie"]
    assert "Set-Cookie" not in reply(gate, "/").headers


def test_stop_is_answered(gate):
    assert reply(gate, "/stop", **{"X-Dynid": "stop"}).body == b"the arm rests"


def test_stop_is_no_link_of_another_site(gate):
    assert reply(gate, "/stop").status == 403


def test_the_page_has_the_name_of_the_robot_as_text(gate):
    page = reply(gate, "/")
    assert page.status == 200
    assert b"&lt;arm&gt;" in page.body
    assert page.headers["X-Frame-Options"] == "SAMEORIGIN"


def test_viser_answers_what_the_gate_does_not(gate):
    assert reply(gate, "/view/") is None
    assert reply(gate, "/", Upgrade="websocket") is None


def test_only_results_in_the_folder_are_shown(gate, tmp_path):
    (gate.folder / "gravity").mkdir()
    for name in ("guide/gravity/report.html", "guide/key.pem", "secret.html"):
        (tmp_path / name).write_text("x")
    (gate.folder / "link.html").symlink_to(tmp_path / "secret.html")
    report = reply(gate, "/files/gravity/report.html")
    assert report.status == 200
    assert report.headers["Content-Security-Policy"] == "sandbox allow-scripts"
    for name in ("../secret.html", "%2e%2e/secret.html", "key.pem", "link.html", "gravity", f"/{tmp_path}/secret.html"):
        assert reply(gate, f"/files/{name}").status == 404


def test_a_port_in_use_is_one_line(gate):
    pytest.importorskip("viser")
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(DynidError, match="--port"):
        serve_page(gate, other.getsockname()[1])


def test_the_page_is_served_behind_the_gate(gate):
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
            answer = connection.getresponse()
            assert (answer.status, text in answer.read().decode().lower()) == (status, True)
    finally:
        server.stop()
