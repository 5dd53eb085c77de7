"""The robots in Exudyn: bodies in space, or in a plane, joined by constraints.

Exudyn wants independent constraints, so that a loop joint gets only as many rows as are
independent, and of those that are the ones that stay best so. Nodes are at the centres of mass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .scene import Part, Poses, Scene, Tie

Array = NDArray[np.float64]

PARALLEL = 1e-9
"""Sine of the angle between axes that count as parallel."""
REVOLUTE, PRISMATIC, BALL = [1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]
UNIVERSAL = [1, 1, 1, 1, 0, 0]
"""One rotation is held: y of the first marker stays normal to z of the second one."""


class _Exudyn(ABC):
    """A scene in Exudyn.

    Args:
        scene: what to simulate.

    Raises:
        ModuleNotFoundError: Exudyn is not installed.
    """

    def __init__(self, scene: Scene) -> None:
        self._module = import_module("exudyn")
        self._item = import_module("exudyn.itemInterface")
        self._module.config.printToConsole = False  # a run that fails says so by an exception
        self._scene = scene
        self._container = self._module.SystemContainer()
        self.system = self._container.AddSystem()
        self._ground = self.system.AddObject(self._item.ObjectGround())
        self._nodes: list[Any] = []
        self._bodies = [self._body(part) for part in scene.parts]
        for index, part in enumerate(scene.parts):
            self._joint(index, part)
        for tie in scene.ties:
            self._tie(tie)
        self._load()
        self.system.Assemble()
        self._settings: Any = None
        self._solver: Any = None

    @abstractmethod
    def _body(self, part: Part) -> Any:
        """A body, its node at the centre of mass, with its weight."""

    @abstractmethod
    def _joint(self, index: int, part: Part) -> None:
        """The joint that carries a part."""

    @abstractmethod
    def _tie(self, tie: Tie) -> None:
        """A loop joint."""

    @abstractmethod
    def _local(self, index: int, point: Array) -> Array:
        """A point of a part in the frame of its body; of the ground, in the world."""

    @abstractmethod
    def poses(self) -> Poses:
        """Where the parts are."""

    @abstractmethod
    def accelerations(self) -> Array:
        """Accelerations of the centres of mass that the last run ended with [m/s^2], (n, 3)."""

    def energy(self) -> float:
        """Kinetic energy and that of gravity [J]."""
        total = 0.0
        for node, part in zip(self._nodes, self._scene.parts, strict=True):
            speed, spin = self._output(node, "Velocity"), self._output(node, "AngularVelocity")
            turn = self._turning(node, part)
            I = turn @ part.inertia.inertia @ turn.T  # noqa: E741
            height = self._output(node, "Position") @ self._gravity()
            total += part.inertia.mass * (0.5 * speed @ speed - height) + 0.5 * spin @ I @ spin
        return float(total)

    def _turning(self, node: Any, part: Part) -> Array:
        """Rotation of a part in the axes in which nodes are."""
        return self._output(node, "RotationMatrix").reshape(3, 3)

    def _gravity(self) -> Array:
        """Gravity in these axes [m/s^2]."""
        return self._scene.gravity

    def _load(self) -> None:
        """Springs and torques."""
        item, system = self._item, self.system
        for line in self._scene.lines:
            ends = [
                system.AddMarker(
                    item.MarkerBodyPosition(
                        bodyNumber=self._number(k), localPosition=self._local(k, point)
                    )
                )
                for k, point in ((line.a, line.point_a), (line.b, line.point_b))
            ]
            system.AddObject(
                item.ObjectConnectorSpringDamper(
                    markerNumbers=ends, stiffness=line.stiffness, referenceLength=line.length
                )
            )
        for index, part in enumerate(self._scene.parts):
            if self._scene.torques.any() and (torque := float(self._scene.torques[index])):
                axis = self._axis(part)
                for k, sign in ((index, 1.0), (part.parent, -1.0)):
                    marker = system.AddMarker(item.MarkerBodyRigid(bodyNumber=self._number(k)))
                    load = item.LoadTorqueVector(
                        markerNumber=marker, loadVector=[*map(float, sign * torque * axis)]
                    )
                    system.AddLoad(load)

    def _number(self, index: int) -> Any:
        return self._bodies[index] if index >= 0 else self._ground

    def _axis(self, part: Part) -> Array:
        """Axis of a hinge in the world, as long as the robot moves in a plane."""
        return np.asarray(part.pose.rotation @ np.array(part.motions[0][1]))

    def prepare(self, solver: str, step: float | None, until: float) -> None:
        """Choose how to integrate.

        Args:
            solver: "GeneralizedAlpha" (index 3) or "TrapezoidalIndex2".
            step: step [s]; None for Exudyn's own settings.
            until: end [s].
        """
        settings = self._module.SimulationSettings()
        settings.solution.file.write = False
        self._settings = settings
        self._solver = getattr(self._module.DynamicSolverType, solver)
        integration = settings.timeIntegration
        integration.endTime = until
        if step is None:
            return
        integration.numberOfSteps = max(1, round(until / step))
        integration.verboseMode = 0
        integration.minimumStepSize = (
            step / 16
        )  # where Newton's method fails, it tries shorter ones
        integration.newton.relativeTolerance = 1e-10
        integration.newton.absoluteTolerance = 1e-12
        integration.newton.useModifiedNewton = True
        integration.generalizedAlpha.computeInitialAccelerations = True
        settings.linearSolver.solverType = self._module.LinearSolverType.EXUdense

    def run(self) -> None:
        """From the start to the end, in one call."""
        self.system.SolveDynamic(self._settings, solverType=self._solver, showHints=False)

    def _weigh(self, body: Any, node: Any, gravity: Array) -> Any:
        """Keep a body and its node, and let gravity act."""
        weight = self.system.AddMarker(self._item.MarkerBodyMass(bodyNumber=body))
        load = self._item.LoadMassProportional(
            markerNumber=weight, loadVector=[*map(float, gravity)]
        )
        self.system.AddLoad(load)
        self._nodes.append(node)
        return body

    def _output(self, node: Any, kind: str) -> Array:
        found = self.system.GetNodeOutput(node, getattr(self._module.OutputVariableType, kind))
        return np.array(found)


class SpatialExudyn(_Exudyn):
    """A scene of bodies in space."""

    def poses(self) -> Poses:
        """Where the parts are."""
        places, turns = [], []
        for node, part in zip(self._nodes, self._scene.parts, strict=True):
            turn = self._output(node, "RotationMatrix").reshape(3, 3)
            centre = self._output(node, "Position")
            places.append(centre - turn @ part.inertia.lever)
            turns.append(turn)
        return np.array(places), np.array(turns)

    def accelerations(self) -> Array:
        """Accelerations of the centres of mass that the last run ended with [m/s^2], (n, 3)."""
        return np.array([self._output(node, "Acceleration") for node in self._nodes])

    def _body(self, part: Part) -> Any:
        """A rigid body, its node at the centre of mass, with its weight."""
        item, system, inertia = self._item, self.system, part.inertia
        centre = part.pose.act(inertia.lever)
        turned = pin.Quaternion(part.pose.rotation)
        spin = part.pose.rotation @ part.twist.angular
        speed = part.pose.rotation @ (
            part.twist.linear + np.cross(part.twist.angular, inertia.lever)
        )
        rate = pin.Quaternion(0.0, *(0.5 * spin)) * turned
        node = system.AddNode(
            item.NodeRigidBodyEP(
                referenceCoordinates=[*centre, *_scalar_first(turned)],
                initialVelocities=[*speed, *_scalar_first(rate)],
            )
        )
        I = inertia.inertia  # noqa: E741
        body = system.AddObject(
            item.ObjectRigidBody(
                "", float(inertia.mass),
                [I[0, 0], I[1, 1], I[2, 2], I[1, 2], I[0, 2], I[0, 1]], nodeNumber=node,
            )
        )  # fmt: skip
        return self._weigh(body, node, self._scene.gravity)

    def _local(self, index: int, point: Array) -> Array:
        """See `_Exudyn`."""
        return point - self._scene.parts[index].inertia.lever if index >= 0 else point

    def _marker(self, index: int, point: Array, turn: Array) -> Any:
        """A marker at a point of a part, turned, given in the frame of the part."""
        at = self._module.HT(rotation=turn, translation=self._local(index, point))
        return self.system.AddMarker(
            self._item.MarkerBodyRigid(bodyNumber=self._number(index), localHT=at)
        )

    def _joint(self, index: int, part: Part) -> None:
        """The joint that carries a part."""
        kind, axis = part.motions[0]
        if kind == "free":
            return
        place, near, far = part.placement, np.eye(3), np.eye(3)
        if len(part.motions) == 2:
            held, near, far = UNIVERSAL, _frame(axis, 1), _frame(part.motions[1][1], 2)
        elif kind == "ball":
            held = BALL
        else:
            held = REVOLUTE if kind == "hinge" else PRISMATIC
            near = far = _frame(axis, 2)
        start = self._marker(part.parent, place.translation, place.rotation @ near)
        self._constrain(start, self._marker(index, np.zeros(3), far), held)

    def _tie(self, tie: Tie) -> None:
        """A loop joint."""
        held = BALL if tie.pair == "spherical" else [int(one) for one in tie.independent]
        start = self._marker(tie.a, tie.frame_a.translation, tie.frame_a.rotation)
        end = self._marker(tie.b, tie.frame_b.translation, tie.frame_b.rotation)
        self._constrain(start, end, held)

    def _constrain(self, start: Any, end: Any, held: list[int]) -> None:
        self.system.AddObject(
            self._item.GenericJoint(markerNumbers=[start, end], constrainedAxes=held)
        )


class PlanarExudyn(_Exudyn):
    """A scene whose hinges are all parallel: bodies with three coordinates each."""

    def __init__(self, scene: Scene) -> None:
        axis = scene.parts[0].pose.rotation @ np.array(scene.parts[0].motions[0][1])
        self._turn = _frame(tuple(axis), 2)
        super().__init__(scene)

    def _flat(self, vector: Array) -> Array:
        """A vector of the world in the plane, shape (3,) with its height zero."""
        return np.asarray((self._turn.T @ vector) * (1.0, 1.0, 0.0))

    def poses(self) -> Poses:
        """Where the parts are."""
        places, turns = [], []
        for node, part in zip(self._nodes, self._scene.parts, strict=True):
            x, y, _ = self._output(node, "Position")
            angle = self._output(node, "Coordinates")[2]  # coordinates count from the start
            height = (self._turn.T @ part.pose.act(part.inertia.lever))[2]
            turn = self._turn @ pin.utils.rotate("z", angle) @ self._turn.T @ part.pose.rotation
            places.append(self._turn @ (x, y, height) - turn @ part.inertia.lever)
            turns.append(turn)
        return np.array(places), np.array(turns)

    def accelerations(self) -> Array:
        """Accelerations of the centres of mass that the last run ended with [m/s^2], (n, 3)."""
        return np.array([self._turn @ self._output(node, "Acceleration") for node in self._nodes])

    def _body(self, part: Part) -> Any:
        """See `_Exudyn`."""
        inertia, rotation = part.inertia, part.pose.rotation
        spin = rotation @ part.twist.angular
        speed = rotation @ part.twist.linear + np.cross(spin, rotation @ inertia.lever)
        normal = rotation.T @ self._turn[:, 2]
        node = self.system.AddNode(
            self._item.NodeRigidBody2D(
                referenceCoordinates=[*self._flat(part.pose.act(inertia.lever))[:2], 0.0],
                initialVelocities=[*self._flat(speed)[:2], float(self._turn[:, 2] @ spin)],
            )
        )
        body = self.system.AddObject(
            self._item.ObjectRigidBody2D(
                mass=float(inertia.mass),
                inertia=float(normal @ inertia.inertia @ normal),
                nodeNumber=node,
            )
        )
        return self._weigh(body, node, self._flat(self._scene.gravity))

    def _turning(self, node: Any, part: Part) -> Array:
        """See `_Exudyn`: in a plane only the moment about its normal counts, at any angle."""
        return np.asarray(self._turn.T @ part.pose.rotation)

    def _gravity(self) -> Array:
        """See `_Exudyn`."""
        return self._flat(self._scene.gravity)

    def _local(self, index: int, point: Array) -> Array:
        """See `_Exudyn`."""
        if index < 0:
            return self._flat(point)
        part = self._scene.parts[index]
        return self._flat(part.pose.rotation @ (point - part.inertia.lever))

    def _axis(self, part: Part) -> Array:
        """See `_Exudyn`."""
        return np.asarray(self._turn.T @ super()._axis(part))

    def _joint(self, index: int, part: Part) -> None:
        """See `_Exudyn`."""
        self._pin(part.parent, part.placement.translation, index, np.zeros(3))

    def _tie(self, tie: Tie) -> None:
        """See `_Exudyn`."""
        self._pin(tie.a, tie.frame_a.translation, tie.b, tie.frame_b.translation)

    def _pin(self, a: int, point_a: Array, b: int, point_b: Array) -> None:
        """A hinge between two parts."""
        ends = [
            self.system.AddMarker(
                self._item.MarkerBodyPosition(
                    bodyNumber=self._number(k), localPosition=self._local(k, point)
                )
            )
            for k, point in ((a, point_a), (b, point_b))
        ]
        self.system.AddObject(self._item.ObjectJointRevolute2D(markerNumbers=ends))


def in_exudyn(scene: Scene) -> _Exudyn:
    """A scene in Exudyn, in a plane where it moves in one."""
    motions = [part.motions for part in scene.parts]
    if any(len(one) > 1 or one[0][0] != "hinge" for one in motions):
        return SpatialExudyn(scene)
    axes = np.array([part.pose.rotation @ part.motions[0][1] for part in scene.parts])
    flat = np.abs(np.cross(axes[0], axes)).max() < PARALLEL
    planar = flat and not any(any(tie.independent[3:]) for tie in scene.ties)
    return PlanarExudyn(scene) if planar else SpatialExudyn(scene)


def _scalar_first(quaternion: Any) -> list[float]:
    return [quaternion.w, quaternion.x, quaternion.y, quaternion.z]


def _frame(axis: tuple[float, ...], number: int) -> Array:
    """A rotation whose column of that number is the axis."""
    one = np.array(axis) / np.linalg.norm(axis)
    other = np.eye(3)[int(np.argmin(np.abs(one)))]
    two = np.cross(one, other) / np.linalg.norm(np.cross(one, other))
    columns = [one, two, np.cross(one, two)]
    return np.roll(np.column_stack(columns), number, axis=1)
