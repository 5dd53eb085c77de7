"""Is a description a possible machine? Errors stop it, warnings travel with it.

Every reader's result passes here once, so that no format has checks of its own for what must hold
for all: unique names, references that exist, finite numbers, masses that move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
from ..boundary.values import origin
from ..boundary.xml import Remarks
from ..errors import LoadError, listed
from ..tolerances import CLOSED, GYRATION, MOMENT_DUST, POINT_MASS, ROTATION, SAME, TINY, TRIANGLE
from .description import (
    GROUND,
    LOSSES,
    Body,
    Coupling,
    Description,
    Geometry,
    Joint,
    NamedFrame,
    coordinate_count,
)
from .graph import SpanningTree
from .pairs import Pair
from .tree import motion_of

Place = tuple[str, int] | None
"""File and line of an element, if they are known."""

_MOST_MOVING = 5000
"""Joints that move; Pinocchio's matrices for so many have 25 million numbers each."""
_MOST_JOINTS = 50_000
"""All joints: Pinocchio looks through all frames for each one that it adds, half a minute here."""
_LOST = {"lower": "position limits", "armature": "armature"}
"""Properties of a joint that a cut one cannot have, as they are called in messages."""
_NOT_IN_STOPS = {
    "velocity": "velocity limit",
    "effort": "effort limit",
    "damping": "damping",
    "friction": "friction",
}
"""Those that runs and drives know of every joint, stops of those with coordinates."""
_MASSLESS = "moves but has no mass"
_NOT_DEFINITE = "has an inertia that is not positive definite"
_IMPOSSIBLE = "has an inertia that no distribution of mass can have (triangle inequality)"


def check_description(description: Description) -> None:
    """Check names, references and numbers of a description; a `LoadError` says what is wrong."""
    for problem, place in _problems(description):
        source, line = place or (description.source, None)
        raise LoadError(problem, source=source, line=line)


def _problems(description: Description) -> Iterator[tuple[str, Place]]:
    """What is wrong, element by element, with the element's place in its file."""
    pairs = [joint.pair for joint in description.joints]
    moving = sum(pair.dof > 0 for pair in pairs if isinstance(pair, Pair))
    if moving > _MOST_MOVING:
        problem = f"has {moving} joints that move; at most {_MOST_MOVING} are possible, because "
        yield problem + "mass matrices are dense", None
    if len(description.joints) > _MOST_JOINTS:
        problem = f"has {len(description.joints)} joints; at most {_MOST_JOINTS} are possible, "
        yield (
            problem + "fixed ones included: the time to build a model grows with their square",
            None,
        )
    bodies = {body.name for body in description.bodies} | {GROUND}
    joints = {joint.name: joint for joint in description.joints}
    yield from ((problem, None) for problem in _wrong_names(description))
    for body in description.bodies:
        for problem in _wrong_body(body):
            yield f"body '{body.name}' {problem}", body.place
    for joint in description.joints:
        for problem in _wrong_joint(joint, bodies):
            yield f"joint '{joint.name}' {problem}", joint.place
    things: list[NamedFrame | Geometry] = [*description.frames, *description.geometry]
    for thing in things:
        if thing.body not in bodies:
            yield f"'{thing.name}' sits on unknown body '{thing.body}'", None
        for problem in _wrong_placement(thing.placement):
            yield f"'{thing.name}' {problem}", None
    if description.base is not None and description.base not in bodies - {GROUND}:
        yield f"base body '{description.base}' does not exist", None
    if not (np.shape(description.gravity) == (3,) and np.all(np.isfinite(description.gravity))):
        yield f"gravity {description.gravity} is not a vector of 3 finite numbers", None
    yield from ((problem, None) for problem in _wrong_actuation(description, joints))
    for coupling in description.couplings:
        for problem in _wrong_coupling(coupling, joints):
            yield f"coupling '{coupling.name}' {problem}", None


def _wrong_names(description: Description) -> Iterator[str]:
    """Names are unique among bodies, among joints and couplings, and never that of the ground."""
    bodies = [body.name for body in description.bodies]
    joints = [joint.name for joint in description.joints]
    frames = [frame.name for frame in description.frames]
    couplings = [coupling.name for coupling in description.couplings]
    for kind, names in (("body", bodies), ("joint", joints + couplings), ("frame", frames)):
        for name, count in Counter(names).items():
            if not name.strip():
                yield f"a {kind} has no name"
            if count > 1:
                yield f"{count} elements of kind {kind} are called '{name}'; names must be unique"
            if kind == "body" and name == GROUND:
                yield f"a body must not be called '{GROUND}': that is the world"
    ends = {f"{joint}/{end}" for joint in joints for end in "AB"}
    for kind, name in (
        *(("frame", name) for name in {*frames} & ({*bodies, *joints} | ends)),
        *(("name", name) for name in ends & {*bodies, *joints}),
        *(("joint", name) for name in {*joints} & {"universe"}),
    ):
        yield (
            f"the {kind} '{name}' is taken: bodies, joints, frames and the ends '<joint>/A' and "
            "'<joint>/B' of loop joints need different names; rename it"
        )
    if not bodies:
        yield "the robot has no bodies"


def _wrong_body(body: Body) -> Iterator[str]:
    """A mass must not be negative, an inertia must be one."""
    if not np.all(np.isfinite([body.mass, *body.com, *body.inertia.flat])):
        yield "has a mass, centre or inertia that is not finite"
    if body.mass < 0:
        yield f"has negative mass {body.mass} kg; it must be >= 0"
    scale = float(np.max(np.abs(body.inertia)))
    if np.abs(body.inertia - body.inertia.T).max() > SAME * scale:
        yield "has an inertia that is not symmetric"


def _wrong_joint(joint: Joint, bodies: set[str]) -> Iterator[str]:
    """Both ends exist and differ, all numbers are finite, limits are in order."""
    pair = joint.pair
    yield from _wrong_pair(pair)
    if joint.cut is not True and origin(type(pair)) is not None:
        yield from _wrong_motion(pair)
    for end in (joint.parent, joint.child):
        if end not in bodies:
            yield f"joins unknown link '{end}'; known: {', '.join(sorted(bodies)[:12])}"
    if joint.parent == joint.child:
        yield f"joins link '{joint.parent}' to itself"
    yield from _wrong_placement(joint.frame_parent)
    yield from _wrong_placement(joint.frame_child)
    if joint.coordinates and joint.coordinates not in pair.tree_joints:
        yield f"has coordinates '{joint.coordinates}', which a {pair.name} pair does not have"
    freedoms = f"where its {pair.name} pair has {pair.dof} degrees of freedom"
    for label in (*LOSSES, "velocity", "effort"):
        values = getattr(joint, label)
        if any(np.isnan(value) or value < 0 for value in values):
            yield f"has {label} {', '.join(f'{value:g}' for value in values)}; it must be >= 0"
        if values and len(values) != pair.dof:
            yield f"has {len(values)} values of {label} {freedoms}"
    sizes = {0, pair.dof, coordinate_count(joint)}
    if len(joint.lower) != len(joint.upper) or len(joint.lower) not in sizes:
        counts = f"{len(joint.lower)} lower and {len(joint.upper)} upper position limits"
        yield f"has {counts} {freedoms}"
    for low, high in zip(joint.lower, joint.upper, strict=True):
        if not low <= high:
            yield f"has lower limit {low} above upper limit {high}; swap them"


def _wrong_pair(pair: object) -> Iterator[str]:
    """A pair that is not pinloop's own gives as many numbers as it has rows."""
    if not isinstance(pair, Pair):
        yield f"has {pair!r} as its pair; it must be a Pair, such as make_pair('revolute')"
    elif origin(type(pair)) is not None:
        T, V = pin.exp6(np.array([0.3, -0.2, 0.5, 0.4, 0.1, -0.3])), np.arange(1.0, 7.0)
        try:
            rows = pair.rows
            numbers = {
                "residual": (pair.residual(T), (rows,)),
                "selector": (pair.selector(T), (rows, 6)),
                "bias": (pair.bias(T, V), (rows,)),
            }
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            yield f"has the pair {type(pair).__qualname__}, which fails: {problem}"
            return
        for label, (value, shape) in numbers.items():
            if np.shape(value) != shape:
                yield (
                    f"has the pair {type(pair).__qualname__}, whose {label} has shape "
                    f"{np.shape(value)}; with {rows} labels it must be {shape}"
                )


def _wrong_motion(pair: Pair) -> Iterator[str]:
    """A pair that is not pinloop's own moves in the tree as its rows say."""
    name = type(pair).__qualname__
    if pair.tree_joints and len(pair.tree_joints[""].labels) != pair.dof:
        count = len(pair.tree_joints[""].labels)
        yield f"has the pair {name} with {pair.dof} degrees of freedom and {count} coordinates"
    elif pair.tree_joints and pair.dof and pair.rows:
        missed = np.abs(pair.residual(motion_of(pair, 0.1 + 0.3 * np.arange(pair.dof)))).max()
        if missed > CLOSED:
            yield (
                f"has the pair {name}, whose tree_joints leave its rows: the residual is "
                f"{missed:.2g} where it must be 0; cut the joint, or describe its motion"
            )


def _wrong_placement(placement: pin.SE3) -> Iterator[str]:
    """A placement must be finite and its rotation one."""
    matrix = placement.homogeneous
    rotation = matrix[:3, :3]
    if not np.all(np.isfinite(matrix)):
        yield "has a placement that is not finite"
    elif np.abs(rotation @ rotation.T - np.eye(3)).max() > ROTATION or np.linalg.det(rotation) < 0:
        yield "has a placement that is not a rotation"


def _wrong_actuation(description: Description, joints: Mapping[str, Joint]) -> Iterator[str]:
    """Actuated joints and drives belong to joints that exist."""
    for name in (*(description.actuated or ()), *(drive.joint for drive in description.drives)):
        if name not in joints:
            known = ", ".join(sorted(joints)[:12])
            yield f"unknown joint '{name}' is called actuated; known: {known}"
    for drive in description.drives:
        of_joint, inertia = f"the drive of joint '{drive.joint}' has", drive.rotor_inertia
        if not (np.isfinite(drive.reduction) and drive.reduction != 0):
            yield f"{of_joint} reduction {drive.reduction}; it must be finite and not 0"
        if inertia is not None and not 0 <= inertia < np.inf:
            yield f"{of_joint} rotor inertia {inertia} kg m^2; it must be finite and >= 0"


def _wrong_coupling(coupling: Coupling, joints: Mapping[str, Joint]) -> Iterator[str]:
    """A coupling joins different joints that have one coordinate each."""
    names, rows = coupling.joints, coupling.polynomials
    if len(names) != len(rows) or len(set(names)) != len(names) or not names:
        yield "must name different joints, one polynomial each"
    for name, row in zip(names, rows, strict=True):
        if name not in joints:
            yield f"names unknown joint '{name}'; known: {', '.join(sorted(joints)[:12])}"
        if joints[name].pair.dof != 1 or joints[name].coordinates == "circle":
            yield f"needs joint '{name}' to have one coordinate that counts turns"
        if len(row) < 2 or not np.all(np.isfinite(row)):
            yield f"has coefficients {row} for joint '{name}'; give at least two finite numbers"


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
    between, carried = _between(description), _links_of(model)
    for index, problem in _moving_masses(model):
        names = carried[index]
        if not (seen | between) & {*names}:
            remark(problem, names, model.inertias[index].inertia)
    return replace(description, warnings=(*description.warnings, *remarks.texts()))


def lacking_mass(description: Description, model: pin.Model) -> str:
    """Say which links make the mass matrix singular, as far as single ones do; else ""."""
    lacking = [index for index, problem in _moving_masses(model) if problem != _IMPOSSIBLE]
    # What carries nothing with mass is to blame before what hangs in the middle of a chain.
    ends = [i for i in lacking if not any(model.inertias[k].mass for k in model.subtrees[i])]
    between, carried = _between(description), _links_of(model)
    names = [name for index in ends or lacking for name in carried[index] if name not in between]
    if not names:
        return ""
    verb = "lacks" if len(names) == 1 else "lack"
    return (
        f"; link{'' if len(names) == 1 else 's'} {listed(names)} {verb} mass or inertia: give an "
        "<inertial> with a mass and a positive definite inertia"
    )


def check_cuts(description: Description, tree: SpanningTree) -> Description:
    """Check what the choice of cut joints means; return the description with warnings added."""
    cuts = {joint.name: joint for joint in tree.cuts}
    for coupling in description.couplings:
        loops = {name: cuts[name] for name in coupling.joints if name in cuts}
        home = pin.SE3.Identity()
        bare = [name for name, x in loops.items() if np.isnan(x.pair.coordinates(home)).any()]
        if bare or coupling.turn_period(loops) is None:
            names = ", ".join(f"'{name}'" for name in bare or loops)
            raise LoadError(
                f"coupling '{coupling.name}' needs to know how often {names} turned, which closes "
                "a loop, so that its angle is known up to whole turns: give limits within one turn "
                "or a ratio of whole numbers up to 1000, or let the joint be in the tree",
                source=description.source,
            )
    driven = {drive.joint for drive in description.drives if drive.rotor_inertia}
    warnings = []
    for name, joint in cuts.items():
        lost, unknown = (
            [label for key, label in labels.items() if getattr(joint, key)]
            for labels in (_LOST, _NOT_IN_STOPS)
        )
        lost += ["rotor inertia"] if name in driven else []
        for values, unused in ((lost, "not used"), (unknown, "not used in stops")):
            if values:
                where = f"joint '{name}' closes a loop and has no coordinate"
                warnings.append(f"{where}; {unused}: {', '.join(values)}")
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


def _between(description: Description) -> set[str]:
    return {body.name for body in description.bodies if body.is_between}


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
