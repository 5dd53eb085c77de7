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
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .description import GROUND, Joint, Side
from .mechanism import Mechanism

__all__ = ["Alignment", "alignments_of", "equations"]

Array = NDArray[np.float64]
End = tuple[str, Side]
"""One of the two frames of a joint."""

_WITHOUT_AXIS = ("fixed", "free", "spherical", "spatial_translation", "rod")
"""Pairs without an axis of their own."""
_LINES = ("revolute", "helical", "cylindrical", "universal")
"""Pairs whose axis is a line in space, not only a direction."""


class Alignment(NamedTuple):
    """Two axes on a link that are meant to be parallel, or else to meet."""

    first: End
    second: End
    parallel: bool


@dataclass(frozen=True, eq=False)
class _Axis:
    """An axis on a link, in the coordinates of the link: its joint frame and its direction."""

    link: int
    frame: pin.SE3
    direction: Array


def alignments_of(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Alignment]:
    """Which axes on the same link are parallel or meet, but for a little.

    Args:
        robot: the mechanism.
        ends: joint frames to look at.
        limit: largest angle [rad] between parallel axes, and gap [lengths] between those that meet.
    """
    joints = {joint.name: joint for joint in robot.description.joints}
    found: list[Alignment] = []
    links: dict[int, list[tuple[End, _Axis]]] = {}
    for end in ends:
        pair = joints[end[0]].pair.name
        if pair in _WITHOUT_AXIS:
            continue
        axis = _axis(robot, joints[end[0]], end[1])
        others = links.setdefault(axis.link, [])
        sines = [float(np.linalg.norm(np.cross(axis.direction, o.direction))) for _, o in others]
        parallel = [other for (other, _), sine in zip(others, sines, strict=True) if sine <= limit]
        if parallel:
            found.append(Alignment(end, parallel[0], True))
        for (other, known), sine in zip(others, sines, strict=True):
            lines = {pair, joints[other[0]].pair.name} <= set(_LINES)
            if lines and sine > 10 * limit and abs(_gap(axis, known)) <= limit * robot.length:
                found.append(Alignment(end, other, False))
        others.append((end, axis))
    return found


def equations(
    robot: Mechanism, alignments: Sequence[Alignment], movable: Sequence[End]
) -> tuple[Array, Array]:
    """What is missing for the alignments, and its derivative by shifts of the joint frames.

    Args:
        robot: the mechanism.
        alignments: what to align.
        movable: joint frames that may be moved, each ``X`` to ``X exp(delta)``.

    Returns:
        The derivative, shape (equations, 6 movable), and the values, shape (equations,).
    """
    joints = {joint.name: joint for joint in robot.description.joints}
    columns = {end: 6 * index for index, end in enumerate(movable)}
    rows, values = [np.zeros((0, 6 * len(movable)))], [np.zeros(0)]
    for alignment in alignments:
        ends = (alignment.first, alignment.second)
        a, b = (_axis(robot, joints[name], side) for name, side in ends)
        value, derivatives = _parallel(a, b) if alignment.parallel else _meeting(a, b, robot.length)
        row = np.zeros((len(value), 6 * len(movable)))
        for end, derivative in zip(ends, derivatives, strict=True):
            if end in columns:
                row[:, columns[end] : columns[end] + 6] = derivative
        rows.append(row)
        values.append(value)
    return np.vstack(rows), np.concatenate(values)


def _axis(robot: Mechanism, joint: Joint, side: Side) -> _Axis:
    """The axis of a joint on the link that carries one side of it."""
    body = joint.parent if side == "frame_parent" else joint.child
    frame = joint.frame_parent if side == "frame_parent" else joint.frame_child
    link = 0
    if body != GROUND:
        carrier = robot.model.frames[robot.frame_id(body)]
        link, frame = carrier.parentJoint, carrier.placement * frame
    # The second axis of a universal joint is fixed on the side of B.
    second = joint.pair.name == "universal" and side == "frame_child"
    return _Axis(link, frame, np.array(frame.rotation[:, 0 if second else 2]))


def _gap(a: _Axis, b: _Axis) -> float:
    """Distance of two lines that are not parallel, with a sign [m]."""
    normal = np.cross(a.direction, b.direction)
    between = b.frame.translation - a.frame.translation
    return float(between @ normal / np.linalg.norm(normal))


def _parallel(a: _Axis, b: _Axis) -> tuple[Array, tuple[Array, Array]]:
    """``a x b`` of two directions; a turn ``w`` in the frame makes ``a`` to ``a + (R w) x a``."""
    derivatives = np.zeros((2, 3, 6))
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    derivatives[0, :, 3:] = skew_b @ skew_a @ a.frame.rotation
    derivatives[1, :, 3:] = -skew_a @ skew_b @ b.frame.rotation
    return skew_a @ b.direction, (derivatives[0], derivatives[1])


def _meeting(a: _Axis, b: _Axis, length: float) -> tuple[Array, tuple[Array, Array]]:
    """Gap of two lines over the characteristic length; zero where they meet."""
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    sine = float(np.linalg.norm(skew_a @ b.direction))
    normal = skew_a @ b.direction / sine
    gap = _gap(a, b) / length
    # What turns of the unit normal n change: (I - n n') of the vector between the lines.
    beside = (b.frame.translation - a.frame.translation) / length - gap * normal
    derivatives = np.zeros((2, 1, 6))
    derivatives[0, 0, :3] = -normal @ a.frame.rotation
    derivatives[1, 0, :3] = normal @ b.frame.rotation
    derivatives[0, 0, 3:] = beside @ skew_b @ skew_a @ a.frame.rotation / sine
    derivatives[1, 0, 3:] = -beside @ skew_a @ skew_b @ b.frame.rotation / sine
    return np.array([gap]), (derivatives[0], derivatives[1])
