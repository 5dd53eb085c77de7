"""XML with line numbers: elements, attributes, numbers; errors and remarks that name their place.

Knows no robot. The readers of URDF, SDF and MJCF get everything they read through here; writers
add elements by `add_element`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..errors import LoadError, UnknownName, listed
from ..tolerances import NO_DIRECTION
from .marks import Array

LARGEST = 256 * 2**20
"""Bytes of a robot file."""

_DEEPEST = 6000
"""Levels of elements; in MJCF each body of a chain is one."""

_LARGEST = 1e30
"""Beyond this a number is a slip; its square must not overflow."""

_SEPARATOR = re.compile(r",(?=\s)")
"""A comma between numbers, as in "0, 0, 0.45"; "0,45" may be a decimal comma and is refused."""


@dataclass(eq=False, repr=False)
class Element:
    """An XML element that knows its file and line."""

    tag: str
    attributes: dict[str, str]
    source: str
    line: int
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def __repr__(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag}>" if name is None else f"<{self.tag} name='{name}'>"

    def copy(self, **changes: Any) -> Element:
        """Return an element at the same place with other attributes, children or tag.

        What is not named is shared with this one.
        """
        return replace(self, **changes)

    def walk(self, *tags: str) -> Iterator[Element]:
        """This element and all that is in it, in file order; with tags, those that have one."""
        stack = [self]
        while stack:
            element = stack.pop()
            if not tags or element.tag in tags:
                yield element
            stack += element.children[::-1]

    @property
    def where(self) -> str:
        """File, without its folder, and line."""
        return f"{PurePath(self.source).name or self.source}:{self.line}"

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.source, self.line

    def error(self, problem: str) -> LoadError:
        """Return the error that says ``problem`` about this element."""
        return LoadError(f"{self!r} {problem}", source=self.source, line=self.line)

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> LoadError:
        """Return the error that the element names a ``kind`` of thing that does not exist."""
        return self.error(f"cannot be placed: {UnknownName(kind, name, known)}")

    def all(self, *tags: str) -> list[Element]:
        """Children with one of the tags, in order."""
        return [child for child in self.children if child.tag in tags]

    def first(self, *tags: str) -> Element | None:
        """First child with one of the tags, or None."""
        return next((child for child in self.children if child.tag in tags), None)

    def need(self, *tags: str) -> Element:
        """First child with one of the tags; an error if there is none."""
        child = self.first(*tags)
        if child is None:
            raise self.error(f"needs a <{tags[0]}>")
        return child

    def get(self, attribute: str) -> str | None:
        """Attribute as text, or None."""
        return self.attributes.get(attribute)

    def require(self, attribute: str) -> str:
        """Attribute as text; an error if it is missing or empty."""
        value = self.attributes.get(attribute, "").strip()
        if not value:
            raise self.error(f"needs an attribute '{attribute}'")
        return value

    def numbers(self, text: str, count: int | None, what: str) -> Array:
        """Parse ``text`` as finite numbers, ``count`` of them unless None."""
        return np.array(self._floats(text, count, what))

    def _floats(self, text: str, count: int | None, what: str) -> list[float]:
        # Without arrays, which take longer to make and to check than a few numbers to read.
        try:
            if "_" in text:  # Python would read 1_000, which is a slip here
                raise ValueError
            words = (_SEPARATOR.sub(" ", text) if "," in text else text).split()
            values = [float(word) for word in words]
        except ValueError:
            problem = "not a list of numbers"
            if "$(" in text or "${" in text:
                problem = "an expression of xacro: run xacro on the file and load what it writes"
            raise self.error(f"has {what} '{text}', which is {problem}") from None
        if count is not None and len(values) != count:
            raise self.error(f"has {what} '{text}': {len(values)} numbers where {count} are needed")
        if not all(map(math.isfinite, values)):
            raise self.error(f"has {what} '{text}', which is not finite")
        if any(abs(value) > _LARGEST for value in values):
            raise self.error(f"has {what} '{text}', which is larger than {_LARGEST:g}")
        return values

    def vector(self, attribute: str, default: Array | tuple[float, ...] | None = None) -> Array:
        """Attribute with three numbers."""
        text = self.attributes.get(attribute)
        if text is None and default is not None:
            return np.array(default, dtype=float)
        return self.numbers(self.require(attribute) if text is None else text, 3, attribute)

    def number(self, attribute: str, default: float | None = None) -> float:
        """Attribute with one number."""
        text = self.attributes.get(attribute)
        if text is None and default is not None:
            return default
        value = self.require(attribute) if text is None else text
        return self._floats(value, 1, attribute)[0]

    def text_number(self, tag: str, default: float | None = None) -> float:
        """Text of the child ``tag`` as one number (SDF keeps its values there)."""
        if default is not None and self.first(tag) is None:
            return default
        child = self.need(tag)
        return child._floats(child.text, 1, "the value")[0]

    def text_vector(self, tag: str, default: tuple[float, ...] | None = None) -> Array:
        """Text of the child ``tag`` as three numbers."""
        if default is not None and self.first(tag) is None:
            return np.array(default, dtype=float)
        child = self.need(tag)
        return child.numbers(child.text, 3, "the value")

    def unit_vector(self, values: Array, what: str = "axis") -> Array:
        """Normalise ``values``; an error if they vanish."""
        largest = float(np.max(np.abs(values)))
        if largest < NO_DIRECTION:
            raise self.error(
                f"has a zero {what} ({', '.join(f'{v:g}' for v in values)}); give it a direction"
            )
        direction = values / largest
        return np.asarray(direction / np.linalg.norm(direction))


def parse_xml(text: str | bytes, source: str) -> Element:
    """Parse an XML document into its root element; a `LoadError` says the line that is wrong."""
    try:
        return _parse(text, source)
    except LoadError:
        return _parse(_mended(_decoded(text)), source)


_ENCODING = re.compile(rb"<\?xml\s[^>]*encoding\s*=\s*[\"']([\w.:-]+)")
_LATE_DECLARATION = re.compile(r"\s+(<\?xml\s[^>]*\?>)")
_OPENING = re.compile(r"<!--|<!\[CDATA\[")


def _decoded(text: str | bytes) -> str:
    """The characters of a document; where bytes are not in the encoding that it names, Latin-1."""
    if isinstance(text, str):
        return text
    named = _ENCODING.search(text[:1000])
    for encoding in ([named[1].decode()] if named else []) + ["utf-8"]:
        try:
            characters = text.decode(encoding)
        except (LookupError, ValueError):
            continue
        if "<" in characters:  # two bytes to a character make other signs of most bytes
            return characters
    return text.decode("latin-1")


def _mended(text: str) -> str:
    """The document without three slips that expat alone refuses; every line keeps its number.

    Comments, in which ``--`` must not occur, are blanked, and what is then white space before the
    XML declaration goes behind it.
    """
    parts: list[str] = []
    at = 0
    while opening := _OPENING.search(text, at):
        is_comment = opening[0] == "<!--"
        end = text.find("-->" if is_comment else "]]>", opening.end()) + 3
        if end < 3:
            break
        inside = text[opening.start() : end]
        parts.append(text[at : opening.start()])
        parts.append(re.sub(r"[^\r\n]", " ", inside) if is_comment else inside)
        at = end
    text = "".join([*parts, text[at:]])
    if "\0" not in (ending := text.rstrip("\0")):
        text = ending  # strings of C that were written with their end
    text = text.removeprefix("\ufeff")
    if match := _LATE_DECLARATION.match(text):
        begin, end = match.span(1)
        text = text[begin:end] + text[:begin] + text[end:]
    return text


def _parse(text: str | bytes, source: str) -> Element:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    texts: list[list[str]] = []  # of the elements in the stack, piece by piece
    roots: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, source, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)
        texts.append([])
        if len(stack) > _DEEPEST:
            raise element.error(f"is nested deeper than {_DEEPEST} elements")

    def end(tag: str) -> None:
        stack.pop().text = "".join(texts.pop())

    def characters(data: str) -> None:
        if texts:
            texts[-1].append(data)

    def refuse(*arguments: object) -> None:
        raise LoadError(
            "declares XML entities or an external document type, which a robot file must not",
            source=source,
            line=parser.CurrentLineNumber,
        )

    def doctype(name: str, system: str | None, public: str | None, internal: int) -> None:
        if system or public:
            refuse()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except LoadError:
        raise
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise LoadError(f"malformed XML: {reason}", source=source, line=error.lineno) from None
    except (ValueError, LookupError) as error:
        raise LoadError(f"malformed XML: {error}", source=source) from None
    return roots[0]


def number_text(values: ArrayLike) -> str:
    """Numbers with as many digits as it takes to read the same ones; no negative zeros."""
    return " ".join(repr(float(number) + 0.0) for number in np.ravel(values))


def add_element(parent: ElementTree.Element, tag: str, **values: Any) -> ElementTree.Element:
    """Add an element to one that is to be written: texts, numbers, and nothing for None."""
    given = {key: value for key, value in values.items() if value is not None}
    texts = {key: v if isinstance(v, str) else number_text(v) for key, v in given.items()}
    return ElementTree.SubElement(parent, tag, texts)


def pose_rpy(xyz: Array, rpy: Array) -> pin.SE3:
    """Placement from a position and fixed-axis roll, pitch, yaw angles [m, rad]."""
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), xyz)


def pose_of(element: Element | None) -> pin.SE3:
    """Placement from the attributes xyz and rpy (or quat_xyzw); identity without an element."""
    if element is None or not element.attributes:
        return pin.SE3.Identity()
    xyz = element.vector("xyz", (0.0, 0.0, 0.0))
    quaternion = element.get("quat_xyzw")
    if quaternion is not None:
        values = element.unit_vector(element.numbers(quaternion, 4, "quat_xyzw"), "quaternion")
        return pin.SE3(pin.Quaternion(values).matrix(), xyz)
    if element.get("rpy") is None:
        return pin.SE3(np.eye(3), xyz)
    return pose_rpy(xyz, element.vector("rpy"))


# -- what was not understood -----------------------------------------------------------------------


class Remarks:
    """Warnings of a reader, in the order in which they first came up."""

    def __init__(self) -> None:
        # Per kind of remark: its first sentence, the advice, and the names of the others.
        self._groups: dict[tuple[str, ...], tuple[str, str, list[str | int]]] = {}

    def add(self, element: Element, problem: str, advice: str = "", value: str = "") -> None:
        """Say something about an element.

        ``problem`` is the rest of the sentence whose subject is the element; elements of one kind
        with the same problem share a warning. ``value``, of the first of them, stands where the
        problem has ``{}``. ``advice`` is what to do, said once at the end.
        """
        name = element.get("name") or element.line
        kind, problem = (element.source, element.tag, problem), problem.replace("{}", value)
        self.about(kind, name, f"{element.where}: {element!r} {problem}", advice)

    def say(self, sentence: str) -> None:
        """Say something that is not about one element."""
        self.about((sentence,), "", sentence)

    def about(
        self, kind: tuple[str, ...], name: str | int, sentence: str, advice: str = ""
    ) -> None:
        """Say something about a named thing; those of one ``kind`` share the first sentence."""
        if kind in self._groups:
            self._groups[kind][2].append(name)
        else:
            self._groups[kind] = sentence, advice, []

    def texts(self) -> tuple[str, ...]:
        """The warnings."""
        return tuple(
            sentence + listed(others, "; likewise ") + advice
            for sentence, advice, others in self._groups.values()
        )
