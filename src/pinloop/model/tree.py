"""From a description and its spanning tree to a `pin.Model`: its coordinates and its kinematics.

Joints are what the pairs say. Joint frames follow Pinocchio's URDF convention: the
frame of a one-axis joint sits where the pair is, with the axes of the child body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers
from ..boundary.marks import Array, Mask
from ..errors import BadValue
from ..linalg.saddle import from_upper
from ..tolerances import MOTION_SHARE, PURE_TRANSLATION, SAME_PLACE, SINGULAR_MASS
from ..units import ANGLES, LENGTHS, rates
from .description import GROUND, Body, Description, Joint
from .graph import FundamentalLoop, SpanningTree, TreeEdge, spanning_tree
from .pairs import Pair, TreeJoint
from .workspace import TreeKinematics, create_data

_BIG = float("inf")


@dataclass(frozen=True, eq=False)
class _Mount:
    """Where a body sits: the Pinocchio joint that carries it, and its placement in that joint."""

    joint: int
    placement: pin.SE3
    frame: int


def grow_tree(description: Description) -> tuple[Description, SpanningTree, pin.Model]:
    """Choose the spanning tree of a robot and build its model.

    Where bodies without mass hang at the end of a chain, though loops go on from there, the mass
    matrix of the tree is singular and that of the mechanism may not be. Then other joints of these
    loops are cut (and marked so in the description that is returned), as long as that leaves fewer
    directions without inertia: joints that lose least by it, and never what the user wants in the
    tree, what is driven, or what is coupled.
    """
    tree, model = _grown(description)
    if not (tree.cuts and model.nv and _lacks_mass(description)):
        return description, tree, model
    missing = _massless_directions(model)
    bound = {joint for coupling in description.couplings for joint in coupling.joints}
    bound |= {*(description.actuated or ()), *(drive.joint for drive in description.drives)}
    while missing.shape[1]:
        options = [
            (joint, *_grown(changed), changed)
            for joint in _cuttable(tree, model, missing, bound)
            for changed in [_with_cut(description, joint)]
        ]
        trials = [
            (directions.shape[1], _loss(joint), joint.pair.dof, number)
            for number, (joint, _, other, _) in enumerate(options)
            for directions in [_massless_directions(other)]
        ]
        if not trials or min(trials)[0] >= missing.shape[1]:
            break
        _, tree, model, description = options[min(trials)[-1]]
        missing = _massless_directions(model)
    return description, tree, model


def _grown(description: Description) -> tuple[SpanningTree, pin.Model]:
    bodies = [body.name for body in description.bodies]
    tree = spanning_tree(bodies, description.joints, description.base, description.source)
    return tree, build_model(description, tree)


def _with_cut(description: Description, cut: Joint) -> Description:
    joints = tuple(
        replace(joint, cut=True) if joint.name == cut.name else joint
        for joint in description.joints
    )
    return replace(description, joints=joints)


def _cuttable(tree: SpanningTree, model: pin.Model, missing: Array, bound: set[str]) -> list[Joint]:
    """Tree joints that may be cut for another one, in loops with motions without inertia.

    Those near the present cut come first: the first joints of a chain are those one reads.
    """
    edges = {edge.joint.name: edge.joint for edge in tree.edges}
    order = {name: number for number, name in enumerate(edges)}
    idle = {
        name
        for name, joint in list(zip(model.names, model.joints, strict=True))[1:]
        if np.abs(missing[joint.idx_v : joint.idx_v + joint.nv]).max() > MOTION_SHARE
    }
    distances: dict[str, int] = {}
    for cut, loop in zip(tree.cuts, tree.loops, strict=True):
        # A contact has no coordinates and stays cut.
        chains = (loop.chain_a, loop.chain_b)
        stays = cut.cut is True or not cut.pair.carries_bodies or idle.isdisjoint(sum(chains, ()))
        for chain in () if stays else chains:
            for distance, name in enumerate(chain[::-1]):
                if edges[name].cut is None and name not in bound:
                    distances[name] = min(distance, distances.get(name, distance))
    nearest = sorted(distances, key=lambda name: (distances[name], -order[name]))
    return [edges[name] for name in nearest]


def _lacks_mass(description: Description) -> bool:
    """Whether some bodies lack mass or moments of inertia, but not all have no mass at all."""
    masses = np.array([body.mass for body in description.bodies])
    least = np.linalg.eigvalsh(np.array([body.inertia for body in description.bodies]))[:, 0]
    return bool(masses.any() and not (masses.all() and (least > 0).all()))


def _loss(joint: Joint) -> int:
    """How many of a joint's properties need a coordinate."""
    values = (joint.lower, joint.velocity, joint.effort, joint.damping, joint.friction)
    return sum(map(bool, (*values, joint.armature)))


def _massless_directions(model: pin.Model) -> Array:
    """Velocities without kinetic energy at a configuration without special geometry, (nv, n)."""
    step = np.random.default_rng(0).uniform(-1, 1, model.nv)
    q = pin.integrate(model, pin.neutral(model), step)
    M = from_upper(pin.crba(model, create_data(model), q))
    size = np.sqrt(np.maximum(np.diagonal(M), 0.0))
    size[size <= 0] = 1.0
    values, vectors = np.linalg.eigh(M / np.outer(size, size))
    return np.asarray(vectors[:, values < SINGULAR_MASS])


def build_model(description: Description, tree: SpanningTree) -> pin.Model:
    """Build the `pin.Model` of a robot with inertias, limits, losses, armature and gravity.

    Every body is a BODY frame under its own name; named frames and the frames ``<loop>/A`` and
    ``<loop>/B`` of each cut joint are OP_FRAMEs.
    """
    model = pin.Model()
    model.name = description.name
    model.gravity = pin.Motion(np.array(description.gravity), np.zeros(3))
    inertias = {body.name: _inertia(body) for body in description.bodies}
    mounts = {GROUND: _Mount(0, pin.SE3.Identity(), 0)}
    if description.base is not None:
        base, identity = description.base, pin.SE3.Identity()
        frame = pin.Frame(base, 0, 0, identity, pin.FrameType.BODY, inertias[base])
        mounts[base] = _Mount(0, pin.SE3.Identity(), model.addFrame(frame))
    for edge in tree.edges:
        mounts[edge.child] = _attach(model, edge, mounts[edge.parent], inertias[edge.child])
    for named in description.frames:
        _mark(model, named.name, mounts[named.body], named.placement)
    for cut in tree.cuts:
        _mark(model, f"{cut.name}/A", mounts[cut.parent], cut.frame_parent)
        _mark(model, f"{cut.name}/B", mounts[cut.child], cut.frame_child)
    _apply_drives(model, description)
    return model


@dataclass(frozen=True, eq=False)
class LoopJoint:
    """A joint that closes a loop.

    Args:
        pair: what it leaves free, between frame A on ``body_a`` and frame B on ``body_b``.
        frame_a: index of A among the frames of the model (named ``<name>/A``).
        frame_b: index of B among the frames of the model (named ``<name>/B``).
        loop: root body and chains of the loop.
    """

    name: str
    pair: Pair
    body_a: str
    body_b: str
    frame_a: int
    frame_b: int
    loop: FundamentalLoop


def loop_joints(tree: SpanningTree, model: pin.Model) -> tuple[LoopJoint, ...]:
    """The cut joints of a tree with their frames in its model."""
    loops = []
    for cut, loop in zip(tree.cuts, tree.loops, strict=True):
        a, b = (int(model.getFrameId(f"{cut.name}/{end}")) for end in "AB")
        loops.append(LoopJoint(cut.name, cut.pair, cut.parent, cut.child, a, b, loop))
    return tuple(loops)


def _inertia(body: Body) -> pin.Inertia:
    """Spatial inertia of a body, as given; `warn_of_masses` says whether it is possible."""
    inertia = pin.Inertia.Zero()
    inertia.mass = body.mass
    inertia.lever = np.array(body.com)
    inertia.inertia = np.array(body.inertia)
    return inertia


def _mark(model: pin.Model, name: str, mount: _Mount, placement: pin.SE3) -> None:
    """Add an operational frame on a body."""
    frame = pin.Frame(
        name, mount.joint, mount.frame, mount.placement * placement, pin.FrameType.OP_FRAME
    )
    model.addFrame(frame)


def _attach(model: pin.Model, edge: TreeEdge, mount: _Mount, inertia: pin.Inertia) -> _Mount:
    """Add the joint of a tree edge, or weld its body to the parent, and add the body frame."""
    joint = edge.joint
    frame_a, frame_b = joint.frame_parent, joint.frame_child
    if edge.orientation < 0:
        frame_a, frame_b = frame_b, frame_a
    if joint.pair.dof == 0:
        placement = mount.placement * frame_a * frame_b.inverse()
        link = pin.Frame(joint.name, mount.joint, mount.frame, placement, pin.FrameType.FIXED_JOINT)
        joint_id, previous = mount.joint, model.addFrame(link)
    else:
        axes, forward = np.array(frame_b.rotation), edge.orientation > 0
        joint_model, rotation = _tree_joint(joint).build(joint.pair.advance, axes, forward)
        turn = pin.SE3(rotation, np.zeros(3))
        at = mount.placement * frame_a * turn.inverse()
        joint_id = model.addJoint(mount.joint, joint_model, at, joint.name)
        previous = model.addJointFrame(joint_id, mount.frame)
        _apply_limits(model, joint_id, joint, edge.orientation)
        placement = turn * frame_b.inverse()
    frame = pin.Frame(edge.child, joint_id, previous, placement, pin.FrameType.BODY, inertia)
    return _Mount(joint_id, placement, model.addFrame(frame))


def _tree_joint(joint: Joint) -> TreeJoint:
    """How the pair of a tree joint moves."""
    return joint.pair.tree_joints[joint.coordinates]


def motion_of(pair: Pair, q: ArrayLike) -> pin.SE3:
    """Placement of frame B in A at the coordinates ``q`` of a pair that can carry a body.

    They are the pair's usual coordinates, shape (nq,), or one number per degree of freedom along
    which it moves from its neutral position.
    """
    joint_model, turn = pair.tree_joints[""].build(pair.advance, np.eye(3), True)
    alone = pin.Model()
    alone.addJoint(0, joint_model, pin.SE3.Identity(), "alone")
    values, data = np.atleast_1d(np.asarray(q, dtype=float)), alone.createData()
    if len(values) != alone.nq:
        values = pin.integrate(alone, pin.neutral(alone), values)
    pin.forwardKinematics(alone, data, values)
    frame = pin.SE3(turn, np.zeros(3))
    return frame.inverse() * data.oMi[1] * frame


def coordinate_names(tree: SpanningTree, joint: str) -> tuple[str, ...]:
    """Names of a tree joint's velocities in order: "v" or "w" and the axis of the pair frame."""
    labels = _tree_joint(tree.edge(joint).joint).labels
    return labels[:: coordinate_order(tree, joint)]


def coordinate_order(tree: SpanningTree, joint: str) -> int:
    """1 if a tree joint's coordinates are in the order of its file, -1 if in reverse."""
    edge = tree.edge(joint)
    return 1 if _tree_joint(edge.joint).keeps_order else edge.orientation


def tree_coordinates(model: pin.Model, joint: str) -> list[int | tuple[int, int] | None]:
    """Per velocity of a tree joint its coordinate in q: a number, a cosine and sine, or none."""
    kind = model.joints[model.getJointId(joint)]
    counted = [*range(kind.idx_q, kind.idx_q + kind.nv)]
    if kind.nq == kind.nv:
        return [*counted]
    if kind.nv == 1:  # a circle
        return [(kind.idx_q, kind.idx_q + 1)]
    if kind.shortname() == "JointModelPlanar":
        return [None, None, (kind.idx_q + 2, kind.idx_q + 3)]
    slides = counted[:3] if kind.shortname() == "JointModelComposite" else []
    return [*slides, *[None] * (kind.nv - len(slides))]


def _apply_limits(model: pin.Model, joint_id: int, joint: Joint, orientation: int) -> None:
    """Write limits and losses; a joint without limits is unlimited, not zero."""
    kind = model.joints[joint_id]
    rows = slice(kind.idx_v, kind.idx_v + kind.nv)
    places = slice(kind.idx_q, kind.idx_q + kind.nq)

    order = 1 if _tree_joint(joint).keeps_order else orientation

    def values(given: tuple[float, ...], default: float, count: int) -> Array:
        return np.array(given[::order]) if given else np.full(count, default)

    model.damping[rows] = values(joint.damping, 0.0, kind.nv)
    model.armature[rows] = values(joint.armature, 0.0, kind.nv)
    friction = values(joint.friction, 0.0, kind.nv)
    model.upperDryFrictionLimit[rows], model.lowerDryFrictionLimit[rows] = friction, -friction
    effort, speed = values(joint.effort, _BIG, kind.nv), values(joint.velocity, _BIG, kind.nv)
    model.upperEffortLimit[rows], model.lowerEffortLimit[rows] = effort, -effort
    model.upperVelocityLimit[rows], model.lowerVelocityLimit[rows] = speed, -speed
    fits = len(joint.lower) == kind.nq
    model.lowerPositionLimit[places] = values(joint.lower if fits else (), -_BIG, kind.nq)
    model.upperPositionLimit[places] = values(joint.upper if fits else (), _BIG, kind.nq)


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


@dataclass(frozen=True)
class JointCoordinates:
    """Where a tree joint stands in q and v.

    Args:
        index: index of the joint in the `pin.Model`.
        q: its part of a configuration.
        v: its part of a velocity.
        slides: whether its first axis is one of translation.
    """

    name: str
    index: int
    q: slice
    v: slice
    slides: bool

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return int(self.q.stop - self.q.start)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return int(self.v.stop - self.v.start)

    def units(self, *, rate: bool = False) -> Mapping[str, float]:
        """Units in which people may give its coordinate, or its rate, with their sizes.

        Numbers of a joint with several axes are in SI units.
        """
        if self.nv != 1:
            return {"": 1.0}
        units = LENGTHS if self.slides else ANGLES
        return rates(units) if rate else units

    def part(self, value: ArrayLike) -> Array:
        """The joint's part of a configuration, shape (nq,).

        ``value`` is its coordinate [rad, m], or a text with a unit, or an array of its ``nq``
        coordinates; an angle also for a joint stored as cosine and sine.
        """
        part = flat_numbers(value, f"joint '{self.name}'", units=self.units())
        if self.nq == 2 and self.nv == 1 and part.size == 1:
            part = np.array([np.cos(part[0]), np.sin(part[0])])
        if part.size != self.nq:
            raise BadValue(f"joint '{self.name}' has {self.nq} coordinates, not {part.size}")
        return part

    def value(self, q: Array) -> float | Array:
        """Its coordinate in a configuration [rad, m]; an array where it has several axes."""
        part = q[self.q]
        if self.nv != 1:
            return part.copy()
        return float(part[0]) if self.nq == 1 else float(np.arctan2(part[1], part[0]))


def joint_coordinates(model: pin.Model, joint: str, linear: Mask) -> JointCoordinates:
    """Where ``joint``, which the model must have, stands in q and v; see `linear_coordinates`."""
    index = model.getJointId(joint)
    kind = model.joints[index]
    return JointCoordinates(
        joint,
        index,
        slice(kind.idx_q, kind.idx_q + kind.nq),
        slice(kind.idx_v, kind.idx_v + kind.nv),
        bool(linear[kind.idx_v]),
    )


def linear_coordinates(model: pin.Model) -> Mask:
    """Per velocity coordinate, whether it is a linear one [m/s], shape (nv,)."""
    neutral, linear = pin.neutral(model), np.zeros(model.nv, dtype=bool)
    for joint in list(model.joints)[1:]:
        moved = joint.createData()  # of one joint: a `pin.Data` takes 32 nv^3 bytes
        joint.calc(moved, neutral)
        # Pinocchio drops an axis of length one: nv = 1 gives shape (6,).
        twists = np.reshape(moved.S, (6, -1))
        rows = slice(joint.idx_v, joint.idx_v + joint.nv)
        linear[rows] = np.linalg.norm(twists[3:], axis=0) < PURE_TRANSLATION
    return linear


def spread_of_joints(model: pin.Model) -> float:
    """Root mean square distance of the joint frames from their centre at neutral [m].

    1 m if they all coincide.
    """
    placed = TreeKinematics(model).update(pin.neutral(model)).oMf
    kinds = (pin.FrameType.JOINT, pin.FrameType.OP_FRAME)
    frames = [index for index, frame in enumerate(model.frames) if frame.type in kinds]
    points = np.array([placed[index].translation for index in frames]).reshape(-1, 3)
    if not len(points):
        return 1.0
    spread = float(np.sqrt(np.mean(np.sum((points - points.mean(axis=0)) ** 2, axis=1))))
    return spread if spread > SAME_PLACE else 1.0
