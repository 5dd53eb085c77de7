"""A page in the browser, live: `Viewer` serves it, and moves what it shows."""

from __future__ import annotations

import threading
import webbrowser
from html import escape
from types import TracebackType
from typing import Any, Protocol

from numpy.typing import NDArray

from ...errors import PinloopError
from .server import Message, PageServer

__all__ = ["Exhibit", "Viewer"]


class Exhibit(Protocol):
    """What a viewer shows: a robot, or a run."""

    @property
    def name(self) -> str:
        """Name of the robot."""
        ...

    @property
    def q(self) -> NDArray[Any]:
        """Configuration that is shown, shape (nq,)."""
        ...

    def page(self) -> str:
        """The page."""
        ...

    def state(self) -> Message:
        """What the page has to know of the present state."""
        ...

    def show(self, value: Any) -> None:
        """Change the state."""
        ...

    def ask(self, message: Message) -> None:
        """Change the state as the page wants it."""
        ...


class Viewer:
    """A robot or a run in the browser.

    Use it in a ``with`` block, or call `close`; the page ends with Python otherwise. Only browsers
    on this machine that know the address can see it. A notebook shows it below the cell.

    Args:
        exhibit: what is shown.

    Attributes:
        url: address to open in a browser on this machine.
    """

    def __init__(self, exhibit: Exhibit) -> None:
        self._exhibit = exhibit
        self._lock = threading.Lock()
        self._number = 0
        self._server = PageServer(self._page, self._ask)
        self.url = self._server.url
        self._tell()

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
            self._tell()

    def open(self) -> bool:
        """Open the address in the user's browser; return whether there is one."""
        return webbrowser.open(self.url, new=2)

    def wait(self) -> None:
        """Wait until the viewer is closed, or for Ctrl-C (a `KeyboardInterrupt`)."""
        while not self._server.ended.wait(0.2):
            pass

    def close(self) -> None:
        """End the server; a page in the browser stays as it is."""
        self._server.close()

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
            return self._tell()

    def _tell(self) -> Message:
        """Tell all pages the state, numbered so that an old one is known."""
        self._number += 1
        message = {"number": self._number, **self._exhibit.state()}
        self._server.publish(message)
        return message
