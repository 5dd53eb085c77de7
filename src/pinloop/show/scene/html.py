"""A scene as one HTML file: viewer and robot in it, nothing fetched when it is opened.

meshcat's own static page needs a running server and reads every object asynchronously; this one
is written straight from the commands and replays them in order.
"""

from __future__ import annotations

import base64
from html import escape
from importlib.util import find_spec
from pathlib import Path

from numpy.typing import ArrayLike

from ...boundary.files import write_text
from ...errors import PinloopError
from ...model.mechanism import Mechanism
from .commands import packed
from .scene import Scene
from .skeleton import LOOP

__all__ = ["NOTICE", "caption", "page", "policy", "viewer_script", "write_page"]

NOTICE = """<!--
The script below is the viewer of MeshCat, (c) 2018 Robin Deits, MIT License, with three.js,
(c) 2010-2021 Three.js Authors, MIT License, and others listed in MeshCat's distribution.
-->
"""
"""What has to stand above the viewer's script."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
  body {{ margin: 0; font: 15px/1.45 system-ui, sans-serif; color: #2b3038; }}
  #meshcat-pane {{ width: 100vw; height: 100vh; overflow: hidden; }}
  #caption {{ position: absolute; left: 20px; top: 16px; pointer-events: none; }}
  #caption h1 {{ margin: 0; font-size: 20px; font-weight: 600; }}
  #caption p {{ margin: 2px 0 0; color: #5b6370; }}
  #caption i {{ display: inline-block; width: 10px; height: 10px; border-radius: 5px;
               margin-right: 6px; background: {loop_color}; }}
  .dg.main .close-button {{ background: #e3e7ed !important; color: #2b3038 !important; }}
</style>
</head>
<body>
<div id="meshcat-pane"></div>
<div id="caption"><h1>{name}</h1>{facts}</div>
{notice}<script>
{viewer}
</script>
<script>
"use strict";
const viewer = new MeshCat.Viewer(document.getElementById("meshcat-pane"));
const commands = [
{commands}
];
for (const text of commands) {{
  viewer.handle_command_bytearray(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
}}
const narrow = 1.25 * window.innerHeight / window.innerWidth;
if (narrow > 1) {{
  viewer.camera.position.multiplyScalar(narrow);
}}
</script>
</body>
</html>
"""


def write_page(scene: Scene, q: ArrayLike, path: str | Path) -> Path:
    """Write the page of a scene at configuration ``q`` and return its path."""
    return write_text(path, page(scene, q))


def page(scene: Scene, q: ArrayLike) -> str:
    """Return the page of a scene at configuration ``q``."""
    robot = scene.robot
    red, green, blue = (round(255 * value) for value in LOOP[:3])
    encoded = (base64.b64encode(packed(command)).decode() for command in scene.commands(q))
    return _PAGE.format(
        title=escape(f"{robot.name} - pinloop"),
        name=escape(robot.name),
        facts=caption(robot),
        policy=policy(),
        notice=NOTICE,
        loop_color=f"rgb({red}, {green}, {blue})",
        viewer=viewer_script(),
        commands=",\n".join(f'"{text}"' for text in encoded),
    )


def policy(connect: str = "'none'") -> str:
    """What the browser lets a page do: nothing that needs a network. The viewer compiles.

    Args:
        connect: which addresses it may ask: none, or ``'self'`` with a server behind it.
    """
    return (
        "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; "
        f"style-src 'unsafe-inline'; img-src data:; connect-src {connect}"
    )


def caption(robot: Mechanism) -> str:
    """What a robot has, counted, as paragraphs of HTML."""
    counts = [(len(robot.bodies), "body", "bodies"), (len(robot.joints), "joint", "joints")]
    facts = " · ".join(f"{n} {one if n == 1 else many}" for n, one, many in counts)
    lines = f"<p>{facts}</p>"
    if robot.loops:
        number = len(robot.loops)
        what = "loop joint" if number == 1 else "loop joints"
        lines += f"<p><i></i>{number} {what}</p>"
    return lines


def viewer_script() -> str:
    """Return the script of the viewer, out of the meshcat package."""
    spec = find_spec("meshcat")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        script = Path(folder) / "viewer" / "dist" / "main.min.js"
        if script.is_file():
            return script.read_text(encoding="utf-8")
    raise PinloopError("the viewer's script is missing from meshcat; reinstall it: pip install "
                       "--force-reinstall meshcat")  # fmt: skip
