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
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.description import GROUND, Joint, Side
from ...model.mechanism import Mechanism
from ...model.pairs import NOTHING, Feature
from .clusters import End

Array = NDArray[np.float64]
Kind = Literal["parallel", "meeting", "square", "angle", "gap", "distance", "foot"]
Value = tuple[Array, tuple[Array, Array]]
"""A measure of two axes, shape (n,), and its derivatives by shifts of their frames, (n, 6) each."""

_CLEARLY = 10.0
"""Axes that are off parallel by more than so many limits have a common normal to speak of."""
_ALL_PAIRS = 6
"""On links with more axes each is measured from the first one and from the one before only."""


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

    @property
    def is_line(self) -> bool:
        """Whether it has both a place and a direction."""
        return self.is_placed and bool(self.direction.any())


@dataclass(frozen=True)
class Rule:
    """A measure of two axes on a link that is to be zero, or the same as that of two others.

    Args:
        kind: what is measured.
        first: the axes.
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
        measure = _MEASURES[self.kind]
        value, by_ends = measure(axes[self.first[0]], axes[self.first[1]], length)
        derivatives = list(zip(self.first, by_ends, strict=True))
        if self.second is not None:
            other, by_others = measure(axes[self.second[0]], axes[self.second[1]], length)
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

    Args:
        robot: the mechanism.
        ends: joint frames to look at.
        limit: largest angle [rad] between parallel axes, and gap [lengths] between those that meet.
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

    Args:
        robot: the mechanism.
        ends: joint frames to look at.
        limit: largest difference [rad, lengths].
    """
    rules, measured = _zero_offsets(robot, ends, limit), dict[Kind, list[tuple[float, Rule]]]()
    for axes in axes_by_link(robot, ends).values():
        for pair in _pairs(list(axes)):
            a, b = axes[pair[0]], axes[pair[1]]
            is_skew = _sine(a, b) > _CLEARLY * limit
            kinds: tuple[Kind, ...] = ("angle", "gap") if is_skew else ("distance",)
            for kind in kinds:
                if kind != "angle" and not (a.is_placed and b.is_placed):
                    continue
                value = float(_MEASURES[kind](a, b, robot.length)[0][0])
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

    Args:
        robot: the mechanism.
        rules: what to obey.
        movable: joint frames that may be moved, each ``X`` to ``X exp(delta)``.

    Returns:
        Blocks of the derivative, of shape (equations, 6 movable), and the values.
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
            if end[0] in hinges and a.is_line and _sine(a, b) > _CLEARLY * limit:
                feet[end] = float(_foot(a, b, robot.length)[0][0]), other
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


def _sine(a: Axis, b: Axis) -> float:
    """Sine of the angle between two directions; 0 for centres."""
    return float(np.linalg.norm(np.cross(a.direction, b.direction)))


def _cross(a: Axis, b: Axis, length: float) -> Value:
    """``a x b`` of two directions; a turn ``w`` in the frame makes ``a`` to ``a + (R w) x a``."""
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    by_a, by_b = np.zeros((3, 6)), np.zeros((3, 6))
    by_a[:, 3:] = skew_b @ skew_a @ a.frame.rotation
    by_b[:, 3:] = -skew_a @ skew_b @ b.frame.rotation
    return skew_a @ b.direction, (by_a, by_b)


def _dot(a: Axis, b: Axis, length: float) -> Value:
    """``a . b`` of two directions, zero at right angles."""
    normal = np.cross(a.direction, b.direction)
    by_a, by_b = np.zeros((1, 6)), np.zeros((1, 6))
    by_a[0, 3:] = normal @ a.frame.rotation
    by_b[0, 3:] = -normal @ b.frame.rotation
    return np.array([a.direction @ b.direction]), (by_a, by_b)


def _angle(a: Axis, b: Axis, length: float) -> Value:
    """Angle between two directions [rad], up to a quarter turn: axes have no sense."""
    cosine, (by_a, by_b) = _dot(a, b, length)
    sine, sign = _sine(a, b), -1.0 if cosine[0] < 0 else 1.0
    angle = np.arctan2(sine, sign * cosine)
    return angle, (-sign / sine * by_a, -sign / sine * by_b)


def _signed_gap(a: Axis, b: Axis, length: float) -> Value:
    """Signed distance of two lines that are not parallel, in characteristic lengths."""
    skew_a, skew_b = pin.skew(a.direction), pin.skew(b.direction)
    sine = _sine(a, b)
    normal = skew_a @ b.direction / sine
    between = (b.frame.translation - a.frame.translation) / length
    gap = float(between @ normal)
    # What turns of the unit normal n change: (I - n n') of the vector between the lines.
    beside = between - gap * normal
    by_a, by_b = np.zeros((1, 6)), np.zeros((1, 6))
    by_a[0, :3] = -normal @ a.frame.rotation
    by_b[0, :3] = normal @ b.frame.rotation
    by_a[0, 3:] = beside @ skew_b @ skew_a @ a.frame.rotation / sine
    by_b[0, 3:] = -beside @ skew_a @ skew_b @ b.frame.rotation / sine
    return np.array([gap]), (by_a, by_b)


def _gap(a: Axis, b: Axis, length: float) -> Value:
    """Distance of two lines that are not parallel, in characteristic lengths."""
    gap, (by_a, by_b) = _signed_gap(a, b, length)
    sign = -1.0 if gap[0] < 0 else 1.0
    return sign * gap, (sign * by_a, sign * by_b)


def _distance(a: Axis, b: Axis, length: float) -> Value:
    """Distance of parallel lines and centres, in characteristic lengths, seen along a line."""
    between = (b.frame.translation - a.frame.translation) / length
    line = 0 if a.direction.any() else 1
    axis = (a, b)[line]
    along = float(between @ axis.direction)
    beside = between - along * axis.direction
    distance = float(np.linalg.norm(beside))
    derivatives = np.zeros((2, 1, 6))
    if distance > 0:
        unit = beside / distance
        derivatives[0, 0, :3] = -unit @ a.frame.rotation
        derivatives[1, 0, :3] = unit @ b.frame.rotation
        derivatives[line, 0, 3:] = along * unit @ pin.skew(axis.direction) @ axis.frame.rotation
    return np.array([distance]), (derivatives[0], derivatives[1])


def _foot(a: Axis, b: Axis, length: float) -> Value:
    """Where on line ``b`` its common normal with line ``a`` stands, in characteristic lengths."""
    cosine = float(a.direction @ b.direction)
    sine_squared = 1.0 - cosine**2
    between = (a.frame.translation - b.frame.translation) / length
    along = float(between @ a.direction)
    foot = (float(between @ b.direction) - cosine * along) / sine_squared
    by_between = (b.direction - cosine * a.direction) / sine_squared
    by_cosine = (2 * cosine * foot - along) / sine_squared
    by_direction_a = by_cosine * b.direction - cosine / sine_squared * between
    by_direction_b = by_cosine * a.direction + between / sine_squared
    by_a, by_b = np.zeros((1, 6)), np.zeros((1, 6))
    by_a[0, :3] = by_between @ a.frame.rotation
    by_b[0, :3] = -by_between @ b.frame.rotation
    by_a[0, 3:] = np.cross(a.direction, by_direction_a) @ a.frame.rotation
    by_b[0, 3:] = np.cross(b.direction, by_direction_b) @ b.frame.rotation
    return np.array([foot]), (by_a, by_b)


_MEASURES: dict[Kind, Callable[[Axis, Axis, float], Value]] = {
    "parallel": _cross,
    "meeting": _signed_gap,
    "square": _dot,
    "angle": _angle,
    "gap": _gap,
    "distance": _distance,
    "foot": _foot,
}
