"""Gate in front of the page: it lets in who may, stops the arm, serves reports, and passes all else on to viser.

STOP is a request of its own: it does not wait behind the drawing of a slow page. Requests that another web site makes a
browser send are refused by their `Origin` and `Host` (cross-site requests, DNS rebinding). On another address than that
of this machine, the address of the page must contain the token that was printed at the start.
"""

import asyncio
import html
import mimetypes
import secrets
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from dynid_ros.errors import DynidError

LOOPBACK_HOST = "127.0.0.1"
MAX_HEAD_BYTES = 32_768
COPY_BYTES = 65_536
HEAD_TIMEOUT_S = 10.0
COOKIE_NAME = "dynid_guide"
VIEW_PATH = "/view/"
"""Path of viser's page, which the page of the gate embeds."""
FILES_PATH = "/files/"
SHOWN_SUFFIXES = (".html", ".png", ".svg", ".yaml", ".csv", ".urdf", ".txt", ".sh")
STATUS_TEXTS = {200: "OK", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}


@dataclass(frozen=True)
class Head:
    """First lines of a request.

    Attributes:
        method: such as GET.
        target: path and query.
        headers: values by name in lower case.
    """

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """Path without query."""
        return unquote(urlsplit(self.target).path)

    @classmethod
    def parse(cls, data: bytes) -> "Head":
        """Read a request up to its empty line.

        Raises:
            ValueError: this is no request.
        """
        first, *lines = data.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        return cls(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})


@dataclass(frozen=True)
class Rules:
    """Who may come in.

    Attributes:
        host: address that the page listens on.
        token: word that the address of the page must contain; empty: none.
    """

    host: str = LOOPBACK_HOST
    token: str = ""

    @classmethod
    def of_host(cls, host: str) -> "Rules":
        """Return the rules for an address; another one than that of this machine needs a token."""
        return cls(host, "" if host in (LOOPBACK_HOST, "localhost") else secrets.token_urlsafe(16))

    def refusal(self, head: Head) -> str:
        """Return the reason why a request is refused; empty if it is not."""
        host = head.headers.get("host", "")
        if not self.token and host.rpartition(":")[0] not in (LOOPBACK_HOST, "localhost"):
            return f"this page is for this machine alone, not for '{host}'; open http://{LOOPBACK_HOST} with its port"
        origin = head.headers.get("origin", "")
        if origin and origin != f"http://{host}":
            return f"another web site ({origin}) sent this request; open the page of the guide itself"
        if self.token and not (self._is_token(self._of_query(head)) or self._is_token(self._of_cookie(head))):
            return "the token is missing; open the address that the guide printed at its start, with ?token=…"
        return ""

    def cookie(self, head: Head) -> str:
        """Return the header that lets the page load its parts; empty if the request has no token."""
        if not self.token or not self._is_token(self._of_query(head)):
            return ""
        return f"Set-Cookie: {COOKIE_NAME}={self.token}; HttpOnly; SameSite=Strict; Path=/\r\n"

    def address(self, port: int) -> str:
        """Return the address to open."""
        shown = LOOPBACK_HOST if self.host in (LOOPBACK_HOST, "localhost") else self.host
        shown = socket.gethostname() if shown in ("0.0.0.0", "::") else shown
        return f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")

    def _is_token(self, word: str) -> bool:
        return secrets.compare_digest(word.encode(), self.token.encode())

    @staticmethod
    def _of_query(head: Head) -> str:
        return parse_qs(urlsplit(head.target).query).get("token", [""])[0]

    @staticmethod
    def _of_cookie(head: Head) -> str:
        pairs = (pair.strip().partition("=") for pair in head.headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == COOKIE_NAME), "")


def find_shown_file(folder: Path, name: str) -> Path | None:
    """Return a result file below a folder; None for any other file."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or path.suffix not in SHOWN_SUFFIXES or not path.is_file():
        return None
    return path


@dataclass
class Gate:
    """Server that listens for browsers.

    Attributes:
        rules: who may come in.
        port: port to listen on.
        inner_port: port of viser on this machine.
        folder: folder whose results may be read.
        title: name of the robot.
        stop: function of STOP, which returns the answer of the nodes.
    """

    rules: Rules
    port: int
    inner_port: int
    folder: Path
    title: str
    stop: Callable[[], str]
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _ready: Event = field(default_factory=Event)

    def start(self) -> None:
        """Listen in a thread of its own.

        Raises:
            DynidError: the port is in use.
        """
        listening = socket.socket(socket.AF_INET6 if ":" in self.rules.host else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.rules.host, self.port))
            listening.listen()
        except OSError as error:
            listening.close()
            raise DynidError(
                f"{self.rules.host}:{self.port} cannot be used ({error.strerror}); another guide may run: end it, or "
                "choose another port with --port"
            ) from error
        self.port = listening.getsockname()[1]
        Thread(target=self._serve, args=(listening,), daemon=True).start()
        self._ready.wait()

    def end(self) -> None:
        """Stop listening."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self, listening: socket.socket) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._on_connection, sock=listening, limit=MAX_HEAD_BYTES))
        self._ready.set()
        self._loop.run_forever()

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            data = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_TIMEOUT_S)
            await self._answer(Head.parse(data), reader, writer)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            pass  # a browser that went away, or no browser
        finally:
            writer.close()

    async def _answer(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if refusal := self.rules.refusal(head):
            await _send(writer, 403, "text/plain; charset=utf-8", refusal.encode())
        elif head.path == "/stop":
            # a form of another site cannot send this header
            if head.method != "POST" or "x-dynid" not in head.headers:
                await _send(writer, 405, "text/plain", b"STOP is a POST of this page")
                return
            text = await self._loop.run_in_executor(None, self.stop)
            await _send(writer, 200, "text/plain; charset=utf-8", text.encode())
        elif head.path == "/":
            page = files("dynid_ros.guide").joinpath("page.html").read_text(encoding="utf-8")
            page = page.replace("{title}", html.escape(self.title))
            await _send(writer, 200, "text/html; charset=utf-8", page.encode(), self.rules.cookie(head))
        elif head.path == "/alive":
            await _send(writer, 200, "text/plain", b"yes")
        elif head.path.startswith(FILES_PATH):
            path = find_shown_file(self.folder, head.path.removeprefix(FILES_PATH))
            if path is None:
                await _send(writer, 404, "text/plain", b"there is no such result")
                return
            kind = mimetypes.guess_type(path.name)[0] or "text/plain"
            # A report cannot press STOP or read the page around it.
            guard = "Content-Security-Policy: sandbox allow-scripts\r\n"
            await _send(writer, 200, f"{kind}; charset=utf-8", path.read_bytes(), guard)
        else:
            await self._pass_on(head, reader, writer)

    async def _pass_on(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a request, and with it a whole web socket, on to viser."""
        target = "/" + head.target.removeprefix(VIEW_PATH) if head.target.startswith(VIEW_PATH) else head.target
        is_socket = head.headers.get("upgrade", "").lower() == "websocket"
        # viser refuses an origin; a connection ends with its request, so that each request passes the rules
        headers = {name: value for name, value in head.headers.items() if name != "origin"}
        headers |= {} if is_socket else {"connection": "close"}
        lines = [f"{head.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK_HOST, self.inner_port)
        inner_writer.write("\r\n".join(lines).encode("latin-1"))
        ways = [asyncio.ensure_future(way) for way in (_copy(reader, inner_writer), _copy(inner_reader, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED if is_socket else asyncio.ALL_COMPLETED)
        for way in ways:
            way.cancel()
        inner_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end; a slow browser slows this copy alone."""
    try:
        while data := await reader.read(COPY_BYTES):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


async def _send(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes, more: str = "") -> None:
    head = f"HTTP/1.1 {status} {STATUS_TEXTS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    head += f"Cache-Control: no-store\r\nX-Frame-Options: SAMEORIGIN\r\nConnection: close\r\n{more}\r\n"
    writer.write(head.encode("latin-1") + body)
    await writer.drain()
