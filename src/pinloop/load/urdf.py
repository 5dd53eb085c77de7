"""URDF, and the elements of our own with which it can say what URDF cannot.

Own additions, ignored by other readers: any pair name as joint ``type`` with ``pitch`` or
``length``, ``<axis2>`` of a universal joint, a pose of the joint on the child
(``<child link xyz rpy>``), ``coordinates``, ``armature`` in ``<dynamics>``, and ``<frame>``.
Loop elements are read in `urdf_loops`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import pinocchio as pin

from ..description import (
    COORDINATES,
    GROUND,
    Body,
    Coordinates,
    Coupling,
    Description,
    Joint,
    NamedFrame,
    constant,
)
from ..errors import BadValue
from ..pairs import Pair, align_z
from .entries import square_axes
from .packages import Resolver
from .urdf_drives import read_drives
from .urdf_loops import read_loops, read_pair
from .urdf_shapes import missing_meshes, read_colors, read_geometry
from .xmltools import Element, pose_of

__all__ = ["read_urdf"]

_IRRELEVANT = {
    "material", "gazebo", "transmission", "ros2_control", "sensor", "camera", "group", "version",
    "verbose", "contact", "self_collision_checking", "self_collide", "collision_checking",
    "origin", "kinematics", "static", "spec",
}  # fmt: skip
"""Elements that say nothing about mechanics, or are read elsewhere."""


def read_urdf(root: Element, *, resolve: Resolver) -> Description:
    """Read a ``<robot>``.

    Args:
        root: the root element.
        resolve: finds mesh files.
    """
    if any(child.tag.startswith("xacro:") for child in root.children):
        raise root.error("still holds xacro macros; run xacro on it first")
    links = root.all("link")
    if not links:
        raise root.error("has no <link>; is this a URDF?")
    warnings: list[str] = []
    name = (root.get("name") or "").strip()
    if not name:
        warnings.append(f"{root.source}: the robot has no name")
    base = _base(root, links)
    if base is not None:
        _rename_ground(root, warnings)
    bodies = [_body(link) for link in links if link.require("name") != GROUND]
    joints, couplings, independent = _joints(root, warnings)
    actuated, drives = read_drives(root, {joint.name for joint in joints}, warnings)
    colors = read_colors(root)
    lost: list[Element] = []
    geometry = [g for link in links for g in read_geometry(link, colors, resolve, warnings, lost)]
    warnings += missing_meshes(lost)
    frames = [
        NamedFrame(frame.require("name"), frame.require("link"), pose_of(frame))
        for frame in root.all("frame")
    ]
    description = Description(
        name=name or "robot",
        bodies=tuple(bodies),
        joints=tuple(joints),
        base=base,
        couplings=tuple(couplings),
        actuated=actuated or (tuple(independent) or None),
        drives=tuple(drives),
        frames=tuple(frames),
        geometry=tuple(geometry),
        source=root.source,
    )
    description = read_loops(root, description)
    warnings += _unknown(root)
    return replace(description, warnings=(*description.warnings, *warnings))


def _base(root: Element, links: list[Element]) -> str | None:
    """The one link that no joint carries; None if it is the ground itself."""
    names = Counter(link.require("name") for link in links)
    for link in links:
        if names[link.require("name")] > 1:
            raise link.error("is declared twice; link names must be unique")
    children = {joint.need("child").require("link") for joint in root.all("joint")}
    roots = [name for name in names if name not in children]
    if not roots:
        cycle = ", ".join(repr(joint.require("name")) for joint in root.all("joint")[:8])
        raise root.error(
            f"has no root link: the joints {cycle} form a cycle; write one of them as <loop_joint>"
        )
    if len(roots) > 1:
        raise root.error(
            f"has {len(roots)} root links ({', '.join(map(repr, roots[:8]))}); "
            "join all but one to another link"
        )
    return None if roots[0] == GROUND else roots[0]


def _rename_ground(root: Element, warnings: list[str]) -> None:
    """A link called like the world, that is not the root, gets another name."""
    if all(link.get("name") != GROUND for link in root.all("link")):
        return
    taken = {link.get("name") for link in root.all("link")}
    name = next(n for k in count(1) if (n := f"{GROUND}_link" + "_" * (k - 1)) not in taken)
    warnings.append(f"{root.source}: link '{GROUND}' is called '{name}' here, as that is the world")
    queue = [root]
    while queue:
        element = queue.pop()
        queue += element.children
        named = element.tag == "link" or element.tag.startswith("drake:")
        for key in ("link", "name") if named else ("link",):
            if element.get(key) == GROUND:
                element.attributes[key] = name
        if element.tag in ("parent", "child") and element.text.strip() == GROUND:
            element.text = name


def _body(link: Element) -> Body:
    """Link with mass, centre of mass and inertia, all in the link frame."""
    name = link.require("name")
    inertial = link.first("inertial")
    if inertial is None:
        return Body(name)
    mass = inertial.need("mass").number("value")
    if mass < 0:
        raise link.error(f"has negative mass {mass} kg; it must be >= 0")
    placement = pose_of(inertial.first("origin"))
    tensor = np.zeros((3, 3))
    inertia = inertial.first("inertia")
    if inertia is not None:
        for i, row in enumerate("xyz"):
            for j, column in enumerate("xyz"[i:], start=i):
                tensor[i, j] = tensor[j, i] = inertia.number(f"i{row}{column}", 0.0)
    rotation = placement.rotation
    return Body(
        name, mass, constant(placement.translation), constant(rotation @ tensor @ rotation.T)
    )


def _joints(root: Element, warnings: list[str]) -> tuple[list[Joint], list[Coupling], list[str]]:
    """Joints in Pinocchio's order (by name), mimic couplings, independent joints."""
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    independent: list[str] = []
    carried: dict[str, str] = {}
    moving = {e.get("name") for e in root.all("joint") if read_pair(e).dof}
    for element in root.all("joint"):
        joint = _joint(element, warnings)
        if joint.child in carried:
            joint = replace(joint, cut=True)
            warnings.append(
                f"{root.source}:{element.line}: link '{joint.child}' has a second parent; joint "
                f"'{joint.name}' closes a loop with '{carried[joint.child]}' (cut the other one "
                "with 'cut:' in a loops file)"
            )
        else:
            carried[joint.child] = joint.name
        joints.append(joint)
        mimic = element.first("mimic")
        if mimic is not None:
            couplings += _mimic(mimic, joint, moving, warnings)
        if (element.get("independent") or "").lower() == "true":
            independent.append(joint.name)
    # The order in which urdfdom, and with it Pinocchio, visits the children of a link.
    return sorted(joints, key=lambda joint: joint.name), couplings, independent


def _joint(element: Element, warnings: list[str]) -> Joint:
    """One ``<joint>``."""
    kind = element.require("type").lower()
    pair = read_pair(element)
    child = element.need("child")
    turn = _axes(element, pair)
    values = _limits(element, kind, pair.dof) | _losses(element, pair)
    joint = Joint(
        name=element.require("name"),
        pair=pair,
        parent=element.need("parent").require("link"),
        child=child.require("link"),
        frame_parent=pose_of(element.first("origin")) * turn,
        frame_child=pose_of(child) * turn,
        cut=False,
        coordinates=_coordinates(element),
        lower=values.get("lower", ()),
        upper=values.get("upper", ()),
        velocity=values.get("velocity", ()),
        effort=values.get("effort", ()),
        damping=values.get("damping", ()),
        friction=values.get("friction", ()),
        armature=values.get("armature", ()),
    )
    if not joint.lower and kind in ("revolute", "prismatic"):
        warnings.append(
            f"{element.source}:{element.line}: joint '{joint.name}' has no position limits"
        )
    return joint


def _losses(element: Element, pair: Pair) -> dict[str, tuple[float, ...]]:
    """Damping, friction and armature; URDF has one number for all degrees of freedom."""
    dynamics = element.first("dynamics")
    if dynamics is None or pair.dof == 0:
        return {}
    values = {
        key: tuple(map(float, dynamics.numbers(text, None, key)))
        for key in ("damping", "friction", "armature")
        if (text := dynamics.get(key)) is not None
    }
    spread = {key: v * pair.dof if len(v) == 1 else v for key, v in values.items()}
    return {key: v for key, v in spread.items() if any(v)}


def _mimic(
    mimic: Element, joint: Joint, moving: set[str | None], warnings: list[str]
) -> list[Coupling]:
    """Coupling of a mimic joint; none if one of the two joints does not move."""
    source = mimic.require("joint")
    if source not in moving or joint.name not in moving:
        lacking = source if source not in moving else joint.name
        warnings.append(
            f"{mimic.source}:{mimic.line}: joint '{joint.name}' mimics '{source}', but "
            f"'{lacking}' does not move; the mimic is left out"
        )
        return []
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return [Coupling.linear(f"{joint.name}:mimic", joint.name, source, ratio, offset)]


def _axes(element: Element, pair: Pair) -> pin.SE3:
    """Rotation from the joint frame to the pair frame, whose z (and x) are the axes."""
    if pair.name in ("fixed", "free", "spherical", "spatial_translation"):
        return pin.SE3.Identity()
    axis = element.first("axis")
    given = axis.vector("xyz", (1.0, 0.0, 0.0)) if axis is not None else np.array([1.0, 0.0, 0.0])
    z = (axis or element).unit_vector(given)
    if pair.name != "universal":
        return pin.SE3(align_z(z), np.zeros(3))
    second = element.need("axis2")
    x = second.unit_vector(second.vector("xyz"), "axis2")
    try:
        return pin.SE3(square_axes(z, x), np.zeros(3))
    except BadValue as error:
        raise element.error(f"is universal, but its {error}") from None


def _coordinates(element: Element) -> Coordinates:
    """Our attribute for the variant of a joint's coordinates."""
    value = element.get("coordinates") or ""
    if value in COORDINATES:
        return value
    raise element.error(f"has coordinates '{value}', which is none of {', '.join(COORDINATES[1:])}")


def _limits(element: Element, kind: str, dof: int) -> dict[str, tuple[float, ...]]:
    """Position, velocity and effort limits; a continuous joint has no position limits."""
    limit = element.first("limit")
    if limit is None or kind == "fixed":
        return {}
    values = {
        key: tuple(_words(limit, text, key))
        for key in ("lower", "upper", "velocity", "effort")
        if (text := limit.get(key)) is not None and text.strip()
    }
    if kind == "continuous":
        values.pop("lower", None)
        values.pop("upper", None)
    for key in ("velocity", "effort"):
        if len(values.get(key, ())) == 1:
            values[key] = values[key] * dof
    for one, other in (("lower", "upper"), ("upper", "lower")):
        if one in values and other not in values:
            values[other] = (0.0,) * len(values[one])
    return values


def _words(limit: Element, text: str, key: str) -> list[float]:
    """Numbers of a limit; infinite ones are welcome here."""
    words = text.split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        raise limit.error(f"has {key} '{text}', which is not a number") from None
    if any(np.isnan(number) for number in numbers):
        raise limit.error(f"has {key} '{text}', which is not a number")
    return numbers


_KNOWN = {
    "robot": {"link", "joint", "frame", "loop_joint", "loop", "coupling", "constraint"},
    "link": {"inertial", "visual", "collision"},
    "inertial": {"mass", "inertia"},
    "visual": {"geometry"},
    "collision": {"geometry"},
    "joint": {"parent", "child", "axis", "axis2", "limit", "dynamics", "mimic",
              "safety_controller", "calibration"},
    "loop_joint": {"link1", "link2", "axis", "axis2"},
    "loop": {"predecessor", "successor", "axis", "axis2"},
    "constraint": {"predecessor", "successor", "axis", "axis2", "parent", "parent_origin",
                   "parent_axis", "child", "child_origin", "child_axis"},
    "coupling": {"predecessor", "successor", "ratio"},
    "predecessor": set(),
    "successor": set(),
    "limit": set(),
    "dynamics": set(),
}  # fmt: skip
"""Elements that are read, by the element that holds them."""


def _unknown(root: Element) -> list[str]:
    """Warn of elements that nobody reads, once per kind and place."""
    seen: dict[tuple[str, str], int] = {}
    queue = [root]
    while queue:
        parent = queue.pop(0)
        for child in parent.children:
            if child.tag in _KNOWN[parent.tag]:
                queue += [child] if child.tag in _KNOWN else []
            elif child.tag not in _IRRELEVANT and not child.tag.startswith("drake:"):
                seen.setdefault((parent.tag, child.tag), child.line)
    return [
        f"{root.source}:{line}: element <{tag}> in <{parent}> is not understood; left out"
        for (parent, tag), line in seen.items()
    ]
