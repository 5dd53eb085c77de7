"""What axes on links are meant to be, but for a little: parallel, meeting, square, equally far.

Linkages are made of this link by link, whatever the configuration. A fit of geometry has to keep
to it: where families of linkages have members in common, as planar ones and Bennett's in every
parallelogram or all of Bricard's in a ring of equal bars, the geometries that move are no manifold,
and the nearest one may be another than the one meant. Where conditions are met to second order
only, as with three equal cranks on one coupler, only equal lengths lead back to them.

Lengths are divided by the robot's characteristic length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from typing import Any, Literal

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...model.description import GROUND, Joint, Side
from ...model.mechanism import Mechanism
from ...model.pairs import NOTHING, Feature

End = tuple[str, Side]
"""One of the two frames of a joint."""
Kind = Literal["parallel", "meeting", "square", "angle", "gap", "distance", "foot"]
Slopes = tuple[Any, Array, Array, Array]
"""A measure of two axes, and its derivatives by their directions and the vector between them."""

_CLEARLY = 10.0
"""Axes that are off parallel by more than so many limits have a common normal to speak of."""
_ALL_PAIRS = 6
"""On links with more axes each is measured from the first one and from the one before only."""


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis or a centre on a link, in the coordinates of the link.

    Args:
        link: index of the link among the joints of the model.
        direction: the axis, a unit vector; zero for a centre.
        is_placed: whether it has a place, not only a direction.
    """

    link: int
    frame: pin.SE3
    direction: Array
    is_placed: bool

    @property
    def is_line(self) -> bool:
        """Whether it has both a place and a direction."""
        return self.is_placed and bool(self.direction.any())


@dataclass(frozen=True)
class Rule:
    """A measure of two axes on a link that is to be zero, or the same as that of two others.

    Args:
        second: the axes whose measure is to be the same; None for zero.
    """

    kind: Kind
    first: tuple[End, End]
    second: tuple[End, End] | None = None

    @property
    def ends(self) -> tuple[End, ...]:
        """The joint frames that it is about."""
        return self.first + (self.second or ())

    def terms(self, axes: dict[End, Axis], length: float) -> tuple[Array, list[tuple[End, Array]]]:
        """What is missing, shape (n,), and its derivative by shifts ``X`` to ``X exp(delta)``."""
        value, by_ends = _measured(self.kind, self.first, axes, length)
        derivatives = list(zip(self.first, by_ends, strict=True))
        if self.second is not None:
            other, by_others = _measured(self.kind, self.second, axes, length)
            value = value - other
            derivatives += [(end, -by) for end, by in zip(self.second, by_others, strict=True)]
        return value, derivatives


def axes_by_link(robot: Mechanism, ends: Sequence[End]) -> dict[int, dict[End, Axis]]:
    """The axes and centres that each link carries."""
    joints = {joint.name: joint for joint in robot.description.joints}
    links: dict[int, dict[End, Axis]] = {}
    for name, side in ends:
        if _feature(joints[name], side) != NOTHING:
            axis = _axis(robot, joints[name], side)
            links.setdefault(axis.link, {})[name, side] = axis
    return links


def alignments_of(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Rule]:
    """Which axes on the same link are parallel or meet, but for a little.

    ``limit``: largest angle [rad] between parallel axes, and gap [lengths] between those that meet.
    """
    rules: list[Rule] = []
    for axes in axes_by_link(robot, ends).values():
        lines = [(end, axis) for end, axis in axes.items() if axis.direction.any()]
        directions = np.array([axis.direction for _, axis in lines]).reshape(-1, 3)
        points = np.array([axis.frame.translation for _, axis in lines]).reshape(-1, 3)
        for number, (end, axis) in enumerate(lines):
            normals = np.cross(directions[:number], axis.direction)
            sines = np.linalg.norm(normals, axis=1)
            parallel = np.flatnonzero(sines <= limit)
            if len(parallel):
                rules.append(Rule("parallel", (end, lines[parallel[0]][0])))
            gaps = np.abs(np.sum((points[:number] - points[number]) * normals, axis=1))
            near = (sines > _CLEARLY * limit) & (gaps <= limit * robot.length * sines)
            rules += [
                Rule("meeting", (end, lines[other][0]))
                for other in np.flatnonzero(near)
                if axis.is_placed and lines[other][1].is_placed
            ]
    return rules


def equalities_of(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Rule]:
    """Which distances and angles are equal or right, and which offsets zero, but for a little.

    ``ends``: joint frames to look at. ``limit``: largest difference [rad, lengths].
    """
    rules, measured = _zero_offsets(robot, ends, limit), dict[Kind, list[tuple[float, Rule]]]()
    for axes in axes_by_link(robot, ends).values():
        for pair in _pairs(list(axes)):
            a, b = axes[pair[0]], axes[pair[1]]
            is_skew = _sine(a.direction, b.direction) > _CLEARLY * limit
            kinds: tuple[Kind, ...] = ("angle", "gap") if is_skew else ("distance",)
            for kind in kinds:
                if kind != "angle" and not (a.is_placed and b.is_placed):
                    continue
                value = float(_measured(kind, pair, axes, robot.length)[0][0])
                if kind == "angle" and value >= 0.5 * np.pi - limit:
                    rules.append(Rule("square", pair))
                elif value > limit:
                    measured.setdefault(kind, []).append((value, Rule(kind, pair)))
    for kind, values in measured.items():
        values.sort(key=lambda entry: (entry[0], entry[1].first))
        rules += [
            Rule(kind, first.first, second.first)
            for (low, first), (high, second) in pairwise(values)
            if high - low <= limit
        ]
    return rules


def equations(
    robot: Mechanism, rules: Sequence[Rule], movable: Sequence[End]
) -> tuple[list[tuple[int, int, Array]], Array]:
    """What is missing for the rules, and its derivative by shifts of the joint frames.

    The derivative is in blocks, of shape (equations, 6 movable): frames that are ``movable`` are
    moved from ``X`` to ``X exp(delta)``.
    """
    joints = {joint.name: joint for joint in robot.description.joints}
    ends = {end for rule in rules for end in rule.ends}
    axes = {(name, side): _axis(robot, joints[name], side) for name, side in ends}
    columns = {end: 6 * index for index, end in enumerate(movable)}
    blocks: list[tuple[int, int, Array]] = []
    values = [np.zeros(0)]
    row = 0
    for rule in rules:
        value, derivatives = rule.terms(axes, robot.length)
        blocks += [(row, columns[end], by) for end, by in derivatives if end in columns]
        values.append(value)
        row += len(value)
    return blocks, np.concatenate(values)


def _axis(robot: Mechanism, joint: Joint, side: Side) -> Axis:
    """The axis of a joint on the link that carries one side of it."""
    body = joint.parent if side == "frame_parent" else joint.child
    frame = joint.frame_parent if side == "frame_parent" else joint.frame_child
    link = 0
    if body != GROUND:
        carrier = robot.model.frames[robot.frame_id(body)]
        link, frame = carrier.parentJoint, carrier.placement * frame
    feature, direction = _feature(joint, side), np.zeros(3)
    if feature.axis:
        direction = np.array(frame.rotation[:, "xyz".index(feature.axis)])
    return Axis(link, frame, direction, feature.is_placed)


def _feature(joint: Joint, side: Side) -> Feature:
    """What the joint is about on one of its frames."""
    return joint.pair.features[side == "frame_child"]


def _zero_offsets(robot: Mechanism, ends: Sequence[End], limit: float) -> list[Rule]:
    """Hinges between two-hinge links whose common normals meet on the axis, but for a little."""
    hinges = [joint.name for joint in robot.description.joints if joint.pair.name == "revolute"]
    feet: dict[End, tuple[float, End]] = {}
    for axes in axes_by_link(robot, ends).values():
        for other, end in permutations(axes, 2) if len(axes) == 2 else ():
            a, b = axes[other], axes[end]
            is_skew = _sine(a.direction, b.direction) > _CLEARLY * limit
            if end[0] in hinges and a.is_line and is_skew:
                feet[end] = float(_measured("foot", (other, end), axes, robot.length)[0][0]), other
    rules = []
    for name in hinges:
        parent: End = (name, "frame_parent")
        child: End = (name, "frame_child")
        if parent in feet and child in feet and abs(feet[parent][0] - feet[child][0]) <= limit:
            rules.append(Rule("foot", (feet[parent][1], parent), (feet[child][1], child)))
    return rules


def _pairs(ends: list[End]) -> list[tuple[End, End]]:
    """Pairs of axes of a link to measure."""
    if len(ends) <= _ALL_PAIRS:
        return list(combinations(ends, 2))
    return [(ends[0], end) for end in ends[1:]] + list(pairwise(ends[1:]))


def _sine(u: Array, v: Array) -> float:
    """Sine of the angle between two directions; 0 for centres."""
    return float(np.linalg.norm(pin.skew(u) @ v))


# -- measures of two axes, by their directions and the vector between them -------------------------


def _measured(
    kind: Kind, ends: tuple[End, End], axes: dict[End, Axis], length: float
) -> tuple[Array, list[Array]]:
    """A measure of two axes, shape (n,), and its derivatives by shifts of their frames, (n, 6)."""
    a, b = (axes[end] for end in ends)
    between = (b.frame.translation - a.frame.translation) / length
    value, *slopes = _MEASURES[kind](a.direction, b.direction, between)
    by_u, by_v, by_between = map(np.atleast_2d, slopes)
    derivatives = []
    for axis, by_direction, by_point in ((a, by_u, -by_between), (b, by_v, by_between)):
        # A turn ``w`` of the frame takes its direction ``u`` to ``u + (R w) x u``.
        both = by_point, -by_direction @ pin.skew(axis.direction)
        derivatives.append(np.hstack([by @ axis.frame.rotation for by in both]))
    return np.atleast_1d(value), derivatives


def _cross(u: Array, v: Array, between: Array) -> Slopes:
    """``u x v``."""
    turn = pin.skew(u)  # which takes a tenth of the time of NumPy's cross product
    return turn @ v, -pin.skew(v), turn, np.zeros((3, 3))


def _dot(u: Array, v: Array, between: Array) -> Slopes:
    """``u . v``, zero at right angles."""
    return u @ v, v, u, np.zeros(3)


def _angle(u: Array, v: Array, between: Array) -> Slopes:
    """Angle between two directions [rad], up to a quarter turn: axes have no sense."""
    cosine, sine = float(u @ v), _sine(u, v)
    slope = (1.0 if cosine < 0 else -1.0) / sine
    return np.arctan2(sine, abs(cosine)), slope * v, slope * u, np.zeros(3)


def _signed_gap(u: Array, v: Array, between: Array) -> Slopes:
    """Signed distance of two lines that are not parallel."""
    sine = _sine(u, v)
    normal = pin.skew(u) @ v / sine
    gap = between @ normal
    # What turns of the unit normal n change: (I - n n') of the vector between the lines.
    beside = between - gap * normal
    return gap, pin.skew(v) @ beside / sine, pin.skew(beside) @ u / sine, normal


def _gap(u: Array, v: Array, between: Array) -> Slopes:
    """Distance of two lines that are not parallel."""
    gap, *slopes = _signed_gap(u, v, between)
    sign = -1.0 if gap < 0 else 1.0
    by_u, by_v, by_between = (sign * slope for slope in slopes)
    return sign * gap, by_u, by_v, by_between


def _distance(u: Array, v: Array, between: Array) -> Slopes:
    """Distance of parallel lines and centres, seen along a line."""
    axis = u if u.any() else v
    along = float(between @ axis)
    beside = between - along * axis
    distance = float(np.linalg.norm(beside))
    unit = beside / distance if distance > 0 else np.zeros(3)
    by_axis, none = -along * unit, np.zeros(3)
    return (distance, by_axis, none, unit) if axis is u else (distance, none, by_axis, unit)


def _foot(u: Array, v: Array, between: Array) -> Slopes:
    """Where on the second line its common normal with the first one stands."""
    cosine = float(u @ v)
    sine_squared = 1.0 - cosine**2
    along = float(between @ u)
    foot = (cosine * along - float(between @ v)) / sine_squared
    by_cosine = (2 * cosine * foot + along) / sine_squared
    by_u = by_cosine * v + cosine / sine_squared * between
    by_v = by_cosine * u - between / sine_squared
    return foot, by_u, by_v, (cosine * u - v) / sine_squared


_MEASURES: dict[Kind, Callable[[Array, Array, Array], Slopes]] = {
    "parallel": _cross,
    "meeting": _signed_gap,
    "square": _dot,
    "angle": _angle,
    "gap": _gap,
    "distance": _distance,
    "foot": _foot,
}
"""In characteristic lengths: values, and how they change with both directions and the vector."""
