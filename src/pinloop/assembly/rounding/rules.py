"""Joint axes on one link that are parallel, or meet, but for a little: what they are meant to obey.

These are what planar and spherical linkages are made of, link by link and whatever the
configuration. A fit of geometry has to keep to them: where planar linkages and Bennett's have
members in common, as in every parallelogram, the geometries that move are no manifold, and the
nearest one may be another than the one meant.

Lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.description import GROUND, Joint, Side
from ...model.mechanism import Mechanism

__all__ = [
    "Alignment",
    "Axis",
    "End",
    "Rule",
    "alignments_of",
    "axes_by_link",
    "equations",
    "gap_of",
]

Array = NDArray[np.float64]
End = tuple[str, Side]
"""One of the two frames of a joint."""
Terms = tuple[Array, tuple[tuple[End, Array], ...]]
"""Values of equations, and their derivatives by a shift of each end, shape (equations, 6)."""

_WITHOUT_AXIS = ("fixed", "free", "spatial_translation")
"""Pairs without axis or centre of their own."""
_POINTS = ("spherical", "rod")
"""Pairs with a centre, but no axis."""
_LINES = ("revolute", "helical", "cylindrical", "universal")
"""Pairs whose axis is a line in space, not only a direction."""


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis or a centre on a link, in the coordinates of the link.

    Args:
        link: index of the link among the joints of the model.
        frame: the joint frame.
        direction: the axis, a unit vector; zero for a centre.
        is_placed: whether it has a place, not only a direction.
    """

    link: int
    frame: pin.SE3
    direction: Array
    is_placed: bool


class Rule(Protocol):
    """What joint frames on links are to obey: equations between some of them."""

    @property
    def ends(self) -> tuple[End, ...]:
        """The joint frames that it is about."""

    def terms(self, axes: dict[End, Axis], length: float) -> Terms:
        """What is missing, and its derivative by shifts ``X`` to ``X exp(delta)`` of the frames."""


@dataclass(frozen=True)
class Alignment:
    """Two axes on a link that are meant to be parallel, or else to meet."""

    first: End
    second: End
    parallel: bool

    @property
    def ends(self) -> tuple[End, ...]:
        """Both axes."""
        return self.first, self.second

    def terms(self, axes: dict[End, Axis], length: float) -> Terms:
        """The cross product of the axes, or their gap in characteristic lengths."""
        a, b = axes[self.first], axes[self.second]
        value, (by_a, by_b) = _parallel(a, b) if self.parallel else gap_of(a, b, length)
        return value, ((self.first, by_a), (self.second, by_b))


def axes_by_link(robot: Mechanism, ends: Sequence[End]) -> dict[int, dict[End, Axis]]:
    """The axes and centres that each link carries."""
    joints = {joint.name: joint for joint in robot.description.joints}
    links: dict[int, dict[End, Axis]] = {}
    for name, side in ends:
        if joints[name].pair.name not in _WITHOUT_AXIS:
            axis = _axis(robot, joints[name], side)
            links.setdefault(axis.link, {})[name, side] = axis
    return links


def alignments_of(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Alignment]:
    """Which axes on the same link are parallel or meet, but for a little.

    Args:
        robot: the mechanism.
        ends: joint frames to look at.
        limit: largest angle [rad] between parallel axes, and gap [lengths] between those that meet.
    """
    found: list[Alignment] = []
    for axes in axes_by_link(robot, ends).values():
        known: dict[End, Axis] = {}
        for end, axis in axes.items():
            if not axis.direction.any():
                continue
            sines = {
                other: float(np.linalg.norm(np.cross(axis.direction, o.direction)))
                for other, o in known.items()
            }
            parallel = [other for other, sine in sines.items() if sine <= limit]
            if parallel:
                found.append(Alignment(end, parallel[0], True))
            for other, sine in sines.items():
                lines = axis.is_placed and known[other].is_placed
                if lines and sine > 10 * limit:
                    gap, _ = gap_of(axis, known[other], robot.length)
                    if abs(gap[0]) <= limit:
                        found.append(Alignment(end, other, False))
            known[end] = axis
    return found


def equations(
    robot: Mechanism, rules: Sequence[Rule], movable: Sequence[End]
) -> tuple[Array, Array]:
    """What is missing for the rules, and its derivative by shifts of the joint frames.

    Args:
        robot: the mechanism.
        rules: what to obey.
        movable: joint frames that may be moved, each ``X`` to ``X exp(delta)``.

    Returns:
        The derivative, shape (equations, 6 movable), and the values, shape (equations,).
    """
    joints = {joint.name: joint for joint in robot.description.joints}
    ends = {end for rule in rules for end in rule.ends}
    axes = {(name, side): _axis(robot, joints[name], side) for name, side in ends}
    columns = {end: 6 * index for index, end in enumerate(movable)}
    rows, values = [np.zeros((0, 6 * len(movable)))], [np.zeros(0)]
    for rule in rules:
        value, derivatives = rule.terms(axes, robot.length)
        row = np.zeros((len(value), 6 * len(movable)))
        for end, derivative in derivatives:
            if end in columns:
                row[:, columns[end] : columns[end] + 6] += derivative
        rows.append(row)
        values.append(value)
    return np.vstack(rows), np.concatenate(values)


def _axis(robot: Mechanism, joint: Joint, side: Side) -> Axis:
    """The axis of a joint on the link that carries one side of it."""
    body = joint.parent if side == "frame_parent" else joint.child
    frame = joint.frame_parent if side == "frame_parent" else joint.frame_child
    link = 0
    if body != GROUND:
        carrier = robot.model.frames[robot.frame_id(body)]
        link, frame = carrier.parentJoint, carrier.placement * frame
    # The second axis of a universal joint is fixed on the side of B.
    second = joint.pair.name == "universal" and side == "frame_child"
    direction = np.array(frame.rotation[:, 0 if second else 2])
    if joint.pair.name in _POINTS:
        direction = np.zeros(3)
    return Axis(link, frame, direction, joint.pair.name in (*_LINES, *_POINTS))


def _parallel(a: Axis, b: Axis) -> tuple[Array, tuple[Array, Array]]:
    """``a x b`` of two directions; a turn ``w`` in the frame makes ``a`` to ``a + (R w) x a``."""
    derivatives = np.zeros((2, 3, 6))
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    derivatives[0, :, 3:] = skew_b @ skew_a @ a.frame.rotation
    derivatives[1, :, 3:] = -skew_a @ skew_b @ b.frame.rotation
    return skew_a @ b.direction, (derivatives[0], derivatives[1])


def gap_of(a: Axis, b: Axis, length: float) -> tuple[Array, tuple[Array, Array]]:
    """Signed gap of two lines over the characteristic length; zero where they meet."""
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    sine = float(np.linalg.norm(skew_a @ b.direction))
    normal = skew_a @ b.direction / sine
    between = (b.frame.translation - a.frame.translation) / length
    gap = float(between @ normal)
    # What turns of the unit normal n change: (I - n n') of the vector between the lines.
    beside = between - gap * normal
    derivatives = np.zeros((2, 1, 6))
    derivatives[0, 0, :3] = -normal @ a.frame.rotation
    derivatives[1, 0, :3] = normal @ b.frame.rotation
    derivatives[0, 0, 3:] = beside @ skew_b @ skew_a @ a.frame.rotation / sine
    derivatives[1, 0, 3:] = -beside @ skew_a @ skew_b @ b.frame.rotation / sine
    return np.array([gap]), (derivatives[0], derivatives[1])
