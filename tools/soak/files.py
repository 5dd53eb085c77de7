"""Damaged files of every format: an error of pinloop or a robot comes of it, in little time.

Structure, numbers, encodings and sizes are what is damaged.
"""

from __future__ import annotations

import resource
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from random import Random
from xml.etree import ElementTree

import numpy as np
from tests.broken_files import KINDS, Broken, draw, read

from .campaign import Campaign, Case, Data, Finding
from .children import Limits

SECONDS = 5.0
"""Time of the processor that a file may take [s]."""
MEMORY = 400
"""Memory that a file may take [MB]."""


def draw_files(rng: np.random.Generator) -> Data:
    """Files of a format."""
    random = Random(int(rng.integers(2**63)))
    return to_data(draw(random, random.choice([*KINDS])))


def read_files(data: Data) -> Case:
    """Read them, and see what it takes."""
    broken = from_data(data)
    begin, before = time.process_time(), _peak()
    was_read = read(broken)
    seconds, memory = time.process_time() - begin, _peak() - before
    findings = []
    if seconds > SECONDS:
        findings.append(Finding("slow", f"{seconds:.1f} s of the processor"))
    if memory > MEMORY:
        findings.append(Finding("memory", f"{memory:.0f} MB"))
    return Case(broken.kind, tuple(findings), ("read",) if was_read else ("refused",))


def _peak() -> float:
    """Most memory that this process has had [MB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# -- as data --------------------------------------------------------------------------------


def to_data(broken: Broken) -> Data:
    """As JSON has it: files as text where they are UTF-8."""
    files = {name: _written(content) for name, content in broken.files.items()}
    return {"kind": broken.kind, "files": files, "flags": broken.flags}


def from_data(data: Data) -> Broken:
    """Files of `to_data`."""
    files = {
        name: file["text"].encode() if "text" in file else b64decode(file["base64"])
        for name, file in data["files"].items()
    }
    return Broken(data["kind"], files, data["flags"])


def _written(content: bytes) -> dict[str, str]:
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(content).decode()}


# -- simpler ones ---------------------------------------------------------------------------


def simplify_files(data: Data) -> Iterator[Data]:
    """Without some of the flags, files, elements, attributes, lines and bytes."""
    broken = from_data(data)
    for flag in broken.flags:
        yield data | {"flags": {key: x for key, x in broken.flags.items() if key != flag}}
    for name in list(broken.files)[1:]:
        yield data | {"files": {key: x for key, x in data["files"].items() if key != name}}
    for name, content in broken.files.items():
        for smaller in _smaller(content):
            yield data | {"files": data["files"] | {name: _written(smaller)}}


def _smaller(content: bytes) -> Iterator[bytes]:
    yield from _without_elements(content)
    yield from _without_parts(content.splitlines(keepends=True))
    if len(content) < 3000:
        yield from _without_parts([content[k : k + 1] for k in range(len(content))])


def _without_parts(parts: list[bytes]) -> Iterator[bytes]:
    """Without one half, one quarter, and so on."""
    size = len(parts) // 2
    while size:
        for at in range(0, len(parts), size):
            yield b"".join(parts[:at] + parts[at + size :])
        size //= 2


def _without_elements(content: bytes) -> Iterator[bytes]:
    """A document without one of its elements or attributes."""
    try:
        count = len(list(ElementTree.fromstring(content).iter()))
    except (ElementTree.ParseError, ValueError, LookupError, RecursionError):
        return
    if count > 2000:
        return
    for k in range(count):
        root = ElementTree.fromstring(content)
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        if (parent := parents.get(elements[k])) is not None:
            parent.remove(elements[k])
            yield ElementTree.tostring(root)
    for k in range(count):
        for name in list(ElementTree.fromstring(content).iter())[k].attrib:
            root = ElementTree.fromstring(content)
            del list(root.iter())[k].attrib[name]
            yield ElementTree.tostring(root)


FILES = Campaign(draw_files, read_files, simplify_files, Limits(seconds=30, memory=2**30))
