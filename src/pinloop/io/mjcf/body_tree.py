"""The kinematic tree of MJCF: bodies, their joints, masses, geoms and sites.

Walks `<worldbody>` once. Loops, couplings and actuators are read in `constraints`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.xml import Element
from ...errors import LoadError, listed
from ...model.description import GROUND, Body, Geometry, Joint, NamedFrame
from ...model.pairs import align_z, make_pair
from ..moments import Moments
from ..quantities import Names, joint_limits, read_mass, rename_ground, spread, weld
from .document import Document, flag, word
from .geometry import Geom, Shapes, segment

Member = tuple[Element, pin.SE3, str]
"""An element in a body, the placement of the frame around it, and the default class it has."""


class Tree:
    """Everything below `<worldbody>`, in file order.

    Args:
        whole: the tree that this one is to become a part of: no name may be in both.

    Attributes:
        bodies: the bodies, massless ones between the joints of one body included.
        frames: the named sites.
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
        rename_ground(document.root, "body", _body_references, document.remarks)
        if whole is None:
            self._body_names = Names((GROUND, "world"))
            self.joint_names, self._site_names, self._geom_names = Names(), Names(), Names()
        else:
            self._body_names, self.joint_names = whole._body_names, whole.joint_names
            self._site_names, self._geom_names = whole._site_names, whole._geom_names
        self._body_names.take(document.below_world("body"))
        self.joint_names.take(document.below_world("joint", "freejoint"))
        self._site_names.take(document.below_world("site"))
        self._shapes = Shapes(document, self._geom_names)
        self._grounded: list[Geom] = []
        self._beside: list[tuple[Tree, pin.SE3]] = []
        self._weighed: set[str] = set()
        self._walk(document.root.all("worldbody"))
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
            self._grounded += self._geoms(members, GROUND)
            stack += self._contents(members, GROUND)
        stack.reverse()
        # Without recursion, because ropes and chains nest deeper than Python likes.
        while stack:
            element, parent, frame, childclass = stack.pop()
            members = list(self._members(element, element.get("childclass") or childclass))
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
            elif child.tag == "flexcomp" and flag(child, "rigid", False):
                continue  # a surface of its body, without mass
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
        name = self._body_names.of(element, "body")
        placement = frame * document.pose(element)
        self.placements[name] = self.placements[parent] * placement
        if flag(element, "mocap", False):
            document.warn(element, "is moved by motion capture; it is welded to the world here")
        if element.number("gravcomp", 0.0) != 0:
            document.warn(element, "has gravcomp, which is not read; it feels all of gravity")
        self._chain(name, parent, placement, members)
        geoms = self._geoms(members, name)
        moments = self._moments(name, element, members, geoms)
        self.bodies.append(moments.body(name, element.place))
        return name

    # -- joints -----------------------------------------------------------------------------

    def _chain(self, name: str, parent: str, placement: pin.SE3, members: list[Member]) -> None:
        """Join a body to its parent: its joints act one after the other, in its own frame.

        With ``T`` the initial placement and ``J_i`` the motion of joint i in the body frame the
        body is at ``T J_1(q_1) J_2(q_2) ...``; a body without mass stands after each but the last.
        """
        joints = [member for member in members if member[0].tag in ("joint", "freejoint")]
        if not joints:
            fixed = weld(parent, name, placement, False)
            self.joints.append(replace(fixed, name=self.joint_names.new(f"{name}_fixed")))
        for number, (element, frame, childclass) in enumerate(joints):
            joint, reference = self._joint(element, frame, childclass, name, len(joints))
            child = name
            if number < len(joints) - 1:
                child = self._body_names.new(f"{name}@{joint.name}")
                self.bodies.append(Body(child, is_between=True))
                self.placements[child] = self.placements[name]
            if not joint.pair.rows and parent != GROUND:
                raise element.error(f"is free, but its body '{name}' is not a child of the world")
            frame_a = placement * joint.frame_child * reference
            self.joints.append(replace(joint, parent=parent, child=child, frame_parent=frame_a))
            parent, placement = child, pin.SE3.Identity()

    def _joint(
        self, raw: Element, frame: pin.SE3, childclass: str, body: str, count: int
    ) -> tuple[Joint, pin.SE3]:
        """Read a joint, not yet between bodies, and its motion from coordinate zero, inverted."""
        free = raw.tag == "freejoint"
        element = raw if free else self._document.filled(raw, "joint", childclass)
        kinds = ("hinge", "slide", "ball", "free")
        kind = "free" if free else word(element, "type", kinds, "hinge")
        name = self.joint_names.of(raw, f"{body}_{kind}")
        if kind == "free" and count > 1:
            raise raw.error(f"is free, so that body '{body}' can have no other joint")
        pair = make_pair(kind)
        at, back = pin.SE3.Identity(), pin.SE3.Identity()
        if kind != "free":
            at.translation = frame.act(element.vector("pos", (0.0, 0.0, 0.0)))
        if kind in ("hinge", "slide"):
            axis = element.unit_vector(element.vector("axis", (0.0, 0.0, 1.0)))
            at.rotation = align_z(frame.rotation @ axis)
            unit = self._document.compiler.angle if kind == "hinge" else 1.0
            reference = self.references[name] = element.number("ref", 0.0) * unit
            if reference != 0:
                self._shifted.append(name)
                back = pin.exp6(-reference * np.eye(6)[5 if kind == "hinge" else 2])
        losses = {
            field: spread([element.number(key)], pair.dof)
            for field, key in (("friction", "frictionloss"), ("armature", "armature"))
            if element.get(key) is not None
        }
        values: dict[str, Any] = self._limits(element, kind) | losses
        values["damping"] = self._damping(element, name, pair.dof)
        identity = pin.SE3.Identity()
        return Joint(name, pair, "", "", identity, at, False, place=raw.place, **values), back

    def _limits(self, element: Element, kind: str) -> dict[str, Any]:
        document, given = self._document, {}
        if kind == "ball" and element.get("range") is None:
            # MuJoCo takes 0 here, where other joints need a range.
            limits = (0.0, 0.0) if element.get("limited") == "true" else None
        else:
            limits = document.limits(element, "range", "limited") if kind != "free" else None
        if kind == "ball" and limits is not None:
            document.warn(element, "limits the angle of a ball joint, which is not read")
        if kind in ("hinge", "slide"):
            unit = document.compiler.angle if kind == "hinge" else 1.0
            if limits is not None:
                given = {"lower": (limits[0] * unit,), "upper": (limits[1] * unit,)}
            forces = document.limits(element, "actuatorfrcrange", "actuatorfrclimited")
            if forces is not None:
                given["effort"] = (max(map(abs, forces)),)
        return joint_limits(given, 1, partial(document.warn, element))

    def _damping(self, element: Element, name: str, dof: int) -> tuple[float, ...]:
        """Linear damping; notes springs and what else moves the joint on its own."""
        for attribute in ("stiffness", "springdamper"):
            if self._document.is_set(element, attribute):
                self._springs.append(name)
        text = element.get("damping")
        if text is None:
            return ()
        values = element.numbers(text, None, "damping")
        if not len(values):
            raise element.error("has an empty damping")
        if np.any(values[1:] != 0):
            self._document.warn(element, "has damping that is not linear; only its first is read")
        return spread([float(values[0])], dof)

    # -- masses, geoms and sites ------------------------------------------------------------

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
        first, last = self._document.compiler.inertiagrouprange
        heavy = [g for g in geoms if first <= g.element.number("group", 0.0) <= last]
        return Moments.total(self._shapes.moments(geom) for geom in heavy)

    def _geoms(self, members: list[Member], name: str) -> list[Geom]:
        """Geoms of a body; what is seen of them and collided with is added to the geometry."""
        own = [member for member in members if member[0].tag == "geom"]
        read = (
            self._shapes.read(self._document.filled(child, "geom", style), name, number, frame)
            for number, (child, frame, style) in enumerate(own, start=1)
        )
        geoms = [geom for geom in read if geom is not None]
        for geom in geoms:
            self.geometry += self._shapes.pictures(geom)
        return geoms

    def _site(self, element: Element, body: str, frame: pin.SE3) -> None:
        name = element.get("name")
        if not name:
            return
        along = segment(element)
        placement = frame * (self._document.pose(element) if along is None else along[0])
        self.sites[name] = (body, placement)
        shown = name
        if name in self._body_names or name in self.joint_names:
            shown = self._site_names.new(f"{name}_site")
            called = shown.replace(name, "<name>", 1)
            problem = f"has the name of a body or joint; it is called '{called}' here"
            self._document.warn(element, problem)
        self.frames.append(NamedFrame(shown, body, placement))

    # -- models that are attached -----------------------------------------------------------

    def graft(self, part: Tree, body: str, frame: pin.SE3) -> None:
        """Add another tree, made with this one as its whole: its world is a frame on a body."""

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
        if body == GROUND:
            self._beside.append((part, frame))
        elif body not in self._weighed:
            at = next(i for i, known in enumerate(self.bodies) if known.name == body)
            old = self.bodies[at]
            own, more = Moments(old.mass, old.com, old.inertia), part._ground_mass().placed(frame)
            self.bodies[at] = Moments.total([own, more]).body(body, old.place)

    def _ground_mass(self) -> Moments:
        """Mass of what is fixed to the world, seen from it."""
        others = [part._ground_mass().placed(frame) for part, frame in self._beside]
        return Moments.total([self._total(self._grounded), *others])

    def scale_masses(self) -> None:
        """Scale all masses to the total that the model asks for."""
        wanted = self._document.compiler.settotalmass
        mass = sum(body.mass for body in self.bodies)
        if wanted is not None and mass > 0:
            factor = wanted / mass
            self.bodies = [
                replace(body, mass=body.mass * factor, inertia=body.inertia * factor)
                for body in self.bodies
            ]

    def _report(self) -> None:
        source, remarks = PurePath(self._document.root.source).name, self._document.remarks
        if self._springs:
            joints = listed(self._springs, "of joints ")
            remarks.say(f"{source}: the springs {joints} are not read")
        if self._shifted:
            remarks.say(
                f"{source}: {listed(self._shifted, 'joints ')} have a ref: coordinates are "
                "MuJoCo's, so that the pose in the file is at q = ref, not at q = 0"
            )


def _body_references(element: Element) -> tuple[str, ...]:
    return ("name",) if element.tag == "body" else ("body", "body1", "body2")


def _inertial(document: Document, element: Element, frame: pin.SE3) -> Moments:
    """Read an `<inertial>` in the body frame."""
    element.require("pos")
    mass = read_mass(element, element.number("mass"))
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
