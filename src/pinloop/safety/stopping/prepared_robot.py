"""The robot that stops, with payload, mounting and rotors, ready for any number of stops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...boundary.arguments import checked, public, require_kind
from ...boundary.marks import Array, As, Name, NotNegative, Vector3
from ...dynamics import EquationsOfMotion
from ...dynamics.equations import robot_equations
from ...errors import BadValue
from ...model.description import Joint, constant
from ...model.mechanism import Mechanism, build
from ...model.workspace import remembered
from ...regularization.sampled_redundancy import with_all_rows
from ...simulation.limits import JointEnd, joint_ends
from ...simulation.modes import ModalSystem
from ..brakes.brakes import Brakes
from .drivetrain import Drivetrain


@public
@checked
@dataclass(frozen=True, eq=False)
class Payload:
    """What a robot carries.

    Args:
        mass: its mass [kg]; that of the space in a study that varies it.
        com: centre of mass in ``frame`` [m], shape (3,).
        inertia: about the centre of mass, axes of ``frame`` [kg m^2], shape (3, 3); a point mass
            by default.
        frame: body or frame that carries it; the tool of the robot by default.
    """

    mass: NotNegative = 0.0
    com: Annotated[ArrayLike, As(Vector3)] = (0.0, 0.0, 0.0)
    inertia: Annotated[ArrayLike | None, As(tuple[Vector3, Vector3, Vector3] | None)] = None
    frame: Name | None = None


def tool_of(robot: Mechanism) -> str:
    """The frame that is taken for the tool: one that is called so, or the farthest one out."""
    if robot.description.tool is not None:
        return robot.description.tool
    own = {*robot.bodies, *(frame.name for frame in robot.description.frames)}
    carried = (frame for frame in robot.model.frames if frame.name in own)
    deepest = max(carried, key=lambda frame: len(robot.model.supports[frame.parentJoint]))
    return str(deepest.name)


def mount_robot(
    robot: Mechanism, armature: Array, payload: Payload | float | None, gravity: ArrayLike | None
) -> Mechanism:
    """The robot with what it carries, as it is mounted, with its rotors.

    ``armature``: inertia of the rotors at the joints [kg m^2], shape (nv,); others as of `stop`.
    """
    mounting = None
    if gravity is not None:
        vector = np.asarray(gravity, dtype=float)
        if vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise BadValue(f"gravity is {gravity!r}; give three numbers in m/s^2")
        mounting = tuple(vector.tolist())
    changed = _mounted(robot, tuple(armature.tolist()), mounting)
    if payload is not None:
        require_kind(payload, (Payload, Real), "payload", "give a mass in kg, or a pl.Payload")
        load = payload if isinstance(payload, Payload) else Payload(float(payload))
        frame = tool_of(robot) if load.frame is None else load.frame
        changed = changed.with_payload(frame, load.mass, load.com, load.inertia)
        changed = _held_alike(changed, robot)
    return changed


def payload_of(before: Mechanism, after: Mechanism) -> Payload | None:
    """What a robot carries, in the frame of its tool or of what carries it; None if nothing."""
    known = set(before.bodies)
    added = [body for body in after.description.bodies if body.name not in known]
    if not added:
        return None
    (body,) = added
    (mount,) = (joint for joint in after.description.joints if joint.child == body.name)
    frame, placement, tool = mount.parent, mount.frame_parent, tool_of(after)
    model, carrier, end = after.model, after.frame_id(mount.parent), after.frame_id(tool)
    if model.frames[end].parentJoint == model.frames[carrier].parentJoint:
        mount_placement = model.frames[end].placement.actInv(model.frames[carrier].placement)
        frame, placement = tool, mount_placement * placement
    turn = np.asarray(placement.rotation)
    return Payload(
        body.mass,
        np.asarray(placement.act(np.array(body.com))),
        turn @ body.inertia @ turn.T,
        frame,
    )


@remembered
def _mounted(
    robot: Mechanism, armature: tuple[float, ...], gravity: tuple[float, ...] | None
) -> Mechanism:
    """The robot with its rotors, as it is mounted; kept, as well as which of its rows suffice."""
    description = robot.description
    if gravity is not None:
        description = replace(description, gravity=constant(np.array(gravity)))
    if not np.array_equal(armature, robot.model.armature):
        joints = tuple(_with_rotor(joint, robot, armature) for joint in description.joints)
        description = replace(description, joints=joints)
    if description is robot.description:
        return robot
    return _held_alike(build(description, kinematics_only=True), robot)


def _held_alike(changed: Mechanism, robot: Mechanism) -> Mechanism:
    """Masses do not change which rows suffice."""
    return replace(changed, regularization=robot.regularization, given_length=robot.length)


def _with_rotor(joint: Joint, robot: Mechanism, armature: tuple[float, ...]) -> Joint:
    if joint.name not in robot.joints:
        return joint
    return replace(joint, armature=armature[robot.coordinates(joint.name).v])


@dataclass(frozen=True, eq=False)
class PreparedRobot:
    """A robot ready to be stopped, any number of times.

    Args:
        robot: with its payload, its mounting and its rotors, but for those behind gears with
            losses.
        train: brakes, gears, friction and drives.
        system: equations by mode for trajectories, of the robot with all its rotors.
        equations: equations of the robot with loops, without forces.
        ends: position limits that are end stops.
    """

    robot: Mechanism
    train: Drivetrain
    system: ModalSystem
    equations: EquationsOfMotion
    ends: tuple[JointEnd, ...] = ()


class _Given(NamedTuple):
    """Brakes that are the same if they are the same object: to compare all numbers takes longer."""

    brakes: Brakes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and other.brakes is self.brakes

    def __hash__(self) -> int:
        return id(self.brakes)


@remembered
def _drivetrain(robot: Mechanism, given: _Given) -> Drivetrain:
    """The drive train, which many stops share."""
    return Drivetrain(robot, given.brakes.for_robot(robot))


def prepare_robot(
    robot: Mechanism,
    brakes: Brakes,
    payload: Payload | float | None = None,
    gravity: ArrayLike | None = None,
    limits: Literal["warn", "end stop"] = "warn",
) -> PreparedRobot:
    """Prepare a robot for stops; see `stop` for the arguments."""
    if limits not in ("warn", "end stop"):
        raise BadValue(f"limits of a stop is {limits!r}; give 'warn' or 'end stop'")
    train = _drivetrain(robot, _Given(brakes))
    # Rows that were chosen by sampling would have to be chosen again in the middle of a stop.
    machine = with_all_rows(mount_robot(robot, train.reflected - train.lossy, payload, gravity))
    system = ModalSystem(machine)
    equations = robot_equations(system.mechanism(frozenset()))
    if train.has_losses:
        system = ModalSystem(mount_robot(equations.robot, train.reflected, None, None))
    ends = joint_ends(machine) if limits == "end stop" else ()
    return PreparedRobot(machine, train, system, equations, tuple(x for x in ends if not x.axes))
