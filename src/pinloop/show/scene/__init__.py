"""Seeing a robot: live in the browser, or as one HTML file.

The two public functions; what they need (trimesh, meshcat's script) is read when they are called.
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from ...assembly.assemble import assemble
from ...boundary.arguments import public
from ...boundary.files import write_text
from ...boundary.values import forward
from ...errors import BadValue
from ...model.mechanism import Mechanism, require_robot
from ...tables.report import render
from .commands import encoded, viewer_script
from .dragging import RobotExhibit
from .live import Viewer
from .scene import LOOP, Scene, make_scene
from .solids import css_color

if TYPE_CHECKING:
    from .meshcat_robot import MeshcatRobot

__all__ = ["save_html", "view"]


@overload
def view(
    robot: Mechanism, q: ArrayLike | None = None, *, html: None = None, open_browser: bool = False
) -> Viewer: ...
@overload
def view(
    robot: Mechanism, q: ArrayLike | None = None, *, html: str | Path, open_browser: bool = False
) -> Path: ...
@overload
def view(
    robot: Mechanism,
    q: ArrayLike | None = None,
    *,
    html: None = None,
    viewer: Any,
    open_browser: bool = False,
) -> MeshcatRobot: ...
@public
def view(
    robot: Mechanism,
    q: ArrayLike | None = None,
    *,
    html: str | Path | None = None,
    viewer: Any = None,
    open_browser: bool = False,
) -> Viewer | Path | MeshcatRobot:
    """Show a robot.

    Args:
        robot: the robot.
        q: configuration, shape (nq,); by default the assembled one nearest to neutral.
        html: file to write one self-contained page to, instead of opening a live viewer.
        viewer: a ``meshcat.Visualizer`` to draw the robot into, instead of opening another one.
        open_browser: open the viewer or the page in the browser.

    Returns:
        The live viewer, or the path of the page. ``url`` of the viewer is where to look; there,
        sliders move the robot, whose loops stay closed. ``show(q)`` moves it from here, and ``q``
        is where it is. With ``viewer``, the robot in it: ``display(q)`` moves it.

    Raises:
        LoopNotClosed: no ``q`` is given and none closes the loops.
        BadValue: ``q`` is no configuration of the robot, or the page cannot be written.
    """
    if viewer is not None:
        if html is not None:
            raise BadValue("a robot goes into a file or into a viewer; leave out html or viewer")
        display: MeshcatRobot = forward("show.scene.meshcat_robot", "MeshcatRobot", viewer, robot)
        display.display(_configuration(robot, q))
        if open_browser:
            viewer.open()
        return display
    if html is not None:
        path = save_html(robot, html, q)
        if open_browser:
            webbrowser.open(path.resolve().as_uri(), new=2)
        return path
    configuration = _configuration(robot, q)
    live = Viewer(RobotExhibit(make_scene(robot), configuration))
    if open_browser:
        live.open()
    return live


@public
def save_html(robot: Mechanism, path: str | Path, q: ArrayLike | None = None) -> Path:
    """Write a robot as one HTML file that shows it in any browser, without a network.

    Args:
        robot: the robot.
        path: file to write.
        q: configuration, shape (nq,); by default the assembled one nearest to neutral.

    Returns:
        The path of the file.

    Raises:
        LoopNotClosed: no ``q`` is given and none closes the loops.
        BadValue: ``q`` is no configuration of the robot, or the file cannot be written.
    """
    configuration = _configuration(robot, q)
    return write_text(path, page(make_scene(robot), configuration))


def page(scene: Scene, q: ArrayLike) -> str:
    """The page of a scene at configuration ``q``.

    meshcat's own static page needs a running server and reads every object asynchronously; this one
    is written straight from the commands and replays them in order.
    """
    return render(
        "show/scene/templates/robot.html",
        robot=scene.robot,
        loop_color=css_color(LOOP),
        viewer=viewer_script(),
        commands=list(encoded(scene.commands(q))),
    )


def _configuration(robot: Mechanism, q: ArrayLike | None) -> ArrayLike:
    require_robot(robot)
    return assemble(robot) if q is None else robot.checked_configuration(q)
