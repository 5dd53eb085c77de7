"""Pages of a robot: one file that shows it, and the live one, where sliders move it.

Viewer and robot are in the page; nothing is fetched when it is opened. meshcat's own static page
needs a running server and reads every object asynchronously; this one is written straight from the
commands and replays them in order.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import BadValue, PinloopError, shown
from ...tables.page import Markup, render
from .dragging import Dragged
from .live import Message
from .scene import Scene
from .skeleton import LOOP
from .solids import Color, encoded

__all__ = ["RobotExhibit", "css_color", "page", "viewer_script"]

_FARTHEST = 1e30
"""No slider goes there [rad, m]."""


def page(scene: Scene, q: ArrayLike) -> str:
    """The page of a scene at configuration ``q``."""
    return render(
        "show/scene/templates/robot.html",
        robot=scene.robot,
        loop_color=css_color(LOOP),
        viewer=viewer_script(),
        commands=list(encoded(scene.commands(q))),
    )


def css_color(color: Color) -> str:
    """A colour as style sheets have it."""
    return f"rgb({', '.join(str(round(255 * value)) for value in color[:3])})"


def viewer_script() -> Markup:
    """The script of the viewer, out of the meshcat package."""
    spec = find_spec("meshcat")
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        script = Path(folder) / "viewer" / "dist" / "main.min.js"
        if script.is_file():
            return Markup(script.read_text(encoding="utf-8"))
    raise PinloopError(
        "the viewer's script is missing from meshcat; reinstall it: pip install "
        "--force-reinstall meshcat"
    )


class RobotExhibit:
    """A robot that the live page moves by its sliders.

    Args:
        scene: what is drawn of it.
        q: configuration at the start, shape (nq,).
    """

    def __init__(self, scene: Scene, q: ArrayLike) -> None:
        self._scene = scene
        self._dragged = Dragged(scene.robot, q)
        self._obstacle = ""
        self.name = scene.robot.name

    @property
    def q(self) -> NDArray[Any]:
        """Configuration that is shown, shape (nq,)."""
        return self._dragged.q

    def show(self, value: Any) -> None:
        """Show a configuration, shape (nq,)."""
        self._dragged.set(value)
        self._obstacle = ""

    def ask(self, message: Message) -> None:
        """Drag a joint (``slider`` and ``value``), or go back to where it began (``reset``)."""
        if message.get("reset"):
            self.show(self._dragged.home)
            return
        number: Any = message.get("slider")
        value: Any = message.get("value")
        sliders = self._dragged.sliders
        # Truths are integers in Python, and JSON has NaN and integers beyond all floats.
        known = type(number) is int and 0 <= number < len(sliders)
        if not known or type(value) not in (int, float) or not abs(value) < _FARTHEST:
            raise BadValue(f"there is no slider {shown(number)} that could go to {shown(value)}")
        self._obstacle = self._dragged.move(sliders[number], float(value))

    def state(self) -> Message:
        """Placements of the nodes, values of the sliders, closure, and the pose as text."""
        dragged = self._dragged
        placements = self._scene.placements(dragged.q)
        return {
            "placements": [matrix.T.ravel().tolist() for matrix in placements],
            **self._extent(),
            "values": [float(dragged.values(s.joint)[s.column]) for s in dragged.sliders],
            "residual": dragged.residual(),
            "closed": dragged.is_closed(),
            "said": self._obstacle,
            "words": self._words(),
            "python": self._python(),
        }

    def page(self) -> str:
        """The page, with the robot where it is now."""
        robot, hidden = self._scene.robot, self._scene.hidden
        data = {
            "commands": list(encoded(self._scene.commands(self._dragged.q))),
            "nodes": [node.path for node in self._scene.nodes],
            "sliders": [vars(slider) for slider in self._dragged.sliders],
            "loops": len(robot.loops) + len(robot.couplings),
            "closes": "loops" if robot.loops else "couplings",
            "skeleton": "skeleton" not in hidden,
            "dressed": bool(hidden),
            **self._extent(),
        }
        viewer = viewer_script()
        return render("show/scene/templates/live.html", robot=robot, data=data, viewer=viewer)

    def _extent(self) -> Message:
        """Middle of everything that is seen, in the world [m], and the radius around it [m]."""
        points = self._scene.points(self._dragged.q)
        if len(points) == 0:
            return {"middle": [0.0, 0.0, 0.0], "radius": 1.0}
        low, high = points.min(axis=0), points.max(axis=0)
        radius = max(float(np.linalg.norm(high - low)) / 2, 1e-3)
        return {"middle": ((low + high) / 2).tolist(), "radius": radius}

    def _words(self) -> str:
        """The motors' coordinates as options of the command ``pinloop view``."""
        motors = dict.fromkeys(s.joint for s in self._dragged.sliders if s.motor)
        words = (
            f"{name}={','.join(f'{value:.9g}' for value in self._stored(name))}"
            for name in motors or self._scene.robot.joints
        )
        return " ".join(f"--q {shlex.quote(word)}" for word in words)

    def _python(self) -> str:
        """All coordinates as a dictionary of Python, to the last bit."""
        values = {name: self._stored(name).tolist() for name in self._scene.robot.joints}
        return repr({name: own[0] if len(own) == 1 else own for name, own in values.items()})

    def _stored(self, joint: str) -> NDArray[Any]:
        """Coordinates of a joint as a user gives them; an angle for a cosine and sine."""
        at = self._scene.robot.coordinates(joint)
        if at.nq == 2 and at.nv == 1:
            return self._dragged.values(joint)
        return np.asarray(self._dragged.q[at.q])
