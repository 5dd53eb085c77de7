"""The reader of SDF, the format of Gazebo: from `<sdf>` or `<model>` to a `Description`.

Picks the model, roots it in the ground, and puts together what the other `sdf_` modules read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pinocchio as pin

from ..description import GROUND, Description, Geometry, Joint, NamedFrame, constant
from ..errors import LoadError
from ..pairs import make_pair
from .sdf_joints import read_joints
from .sdf_links import read_geometry, read_link
from .sdf_scope import Frame, Scope
from .sdf_source import Source, fetch, truth, version_of
from .xmltools import Element

__all__ = ["read_sdf"]

_GRAVITY = (0.0, 0.0, -9.8)
"""SDF's default, which is not the -9.81 of other formats."""
_WORLD_PARTS = (
    "model", "include", "joint", "frame", "gravity", "physics", "scene", "light", "sensor", "gui",
    "plugin", "atmosphere", "magnetic_field", "audio", "spherical_coordinates", "wind", "road",
)  # fmt: skip
_SCENERY = ("model://sun", "model://ground_plane")
"""What comes with every Gazebo, and is no robot."""


def read_sdf(root: Element, *, resolve: Callable[[str], Path | None]) -> Description:
    """Read an SDF model, alone or as the only robot of a world.

    A model that no joint ties to the world floats on a free joint "root_joint", or is welded there
    by a fixed one if it is `<static>`. Gravity is the world's, (0, 0, -9.8) by default (SDF's own).
    Elements of Drake, sensors, lights and plugins are passed over without a warning.

    Args:
        root: the parsed `<sdf>` or `<model>` element.
        resolve: gives the path of a mesh or included file, or None if it does not exist.

    Returns:
        The robot; a joint whose child already has a parent is a cut joint.

    Raises:
        LoadError: says what is wrong, with file and line.
    """
    warnings: list[str] = []
    source = Source(version_of(root), resolve)
    world, element, model_source = _pick(root, source, warnings)
    around = Scope(world, None, source, warnings)
    model = around.add_model(element, model_source, "")
    links = list(model.of_kind("link"))
    found = read_joints(around, root.source, warnings)
    joints = [*_roots(model, links, found.joints), *found.joints]
    taken: set[str] = set()
    bodies = [read_link(link, warnings) for link in links]
    geometry: list[Geometry] = []
    for link in links:
        assert link.scope is not None
        geometry += read_geometry(link, link.scope, taken, warnings)
    return Description(
        name=model.frame.name,
        bodies=tuple(bodies),
        joints=tuple(joints),
        couplings=tuple(found.couplings),
        frames=tuple(_named(model, frame) for frame in model.of_kind("frame")),
        geometry=tuple(geometry),
        gravity=constant(_GRAVITY if world is None else world.text_vector("gravity", _GRAVITY)),
        warnings=tuple(warnings),
        source=root.source,
    )


def _pick(
    root: Element, source: Source, warnings: list[str]
) -> tuple[Element | None, Element, Source]:
    """World (if there is one), the one model, and the source of the model."""
    if root.tag == "model":
        return None, root, source
    if root.tag != "sdf":
        raise root.error("is not SDF; its root element must be <sdf> or <model>")
    worlds = root.all("world")
    if len(worlds) > 1:
        raise worlds[1].error("is the second world; load a file with one")
    around = worlds[0] if worlds else root
    known = _WORLD_PARTS if worlds else ("model", "include", "light")
    for child in around.children:
        if child.tag not in known and not child.tag.startswith("drake:"):
            warnings.append(str(child.error(f"in {around!r} is not read")))
    models = _models(around, source, warnings)
    robots = [(element, its) for element, its in models if not _is_scenery(element)]
    if len(models) > 1 and len(robots) == 1:
        for element, _ in models:
            if element is not robots[0][0]:
                warnings.append(str(element.error("does not move and is left out as scenery")))
        models = robots
    if not models:
        raise root.error("holds no <model>")
    if len(models) > 1:
        names = ", ".join(element.get("name") or "?" for element, _ in models)
        raise LoadError(
            f"holds {len(models)} models ({names}); load a file with one", source=root.source
        )
    return (worlds[0] if worlds else None), *models[0]


def _models(around: Element, source: Source, warnings: list[str]) -> list[tuple[Element, Source]]:
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
            warnings.append(f"left out as scenery: {error}")
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
        roots.append(Joint(label, pair, GROUND, name, placement, pin.SE3.Identity(), False))
    return roots


def _named(model: Scope, frame: Frame) -> NamedFrame:
    """A `<frame>` on the link it is attached to."""
    link = model.link_of(frame)
    placement = model.placement(link).actInv(model.placement(frame))
    return NamedFrame(frame.name, link.name, placement)
