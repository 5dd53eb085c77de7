"""The kinematic tree of MJCF: bodies, their joints, masses, geoms and sites.

Walks `<worldbody>` once. Loops, couplings and actuators are in `mjcf_constraints`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.xml import Element
from ...errors import LoadError, listed
from ...model.description import GROUND, Body, Geometry, Joint, NamedFrame, constant
from ...model.pairs import align_z, make_pair
from .copies import family
from .document import Document, Names, descendants
from .geometry import Geom, Shapes, segment
from .inertia import Moments

__all__ = ["Tree"]

Member = tuple[Element, pin.SE3, str]
"""An element in a body, the placement of the frame around it, and the default class it has."""


@dataclass(frozen=True)
class _AllNames:
    """Names in a model and in those attached to it."""

    bodies: Names = field(default_factory=lambda: Names((GROUND, "world")))
    joints: Names = field(default_factory=Names)
    sites: Names = field(default_factory=Names)
    geoms: Names = field(default_factory=Names)


class Tree:
    """Everything below `<worldbody>`, in file order.

    Args:
        document: the model; takes the warnings.
        whole: the tree that this one is to become a part of: no name may be in both.

    Attributes:
        bodies: the bodies, massless ones between the joints of one body included.
        joints: the tree joints.
        frames: the named sites.
        geometry: what is seen and collided with.
        placements: placement in the world of each body, and of `GROUND`, in the initial pose.
        sites: per name of a site its body and its placement in it.
        references: per joint with one coordinate, its value in the initial pose.
        attachments: `<attach>` of other models, the body each is in, its frame there.
    """

    def __init__(self, document: Document, whole: Tree | None = None) -> None:
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.frames: list[NamedFrame] = []
        self.geometry: list[Geometry] = []
        self.placements: dict[str, pin.SE3] = {GROUND: pin.SE3.Identity()}
        self.sites: dict[str, tuple[str, pin.SE3]] = {}
        self.references: dict[str, float] = {}
        self.attachments: list[tuple[Element, str, pin.SE3]] = []
        self._document = document
        self._has_soft_parts = False
        self._springs: list[str] = []
        self._shifted: list[str] = []
        worlds = document.root.all("worldbody")
        _rename_ground(document)
        self._names: _AllNames = whole._names if whole is not None else _AllNames()
        self._bodies, self.joint_names = self._names.bodies, self._names.joints
        self._sites = self._names.sites
        self._bodies.take(descendants(worlds, "body"))
        self.joint_names.take(descendants(worlds, "joint", "freejoint"))
        self._sites.take(descendants(worlds, "site"))
        self._shapes = Shapes(document, self._names.geoms)
        self._grounded: list[Geom] = []
        self._beside: list[tuple[Tree, pin.SE3]] = []
        self._weighed: set[str] = set()
        self._walk(worlds)
        self._report()

    def body(self, element: Element, attribute: str) -> str:
        """Body that an attribute names; the world is `GROUND`."""
        name = element.require(attribute)
        if name == "world":
            return GROUND
        if name not in self.placements or name == GROUND:
            raise element.error(f"names the body '{name}', which does not exist")
        return name

    def is_soft(self, element: Element, *attributes: str) -> bool:
        """Whether an element names a body that is not there, as soft parts are left out."""
        names = {element.get(attribute) for attribute in attributes} - {None, "world"}
        return self._has_soft_parts and not names <= self.placements.keys()

    def _walk(self, worlds: list[Element]) -> None:
        stack: list[tuple[Element, str, pin.SE3, str]] = []
        for world in worlds:
            members = list(self._members(world, ""))
            for geom in self._geoms(members, GROUND):
                self._grounded.append(geom)
                self.geometry += self._shapes.pictures(geom)
            stack += self._contents(members, GROUND)
        stack.reverse()
        # Without recursion, because ropes and chains nest deeper than Python likes.
        while stack:
            element, parent, frame, childclass = stack.pop()
            childclass = element.get("childclass") or childclass
            members = list(self._members(element, childclass))
            name = self._body(element, parent, frame, members)
            stack += self._contents(members, name)[::-1]

    def _members(self, element: Element, childclass: str) -> Iterator[Member]:
        """Children of a body, those inside `<frame>` included, with frame and default class."""
        identity = pin.SE3.Identity()
        stack = [(child, identity, childclass) for child in element.children[::-1]]
        while stack:
            child, frame, style = stack.pop()
            if child.tag != "frame":
                yield child, frame, style
                continue
            if {"scale", "massscale"} & child.attributes.keys():
                raise child.error("scales its contents, which is not read; write them to scale")
            inner = frame * self._document.pose(child)
            style = child.get("childclass") or style
            stack += [(grandchild, inner, style) for grandchild in child.children[::-1]]

    def _contents(
        self, members: list[Member], name: str
    ) -> list[tuple[Element, str, pin.SE3, str]]:
        """Read the sites of a body; return its child bodies."""
        children: list[tuple[Element, str, pin.SE3, str]] = []
        for child, frame, style in members:
            if child.tag == "body":
                children.append((child, name, frame, style))
            elif child.tag == "site":
                self._site(self._document.filled(child, "site", style), name, frame)
            elif child.tag == "attach":
                child.require("model")
                self.attachments.append((child, name, frame))
            elif child.tag in ("flexcomp", "composite"):
                self._has_soft_parts = True
                self._document.warn(
                    child, "is soft; it is left out with its mass, because all bodies are rigid"
                )
            elif name == GROUND and child.tag in ("joint", "freejoint", "inertial"):
                raise child.error("stands in <worldbody>; only a <body> can have one")
        return children

    def _body(self, element: Element, parent: str, frame: pin.SE3, members: list[Member]) -> str:
        """Read a body with its joints, mass and geoms; returns its name."""
        document = self._document
        name = self._bodies.of(element, "body")
        placement = frame * document.pose(element)
        self.placements[name] = self.placements[parent] * placement
        if document.flag(element, "mocap"):
            document.warn(element, "is moved by motion capture; it is welded to the world here")
        if element.number("gravcomp", 0.0) != 0:
            document.warn(element, "has gravcomp, which is not read; it feels all of gravity")
        joints = [member for member in members if member[0].tag in ("joint", "freejoint")]
        self._chain(name, parent, placement, joints)
        geoms = list(self._geoms(members, name))
        for geom in geoms:
            self.geometry += self._shapes.pictures(geom)
        moments = self._moments(name, element, members, geoms)
        self.bodies.append(
            Body(
                name, moments.mass, constant(moments.com), constant(moments.inertia), element.place
            )
        )
        return name

    def _chain(
        self,
        name: str,
        parent: str,
        placement: pin.SE3,
        joints: list[Member],
    ) -> None:
        """Join a body to its parent: its joints act one after the other, in its own frame.

        With ``T`` the initial placement and ``J_i`` the motion of joint i in the body frame the
        body is at ``T J_1(q_1) J_2(q_2) ...``; a body without mass stands after each but the last.
        """
        if not joints:
            fixed = self.joint_names.new(f"{name}_fixed")
            self.joints.append(
                Joint(fixed, make_pair("fixed"), parent, name, placement, pin.SE3.Identity(), False)
            )
        for number, (element, frame, childclass) in enumerate(joints):
            joint, reference = self._joint(element, frame, childclass, name, len(joints))
            child = name
            if number < len(joints) - 1:
                child = self._bodies.new(f"{name}@{joint.name}")
                self.bodies.append(Body(child))
                self.placements[child] = self.placements[name]
            if not joint.pair.rows and parent != GROUND:
                raise element.error(f"is free, but its body '{name}' is not a child of the world")
            frame_a = placement * joint.frame_child * reference
            self.joints.append(_between(joint, parent, child, frame_a))
            parent, placement = child, pin.SE3.Identity()

    def _joint(
        self, raw: Element, frame: pin.SE3, childclass: str, body: str, count: int
    ) -> tuple[Joint, pin.SE3]:
        """Read a joint, not yet between bodies, and its motion from coordinate zero, inverted."""
        document = self._document
        free = raw.tag == "freejoint"
        element = raw if free else document.filled(raw, "joint", childclass)
        kinds = ("hinge", "slide", "ball", "free")
        kind = "free" if free else document.word(element, "type", kinds, "hinge")
        name = self.joint_names.of(raw, f"{body}_{kind}")
        if kind == "free" and count > 1:
            raise raw.error(f"is free, so that body '{body}' can have no other joint")
        pair = make_pair(kind)
        at = pin.SE3.Identity()
        if kind != "free":
            at.translation = frame.act(element.vector("pos", (0.0, 0.0, 0.0)))
        back = pin.SE3.Identity()
        if kind in ("hinge", "slide"):
            axis = element.unit_vector(element.vector("axis", (0.0, 0.0, 1.0)))
            at.rotation = align_z(frame.rotation @ axis)
            unit = document.compiler.angle if kind == "hinge" else 1.0
            reference = element.number("ref", 0.0) * unit
            self.references[name] = reference
            if reference != 0:
                self._shifted.append(name)
                back = pin.exp6(-reference * np.eye(6)[5 if kind == "hinge" else 2])
        lower, upper = self._range(element, kind)
        return Joint(
            name,
            pair,
            "",
            "",
            pin.SE3.Identity(),
            at,
            False,
            lower=lower,
            upper=upper,
            effort=self._effort(element, kind),
            damping=self._damping(element, name, pair.dof),
            friction=_each(element, "frictionloss", pair.dof),
            armature=_each(element, "armature", pair.dof),
            place=raw.place,
        ), back

    def _range(self, element: Element, kind: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if kind == "free":
            return (), ()
        if kind == "ball" and element.get("range") is None:
            # MuJoCo takes 0 here, where other joints need a range.
            limited = element.get("limited") == "true"
        else:
            limits = self._document.limits(element, "range", "limited")
            limited = limits is not None
        if kind == "ball" and limited:
            self._document.warn(element, "limits the angle of a ball joint, which is not read")
        if kind == "ball" or limits is None:
            return (), ()
        unit = self._document.compiler.angle if kind == "hinge" else 1.0
        return (limits[0] * unit,), (limits[1] * unit,)

    def _effort(self, element: Element, kind: str) -> tuple[float, ...]:
        if kind not in ("hinge", "slide"):
            return ()
        limits = self._document.limits(element, "actuatorfrcrange", "actuatorfrclimited")
        return () if limits is None else (max(abs(limits[0]), abs(limits[1])),)

    def _damping(self, element: Element, name: str, dof: int) -> tuple[float, ...]:
        """Linear damping; notes springs and what else moves the joint on its own."""
        for attribute in ("stiffness", "springdamper"):
            text = element.get(attribute)
            if text is not None and np.any(element.numbers(text, None, attribute) != 0):
                self._springs.append(name)
        text = element.get("damping")
        if text is None:
            return ()
        values = element.numbers(text, None, "damping")
        if not len(values):
            raise element.error("has an empty damping")
        if np.any(values[1:] != 0):
            self._document.warn(element, "has damping that is not linear; only its first is read")
        return (float(values[0]),) * dof

    def _moments(
        self, name: str, element: Element, members: list[Member], geoms: list[Geom]
    ) -> Moments:
        """Mass of a body in its own frame, from `<inertial>` or from its geoms."""
        compiler = self._document.compiler
        given = [member for member in members if member[0].tag == "inertial"]
        if len(given) > 1:
            raise given[1][0].error("is the second one of its body")
        if given and compiler.inertiafromgeom != "true":
            self._weighed.add(name)
            moments = _inertial(self._document, given[0][0], given[0][1])
        elif compiler.inertiafromgeom == "false":
            raise element.error("needs an <inertial>, because inertiafromgeom is 'false'")
        else:
            moments = self._total(geoms)
        return moments.bounded(compiler.boundmass, compiler.boundinertia, compiler.balanceinertia)

    def _total(self, geoms: list[Geom]) -> Moments:
        """Mass of the geoms that have any."""
        first, last = self._document.compiler.inertiagrouprange
        heavy = [g for g in geoms if first <= g.element.number("group", 0.0) <= last]
        return Moments.total(self._shapes.moments(geom) for geom in heavy)

    def _geoms(self, members: list[Member], name: str) -> Iterator[Geom]:
        number = 0
        for child, frame, style in members:
            if child.tag == "geom":
                number += 1
                filled = self._document.filled(child, "geom", style)
                geom = self._shapes.read(filled, name, number, frame)
                if geom is not None:
                    yield geom

    def _site(self, element: Element, body: str, frame: pin.SE3) -> None:
        name = element.get("name")
        if not name:
            return
        along = segment(element)
        placement = frame * (self._document.pose(element) if along is None else along[0])
        self.sites[name] = (body, placement)
        shown = name
        if name in self._bodies or name in self.joint_names:
            shown = self._sites.new(f"{name}_site")
            called = shown.replace(name, "<name>", 1)
            problem = f"has the name of a body or joint; it is called '{called}' here"
            self._document.warn(element, problem)
        self.frames.append(NamedFrame(shown, body, placement))

    def graft(self, part: Tree, body: str, frame: pin.SE3) -> None:
        """Add another tree; its world becomes a frame on a body.

        Args:
            part: the tree, made with this one as its whole.
            body: body that carries it, or `GROUND`.
            frame: placement of its world in that body.
        """

        def moved(thing: Any, carrier: str, placement: str) -> Any:
            if getattr(thing, carrier) != GROUND:
                return thing
            return replace(thing, **{carrier: body, placement: frame * getattr(thing, placement)})

        for joint in part.joints:
            if not joint.pair.rows and joint.parent == GROUND != body:
                raise LoadError(
                    f"joint '{joint.name}' is free, but the model it is in is attached to the body "
                    f"'{body}', not to the world",
                    source=self._document.root.source,
                )
            self.joints.append(moved(joint, "parent", "frame_parent"))
        self.frames += [moved(thing, "body", "placement") for thing in part.frames]
        self.geometry += [moved(thing, "body", "placement") for thing in part.geometry]
        self.bodies += part.bodies
        world = self.placements[body] * frame
        for name, placement in part.placements.items():
            if name != GROUND:
                self.placements[name] = world * placement
        for name, (carrier, placement) in part.sites.items():
            grounded = carrier == GROUND
            self.sites[name] = (body, frame * placement) if grounded else (carrier, placement)
        self.references |= part.references
        self._weighed |= part._weighed
        if body != GROUND and body not in self._weighed:
            self._add_mass(body, part._ground_mass().placed(frame))
        elif body == GROUND:
            self._beside.append((part, frame))

    def _ground_mass(self) -> Moments:
        """Mass of what is fixed to the world, seen from it."""
        others = [part._ground_mass().placed(frame) for part, frame in self._beside]
        return Moments.total([self._total(self._grounded), *others])

    def _add_mass(self, name: str, more: Moments) -> None:
        at = next(i for i, body in enumerate(self.bodies) if body.name == name)
        body = self.bodies[at]
        total = Moments.total([Moments(body.mass, body.com, body.inertia), more])
        self.bodies[at] = replace(
            body, mass=total.mass, com=constant(total.com), inertia=constant(total.inertia)
        )

    def scale_masses(self) -> None:
        """Scale all masses to the total that the model asks for."""
        wanted = self._document.compiler.settotalmass
        mass = sum(body.mass for body in self.bodies)
        if wanted is not None and mass > 0:
            factor = wanted / mass
            self.bodies = [
                replace(body, mass=body.mass * factor, inertia=constant(body.inertia * factor))
                for body in self.bodies
            ]

    def _report(self) -> None:
        source = PurePath(self._document.root.source).name
        if self._springs:
            joints = listed(self._springs, "of joints ")
            self._document.remarks.say(f"{source}: the springs {joints} are not read")
        if self._shifted:
            self._document.remarks.say(
                f"{source}: {listed(self._shifted, 'joints ')} have a ref: coordinates are "
                "MuJoCo's, so that the pose in the file is at q = ref, not at q = 0"
            )


def _rename_ground(document: Document) -> None:
    """A body called like the ground, which MuJoCo calls "world", gets another name."""
    bodies = {body.get("name") for body in descendants([document.root], "body")}
    if GROUND not in bodies:
        return
    name = f"{GROUND}_body"
    while name in bodies:
        name += "_"
    document.remarks.say(f"body '{GROUND}' is called '{name}' here, as that is the world")
    for element in family(document.root):
        for attribute in ("name",) if element.tag == "body" else ("body", "body1", "body2"):
            if element.get(attribute) == GROUND:
                element.attributes[attribute] = name


def _between(joint: Joint, parent: str, child: str, frame_parent: pin.SE3) -> Joint:
    """The joint, placed between two bodies."""
    return replace(joint, parent=parent, child=child, frame_parent=frame_parent)


def _each(element: Element, attribute: str, dof: int) -> tuple[float, ...]:
    """One number for every degree of freedom, or none if it is not given."""
    if element.get(attribute) is None:
        return ()
    return (element.number(attribute),) * dof


def _inertial(document: Document, element: Element, frame: pin.SE3) -> Moments:
    """Read an `<inertial>` in the body frame."""
    element.require("pos")
    mass = element.number("mass")
    if mass < 0:
        raise element.error(f"has mass {mass} kg; it must not be negative")
    full, diagonal = element.get("fullinertia"), element.get("diaginertia")
    pose = document.pose(element)
    if full is not None:
        if diagonal is not None or not np.array_equal(pose.rotation, np.eye(3)):
            raise element.error("has a fullinertia; diaginertia and orientation must not be given")
        a, b, c, d, e, f = element.numbers(full, 6, "fullinertia")
        inertia = np.array([[a, d, e], [d, b, f], [e, f, c]])
    elif diagonal is not None:
        inertia = np.diag(element.numbers(diagonal, 3, "diaginertia"))
    else:
        document.warn(element, "gives a mass without inertia; the inertia is taken as zero")
        inertia = np.zeros((3, 3))
    return Moments(mass, np.zeros(3), inertia).placed(frame * pose)
