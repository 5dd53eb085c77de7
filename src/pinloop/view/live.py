"""A scene in the browser, live: meshcat's server shows it, `Viewer` moves it."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from types import TracebackType
from typing import Any

from numpy.typing import ArrayLike

from ..errors import PinloopError
from .commands import Command, packed
from .scene import Scene

__all__ = ["Viewer"]

_PATIENCE = 10_000
"""How long the server may take for an answer [ms]."""


class Viewer:
    """A robot in the browser.

    Use it in a ``with`` block, or call `close`; the server ends with Python otherwise.

    Args:
        scene: what is shown.
        q: configuration, shape (nq,).

    Attributes:
        url: address to open in a browser on this machine.
    """

    def __init__(self, scene: Scene, q: ArrayLike) -> None:
        commands = scene.commands(q)
        self.scene = scene
        self._window: Any = _open_window()
        self.url: str = self._window.web_url
        self._send(commands)

    def show(self, q: ArrayLike) -> None:
        """Move the robot to configuration ``q``, shape (nq,)."""
        self._send(self.scene.placing(q))

    def open(self) -> bool:
        """Open the address in the user's browser; return whether there is one."""
        import webbrowser

        return webbrowser.open(self.url, new=2)

    def wait(self) -> None:
        """Wait until the server ends, or for Ctrl-C (a `KeyboardInterrupt`)."""
        while self._window is not None and self._window.server_proc.poll() is None:
            time.sleep(0.2)

    def close(self) -> None:
        """End the server; the page in the browser stays as it is."""
        if self._window is None:
            return
        server, self._window = self._window, None
        server.zmq_socket.close(linger=0)
        server.server_proc.kill()
        server.server_proc.wait()
        server.server_proc.stdout.close()
        server.server_proc.stderr.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._window is None else self.url
        return f"<Viewer of '{self.scene.robot.name}': {state}>"

    def _send(self, commands: list[Command]) -> None:
        """Send commands to the page through the server."""
        import zmq

        if self._window is None or self._window.server_proc.poll() is not None:
            raise PinloopError("the viewer is closed; open a new one with pinloop.view")
        socket = self._window.zmq_socket
        try:
            for command in commands:
                path = command["path"]
                socket.send_multipart([command["type"].encode(), path.encode(), packed(command)])
                socket.recv()
        except zmq.ZMQError as error:
            self.close()
            raise PinloopError(f"the viewer's server does not answer: {error}") from None


def _open_window() -> Any:
    """Start meshcat's server; what it prints is left out, callers know the address."""
    import zmq

    with warnings.catch_warnings():
        # meshcat imports parts of its libraries that these deprecate; no user can do about it.
        warnings.simplefilter("ignore", DeprecationWarning)
        from meshcat.visualizer import ViewerWindow
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            window = ViewerWindow(None, True, [])
    except (OSError, RuntimeError) as error:
        raise PinloopError(f"the viewer's server cannot be started: {error}") from error
    window.zmq_socket.setsockopt(zmq.RCVTIMEO, _PATIENCE)
    window.zmq_socket.setsockopt(zmq.SNDTIMEO, _PATIENCE)
    return window
