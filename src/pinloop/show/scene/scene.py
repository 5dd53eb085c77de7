"""From a robot to the objects of the viewer: what is drawn, on which node, and where it is at q.

A robot whose file has no shapes is drawn as sticks between its joints, with their symbols. The
scene is our own rather than Pinocchio's `MeshcatVisualizer`, which needs a `GeometryModel` that
Pinocchio makes from URDF and MJCF only, knows nothing of loop joints, and draws into a running
server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...boundary.marks import Array, Integers
from ...model.description import GROUND, Joint
from ...model.mechanism import Mechanism
from ...model.pairs import SymbolSolid, align_z
from ...model.tree import LoopJoint
from ...model.workspace import create_data
from .commands import Command, light_scene, paint, set_object, set_property, set_transform
from .solids import (
    Color,
    MeshFiles,
    Solid,
    crease_normals,
    cylinder,
    make_solid,
    ring,
    tessellate,
)

_PALETTE: tuple[Color, ...] = (
    (0.62, 0.66, 0.71, 1.0),
    (0.45, 0.58, 0.72, 1.0),
    (0.78, 0.74, 0.64, 1.0),
    (0.50, 0.65, 0.60, 1.0),
    (0.73, 0.60, 0.56, 1.0),
    (0.60, 0.58, 0.71, 1.0),
)
"""Colours of bodies whose file gives none."""
_MARK: Color = (0.93, 0.50, 0.12, 1.0)
"""Colour of a marked joint until it gets another one."""
LOOP: Color = (0.83, 0.09, 0.31, 1.0)
_STICK: Color = (0.45, 0.49, 0.55, 1.0)
_GROUND_STICK: Color = (0.72, 0.74, 0.77, 1.0)
_SYMBOLS: dict[str, Color] = {
    "turn": (0.93, 0.50, 0.12, 1.0),
    "slide": (0.15, 0.58, 0.36, 1.0),
    "ball": (0.36, 0.30, 0.74, 1.0),
    "other": (0.12, 0.47, 0.78, 1.0),
}
_AROUND_X = np.array([[0.0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]])
"""Turns z to x."""
_MARK_SIZE = 0.06
"""Size of the symbols of marked joints over the length of the robot."""


class Node(NamedTuple):
    """A node of the scene: its path, and the index of the model's frame that it follows.

    Its z axis points to the origin of the frame ``toward``, if it is given.
    """

    path: str
    frame: int
    toward: int | None = None


@dataclass(frozen=True, eq=False)
class Part:
    """A solid on a node, at a path below the node's and a placement (4, 4) in it.

    It may be hidden until the user asks for it, or drawn over whatever hides it.
    """

    path: str
    node: int
    solid: Solid
    matrix: Array
    color: Color
    shown: bool = True
    in_front: bool = False

    def triangles(self) -> tuple[Array, Integers, Array]:
        """Its surface in the frame of its node: vertices [m], faces, and normals of vertices."""
        vertices, faces = tessellate(self.solid)
        vertices = vertices @ self.matrix[:3, :3].T + self.matrix[:3, 3]
        return crease_normals(vertices, faces)


@dataclass(frozen=True, eq=False)
class Scene:
    """What is drawn of a robot; made by `make_scene`.

    Args:
        hidden: paths that are not seen unless the user asks for them.
        marks: paths of the symbols of joints that are marked, by name.
        loops: paths of what is drawn of the loop joints, by name.
    """

    robot: Mechanism
    nodes: tuple[Node, ...]
    parts: tuple[Part, ...]
    hidden: tuple[str, ...]
    marks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    loops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def placements(self, q: ArrayLike) -> list[Array]:
        """Placement in the world of each node at configuration ``q``, each of shape (4, 4)."""
        q = self.robot.checked_configuration(q)
        return list(self.placements_over(q[None])[0])

    def placements_over(self, q: Array) -> Array:
        """Placements in the world of the nodes at configurations (k, nq), shape (k, n, 4, 4)."""
        model = self.robot.model
        data = create_data(model)
        placements = np.zeros((len(q), len(self.nodes), 4, 4))
        for k, place in enumerate(q):
            pin.framesForwardKinematics(model, data, place)
            for n, node in enumerate(self.nodes):
                placements[k, n] = self._placement(node, data)
        return placements

    @staticmethod
    def _placement(node: Node, data: pin.Data) -> Array:
        """Placement of a node; one that points to another frame turns its z axis there."""
        here = data.oMf[node.frame]
        matrix: Array = np.array(here.homogeneous)
        if node.toward is not None:
            placed = _stick(here.translation, data.oMf[node.toward].translation, 0.0)
            if placed is not None:
                matrix[:3, :3] = placed[1][:3, :3]
        return matrix

    def placing_in(self, data: pin.Data) -> list[Command]:
        """Commands that move the robot to where ``data`` has the frames of its model."""
        return [set_transform(node.path, self._placement(node, data)) for node in self.nodes]

    def points(self, q: ArrayLike) -> Array:
        """Corners of everything that is seen at ``q``, in the world [m], shape (n, 3)."""
        placements = self.placements(q)
        corners = [np.zeros((0, 3))]
        for part in self.parts:
            if part.shown:
                matrix = placements[part.node] @ part.matrix
                corners.append(part.solid.corners @ matrix[:3, :3].T + matrix[:3, 3])
        return np.vstack(corners)

    def placing(self, q: ArrayLike) -> list[Command]:
        """Commands that move the robot to configuration ``q``."""
        data = create_data(self.robot.model)
        q = self.robot.checked_configuration(q)
        pin.framesForwardKinematics(self.robot.model, data, q)
        return self.placing_in(data)

    def commands(self, q: ArrayLike) -> list[Command]:
        """Commands that draw everything at ``q``: stage and camera, the parts, their placement."""
        hidden = [set_property(path, "visible", False) for path in self.hidden]
        return [*light_scene(self.points(q)), *self.drawing(), *self.placing(q), *hidden]

    def drawing(self, **surface: Any) -> list[Command]:
        """Commands that put all parts on their nodes; ``surface`` is more of their materials."""
        return [
            set_object(
                part.path,
                part.solid,
                paint(part.color, in_front=part.in_front, **surface),
                part.matrix @ part.solid.matrix,
            )
            for part in self.parts
        ]


def make_scene(robot: Mechanism, *, marked: Iterable[str] | None = None) -> Scene:
    """Turn a robot into a scene.

    Drawn are the visual shapes, or the collision shapes if there are no others; sticks and joint
    symbols stand in for shapes if the robot has none at all, and are there to be switched on
    otherwise. Loop joints get a symbol in a colour of their own. Symbols of ``marked`` joints are
    drawn over whatever hides them, to be coloured one by one; then nothing is there that is not
    seen.
    """
    scene = _Builder(robot)
    dressed = bool(scene.add("robot", _shapes(robot)))
    # On a robot with shapes the symbols must show on the links, without them they are the robot.
    size = (0.045 if dressed else 0.07) * robot.length
    if marked is None or not dressed:
        scene.add("skeleton", _skeleton(robot, size), shown=not dressed)
    loops = {loop.name: scene.add_loop(loop, size, in_front=dressed) for loop in robot.loops}
    joints = {edge.joint.name: edge.joint for edge in robot.tree.edges}
    symbols = {
        name: _joint_symbol(joints[name], _MARK_SIZE * robot.length, _MARK) for name in marked or ()
    }
    marks = {name: scene.add("joints", pieces, in_front=True) for name, pieces in symbols.items()}
    hidden = ("skeleton",) if dressed and marked is None else ()
    return Scene(robot, tuple(scene.nodes), tuple(scene.parts), hidden, marks, loops)


def make_collision_scene(robot: Mechanism) -> Scene:
    """The collision shapes of a robot alone."""
    scene = _Builder(robot)
    scene.add("robot", _shapes(robot, "collision"))
    return Scene(robot, tuple(scene.nodes), tuple(scene.parts), ())


class _Piece(NamedTuple):
    """A solid with a name of its own and a placement (4, 4) on the body that carries it."""

    name: str
    carrier: str
    solid: Solid
    matrix: Array
    color: Color


class _Builder:
    """Collects nodes and parts while a scene is made."""

    def __init__(self, robot: Mechanism) -> None:
        self.robot = robot
        self.nodes: list[Node] = []
        self.parts: list[Part] = []
        self._index: dict[str, int] = {}
        self._taken: set[str] = set()

    def add(self, group: str, pieces: Iterable[_Piece], **how: bool) -> tuple[str, ...]:
        """Draw pieces on bodies, in a group that can be switched on and off; return their paths."""
        first = len(self.parts)
        for piece in pieces:
            path = f"{group}/{node_name(piece.carrier)}"
            if path not in self._index:
                self._index[path] = self._add_node(path, self.robot.frame_id(piece.carrier))
            self._draw(self._index[path], piece.name, piece.solid, piece.matrix, piece.color, **how)
        return tuple(part.path for part in self.parts[first:])

    def add_loop(self, loop: LoopJoint, size: float, *, in_front: bool) -> tuple[str, ...]:
        """Draw a symbol at frames A and B, and the rod between them if it is one."""
        first, symbol, path = len(self.parts), loop.pair.symbol, f"loops/{node_name(loop.name)}"
        at_a, at_b = ([_sized(part, size) for part in side] for side in (symbol.at_a, symbol.at_b))
        # Both frames have a part of the symbol: where the loop is open, they are apart.
        at_b = at_b or [(ring(0.75 * size, 0.14 * size), np.eye(4))]
        for side, frame, parts in (("A", loop.frame_a, at_a), ("B", loop.frame_b, at_b)):
            node = self._add_node(f"{path}/{side}", frame)
            for solid, matrix in parts:
                self._draw(node, "symbol", solid, matrix, LOOP, in_front=in_front)
        if symbol.stick:
            length = float(getattr(loop.pair, symbol.stick))
            node = self._add_node(f"{path}/rod", loop.frame_a, loop.frame_b)
            placed = _stick(np.zeros(3), np.array([0.0, 0.0, length]), 0.22 * size)
            if placed is not None:
                self._draw(node, "stick", *placed, LOOP)
        return tuple(part.path for part in self.parts[first:])

    def _add_node(self, path: str, frame: int, toward: int | None = None) -> int:
        self.nodes.append(Node(path, frame, toward))
        return len(self.nodes) - 1

    def _draw(
        self, node: int, name: str, solid: Solid, matrix: Array, color: Color, **how: bool
    ) -> None:
        """Add a part under a path of its own."""
        stem = f"{self.nodes[node].path}/{node_name(name)}"
        path, number = stem, 1
        while path in self._taken:
            number += 1
            path = f"{stem} {number}"
        self._taken.add(path)
        self.parts.append(Part(path, node, solid, matrix, color, **how))


def _shapes(robot: Mechanism, role: str | None = None) -> Iterator[_Piece]:
    """The shapes of one role in the robot's file; the visual ones by default, or all if none is."""
    files = MeshFiles()
    order = {body: index for index, body in enumerate((*robot.bodies, GROUND))}
    chosen = [part for part in robot.geometry if part.role == (role or "visual")]
    for geometry in chosen if chosen or role else robot.geometry:
        shape = geometry.shape
        if shape.kind != "mesh":
            solids = [make_solid(shape.kind, shape.size)]
        elif shape.path is not None:
            solids = files.solids(shape.path, shape.size)
        else:
            continue  # not found when the robot was loaded, which warned of it
        plain = _PALETTE[order[geometry.body] % len(_PALETTE)]
        matrix = np.array(geometry.placement.homogeneous)
        for solid in solids:
            color = geometry.color or solid.color or plain
            yield _Piece(geometry.name, geometry.body, solid, matrix, color)


def node_name(name: str) -> str:
    """A name as one step of a path, where ``/`` would separate two."""
    return name.replace("/", "\u2215")


# -- sticks and symbols ---------------------------------------------------------------------------


def _skeleton(robot: Mechanism, size: float) -> Iterator[_Piece]:
    """Sticks between the joints of each body, and a symbol at each tree joint that moves.

    Symbols are scaled by a size [m].
    """
    yield from _sticks(robot, size)
    for edge in robot.tree.edges:
        yield from _joint_symbol(edge.joint, size, _SYMBOLS[edge.joint.pair.symbol.color])


def _joint_symbol(joint: Joint, size: float, color: Color) -> Iterator[_Piece]:
    """What is drawn of a joint on its two bodies; nothing of one that is fixed or free."""
    ends = ((joint.parent, joint.frame_parent), (joint.child, joint.frame_child))
    if not (joint.pair.rows and joint.pair.dof):
        return
    symbol = joint.pair.symbol
    for side, (body, frame), solids in zip("AB", ends, (symbol.at_a, symbol.at_b), strict=True):
        parts = [_sized(solid, size) for solid in solids]
        for number, (solid, matrix) in enumerate(parts):
            name = f"{joint.name} {side}{number or ''}"
            yield _Piece(name, body, solid, frame.homogeneous @ matrix, color)


def _sized(part: SymbolSolid, size: float) -> tuple[Solid, Array]:
    """A part of a symbol at its size, and its placement in the frame of the joint."""
    solid = make_solid(part.kind, [size * measure for measure in part.size])
    return solid, _AROUND_X if part.along == "x" else np.eye(4)


def _sticks(robot: Mechanism, size: float) -> Iterator[_Piece]:
    """Sticks from the joint that carries a body, or from its middle, to its other joints."""
    for body, (carrier, points) in _anchors(robot).items():
        color = _GROUND_STICK if body == GROUND else _STICK
        radius = (0.12 if body == GROUND else 0.22) * size
        hub = carrier
        if hub is None:
            hub = np.mean(points, axis=0) if len(points) > 2 else points[0]
        for number, end in enumerate(points if len(points) else _tips(robot, body)):
            placed = _stick(hub, end, radius)
            if placed is not None:
                yield _Piece(f"stick {number}", body, *placed, color)


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


def _stick(start: Array, end: Array, radius: float) -> tuple[Solid, Array] | None:
    """Cylinder between two points and its placement, or None if they coincide."""
    along = np.asarray(end) - np.asarray(start)
    length = float(np.linalg.norm(along))
    if length < 1e-3 * radius:
        return None
    middle = np.asarray(start) + along / 2
    return cylinder(radius, length), pin.SE3(align_z(along), middle).homogeneous
