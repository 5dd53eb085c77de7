"""A robot without the linkage that moves some joints: what stays, what goes, and its mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from ..errors import BadValue, listed
from .description import GROUND, Body, Coupling, Description, Joint
from .mechanism import Mechanism


@dataclass(frozen=True)
class Linkage:
    """What moves some joints of a robot through its loops.

    Args:
        joints: tree joints that go, with what they carry.
        closing: loop joints and couplings that go.
        bodies: bodies that go, with the body that stays and carries each.
        depending: all tree joints whose motions depend on each other through this linkage.
    """

    joints: tuple[str, ...]
    closing: tuple[str, ...]
    bodies: Mapping[str, str]
    depending: tuple[str, ...]

    def in_model(self, model: pin.Model) -> pin.Model:
        """The model with no mass and no rotors but those of the linkage."""
        model = model.copy()
        for number, name in enumerate(model.names):
            if name not in self.joints:
                model.inertias[number] = pin.Inertia.Zero()
                if number:
                    joint = model.joints[number]
                    model.armature[joint.idx_v : joint.idx_v + joint.nv] = 0.0
        return model


def find_linkage(robot: Mechanism, kept: Sequence[str]) -> Linkage:
    """The linkage that moves the joints ``kept``, which stay as the joints of a serial chain.

    Raises:
        BadValue: no loop moves one of them, or the linkage carries joints that stay.
    """
    clusters = [cluster for cluster in robot.clusters if cluster.joints.intersection(kept)]
    depending = frozenset[str]().union(*(cluster.joints for cluster in clusters))
    if free := [name for name in kept if name not in depending]:
        raise BadValue(f"no loop of robot '{robot.name}' moves joint '{free[0]}'; leave it out")
    gone = depending.difference(kept)
    carriers, bodies = dict[str, str](), dict[str, str]()
    for edge in robot.tree.edges:
        carrier = carriers.get(edge.parent, edge.parent)
        if edge.parent not in carriers and edge.joint.name not in gone:
            continue
        carriers[edge.child] = bodies[edge.child] = carrier
        if edge.joint.name not in gone and edge.joint.pair.dof:
            raise BadValue(
                f"joint '{edge.joint.name}' is carried by '{edge.parent}', which belongs to the "
                "linkage and would go; name the joints of the whole chain that is to stay, along "
                "which the tree must run: regularize(robot, cut=...)"
            )
    closing = tuple(name for cluster in clusters for name in cluster.names)
    joints = tuple(name for name in robot.joints if name in gone)
    return Linkage(
        joints, closing, bodies, tuple(name for name in robot.joints if name in depending)
    )


def without_linkage(
    robot: Mechanism,
    linkage: Linkage,
    q: np.ndarray,
    joints: Mapping[str, Mapping[str, tuple[float, ...]]],
    couplings: Sequence[Coupling],
) -> Description:
    """The description of a robot without a linkage, whose mass goes to the bodies that carry it.

    Args:
        robot: the robot.
        linkage: what goes.
        q: configuration at which masses are where they will stay, shape (nq,).
        joints: changed fields of joints that stay, by name; these are then actuated.
        couplings: rows of joints that follow others.
    """
    old = robot.description
    if lost := [loop.name for loop in robot.loops if _half_gone(loop.name, robot, linkage)]:
        raise BadValue(f"loop {listed(lost)} would lose a body of the linkage")
    gone = {*linkage.joints, *linkage.closing}
    staying = [joint for joint in old.joints if joint.name not in gone]
    staying = [joint for joint in staying if joint.child not in linkage.bodies]
    actuated = [name for name in robot.actuated if name not in {*gone, *joints}]
    followers = {coupling.joints[0] for coupling in couplings}
    return replace(
        old,
        bodies=tuple(
            _with_lumps(robot, body, linkage, q)
            for body in old.bodies
            if body.name not in linkage.bodies
        ),
        joints=tuple(_changed(joint, joints.get(joint.name, {})) for joint in staying),
        couplings=(*(c for c in old.couplings if c.name not in gone), *couplings),
        actuated=(*actuated, *(name for name in joints if name not in followers)),
        drives=tuple(drive for drive in old.drives if drive.joint not in gone),
        frames=tuple(frame for frame in old.frames if frame.body not in linkage.bodies),
        geometry=tuple(shape for shape in old.geometry if shape.body not in linkage.bodies),
    )


def _half_gone(loop: str, robot: Mechanism, linkage: Linkage) -> bool:
    """Whether a loop that stays ends on a body that goes."""
    joint = next(joint for joint in robot.description.joints if joint.name == loop)
    ends = {joint.parent, joint.child}
    return loop not in linkage.closing and not ends.isdisjoint(linkage.bodies)


def _changed(joint: Joint, fields: Any) -> Joint:
    return replace(joint, **fields)


def _with_lumps(robot: Mechanism, body: Body, linkage: Linkage, q: np.ndarray) -> Body:
    """A body with the masses that it carries for the linkage."""
    bodies = {x.name: x for x in robot.description.bodies}
    carried = [bodies[name] for name, carrier in linkage.bodies.items() if carrier == body.name]
    carried = [x for x in carried if x.mass or np.any(x.inertia)]
    if not carried or body.name == GROUND:
        return body
    here, total = robot.placement(q, body.name), pin.Inertia(body.mass, body.com, body.inertia)
    for lump in carried:
        place = here.actInv(robot.placement(q, lump.name))
        total += place.act(pin.Inertia(lump.mass, lump.com, lump.inertia))
    return replace(body, mass=total.mass, com=total.lever, inertia=total.inertia)
