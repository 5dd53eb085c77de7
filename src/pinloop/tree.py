"""From a description and its spanning tree to a `pin.Model`.

The only place that creates Pinocchio joints. Joint frames follow Pinocchio's URDF convention: the
frame of a one-axis joint sits where the pair is, with the axes of the child body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .description import GROUND, Body, Description, Joint
from .errors import LoadError
from .graph import SpanningTree, TreeEdge
from .pairs import MotionGroup

__all__ = ["build_model"]

Array = NDArray[np.float64]

_BIG = float("inf")


@dataclass(frozen=True, eq=False)
class _Seat:
    """Where a body sits: the Pinocchio joint that carries it, and its placement in that joint."""

    joint: int
    placement: pin.SE3
    frame: int


def build_model(description: Description, tree: SpanningTree) -> pin.Model:
    """Build the tree model of a robot.

    Every body is a BODY frame under its own name; named frames and the frames ``<loop>/A`` and
    ``<loop>/B`` of each cut joint are OP_FRAMEs.

    Args:
        description: the robot.
        tree: its spanning tree.

    Returns:
        The `pin.Model` with inertias, limits, damping, friction, armature and gravity.
    """
    model = pin.Model()
    model.name = description.name
    model.gravity = pin.Motion(np.array(description.gravity), np.zeros(3))
    inertias = {body.name: _inertia(body) for body in description.bodies}
    seats = {GROUND: _Seat(0, pin.SE3.Identity(), 0)}
    if description.base is not None:
        base, identity = description.base, pin.SE3.Identity()
        frame = pin.Frame(base, 0, 0, identity, pin.FrameType.BODY, inertias[base])
        seats[base] = _Seat(0, pin.SE3.Identity(), model.addFrame(frame))
    for edge in tree.edges:
        seats[edge.child] = _attach(model, edge, seats[edge.parent], inertias[edge.child])
    for named in description.frames:
        _mark(model, named.name, seats[named.body], named.placement)
    for cut in tree.cuts:
        _mark(model, f"{cut.name}/A", seats[cut.parent], cut.frame_parent)
        _mark(model, f"{cut.name}/B", seats[cut.child], cut.frame_child)
    _apply_drives(model, description)
    return model


def _inertia(body: Body) -> pin.Inertia:
    """Spatial inertia of a body, as given: whether it is possible is for `check_masses` to say."""
    inertia = pin.Inertia.Zero()
    inertia.mass = body.mass
    inertia.lever = np.array(body.com)
    inertia.inertia = np.array(body.inertia)
    return inertia


def _mark(model: pin.Model, name: str, seat: _Seat, placement: pin.SE3) -> None:
    """Add an operational frame on a body."""
    frame = pin.Frame(
        name, seat.joint, seat.frame, seat.placement * placement, pin.FrameType.OP_FRAME
    )
    model.addFrame(frame)


def _attach(model: pin.Model, edge: TreeEdge, seat: _Seat, inertia: pin.Inertia) -> _Seat:
    """Add the joint of a tree edge, or weld its body to the parent, and add the body frame."""
    joint = edge.joint
    frame_a, frame_b = joint.frame_parent, joint.frame_child
    if edge.orientation < 0:
        frame_a, frame_b = frame_b, frame_a
    if joint.pair.name == "fixed":
        placement = seat.placement * frame_a * frame_b.inverse()
        link = pin.Frame(joint.name, seat.joint, seat.frame, placement, pin.FrameType.FIXED_JOINT)
        joint_id, previous = seat.joint, model.addFrame(link)
    else:
        joint_model, turn = _joint_model(joint, frame_b, edge.orientation)
        at = seat.placement * frame_a * turn.inverse()
        joint_id = model.addJoint(seat.joint, joint_model, at, joint.name)
        previous = model.addJointFrame(joint_id, seat.frame)
        _apply_limits(model, joint_id, joint)
        placement = turn * frame_b.inverse()
    frame = pin.Frame(edge.child, joint_id, previous, placement, pin.FrameType.BODY, inertia)
    return _Seat(joint_id, placement, model.addFrame(frame))


def _one_axis(
    aligned: Iterable[Callable[[], object]], general: Callable[[Array], object], axis: Array
) -> object:
    """Pick Pinocchio's joint for a coordinate axis, or the one for any axis."""
    for unit, make in zip(np.eye(3), aligned, strict=True):
        if np.array_equal(axis, unit):
            return make()
    return general(axis)


def _joint_model(joint: Joint, frame_b: pin.SE3, orientation: int) -> tuple[object, pin.SE3]:
    """Pinocchio joint of a pair, and the rotation from the pair frame to the joint frame.

    A joint that is walked against its own direction keeps the sign of its coordinate where it has
    one axis (or one line, or two axes): the inverse of ``exp(Z q)`` is ``exp(-Z q)``. Other pairs
    are described by the motion of the body that the joint carries.
    """
    pair, name = joint.pair, joint.pair.name
    z = float(orientation) * np.array([0.0, 0.0, 1.0])
    if name in ("revolute", "prismatic", "helical"):
        turn = pin.SE3(np.array(frame_b.rotation), np.zeros(3))
        axis = float(orientation) * np.array(frame_b.rotation[:, 2])
        if name == "prismatic":
            slides = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ)
            return _one_axis(slides, pin.JointModelPrismaticUnaligned, axis), turn
        if name == "helical":
            assert isinstance(pair, MotionGroup)
            pitch = pair.pitch
            screws = [
                (lambda make=make: make(pitch))
                for make in (pin.JointModelHX, pin.JointModelHY, pin.JointModelHZ)
            ]
            return _one_axis(
                screws, lambda axis: pin.JointModelHelicalUnaligned(axis, pitch), axis
            ), turn
        if joint.coordinates == "circle":
            turns = (pin.JointModelRUBX, pin.JointModelRUBY, pin.JointModelRUBZ)
            return _one_axis(turns, pin.JointModelRevoluteUnboundedUnaligned, axis), turn
        turns = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
        return _one_axis(turns, pin.JointModelRevoluteUnaligned, axis), turn
    return _joint_of_many(joint, z, orientation), pin.SE3.Identity()


def _joint_of_many(joint: Joint, z: Array, orientation: int) -> object:
    """Pinocchio joint of a pair with several degrees of freedom, in the pair frame."""
    name = joint.pair.name
    if name == "free":
        if joint.coordinates == "SO3xR3":
            return _composite(pin.JointModelTranslation(), pin.JointModelSpherical())
        return pin.JointModelFreeFlyer()
    if name == "spherical":
        zyx = joint.coordinates == "zyx"
        return pin.JointModelSphericalZYX() if zyx else pin.JointModelSpherical()
    if name == "universal":
        x = float(orientation) * np.array([1.0, 0.0, 0.0])
        return pin.JointModelUniversal(z, x) if orientation > 0 else pin.JointModelUniversal(x, z)
    if name == "cylindrical":
        slide, turn = pin.JointModelPrismaticUnaligned(z), pin.JointModelRevoluteUnaligned(z)
        if orientation > 0:
            slide, turn = pin.JointModelPZ(), pin.JointModelRZ()
        return _composite(slide, turn)
    if name == "planar":
        return pin.JointModelPlanar()
    if name == "planar_translation":
        return _composite(pin.JointModelPX(), pin.JointModelPY())
    if name == "spatial_translation":
        return pin.JointModelTranslation()
    if name == "schoenflies":
        return _composite(pin.JointModelTranslation(), pin.JointModelRZ())
    raise LoadError(
        f"joint '{joint.name}': a {name} pair has no coordinates and cannot carry a body; cut it"
    )


def _composite(*parts: object) -> object:
    composite = pin.JointModelComposite()
    for part in parts:
        composite.addJoint(part)
    return composite


def _apply_limits(model: pin.Model, joint_id: int, joint: Joint) -> None:
    """Write limits and losses; a joint without limits is unlimited, not zero."""
    kind = model.joints[joint_id]
    rows = slice(kind.idx_v, kind.idx_v + kind.nv)
    cells = slice(kind.idx_q, kind.idx_q + kind.nq)
    model.damping[rows] = joint.damping or 0.0
    model.armature[rows] = joint.armature or 0.0
    friction = np.array(joint.friction or (0.0,) * kind.nv)
    model.upperDryFrictionLimit[rows] = friction
    model.lowerDryFrictionLimit[rows] = -friction
    effort = np.array(joint.effort or (_BIG,) * kind.nv)
    speed = np.array(joint.velocity or (_BIG,) * kind.nv)
    model.upperEffortLimit[rows], model.lowerEffortLimit[rows] = effort, -effort
    model.upperVelocityLimit[rows], model.lowerVelocityLimit[rows] = speed, -speed
    lower = joint.lower if len(joint.lower) == kind.nq else ()
    upper = joint.upper if len(joint.upper) == kind.nq else ()
    model.lowerPositionLimit[cells] = lower or -_BIG
    model.upperPositionLimit[cells] = upper or _BIG


def _apply_drives(model: pin.Model, description: Description) -> None:
    """Gear ratio and rotor inertia; the reflected inertia goes where Pinocchio's `crba` sees it."""
    armature = {joint.name: joint.armature for joint in description.joints}
    for drive in description.drives:
        if not model.existJointName(drive.joint):
            continue
        kind = model.joints[model.getJointId(drive.joint)]
        rows = slice(kind.idx_v, kind.idx_v + kind.nv)
        model.rotorGearRatio[rows] = drive.reduction
        if drive.rotor_inertia is not None:
            model.rotorInertia[rows] = drive.rotor_inertia
            if not armature[drive.joint]:
                model.armature[rows] = drive.reduction**2 * drive.rotor_inertia
