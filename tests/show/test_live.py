"""The live viewer as a browser sees it: a page, news, answers to its sliders; and as others do."""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import umsgpack
from numpy.testing import assert_allclose

import pinloop as pl
from pinloop.errors import BadValue, PinloopError
from pinloop.show.scene import view
from pinloop.show.scene.live import Viewer
from pinloop.show.scene.scene import make_scene

from ..fourbar_files import fourbar
from .scenes import Played, arm, at, visual

ROBOT = arm(visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)))
TUBE = ("robot", "link", "tube")
SWING = visual("bar", "link", "box", (0.6, 0.1, 0.1), at(0.3, 0, 0))


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with view(ROBOT) as opened:
        yield opened


def page_of(viewer: Viewer) -> str:
    with urllib.request.urlopen(viewer.url, timeout=10) as answer:
        return str(answer.read().decode())


def data_of(viewer: Viewer) -> dict[str, Any]:
    """What the page's script starts from."""
    found = re.search(r'id="data">(.*?)</script>', page_of(viewer), re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def played(viewer: Viewer) -> Played:
    """The scene that the page draws when it is opened."""
    import base64

    page = Played(())
    for text in data_of(viewer)["commands"]:
        page.handle(umsgpack.unpackb(base64.b64decode(text)))
    return page


def news(viewer: Viewer, wanted: int) -> list[dict[str, Any]]:
    """The next things that the viewer tells a page."""
    found: list[dict[str, Any]] = []
    with urllib.request.urlopen(f"{viewer.url}events", timeout=10) as stream:
        while len(found) < wanted:
            line = stream.readline().decode()
            assert "alive" not in line, "nothing was told for ten seconds"
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
    return found


def asked(viewer: Viewer, body: object, **headers: str) -> tuple[int, bytes]:
    """Status of the answer to a request of a page, and the answer."""
    address = urlsplit(viewer.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    given = {"Origin": f"http://{address.netloc}", "Content-Type": "application/json"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    path = given.pop("path", f"{address.path}ask")
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, content, given)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def test_a_browser_gets_the_robot_where_it_is(viewer: Viewer) -> None:
    expected = Played(make_scene(ROBOT).commands(ROBOT.neutral))
    assert_allclose(played(viewer).matrix(*TUBE), expected.matrix(*TUBE), atol=0)
    viewer.show([np.pi / 2])
    moved = Played(make_scene(ROBOT).commands([np.pi / 2]))
    assert_allclose(played(viewer).matrix(*TUBE), moved.matrix(*TUBE), atol=0)


def test_pages_are_told_where_bodies_go(viewer: Viewer) -> None:
    (first,) = news(viewer, 1)
    timer = threading.Timer(0.1, viewer.show, ([0.5],))
    timer.start()
    old, new = news(viewer, 2)
    timer.join()
    assert old["number"] == first["number"] < new["number"]
    column = data_of(viewer)["nodes"].index("robot/link")
    matrix = np.array(new["placements"][column]).reshape(4, 4).T
    # The hinge turns about y, 0.2 m above the ground.
    c, s = np.cos(0.5), np.sin(0.5)
    assert_allclose(matrix, [[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0.2], [0, 0, 0, 1]], atol=1e-12)


def test_a_slider_moves_a_robot_with_its_loop_closed(tmp_path: Any) -> None:
    robot = pl.load(fourbar(tmp_path))
    with view(robot, pl.assemble(robot, fixed={"drive": -1.0})) as viewer:
        labels = [entry["label"] for entry in data_of(viewer)["sliders"]]
        number = labels.index("drive")
        status, text = asked(viewer, {"slider": number, "value": -0.6})
        assert status == 200
        state = json.loads(text)
        assert state["values"][number] == -0.6
        assert state["residual"] < 1e-10
        assert state["closed"] is True
        assert robot.coordinates("drive").part(-0.6) == viewer.q[robot.coordinates("drive").q]
        here, there = (robot.placement(viewer.q, f"closer/{side}").translation for side in "AB")
        assert_allclose(here, there, atol=1e-10)
        # What is offered to be copied brings the robot back here.
        again = pl.assemble(robot, eval(state["python"]))
        assert_allclose(again, viewer.q, atol=1e-12)
        assert "--q drive=-0.6" in state["words"]
        _, text = asked(viewer, {"reset": True})
        assert json.loads(text)["values"][number] == pytest.approx(-1.0, abs=1e-15)


@pytest.mark.parametrize(
    "body",
    [
        {"slider": 9, "value": 0},
        {"slider": 0, "value": "1"},
        {},
        {"slider": 0, "value": None},
        {"slider": False, "value": 0},
        {"slider": 0, "value": True},
        {"slider": 0, "value": math.nan},
        {"slider": 0, "value": 10**400},
        {"slider": [0], "value": {}},
    ],
)
def test_what_no_slider_says_is_refused(viewer: Viewer, body: dict[str, Any]) -> None:
    status, text = asked(viewer, body)
    assert status == 200
    assert "no slider" in json.loads(text)["refused"]
    assert_allclose(viewer.q, [0.0], atol=0)


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b"{", b"\xff", b"[" * 9000, b'{"reset": true}' + b" " * 20_000]
)
def test_what_is_no_message_is_refused(viewer: Viewer, body: bytes) -> None:
    assert asked(viewer, body)[0] == 400
    assert asked(viewer, {"reset": True})[0] == 200


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET http://[ HTTP/1.1\r\nHost: localhost",
        b"GET / HTTP/1.1\r\nHost: [",
        b"POST / HTTP/1.1\r\nHost: ]\r\nContent-Length: -1",
        b"GET / HTTP/9.9",
        b"\xff\x00\x1b",
    ],
)
def test_what_is_no_request_is_refused_without_a_word(
    viewer: Viewer, request_line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    address = urlsplit(viewer.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(request_line + b"\r\n\r\n")
        assert re.match(rb"HTTP/1.1 (400|403|404|505)|<!DOCTYPE", connection.recv(1000))
    assert asked(viewer, {"reset": True})[0] == 200
    assert capfd.readouterr() == ("", "")


def test_other_pages_cannot_drive_it(viewer: Viewer) -> None:
    move = {"slider": 0, "value": 1.0}
    assert asked(viewer, move, Origin="http://example.org")[0] == 403
    assert asked(viewer, move, Origin="null")[0] == 403
    address = urlsplit(viewer.url)
    # A foreign name that was made to lead to this machine.
    foreign = f"example.org:{address.port}"
    assert asked(viewer, move, Host=foreign, Origin=f"http://{foreign}")[0] == 403
    assert asked(viewer, move, path="/ask")[0] == 403
    assert asked(viewer, move, path="/wrong/ask")[0] == 403
    assert_allclose(viewer.q, [0.0], atol=0)
    for path in ("/", "/wrong/", f"{address.path}other"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{address.netloc}{path}", timeout=10)


def test_only_this_machine_is_listened_to(viewer: Viewer) -> None:
    assert viewer._server.socket.getsockname()[0] == "127.0.0.1"
    assert len(urlsplit(viewer.url).path) > 12
    with view(ROBOT) as other:
        assert urlsplit(other.url).path != urlsplit(viewer.url).path


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with view(ROBOT) as viewer:
        page_of(viewer)
    assert capfd.readouterr() == ("", "")


def test_closing_ends_the_server() -> None:
    viewer = view(ROBOT)
    assert viewer.url in repr(viewer)
    assert viewer.url in viewer._repr_html_()
    with urllib.request.urlopen(f"{viewer.url}events", timeout=10) as stream:
        stream.readline()
        viewer.close()
        viewer.close()
        began = time.monotonic()
        assert b"data" not in stream.read()
        assert time.monotonic() - began < 5
    assert "closed" in repr(viewer)
    assert "iframe" not in viewer._repr_html_()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(viewer.url, timeout=10)
    with pytest.raises(PinloopError, match="closed"):
        viewer.show(ROBOT.neutral)
    viewer.wait()


def test_a_run_is_played_and_sent_to_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    robot = arm(SWING)
    run = pl.simulate(robot, robot.neutral, [1.0], until=0.3)
    with run.view() as viewer:
        assert capsys.readouterr().out == f"{viewer.url}\n"
        assert "connect-src 'self'" in page_of(viewer)
        assert "replay-slider" in page_of(viewer)
        assert "time" not in news(viewer, 1)[0]
        viewer.show(0.2)
        assert news(viewer, 1)[0]["time"] == 0.2
        assert_allclose(viewer.q, run(0.2).q, atol=0)
        with pytest.raises(BadValue, match=r"0\.4 s is outside"):
            viewer.show(0.4)
    with run.view(announce=False):
        assert capsys.readouterr().out == ""
