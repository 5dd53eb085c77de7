"""A robot as sticks and joint symbols: what can be drawn of it when its file has no shapes.

Knows where joints sit on bodies, not where bodies are: every piece is placed in the frame of the
body (or loop frame) that carries it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...model.description import GROUND, Joint
from ...model.mechanism import Mechanism
from ...model.pairs import Pair, SymbolSolid, align_z
from .solids import Color, Solid, box, cylinder, ring, sphere

__all__ = ["LOOP", "Piece", "joint_symbol", "loop_symbols", "skeleton"]

Array = NDArray[np.float64]

STICK: Color = (0.45, 0.49, 0.55, 1.0)
GROUND_STICK: Color = (0.72, 0.74, 0.77, 1.0)
LOOP: Color = (0.83, 0.09, 0.31, 1.0)

_COLORS: dict[str, Color] = {
    "turn": (0.93, 0.50, 0.12, 1.0),
    "slide": (0.15, 0.58, 0.36, 1.0),
    "ball": (0.36, 0.30, 0.74, 1.0),
    "other": (0.12, 0.47, 0.78, 1.0),
}
_AROUND_X = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
"""Turns z to x."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A solid on a body.

    Args:
        name: name of the piece, unique on its carrier.
        carrier: body that carries it.
        solid: what it looks like.
        matrix: its placement in the carrier, shape (4, 4).
        color: its colour.
    """

    name: str
    carrier: str
    solid: Solid
    matrix: Array
    color: Color


def skeleton(robot: Mechanism, size: float) -> list[Piece]:
    """Return sticks between the joints of each body, and a symbol at each tree joint that moves.

    Args:
        robot: the robot.
        size: length by which the symbols are scaled [m].
    """
    pieces = list(_sticks(robot, size))
    for edge in robot.tree.edges:
        pieces += joint_symbol(edge.joint, size, _COLORS[edge.joint.pair.symbol.color])
    return pieces


def joint_symbol(joint: Joint, size: float, color: Color) -> Iterator[Piece]:
    """Yield what is drawn of a joint on its two bodies; nothing of one that is fixed or free."""
    ends = ((joint.parent, joint.frame_parent), (joint.child, joint.frame_child))
    if not (joint.pair.rows and joint.pair.dof):
        return
    symbol = joint.pair.symbol
    for side, (body, frame), solids in zip("AB", ends, (symbol.at_a, symbol.at_b), strict=True):
        parts = [_solid(solid, size) for solid in solids]
        for number, (solid, matrix) in enumerate(parts):
            name = f"{joint.name} {side}{number or ''}"
            yield Piece(name, body, solid, frame.homogeneous @ matrix, color)


def loop_symbols(pair: Pair, size: float) -> tuple[list[tuple[Solid, Array]], ...]:
    """Return what is drawn at frame A and at frame B of a loop joint.

    Both have a part of the symbol: where the loop is open, they are apart.
    """
    at_a, at_b = ([_solid(s, size) for s in side] for side in (pair.symbol.at_a, pair.symbol.at_b))
    return at_a, at_b or [(ring(0.75 * size, 0.14 * size), np.eye(4))]


_SOLIDS: dict[str, Callable[..., Solid]] = {
    "box": box,
    "cylinder": cylinder,
    "ring": ring,
    "sphere": sphere,
}


def _solid(part: SymbolSolid, size: float) -> tuple[Solid, Array]:
    """A part of a symbol at its size, and its placement in the frame of the joint."""
    solid = _SOLIDS[part.kind](*(size * measure for measure in part.size))
    return solid, _AROUND_X if part.along == "x" else np.eye(4)


def _sticks(robot: Mechanism, size: float) -> Iterator[Piece]:
    """Sticks from the joint that carries a body, or from its middle, to its other joints."""
    for body, (carrier, points) in _anchors(robot).items():
        color = GROUND_STICK if body == GROUND else STICK
        radius = (0.12 if body == GROUND else 0.22) * size
        hub = carrier
        if hub is None:
            hub = np.mean(points, axis=0) if len(points) > 2 else points[0]
        for number, end in enumerate(points if len(points) else _tips(robot, body)):
            placed = stick(hub, end, radius)
            if placed is not None:
                yield Piece(f"stick {number}", body, *placed, color)


def _anchors(robot: Mechanism) -> dict[str, tuple[Array | None, list[Array]]]:
    """Per body the point of the joint that carries it, if any, and those of its other joints.

    Free joints are left out: their frames are no points of the bodies.
    """
    carriers: dict[str, Array] = {}
    points: dict[str, list[Array]] = {}
    for edge in robot.tree.edges:
        if not edge.joint.pair.rows:
            continue
        frames = (edge.joint.frame_parent, edge.joint.frame_child)
        near, far = frames if edge.orientation > 0 else frames[::-1]
        points.setdefault(edge.parent, []).append(near.translation)
        carriers[edge.child] = far.translation
    for cut in robot.tree.cuts:
        points.setdefault(cut.parent, []).append(cut.frame_parent.translation)
        points.setdefault(cut.child, []).append(cut.frame_child.translation)
    bodies = dict.fromkeys((*points, *carriers))
    return {body: (carriers.get(body), points.get(body, [])) for body in bodies}


def _tips(robot: Mechanism, body: str) -> list[Array]:
    """Where a body with a single joint leads to: its named frames, or its centre of mass."""
    named = [frame.placement for frame in robot.description.frames if frame.body == body]
    if named:
        return [placement.translation for placement in named]
    return [other.com for other in robot.description.bodies if other.name == body and other.mass]


def stick(start: Array, end: Array, radius: float) -> tuple[Solid, Array] | None:
    """Cylinder between two points and its placement, or None if they coincide."""
    along = np.asarray(end) - np.asarray(start)
    length = float(np.linalg.norm(along))
    if length < 1e-3 * radius:
        return None
    middle = np.asarray(start) + along / 2
    return cylinder(radius, length), pin.SE3(align_z(along), middle).homogeneous
