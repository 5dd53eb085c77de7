"""Copies of parts of an MJCF model: `<replicate>`, and `<attach>` within a model.

Works on elements alone: a copy is a subtree of `<worldbody>` under other names, and one more of
every tendon, equality and actuator that refers to it, as MuJoCo's compiler makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pinocchio as pin

from ...boundary.xml import Element
from .document import Document, descendants

__all__ = [
    "SECTIONS",
    "Renaming",
    "expand_copies",
    "family",
    "find_target",
    "names_below",
    "prefix_of",
    "references",
    "rename",
]

Name = tuple[str, str]
"""Kind and name of an element."""

_NAMED = {
    "body": "body",
    "joint": "joint",
    "freejoint": "joint",
    "geom": "geom",
    "site": "site",
    "frame": "frame",
    "camera": "camera",
    "light": "light",
}
"""Kind of what carries a name in a kinematic tree, by its tag."""

_REFERENCES = {
    "body": "body",
    "body1": "body",
    "body2": "body",
    "joint": "joint",
    "joint1": "joint",
    "joint2": "joint",
    "jointinparent": "joint",
    "site": "site",
    "site1": "site",
    "site2": "site",
    "sidesite": "site",
    "refsite": "site",
    "cranksite": "site",
    "slidersite": "site",
    "geom": "geom",
    "tendon": "tendon",
    "tendon1": "tendon",
    "tendon2": "tendon",
}
"""Kind of what an attribute outside the kinematic tree refers to."""

SECTIONS = ("tendon", "equality", "actuator")
"""Sections that refer to the kinematic tree, in the order in which they refer to each other."""

_MOST = 200_000
"""A model with more elements than this is a slip."""


@dataclass(frozen=True)
class Renaming:
    """New names for copies: ``Renaming(prefix="left_")("hip")`` is ``"left_hip"``."""

    prefix: str = ""
    suffix: str = ""

    def __call__(self, name: str) -> str:
        """Return the new name."""
        return self.prefix + name + self.suffix


def expand_copies(document: Document) -> None:
    """Put copies in the place of every `<replicate>`, and of every `<attach>` without a model.

    Raises:
        LoadError: says what is wrong.
    """
    _Copier(document).expand()


def find_target(worlds: list[Element], attach: Element) -> tuple[Element, str]:
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


def prefix_of(attach: Element) -> str:
    """Prefix of the names of what an `<attach>` adds; it must be given, but may be empty."""
    prefix = attach.get("prefix")
    return attach.require("prefix") if prefix is None else prefix


def names_below(elements: list[Element]) -> set[Name]:
    """Names that elements and all their descendants have."""
    return {
        (_NAMED[element.tag], name)
        for element in descendants(elements, *_NAMED)
        if (name := element.get("name"))
    }


def references(element: Element) -> list[Name]:
    """What an element outside the kinematic tree refers to, the world left out."""
    return [
        (kind, name)
        for member in family(element)
        for attribute, kind in _REFERENCES.items()
        if (name := member.get(attribute)) and (kind, name) != ("body", "world")
    ]


def rename(elements: list[Element], names: set[Name], new: Renaming) -> None:
    """Rename, below ``elements``, all names and the references to ``names``."""
    for top in elements:
        for element in family(top):
            named = element.tag in _NAMED or element is top
            # In a tendon <joint>, <site> and <geom> are references, and have no name.
            if named and (name := element.get("name")):
                element.attributes["name"] = new(name)
            for attribute, kind in _REFERENCES.items():
                if (kind, element.get(attribute)) in names:
                    element.attributes[attribute] = new(element.attributes[attribute])


def copy_of(element: Element) -> Element:
    """Copy of an element with all that is in it."""
    copy = Element(element.tag, dict(element.attributes), element.source, element.line)
    waiting = [(element, copy)]
    while waiting:
        old, new = waiting.pop()
        new.text = old.text
        for child in old.children:
            inner = Element(child.tag, dict(child.attributes), child.source, child.line)
            new.children.append(inner)
            waiting.append((child, inner))
    return copy


class _Copier:
    """Makes the copies of one model.

    Args:
        document: the model.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._worlds = document.root.all("worldbody")
        self._count = 0

    def expand(self) -> None:
        for parent, element in _below(self._worlds, "attach"):
            if element.get("model") is None:
                _put(parent, element, [self._attached(element)])
        # From the inside out: the innermost suffix comes first.
        for parent, element in list(_below(self._worlds, "replicate"))[::-1]:
            _put(parent, element, self._replicas(element))

    def _replicas(self, element: Element) -> list[Element]:
        """Frames with the copies: number k is at ``D^k``, D the offset and rotation given."""
        document = self._document
        number = element.number("count")
        if number != int(number) or not number > 0:
            raise element.error(f"has count {number:g}; it must be a whole number above 0")
        count = int(number)
        self._spend(element, element, count)
        euler = element.vector("euler", (0.0, 0.0, 0.0))
        step = pin.SE3(document.euler(euler), element.vector("offset", (0.0, 0.0, 0.0)))
        separator, digits = element.get("sep") or "", len(str(count))
        news = [Renaming(suffix=f"{separator}{k:0{digits}d}") for k in range(count)]
        place, frames = pin.SE3.Identity(), []
        for new in news:
            frame = _frame(element, place)
            frame.children = [copy_of(child) for child in element.children]
            rename(frame.children, set(), new)
            frames.append(frame)
            place = place * step
        self._copy_references(names_below(element.children), news, replace=True)
        return frames

    def _attached(self, element: Element) -> Element:
        """A body or frame of the model once more, under names with a prefix."""
        target, style = find_target(self._worlds, element)
        if any(member is element for member in family(target)):
            raise element.error(f"is inside {target!r}, which it copies")
        self._spend(element, target, 1)
        new = Renaming(prefix=prefix_of(element))
        copy = _renamed(target, set(), new)
        copy.attributes["childclass"] = style
        self._copy_references(names_below([target]), [new], replace=False)
        return copy

    def _spend(self, element: Element, original: Element, count: int) -> None:
        self._count += count * sum(1 for _ in family(original))
        if self._count > _MOST:
            raise element.error(f"makes copies of more than {_MOST} elements; that is no robot")

    def _copy_references(self, names: set[Name], news: list[Renaming], *, replace: bool) -> None:
        """Copy the tendons, equalities and actuators that refer to what is copied.

        As in MuJoCo, an equality between what is copied and what is not has no copies.

        Args:
            names: names of what is copied.
            news: new names of each copy.
            replace: True: what is copied itself is gone.
        """
        for tag in SECTIONS:
            for section in self._document.root.all(tag):
                before, section.children = section.children, []
                for element in before:
                    used = references(element)
                    inside = [name for name in used if name in names]
                    if not inside or not replace:
                        section.children.append(element)
                    if tag == "equality" and 0 < len(inside) < len(used):
                        if replace:
                            self._document.warn(
                                element,
                                "joins what a <replicate> copies with something else; MuJoCo "
                                "leaves it out, and so it is left out here",
                            )
                    elif inside:
                        self._count += len(news)
                        section.children += [_renamed(element, names, new) for new in news]
                        if tag == "tendon" and (name := element.get("name")):
                            names.add(("tendon", name))


def _renamed(element: Element, names: set[Name], new: Renaming) -> Element:
    copy = copy_of(element)
    rename([copy], names, new)
    return copy


def _frame(element: Element, place: pin.SE3) -> Element:
    x, y, z, w = pin.Quaternion(place.rotation).coeffs()
    frame = Element("frame", {}, element.source, element.line)
    frame.attributes["pos"] = " ".join(repr(float(p)) for p in place.translation)
    frame.attributes["quat"] = " ".join(repr(float(c)) for c in (w, x, y, z))
    return frame


def _put(parent: Element, element: Element, new: list[Element]) -> None:
    """Put other elements in the place of one."""
    at = next(i for i, child in enumerate(parent.children) if child is element)
    parent.children[at : at + 1] = new


def _below(elements: list[Element], tag: str) -> Iterator[tuple[Element, Element]]:
    """Elements with a tag and their parents, in file order, parents before children."""
    stack = [(element, child) for element in elements[::-1] for child in element.children[::-1]]
    while stack:
        parent, element = stack.pop()
        if element.tag == tag:
            yield parent, element
        stack += [(element, child) for child in element.children[::-1]]


def family(element: Element) -> Iterator[Element]:
    """An element and everything in it."""
    stack = [element]
    while stack:
        member = stack.pop()
        yield member
        stack += member.children[::-1]
