"""The same robot otherwise: in absolute coordinates, with a payload, or with another robot.

A variant is another description, not another program: building, constraints and integrators run
unchanged on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import count
from typing import Literal, TypeVar, get_args

import numpy as np
import pinocchio as pin
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers
from ..boundary.marks import Array
from ..errors import BadValue
from ..tolerances import CLOSED, CONSISTENT
from .description import (
    GROUND,
    MOST_TEETH,
    Body,
    Coordinates,
    Coupling,
    Description,
    Geometry,
    Joint,
    NamedFrame,
    middle_of_turn,
)
from .pairs import make_pair
from .workspace import create_data

Space = Literal["SE3", "SO3xR3", "auto"]
Placed = TypeVar("Placed", NamedFrame, Geometry)

_NEWTON = 20
"""Iterations in which a joint's coordinates follow from its placement; groups need one."""


def with_payload(
    description: Description,
    model: pin.Model,
    frame: int,
    mass: float,
    com: ArrayLike,
    inertia: ArrayLike | None,
) -> Description:
    """Return the description with a body welded to frame number ``frame`` of its tree ``model``.

    Mass [kg], centre of mass in the frame [m], shape (3,); inertia about it in the axes of the
    frame [kg m^2], shape (3, 3), None for a point mass.
    """
    payload = _payload(mass, com, inertia)
    taken = {body.name for body in description.bodies}
    taken |= {joint.name for joint in description.joints}
    candidates = ("payload" if k == 1 else f"payload_{k}" for k in count(1))
    name = next(n for n in candidates if not {n, f"{n}_mount"} & taken)
    carrier, placement = _carrier(description, model, frame)
    weld = make_pair("fixed")
    joint = Joint(f"{name}_mount", weld, carrier, name, placement, pin.SE3.Identity(), cut=False)
    return replace(
        description,
        bodies=(*description.bodies, replace(payload, name=name)),
        joints=(*description.joints, joint),
    )


def _carrier(description: Description, model: pin.Model, frame: int) -> tuple[str, pin.SE3]:
    """The body that carries a frame, and the placement of the frame in it."""
    target = model.frames[frame]
    for body, mount in _mounts(description, model).items():
        if mount.parentJoint == target.parentJoint:
            return body, mount.placement.actInv(target.placement)
    return GROUND, target.placement


def with_robot(
    description: Description,
    model: pin.Model,
    frame: int,
    other: Description,
    prefix: str,
    placement: pin.SE3,
) -> Description:
    """Return the description with another robot whose ground is welded to a frame of its tree.

    ``frame``: number of the frame in ``model``; ``prefix``: of all names of the other robot;
    ``placement``: of its world in the frame. Both say what is actuated.
    """
    carrier, seat = _carrier(description, model, frame)
    seat = seat * placement

    def end(body: str, at: pin.SE3) -> tuple[str, pin.SE3]:
        return (carrier, seat * at) if body == GROUND else (prefix + body, at)

    joints = []
    for joint in other.joints:
        parent, at_parent = end(joint.parent, joint.frame_parent)
        child, at_child = end(joint.child, joint.frame_child)
        ends = {"parent": parent, "frame_parent": at_parent}
        ends |= {"child": child, "frame_child": at_child}
        joints.append(replace(joint, name=prefix + joint.name, **ends))
    if other.base is not None:
        sole, weld = prefix + other.base, make_pair("fixed")
        mount = Joint(f"{prefix}mount", weld, carrier, sole, seat, pin.SE3.Identity(), cut=False)
        joints.insert(0, mount)

    def placed(thing: Placed) -> Placed:
        body, at = end(thing.body, thing.placement)
        return replace(thing, name=prefix + thing.name, body=body, placement=at)

    return replace(
        description,
        bodies=(*description.bodies, *(replace(x, name=prefix + x.name) for x in other.bodies)),
        joints=(*description.joints, *joints),
        couplings=(
            *description.couplings,
            *(
                replace(x, name=prefix + x.name, joints=tuple(prefix + name for name in x.joints))
                for x in other.couplings
            ),
        ),
        actuated=(*(description.actuated or ()), *(prefix + name for name in other.actuated or ())),
        drives=(*description.drives, *(replace(x, joint=prefix + x.joint) for x in other.drives)),
        frames=(*description.frames, *map(placed, other.frames)),
        geometry=(*description.geometry, *map(placed, other.geometry)),
        warnings=(*description.warnings, *other.warnings),
        source="",  # no file holds both
    )


def without_joints(description: Description, gone: Set[str]) -> Description:
    """Return the description without some joints, and what is said of them."""
    actuated = description.actuated
    return replace(
        description,
        joints=tuple(joint for joint in description.joints if joint.name not in gone),
        actuated=None if actuated is None else tuple(x for x in actuated if x not in gone),
        drives=tuple(drive for drive in description.drives if drive.joint not in gone),
        couplings=tuple(c for c in description.couplings if gone.isdisjoint(c.joints)),
    )


def _payload(mass: float, com: ArrayLike, inertia: ArrayLike | None) -> Body:
    """A payload as a body, checked."""
    weight = float(flat_numbers(mass, "the mass of the payload", 1)[0])
    if weight < 0:
        raise BadValue(f"a payload of {mass} kg does not exist; its mass must be >= 0")
    centre = flat_numbers(com, "the centre of mass of the payload", 3)
    flat = np.zeros(9) if inertia is None else np.ravel(inertia)
    tensor = flat_numbers(flat, "the inertia of the payload", 9).reshape(3, 3)
    if not np.allclose(tensor, tensor.T) or np.linalg.eigvalsh(tensor)[0] < 0:
        raise BadValue("the inertia of the payload must be symmetric with principal moments >= 0")
    return Body("payload", weight, centre, tensor)


def in_absolute_coordinates(
    description: Description, model: pin.Model, space: Space
) -> Description:
    """Return the description with one free joint per rigid group of bodies and all joints cut.

    The free joints sit at the groups' centres of mass, in world axes at neutral (paper 2), which is
    that of the tree ``model``. In the space "auto" a group that a lower pair with a motion group
    joins to the ground gets SE(3), because the exact flow of a constant twist then stays in the
    pair; the others get SO(3)xR3.
    """
    if space not in get_args(Space):
        raise BadValue(f"space '{space}' is none of 'SE3', 'SO3xR3', 'auto'")
    data = create_data(model)
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    mounts = _mounts(description, model)
    poses = {body: data.oMi[mount.parentJoint] * mount.placement for body, mount in mounts.items()}
    welded = {body for body, mount in mounts.items() if mount.parentJoint == 0}
    ground = welded | {GROUND}
    groups: dict[int, list[str]] = {}
    for body, mount in mounts.items():
        if body not in welded:
            groups.setdefault(mount.parentJoint, []).append(body)
    cut = [
        replace(joint, cut=True)
        for joint in description.joints
        if joint.cut is True
        or (joint.pair.dof and (joint.pair.rows or not {joint.parent, joint.child} & ground))
    ]
    welds = [j for j in description.joints if j.pair.dof == 0 and j.cut is not True]
    free = []
    for group in groups.values():
        lead = group[0]
        hinged = any(
            joint.pair.is_group
            and joint.pair.rows > 0
            and {joint.parent, joint.child} & ground
            and {joint.parent, joint.child} & {*group}
            for joint in description.joints
        )
        rigid = hinged if space == "auto" else space == "SE3"
        at = pin.SE3(np.eye(3), _centre(description, poses, group))
        ends = GROUND, lead, at, poses[lead].actInv(at)
        kind: Coordinates = "" if rigid else "SO3xR3"
        free.append(Joint(f"{lead}@ground", make_pair("free"), *ends, False, kind))
    return replace(description, joints=(*welds, *free, *cut))


def carried_state(model: pin.Model, q: Array, v: Array, other: pin.Model) -> tuple[Array, Array]:
    """The same motion of the same bodies in the coordinates of another model."""
    data, body = create_data(model), pin.FrameType.BODY
    pin.forwardKinematics(model, data, q, v)
    places, twists = [pin.SE3.Identity()], [pin.Motion.Zero()]
    for number in range(1, other.njoints):
        frame = next(f for f in other.frames if f.parentJoint == number and f.type == body)
        own = model.frames[model.getFrameId(frame.name, body)]
        mount = own.placement * frame.placement.inverse()  # of the joint there in the joint here
        places.append(data.oMi[own.parentJoint] * mount)
        twists.append(mount.actInv(data.v[own.parentJoint]))
    q_there, v_there, step = pin.neutral(other), np.zeros(other.nv), np.zeros(other.nv)
    for _ in range(_NEWTON):
        for number in range(1, other.njoints):
            joint, parent = other.joints[number], other.parents[number]
            moving, at = joint.createData(), slice(joint.idx_v, joint.idx_v + joint.nv)
            joint.calc(moving, q_there, v_there)
            S = np.array(moving.S).reshape(6, -1)
            if joint.nv == 1 and (pitch := float(S[:3, 0] @ S[3:, 0])):  # its shift tells turns
                mount = places[parent] * other.jointPlacements[number]
                shift = S[3:, 0] @ mount.actInv(places[number]).translation
                q_there[joint.idx_q] = shift / pitch
                joint.calc(moving, q_there, v_there)
            above = places[parent] * other.jointPlacements[number] * moving.M
            relative = twists[number] - places[number].actInv(places[parent]).act(twists[parent])
            step[at] = np.linalg.lstsq(S, pin.log6(above.actInv(places[number])).vector)[0]
            v_there[at] = np.linalg.lstsq(S, relative.vector)[0]
        q_there = pin.integrate(other, q_there, step)
        if np.abs(step).max(initial=0.0) < CLOSED:
            break
    return q_there, v_there


def with_counted_turns(description: Description, model: pin.Model, q: Array) -> Array:
    """Add whole turns to angles within half a turn, so that couplings close as far as they can."""
    hinges = {
        joint.name: model.joints[model.getJointId(joint.name)]
        for joint in description.joints
        if joint.pair.dof == 1 and model.existJointName(joint.name)
    }
    couplings = [c for c in description.couplings if hinges.keys() >= {*c.joints}]
    counted = {name for c in couplings for name in c.joints if hinges[name].nq == 1}
    angles, known = dict[str, float](), dict[str, float]()
    for joint in (joint for joint in description.joints if joint.name in counted):
        x, middle = float(q[hinges[joint.name].idx_q]), middle_of_turn(joint)
        if joint.pair.turns != "z" or joint.pair.advance:
            known[joint.name] = x
        elif middle is not None:
            known[joint.name] = middle + math.remainder(x - middle, 2.0 * math.pi)
        else:
            angles[joint.name] = x
    for name, x in (_turned(couplings, angles, known) or {}).items():
        q[hinges[name].idx_q] = x
    return q


def _turned(
    couplings: Sequence[Coupling], angles: Mapping[str, float], known: Mapping[str, float]
) -> Mapping[str, float] | None:
    """All coordinates, with whole turns added to the angles; None if that closes no couplings."""
    for coupling in couplings:
        terms = [*zip(coupling.joints, coupling.polynomials, strict=True)]
        values = [float(polyval(known.get(name, 0.0), row)) for name, row in terms]
        slopes = {name: row[1] for name, row in terms if name not in known and row[1]}
        rest = sum(values)
        if not slopes and abs(rest) > CONSISTENT:
            return None
        if len(slopes) == 1:
            [(name, slope)] = slopes.items()
            away = math.remainder(-rest / slope - angles[name], 2.0 * math.pi)
            if abs(away) > CONSISTENT:
                return None
            return _turned(couplings, angles, {**known, name: -rest / slope - away})
    uncounted = [name for name in angles if name not in known]
    if not uncounted:
        return known
    for turns in sorted(range(-MOST_TEETH, MOST_TEETH + 1), key=abs):
        x = angles[uncounted[-1]] + 2.0 * math.pi * turns
        if closed := _turned(couplings, angles, {**known, uncounted[-1]: x}):
            return closed
    return None


def _centre(description: Description, poses: Mapping[str, pin.SE3], group: Sequence[str]) -> Array:
    """Centre of mass of a rigid group in the world; the first body's origin if it has no mass."""
    bodies = [body for body in description.bodies if body.name in group]
    mass = sum(body.mass for body in bodies)
    if mass == 0:
        return np.array(poses[group[0]].translation)
    weighted = sum(body.mass * poses[body.name].act(np.array(body.com)) for body in bodies)
    return np.asarray(weighted / mass)


def _mounts(description: Description, model: pin.Model) -> dict[str, pin.Frame]:
    """The BODY frame of every body."""
    return {
        body.name: model.frames[model.getFrameId(body.name, pin.FrameType.BODY)]
        for body in description.bodies
    }
