"""The reader of SDF, the format of Gazebo: from `<sdf>` or `<model>` to a `Description`.

Picks the model, roots it in the ground, and puts together what the other `sdf_` modules read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...boundary.xml import Element, Remarks
from ...errors import LoadError, UnknownName, listed
from ...model.description import GROUND, Description, Geometry, Joint, NamedFrame, constant
from ...model.pairs import make_pair
from ..entries import free_root
from ..urdf.loops import drake_constraints
from ..vocabulary import SDF, report_unread
from .joints import read_joints
from .links import read_geometry, read_link
from .scope import Frame, Scope
from .source import Source, fetch, truth, version_of

__all__ = ["read_sdf"]

_GRAVITY = (0.0, 0.0, -9.8)
"""SDF's default, which is not the -9.81 of other formats."""
_SCENERY = ("model://sun", "model://ground_plane")
"""What comes with every Gazebo, and is no robot."""


def read_sdf(
    root: Element, *, resolve: Callable[[str], Path | None], model: str | None = None
) -> Description:
    """Read an SDF model, alone or as one of a world.

    A model that no joint ties to the world floats on a free joint "root_joint", or is welded there
    by a fixed one if it is `<static>`. Gravity is the world's, (0, 0, -9.8) by default (SDF's own).
    Sensors, lights and plugins are passed over without a warning.

    Args:
        root: the parsed `<sdf>` or `<model>` element.
        resolve: gives the path of a mesh or included file, or None if it does not exist.
        model: name of the model, if there are several that may be the robot.

    Returns:
        The robot; a joint whose child already has a parent is a cut joint.

    Raises:
        LoadError: says what is wrong, with file and line.
    """
    remarks = Remarks()
    source = Source(version_of(root), resolve)
    world, element, model_source = _pick(root, source, model, remarks)
    around = Scope(world, None, source, remarks)
    robot = around.add_model(element, model_source, "")
    links = list(robot.of_kind("link"))
    connections = read_joints(around, remarks)
    joints = [*_roots(robot, links, connections.joints), *connections.joints]
    taken: set[str] = set()
    bodies = [read_link(link, remarks) for link in links]
    geometry: list[Geometry] = []
    for link in links:
        assert link.scope is not None
        geometry += read_geometry(link, link.scope, taken, remarks)
    if world is not None:
        report_unread(_without_models(world), SDF, remarks)
    for scope in robot.scopes():
        outside = scope.outer.element if scope.outer is not None else None
        # A model that stands in another one is reported with it; one that is included is not.
        nested = scope is not robot and outside is not None and scope.element in outside.children
        if scope.element is not None and not nested:
            report_unread(scope.element, SDF, remarks)
    description = Description(
        name=robot.frame.name,
        bodies=tuple(bodies),
        joints=tuple(joints),
        couplings=tuple(connections.couplings),
        frames=tuple(_named(robot, frame) for frame in robot.of_kind("frame")),
        geometry=tuple(geometry),
        gravity=constant(_GRAVITY if world is None else world.text_vector("gravity", _GRAVITY)),
        source=root.source,
    )
    for holder in filter(None, (world, *(scope.element for scope in robot.scopes()))):
        description = drake_constraints(holder, description, remarks)
    return replace(description, warnings=remarks.texts())


def _without_models(world: Element) -> Element:
    """The world alone: models that were not picked say nothing about the robot."""
    copy = Element(world.tag, world.attributes, world.source, world.line)
    copy.children = [child for child in world.children if child.tag not in ("model", "include")]
    return copy


def _pick(
    root: Element, source: Source, name: str | None, remarks: Remarks
) -> tuple[Element | None, Element, Source]:
    """World (if there is one), the model, and the source of the model."""
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
    if name is not None and len(candidates) > 1:
        raise candidates[1][0].error("has the name of another model; rename one of the two")
    if len(candidates) != 1:
        elements = [element for element, _ in models]
        offered = [element for element in elements if not _is_scenery(element)] or elements
        names = [element.get("name") or "?" for element in offered]
        problem = (
            f"holds {len(names)} models ({listed(names, most=12)}); name the one to load with "
            f"model='{names[0]}', on the command line with --model {shlex.quote(names[0])}"
            if name is None
            else str(UnknownName("model", name, names))
        )
        raise LoadError(problem, source=root.source)
    for element, _ in models:
        if element is not candidates[0][0]:
            remarks.add(element, "is not part of the robot; left out")
    return (worlds[0] if worlds else None), *candidates[0]


def _models(around: Element, source: Source, remarks: Remarks) -> list[tuple[Element, Source]]:
    """Models of a file or world, included ones too."""
    models: list[tuple[Element, Source]] = []
    for child in around.all("model", "include"):
        if child.tag == "model":
            models.append((child, source))
            continue
        try:
            model = fetch(child, source)
        except LoadError as error:
            if child.need("uri").text.strip() not in _SCENERY:
                raise
            remarks.say(f"left out as scenery: {error}")
            continue
        if model is not None:
            models.append(model)
    return models


def _is_scenery(model: Element) -> bool:
    """Whether a model is static and has no joints."""
    static = model.first("static")
    return static is not None and truth(static, static.text) and model.first("joint") is None


def _roots(model: Scope, links: Sequence[Frame], joints: Sequence[Joint]) -> list[Joint]:
    """Joints that tie to the ground what no joint does: the canonical link first."""
    by_name = {link.name: link for link in links}
    parents = {joint.child: joint.parent for joint in joints if joint.cut is False}
    island: dict[str, set[str]] = {GROUND: {GROUND}, **{name: {name} for name in by_name}}
    for joint in joints:
        if joint.cut is not True and joint.parent in island and joint.child in island:
            merged = island[joint.parent] | island[joint.child]
            island.update(dict.fromkeys(merged, merged))
    assert model.element is not None
    static = model.element.first("static")
    pair = make_pair("fixed" if static is not None and truth(static, static.text) else "free")
    roots: list[Joint] = []
    for link in (model.canonical(), *links):
        if GROUND in island[link.name]:
            continue
        name = link.name
        while name in parents:
            name = parents[name]
        merged = island[GROUND] | island[name]
        island.update(dict.fromkeys(merged, merged))
        label = f"root_joint_{name}" if roots else "root_joint"
        placement = model.placement(by_name[name])
        roots.append(replace(free_root(label, name, placement), pair=pair))
    return roots


def _named(model: Scope, frame: Frame) -> NamedFrame:
    """A `<frame>` on the link it is attached to."""
    link = model.link_of(frame)
    placement = model.placement(link).actInv(model.placement(frame))
    return NamedFrame(frame.name, link.name, placement)
