"""Is a description a possible machine? Errors stop it, warnings travel with it.

Every reader's result passes here once, so that no format has checks of its own for what must hold
for all: unique names, references that exist, finite numbers, masses that move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.remarks import Remarks, listed
from ..errors import LoadError
from ..tolerances import GYRATION, MOMENT_DUST, POINT_MASS, ROTATION, SAME, TINY, TRIANGLE
from .description import GROUND, Body, Description, Joint, coordinate_count
from .graph import SpanningTree

__all__ = ["check_cuts", "check_description", "lacking_mass", "warn_of_masses"]

Array = NDArray[np.float64]


_MOST_JOINTS = 5000
"""Joints of a robot; Pinocchio's matrices for so many have 25 million numbers each."""
_MASSLESS = "moves but has no mass"
_NOT_DEFINITE = "has an inertia that is not positive definite"
_IMPOSSIBLE = "has an inertia that no distribution of mass can have (triangle inequality)"


def check_description(description: Description) -> None:
    """Check names, references and numbers of a description.

    Raises:
        LoadError: says which element is wrong and what to do.
    """
    source = description.source
    if len(description.joints) > _MOST_JOINTS:
        raise LoadError(
            f"has {len(description.joints)} joints; at most {_MOST_JOINTS} are possible, because "
            "mass matrices are dense",
            source=source,
        )
    _check_names(description)
    bodies = {body.name for body in description.bodies} | {GROUND}
    for body in description.bodies:
        _check_body(body, source)
    for joint in description.joints:
        _check_joint(joint, bodies, source)
    attached = [(frame.name, frame.body, frame.placement) for frame in description.frames]
    attached += [(shape.name, shape.body, shape.placement) for shape in description.geometry]
    for name, carrier, placement in attached:
        if carrier not in bodies:
            raise LoadError(f"'{name}' sits on unknown body '{carrier}'", source=source)
        _check_placement(f"'{name}'", placement, source)
    if description.base is not None and description.base not in bodies - {GROUND}:
        raise LoadError(f"base body '{description.base}' does not exist", source=source)
    if not (np.shape(description.gravity) == (3,) and np.all(np.isfinite(description.gravity))):
        raise LoadError(
            f"gravity {description.gravity} is not a vector of 3 finite numbers", source=source
        )
    _check_actuation(description)
    for coupling in description.couplings:
        _check_coupling(coupling.name, coupling.joints, coupling.polynomials, description)


def _check_names(description: Description) -> None:
    """Names are unique among bodies, among joints and couplings, and never that of the ground."""
    groups: list[tuple[str, Iterable[str]]] = [
        ("body", (body.name for body in description.bodies)),
        (
            "joint",
            [joint.name for joint in description.joints]
            + [coupling.name for coupling in description.couplings],
        ),
        ("frame", (frame.name for frame in description.frames)),
    ]
    for kind, names in groups:
        for name, count in Counter(names).items():
            if not name.strip():
                raise LoadError(f"a {kind} has no name", source=description.source)
            if count > 1:
                raise LoadError(
                    f"{count} elements of kind {kind} are called '{name}'; names must be unique",
                    source=description.source,
                )
            if kind == "body" and name == GROUND:
                raise LoadError(
                    f"a body must not be called '{GROUND}': that is the world",
                    source=description.source,
                )
    frames = {frame.name for frame in description.frames}
    bodies = {body.name for body in description.bodies}
    joints = {joint.name for joint in description.joints}
    ends = {f"{joint}/{end}" for joint in joints for end in "AB"}
    for kind, name in (
        *(("frame", name) for name in frames & (bodies | joints | ends)),
        *(("name", name) for name in ends & (bodies | joints)),
        *(("joint", name) for name in joints & {"universe"}),
    ):
        raise LoadError(
            f"the {kind} '{name}' is taken: bodies, joints, frames and the ends '<joint>/A' and "
            "'<joint>/B' of loop joints need different names; rename it",
            source=description.source,
        )
    if not description.bodies:
        raise LoadError("the robot has no bodies", source=description.source)


def _check_body(body: Body, source: str) -> None:
    """A mass must not be negative, an inertia must be one."""
    source, line = body.place or (source, None)

    def refuse(problem: str) -> LoadError:
        return LoadError(f"body '{body.name}' {problem}", source=source, line=line)

    if not np.all(np.isfinite([body.mass, *body.com, *body.inertia.flat])):
        raise refuse("has a mass, centre or inertia that is not finite")
    if body.mass < 0:
        raise refuse(f"has negative mass {body.mass} kg; it must be >= 0")
    scale = float(np.max(np.abs(body.inertia)))
    if not np.allclose(body.inertia, body.inertia.T, rtol=0, atol=SAME * scale):
        raise refuse("has an inertia that is not symmetric")


def _check_joint(joint: Joint, bodies: set[str], source: str) -> None:
    """Both ends exist and differ, all numbers are finite, limits are in order."""
    where = f"joint '{joint.name}'"
    source, line = joint.place or (source, None)

    def refuse(problem: str) -> LoadError:
        return LoadError(f"{where} {problem}", source=source, line=line)

    for end in (joint.parent, joint.child):
        if end not in bodies:
            raise refuse(f"joins unknown link '{end}'; known: {', '.join(sorted(bodies)[:12])}")
    if joint.parent == joint.child:
        raise refuse(f"joins link '{joint.parent}' to itself")
    _check_placement(where, joint.frame_parent, source)
    _check_placement(where, joint.frame_child, source)
    if joint.coordinates and joint.coordinates not in joint.pair.tree_joints:
        raise refuse(f"has coordinates '{joint.coordinates}', which a {joint.pair.name} pair lacks")
    for label in ("damping", "friction", "armature", "velocity", "effort"):
        values = getattr(joint, label)
        if any(np.isnan(value) or value < 0 for value in values):
            raise refuse(f"has {label} {values}; it must be >= 0")
        if values and len(values) != joint.pair.dof:
            raise refuse(
                f"has {len(values)} values of {label} where its {joint.pair.name} pair "
                f"has {joint.pair.dof} degrees of freedom"
            )
    sizes = {0, joint.pair.dof, coordinate_count(joint)}
    if len(joint.lower) != len(joint.upper) or len(joint.lower) not in sizes:
        raise refuse(
            f"has {len(joint.lower)} lower and {len(joint.upper)} upper position limits "
            f"where its {joint.pair.name} pair has {joint.pair.dof} degrees of freedom"
        )
    for low, high in zip(joint.lower, joint.upper, strict=True):
        if not low <= high:
            raise refuse(f"has lower limit {low} above upper limit {high}; swap them")


def _check_placement(where: str, placement: pin.SE3, source: str) -> None:
    """A placement must be finite and its rotation one."""
    matrix = placement.homogeneous
    if not np.all(np.isfinite(matrix)):
        raise LoadError(f"{where} has a placement that is not finite", source=source)
    rotation = matrix[:3, :3]
    if np.abs(rotation @ rotation.T - np.eye(3)).max() > ROTATION or np.linalg.det(rotation) < 0:
        raise LoadError(f"{where} has a placement that is not a rotation", source=source)


def _check_actuation(description: Description) -> None:
    """Actuated joints and drives belong to joints that exist."""
    names = {joint.name for joint in description.joints}
    wanted = [*(description.actuated or ()), *(drive.joint for drive in description.drives)]
    for name in wanted:
        if name not in names:
            raise LoadError(
                f"unknown joint '{name}' is called actuated; "
                f"known: {', '.join(sorted(names)[:12])}",
                source=description.source,
            )
    for drive in description.drives:
        if not (np.isfinite(drive.reduction) and drive.reduction != 0):
            raise LoadError(
                f"the drive of joint '{drive.joint}' has reduction {drive.reduction}; "
                "it must be finite and not 0",
                source=description.source,
            )
        if drive.rotor_inertia is not None and not 0 <= drive.rotor_inertia < np.inf:
            raise LoadError(
                f"the drive of joint '{drive.joint}' has rotor inertia {drive.rotor_inertia} "
                "kg m^2; it must be finite and >= 0",
                source=description.source,
            )


def _check_coupling(
    name: str,
    joints: tuple[str, ...],
    polynomials: tuple[tuple[float, ...], ...],
    description: Description,
) -> None:
    """A coupling joins different joints that have one coordinate each."""
    known = {joint.name: joint for joint in description.joints}
    if len(joints) != len(polynomials) or len(set(joints)) != len(joints) or not joints:
        raise LoadError(
            f"coupling '{name}' must name different joints, one polynomial each",
            source=description.source,
        )
    for joint, polynomial in zip(joints, polynomials, strict=True):
        if joint not in known:
            raise LoadError(
                f"coupling '{name}' names unknown joint '{joint}'; "
                f"known: {', '.join(sorted(known)[:12])}",
                source=description.source,
            )
        if known[joint].pair.dof != 1 or known[joint].coordinates == "circle":
            raise LoadError(
                f"coupling '{name}' needs joint '{joint}' to have one coordinate that counts turns",
                source=description.source,
            )
        if len(polynomial) < 2 or not np.all(np.isfinite(polynomial)):
            raise LoadError(
                f"coupling '{name}' has coefficients {polynomial} for joint '{joint}'; "
                "give at least two finite numbers",
                source=description.source,
            )


def warn_of_masses(description: Description, model: pin.Model) -> Description:
    """Return the description with warnings of masses and inertias that are missing or impossible.

    Kinematics needs none of them, and dynamics only a mass matrix that is positive definite, which
    shows when it is used: `lacking_mass` says then what is missing.
    """
    remarks = Remarks()
    seen: set[str] = set()
    places = {
        body.name: f"{PurePath(body.place[0]).name}:{body.place[1]}: "
        for body in description.bodies
        if body.place
    }

    def remark(problem: str, names: Sequence[str], inertia: Array) -> None:
        where = next((places[name] for name in names if name in places), "")
        moments = "" if problem == _MASSLESS else f": principal moments {_moments(inertia)}"
        links = "link " + " + ".join(f"'{name}'" for name in names)
        remarks.about((problem,), " + ".join(names), f"{where}{links} {problem}{moments}")

    for body in description.bodies:
        if _has_negative_moment(body):
            seen.add(body.name)
            remark(_NOT_DEFINITE, [body.name], body.inertia)
    carried = _links_of(model)
    for index, problem in _moving_masses(model):
        names = carried[index]
        if not seen & {*names}:
            remark(problem, names, model.inertias[index].inertia)
    return replace(description, warnings=(*description.warnings, *remarks.texts()))


def lacking_mass(model: pin.Model) -> str:
    """Say which links make the mass matrix singular, as far as single ones do; else ""."""
    lacking = [index for index, problem in _moving_masses(model) if problem != _IMPOSSIBLE]
    # What carries nothing with mass is to blame before what hangs in the middle of a chain.
    ends = [i for i in lacking if not any(model.inertias[k].mass for k in model.subtrees[i])]
    carried = _links_of(model)
    names = [name for index in ends or lacking for name in carried[index]]
    if not names:
        return ""
    verb = "lacks" if len(names) == 1 else "lack"
    return (
        f"; link{'' if len(names) == 1 else 's'} {listed(names)} {verb} mass or inertia: give an "
        "<inertial> with a mass and a positive definite inertia"
    )


def check_cuts(description: Description, tree: SpanningTree) -> Description:
    """Check what the choice of cut joints means; return the description with warnings added.

    Raises:
        LoadError: a coupling needs the coordinate of a joint that is cut.
    """
    cuts = {joint.name: joint for joint in tree.cuts}
    for coupling in description.couplings:
        for name in coupling.joints:
            if name in cuts:
                raise LoadError(
                    f"coupling '{coupling.name}' needs the coordinate of joint '{name}', which "
                    "closes a loop and has none; cut another joint of the loop",
                    source=description.source,
                )
    driven = {drive.joint for drive in description.drives if drive.rotor_inertia}
    warnings = []
    for name, joint in cuts.items():
        lost = [
            label
            for label, values in (
                ("position limits", joint.lower),
                ("velocity limit", joint.velocity),
                ("effort limit", joint.effort),
                ("damping", joint.damping),
                ("friction", joint.friction),
                ("armature", joint.armature),
                ("rotor inertia", name in driven),
            )
            if values
        ]
        if lost:
            warnings.append(
                f"joint '{name}' closes a loop and has no coordinate: its {', '.join(lost)} "
                "are not used"
            )
    for edge in tree.edges:
        joint = edge.joint
        if joint.lower and len(joint.lower) != coordinate_count(joint, edge.orientation):
            warnings.append(f"joint '{joint.name}': position limits on rotations are not used")
    return replace(description, warnings=(*description.warnings, *warnings))


def _moments(inertia: Array) -> str:
    return ", ".join(f"{moment:.3g}" for moment in np.linalg.eigvalsh(inertia)) + " kg m^2"


def _has_negative_moment(body: Body) -> bool:
    moments = np.linalg.eigvalsh(body.inertia)
    # Below a radius of gyration of a micrometre, a sign is rounding.
    return bool(moments[0] < -SAME * moments[2] - GYRATION * body.mass - MOMENT_DUST)


def _links_of(model: pin.Model) -> dict[int, list[str]]:
    """Names of the links that each joint carries."""
    carried: dict[int, list[str]] = {index: [] for index in range(model.njoints)}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            carried[frame.parentJoint].append(frame.name)
    return carried


def _moving_masses(model: pin.Model) -> Iterator[tuple[int, str]]:
    """Joints that carry an odd mass, and what is odd about it."""
    for index in range(1, model.njoints):
        inertia, joint = model.inertias[index], model.joints[index]
        if np.all(model.armature[joint.idx_v : joint.idx_v + joint.nv] > 0):
            continue
        low, middle, high = np.linalg.eigvalsh(inertia.inertia)
        if inertia.mass == 0 and high <= 0:
            yield index, _MASSLESS
        elif low <= POINT_MASS * max(high, TINY):
            # A point mass is admissible as long as something gives every joint inertia.
            yield index, _NOT_DEFINITE
        elif high > (1 + TRIANGLE) * (low + middle):
            yield index, _IMPOSSIBLE
