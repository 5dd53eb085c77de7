"""The reader of SDF, the format of Gazebo: from `<sdf>` or `<model>` to a `Description`.

Picks the model, roots it in the ground, and reads the masses and shapes of its links.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from ...boundary.xml import Element, Remarks
from ...errors import LoadError, UnknownName, listed
from ...model.description import GROUND, Body, Description, Geometry, Joint, NamedFrame, Shape
from ...model.pairs import make_pair
from .. import quantities
from ..formats import Resolver
from ..moments import Moments, primitive_moments
from ..vocabulary import SDF, report_unread
from .joints import drake_constraints, read_joints
from .scope import Frame, Scope, Source, fetch, read_pose, text_of, truth, version_of

_GRAVITY = (0.0, 0.0, -9.8)
"""SDF's default, which is not the -9.81 of other formats."""
_SCENERY = ("model://sun", "model://ground_plane")
"""What comes with every Gazebo, and is no robot."""
_DENSITY = 1000.0
"""What SDF takes for the density of a collision that gives none [kg/m^3]."""


def read_sdf(root: Element, *, resolve: Resolver, model: str | None = None) -> Description:
    """Read an SDF model, alone or as one of a world; a joint to a link that has a parent is cut.

    A model that no joint ties to the world floats on a free joint "root_joint", or is welded there
    by a fixed one if it is `<static>`. Gravity is the world's, (0, 0, -9.8) by default (SDF's own).
    Sensors, lights and plugins are passed over without a warning. ``model`` names the one to be
    read, if there are several that may be the robot.
    """
    remarks = Remarks()
    source = Source(version_of(root), resolve)
    world, element, model_source = _pick(root, source, model, remarks)
    around = Scope(world, None, source, remarks)
    robot = around.add_model(element, model_source, "")
    links = list(robot.of_kind("link"))
    joints, couplings = read_joints(around, remarks)
    joints = [*_roots(robot, links, joints), *joints]
    bodies = [_read_link(link, remarks) for link in links]
    names = {"visual": quantities.Names(), "collision": quantities.Names()}
    geometry = [shape for link in links for shape in _geometry(link, names, remarks)]
    # Models that were not picked say nothing about the robot.
    others = [child for child in world.children if child.tag not in ("model", "include")]
    report_unread(world.copy(children=others), SDF, remarks)
    for scope in robot.scopes():
        # A model that stands in another one is reported with it; one that is included is not.
        if scope is robot or scope.element not in cast(Scope, scope.outer).element.children:
            report_unread(scope.element, SDF, remarks)
    description = Description(
        name=robot.frame.name,
        bodies=tuple(bodies),
        joints=tuple(joints),
        couplings=tuple(couplings),
        frames=tuple(_named(robot, frame) for frame in robot.of_kind("frame")),
        geometry=tuple(geometry),
        gravity=world.text_vector("gravity", _GRAVITY),
        source=root.source,
    )
    for holder in (world, *(scope.element for scope in robot.scopes())):
        description = drake_constraints(holder, description)
    return replace(description, warnings=remarks.texts())


def _pick(
    root: Element, source: Source, name: str | None, remarks: Remarks
) -> tuple[Element, Element, Source]:
    """World (an empty one if there is none), the model, and the source of the model."""
    if root.tag not in ("sdf", "model"):
        raise root.error("is not SDF; its root element must be <sdf> or <model>")
    worlds = root.all("world")
    if len(worlds) > 1:
        raise worlds[1].error("is the second world; load a file with one")
    around = worlds[0] if worlds else root
    models = [(root, source)] if root.tag == "model" else _models(around, source, remarks)
    if not models:
        raise root.error("holds no <model>")
    candidates = [
        (element, its)
        for element, its in models
        if (element.get("name") == name if name else len(models) == 1 or not _is_scenery(element))
    ]
    elements = [element for element, _ in models]
    offered = [element for element in elements if not _is_scenery(element)] or elements
    names = [element.get("name") or "?" for element in offered]
    if len(candidates) > 1 and (name is not None or len(set(names)) == 1):
        raise candidates[1][0].error("has the name of another model; rename one of the two")
    if len(candidates) != 1:
        problem = (
            f"holds {len(names)} models ({listed(names, most=12)}); name the one to load with "
            f"model='{names[0]}', on the command line with --model {shlex.quote(names[0])}"
            if name is None
            else str(UnknownName("model", name, names))
        )
        raise LoadError(problem, source=root.source)
    for element in elements:
        if element is not candidates[0][0]:
            remarks.add(element, "is not part of the robot; left out")
    return worlds[0] if worlds else root.copy(tag="world", attributes={}, children=[]), *candidates[
        0
    ]


def _models(around: Element, source: Source, remarks: Remarks) -> list[tuple[Element, Source]]:
    models: list[tuple[Element, Source]] = []
    for child in around.all("model", "include"):
        if child.tag == "model":
            models.append((child, source))
            continue
        try:
            model = fetch(child, source)
        except LoadError as error:
            if text_of(child, "uri") not in _SCENERY:
                raise
            remarks.say(f"left out as scenery: {error}")
            continue
        if model is not None:
            models.append(model)
    return models


def _is_scenery(model: Element) -> bool:
    """Whether a model is static and has no joints."""
    return truth(model.first("static")) and model.first("joint") is None


def _roots(model: Scope, links: Sequence[Frame], joints: Sequence[Joint]) -> list[Joint]:
    """Joints that tie to the ground what no joint does: the canonical link first."""
    by_name = {link.name: link for link in links}
    parents = {joint.child: joint.parent for joint in joints if joint.cut is False}
    islands = DisjointSet((GROUND, *by_name))
    for joint in joints:
        if joint.cut is not True and joint.parent in islands and joint.child in islands:
            islands.merge(joint.parent, joint.child)
    pair = make_pair("fixed" if truth(model.element.first("static")) else "free")
    roots: list[Joint] = []
    for link in (model.canonical(), *links):
        if islands.connected(GROUND, link.name):
            continue
        name = link.name
        while name in parents:
            name = parents[name]
        islands.merge(GROUND, name)
        label = f"root_joint_{name}" if roots else "root_joint"
        placement = model.placement(by_name[name])
        roots.append(replace(quantities.free_root(label, name, placement), pair=pair))
    return roots


def _named(model: Scope, frame: Frame) -> NamedFrame:
    link = model.link_of(frame)
    placement = model.placement(link).actInv(model.placement(frame))
    return NamedFrame(frame.name, link.name, placement)


# -- masses ---------------------------------------------------------------------------------------


def _read_link(frame: Frame, remarks: Remarks) -> Body:
    """Read the mass properties of a link; warn of what else it says about mechanics."""
    link = frame.element
    for tag, default, problem in (
        ("gravity", True, "switches gravity off, which is not read; it has its weight"),
        ("kinematic", False, "is kinematic, which is not read; it moves as its joints let it"),
    ):
        if truth(link.first(tag), default=default) != default:
            remarks.add(link, problem)
    decay = link.first("velocity_decay")
    if decay is not None and any(decay.text_number(kind, 0.0) for kind in ("linear", "angular")):
        remarks.add(decay, "is not read; give its joints damping")
    inertial = link.first("inertial")
    if inertial is not None and truth(inertial, inertial.get("auto") or ""):
        return _body_of_collisions(frame, inertial)
    return read_body(frame.name, link, remarks)


def read_body(name: str, link: Element, remarks: Remarks) -> Body:
    """Read the mass properties; SDF gives a link that says nothing 1 kg and a unit inertia."""
    inertial = link.first("inertial")
    if inertial is None:
        remarks.add(link, "has no <inertial>; SDF's default of 1 kg and 1 kg m^2 is taken")
        return Body(name, 1.0, np.zeros(3), np.eye(3), link.place)
    if truth(inertial, inertial.get("auto") or ""):
        raise inertial.error("is to be computed (auto='true'), which is not read; write it out")
    defaults = [tag for tag in ("mass", "inertia") if inertial.first(tag) is None]
    if defaults:
        remarks.add(link, f"has no {' and no '.join(defaults)}; SDF's 1 is taken")
    mass = quantities.read_mass(inertial, inertial.text_number("mass", 1.0))
    inertia = inertial.first("inertia") or inertial.copy(children=[])
    unit = {key: float(i == j) for key, (i, j) in quantities.MOMENTS.items()}
    values = quantities.tensor(lambda key: inertia.text_number(key, unit[key]))
    solid = Moments(mass, np.zeros(3), values).placed(read_pose(inertial.first("pose")))
    return solid.body(name, link.place)


def _body_of_collisions(frame: Frame, inertial: Element) -> Body:
    """Mass properties that SDF computes from the collisions (``auto="true"``)."""
    density = inertial.text_number("density", _DENSITY)
    parts: list[Moments] = []
    for element in frame.element.all("collision"):
        if element.need("geometry").first("mesh") is not None:
            raise element.error("is a mesh, whose inertia is not computed; write <inertial> out")
        # What is not read is reported where the collisions are.
        shape = _shape(element, frame.scope, Remarks())
        if shape is not None:
            solid = primitive_moments(shape).scaled(element.text_number("density", density))
            parts.append(solid.placed(frame.scope.pose_in(element, frame)))
    total = Moments.total(parts)
    if not total.mass > 0:
        raise inertial.error("is to be computed (auto='true'), but no collision has a mass")
    total = total.scaled(inertial.text_number("mass", total.mass) / total.mass)
    return total.body(frame.name, frame.element.place)


# -- shapes ---------------------------------------------------------------------------------------


def _geometry(frame: Frame, names: dict[str, quantities.Names], remarks: Remarks) -> list[Geometry]:
    """Read the visuals and collisions of a link; ``names`` are those used already, per role."""
    shapes: list[Geometry] = []
    for element in frame.element.all("visual", "collision"):
        role, taken = element.tag, names[element.tag]
        shape = _shape(element, frame.scope, remarks)
        if shape is None:
            continue
        # Names are unique in their link only.
        name = element.get("name") or f"{frame.name}_{role}"
        name = taken.new(f"{frame.name}::{name}" if name in taken else name)
        placement = frame.scope.pose_in(element, frame)
        color = _color(element) if role == "visual" else None
        shapes.append(Geometry(name, frame.name, role, shape, placement, color))  # type: ignore[arg-type]
    return shapes


def _shape(element: Element, scope: Scope, remarks: Remarks) -> Shape | None:
    """Shape of a visual or collision, or None and a warning if there is none to show."""
    geometry = element.need("geometry")
    if not geometry.children:
        raise geometry.error("is empty; give it a shape")
    shape = geometry.children[0]
    if shape.tag in quantities.SIZES:
        return quantities.primitive(
            shape, lambda key, count: shape.numbers(shape.need(key).text, count, "the value")
        )
    if shape.tag == "mesh":
        return _mesh(shape, scope, remarks)
    if shape.tag not in ("empty", "plane"):  # floors touch nothing here
        remarks.add(element, f"is a <{shape.tag}>, which is not read")
    return None


def _mesh(mesh: Element, scope: Scope, remarks: Remarks) -> Shape | None:
    uri = text_of(mesh, "uri")
    path = scope.source.resolve(uri)
    if path is None:
        remarks.add(mesh, "names the file '{}', which does not exist", value=uri)
        return None
    if mesh.first("submesh") is not None:
        remarks.add(mesh, "picks a submesh, which is not read; all of it is taken")
    return Shape("mesh", tuple(map(float, mesh.text_vector("scale", (1.0, 1.0, 1.0)))), path)


def _color(visual: Element) -> quantities.Color | None:
    """Diffuse colour, or ambient where there is no other, made transparent."""
    material = visual.first("material")
    paint = None if material is None else material.first("diffuse") or material.first("ambient")
    if paint is None:
        return None
    red, green, blue, alpha = quantities.rgba(paint, paint.text, "the value", least=3)
    return red, green, blue, alpha * (1.0 - visual.text_number("transparency", 0.0))
