"""The page: nothing is fetched when it opens, names are only text, the scene is in it."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import umsgpack
from numpy.testing import assert_allclose

import pinloop as pl
from pinloop.model.pairs import make_pair
from pinloop.show.scene import page, save_html, view
from pinloop.show.scene.scene import make_scene

from .scenes import Played, arm, arm_urdf, at, open_pair, visual

ARM = (visual("tube", "link", "cylinder", (0.1, 0.6), at(0.3, 0, 0)),)


class Reader(HTMLParser):
    """Collects attributes that make a browser fetch, tags and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str | None] = []
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [
            value for name, value in attrs if name in ("src", "href", "srcset", "data")
        ]

    def handle_data(self, data: str) -> None:
        (self.scripts if self.tags[-1:] == ["script"] else self.texts).append(data)


def commands_of(text: str) -> list[dict[str, object]]:
    """The commands in the page's own script."""
    block = re.search(r"const commands = \[(.*?)\];", text, re.DOTALL)
    assert block is not None
    return [
        umsgpack.unpackb(base64.b64decode(entry))
        for entry in re.findall(r'"([A-Za-z0-9+/=]+)"', block[1])
    ]


def test_nothing_is_fetched() -> None:
    robot = arm(*ARM)
    text = page(make_scene(robot), robot.neutral)
    reader = Reader(text)
    assert reader.fetched == ["data:,"]
    # The name of a language, and what the viewer would call if it were told to connect.
    assert set(re.findall(r"(?:https?|wss?|ftp)://[^\s\"'`)]+", text)) <= {
        "http://www.w3.org/1999/xhtml",
        "ws://${location.host}",
    }
    assert "@import" not in text and "url(" not in text.partition("<script>")[0]
    own = reader.scripts[-1]
    assert "fetch(" not in own and "connect(" not in own and "import" not in own
    # And could not be: the browser is told so.
    assert "default-src 'none'" in text and "connect-src 'none'" in text


def test_the_commands_are_those_of_the_scene() -> None:
    robot = arm(*ARM)
    played = Played(())
    for command in commands_of(page(make_scene(robot), [np.pi / 2])):
        played.handle(command)
    expected = Played(make_scene(robot).commands([np.pi / 2]))
    path = ("robot", "link", "tube")
    assert_allclose(played.matrix(*path), expected.matrix(*path), atol=0)
    assert played.objects.keys() == expected.objects.keys()
    assert played.properties == expected.properties


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "--><b>&amp;", "{braces}", "Ω \\n"])
def test_names_are_text(tmp_path: Path, name: str) -> None:
    escaped = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    robot = pl.load(arm_urdf(tmp_path, name=escaped))
    text = save_html(robot, tmp_path / "arm.html").read_text(encoding="utf-8")
    reader = Reader(text)
    assert reader.tags.count("script") == 3
    assert "b" not in reader.tags
    assert name in "".join(reader.texts)


def test_the_caption_counts() -> None:
    robot = open_pair(make_pair("spherical"), 0.8)
    text = "".join(Reader(page(make_scene(robot), robot.neutral)).texts)
    assert "2 bodies · 2 joints" in text
    assert "1 loop joint" in text
    single = arm(*ARM)
    text = "".join(Reader(page(make_scene(single), single.neutral)).texts)
    assert "2 bodies · 1 joint" in text
    assert "loop joint" not in text


def test_a_file_is_written_at_the_assembled_configuration(tmp_path: Path) -> None:
    robot = open_pair(make_pair("rod", length=0.5), 0.9)
    path = view(robot, html=tmp_path / "robot.html")
    assert path == tmp_path / "robot.html"
    played = Played(())
    for command in commands_of(path.read_text(encoding="utf-8")):
        played.handle(command)
    first, second = (
        played.matrix(*played.below("loops", "closer", side)[0])[:3, 3] for side in "AB"
    )
    assert np.linalg.norm(first - second) == pytest.approx(0.5, abs=1e-9)


def test_the_file_is_the_same_every_time(tmp_path: Path) -> None:
    robot = arm(*ARM)
    first, second = (save_html(robot, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(pl.BadValue, match=r"nowhere.*cannot be written: there is no folder"):
        save_html(arm(*ARM), tmp_path / "nowhere" / "x.html")
    with pytest.raises(pl.BadValue, match="is a folder"):
        save_html(arm(*ARM), tmp_path)


def test_a_robot_that_cannot_be_assembled_is_not_shown_silently(tmp_path: Path) -> None:
    # The sliders run 0.4 m apart: no rod of 0.1 m reaches.
    robot = open_pair(make_pair("rod", length=0.1), 0.3)
    target = tmp_path / "robot.html"
    with pytest.raises(pl.LoopNotClosed):
        save_html(robot, target)
    assert not target.exists()
    assert save_html(robot, target, robot.neutral) == target
    with pytest.raises(pl.BadValue, match="2 numbers"):
        save_html(robot, target, [0.0])
