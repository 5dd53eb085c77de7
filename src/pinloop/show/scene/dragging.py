"""A robot that is moved joint by joint, with its loops closed: what a slider does, and its page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ...assembly.continuation import LoopContinuation, nearby_assembly
from ...assembly.search import jacobian_rank, limited_coordinates, outside_limits, velocity_mask
from ...boundary.marks import Array
from ...errors import BadValue, shown
from ...model.mechanism import Mechanism
from ...model.tree import JointCoordinates, coordinate_names
from ...tables.report import render
from ...tolerances import SLIDER_MISSED
from .commands import encoded, viewer_script
from .live import Message
from .scene import Scene

_STEP = 0.1
"""Largest step of a joint between two assemblies [rad, characteristic lengths]."""
_LEAP = 0.6
"""A joint that moves farther in one step has changed to another branch of assemblies."""
_FINEST = 1e-3
"""Part of a step at which the search for the last closed place ends."""
_FARTHEST = 1e30
"""No slider goes there [rad, m]."""


@dataclass(frozen=True)
class Slider:
    """One coordinate that can be dragged, between two values [rad, m].

    ``column`` is its number in the joint's chart, see `Dragged.values`.
    """

    joint: str
    column: int
    label: str
    low: float
    high: float
    linear: bool
    motor: bool


class Dragged:
    """A robot at a configuration that is changed by dragging joints.

    Args:
        q: configuration at the start, shape (nq,). If its loops are open, joints move one by one
            until they can be closed.

    Attributes:
        q: the present configuration, shape (nq,).
        sliders: what can be dragged.
    """

    def __init__(self, robot: Mechanism, q: ArrayLike) -> None:
        self.robot = robot
        self.home = self.q = robot.checked_configuration(q)
        self._loops = LoopContinuation(robot, limits=False)
        self._holds: dict[str, tuple[str, ...]] = {}
        self.sliders = tuple(self._sliders())

    def set(self, q: ArrayLike) -> None:
        """Put the robot at ``q``, shape (nq,), whether its loops are closed there or not."""
        self.q = self.robot.checked_configuration(q)

    def values(self, joint: str) -> Array:
        """Coordinates of a joint that can be dragged.

        Those of the configuration where there is one per degree of freedom; otherwise translations,
        then the rotation vector [m, rad].
        """
        return _chart(self.q[self.robot.coordinates(joint).q], self.robot.coordinates(joint))

    def residual(self) -> float:
        """Norm of the closure residual of all loops, m and rad."""
        return float(np.linalg.norm(self._loops.problem.constraints.residual(self.q)))

    def is_closed(self) -> bool:
        """Whether all loops are closed."""
        return self._loops.is_closed(self.q)

    def move(self, slider: Slider, value: float) -> str:
        """Drag a joint towards a value [rad, m] as far as the loops stay closed.

        The robot moves in small steps, each the least change that closes the loops, with the other
        motors held as far as the loops leave them independent. Says why it stopped before, or
        nothing.
        """
        goal = self.values(slider.joint)
        goal[slider.column] = min(max(value, slider.low), slider.high)
        if not self.is_closed():
            return self._move_open(slider.joint, goal)
        start = self.values(slider.joint)
        held, at = self._held(slider.joint), self.robot.coordinates(slider.joint)
        scale = self.robot.length if slider.linear else 1.0
        distance = abs(float(goal[slider.column] - start[slider.column])) / scale

        def lead(q: Array, part: float) -> Array:
            q[at.q] = _coordinates((1 - part) * start + part * goal, at)
            return q

        self.q, part = self._loops.follow(
            self.q,
            lead,
            lambda q: (held,),
            max(1, int(np.ceil(distance / _STEP))),
            # Who has left the limits may go on without them.
            limits=not outside_limits(self.robot, self.q, self.robot.joints),
            leap=_LEAP,
            finest=_FINEST,
        )
        if part < 1.0:
            return self._obstacle(slider.joint)
        if abs(self.values(slider.joint)[slider.column] - goal[slider.column]) > SLIDER_MISSED:
            return f"'{slider.joint}' goes no further that way: the loops determine part of it"
        return ""

    def _move_open(self, joint: str, goal: Array) -> str:
        """Move a joint of a robot whose loops are open; close them if that is possible now."""
        at = self.robot.coordinates(joint)
        self.q = self.q.copy()
        self.q[at.q] = _coordinates(goal, at)
        closed = self._loops.closed(self.q, (joint,), limits=True)
        if closed is None:
            return "the loops are open: joints move one by one"
        self.q = closed
        return ""

    def _held(self, joint: str) -> tuple[str, ...]:
        """What stays where it is while a joint is dragged: this one, and what is independent of it.

        Ranks are taken at an assembly nearby, because the present one may be singular.
        """
        if joint not in self._holds:
            robot = self.robot
            near = nearby_assembly(robot, self.q, np.random.default_rng(0), reach=0.2)
            jacobian = self._loops.problem.jacobian(self.q if near is None else near)
            rank = jacobian_rank(jacobian)
            held: tuple[str, ...] = ()
            motors = [slider.joint for slider in self.sliders if slider.motor]
            for name in dict.fromkeys((joint, *motors)):
                if jacobian_rank(jacobian[:, ~velocity_mask(robot, (*held, name))]) == rank:
                    held = (*held, name)
            self._holds[joint] = held
        return self._holds[joint]

    def _obstacle(self, joint: str) -> str:
        held = self._held(joint)
        free = ~velocity_mask(self.robot, held)
        limits = limited_coordinates(self.robot)
        near = {
            j
            for i, j, low, high in limits
            if free[j] and min(self.q[i] - low, high - self.q[i]) < 1e-3 * self._scale(j)
        }
        names = [
            name
            for name in self.robot.joints
            if near & set(range(*self.robot.coordinates(name).v.indices(self.robot.nv)))
        ]
        if names:
            listed = ", ".join(f"'{name}'" for name in names)
            return f"'{joint}' goes no further: {listed} at its limit"
        others = ", ".join(f"'{name}'" for name in held if name != joint)
        others_held = f" with {others} held" if others else ""
        return f"'{joint}' goes no further: the loops do not close there{others_held}"

    def _scale(self, column: int) -> float:
        return self.robot.length if self.robot.is_translation[column] else 1.0

    def _sliders(self) -> Sequence[Slider]:
        """All coordinates that can be dragged, those of motors first, as reports list them."""
        sliders = []
        for name in self.robot.joints:
            at = self.robot.coordinates(name)
            if at.nq != at.nv and (at.nq, at.nv) not in ((2, 1), (4, 3), (7, 6)):
                continue  # it has no chart
            names = coordinate_names(self.robot.tree, name)
            for k, value in enumerate(self.values(name)):
                low, high = self._ends(at, k, float(value))
                label = name if at.nv == 1 else f"{name}.{names[k]}"
                linear = bool(self.robot.is_translation[at.v.start + k])
                motor = name in self.robot.actuated
                sliders.append(Slider(name, k, label, low, high, linear, motor))
        order = {name: k for k, name in enumerate(self.robot.actuated)}
        return sorted(sliders, key=lambda slider: order.get(slider.joint, len(order)))

    def _ends(self, at: JointCoordinates, column: int, value: float) -> tuple[float, float]:
        """Limits of a coordinate; where there are none, one turn, or four lengths of the robot."""
        model = self.robot.model
        low, high = -np.inf, np.inf
        if at.nq == at.nv:
            low = float(model.lowerPositionLimit[at.q.start + column])
            high = float(model.upperPositionLimit[at.q.start + column])
        reach = np.pi
        if self.robot.is_translation[at.v.start + column]:
            reach = 2 * self.robot.length
        far = 1e3 * max(reach, 1.0)  # limits beyond that are none
        low = low if low > -far else min(-reach, value)
        high = high if high < far else max(reach, value)
        return min(low, value), max(high, value)


def _chart(q: Array, at: JointCoordinates) -> Array:
    """Values of a joint from its coordinates: angles and rotation vectors."""
    if at.nq == at.nv:
        return np.array(q)
    if at.nv == 1:
        return np.array([np.arctan2(q[1], q[0])])
    quaternion = pin.Quaternion(q[-1], *q[-4:-1])
    return np.concatenate([q[:-4], pin.log3(quaternion.toRotationMatrix())])


def _coordinates(values: Array, at: JointCoordinates) -> Array:
    """Coordinates of a joint from its values; the inverse of `_chart`."""
    if at.nq == at.nv:
        return values
    if at.nv == 1:
        return np.array([np.cos(values[0]), np.sin(values[0])])
    quaternion = pin.Quaternion(pin.exp3(values[-3:])).coeffs()
    return np.concatenate([values[:-3], quaternion])


# -- the page -------------------------------------------------------------------------------------


class RobotExhibit:
    """A scene that the live page moves by its sliders, at first at configuration ``q``, (nq,)."""

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
