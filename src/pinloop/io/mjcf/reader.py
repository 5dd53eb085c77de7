"""The reader of MJCF, the XML of MuJoCo: from `<mujoco>` to a `Description`.

Puts together what the other modules of this folder read, parts of the model under other names
(`<replicate>`, `<attach>`), and models that are attached under a prefix. Copies are made of
elements alone: a copy is a subtree of `<worldbody>` under other names, and one more of every
tendon, equality and actuator that refers to it, as MuJoCo's compiler makes them. A model that is
attached keeps the settings and default classes of its own file.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...boundary.xml import Element
from ...model.description import Description
from ..formats import Resolver, beside
from ..vocabulary import MJCF, report_unread
from .body_tree import Tree
from .constraints import read_actuators, read_equalities, read_tendons
from .document import Document, merge, open_file

_MECHANICAL_FLAGS = (
    "constraint",
    "equality",
    "frictionloss",
    "limit",
    "passive",
    "spring",
    "damper",
    "actuation",
)


def read_mjcf(root: Element, *, resolve: Resolver) -> Description:
    """Read a MuJoCo model; equality constraints are loops (cut joints) and couplings.

    Hinges and slides have the coordinate of MuJoCo's `qpos`, which is `ref` in the pose of the
    file; ball and free joints count from that pose. Gravity is (0, 0, -9.81) by default.
    """
    document = Document(root, resolve)
    expand_copies(document)
    tree = Tree(document)
    documents = [document, *attach_models(document, tree)]
    if not tree.bodies:
        raise root.error("has no <body> in its <worldbody>")
    tree.scale_masses()
    tendons = read_tendons(documents, tree)
    loops, couplings = read_equalities(documents, tree, tendons)
    # pinloop's own names of the frames of loops, which need no others.
    ends = {f"{loop.name}/{end}" for loop in loops for end in ("A", "B", "2/A", "2/B")}
    actuated, drives, joints = read_actuators(documents, tree, tendons)
    gravity = _gravity(document)
    for model in documents:
        report_unread(model.root, MJCF, model.remarks)
        for element in model.root.all("deformable"):
            model.warn(element, "holds soft bodies, which are left out")
    return Description(
        name=root.get("model") or Path(root.source).stem or "MuJoCo Model",
        bodies=tuple(tree.bodies),
        joints=(*joints, *loops),
        couplings=tuple(couplings),
        actuated=actuated,
        drives=drives,
        frames=tuple(frame for frame in tree.frames if frame.name not in ends),
        geometry=tuple(tree.geometry),
        gravity=gravity,
        warnings=tuple(text for model in documents for text in model.remarks.texts()),
        source=root.source,
    )


def _gravity(document: Document) -> Array:
    """Gravity [m/s^2]; warns of the options that change forces and are not read."""
    option = merge("option", document.root, document.root.all("option"))
    for attribute in ("wind", "density", "viscosity"):
        if document.is_set(option, attribute):
            text = option.get(attribute)
            document.warn(option, f"has {attribute} '{text}': forces of the air are not read")
    flags = merge("flag", option, option.all("flag"))
    for name in _MECHANICAL_FLAGS:
        if flags.get(name) == "disable":
            document.warn(flags, f"disables {name}, which is not read")
    if flags.get("gravity") == "disable":
        return np.zeros(3)
    return option.vector("gravity", (0.0, 0.0, -9.81))


Name = tuple[str, str]
"""Kind and name of an element."""

_TAGS = ("body", "joint", "geom", "site", "frame", "camera", "light")
_NAMED = {tag: tag for tag in _TAGS} | {"freejoint": "joint"}
"""Kind of what carries a name in a kinematic tree, by its tag."""

_ATTRIBUTES = {
    "body": "body body1 body2",
    "joint": "joint joint1 joint2 jointinparent",
    "site": "site site1 site2 sidesite refsite cranksite slidersite",
    "geom": "geom",
    "tendon": "tendon tendon1 tendon2",
}
_REFERENCES = {name: kind for kind, names in _ATTRIBUTES.items() for name in names.split()}
"""Kind of what an attribute outside the kinematic tree refers to."""

_SECTIONS = ("tendon", "equality", "actuator")
"""Sections that refer to the kinematic tree, in the order in which they refer to each other."""

_MOST = 200_000
"""A model with more elements than this is a slip."""


@dataclass(frozen=True)
class Renaming:
    """New names for copies: with the prefix ``left_``, ``hip`` becomes ``left_hip``."""

    prefix: str = ""
    suffix: str = ""

    def apply(self, elements: Iterable[Element], names: Iterable[Name] = ()) -> None:
        """Rename, below ``elements``, all names and the references to ``names``."""
        known = set(names)
        for top in elements:
            for element in top.walk():
                # In a tendon <joint>, <site> and <geom> are references, and have no name.
                keys = ["name"] if element.tag in _NAMED or element is top else []
                keys += [
                    key for key, kind in _REFERENCES.items() if (kind, element.get(key)) in known
                ]
                for key in keys:
                    if name := element.get(key):
                        element.attributes[key] = self.prefix + name + self.suffix

    def copy(self, element: Element, names: Iterable[Name] = ()) -> Element:
        """Copy of an element with all that is in it, under other names."""
        copy = element.copy(attributes=dict(element.attributes))
        waiting = [copy]
        while waiting:
            parent = waiting.pop()
            parent.children = [c.copy(attributes=dict(c.attributes)) for c in parent.children]
            waiting += parent.children
        self.apply([copy], names)
        return copy


def _find_target(worlds: list[Element], attach: Element) -> tuple[Element, str]:
    """The body or frame below ``worlds`` that an `<attach>` names, and its default class."""
    if attach.get("body") and attach.get("frame"):
        raise attach.error("names both a body and a frame; one of them is attached")
    kind = "body" if attach.get("body") else "frame"
    name = attach.require(kind)
    stack = [(world, "main") for world in worlds]
    while stack:
        element, style = stack.pop()
        style = element.get("childclass") or style
        if element.tag == kind and element.get("name") == name:
            return element, style
        stack += [(child, style) for child in element.children[::-1]]
    raise attach.error(f"names the {kind} '{name}', which does not exist")


def _prefix_of(attach: Element) -> Renaming:
    """Renaming of what an `<attach>` adds; its prefix must be given, but may be empty."""
    prefix = attach.get("prefix")
    return Renaming(prefix=attach.require("prefix") if prefix is None else prefix)


def _references(element: Element) -> list[Name]:
    """What an element outside the kinematic tree refers to, the world left out."""
    return [
        (kind, name)
        for member in element.walk()
        for attribute, kind in _REFERENCES.items()
        if (name := member.get(attribute)) and (kind, name) != ("body", "world")
    ]


def expand_copies(document: Document) -> None:
    """Put copies in the place of every `<replicate>`, and of every `<attach>` without a model."""
    copier = _Copier(document)
    for parent, element in copier.below_worlds("attach"):
        if element.get("model") is None:
            _put(parent, element, [copier.attached(element)])
    # From the inside out: the innermost suffix comes first.
    for parent, element in copier.below_worlds("replicate")[::-1]:
        _put(parent, element, copier.replicas(element))


class _Copier:
    """Makes the copies of one model, and counts them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._worlds = document.root.all("worldbody")
        self._count = 0

    def below_worlds(self, tag: str) -> list[tuple[Element, Element]]:
        """Elements with a tag and their parents, in file order, parents before children."""
        members = [member for world in self._worlds for member in world.walk()]
        parents = {id(child): parent for parent in members for child in parent.children}
        return [(parents[id(member)], member) for member in members if member.tag == tag]

    def replicas(self, element: Element) -> list[Element]:
        """Frames with the copies: number k is at ``D^k``, D the offset and rotation given."""
        number = element.number("count")
        if number != int(number) or not number > 0:
            raise element.error(f"has count {number:g}; it must be a whole number above 0")
        count = int(number)
        self._spend(element, element, count)
        rotation = self._document.euler(element.vector("euler", (0.0, 0.0, 0.0)))
        step = pin.SE3(rotation, element.vector("offset", (0.0, 0.0, 0.0)))
        separator, digits = element.get("sep") or "", len(str(count))
        news = [Renaming(suffix=f"{separator}{k:0{digits}d}") for k in range(count)]
        place, frames = pin.SE3.Identity(), []
        for new in news:
            x, y, z, w = pin.Quaternion(place.rotation).coeffs()
            texts = {"pos": place.translation, "quat": (w, x, y, z)}
            attributes = {
                key: " ".join(repr(float(value)) for value in values)
                for key, values in texts.items()
            }
            children = [new.copy(child) for child in element.children]
            frames.append(element.copy(tag="frame", attributes=attributes, children=children))
            place = place * step
        self._copy_references(element.children, news, replace=True)
        return frames

    def attached(self, element: Element) -> Element:
        """A body or frame of the model once more, under names with a prefix."""
        target, style = _find_target(self._worlds, element)
        if any(member is element for member in target.walk()):
            raise element.error(f"is inside {target!r}, which it copies")
        self._spend(element, target, 1)
        new = _prefix_of(element)
        copy = new.copy(target)
        copy.attributes["childclass"] = style
        self._copy_references([target], [new], replace=False)
        return copy

    def _spend(self, element: Element, original: Element, count: int) -> None:
        self._count += count * sum(1 for _ in original.walk())
        if self._count > _MOST:
            raise element.error(f"makes copies of more than {_MOST} elements; that is no robot")

    def _copy_references(
        self, originals: list[Element], news: list[Renaming], *, replace: bool
    ) -> None:
        """Copy the tendons, equalities and actuators that refer to the ``originals`` of copies.

        With ``replace`` the originals are gone. As in MuJoCo, an equality between what is copied
        and what is not has no copies.
        """
        names = {
            (_NAMED[element.tag], name)
            for original in originals
            for element in original.walk(*_NAMED)
            if (name := element.get("name"))
        }
        for section in (part for tag in _SECTIONS for part in self._document.root.all(tag)):
            before, section.children = section.children, []
            for element in before:
                used = _references(element)
                inside = [name for name in used if name in names]
                if not inside or not replace:
                    section.children.append(element)
                if section.tag == "equality" and 0 < len(inside) < len(used):
                    if replace:
                        self._document.warn(
                            element,
                            "joins what a <replicate> copies with something else; MuJoCo "
                            "leaves it out, and so it is left out here",
                        )
                elif inside:
                    self._count += len(news)
                    section.children += [new.copy(element, names) for new in news]
                    if section.tag == "tendon" and (name := element.get("name")):
                        names.add(("tendon", name))


def _put(parent: Element, element: Element, new: list[Element]) -> None:
    at = next(i for i, child in enumerate(parent.children) if child is element)
    parent.children[at : at + 1] = new


# -- models in other files ------------------------------------------------------------------------


def attach_models(
    document: Document, tree: Tree, outer: Renaming | None = None, chain: tuple[Path, ...] = ()
) -> list[Document]:
    """Graft the models that a model attaches, and those that they attach, on its tree.

    ``outer`` is how names in the model are changed already, and ``chain`` has the files that attach
    each other down to it. What it gives are the attached models, which use the names of the tree.
    """
    documents = []
    for element, body, frame in tree.attachments:
        root, path = _open(document, element)
        if path in chain:
            raise element.error(f"attaches '{path.name}' inside itself")
        child = Document(root, beside(path, document.find))
        expand_copies(child)
        _select(child, element)
        before = outer.prefix if outer else ""
        new = Renaming(prefix=before + _prefix_of(element).prefix)
        new.apply(top for world in child.root.all("worldbody") for top in world.children)
        part = Tree(child, tree)
        nested = attach_models(child, part, new, (*chain, path))
        tree.graft(part, body, frame)
        _rename_sections(child, tree, new)
        documents += [child, *nested]
    return documents


def _open(document: Document, attach: Element) -> tuple[Element, Path]:
    """Root element and path of the model that an `<attach>` names."""
    wanted = attach.require("model")
    for asset in document.section("asset"):
        if asset.tag != "model" or asset.get("name") not in (None, wanted):
            continue
        file = asset.require("file")
        root, path = open_file(asset, file, document.find(file))
        if wanted in (asset.get("name"), root.get("model")):
            return root, path.resolve()
    raise attach.error(f"names the model '{wanted}', which is not among the assets")


def _select(child: Document, attach: Element) -> None:
    """Leave of a model what is attached: one body, one frame, or all."""
    if attach.get("body") is None and attach.get("frame") is None:
        return
    worlds = child.root.all("worldbody")
    target, style = _find_target(worlds, attach)
    target.attributes.setdefault("childclass", style)
    for world in worlds:
        world.children = []
    worlds[0].children = [target]


def _rename_sections(child: Document, tree: Tree, new: Renaming) -> None:
    """Rename tendons, equalities and actuators; leave out those of what is not attached."""
    known: dict[str, Container[str]] = {
        "body": tree.placements,
        "joint": tree.joint_names,
        "site": tree.sites,
    }
    for tag in _SECTIONS:
        tendons: set[str] = set()
        for section in child.root.all(tag):
            before, section.children = section.children, []
            for element in before:
                used = _references(element)
                new.apply([element], used)
                there = (new.prefix + name in known[kind] for kind, name in used if kind in known)
                if all(there):
                    section.children.append(element)
                    tendons.add(element.get("name") or "")
        if tag == "tendon":
            known["tendon"] = tendons
