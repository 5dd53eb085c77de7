"""A browser without a screen, driven over its debugging pipe: open, click, look, listen.

Commands are the JSON messages of the Chrome DevTools protocol, each ended by a zero byte, on the
file descriptors 3 and 4 of the browser. No test lives here.
"""

from __future__ import annotations

import base64
import io
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)

needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser to look with: none of {', '.join(NAMES)} is installed"
)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"),
    # No name can be resolved: a page that wants anything from beyond this machine stays empty.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    *("--hide-scrollbars", "--force-device-scale-factor=1"),
)

_PATIENCE = 60.0
# Puts the two ends of the pipes where the browser looks for them; they may be in each other's way.
_START = (
    "import os, sys; r, w = (os.dup(int(x)) for x in sys.argv[1:3]); "
    "r, w = (os.dup(os.dup(os.dup(x))) for x in (r, w)); "
    "os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something has come about."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.03)


def end_server(window: Any) -> None:
    """End the server behind a window of meshcat, which leaves it to the end of Python."""
    window.server_proc.kill()
    window.server_proc.communicate()
    window.zmq_socket.close()


class Browser(AbstractContextManager["Browser"]):
    """A page in a browser, for a ``with`` block.

    Args:
        page: its file or its address.
        profile: folder for the browser's own files.
        size: width and height of the window.

    Attributes:
        complaints: errors of scripts, and what they or the browser wrote as errors.
        requests: addresses that the page asked for, but for its own and data in it.
    """

    def __init__(
        self, page: Path | str, profile: Path, size: tuple[int, int] = (1000, 800)
    ) -> None:
        assert BROWSER is not None
        address = page if isinstance(page, str) else page.as_uri()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._buffer = b""
        self._loaded = False
        far_in, self._out = os.pipe()
        self._in, far_out = os.pipe()
        words = [*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        words.append(f"--window-size={size[0]},{size[1]}")
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(far_in), str(far_out), BROWSER, *words],
            pass_fds=(far_in, far_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(far_in)
        os.close(far_out)
        try:
            self._open(address, size)
        except BaseException:
            self.close()
            raise

    def _open(self, address: str, size: tuple[int, int]) -> None:
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=size[0], height=size[1], deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.send("Page.navigate", url=address)
        end = time.monotonic() + _PATIENCE
        while not self._loaded:
            self._note(self._receive(end))

    def __exit__(self, *reason: object) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return what it gives."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _PATIENCE
        while True:
            answer = self._receive(end)
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self._note(answer)

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript; of a promise what it comes to."""
        given = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in given, given["exceptionDetails"]
        return given["result"].get("value")

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of an element."""
        x, y = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect();"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, selector: str, part: float) -> None:
        """Drag the thumb of a slider from where it is to a part of its length."""
        x, y, to = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect(), at = (p) => r.left + 8 + p * (r.width - 16);"
            "const p = (e.valueAsNumber - e.min) / (e.max - e.min);"
            f"return [at(p), r.top + r.height / 2, at({part})]; }})()"
        )
        mouse = {"y": y, "button": "left", "clickCount": 1}
        self.send("Input.dispatchMouseEvent", type="mousePressed", x=x, **mouse)
        for k in range(1, 11):
            here = x + k / 10 * (to - x)
            self.send("Input.dispatchMouseEvent", type="mouseMoved", x=here, buttons=1, **mouse)
        self.send("Input.dispatchMouseEvent", type="mouseReleased", x=to, **mouse)

    def press(self, key: str, code: int) -> None:
        """Press a key, e.g. ("Home", 36)."""
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def picture(self, selector: str) -> NDArray[np.int64]:
        """What is seen of an element, shape (height, width, 3)."""
        box = self.value(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect();"
            "return {x: r.left + scrollX, y: r.top + scrollY, width: r.width, height: r.height,"
            "scale: 1}; })()"
        )
        # Two frames, so that what has been asked for has been drawn.
        self.value("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
        shot = self.send("Page.captureScreenshot", clip=box, captureBeyondViewport=True)
        with Image.open(io.BytesIO(base64.b64decode(shot["data"]))) as image:
            return np.asarray(image.convert("RGB"), dtype=np.int64)

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise EOFError("the browser has ended")
            self._buffer += read
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def _note(self, message: dict[str, Any]) -> None:
        """Remember what the page does by itself."""
        method, given = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.complaints.append(json.dumps(given["entry"]))
        elif method == "Network.requestWillBeSent":
            address = given["request"]["url"]
            if not address.startswith(("data:", "file:", "about:", "blob:")):
                self.requests.append(address)
