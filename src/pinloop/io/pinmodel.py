"""A `pin.Model` as a description with the same coordinates, and constraint models as its loops.

For users who build their tree with Pinocchio and only want to close loops: joints keep their
order, names and coordinates. What Pinocchio lumped together stays lumped. A point held to a point
is a spherical pair, a frame held to a frame a fixed one; two points of the same two bodies are the
hinge about the line through them. Nothing here calls an algorithm of Pinocchio with a constraint
model: with one of another robot these read past the end of their arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..errors import BadValue, LoadError
from ..model.description import (
    COORDINATES,
    GROUND,
    Body,
    Coordinates,
    Description,
    Drive,
    Joint,
    NamedFrame,
    coordinate_count,
)
from ..model.pairs import PAIR_NAMES, align_z, make_pair, pair_class
from ..tolerances import COINCIDENT, NO_DIRECTION, ROTATION_DUST, SAME
from .quantities import square_axes, turn, unlimited

_SIMPLE: dict[str, tuple[str, Coordinates]] = {
    str(joint.native().shortname()): (name, coordinates)
    for name in PAIR_NAMES
    for coordinates in COORDINATES
    if (joint := pair_class(name).tree_joints.get(coordinates)) and joint.native
}
"""Pairs, and variants of their coordinates, that are one joint of Pinocchio."""


_LOOPS = (pin.RigidConstraintModel, pin.PointAnchorConstraintModel, pin.FrameAnchorConstraintModel)
_NO_LOOPS = (
    pin.PointContactConstraintModel,
    pin.JointLimitConstraintModel,
    pin.JointFrictionConstraintModel,
)
_LISTS = tuple(
    getattr(pin, f"StdVec_{kind.__name__}") for kind in (*_LOOPS, *_NO_LOOPS, pin.ConstraintModel)
)
"""Pinocchio's own lists of these."""


def read_model(model: pin.Model) -> Description:
    """Describe a `pin.Model`.

    Each moving joint's rigid body becomes a body; BODY frames give the names, further BODY frames
    and OP_FRAMEs become named frames. A composite joint is split into its parts with massless
    bodies between them.
    """
    source = f"pin.Model '{model.name}'"
    _check_order(model, source)
    names = _body_names(model)
    bodies: list[Body] = []
    joints: list[Joint] = []
    warnings: list[str] = []
    for index in range(1, model.njoints):
        parts = _parts(model, index, source)
        parent, name = names[model.parents[index]], model.names[index]
        placement = model.jointPlacements[index]
        for number, (kind, local) in enumerate(parts, start=1):
            child, part_name = names[index], name
            if len(parts) > 1:
                part_name = f"{name}_{number}"
            if number < len(parts):
                child = f"{names[index]}@{number}"
                bodies.append(Body(child, is_between=True))
            joints.append(_joint(kind, part_name, parent, child, placement * local, source))
            parent, placement = child, pin.SE3.Identity()
        if len(parts) > 1:
            warnings.append(f"{source}: composite joint '{name}' is split into {len(parts)} joints")
        inertia = model.inertias[index]
        bodies.append(Body(names[index], inertia.mass, inertia.lever, inertia.inertia))
    taken = {*names, *model.names}
    frames: dict[str, NamedFrame] = {}
    for frame in model.frames:
        if frame.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME) and frame.name not in taken:
            body, placement = names[frame.parentJoint], frame.placement.copy()
            frames.setdefault(frame.name, NamedFrame(frame.name, body, placement))
    return Description(
        name=model.name or "robot",
        bodies=tuple(bodies),
        joints=tuple(_with_limits(model, joints)),
        drives=tuple(_drives(model, joints)),
        frames=tuple(frames.values()),
        gravity=model.gravity.linear,
        warnings=tuple(warnings),
        source=source,
    )


def _body_names(model: pin.Model) -> list[str]:
    """Name of the body that each joint carries: the BODY frame that coincides with the joint.

    Without one the body is called like the joint.
    """
    names = [GROUND] + [""] * (model.njoints - 1)
    for frame in model.frames:
        own = frame.type == pin.FrameType.BODY and frame.placement.isIdentity(COINCIDENT)
        if own and frame.parentJoint > 0:
            names[frame.parentJoint] = names[frame.parentJoint] or frame.name
    for index in range(1, model.njoints):
        names[index] = names[index] or str(model.names[index])
    return names


def _check_order(model: pin.Model, source: str) -> None:
    """Joints must come depth first: Pinocchio's own `crba` is wrong otherwise, without a word."""
    path: list[int] = []
    for index in range(1, model.njoints):
        while path and path[-1] != model.parents[index]:
            path.pop()
        if not path and model.parents[index] != 0:
            raise LoadError(
                f"joint '{model.names[index]}' does not follow its parent joint or a descendant of "
                "it; add the joints depth first (Pinocchio's crba is wrong in any other order)",
                source=source,
            )
        path.append(index)


def _parts(model: pin.Model, index: int, source: str) -> list[tuple[object, pin.SE3]]:
    """The joint itself, or the parts of a composite with their placements."""
    joint = model.joints[index]
    if joint.shortname() == "JointModelMimic":
        raise LoadError(
            f"joint '{model.names[index]}' is a mimic joint of Pinocchio, which does not tell its "
            "axis; build the model without mimic joints and give a coupling",
            source=source,
        )
    if joint.shortname() != "JointModelComposite":
        return [(joint, pin.SE3.Identity())]
    composite = joint.extract()
    pairs = zip(composite.joints, composite.jointPlacements, strict=True)
    return [(part, placement) for part, placement in pairs]


def _joint(kind: Any, name: str, parent: str, child: str, at: pin.SE3, source: str) -> Joint:
    """Describe one Pinocchio joint whose frame sits at ``at`` in the parent body."""
    short = str(kind.shortname())
    coordinates: Coordinates = "circle" if "RUB" in short or "Unbounded" in short else ""
    rotation = np.eye(3)
    if short in _SIMPLE:
        pair_name, coordinates = _SIMPLE[short]
        pair = make_pair(pair_name)
    elif short == "JointModelUniversal":
        pair, universal = make_pair("universal"), kind.extract()
        try:
            rotation = square_axes(np.array(universal.axis1), np.array(universal.axis2))
        except BadValue as error:
            raise LoadError(f"universal joint '{name}': {error}", source=source) from None
    elif short.startswith(("JointModelH", "JointModelR", "JointModelP")):
        pair = make_pair(
            {"H": "helical", "R": "revolute", "P": "prismatic"}[short[10]],
            **({"pitch": float(kind.extract().pitch)} if short[10] == "H" else {}),
        )
        rotation = align_z(_axis(kind, short))
    else:
        raise LoadError(f"joint '{name}' is a {short}, which no pair describes", source=source)
    mount = turn(rotation)
    return Joint(name, pair, parent, child, at * mount, mount, False, coordinates)


def _axis(kind: object, short: str) -> Array:
    """Axis of a one-axis joint, from the Jacobian: not every joint tells it."""
    alone = pin.Model()
    alone.addJoint(0, kind, pin.SE3.Identity(), short)
    column = pin.computeJointJacobian(alone, pin.Data(alone), pin.neutral(alone), 1).ravel()
    axis = np.array(column[:3] if short.startswith("JointModelP") else column[3:])
    axis[np.abs(axis) < ROTATION_DUST] = 0.0
    return axis


def _with_limits(model: pin.Model, joints: list[Joint]) -> list[Joint]:
    """Copy limits and losses from the model, coordinate by coordinate."""
    at_v = at_q = 0
    limited: list[Joint] = []
    for joint in joints:
        v = slice(at_v, at_v := at_v + joint.pair.dof)
        q = slice(at_q, at_q := at_q + coordinate_count(joint))
        parts = {
            "lower": model.lowerPositionLimit[q],
            "upper": model.upperPositionLimit[q],
            "velocity": model.upperVelocityLimit[v],
            "effort": model.upperEffortLimit[v],
            "damping": model.damping[v],
            "friction": model.upperDryFrictionLimit[v],
            # Given even where zero: the rotor inertia of a drive must not add to it.
            "armature": model.armature[v],
        }
        values = {key: tuple(unlimited(float(x)) for x in part) for key, part in parts.items()}
        limited.append(replace(joint, **values))  # type: ignore[arg-type]
    return limited


def _drives(model: pin.Model, joints: list[Joint]) -> list[Drive]:
    """Gear ratios and rotor inertias, where the model has any."""
    drives: list[Drive] = []
    at = 0
    for joint in joints:
        ratio, inertia = float(model.rotorGearRatio[at]), float(model.rotorInertia[at])
        at += joint.pair.dof
        if ratio not in (0.0, 1.0) or inertia != 0.0:
            drives.append(Drive(joint.name, ratio or 1.0, inertia or None))
    return drives


# -- constraint models ----------------------------------------------------------------------------


def split_loops(loops: Any) -> tuple[list[Any], list[Any]]:
    """Split what a user gives as loops into constraint models of Pinocchio and the rest."""
    if isinstance(loops, _LISTS):
        loops = list(loops)
    given = list(loops) if isinstance(loops, (list, tuple)) else [loops]
    models: list[Any] = []
    others: list[Any] = []
    for loop in given:
        if isinstance(loop, _LISTS):
            models += list(loop)
        elif isinstance(loop, (*_LOOPS, *_NO_LOOPS, pin.ConstraintModel)):
            models.append(loop)
        else:
            others.append(loop)
    return models, others


def apply_constraint_models(
    description: Description, source: Any, models: Iterable[Any]
) -> Description:
    """Close the loops that constraint models hold together, made for the `pin.Model` ``source``."""
    if not isinstance(source, pin.Model):
        raise BadValue(
            "constraint models of Pinocchio name joints by their numbers in a pin.Model; load that "
            f"model with them, not a {type(source).__name__}"
        )
    place = description.source
    held: list[Joint] = []
    warnings: list[str] = []
    bodies, taken = _body_names(source), {joint.name for joint in description.joints}
    for number, given in enumerate(models, start=1):
        model = given.extract() if isinstance(given, pin.ConstraintModel) else given
        name = str(model.name) or f"constraint_{number}"
        problem, where = _wrong_loop(model, source), f"constraint model '{name}'"
        if name in taken:
            problem = problem or (
                "is called like another joint or constraint model; give it another name"
            )
        if problem:
            raise LoadError(f"{where} {problem}", source=place)
        taken.add(name)
        is_point = isinstance(model, pin.PointAnchorConstraintModel) or (
            isinstance(model, pin.RigidConstraintModel) and model.type == pin.ContactType.CONTACT_3D
        )
        pair = make_pair("spherical" if is_point else "fixed")
        frames = model.joint1_placement.copy(), model.joint2_placement.copy()
        ends = bodies[model.joint1_id], bodies[model.joint2_id]
        held.append(Joint(name, pair, *ends, *frames, cut=True))
        if np.any(model.retrieveCompliance()):
            warnings.append(f"{where} has a compliance, which is left out; the loop closes rigidly")
    added, merged = _hinges(held)
    # Like joints of the model itself, loops win over frames of the same name.
    names = {joint.name for joint in added}
    hidden = [frame for frame in description.frames if frame.name in names]
    warnings += merged
    warnings += [
        f"frame '{frame.name}' is called like a constraint model; left out" for frame in hidden
    ]
    return replace(
        description,
        joints=(*description.joints, *added),
        frames=tuple(frame for frame in description.frames if frame not in hidden),
        warnings=(*description.warnings, *(f"{place}: {text}" for text in warnings)),
    )


def _wrong_loop(model: Any, tree: pin.Model) -> str:
    """Why a constraint model is no loop of a tree; "" if it is one."""
    if not isinstance(model, _LOOPS):
        return (
            f"is a {type(model).__name__}, which closes no loop; give contacts, limits and "
            "friction to the simulation instead"
        )
    a, b = int(model.joint1_id), int(model.joint2_id)
    for joint in (a, b):
        if not 0 <= joint < tree.njoints:
            return (
                f"is on joint {joint}, but the model has the joints 0 to {tree.njoints - 1}; it "
                "was made for another model"
            )
    if a == b:
        return f"joins joint {a} ('{tree.names[a]}') with itself; a loop joins two joints"
    if not _at_rest(model):
        return (
            "has a desired placement, velocity or acceleration; put a placement into "
            "joint1_placement, and prescribe a motion with pl.constraints.Prescribed"
        )
    return ""


def _at_rest(model: Any) -> bool:
    """Whether the two frames are to coincide and to stay so."""
    if isinstance(model, pin.RigidConstraintModel):
        motions = model.desired_contact_velocity, model.desired_contact_acceleration
        moving = any(np.any(motion.vector) for motion in motions)
        return model.desired_contact_placement.isIdentity(COINCIDENT) and not moving
    return not any(
        np.any(values)
        for values in (
            model.desired_constraint_offset,
            model.desired_constraint_velocity,
            model.desired_constraint_acceleration,
        )
    )


def _hinges(held: list[Joint]) -> tuple[list[Joint], list[str]]:
    """Make one hinge of two points of the same two bodies; also says which."""
    points: dict[frozenset[str], list[Joint]] = {}
    for joint in held:
        if joint.pair.name == "spherical":
            points.setdefault(frozenset((joint.parent, joint.child)), []).append(joint)
    joints = {joint.name: joint for joint in held}
    warnings: list[str] = []
    for several in points.values():
        hinge = _hinge(*several) if len(several) == 2 else None
        if hinge is not None:
            joints[hinge.name] = hinge
            del joints[several[1].name]
            warnings.append(
                f"constraint models '{several[0].name}' and '{several[1].name}' hold two points of "
                f"one axis; they are the revolute pair '{hinge.name}'"
            )
    return list(joints.values()), warnings


def _hinge(first: Joint, second: Joint) -> Joint | None:
    """The hinge whose axis two points hold; None if they are one point, or do not fit."""
    ends = second.frame_parent.translation, second.frame_child.translation
    if first.parent != second.parent:
        ends = ends[::-1]
    frames = first.frame_parent, first.frame_child
    along = [end - frame.translation for end, frame in zip(ends, frames, strict=True)]
    apart, wanted = (float(np.linalg.norm(vector)) for vector in along)
    if min(apart, wanted) < NO_DIRECTION or not np.isclose(apart, wanted, rtol=SAME, atol=0):
        return None
    frames = _along(frames[0], along[0] / apart), _along(frames[1], along[1] / wanted)
    return replace(first, pair=make_pair("revolute"), frame_parent=frames[0], frame_child=frames[1])


def _along(frame: pin.SE3, axis: Array) -> pin.SE3:
    """The frame, turned so that its z axis is along ``axis``; as it is if that is so already."""
    if np.allclose(frame.rotation[:, 2], axis, rtol=0, atol=COINCIDENT):
        return frame
    return pin.SE3(align_z(axis), np.array(frame.translation))
