"""URDF, and the elements of our own with which it can say what URDF cannot.

Own additions, ignored by other readers: any pair name as joint ``type`` with ``pitch`` or
``length``, ``<axis2>`` of a universal joint, a pose of the joint on the child
(``<child link xyz rpy>``), ``coordinates``, ``armature`` in ``<dynamics>``, and ``<frame>``.
Loops, and what `<gazebo>` adds, are read in other files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...boundary.xml import Element, Remarks, pose_of
from ...errors import LoadError
from ...model.description import (
    COORDINATES,
    GROUND,
    LIMITS,
    LOSSES,
    Body,
    Coordinates,
    Coupling,
    Description,
    Drive,
    Geometry,
    Joint,
    NamedFrame,
    Shape,
)
from ...model.pairs import Pair
from ...tolerances import SAME_PLACE
from .. import quantities
from ..formats import Resolver, report_missing
from ..moments import Moments
from ..vocabulary import URDF, report_unread
from .loops import moving_path, read_axes, read_gazebo, read_loops, read_pair

_WORLD = "world"
"""What is called so need not be declared: it is the ground."""


def read_urdf(root: Element, *, resolve: Resolver) -> Description:
    """Read a ``<robot>``; ``resolve`` finds its mesh files."""
    links = root.all("link")
    if not links:
        raise root.error("has no <link>; is this a URDF?")
    remarks = Remarks()
    name = (root.get("name") or "").strip()
    if not name:
        remarks.add(root, "has no name")
    _mend_numbers(root, remarks)
    _check_ends(root, links, remarks)
    base, floating = _roots(root, links, remarks)
    bodies = [_body(link, remarks) for link in links if link.require("name") != GROUND]
    joints, couplings = _joints(root, remarks)
    actuated, drives = _drives(root, {joint.name for joint in joints}, remarks)
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
        frames=(*map(_frame, root.all("frame")), *map(_frame, root.all("fixed_frame"))),
        geometry=tuple(_geometry(root, links, resolve, remarks)),
        source=root.source,
    )
    description = read_gazebo(root, read_loops(root, description), remarks)
    _warn_of_dependent(root, description, remarks)
    report_unread(root, URDF, remarks)
    return replace(description, warnings=remarks.texts())


_DOT_TOO_MANY = re.compile(r"(?<![\w.])([+-]?\d*\.\d+)\.(?=\s|$)")


def _mend_numbers(root: Element, remarks: Remarks) -> None:
    """Mend two slips that PyBullet lets pass: ``1.57.``, and a vector with a number too many."""
    for element in root.walk("origin", "limit"):
        for key, text in element.attributes.items():
            mended = _DOT_TOO_MANY.sub(r"\1", text)
            if key in ("xyz", "rpy") and "$" not in text and len(words := mended.split()) > 3:
                mended = " ".join(words[:3])
            if mended != text:
                remarks.add(
                    element, f"has {key} {{}}", value=f"'{text}', which is read as '{mended}'"
                )
                element.attributes[key] = mended


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

    def references(element: Element) -> tuple[str, ...]:
        named = element.tag == "link" or element.tag.startswith("drake:")
        return ("link", "name") if named else ("link",)

    if around:
        quantities.rename_ground(root, "link", references, remarks)
    for end in around:
        if end.get("link") == _WORLD:
            end.attributes["link"] = GROUND


def _roots(root: Element, links: list[Element], remarks: Remarks) -> tuple[str | None, list[Joint]]:
    """The link welded to the ground, None if it is the ground; and joints of roots that float.

    Where the world is a root of its own, all other roots float, as in Drake.
    """
    joints = root.all("joint")
    children, parents = (
        {joint.need(end).require("link") for joint in joints} for end in ("child", "parent")
    )
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
            floating.append(
                quantities.free_root(f"root_joint_{name}" if floating else "root_joint", name)
            )
    return None if base == GROUND else base, floating


def _frame(element: Element) -> NamedFrame:
    """A ``<frame>`` of our own, or a ``<fixed_frame>``."""
    if element.tag == "frame":
        return NamedFrame(element.require("name"), element.require("link"), pose_of(element))
    link, origin = element.need("parent").require("link"), element.first("origin")
    return NamedFrame(element.require("name"), link, pose_of(origin))


def _body(link: Element, remarks: Remarks) -> Body:
    """Link with mass, centre of mass and inertia, all in the link frame."""
    name = link.require("name")
    if not pose_of(link.first("origin")).isIdentity(SAME_PLACE):
        remarks.add(link, "has an <origin> of its own, which is not read; write it in its joint")
    inertial = link.first("inertial")
    if inertial is None:
        return Body(name, place=link.place)
    given, inertia = inertial.first("mass"), inertial.first("inertia")
    if given is None:
        remarks.add(link, "has an <inertial> without <mass>, taken as 0")
    mass = 0.0 if given is None else quantities.read_mass(link, given.number("value"))
    values = np.zeros((3, 3))
    if inertia is not None:
        if missing := [key for key in ("ixx", "iyy", "izz") if inertia.get(key) is None]:
            remarks.add(link, f"has an inertia without {', '.join(missing)}, taken as 0")
        values = quantities.tensor(lambda key: inertia.number(key, 0.0))
        for key in ("iyx", "izx", "izy"):
            other = f"i{key[:0:-1]}"
            if (
                inertia.get(key) is not None
                and inertia.number(key) != values[quantities.MOMENTS[other]]
            ):
                remarks.add(link, f"has {key} other than {other}, which is taken")
    solid = Moments(mass, np.zeros(3), values).placed(pose_of(inertial.first("origin")))
    return solid.body(name, link.place)


# -- joints ---------------------------------------------------------------------------------------


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


def _joint(element: Element, remarks: Remarks) -> Joint:
    kind = element.require("type").lower()
    pair = read_pair(element)
    child = element.need("child")
    turn = quantities.axes_turn(element, read_axes(element, pair))
    return Joint(
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


def _coordinates(element: Element) -> Coordinates:
    """Our attribute for the variant of a joint's coordinates."""
    value = element.get("coordinates") or ""
    if value in COORDINATES:
        return value
    raise element.error(f"has coordinates '{value}', which is none of {', '.join(COORDINATES[1:])}")


def _limits(element: Element, kind: str, dof: int, remarks: Remarks) -> dict[str, Any]:
    """Position, velocity and effort limits; a continuous joint has no position limits."""
    limit = element.first("limit")
    values = {
        key: quantities.limit_numbers(limit, text, key)
        for key in LIMITS
        if limit is not None and kind != "fixed" and (text := limit.get(key)) and text.strip()
    }
    ranged = {"lower", "upper"} & values.keys()
    if ranged and kind in ("spherical", "ball"):
        remarks.add(element, "limits the angle of a ball joint, which is not read")
    if ranged and kind in ("continuous", "spherical", "ball"):
        values = {key: values[key] for key in values.keys() - ranged}
    limits = quantities.joint_limits(values, dof, partial(remarks.add, element), missing=0.0)
    if not ranged and kind in ("revolute", "prismatic"):
        remarks.add(element, "has no position limits")
    return limits


def _losses(element: Element, pair: Pair) -> dict[str, Any]:
    """Damping, friction and armature; URDF has one number for all degrees of freedom."""
    # onshape-to-robot and some tutorials write <joint_properties>.
    values = {
        key: tuple(map(float, dynamics.numbers(text, None, key)))
        for dynamics in element.all("joint_properties", "dynamics")
        for key in LOSSES
        if pair.dof and (text := dynamics.get(key)) is not None
    }
    return {key: quantities.spread(v, pair.dof) for key, v in values.items() if any(v)}


def _mimic(mimic: Element, joint: Element, moving: set[str], remarks: Remarks) -> list[Coupling]:
    """Coupling of a mimic joint; none if one of the two joints does not move."""
    source, name = mimic.require("joint"), joint.require("name")
    if source not in moving:
        problem = "mimics '{}', which does not move; the mimic is left out"
        remarks.add(joint, problem, value=source)
        return []
    if name not in moving:
        remarks.add(joint, "does not move; its mimic is left out")
        return []
    ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    return [Coupling.linear(f"{name}:mimic", name, source, ratio, offset)]


def _warn_of_dependent(root: Element, description: Description, remarks: Remarks) -> None:
    """URDF+ marks joints that others determine; warn of those that nothing in the file does."""
    determined = {name for coupling in description.couplings for name in coupling.joints}
    for joint in description.joints:
        for link in (joint.parent, joint.child) if joint.cut else ():
            determined.update(moving_path(link, description))
    for element in root.all("joint"):
        if (word := _word(element, "independent")) not in ("", "true", "false"):
            remarks.add(
                element, "has independent '{}', which is neither true nor false", value=word
            )
        if word == "false" and element.get("name") not in determined:
            remarks.add(
                element,
                "is declared dependent, but no <loop> or <coupling> determines it: it moves freely",
                "; add what is missing in a loops file",
            )


# -- drives: transmissions of ROS, ros2_control and Drake -----------------------------------------


def _drives(
    root: Element, joints: set[str], remarks: Remarks
) -> tuple[tuple[str, ...], list[Drive]]:
    """Actuated joints and gears from <transmission> and <ros2_control>."""
    actuated: dict[str, None] = {}
    drives: dict[str, Drive] = {}
    controls = root.all("ros2_control")
    for joint in (joint for control in controls for joint in control.all("joint")):
        if joint.first("command_interface") is None:
            continue
        if joint.require("name") in joints:
            actuated[joint.require("name")] = None
        else:
            remarks.add(joint, "of <ros2_control> is no joint of the robot; left out")
    for block in (block for holder in (root, *controls) for block in holder.all("transmission")):
        for joint in block.all("joint"):
            name = joint.require("name")
            if name not in joints:
                remarks.add(joint, "of a transmission is no joint of the robot; left out")
                continue
            actuated[name] = None
            drives[name] = Drive(name, *_gear(block, joint, remarks))
    return tuple(actuated), list(drives.values())


def _gear(block: Element, joint: Element, remarks: Remarks) -> tuple[float, float | None]:
    """Reduction and rotor inertia of a transmission, wherever the dialect keeps them."""
    places = [joint, *block.all("actuator"), block]
    tags = ("mechanicalReduction", "mechanical_reduction")
    reduction, inertia = 1.0, None
    child = next((child for place in places if (child := place.first(*tags))), None)
    if child is not None:
        try:
            reduction = float(child.numbers(child.text, 1, "the value")[0])
        except LoadError:
            shown = repr(child.text.strip()[:40])
            problem = "has the reduction {}, which is no number; 1 is taken"
            remarks.add(block, problem, value=shown)
    for place in places:
        if (gear := place.first("drake:gear_ratio")) is not None:
            reduction = gear.number("value")
        if (rotor := place.first("drake:rotor_inertia")) is not None:
            inertia = rotor.number("value")
    return reduction, inertia


# -- shapes ---------------------------------------------------------------------------------------


def _geometry(
    root: Element, links: list[Element], resolve: Resolver, remarks: Remarks
) -> list[Geometry]:
    visuals = [visual for link in links for visual in link.all("visual")]
    colors: dict[str, quantities.Color] = {}
    materials = [material for holder in (root, *visuals) for material in holder.all("material")]
    for material in materials:
        paint, name = material.first("color"), material.get("name")
        if paint is not None and name:
            colors[name] = quantities.rgba(paint, paint.require("rgba"))
    geometry: list[Geometry] = []
    missing: list[Element] = []
    for link in links:
        for role in ("visual", "collision"):
            for index, element in enumerate(link.all(role)):
                try:
                    shape = _shape(element, resolve, remarks, missing)
                    placement, color = pose_of(element.first("origin")), _color(element, colors)
                except LoadError as error:
                    # How a robot moves does not depend on it; other readers pass it over, too.
                    remarks.add(element, f"is left out: {error.problem}")
                    continue
                if shape is not None:
                    name = link.require("name")
                    parts: Any = (f"{name}_{index}", name, role, shape, placement, color)
                    geometry.append(Geometry(*parts))
    report_missing(missing, remarks)
    return geometry


def _color(element: Element, colors: Mapping[str, quantities.Color]) -> quantities.Color | None:
    material = element.first("material")
    if material is None:
        return None
    inline = material.first("color")
    if inline is not None:
        return quantities.rgba(inline, inline.require("rgba"))
    return colors.get(material.get("name") or "")


def _shape(
    element: Element, resolve: Resolver, remarks: Remarks, missing: list[Element]
) -> Shape | None:
    """Shape of a visual or collision element; None with a warning if it cannot be had."""
    geometry = element.first("geometry")
    kind = geometry.children[0] if geometry is not None and geometry.children else None
    if kind is None:
        remarks.add(element, "has no geometry")
    elif kind.tag in quantities.SIZES:
        return quantities.primitive(
            kind, lambda key, count: kind.numbers(kind.require(key), count, key)
        )
    elif kind.tag == "mesh":
        path = resolve(kind.require("filename"))
        if path is not None:
            return Shape("mesh", tuple(map(float, kind.vector("scale", (1.0, 1.0, 1.0)))), path)
        missing.append(kind)
    return None
