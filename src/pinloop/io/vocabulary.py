"""Which elements and attributes a format has: whatever else a file says is reported, never lost.

One mechanism for all XML formats. A vocabulary is a table, in a file of its own in `vocabularies`,
with one line per element::

    link1: link xyz rpy | origin

its attributes and, after the bar, its children. ``parent/child`` describes a child there only,
``drake:*`` stands for all names that begin so, and ``*`` for all. An element without a line of its
own is not looked into: it says nothing about mechanics. Tables of YAML declare their keys as
fields of `Entry` instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template

from ..boundary.xml import Element, Remarks
from ..errors import listed, suggestion

Vocabulary = Mapping[str, str]

_FEW = 6
"""So many attributes can be listed in a message."""
_MOST = 200
"""So many kinds of remarks are made about one file."""
_ALIKE = 0.75
"""How much alike a slip of the pen is to what was meant, as `difflib` counts it."""


def report_unread(root: Element, vocabulary: Vocabulary, remarks: Remarks) -> None:
    """Report every element and attribute below ``root`` that is not in the vocabulary."""
    hints: dict[tuple[str, ...], str] = {}

    def report(element: Element, problem: str, names: Sequence[str], known: Sequence[str]) -> None:
        # Looking for what may have been meant takes time: once per kind is enough.
        kind = (element.tag, problem)
        if kind not in hints and len(hints) < _MOST:
            # What is there as well was not meant by another name.
            meant = [word for word in known if word not in element.attributes]
            hints[kind] = "".join(suggestion(name, meant, _ALIKE) for name in names[:_FEW])
            # What an element may have is worth listing for its attributes, not for its parent.
            if not hints[kind] and element.tag not in names and 0 < len(known) <= _FEW:
                hints[kind] = f"; <{element.tag}> has {', '.join(known)}"
        if kind in hints:
            remarks.add(element, problem, hints[kind])
        else:
            remarks.say("further elements or attributes are not read")

    waiting = [(root, vocabulary[root.tag])]
    while waiting:
        element, line = waiting.pop()
        attributes, children = _words(line)
        # Namespaces and what belongs to them is the business of XML.
        unread = [
            name
            for name in element.attributes
            if not _is_known(name, attributes) and ":" not in name and name != "xmlns"
        ]
        if unread:
            what = ("an attribute", "is") if len(unread) == 1 else ("attributes", "are")
            problem = f"has {what[0]}{listed(unread, ' ')} that {what[1]} not read"
            report(element, problem, unread, attributes)
        inside: list[tuple[Element, str]] = []
        for child in element.children:
            if not _is_known(child.tag, children):
                report(child, f"in <{element.tag}> is not read", [child.tag], children)
                continue
            entry = vocabulary.get(f"{element.tag}/{child.tag}") or vocabulary.get(child.tag)
            inside += [(child, entry)] if entry else []
        waiting += inside[::-1]


@cache
def _words(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Attributes and children of an element."""
    attributes, _, children = line.partition("|")
    return tuple(attributes.split()), tuple(children.split())


def children_of(vocabulary: Vocabulary, element: str) -> tuple[str, ...]:
    """What an element may hold."""
    return _words(vocabulary[element])[1]


def _is_known(name: str, words: tuple[str, ...]) -> bool:
    prefix = name.partition(":")[0] + ":*"
    return name in words or "*" in words or (":" in name and prefix in words)


def _read_vocabulary(name: str) -> Vocabulary:
    """The table in a file of `vocabularies`: lines go on where they are indented.

    ``$pose`` stands for the words after ``pose =``.
    """
    text = (Path(__file__).parent / "vocabularies" / f"{name}.txt").read_text(encoding="utf-8")
    lines = [line for line in re.sub(r"\n +", " ", text).splitlines() if not line.startswith("#")]
    words = dict(line.split(" = ") for line in lines if " = " in line)
    entries = (line.split(": ", 1) for line in lines if ": " in line)
    return {element: Template(entry).substitute(words) for element, entry in entries}


URDF, SDF, MJCF = map(_read_vocabulary, ("urdf", "sdf", "mjcf"))
