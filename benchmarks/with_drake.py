"""The robots in Drake, from a scene: its discrete solver, and CENIC where there are no loops.

Drake closes loops by `AddBallConstraint` between points, one for a ball joint or a planar loop and
two on the axis of a hinge, which only its discrete solver (SAP) takes: that one goes in fixed steps
of first order. CENIC, its integrator with error control, says that it does not support them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .scene import Part, Poses, Scene

Array = NDArray[np.float64]

LONGEST = 0.1
"""Longest step of CENIC, which is Drake's own default [s]."""


class Drake:
    """A scene in Drake.

    Args:
        scene: what to simulate.
        length: distance of the two points that hold a hinge [m].

    Raises:
        ModuleNotFoundError: Drake is not installed.
    """

    def __init__(self, scene: Scene, length: float) -> None:
        self._tree = import_module("pydrake.multibody.tree")
        self._math = import_module("pydrake.math")
        self._analysis = import_module("pydrake.systems.analysis")
        self._scene, self._length = scene, length

    def prepare(self, step: float | None, accuracy: float | None = None) -> None:
        """Build the model and choose how to integrate.

        Args:
            step: step of the discrete solver [s]; 0 for CENIC, None for that of Drake itself.
            accuracy: of CENIC.
        """
        builder = import_module("pydrake.systems.framework").DiagramBuilder()
        plants = import_module("pydrake.multibody.plant")
        if step is None:
            step = plants.MultibodyPlantConfig().time_step
        self._plant, _ = plants.AddMultibodyPlantSceneGraph(builder, step)  # CENIC asks for both
        self._plant.mutable_gravity_field().set_gravity_vector(self._scene.gravity)
        # A body for the ground: Drake 1.51 crashes where a constraint holds the world itself.
        self._ground = self._plant.AddRigidBody("ground", self._tree.SpatialInertia.Zero())
        self._plant.WeldFrames(self._plant.world_frame(), self._ground.body_frame())
        self._bodies: list[Any] = []
        self._joints: list[Any] = []
        for index, part in enumerate(self._scene.parts):
            self._body(index, part)
        self._load()
        for tie in self._scene.ties:
            for offset in tie.points(self._length):
                lift = np.array([0.0, 0.0, offset])
                ends = (tie.a, tie.frame_a.act(lift)), (tie.b, tie.frame_b.act(lift))
                (a, point_a), (b, point_b) = ends
                self._plant.AddBallConstraint(self._part(a), point_a, self._part(b), point_b)
        self._plant.Finalize()
        self._diagram = builder.Build()
        self._simulator = self._analysis.Simulator(self._diagram)
        if accuracy is not None:
            config = self._analysis.SimulatorConfig()
            config.integration_scheme, config.use_error_control = "cenic", True
            config.accuracy, config.max_step_size = accuracy, LONGEST
            self._analysis.ApplySimulatorConfig(config, self._simulator)
        self._context = self._plant.GetMyMutableContextFromRoot(
            self._simulator.get_mutable_context()
        )
        self._start()
        self._simulator.Initialize()

    def run(self, until: float) -> None:
        """From the start to the end, in one call."""
        self._simulator.AdvanceTo(until)

    def poses(self) -> Poses:
        """Where the parts are."""
        placed = [self._plant.EvalBodyPoseInWorld(self._context, body) for body in self._bodies]
        turns = [one.rotation().matrix() for one in placed]
        return np.array([one.translation() for one in placed]), np.array(turns)

    def energy(self) -> float:
        """Kinetic and potential energy [J]."""
        plant, context = self._plant, self._context
        return float(plant.CalcKineticEnergy(context) + plant.CalcPotentialEnergy(context))

    def velocities(self) -> Array:
        """Velocities of the centres of mass in the world [m/s], shape (n, 3)."""
        found = []
        for body, part in zip(self._bodies, self._scene.parts, strict=True):
            twist = self._plant.EvalBodySpatialVelocityInWorld(self._context, body)
            pose = self._plant.EvalBodyPoseInWorld(self._context, body)
            lever = pose.rotation().matrix() @ part.inertia.lever
            found.append(twist.translational() + np.cross(twist.rotational(), lever))
        return np.array(found)

    def _part(self, index: int) -> Any:
        return self._bodies[index] if index >= 0 else self._ground

    def _place(self, at: pin.SE3) -> Any:
        turn = self._math.RotationMatrix(at.rotation)
        return self._math.RigidTransform(turn, at.translation)

    def _body(self, index: int, part: Part) -> None:
        """A body and the joint that carries it."""
        tree, inertia = self._tree, part.inertia
        I = inertia.inertia  # noqa: E741
        about_centre = tree.RotationalInertia(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        mass = tree.SpatialInertia.MakeFromCentralInertia(inertia.mass, inertia.lever, about_centre)
        body = self._plant.AddRigidBody(f"body{index}", mass)
        self._bodies.append(body)
        kind, axis = part.motions[0]
        if kind == "free":
            self._joints.append(None)
            return
        # The frames of a universal joint have their x and y axes along those of the joint.
        turn = np.eye(3)
        if len(part.motions) == 2:
            two = np.array([axis, part.motions[1][1]], dtype=float)
            turn = np.column_stack([*two, np.cross(*two)])
        name, middle = f"joint{index}", pin.SE3(turn, np.zeros(3))
        owner, placed = self._part(part.parent), self._place(part.placement * middle)
        near = self._plant.AddFrame(tree.FixedOffsetFrame(f"near{index}", owner, placed))
        far = self._plant.AddFrame(tree.FixedOffsetFrame(f"far{index}", body, self._place(middle)))
        if kind == "ball":
            joint = tree.BallRpyJoint(name, near, far)
        elif len(part.motions) == 2:
            joint = tree.UniversalJoint(name, near, far)
        else:
            made = tree.RevoluteJoint if kind == "hinge" else tree.PrismaticJoint
            joint = made(name, near, far, np.array(axis, dtype=float))
        self._joints.append(self._plant.AddJoint(joint))

    def _load(self) -> None:
        """Springs and motors."""
        for line in self._scene.lines:
            self._plant.AddForceElement(
                self._tree.LinearSpringDamper(
                    self._part(line.a), line.point_a, self._part(line.b), line.point_b,
                    line.length, line.stiffness, 0.0,
                )
            )  # fmt: skip
        for index, joint in enumerate(self._joints):
            if self._scene.torques.any() and self._scene.torques[index]:
                self._plant.AddJointActuator(f"motor{index}", joint)

    def _start(self) -> None:
        """Set the start."""
        q, v, scene = self._scene.q, self._scene.v, self._scene
        i = k = 0
        for body, joint, part in zip(self._bodies, self._joints, scene.parts, strict=True):
            kind, count = part.motions[0][0], len(part.motions)
            if kind == "free":
                turn = part.pose.rotation
                twist = import_module("pydrake.multibody.math").SpatialVelocity(
                    turn @ part.twist.angular, turn @ part.twist.linear
                )
                self._plant.SetFreeBodyPose(self._context, body, self._place(part.pose))
                self._plant.SetFreeBodySpatialVelocity(
                    context=self._context, body=body, V_JpJc=twist
                )
                i, k = i + 7, k + 6
            elif kind == "ball":
                turn = pin.Quaternion(q[i : i + 4]).toRotationMatrix()
                angles = self._math.RollPitchYaw(self._math.RotationMatrix(turn)).vector()
                joint.set_angles(self._context, angles)
                joint.set_angular_velocity(self._context, turn @ v[k : k + 3])
                i, k = i + 4, k + 3
            else:
                if count == 2:
                    joint.set_angles(self._context, q[i : i + 2])
                    joint.set_angular_rates(self._context, v[k : k + 2])
                elif kind == "hinge":
                    joint.set_angle(self._context, q[i])
                    joint.set_angular_rate(self._context, v[k])
                else:
                    joint.set_translation(self._context, q[i])
                    joint.set_translation_rate(self._context, v[k])
                i, k = i + count, k + count
        if self._plant.num_actuators():
            torques = [one for one in scene.torques if one]
            port = self._plant.get_actuation_input_port()
            port.FixValue(self._context, np.array(torques))
