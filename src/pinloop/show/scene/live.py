"""A page for the browsers of this machine: `Viewer` serves it, and moves what it shows.

Standard library only. The server listens on 127.0.0.1 and on a port of its own; the address holds
a secret, and requests that another web page makes are refused.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import urlsplit

from numpy.typing import NDArray

from ...boundary.files import json_text
from ...errors import PinloopError

Message = dict[str, Any]

_HOSTS = ("127.0.0.1", "localhost", "::1")
_LONGEST = 10_000
"""Bytes that a page may send at once."""
_ALIVE = 10.0
"""A page hears something at least that often [s]: so it is noticed if it has gone."""


class Exhibit(Protocol):
    """What a viewer shows: a robot, or a run."""

    name: str
    """Name of the robot."""

    @property
    def q(self) -> NDArray[Any]:
        """Configuration that is shown, shape (nq,)."""

    def page(self) -> str:
        """The page."""

    def state(self) -> Message:
        """What the page has to know of the present state."""

    def show(self, value: Any) -> None:
        """Change the state."""

    def ask(self, message: Message) -> None:
        """Change the state as the page wants it."""


class Viewer(contextlib.AbstractContextManager["Viewer"]):
    """A robot or a run in the browser.

    Use it in a ``with`` block, or call `close`; the page ends with Python otherwise. Only browsers
    on this machine that know the address can see it. A notebook shows it below the cell.

    Attributes:
        url: address to open in a browser on this machine.
    """

    def __init__(self, exhibit: Exhibit) -> None:
        self._exhibit = exhibit
        self._lock = threading.Lock()
        self._server = _Server(self._page, self._ask)
        self.url = self._server.url
        self._server.publish(exhibit.state())

    @property
    def q(self) -> NDArray[Any]:
        """Configuration that is shown, shape (nq,): where the sliders are, or the last `show`."""
        with self._lock:
            return self._exhibit.q.copy()

    def show(self, value: Any) -> None:
        """Show something else.

        Args:
            value: of a robot a configuration, shape (nq,); of a run a time [s].
        """
        if self._server.ended.is_set():
            raise PinloopError("the viewer is closed; open a new one")
        with self._lock:
            self._exhibit.show(value)
            self._server.publish(self._exhibit.state())

    def open(self) -> bool:
        """Open the address in the user's browser; return whether there is one."""
        return webbrowser.open(self.url, new=2)

    def wait(self) -> None:
        """Wait until the viewer is closed, or for Ctrl-C (a `KeyboardInterrupt`)."""
        while not self._server.ended.wait(0.2):
            pass

    def close(self) -> None:
        """End the server; a page in the browser stays as it is."""
        self._server.end()

    def __exit__(self, *reason: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._server.ended.is_set() else self.url
        return f"<Viewer of '{self._exhibit.name}': {state}>"

    def _repr_html_(self) -> str:
        """The page in a notebook, whose browser is on this machine."""
        if self._server.ended.is_set():
            return f"<p>{escape(repr(self))}</p>"
        return (
            f'<iframe src="{escape(self.url)}" title="{escape(self._exhibit.name)}" '
            'allow="clipboard-write" style="width: 100%; height: 640px; border: 0"></iframe>'
        )

    def _page(self) -> str:
        with self._lock:
            return self._exhibit.page()

    def _ask(self, message: Message) -> Message:
        """What the page says; the answer goes to all pages."""
        with self._lock:
            try:
                self._exhibit.ask(message)
            except PinloopError as error:
                return {"refused": str(error)}
            return self._server.publish(self._exhibit.state())


class _Server(ThreadingHTTPServer):
    """Serves one page until it is ended.

    Args:
        page: gives the page when a browser asks for it.
        answer: takes what a page says, and gives what it is told.

    Attributes:
        url: address of the page.
        ended: set when it has ended.
    """

    daemon_threads = True

    def __init__(self, page: Callable[[], str], answer: Callable[[Message], Message]) -> None:
        self.page, self.answer = page, answer
        self.ended = threading.Event()
        self._secret = secrets.token_urlsafe(12)
        self._changed = threading.Condition()
        self._latest, self._number = "", 0
        self._connections: set[Any] = set()
        try:
            super().__init__(("127.0.0.1", 0), _Handler)
        except OSError as error:
            raise PinloopError(f"the viewer's server cannot be started: {error}") from error
        self.url = f"http://127.0.0.1:{self.server_port}/{self._secret}/"
        threading.Thread(
            target=self.serve_forever, args=(0.1,), name="pinloop viewer", daemon=True
        ).start()

    def publish(self, state: Message) -> Message:
        """Tell all pages, numbered so that an old state is known; return what they are told.

        A page that comes later, or is slow, hears only the latest.
        """
        with self._changed:
            self._number += 1
            message = {"number": self._number, **state}
            self._latest = json_text(message, indent=None)
            self._changed.notify_all()
        return message

    def news(self, seen: int) -> tuple[int, str]:
        """Wait for something newer than what has been seen; its number and text."""
        with self._changed:
            self._changed.wait_for(lambda: self._number > seen or self.ended.is_set(), _ALIVE)
            return self._number, self._latest

    def end(self) -> None:
        """End the server and its connections."""
        if self.ended.is_set():
            return
        self.ended.set()
        with self._changed:
            self._changed.notify_all()
        self.shutdown()
        self.server_close()
        for connection in tuple(self._connections):
            with contextlib.suppress(OSError):  # the page has gone already
                connection.shutdown(socket.SHUT_RDWR)

    def path_of(self, address: str) -> str | None:
        """What follows the secret in an address, or None if it is not there."""
        try:
            _, _, rest = urlsplit(address).path.partition("/")
        except ValueError:
            return None
        secret, slash, name = rest.partition("/")
        known = hmac.compare_digest(secret.encode(), self._secret.encode())
        return name if known and slash else None

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A browser may leave at any time.
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def do_GET(self) -> None:
        """The page, or what changes."""
        name = self.server.path_of(self.path)
        if not self._is_local() or name not in ("", "events"):
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is nothing here")
        elif name == "events":
            self._tell()
        else:
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page().encode())

    def do_POST(self) -> None:
        """What a page says; only the viewer's own page may ask."""
        own = self.headers.get("Origin") == f"http://{self.headers.get('Host')}"
        if not (own and self._is_local() and self.server.path_of(self.path) == "ask"):
            self.close_connection = True
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"only the page of this viewer may ask")
            return
        try:
            length = int(self.headers.get("Content-Length", ""))
            message = json.loads(self.rfile.read(length)) if 0 < length <= _LONGEST else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.close_connection = True
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", b"not understood")
            return
        answer = json_text(self.server.answer(message), indent=None).encode()
        self._send(HTTPStatus.OK, "application/json", answer)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the terminal belongs to the user."""

    def _is_local(self) -> bool:
        """Whether the browser means this machine: a foreign name that leads here is refused."""
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in _HOSTS
        except ValueError:
            return False

    def _start(self, status: HTTPStatus, kind: str, **more: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Cache-Control": "no-store"}
        headers |= {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
        for name, value in (headers | more).items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._start(status, kind, **{"Content-Length": str(len(body))})
        self.wfile.write(body)

    def _tell(self) -> None:
        """Send what changes as server-sent events, until one of the two has gone."""
        seen = 0
        self.close_connection = True
        self._start(HTTPStatus.OK, "text/event-stream", Connection="close")
        while not self.server.ended.is_set():
            number, text = self.server.news(seen)
            line = f"data: {text}\n\n" if number > seen else ": alive\n\n"
            seen = number
            self.wfile.write(line.encode())
