"""Names and frames of SDF: which frame a name means, where it is, and which link it moves with.

Every link, joint, `<frame>` and (nested) model is a frame; a model is a scope of names inside which
they refer to each other, across `::` for nested ones (http://sdformat.org/tutorials, "Pose Frame
Semantics"). Masses and joints are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pinocchio as pin

from ...boundary.xml import Element, Remarks
from ...model.description import GROUND
from .source import Source, fetch, read_pose

__all__ = ["Frame", "Scope"]

_DEEPEST = 50
_SOLID = ("inertial", "visual", "collision")


@dataclass(eq=False)
class Frame:
    """Something with a pose that other poses can refer to.

    Args:
        kind: what it is.
        name: its full name, with the names of nested models before it.
        element: the element, None for the world.
        scope: the scope in which its own pose looks up names.
        inside: for a model, the scope of its contents.
        pose: placement in the world in the initial pose, once it is known.
        busy: the placement is being computed.
    """

    kind: Literal["world", "model", "link", "joint", "frame"]
    name: str
    element: Element | None
    scope: Scope | None
    inside: Scope | None = None
    pose: pin.SE3 | None = None
    busy: bool = field(default=False, repr=False)


class Scope:
    """The names in a model, or in the world around it.

    Args:
        element: the `<model>`, or `<world>`; None for a world that the file does not have.
        outer: the scope around it, None for the world.
        source: file and version it comes from.
        remarks: takes what is not read.
        prefix: what comes before the names in it, "" for the world and the robot itself.
    """

    def __init__(
        self,
        element: Element | None,
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
        self.models: list[Frame] = []
        self._remarks = remarks
        if outer is None:
            self.frame = Frame("world", GROUND, None, None, self, pin.SE3.Identity())
        else:
            assert element is not None
            name = prefix.removesuffix("::") or element.require("name")
            self.frame = Frame("model", name, element, outer, self)
            if prefix.count("::") > _DEEPEST:
                raise element.error(f"is nested deeper than {_DEEPEST} models")
        if element is not None:
            self._read(element)

    def add_model(self, element: Element, source: Source, prefix: str) -> Scope:
        """Add a model to this scope."""
        scope = Scope(element, self, source, self._remarks, prefix)
        self._add(element, scope.frame)
        self.models.append(scope.frame)
        return scope

    def scopes(self) -> Iterator[Scope]:
        """This scope and all inside it, in file order."""
        yield self
        for model in self.models:
            assert model.inside is not None
            yield from model.inside.scopes()

    def of_kind(self, kind: str) -> Iterator[Frame]:
        """Links or frames of this scope and all inside it."""
        for scope in self.scopes():
            yield from (frame for frame in scope.frames.values() if frame.kind == kind)

    def find(self, element: Element, name: str) -> Frame:
        """Frame that ``element`` names in this scope."""
        frame = self._look_up(name)
        if frame is None:
            names = ", ".join([*self.frames][:12])
            raise element.error(f"names the frame '{name}', which does not exist; known: {names}")
        return frame

    def placement(self, frame: Frame) -> pin.SE3:
        """Placement of a frame in the world in the initial pose."""
        waiting: list[tuple[Frame, pin.SE3]] = []
        base = frame
        while base.pose is None:
            if base.busy:
                assert base.element is not None
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
        """Placement in ``body`` of something on it (visual, collision), relative to it by default.

        Args:
            element: what has the `<pose>`.
            body: the link.
        """
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
                assert frame.element is not None
                raise frame.element.error("is attached to itself, through other frames")
            seen.append(frame)
            frame = _attached(frame)
        return frame

    def canonical(self) -> Frame:
        """The link that carries the frame of the model."""
        assert self.element is not None
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
            assert model.inside is not None
            return model.inside.canonical()
        raise self.element.error("has no <link>")

    def _look_up(self, name: str) -> Frame | None:
        if name == "world":
            scope = self
            while scope.outer is not None:
                scope = scope.outer
            return scope.frame
        if name == "__model__":
            return self.frame
        head, _, rest = name.partition("::")
        frame = self.frames.get(head)
        if frame is None or not rest:
            return frame
        return frame.inside._look_up(rest) if frame.inside is not None else None

    def _add(self, element: Element, frame: Frame) -> None:
        name = element.require("name")
        if name == "world" or (name.startswith("__") and name.endswith("__")):
            raise element.error("has a name that SDF reserves; give it another one")
        other = self.frames.get(name)
        if other is not None and {other.kind, frame.kind} == {"link", "joint"}:
            # Before 1.7 joints were no frames: there the name means the link.
            self.frames[name] = other if other.kind == "link" else frame
        elif other is not None:
            raise element.error("has a name that is already taken; rename one of the two")
        else:
            self.frames[name] = frame

    def _read(self, element: Element) -> None:
        for child in element.children:
            if child.tag == "link" and child.get("name") == "world" and not child.all(*_SOLID):
                self._remarks.add(child, "has nothing in it; it is taken for the world itself")
            elif child.tag in ("link", "joint", "frame"):
                if child.tag == "frame" and self.source.version < (1, 7):
                    self._remarks.add(child, "is a frame of a version before 1.7; it is not read")
                    continue
                kind: Literal["link", "joint", "frame"] = child.tag  # type: ignore[assignment]
                frame = Frame(kind, self.prefix + child.require("name"), child, self)
                self._add(child, frame)
                if child.tag == "joint":
                    self.joints.append(frame)
            elif self.outer is None:
                continue
            elif child.tag in ("model", "include"):
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
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    pose = element.first("pose")
    name = _reference(pose)
    if pose is not None and name:
        base = scope.find(pose, name)
    elif frame.kind == "joint" or (frame.kind == "frame" and element.get("attached_to")):
        base = _attached(frame)
    else:
        base = scope.frame
    return base, read_pose(pose)


def _attached(frame: Frame) -> Frame:
    """The next frame on the way from a frame to the link it moves with."""
    element, scope = frame.element, frame.scope
    assert element is not None and scope is not None
    if frame.kind == "joint":
        child = element.need("child")
        return scope.find(child, child.text.strip())
    if frame.kind == "model":
        assert frame.inside is not None
        return frame.inside.canonical()
    name = element.get("attached_to")
    return scope.find(element, name) if name else scope.frame


def _placement_frame(frame: Frame) -> pin.SE3:
    """Placement of a model in its own placement frame, whose pose its `<pose>` then is."""
    assert frame.element is not None
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
