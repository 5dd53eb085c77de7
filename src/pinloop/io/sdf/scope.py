"""Names, frames and files of SDF: what a name means, where it is, which link it moves with.

Every link, joint, `<frame>` and (nested) model is a frame; a model is a scope of names inside which
they refer to each other, across `::` for nested ones (http://sdformat.org/tutorials, "Pose Frame
Semantics"). Models that `<include>` names are fetched here. Masses and joints are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal, cast

import numpy as np
import pinocchio as pin

from ...boundary.files import read_bytes
from ...boundary.xml import LARGEST, Element, Remarks, parse_xml, pose_rpy
from ...model.description import GROUND
from ..formats import Resolver, beside

_MOST_INCLUDED = 1000
"""Models that a file includes, and those include: a few such files could mean millions."""
_DEEPEST = 50
_SOLID = ("inertial", "visual", "collision")


@dataclass(frozen=True)
class Source:
    """What a part of a robot needs to know of the file it stands in.

    ``version`` is (1, 7) for SDF 1.7; ``files`` were included to get here; ``number`` counts the
    models that the whole robot includes.
    """

    version: tuple[int, int]
    resolve: Resolver
    files: tuple[Path, ...] = ()
    number: Iterator[int] = field(default_factory=count, compare=False)


def text_of(element: Element, tag: str) -> str:
    """Text of a child that must be there."""
    return element.need(tag).text.strip()


def truth(element: Element | None, text: str | None = None, default: bool = False) -> bool:
    """Truth of a text, that of the element by default: true, false, 1 or 0."""
    if element is None:
        return default
    word = (element.text if text is None else text).strip().lower()
    if word not in ("", "true", "false", "1", "0"):
        raise element.error(f"has the value '{word}'; it must be true or false")
    return word in ("true", "1") if word else default


def read_pose(pose: Element | None) -> pin.SE3:
    """Placement that a `<pose>` gives, identity if there is none."""
    if pose is None:
        return pin.SE3.Identity()
    form = pose.get("rotation_format") or "euler_rpy"
    if form not in ("euler_rpy", "quat_xyzw"):
        raise pose.error(f"has rotation_format '{form}'; it is euler_rpy or quat_xyzw")
    if not pose.text.strip():
        return pin.SE3.Identity()
    if form == "quat_xyzw":
        values = pose.numbers(pose.text, 7, "the value")
        x, y, z, w = pose.unit_vector(values[3:], "quaternion")
        return pin.SE3(pin.Quaternion(w, x, y, z).toRotationMatrix(), values[:3])
    values = pose.numbers(pose.text, 6, "the value")
    unit = np.pi / 180 if truth(pose, pose.get("degrees") or "") else 1.0
    return pose_rpy(values[:3], values[3:] * unit)


def version_of(root: Element) -> tuple[int, int]:
    """Version of an `<sdf>` element; the newest if it gives none."""
    text = root.get("version")
    if root.tag != "sdf" or not text:
        return (1, 99)
    major, _, minor = text.strip().partition(".")
    if not (major.isdigit() and minor.split(".")[0].isdigit()):
        raise root.error(f"has the version '{text}'; it must be like 1.7")
    return int(major), int(minor.split(".")[0])


def fetch(include: Element, source: Source) -> tuple[Element, Source] | None:
    """Read the model that an `<include>` names, with the include's own name, pose and static.

    None if the file holds no model (but a light, say).
    """
    if truth(include, include.get("merge") or ""):
        raise include.error("merges its model into this one, which is not read; drop merge='true'")
    path = _model_file(include, source.resolve)
    if next(source.number) >= _MOST_INCLUDED:
        raise include.error(f"is one of more than {_MOST_INCLUDED} models that are included")
    if path in source.files:
        raise include.error(f"includes '{path}', which includes this file")
    root = parse_xml(read_bytes(path, "model", LARGEST), str(path))
    models = root.all("model") if root.tag == "sdf" else [root]
    if len(models) > 1:
        raise root.error("holds several models; a file that is included may hold one")
    if not models or models[0].tag != "model":
        return None
    own = {child.tag: child.text.strip() for child in include.all("name", "placement_frame")[::-1]}
    replaced = include.all("pose", "static")
    tags = {child.tag for child in replaced}
    model = models[0].copy(
        attributes={**models[0].attributes, **own},
        children=replaced + [child for child in models[0].children if child.tag not in tags],
    )
    resolve = beside(path, source.resolve)
    return model, Source(version_of(root), resolve, (*source.files, path), source.number)


def _model_file(include: Element, resolve: Resolver) -> Path:
    """File of a model that is named by its file or by its folder."""
    uri = text_of(include, "uri")
    if uri.endswith((".sdf", ".world", ".xml")) and (path := resolve(uri)) is not None:
        return path
    folder = uri.rstrip("/")
    candidates = [f"{folder}/model.sdf"]
    if (config := resolve(f"{folder}/model.config")) is not None:
        # The last <sdf> of a model.config has the newest version.
        files = parse_xml(read_bytes(config), str(config)).all("sdf")
        candidates = [f"{folder}/{file.text.strip()}" for file in files[-1:]] + candidates
    path = next((path for name in candidates if (path := resolve(name)) is not None), None)
    if path is None:
        raise include.error(
            f"names the model '{uri}', which is not found; name the folder that holds it with "
            "package_dirs, on the command line with --package-dir"
        )
    return path


Kind = Literal["world", "model", "link", "joint", "frame"]


@dataclass(eq=False)
class Frame:
    """Something with a pose that other poses can refer to.

    Args:
        name: its full name, with the names of nested models before it.
        scope: the scope in which its own pose looks up names.
        inside: for a model, the scope of its contents.
        pose: placement in the world in the initial pose, once it is known.
    """

    kind: Kind
    name: str
    element: Element
    scope: Scope
    inside: Scope | None = None
    pose: pin.SE3 | None = None
    busy: bool = field(default=False, repr=False)


class Scope:
    """The names in a model, or in the world around it.

    Args:
        outer: the scope around it, None for the world.
        source: file and version it comes from.
        prefix: what comes before the names in it, "" for the world and the robot itself.
    """

    def __init__(
        self,
        element: Element,
        outer: Scope | None,
        source: Source,
        remarks: Remarks,
        prefix: str = "",
    ) -> None:
        self.element = element
        self.outer = outer
        self.source = source
        self.prefix = prefix
        self.frames: dict[str, Frame] = {}
        self.joints: list[Frame] = []
        self.models: list[Scope] = []
        self._remarks = remarks
        if outer is None:
            self.frame = Frame("world", GROUND, element, self, self, pin.SE3.Identity())
        else:
            name = prefix.removesuffix("::") or element.require("name")
            self.frame = Frame("model", name, element, outer, self)
            if prefix.count("::") > _DEEPEST:
                raise element.error(f"is nested deeper than {_DEEPEST} models")
        self._read()

    def add_model(self, element: Element, source: Source, prefix: str) -> Scope:
        """Add a model to this scope."""
        scope = Scope(element, self, source, self._remarks, prefix)
        self._add(scope.frame)
        self.models.append(scope)
        return scope

    def scopes(self) -> Iterator[Scope]:
        """This scope and all inside it, in file order."""
        yield self
        for model in self.models:
            yield from model.scopes()

    def of_kind(self, kind: str) -> Iterator[Frame]:
        """Links or frames of this scope and all inside it."""
        for scope in self.scopes():
            yield from (frame for frame in scope.frames.values() if frame.kind == kind)

    def find(self, element: Element, name: str | None = None) -> Frame:
        """Frame that ``element`` names in this scope, by its text if no name is given."""
        name = element.text.strip() if name is None else name
        frame = self._look_up(name)
        if frame is None:
            names = ", ".join([*self.frames][:12])
            raise element.error(f"names the frame '{name}', which does not exist; known: {names}")
        return frame

    def link(self, owner: Element, tag: str) -> Frame:
        """Link with which the frame moves that a child of ``owner`` names."""
        return self.link_of(self.find(owner.need(tag)))

    def placement(self, frame: Frame) -> pin.SE3:
        """Placement of a frame in the world in the initial pose."""
        waiting: list[tuple[Frame, pin.SE3]] = []
        base = frame
        while base.pose is None:
            if base.busy:
                raise base.element.error("has a pose relative to itself, through other frames")
            base.busy = True
            inside = _placement_frame(base)
            following, raw = _base(base)
            waiting.append((base, raw * inside))
            base = following
        pose = base.pose
        for later, raw in reversed(waiting):
            pose = pose * raw
            later.pose = pose
        return pose

    def pose_in(self, element: Element, body: Frame) -> pin.SE3:
        """Placement in a link of what has a `<pose>` on it, relative to it by default."""
        pose = element.first("pose")
        name = _reference(pose)
        if pose is None or not name:
            return read_pose(pose)
        return self.placement(body).actInv(self.placement(self.find(pose, name)) * read_pose(pose))

    def link_of(self, frame: Frame) -> Frame:
        """Link with which a frame moves (the world frame for the ground)."""
        seen: list[Frame] = []
        while frame.kind not in ("link", "world"):
            if frame in seen:
                raise frame.element.error("is attached to itself, through other frames")
            seen.append(frame)
            frame = _attached(frame)
        return frame

    def canonical(self) -> Frame:
        """The link that carries the frame of the model."""
        name = self.element.get("canonical_link")
        if name:
            link = self.find(self.element, name)
            if link.kind != "link":
                raise self.element.error(f"has the canonical link '{name}', which is no link")
            return link
        for frame in self.frames.values():
            if frame.kind == "link":
                return frame
        for model in self.models:
            return model.canonical()
        raise self.element.error("has no <link>")

    def _look_up(self, name: str) -> Frame | None:
        if name == "__model__":
            return self.frame
        head, _, rest = name.partition("::")
        frame = self.frames.get(head)
        if frame is None and name == "world":
            scope = self
            while scope.outer is not None:
                scope = scope.outer
            return scope.frame
        if frame is None or not rest:
            return frame
        return frame.inside._look_up(rest) if frame.inside is not None else None

    def _add(self, frame: Frame) -> None:
        element = frame.element
        name = element.require("name")
        if name == "world" and frame.kind == "link":
            # PyBullet's own files have such links.
            self._remarks.add(
                element, "has the name of the world: in its model this name means the link"
            )
        elif name == "world" or (name.startswith("__") and name.endswith("__")):
            raise element.error("has a name that SDF reserves; give it another one")
        other = self.frames.get(name)
        if other is not None and {other.kind, frame.kind} == {"link", "joint"}:
            # Before 1.7 joints were no frames: there the name means the link.
            self.frames[name] = other if other.kind == "link" else frame
        elif other is not None:
            raise element.error("has a name that is already taken; rename one of the two")
        else:
            self.frames[name] = frame

    def _read(self) -> None:
        for child in self.element.children:
            if child.tag == "link" and child.get("name") == "world" and not child.all(*_SOLID):
                self._remarks.add(child, "has nothing in it; it is taken for the world itself")
            elif child.tag in ("link", "joint", "frame"):
                if child.tag == "frame" and self.source.version < (1, 7):
                    self._remarks.add(child, "is a frame of a version before 1.7; it is not read")
                    continue
                name = self.prefix + child.require("name")
                frame = Frame(cast(Kind, child.tag), name, child, self)
                self._add(frame)
                if child.tag == "joint":
                    self.joints.append(frame)
            elif self.outer is not None and child.tag in ("model", "include"):
                model, source = child, self.source
                if child.tag == "include":
                    included = fetch(child, self.source)
                    if included is None:
                        raise child.error("includes a file without a <model>")
                    model, source = included
                self.add_model(model, source, f"{self.prefix}{model.require('name')}::")


def _reference(pose: Element | None) -> str:
    """Name of the frame that a pose is relative to ("frame" in versions before 1.7)."""
    return "" if pose is None else (pose.get("relative_to") or pose.get("frame") or "").strip()


def _base(frame: Frame) -> tuple[Frame, pin.SE3]:
    """Frame that a pose is relative to, and the pose."""
    pose = frame.element.first("pose")
    name = _reference(pose)
    if pose is not None and name:
        base = frame.scope.find(pose, name)
    elif frame.kind == "joint" or (frame.kind == "frame" and frame.element.get("attached_to")):
        base = _attached(frame)
    else:
        base = frame.scope.frame
    return base, read_pose(pose)


def _attached(frame: Frame) -> Frame:
    """The next frame on the way from a frame to the link it moves with."""
    if frame.kind == "joint":
        return frame.scope.find(frame.element.need("child"))
    if frame.kind == "model":
        assert frame.inside is not None
        return frame.inside.canonical()
    name = frame.element.get("attached_to")
    return frame.scope.find(frame.element, name) if name else frame.scope.frame


def _placement_frame(frame: Frame) -> pin.SE3:
    """Placement of a model in its own placement frame, whose pose its `<pose>` then is."""
    name = frame.element.get("placement_frame")
    if frame.kind != "model" or not name:
        return pin.SE3.Identity()
    assert frame.inside is not None
    inner = frame.inside.find(frame.element, name)
    placement = pin.SE3.Identity()
    seen: list[Frame] = []
    while inner is not frame:
        if inner.kind == "world" or inner in seen:
            raise frame.element.error(f"has the placement frame '{name}', which is not inside it")
        seen.append(inner)
        inner, raw = _base(inner)
        placement = raw * placement
    return placement.inverse()
