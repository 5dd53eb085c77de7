"""A `pin.Model` as a description, with the same coordinates.

For users who build their tree with Pinocchio and only want to close loops: joints keep their
order, names and coordinates. What Pinocchio lumped together stays lumped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from ..description import GROUND, Body, Coordinates, Description, Joint, NamedFrame, constant
from ..errors import LoadError
from ..pairs import Pair, align_z, make_pair

__all__ = ["read_model"]

_UNITS = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_SIMPLE: dict[str, tuple[str, Coordinates]] = {
    "JointModelSpherical": ("spherical", ""),
    "JointModelSphericalZYX": ("spherical", "zyx"),
    "JointModelTranslation": ("spatial_translation", ""),
    "JointModelPlanar": ("planar", ""),
    "JointModelFreeFlyer": ("free", ""),
}


def read_model(model: pin.Model) -> Description:
    """Describe a `pin.Model`.

    Each moving joint's rigid body becomes a body; BODY frames give the names, further BODY frames
    and OP_FRAMEs become named frames. A composite joint is split into its parts with massless
    bodies between them.

    Raises:
        LoadError: a joint type that no pair describes.
    """
    source = f"pin.Model '{model.name}'"
    names = _body_names(model)
    bodies: list[Body] = []
    joints: list[Joint] = []
    warnings: list[str] = []
    for index in range(1, model.njoints):
        parts = _parts(model, index)
        parent, name = names[model.parents[index]], model.names[index]
        placement = model.jointPlacements[index]
        for k, (kind, local) in enumerate(parts):
            last = k == len(parts) - 1
            child = names[index] if last else f"{names[index]}@{k + 1}"
            part_name = name if len(parts) == 1 else f"{name}_{k + 1}"
            joints.append(_joint(kind, part_name, parent, child, placement * local, source))
            if not last:
                bodies.append(Body(child))
            parent, placement = child, pin.SE3.Identity()
        if len(parts) == 1:
            joints[-1] = _with_limits(model, index, joints[-1])
        else:
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
        frames=frames,
        gravity=constant(model.gravity.linear),
        warnings=tuple(warnings),
        source=source,
    )


def _body_names(model: pin.Model) -> list[str]:
    """Name of the body that each joint carries: its first BODY frame, or the joint's name."""
    names = [GROUND] + [""] * (model.njoints - 1)
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY and frame.parentJoint > 0:
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


def _parts(model: pin.Model, index: int) -> list[tuple[object, pin.SE3]]:
    """The joint itself, or the parts of a composite with their placements."""
    joint = model.joints[index]
    if joint.shortname() != "JointModelComposite":
        return [(joint, pin.SE3.Identity())]
    composite = joint.extract()
    pairs = zip(composite.joints, composite.jointPlacements, strict=True)
    return [(part, placement) for part, placement in pairs]


def _joint(kind: object, name: str, parent: str, child: str, at: pin.SE3, source: str) -> Joint:
    """Describe one Pinocchio joint whose frame sits at ``at`` in the parent body."""
    short = str(kind.shortname())  # type: ignore[attr-defined]
    if short == "JointModelMimic":
        raise LoadError(
            f"joint '{name}' is a mimic joint of Pinocchio, which does not tell its axis; build "
            "the model without mimic joints and give a coupling",
            source=source,
        )
    if short in _SIMPLE:
        pair_name, coordinates = _SIMPLE[short]
        joint = Joint(name, make_pair(pair_name), parent, child, at, pin.SE3.Identity(), False)
        return replace(joint, coordinates=coordinates)
    if short == "JointModelUniversal":
        universal = kind.extract()  # type: ignore[attr-defined]
        z, x = np.array(universal.axis1), np.array(universal.axis2)
        if abs(float(z @ x)) > 1e-9:
            raise LoadError(
                f"universal joint '{name}' has axes that are not perpendicular", source=source
            )
        turn = pin.SE3(np.column_stack([x, np.cross(z, x), z]), np.zeros(3))
        return Joint(name, make_pair("universal"), parent, child, at * turn, turn, False)
    pair, axis = _one_axis(kind, short, name, source)
    turn = pin.SE3(align_z(np.array(axis)), np.zeros(3))
    joint = Joint(name, pair, parent, child, at * turn, turn, False)
    return replace(joint, coordinates="circle") if "RUB" in short or "Unbounded" in short else joint


def _one_axis(kind: object, short: str, name: str, source: str) -> tuple[Pair, object]:
    """Pair and axis of a one-axis joint."""
    letter, rest = short.removeprefix("JointModel")[:-1], short[-1]
    pitch = None
    if letter == "H" or short == "JointModelHelicalUnaligned":
        pitch = float(kind.extract().pitch)  # type: ignore[attr-defined]
    pairs = {"R": "revolute", "RUB": "revolute", "P": "prismatic", "H": "helical"}
    if letter in pairs and rest in _UNITS:
        return make_pair(pairs[letter], pitch=pitch), _UNITS[rest]
    unaligned = {
        "JointModelRevoluteUnaligned": "revolute",
        "JointModelRevoluteUnboundedUnaligned": "revolute",
        "JointModelPrismaticUnaligned": "prismatic",
        "JointModelHelicalUnaligned": "helical",
    }
    if short in unaligned:
        return make_pair(unaligned[short], pitch=pitch), kind.extract().axis  # type: ignore[attr-defined]
    raise LoadError(f"joint '{name}' is a {short}, which no pair describes", source=source)


def _with_limits(model: pin.Model, index: int, joint: Joint) -> Joint:
    """Copy limits and losses of a joint from the model."""
    kind = model.joints[index]
    v = slice(kind.idx_v, kind.idx_v + kind.nv)
    q = slice(kind.idx_q, kind.idx_q + kind.nq)
    limited = kind.nq == kind.nv
    return replace(
        joint,
        lower=_finite(model.lowerPositionLimit[q]) if limited else (),
        upper=_finite(model.upperPositionLimit[q]) if limited else (),
        velocity=_finite(model.upperVelocityLimit[v]),
        effort=_finite(model.upperEffortLimit[v]),
        damping=tuple(map(float, model.damping[v])) if model.damping[v].any() else (),
        friction=(
            tuple(map(float, model.upperDryFrictionLimit[v]))
            if model.upperDryFrictionLimit[v].any()
            else ()
        ),
        armature=tuple(map(float, model.armature[v])) if model.armature[v].any() else (),
    )


def _finite(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, ...]:
    """Limits as floats; Pinocchio writes the largest float for "none"."""
    largest = np.finfo(float).max
    return tuple(float(np.sign(x) * np.inf) if abs(x) >= largest else float(x) for x in values)
