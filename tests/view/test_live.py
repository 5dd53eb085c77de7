"""The live viewer as a browser sees it: page over HTTP, scene over a web socket, all local."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest
import umsgpack
from numpy.testing import assert_allclose
from tornado.websocket import websocket_connect

from pinloop.errors import PinloopError
from pinloop.view import view
from pinloop.view.live import Viewer
from pinloop.view.scene import make_scene

from .scenes import Played, arm, at, visual

ROBOT = arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)))
TUBE = ("robot", "link", "tube")


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with view(ROBOT) as opened:
        yield opened


def received(viewer: Viewer) -> Played:
    """What a browser that opens the address is told."""
    address = urlsplit(viewer.url)

    async def listen() -> list[bytes]:
        socket = await websocket_connect(f"ws://{address.netloc}/")
        messages: list[bytes] = []
        count = len(make_scene(ROBOT).commands(ROBOT.neutral))
        while len(messages) < count:
            message = await asyncio.wait_for(socket.read_message(), 10)
            assert isinstance(message, bytes)
            messages.append(message)
        # The connection is closed when the server has agreed to it: then there is no message more.
        socket.close()
        while await asyncio.wait_for(socket.read_message(), 10) is not None:
            pass
        return messages

    page = Played(())
    for message in asyncio.run(listen()):
        page.handle(umsgpack.unpackb(message))
    return page


def test_a_browser_gets_the_robot_where_it_is(viewer: Viewer) -> None:
    with urllib.request.urlopen(viewer.url, timeout=10) as answer:
        assert b"meshcat-pane" in answer.read()
    expected = Played(make_scene(ROBOT).commands(ROBOT.neutral))
    assert_allclose(received(viewer).matrix(*TUBE), expected.matrix(*TUBE), atol=0)
    viewer.show([np.pi / 2])
    moved = Played(make_scene(ROBOT).commands([np.pi / 2]))
    assert_allclose(received(viewer).matrix(*TUBE), moved.matrix(*TUBE), atol=0)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with view(ROBOT):
        pass
    assert capfd.readouterr() == ("", "")


def test_closing_ends_the_server() -> None:
    viewer = view(ROBOT)
    assert viewer.url in repr(viewer)
    viewer.close()
    viewer.close()
    assert "closed" in repr(viewer)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(viewer.url, timeout=10)
    with pytest.raises(PinloopError, match="closed"):
        viewer.show(ROBOT.neutral)
    viewer.wait()


def test_a_server_that_was_killed_is_missed(viewer: Viewer) -> None:
    os.kill(viewer._window.server_proc.pid, signal.SIGKILL)
    began = time.monotonic()
    viewer.wait()
    assert time.monotonic() - began < 5
    with pytest.raises(PinloopError, match="closed"):
        viewer.show(ROBOT.neutral)
