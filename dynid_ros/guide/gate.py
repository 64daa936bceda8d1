"""Gate of the page: it checks requests, answers STOP, serves reports, and leaves all other requests to viser.

viser has no access control and listens to any web site. The gate refuses requests that another web site makes a browser
send, by their `Origin` and `Host` (cross-site requests, DNS rebinding). On another address than that of this machine,
the address of the page must contain the token that was printed at the start. STOP is a separate request, so a slow page
does not delay it.
"""

import asyncio
import contextlib
import html
import io
import mimetypes
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from dynid_ros.errors import DynidError

LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
ANY_HOSTS = ("0.0.0.0", "::")
COOKIE_NAME = "dynid_guide"
VIEW_PATH = "/view"
FILES_PATH = "/files/"
SHOWN_SUFFIXES = (".html", ".png", ".svg", ".yaml", ".csv", ".urdf", ".txt", ".sh")
PANEL_WIDTH_PX = 500


class Reply(NamedTuple):
    """Answer to a request: status of HTTP, content, MIME type and further headers."""

    status: int
    body: bytes
    kind: str = "text/plain"
    headers: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Gate:
    """Rules for requests to a page that listens on a host and shows results of a folder.

    Attributes:
        title: name of the robot.
        stop: function of STOP, which returns the answer of the nodes.
        token: word that the address of the page must contain; empty: none.
    """

    host: str
    folder: Path
    title: str
    stop: Callable[[], str]
    token: str = ""

    @classmethod
    def for_host(cls, host: str, folder: Path, title: str, stop: Callable[[], str]) -> "Gate":
        """Return the gate for an address; another one than that of this machine needs a token."""
        return cls(host, folder, title, stop, "" if host in LOOPBACK_HOSTS else secrets.token_urlsafe(16))

    def address(self, port: int) -> str:
        """Return the address to open."""
        shown = socket.gethostname() if self.host in ANY_HOSTS else self.host
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    def refusal(self, target: str, headers: Mapping[str, str]) -> str:
        """Return the reason why a request is refused; empty if it is not."""
        host = headers.get("Host", "")
        if not self.token and host.rpartition(":")[0] not in LOOPBACK_HOSTS:
            return f"this page is for this machine alone, not for '{host}'; open http://127.0.0.1 with its port"
        origin = headers.get("Origin", "")
        if origin and origin != f"http://{host}":
            return f"another web site ({origin}) sent this request; open the page of the guide itself"
        cookie = SimpleCookie(headers.get("Cookie", "")).get(COOKIE_NAME)
        words = [*parse_qs(urlsplit(target).query).get("token", []), *([cookie.value] if cookie else [])]
        if self.token and not any(secrets.compare_digest(word.encode(), self.token.encode()) for word in words):
            return "the token is missing; open the address that the guide printed at its start, with ?token=…"
        return ""

    async def reply(self, target: str, headers: Mapping[str, str]) -> Reply | None:
        """Return the answer to a request; None: viser answers."""
        if refusal := self.refusal(target, headers):
            return Reply(403, refusal.encode())
        path = unquote(urlsplit(target).path)
        if path == "/stop" and "X-Dynid" in headers:  # a link of another site cannot send this header
            loop = asyncio.get_running_loop()
            return Reply(200, (await loop.run_in_executor(None, self.stop)).encode())
        if path.startswith(FILES_PATH):
            return self._read_result(path.removeprefix(FILES_PATH))
        if path in ("/stop", "/alive"):
            return Reply(200 if path == "/alive" else 403, b"STOP is a request of this page alone")
        if path == "/" and headers.get("Upgrade", "").lower() != "websocket":
            return self._page()
        return None

    def _page(self) -> Reply:
        """Return the page with STOP, which embeds viser's."""
        page = files("dynid_ros.guide").joinpath("page.html").read_text(encoding="utf-8")
        body = page.replace("{title}", html.escape(self.title)).encode()
        cookie = {"Set-Cookie": f"{COOKIE_NAME}={self.token}; HttpOnly; SameSite=Strict; Path=/"} if self.token else {}
        return Reply(200, body, "text/html", {"X-Frame-Options": "SAMEORIGIN", **cookie})

    def _read_result(self, name: str) -> Reply:
        """Return a result below the folder; a report can neither press STOP nor read the page around it."""
        path = (self.folder / name).resolve()
        is_inside = path.is_relative_to(self.folder.resolve())
        if not is_inside or path.suffix not in SHOWN_SUFFIXES or not path.is_file():
            return Reply(404, b"there is no such result")
        kind = mimetypes.guess_type(path.name)[0] or "text/plain"
        return Reply(200, path.read_bytes(), kind, {"Content-Security-Policy": "sandbox allow-scripts"})


def serve_page(gate: Gate, port: int) -> Any:
    """Return viser's server behind a gate.

    Raises:
        DynidError: the port is in use.
    """
    import viser  # noqa: PLC0415 - the rules need neither library
    import websockets.asyncio.server as sockets  # noqa: PLC0415
    from websockets.datastructures import Headers  # noqa: PLC0415
    from websockets.http11 import Response  # noqa: PLC0415

    with socket.socket(socket.AF_INET6 if ":" in gate.host else socket.AF_INET) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((gate.host, port))  # viser would silently take another port
        except OSError as error:
            where = f"{gate.host}:{port} cannot be used ({error.strerror})"
            raise DynidError(f"{where}; another guide may run: end it, or give --port") from error
    original = sockets.serve

    def serve(*arguments: Any, process_request: Callable[..., Any], **options: Any) -> Any:
        """Serve, with the gate before viser's own answers."""

        async def answer(connection: Any, request: Any) -> Any:
            reply = await gate.reply(request.path, request.headers)
            if reply is not None:
                headers = Headers({"Content-Type": f"{reply.kind}; charset=utf-8", "Cache-Control": "no-store"})
                headers.update({"Content-Length": str(len(reply.body)), **reply.headers})
                return Response(reply.status, "", headers, reply.body)
            if request.path.startswith(VIEW_PATH):
                request.path = request.path.removeprefix(VIEW_PATH) or "/"
            response = process_request(connection, request)
            return await response if isinstance(response, Awaitable) else response

        return original(*arguments, process_request=answer, **options)

    sockets.serve = serve  # type: ignore[assignment, misc]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # viser prints an address without token
            server = viser.ViserServer(host=gate.host, port=port, label=f"{gate.title}: dynid guide", verbose=False)
    finally:
        sockets.serve = original  # type: ignore[misc]
    server.gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(PANEL_WIDTH_PX)
    return server
