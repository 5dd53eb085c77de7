"""A scene as one HTML file, and what all pages with a viewer have in common.

Viewer and robot are in the page; nothing is fetched when it is opened. meshcat's own static page
needs a running server and reads every object asynchronously; this one is written straight from the
commands and replays them in order.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from numpy.typing import ArrayLike

from ...boundary.files import write_text
from ...boundary.json import json_text
from ...errors import PinloopError
from ...model.mechanism import Mechanism
from ...tables.markup import Markup, element, joined
from ...tables.page import asset, render
from .commands import Command, packed
from .scene import Scene
from .skeleton import LOOP
from .solids import Color

__all__ = [
    "ROOM",
    "caption",
    "css_color",
    "encoded",
    "page",
    "policy",
    "script_data",
    "scripts",
    "write_page",
]

ROOM = __package__
"""Whose templates and assets these are."""
_NOTICE = """<!--
The script below is the viewer of MeshCat, (c) 2018 Robin Deits, MIT License, with three.js,
(c) 2010-2021 Three.js Authors, MIT License, and others listed in MeshCat's distribution.
-->
"""
"""What has to stand above the viewer's script."""


def write_page(scene: Scene, q: ArrayLike, path: str | Path) -> Path:
    """Write the page of a scene at configuration ``q`` and return its path."""
    return write_text(path, page(scene, q))


def page(scene: Scene, q: ArrayLike) -> str:
    """Return the page of a scene at configuration ``q``."""
    return render(
        "robot.html",
        ROOM,
        title=scene.robot.name,
        name=scene.robot.name,
        facts=caption(scene.robot),
        policy=policy(),
        loop_color=css_color(LOOP),
        scripts=scripts("pane.js"),
        commands=list(encoded(scene.commands(q))),
    )


def policy(connect: str = "'none'") -> Markup:
    """What the browser lets a page do: nothing that needs a network. The viewer compiles.

    Args:
        connect: which addresses it may ask: none, or ``'self'`` with a server behind it.
    """
    return Markup(
        "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
        f"style-src 'unsafe-inline'; img-src data:; connect-src {connect}"
    )


def caption(robot: Mechanism) -> Markup:
    """What a robot has, counted, as paragraphs of HTML."""
    counts = [(len(robot.bodies), "body", "bodies"), (len(robot.joints), "joint", "joints")]
    facts = (f"{n} {singular if n == 1 else plural}" for n, singular, plural in counts)
    lines = [element("p", " · ".join(facts))]
    if robot.loops:
        number = len(robot.loops)
        what = "loop joint" if number == 1 else "loop joints"
        lines.append(element("p", element("i"), f"{number} {what}"))
    return joined(*lines)


def css_color(color: Color) -> str:
    """A colour as style sheets have it."""
    return f"rgb({', '.join(str(round(255 * value)) for value in color[:3])})"


def encoded(commands: Iterable[Command]) -> Iterator[str]:
    """Commands as text for a page (base64)."""
    return (base64.b64encode(packed(command)).decode() for command in commands)


def script_data(data: object) -> Markup:
    """Data for an element ``script``, which nothing in it can end."""
    return Markup(json_text(data, indent=None).replace("<", "\\u003c"))


def scripts(*names: str) -> Markup:
    """The viewer, and scripts of this room that work with it, for the end of a page.

    Args:
        names: files in ``assets``.
    """
    own = (element("script", Markup(f"\n{asset(ROOM, name)}")) for name in names)
    viewer = element("script", Markup(f"\n{_viewer_script()}\n"))
    return joined(Markup(_NOTICE), viewer, *own, between="\n")


def _viewer_script() -> str:
    """The script of the viewer, out of the meshcat package."""
    spec = find_spec("meshcat")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        script = Path(folder) / "viewer" / "dist" / "main.min.js"
        if script.is_file():
            return script.read_text(encoding="utf-8")
    raise PinloopError(
        "the viewer's script is missing from meshcat; reinstall it: pip install "
        "--force-reinstall meshcat"
    )
