"""The robots in Exudyn: rigid bodies with Euler parameters, joints as constraints, from a scene.

Exudyn wants independent constraints, so that a loop joint gets only as many rows as are
independent, and of those that are the ones that stay best so. Nodes are at the centres of mass.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .scene import Part, Poses, Scene, Tie

Array = NDArray[np.float64]

REVOLUTE, PRISMATIC, BALL = [1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]
UNIVERSAL = [1, 1, 1, 1, 0, 0]
"""One rotation is held: y of the first marker stays normal to z of the second one."""


class Exudyn:
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
        self.system.Assemble()
        self._settings: Any = None
        self._solver: Any = None

    def prepare(self, solver: str, step: float, until: float) -> None:
        """Choose how to integrate.

        Args:
            solver: "GeneralizedAlpha" (index 3) or "TrapezoidalIndex2".
            step: step [s].
            until: end [s].
        """
        settings = self._module.SimulationSettings()
        integration = settings.timeIntegration
        integration.numberOfSteps = max(1, round(until / step))
        integration.endTime = until
        integration.verboseMode = 0
        integration.minimumStepSize = (
            step / 16
        )  # where Newton's method fails, it tries shorter ones
        integration.newton.relativeTolerance = 1e-10
        integration.newton.absoluteTolerance = 1e-12
        integration.newton.useModifiedNewton = True
        integration.generalizedAlpha.computeInitialAccelerations = True
        settings.solution.file.write = False
        settings.linearSolver.solverType = self._module.LinearSolverType.EXUdense
        self._settings = settings
        self._solver = getattr(self._module.DynamicSolverType, solver)

    def run(self) -> None:
        """From the start to the end, in one call."""
        self.system.SolveDynamic(self._settings, solverType=self._solver, showHints=False)

    def poses(self) -> Poses:
        """Where the parts are."""
        kinds = self._module.OutputVariableType
        places, turns = [], []
        for node, part in zip(self._nodes, self._scene.parts, strict=True):
            turn = np.array(self.system.GetNodeOutput(node, kinds.RotationMatrix)).reshape(3, 3)
            centre = np.array(self.system.GetNodeOutput(node, kinds.Position))
            places.append(centre - turn @ part.inertia.lever)
            turns.append(turn)
        return np.array(places), np.array(turns)

    def accelerations(self) -> Array:
        """Accelerations of the centres of mass that the last run ended with [m/s^2], (n, 3)."""
        kind = self._module.OutputVariableType.Acceleration
        return np.array([self.system.GetNodeOutput(node, kind) for node in self._nodes])

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
        weight = system.AddMarker(item.MarkerBodyMass(bodyNumber=body))
        system.AddLoad(item.LoadMassProportional(markerNumber=weight, loadVector=self._gravity()))
        self._nodes.append(node)
        return body

    def _gravity(self) -> list[float]:
        return [float(one) for one in self._scene.gravity]

    def _marker(self, index: int, point: Array, turn: Array) -> Any:
        """A marker at a point of a part, turned, given in the frame of the part."""
        lever = self._scene.parts[index].inertia.lever if index >= 0 else np.zeros(3)
        body = self._bodies[index] if index >= 0 else self._ground
        return self.system.AddMarker(
            self._item.MarkerBodyRigid(
                bodyNumber=body, localHT=self._module.HT(rotation=turn, translation=point - lever)
            )
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


def _scalar_first(quaternion: Any) -> list[float]:
    return [quaternion.w, quaternion.x, quaternion.y, quaternion.z]


def _frame(axis: tuple[float, ...], number: int) -> Array:
    """A rotation whose column of that number is the axis."""
    one = np.array(axis) / np.linalg.norm(axis)
    other = np.eye(3)[int(np.argmin(np.abs(one)))]
    two = np.cross(one, other) / np.linalg.norm(np.cross(one, other))
    columns = [one, two, np.cross(one, two)]
    return np.roll(np.column_stack(columns), number, axis=1)
