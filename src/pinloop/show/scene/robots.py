"""The live page of a robot: the picture, a slider for each joint, and how well loops are closed."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import BadValue, shown
from ...tables.markup import Markup
from ...tables.page import asset, render
from .dragging import Dragged, Slider
from .html import ROOM, caption, encoded, policy, script_data, scripts
from .live import Message
from .scene import Scene

__all__ = ["RobotExhibit"]

_FARTHEST = 1e30
"""No slider goes there [rad, m]."""


class RobotExhibit:
    """A robot that the page moves by its sliders.

    Args:
        scene: what is drawn of it.
        q: configuration at the start, shape (nq,).
    """

    def __init__(self, scene: Scene, q: ArrayLike) -> None:
        self._scene = scene
        self._dragged = Dragged(scene.robot, q)
        self._said = ""

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self._scene.robot.name

    @property
    def q(self) -> NDArray[Any]:
        """Configuration that is shown, shape (nq,)."""
        return self._dragged.q

    def show(self, value: Any) -> None:
        """Show a configuration, shape (nq,)."""
        self._dragged.set(value)
        self._said = ""

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
        self._said = self._dragged.move(sliders[number], float(value))

    def state(self) -> Message:
        """Placements of the nodes, values of the sliders, closure, and the pose as text."""
        dragged = self._dragged
        values = [float(dragged.values(slider.joint)[slider.column]) for slider in dragged.sliders]
        return {
            "placements": [
                matrix.T.ravel().tolist() for matrix in self._scene.placements(dragged.q)
            ],
            **self._extent(),
            "values": values,
            "residual": dragged.residual(),
            "closed": dragged.is_closed(),
            "said": self._said,
            "words": self._words(),
            "python": self._python(),
        }

    def page(self) -> str:
        """The page, with the robot where it is now."""
        robot = self._scene.robot
        data = {
            "commands": list(encoded(self._scene.commands(self._dragged.q))),
            "nodes": [node.path for node in self._scene.nodes],
            "sliders": [_entry(slider) for slider in self._dragged.sliders],
            "loops": len(robot.loops) + len(robot.couplings),
            "closes": "loops" if robot.loops else "couplings",
            "skeleton": "skeleton" not in self._scene.hidden,
            "dressed": bool(self._scene.hidden),
            **self._extent(),
        }
        return render(
            "live.html",
            ROOM,
            title=robot.name,
            name=robot.name,
            facts=caption(robot),
            style=Markup(asset(ROOM, "live.css")),
            data=script_data(data),
            policy=policy("'self'"),
            scripts=scripts("pane.js", "live.js"),
        )

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
        chosen = [s.joint for s in self._dragged.sliders if s.motor] or list(
            self._scene.robot.joints
        )
        return " ".join(
            f"--q {_quoted(f'{name}={_numbers(self._stored(name))}')}"
            for name in dict.fromkeys(chosen)
        )

    def _python(self) -> str:
        """All coordinates as a dictionary of Python, to the last bit."""
        robot = self._scene.robot
        parts = []
        for name in robot.joints:
            cells = [float(value) for value in self._stored(name)]
            parts.append(f"{name!r}: {cells[0] if len(cells) == 1 else cells!r}")
        return "{" + ", ".join(parts) + "}"

    def _stored(self, joint: str) -> NDArray[Any]:
        """Coordinates of a joint as a user gives them; an angle for a cosine and sine."""
        at = self._scene.robot.coordinates(joint)
        if at.nq == 2 and at.nv == 1:
            return self._dragged.values(joint)
        return np.asarray(self._dragged.q[at.q])


def _entry(slider: Slider) -> dict[str, Any]:
    return {
        "label": slider.label,
        "low": slider.low,
        "high": slider.high,
        "linear": slider.linear,
        "motor": slider.motor,
    }


def _numbers(values: NDArray[Any]) -> str:
    return ",".join(f"{float(value):.9g}" for value in values)


def _quoted(word: str) -> str:
    """A word as a shell takes it."""
    return shlex.quote(word)
