"""Constraint models of Pinocchio as loop joints of the `pin.Model` that they were made for.

A point held to a point is a spherical pair, a frame held to a frame a fixed one; two points of the
same two bodies are the hinge about the line through them. Models of contacts, limits and friction
are no loops and are refused. Nothing here calls an algorithm of Pinocchio: with a constraint model
of another robot these read past the end of their arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..errors import BadValue, LoadError
from ..model.description import Description, Joint
from ..model.pairs import align_z, make_pair
from ..tolerances import COINCIDENT, NO_DIRECTION, SAME
from .pinmodel import body_names

__all__ = ["apply_constraint_models", "split_loops"]

Array = NDArray[np.float64]

_LOOPS = (
    pin.RigidConstraintModel,
    pin.PointAnchorConstraintModel,
    pin.FrameAnchorConstraintModel,
)
_NO_LOOPS = (
    pin.PointContactConstraintModel,
    pin.JointLimitConstraintModel,
    pin.JointFrictionConstraintModel,
)
_LISTS = tuple(
    getattr(pin, f"StdVec_{kind.__name__}") for kind in (*_LOOPS, *_NO_LOOPS, pin.ConstraintModel)
)
"""Pinocchio's own lists of these."""


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


@dataclass(frozen=True, eq=False)
class _Held:
    """What a constraint model holds together: frame A on joint ``a`` and frame B on joint ``b``."""

    name: str
    pair: str
    a: int
    b: int
    frame_a: pin.SE3
    frame_b: pin.SE3


def apply_constraint_models(
    description: Description, source: Any, models: Iterable[Any]
) -> Description:
    """Close the loops that constraint models of Pinocchio hold together.

    Args:
        description: the tree, read from ``source``.
        source: the `pin.Model` that the constraint models were made for.
        models: `pin.RigidConstraintModel`, `pin.PointAnchorConstraintModel` or
            `pin.FrameAnchorConstraintModel`.

    Raises:
        BadValue: the tree does not come from a `pin.Model`.
        LoadError: a constraint model that is no loop of this model.
    """
    if not isinstance(source, pin.Model):
        raise BadValue(
            "constraint models of Pinocchio name joints by their numbers in a pin.Model; load that "
            f"model with them, not a {type(source).__name__}"
        )
    place = description.source
    held, warnings = _all_held(models, source, place)
    joints, merged = _hinges(held)
    added = _loop_joints(joints, [joint.name for joint in description.joints], source, place)
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


def _all_held(models: Iterable[Any], tree: pin.Model, place: str) -> tuple[list[_Held], list[str]]:
    """What the constraint models hold, and what is left out of them."""
    held, warnings = [], []
    for number, given in enumerate(models, start=1):
        model = given.extract() if isinstance(given, pin.ConstraintModel) else given
        constraint = _held(model, number, tree, place)
        held.append(constraint)
        if np.any(model.retrieveCompliance()):
            warnings.append(
                f"constraint model '{constraint.name}' has a compliance, which is left out; the "
                "loop closes rigidly"
            )
    return held, warnings


def _loop_joints(
    held: list[_Held], known: Iterable[str], tree: pin.Model, place: str
) -> list[Joint]:
    """The loop joints, whose names must be new."""
    taken, bodies = set(known), body_names(tree)
    joints = []
    for constraint in held:
        if constraint.name in taken:
            raise LoadError(
                f"constraint model '{constraint.name}' is called like another joint or constraint "
                "model; give it another name",
                source=place,
            )
        taken.add(constraint.name)
        frames = constraint.frame_a.copy(), constraint.frame_b.copy()
        pair = make_pair(constraint.pair)
        joints.append(
            Joint(
                constraint.name, pair, bodies[constraint.a], bodies[constraint.b], *frames, cut=True
            )
        )
    return joints


def _held(model: Any, number: int, tree: pin.Model, place: str) -> _Held:
    """What one constraint model holds, after checking that it is a loop of the tree."""
    name = str(model.name) or f"constraint_{number}"
    where = f"constraint model '{name}'"
    if not isinstance(model, _LOOPS):
        raise LoadError(
            f"{where} is a {type(model).__name__}, which closes no loop; give contacts, limits and "
            "friction to the simulation instead",
            source=place,
        )
    a, b = int(model.joint1_id), int(model.joint2_id)
    for joint in (a, b):
        if not 0 <= joint < tree.njoints:
            raise LoadError(
                f"{where} is on joint {joint}, but the model has the joints 0 to "
                f"{tree.njoints - 1}; it was made for another model",
                source=place,
            )
    if a == b:
        raise LoadError(
            f"{where} joins joint {a} ('{tree.names[a]}') with itself; a loop joins two joints",
            source=place,
        )
    if not _at_rest(model):
        raise LoadError(
            f"{where} has a desired placement, velocity or acceleration; put a placement into "
            "joint1_placement, and prescribe a motion with pl.constraints.Prescribed",
            source=place,
        )
    point = isinstance(model, pin.PointAnchorConstraintModel) or (
        isinstance(model, pin.RigidConstraintModel) and model.type == pin.ContactType.CONTACT_3D
    )
    pair = "spherical" if point else "fixed"
    return _Held(name, pair, a, b, model.joint1_placement, model.joint2_placement)


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


def _hinges(held: list[_Held]) -> tuple[list[_Held], list[str]]:
    """Make one hinge of two points of the same two bodies; also says which."""
    points = sorted(
        (point for point in held if point.pair == "spherical"),
        key=lambda point: sorted((point.a, point.b)),
    )
    hinges: dict[int, _Held] = {}
    gone: set[int] = set()
    warnings: list[str] = []
    for _, group in groupby(points, key=lambda point: sorted((point.a, point.b))):
        several = list(group)
        hinge = _hinge(*several) if len(several) == 2 else None
        if hinge is not None:
            hinges[id(several[0])] = hinge
            gone.add(id(several[1]))
            warnings.append(
                f"constraint models '{several[0].name}' and '{several[1].name}' hold two points of "
                f"one axis; they are the revolute pair '{hinge.name}'"
            )
    return [hinges.get(id(point), point) for point in held if id(point) not in gone], warnings


def _hinge(first: _Held, second: _Held) -> _Held | None:
    """The hinge whose axis two points hold; None if they are one point, or do not fit."""
    if first.a != second.a:
        second = _Held(second.name, second.pair, second.b, second.a, second.frame_b, second.frame_a)
    along_a = second.frame_a.translation - first.frame_a.translation
    along_b = second.frame_b.translation - first.frame_b.translation
    apart, wanted = float(np.linalg.norm(along_a)), float(np.linalg.norm(along_b))
    if min(apart, wanted) < NO_DIRECTION or not np.isclose(apart, wanted, rtol=SAME, atol=0):
        return None
    frames = _along(first.frame_a, along_a / apart), _along(first.frame_b, along_b / wanted)
    return _Held(first.name, "revolute", first.a, first.b, *frames)


def _along(frame: pin.SE3, axis: Array) -> pin.SE3:
    """The frame, turned so that its z axis is along ``axis``; as it is if that is so already."""
    if np.allclose(frame.rotation[:, 2], axis, rtol=0, atol=COINCIDENT):
        return frame
    return pin.SE3(align_z(axis), np.array(frame.translation))
