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
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.xml import Element, Remarks, pose_of
from ...errors import BadValue
from ...model.description import (
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
from ...model.pairs import Pair, align_z
from ...tolerances import SAME_PLACE
from ..entries import free_root, ordered, square_axes, unlimited
from ..packages import Resolver
from ..tree_placements import moving_path
from ..vocabulary import URDF, report_unread
from .drives import read_drives
from .gazebo import read_gazebo
from .loops import read_loops, read_pair
from .shapes import read_colors, read_geometry, report_missing

__all__ = ["read_urdf"]

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_WORLD = "world"
"""What is called so need not be declared: it is the ground."""


def read_urdf(root: Element, *, resolve: Resolver) -> Description:
    """Read a ``<robot>``.

    Args:
        root: the root element.
        resolve: finds mesh files.
    """
    links = root.all("link")
    if not links:
        raise root.error("has no <link>; is this a URDF?")
    remarks = Remarks()
    name = (root.get("name") or "").strip()
    if not name:
        remarks.add(root, "has no name")
    _check_ends(root, links, remarks)
    base, floating = _roots(root, links, remarks)
    bodies = [_body(link, remarks) for link in links if link.require("name") != GROUND]
    joints, couplings = _joints(root, remarks)
    actuated, drives = read_drives(root, {joint.name for joint in joints}, remarks)
    colors = read_colors(root)
    lost: list[Element] = []
    geometry = [g for link in links for g in read_geometry(link, colors, resolve, remarks, lost)]
    report_missing(lost, remarks)
    frames = [
        NamedFrame(frame.require("name"), frame.require("link"), pose_of(frame))
        for frame in root.all("frame")
    ] + [
        NamedFrame(
            frame.require("name"),
            frame.need("parent").require("link"),
            pose_of(frame.first("origin")),
        )
        for frame in root.all("fixed_frame")
    ]
    independent = [
        e.require("name") for e in root.all("joint") if _word(e, "independent") == "true"
    ]
    description = Description(
        name=name or "robot",
        bodies=tuple(bodies),
        joints=(*floating, *joints),
        base=base,
        couplings=tuple(couplings),
        actuated=actuated or (tuple(independent) or None),
        drives=tuple(drives),
        frames=tuple(frames),
        geometry=tuple(geometry),
        source=root.source,
    )
    description = read_gazebo(root, read_loops(root, description, remarks), remarks)
    _warn_of_dependent(root, description, remarks)
    report_unread(root, URDF, remarks)
    return replace(description, warnings=remarks.texts())


def _word(element: Element, attribute: str) -> str:
    return (element.get(attribute) or "").strip().lower()


def _check_ends(root: Element, links: list[Element], remarks: Remarks) -> None:
    """Check that links have names of their own and joints join links that are declared.

    A parent "world" need not be: it is the ground. A link called like the ground, that is not, gets
    another name.
    """
    names = Counter(link.require("name") for link in links)
    for link in links:
        if names[link.require("name")] > 1:
            raise link.error("is declared twice; link names must be unique")
    around: list[Element] = []
    for joint in root.all("joint"):
        parent, child = joint.need("parent"), joint.need("child")
        for end in (parent, child):
            if end is parent and end.require("link") == _WORLD and _WORLD not in names:
                around.append(end)
            elif end.require("link") not in names:
                raise joint.unknown("link", end.require("link"), names)
        if child.get("link") == GROUND:
            around.append(child)
    if around:
        _rename_ground(root, remarks)
    for end in around:
        if end.get("link") == _WORLD:
            end.attributes["link"] = GROUND


def _roots(root: Element, links: list[Element], remarks: Remarks) -> tuple[str | None, list[Joint]]:
    """The link welded to the ground, None if it is the ground; and joints of roots that float.

    Where the world is a root of its own, all other roots float, as in Drake.
    """
    joints = root.all("joint")
    children = {joint.need("child").require("link") for joint in joints}
    parents = {joint.need("parent").require("link") for joint in joints}
    roots = {link.require("name"): link for link in links if link.require("name") not in children}
    base = next((name for name in (GROUND, _WORLD) if name in roots), None)
    if GROUND in parents:
        base = GROUND
    if base is None:
        if not roots:
            cycle = ", ".join(repr(joint.require("name")) for joint in joints[:8])
            raise root.error(
                f"has no root link: the joints {cycle} form a cycle; write one of them as "
                "<loop_joint>"
            )
        if len(roots) > 1:
            raise root.error(
                f"has {len(roots)} root links ({', '.join(map(repr, [*roots][:8]))}); "
                "join all but one to another link"
            )
        base = next(iter(roots))
    floating: list[Joint] = []
    for name, link in roots.items():
        if name != base:
            remarks.add(link, f"has no parent and floats, as '{_WORLD}' is a root of its own")
            floating.append(free_root(f"root_joint_{name}" if floating else "root_joint", name))
    return None if base == GROUND else base, floating


def _rename_ground(root: Element, remarks: Remarks) -> None:
    """A link called like the world, that is not the root, gets another name."""
    if all(link.get("name") != GROUND for link in root.all("link")):
        return
    taken = {link.get("name") for link in root.all("link")}
    name = next(n for k in count(1) if (n := f"{GROUND}_link" + "_" * (k - 1)) not in taken)
    remarks.say(f"link '{GROUND}' is called '{name}' here, as that is the world")
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


def _body(link: Element, remarks: Remarks) -> Body:
    """Link with mass, centre of mass and inertia, all in the link frame."""
    name = link.require("name")
    if not pose_of(link.first("origin")).isIdentity(SAME_PLACE):
        remarks.add(link, "has an <origin> of its own, which is not read; write it in its joint")
    inertial = link.first("inertial")
    if inertial is None:
        return Body(name, place=link.place)
    given = inertial.first("mass")
    if given is None:
        remarks.add(link, "has an <inertial> without <mass>, taken as 0")
    mass = 0.0 if given is None else given.number("value")
    if mass < 0:
        raise link.error(f"has negative mass {mass} kg; it must be >= 0")
    placement = pose_of(inertial.first("origin"))
    tensor = np.zeros((3, 3))
    inertia = inertial.first("inertia")
    if inertia is not None:
        if missing := [key for key in ("ixx", "iyy", "izz") if inertia.get(key) is None]:
            remarks.add(link, f"has an inertia without {', '.join(missing)}, taken as 0")
        xx, xy, xz, yy, yz, zz = (inertia.number(key, 0.0) for key in _MOMENTS)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        for key, value in (("iyx", xy), ("izx", xz), ("izy", yz)):
            if inertia.get(key) is not None and inertia.number(key) != value:
                remarks.add(link, f"has {key} other than i{key[:0:-1]}, which is taken")
    rotation = placement.rotation
    return Body(
        name,
        mass,
        constant(placement.translation),
        constant(rotation @ tensor @ rotation.T),
        link.place,
    )


def _joints(root: Element, remarks: Remarks) -> tuple[list[Joint], list[Coupling]]:
    """Joints in Pinocchio's order (by name) and mimic couplings."""
    joints: list[Joint] = []
    couplings: list[Coupling] = []
    carried: dict[str, str] = {}
    read = [_joint(element, remarks) for element in root.all("joint")]
    moving = {joint.name for joint in read if joint.pair.dof}
    for element, joint in zip(root.all("joint"), read, strict=True):
        if joint.child in carried:
            joint = replace(joint, cut=True)
            remarks.add(
                element,
                f"closes a loop with '{carried[joint.child]}': link '{joint.child}' has a second "
                "parent (cut the other one with 'cut:' in a loops file)",
            )
        else:
            carried[joint.child] = joint.name
        joints.append(joint)
        mimic = element.first("mimic")
        if mimic is not None:
            couplings += _mimic(mimic, element, moving, remarks)
    # The order in which urdfdom, and with it Pinocchio, visits the children of a link.
    return sorted(joints, key=lambda joint: joint.name), couplings


def _warn_of_dependent(root: Element, description: Description, remarks: Remarks) -> None:
    """URDF+ marks joints that others determine; warn of those that nothing in the file does."""
    closed = [joint for joint in description.joints if joint.cut]
    determined = {name for coupling in description.couplings for name in coupling.joints}
    for joint in closed:
        for link in (joint.parent, joint.child):
            determined.update(moving_path(link, description))
    for element in root.all("joint"):
        if (word := _word(element, "independent")) not in ("", "true", "false"):
            remarks.add(element, f"has independent '{word}', which is neither true nor false")
        if word == "false" and element.get("name") not in determined:
            remarks.add(
                element,
                "is declared dependent, but no <loop> or <coupling> determines it: it moves freely",
                "; add what is missing in a loops file",
            )


def _joint(element: Element, remarks: Remarks) -> Joint:
    """One ``<joint>``."""
    kind = element.require("type").lower()
    pair = read_pair(element)
    child = element.need("child")
    turn = _axes(element, pair)
    joint = Joint(
        name=element.require("name"),
        pair=pair,
        parent=element.need("parent").require("link"),
        child=child.require("link"),
        frame_parent=pose_of(element.first("origin")) * turn,
        frame_child=pose_of(child) * turn,
        cut=False,
        coordinates=_coordinates(element),
        place=element.place,
        **_limits(element, kind, pair.dof, remarks),
        **_losses(element, pair),
    )
    if not joint.lower and kind in ("revolute", "prismatic"):
        remarks.add(element, "has no position limits")
    return joint


def _losses(element: Element, pair: Pair) -> dict[str, Any]:
    """Damping, friction and armature; URDF has one number for all degrees of freedom."""
    if pair.dof == 0:
        return {}
    # onshape-to-robot and some tutorials write <joint_properties>.
    values = {
        key: tuple(map(float, dynamics.numbers(text, None, key)))
        for dynamics in element.all("joint_properties", "dynamics")
        for key in ("damping", "friction", "armature")
        if (text := dynamics.get(key)) is not None
    }
    for key, numbers in values.items():
        if any(number < 0 for number in numbers):
            raise element.error(f"has {key} {numbers}; it must be >= 0")
    spread = {key: v * pair.dof if len(v) == 1 else v for key, v in values.items()}
    return {key: v for key, v in spread.items() if any(v)}


def _mimic(mimic: Element, joint: Element, moving: set[str], remarks: Remarks) -> list[Coupling]:
    """Coupling of a mimic joint; none if one of the two joints does not move."""
    source, name = mimic.require("joint"), joint.require("name")
    if source not in moving:
        remarks.add(joint, f"mimics '{source}', which does not move; the mimic is left out")
        return []
    if name not in moving:
        remarks.add(joint, "does not move; its mimic is left out")
        return []
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return [Coupling.linear(f"{name}:mimic", name, source, ratio, offset)]


def _axes(element: Element, pair: Pair) -> pin.SE3:
    """Rotation from the joint frame to the pair frame, whose z (and x) are the axes."""
    if not pair.axis_count():
        return pin.SE3.Identity()
    axis = element.first("axis")
    given = axis.vector("xyz", (1.0, 0.0, 0.0)) if axis is not None else np.array([1.0, 0.0, 0.0])
    z = (axis or element).unit_vector(given)
    if pair.axis_count() == 1:
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


def _limits(element: Element, kind: str, dof: int, remarks: Remarks) -> dict[str, Any]:
    """Position, velocity and effort limits; a continuous joint has no position limits."""
    limit = element.first("limit")
    if limit is None or kind == "fixed":
        return {}
    values = {
        key: tuple(_words(limit, text, key))
        for key in ("lower", "upper", "velocity", "effort")
        if (text := limit.get(key)) is not None and text.strip()
    }
    if kind in ("spherical", "ball") and {"lower", "upper"} & values.keys():
        remarks.add(element, "limits the angle of a ball joint, which is not read")
    if kind in ("continuous", "spherical", "ball"):
        values.pop("lower", None)
        values.pop("upper", None)
    for key in ("velocity", "effort"):
        if len(values.get(key, ())) == 1:
            values[key] = values[key] * dof
        if any(value < 0 for value in values.get(key, ())):
            remarks.add(element, f"has a negative {key} limit, which is taken as none")
            values[key] = tuple(v if v >= 0 else float("inf") for v in values[key])
    for end, missing_end in (("lower", "upper"), ("upper", "lower")):
        if end in values and missing_end not in values:
            values[missing_end] = (0.0,) * len(values[end])
    if len(values.get("lower", ())) == len(values.get("upper", ())) > 0:
        values["lower"], values["upper"], swapped = ordered(values["lower"], values["upper"])
        if swapped:
            remarks.add(element, "has its lower limit above the upper one; they are swapped")
    return values


def _words(limit: Element, text: str, key: str) -> list[float]:
    """Numbers of a limit; infinite ones are welcome here."""
    words = text.split()
    try:
        numbers = [unlimited(float(word)) for word in words]
    except ValueError:
        raise limit.error(f"has {key} '{text}', which is not a number") from None
    if any(np.isnan(number) for number in numbers):
        raise limit.error(f"has {key} '{text}', which is not a number")
    return numbers
