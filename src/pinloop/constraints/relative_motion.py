"""What moves relative to what: a joint's frames along its axes, points of bodies, their distance.

A joint moves by its coordinates in the tree and by its two frames where it closes a loop; what acts
on joints by name is written once for both, and so for robots in absolute coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from ..boundary.arguments import flat_numbers
from ..boundary.marks import Array
from ..errors import BadValue
from ..linalg.dense import slopes
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..model.tree import LoopJoint, coordinate_names, tree_coordinates
from ..model.workspace import TreeKinematics
from ..tolerances import COINCIDENT
from .row_slopes import PairRates, RowSlopes, constant_rows, frame_slopes

Place = str | tuple[str, ArrayLike]
"""A body or frame, for its origin, or that and a point in its axes [m], shape (3,)."""

Placed: TypeAlias = pin.Data | TreeKinematics
"""Frame placements and joint Jacobians at a configuration."""

_ELSEWHERE = pin.exp6(np.array([0.3, -0.2, 0.5, 0.4, 0.7, -0.6]))
"""A placement at which axes that turn are others than at the origin."""
_TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")


class JointMotion:
    """Motion of frame B of a joint relative to its frame A, along the axes that the joint leaves.

    Args:
        robot: the mechanism.
        joint: name of a joint of the tree, or of one that closes a loop.
        whole: whether a joint that closes a loop and leaves no axes of its own, such as a rod, may
            be asked for: along all six of frame B, that is.

    Attributes:
        joint: name of the joint.
        closes_loop: whether it closes a loop.
        axes: names of the axes ("vx", "wz", ...).
        is_translation: per axis, whether it is a linear one, shape (k,).
    """

    def __init__(self, robot: Mechanism, joint: str, *, whole: bool = False) -> None:
        self._model, self.joint = robot.model, joint
        self._loop = next((loop for loop in robot.loops if loop.name == joint), None)
        self.closes_loop = self._loop is not None
        if self._loop is None:
            at = robot.coordinates(joint)
            self._J = np.zeros((at.nv, robot.nv))
            self._J[:, at.v] = np.eye(at.nv)
            self._coordinates = tree_coordinates(robot.model, joint)
            self.axes = coordinate_names(robot.tree, joint)
            self.is_translation: NDArray[np.bool_] = robot.is_translation[at.v]
        else:
            pair = self._loop.pair
            rates, elsewhere = pair.rates(pin.SE3.Identity()), pair.rates(_ELSEWHERE)
            if rates is None and whole:
                rates = elsewhere = np.eye(6)
            if rates is None or elsewhere is None:
                raise BadValue(
                    f"joint '{joint}' closes a loop of robot '{robot.name}', and a {pair.name} "
                    "pair has no axes of its own; lock it as a whole, or act on its bodies by "
                    "pl.forces.Spring, Damper or PointForce"
                )
            self._pair = pair
            self._frames, sign = _described_frames(robot, self._loop)
            self._sides = sign * loop_sides(robot, self._loop)
            self.axes = tuple(_TWIST[component] for component in np.abs(rates).argmax(axis=1))
            self.is_translation = np.asarray(rates[:, :3].any(axis=1))
            self._constant = rates if np.array_equal(rates, elsewhere) else None

    @property
    def loop_axes(self) -> tuple[tuple[int, int], Array] | None:
        """Frames A and B, and what each axis takes of the twist of B, in B, shape (k, 6).

        None of joints of the tree, and where axes turn.
        """
        if self._loop is None or self._constant is None:
            return None
        return self._frames, self._constant

    @property
    def is_screw(self) -> bool:
        """Whether it closes a loop and its shift counts its turns."""
        return self.closes_loop and bool(self._pair.advance)

    def axis(self, name: str, who: str, *, measured: bool = False) -> int:
        """Place of an axis among those of the joint.

        Args:
            name: its name; "" if there is only one.
            who: what needs it, for messages.
            measured: whether it must have a coordinate.
        """
        axes = self.axes
        usable = [x for k, x in enumerate(axes) if not measured or self._has_coordinate(k)]
        wanted = name if name or len(axes) != 1 else axes[0]
        if wanted in usable:
            return axes.index(wanted)
        kind = "an axis with a coordinate" if measured else "an axis"
        way_out = f"give axis='{usable[-1]}'" if usable else "act by pl.forces.TorqueFunction"
        has = ", ".join(usable) or "none"
        raise BadValue(f"{who} needs {kind} of joint '{self.joint}', which has {has}; {way_out}")

    def _has_coordinate(self, place: int) -> bool:
        if self._loop is None:
            return self._coordinates[place] is not None
        return not np.isnan(self._pair.coordinates(pin.SE3.Identity())[place])

    def position(self, q: Array, data: Placed, near: float = 0.0, place: int = 0) -> float:
        """Coordinate of an axis [rad, m].

        Args:
            q: configuration, shape (nq,).
            data: frame placements.
            near: an angle that is not counted over whole turns is the one nearest to this.
            place: place of the axis.
        """
        if self._loop is None:
            at = self._coordinates[place]
            assert at is not None
            if isinstance(at, int):
                return float(q[at])
            angle = math.atan2(q[at[1]], q[at[0]])
        else:
            angle = float(self._pair.coordinates(self._to_b(data).inverse())[place])
            if self.is_translation[place] or self._pair.advance:
                return angle
        return near + math.remainder(angle - near, 2.0 * math.pi)

    def jacobian(self, data: Placed) -> Array:
        """``J``, shape (k, nv): the axes move at ``J v``, and torques on them are ``J' tau``."""
        if self._loop is None:
            return self._J
        to_b = data.oMf[self._frames[1]].toActionMatrixInverse()
        return np.asarray(self._rates(data) @ to_b @ world_jacobian(data) * self._sides)

    def speeds(self, data: pin.Data, v: Array) -> Array:
        """``J v`` of the velocities that ``data`` holds, shape (k,)."""
        if self._loop is None:
            return self._J @ v
        a, b = (pin.getFrameVelocity(self._model, data, k, pin.LOCAL) for k in self._frames)
        return np.asarray(self._rates(data) @ (b - self._to_b(data).act(a)).vector)

    def drift(self, data: pin.Data) -> Array:
        """Accelerations of the axes without joint accelerations, ``dJ/dt v``, shape (k,)."""
        if self._loop is None:
            return np.zeros(len(self._J))
        X = self._to_b(data)
        (V_a, V_b), (A_a, A_b) = (
            [get(self._model, data, frame, pin.LOCAL) for frame in self._frames]
            for get in (pin.getFrameVelocity, pin.getFrameAcceleration)
        )
        carried = X.act(V_a)
        relative = A_b - X.act(A_a) + (V_b - carried).cross(carried)
        drift = np.asarray(self._rates(data) @ relative.vector)
        if self._constant is None:
            drift += self._pair.rates_bias(X.inverse(), (V_b - carried).vector)
        return drift

    def slopes(
        self, tree: MovingTree, multipliers: Array, axes: Sequence[int] | None = None
    ) -> RowSlopes:
        """Derivatives of the rates of some or all axes, as rows."""
        places = [*range(len(self.axes))] if axes is None else [*axes]
        if self._loop is None:
            J = np.zeros((len(self._J), len(tree.twists)))
            J[:, tree.chain.columns] = self._J
            return constant_rows(J[places])
        if self._constant is None:
            turning = PairRates(self._pair), np.eye(len(self.axes))[places]
            return frame_slopes(tree, [self._frames], [turning], [multipliers])
        return frame_slopes(tree, [self._frames], [self._constant[places]], [multipliers])

    def position_slope(self, tree: MovingTree, place: int) -> Array:
        """Derivatives of `position`: the rates, but where a loop is open, shape (n,)."""
        if self._loop is None:
            return np.asarray(np.eye(len(tree.twists))[tree.chain.columns[self._J[place].argmax()]])
        relative, turn = tree.relative([self._frames]), 2.0 * math.pi
        T = relative.T[0]
        here = self._pair.coordinates(T)[place]

        def change(twist: Array) -> Array:
            further = np.atleast_1d(self._pair.coordinates(T * pin.exp6(twist))[place] - here)
            whole = self.is_translation[place] or bool(self._pair.advance)
            return further if whole else further - turn * np.round(further / turn)

        return np.asarray(relative.motion[0] @ slopes(change, 6)[:, 0])

    def _rates(self, data: Placed) -> Array:
        """What takes the twist of B relative to A to the rates of the axes, shape (k, 6)."""
        if self._constant is not None:
            return self._constant
        rates = self._pair.rates(self._to_b(data).inverse())
        assert rates is not None
        return rates

    def _to_b(self, data: Placed) -> pin.SE3:
        """Placement of frame A in frame B."""
        a, b = self._frames
        return data.oMf[b].actInv(data.oMf[a])


def _described_frames(robot: Mechanism, loop: LoopJoint) -> tuple[tuple[int, int], float]:
    """Frames A and B of a loop joint's description; -1 where regularization turned them over."""
    declared = next(joint for joint in robot.description.joints if joint.name == loop.name)
    if (declared.parent, declared.child) == (loop.body_a, loop.body_b):
        return (loop.frame_a, loop.frame_b), 1.0
    return (loop.frame_b, loop.frame_a), -1.0


def loop_sides(robot: Mechanism, loop: LoopJoint) -> Array:
    """Per coordinate 1 if it moves B alone, -1 if it moves A alone, else 0, shape (nv,)."""
    sides = np.zeros(robot.nv)
    for chain, sign in ((loop.loop.chain_a, -1.0), (loop.loop.chain_b, 1.0)):
        for joint in filter(robot.model.existJointName, chain):  # others are fixed
            sides[robot.coordinates(joint).v] = sign
    return sides


def world_jacobian(data: Placed) -> Array:
    """Twists of all coordinates in world axes at the world's origin, shape (6, nv)."""
    jacobian: Array = data.J
    return jacobian.reshape(6, -1) if jacobian.ndim == 1 else jacobian  # (6,) for nv = 1


class BodyPoint:
    """A point of a robot that a force acts on."""

    def __init__(self, robot: Mechanism, place: Place) -> None:
        self._model = robot.model
        self._point = np.zeros(3)
        if isinstance(place, str):
            self.name = place
        else:
            if not (isinstance(place, Sequence) and len(place) == 2 and isinstance(place[0], str)):
                raise BadValue(
                    f"a force acts on {place!r}; name a body or frame, or give (name, point)"
                )
            point = flat_numbers(place[1], f"the point on '{place[0]}'", 3)
            self.name = place[0]
            if point.any():
                self.name += f" at ({', '.join(f'{x:g}' for x in point)})"
                self._point = point
        self._frame = robot.frame_id(place if isinstance(place, str) else place[0])

    def position(self, data: pin.Data) -> Array:
        """Where it is in the world [m], shape (3,)."""
        placement = data.oMf[self._frame]
        return np.array(placement * self._point)

    def jacobian(self, data: pin.Data) -> Array:
        """Of its velocity in the world's axes, shape (3, nv)."""
        J = pin.getFrameJacobian(self._model, data, self._frame, pin.LOCAL_WORLD_ALIGNED)
        J = J.reshape(6, -1)
        lever = data.oMf[self._frame].rotation @ self._point
        return np.asarray(J[:3] - pin.skew(lever) @ J[3:])

    def motion(self, tree: MovingTree) -> tuple[Array, Array]:
        """Position and Jacobian in a tree, shapes (3,) and (3, n)."""
        return tree.point(self._frame, self._point)

    def force_slope(self, tree: MovingTree, force: Array, *, turns: bool = False) -> Array:
        """Derivatives of the generalised forces of a force on the point, ``[j, i]`` of j by i.

        Args:
            tree: the robot at a state.
            force: in the axes of the world [N], shape (3,).
            turns: whether the force turns with the frame.
        """
        slope = tree.point_force_slope(self._frame, self._point, force)
        if not turns:
            return slope
        angular = tree.moves(self._frame)[:, None] * tree.twists[:, 3:]
        return np.asarray(slope + self.motion(tree)[1].T @ np.cross(angular, force).T)

    def turned(self, force: Array, data: pin.Data) -> Array:
        """A force in the axes of the frame, in those of the world."""
        return np.asarray(data.oMf[self._frame].rotation @ force)


class PointDistance:
    """The distance of two points [m], and its gradient, shape (nv,)."""

    needs_kinematics = True

    def __init__(self, robot: Mechanism, a: Place, b: Place) -> None:
        self._a, self._b = BodyPoint(robot, a), BodyPoint(robot, b)

    def __str__(self) -> str:
        return f"{self._a.name}-{self._b.name}"

    def __call__(self, q: Array, data: pin.Data) -> tuple[float, Array]:
        """Distance and its gradient."""
        between = self._b.position(data) - self._a.position(data)
        distance = float(np.linalg.norm(between))
        direction = between / distance if distance > COINCIDENT else np.zeros(3)
        return distance, np.asarray(direction @ (self._b.jacobian(data) - self._a.jacobian(data)))

    def slope(self, tree: MovingTree) -> tuple[Array, Array, Array]:
        """Slope of the distance, gradient ``J' u`` and its slope in a tree.

        That is ``J' (1 - u u') J / d``, and what Jacobians turn.
        """
        (at_a, J_a), (at_b, J_b) = self._a.motion(tree), self._b.motion(tree)
        between, J = at_b - at_a, J_b - J_a
        distance = float(np.linalg.norm(between))
        if distance <= COINCIDENT:
            raise BadValue(f"the distance {self} is zero, where it has no derivative")
        u = between / distance
        bend = J.T @ (J - np.outer(u, u @ J)) / distance
        turning = self._b.force_slope(tree, u) - self._a.force_slope(tree, u)
        return u @ J, u @ J, np.asarray(bend + turning)
