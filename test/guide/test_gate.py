"""The gate lets in the page of this machine, or one with the token; STOP passes it, other web sites do not."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from dynid_ros.errors import DynidError
from dynid_ros.guide.gate import Gate, Head, Rules, find_shown_file

LOCAL = {"host": "127.0.0.1:8080"}


def head(target="/", **headers):
    return Head("GET", target, headers)


def test_a_request_is_read():
    read = Head.parse(b"POST /stop?x=1 HTTP/1.1\r\nHost: a:1\r\nX-Dynid: stop\r\n\r\n")
    assert (read.method, read.path, read.headers) == ("POST", "/stop", {"host": "a:1", "x-dynid": "stop"})


def test_this_machine_needs_no_token():
    rules = Rules.of_host("127.0.0.1")
    assert not rules.token
    assert rules.refusal(head(**LOCAL)) == ""
    assert rules.address(8080) == "http://127.0.0.1:8080/"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example:8080"},  # DNS rebinding
        {},
        LOCAL | {"origin": "http://evil.example"},
        LOCAL | {"origin": "null"},
        LOCAL | {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_another_web_site_is_refused(headers):
    assert Rules.of_host("127.0.0.1").refusal(head(**headers))


def test_another_host_needs_the_token():
    rules = Rules.of_host("0.0.0.0")
    there = {"host": "robot:8080"}
    assert len(rules.token) > 15
    assert "token" in rules.refusal(head(**there))
    assert "token" in rules.refusal(head("/?token=wrong", **there))
    assert "token" in rules.refusal(head(**there, cookie="dynid_guide=wrong"))
    assert rules.refusal(head(f"/?token={rules.token}", **there)) == ""
    assert rules.refusal(head("/view/", **there, cookie=f"a=b; dynid_guide={rules.token}")) == ""
    assert rules.address(8080).endswith(f":8080/?token={rules.token}")


def test_the_token_becomes_a_cookie():
    rules = Rules.of_host("0.0.0.0")
    assert rules.token in rules.cookie(head(f"/?token={rules.token}"))
    assert rules.cookie(head("/?token=wrong")) == ""
    assert Rules.of_host("127.0.0.1").cookie(head("/")) == ""


def test_only_results_in_the_folder_are_shown(tmp_path):
    folder = tmp_path / "guide"
    (folder / "gravity").mkdir(parents=True)
    for name in ("guide/gravity/report.html", "guide/key.pem", "secret.html"):
        (tmp_path / name).write_text("x")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    assert find_shown_file(folder, "gravity/report.html") == folder / "gravity" / "report.html"
    for name in ("../secret.html", "key.pem", "link.html", "gravity", "none.html", str(tmp_path / "secret.html")):
        assert find_shown_file(folder, name) is None


@pytest.fixture
def gate(tmp_path):
    (tmp_path / "report.html").write_text("<p>report</p>")
    gate = Gate(Rules(), 0, 1, tmp_path, "<arm>", lambda: "the arm rests")
    gate.start()
    yield gate
    gate.end()


def answer_of(gate, method, path, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=10)
    connection.request(method, path, headers=headers or {})
    response = connection.getresponse()
    return response.status, response.read().decode(), dict(response.getheaders())


def test_stop_is_answered(gate):
    status, text, _ = answer_of(gate, "POST", "/stop", {"X-Dynid": "stop"})
    assert (status, text) == (200, "the arm rests")


@pytest.mark.parametrize(("method", "headers"), [("GET", {"X-Dynid": "stop"}), ("POST", {})])
def test_stop_is_no_form_of_another_site(gate, method, headers):
    assert answer_of(gate, method, "/stop", headers)[0] == 405


def test_the_page_has_the_name_of_the_robot_as_text(gate):
    status, text, headers = answer_of(gate, "GET", "/")
    assert status == 200
    assert "&lt;arm&gt;" in text
    assert headers["X-Frame-Options"] == "SAMEORIGIN"


def test_a_report_is_shown_in_a_sandbox(gate):
    status, text, headers = answer_of(gate, "GET", "/files/report.html")
    assert (status, text) == (200, "<p>report</p>")
    assert headers["Content-Security-Policy"] == "sandbox allow-scripts"
    assert answer_of(gate, "GET", "/files/%2e%2e/secret.html")[0] == 404


def test_a_foreign_host_is_refused(gate):
    status, text, _ = answer_of(gate, "GET", "/", {"Host": "evil.example"})
    assert (status, "this machine alone" in text) == (403, True)


def test_garbage_does_not_end_the_gate(gate):
    with socket.create_connection(("127.0.0.1", gate.port)) as connection:
        connection.sendall(b"\x00\xff garbage\r\n\r\n")
        assert connection.recv(10) == b""
    assert answer_of(gate, "GET", "/alive")[0] == 200


def test_a_port_in_use_is_one_line(gate, tmp_path):
    other = Gate(Rules(), gate.port, 1, tmp_path, "arm", str)
    with pytest.raises(DynidError, match="--port"):
        other.start()


def test_an_address_can_be_opened(gate):
    parts = urlsplit(gate.rules.address(gate.port))
    assert (parts.hostname, parts.port) == ("127.0.0.1", gate.port)
