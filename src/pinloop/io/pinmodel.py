"""A `pin.Model` as a description, with the same coordinates.

For users who build their tree with Pinocchio and only want to close loops: joints keep their
order, names and coordinates. What Pinocchio lumped together stays lumped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

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
    constant,
    coordinate_count,
)
from ..model.pairs import PAIR_NAMES, Pair, align_z, make_pair, pair_class
from ..tolerances import COINCIDENT, ROTATION_DUST
from .quantities import square_axes

__all__ = ["body_names", "read_model"]

Array = NDArray[np.float64]

_SIMPLE: dict[str, tuple[str, Coordinates]] = {
    str(joint.native().shortname()): (name, coordinates)
    for name in PAIR_NAMES
    for coordinates in COORDINATES
    if (joint := pair_class(name).tree_joints.get(coordinates)) and joint.native
}
"""Pairs, and variants of their coordinates, that are one joint of Pinocchio."""


def read_model(model: pin.Model) -> Description:
    """Describe a `pin.Model`.

    Each moving joint's rigid body becomes a body; BODY frames give the names, further BODY frames
    and OP_FRAMEs become named frames. A composite joint is split into its parts with massless
    bodies between them.

    Raises:
        LoadError: a joint type that no pair describes.
    """
    source = f"pin.Model '{model.name}'"
    _check_order(model, source)
    names = body_names(model)
    bodies: list[Body] = []
    joints: list[Joint] = []
    warnings: list[str] = []
    for index in range(1, model.njoints):
        parts = _parts(model, index, source)
        parent, name = names[model.parents[index]], model.names[index]
        placement = model.jointPlacements[index]
        chain: list[Joint] = []
        for k, (kind, local) in enumerate(parts):
            last = k == len(parts) - 1
            child = names[index] if last else f"{names[index]}@{k + 1}"
            part_name = name if len(parts) == 1 else f"{name}_{k + 1}"
            chain.append(_joint(kind, part_name, parent, child, placement * local, source))
            if not last:
                bodies.append(Body(child))
            parent, placement = child, pin.SE3.Identity()
        joints += _with_limits(model, index, chain)
        if len(parts) > 1:
            warnings.append(f"{source}: composite joint '{name}' is split into {len(parts)} joints")
        inertia = model.inertias[index]
        bodies.append(
            Body(names[index], inertia.mass, constant(inertia.lever), constant(inertia.inertia))
        )
    frames = _frames(model, names)
    return Description(
        name=model.name or "robot",
        bodies=tuple(bodies),
        joints=tuple(joints),
        drives=tuple(_drives(model, joints)),
        frames=frames,
        gravity=constant(model.gravity.linear),
        warnings=tuple(warnings),
        source=source,
    )


def body_names(model: pin.Model) -> list[str]:
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


def _frames(model: pin.Model, names: list[str]) -> tuple[NamedFrame, ...]:
    """All other BODY frames and OP_FRAMEs, on the bodies that carry them."""
    taken = set(names) | set(model.names)
    frames = []
    for frame in model.frames:
        if frame.type not in (pin.FrameType.BODY, pin.FrameType.OP_FRAME) or frame.name in taken:
            continue
        taken.add(frame.name)
        frames.append(NamedFrame(frame.name, names[frame.parentJoint], frame.placement.copy()))
    return tuple(frames)


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


def _joint(kind: object, name: str, parent: str, child: str, at: pin.SE3, source: str) -> Joint:
    """Describe one Pinocchio joint whose frame sits at ``at`` in the parent body."""
    short = str(kind.shortname())  # type: ignore[attr-defined]
    if short in _SIMPLE:
        pair_name, coordinates = _SIMPLE[short]
        joint = Joint(name, make_pair(pair_name), parent, child, at, pin.SE3.Identity(), cut=False)
        return replace(joint, coordinates=coordinates)
    if short == "JointModelUniversal":
        universal = kind.extract()  # type: ignore[attr-defined]
        z, x = np.array(universal.axis1), np.array(universal.axis2)
        try:
            turn = pin.SE3(square_axes(z, x), np.zeros(3))
        except BadValue as error:
            raise LoadError(f"universal joint '{name}': {error}", source=source) from None
        return Joint(name, make_pair("universal"), parent, child, at * turn, turn, cut=False)
    pair = _one_axis_pair(kind, short, name, source)
    turn = pin.SE3(align_z(_axis(kind, short)), np.zeros(3))
    joint = Joint(name, pair, parent, child, at * turn, turn, cut=False)
    return replace(joint, coordinates="circle") if "RUB" in short or "Unbounded" in short else joint


def _one_axis_pair(kind: object, short: str, name: str, source: str) -> Pair:
    """Pair of a one-axis joint."""
    if short.startswith("JointModelH"):
        return make_pair("helical", pitch=float(kind.extract().pitch))  # type: ignore[attr-defined]
    for start, pair in (("JointModelR", "revolute"), ("JointModelP", "prismatic")):
        if short.startswith(start):
            return make_pair(pair)
    raise LoadError(f"joint '{name}' is a {short}, which no pair describes", source=source)


def _axis(kind: object, short: str) -> Array:
    """Axis of a one-axis joint, from the Jacobian: not every joint tells it."""
    alone = pin.Model()
    alone.addJoint(0, kind, pin.SE3.Identity(), short)
    column = pin.computeJointJacobian(alone, pin.Data(alone), pin.neutral(alone), 1).ravel()
    axis = np.array(column[:3] if short.startswith("JointModelP") else column[3:])
    axis[np.abs(axis) < ROTATION_DUST] = 0.0
    return axis


def _with_limits(model: pin.Model, index: int, parts: list[Joint]) -> list[Joint]:
    """Copy limits and losses of a joint from the model to its parts, coordinate by coordinate."""
    kind = model.joints[index]
    at_v, at_q = kind.idx_v, kind.idx_q
    limited: list[Joint] = []
    for part in parts:
        nv, nq = part.pair.dof, coordinate_count(part)
        v, q = slice(at_v, at_v + nv), slice(at_q, at_q + nq)
        at_v, at_q = at_v + nv, at_q + nq
        limited.append(
            replace(
                part,
                lower=_finite(model.lowerPositionLimit[q]),
                upper=_finite(model.upperPositionLimit[q]),
                velocity=_finite(model.upperVelocityLimit[v]),
                effort=_finite(model.upperEffortLimit[v]),
                damping=tuple(map(float, model.damping[v])),
                friction=tuple(map(float, model.upperDryFrictionLimit[v])),
                # Given even where zero: the rotor inertia of a drive must not add to it.
                armature=tuple(map(float, model.armature[v])),
            )
        )
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


def _finite(values: Array) -> tuple[float, ...]:
    """Limits as floats; Pinocchio writes the largest float for "none"."""
    largest = np.finfo(float).max
    return tuple(float(np.sign(x) * np.inf) if abs(x) >= largest else float(x) for x in values)
