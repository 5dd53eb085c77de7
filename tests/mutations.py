"""Ways to break a text: as a tree of elements, as data, and as bytes.

Every function takes a `random.Random`, so that a seed gives the same broken text again.
"""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml

__all__ = ["break_bytes", "break_data", "break_lines", "break_size", "break_xml", "nasty"]

_WORDS = (
    "nan", "inf", "-inf", "1e400", "-1e400", "1e308", "-1e308", "1e200", "1e-320", "-1", "0",
    "-0.0", "1", "2.5", "1e30", "1e-30", "9" * 400, "", " ", "abc", "true", "null", "~", "0x10",
    "1_000", "\N{ARABIC-INDIC DIGIT THREE}", "\N{CIRCLED DIGIT ONE}", "½", "1 2", "1,2",
    "1 2 3 4 5 6 7", "\N{RIGHT-TO-LEFT OVERRIDE}", "\N{GRINNING FACE}", "a" * 5000, "../..", "/", "package://",
    "file://[", "file:///dev/null", "ground", "world", "universe", "base", "j1", "j2", "crank",
    "coupler", "tip_a", "close", "fixed", "revolute", "continuous", "prismatic", "floating", "free",
    "planar", "helical", "universal", "ball", "spherical", "rod", "point_on_line", "cylindrical",
    "schoenflies", "screw", "revolute2", "gearbox", "3d", "UJOINT_XY", "circle", "zyx", "SO3xR3",
)  # fmt: skip

_NUMBER = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(e-?\d+)?(?![\w.])")


def nasty(random: Random) -> str:
    """A value that hardly fits anywhere."""
    return random.choice(_WORDS)


def _one_word(random: Random, text: str) -> str:
    """Replace one of the words of a list."""
    words = text.split() or [""]
    words[random.randrange(len(words))] = nasty(random)
    return " ".join(words)


def _value(random: Random, text: str, others: Sequence[str]) -> str:
    """Another text instead of this one."""
    choice = random.randrange(4)
    if choice == 0:
        return nasty(random)
    if choice == 1:
        return _one_word(random, text)
    if choice == 2 and others:
        return random.choice(others)
    changed = text + " " + text, text[:-1], text.upper(), text + "x", " " + text + "\n"
    return random.choice(changed)


def break_xml(random: Random, text: str, donor: str | None = None) -> str:
    """Break a document but keep it well-formed.

    Args:
        random: the source of chance.
        text: the document.
        donor: another document, whose elements may be transplanted.
    """
    root = ElementTree.fromstring(re.sub(r"\b(drake|xacro):", r"\1-", text))
    donors = list(ElementTree.fromstring(re.sub(r"\b(drake|xacro):", r"\1-", donor or text)).iter())
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        _break_tree(random, root, donors)
    broken = ElementTree.tostring(root, encoding="unicode")
    return re.sub(r"\b(drake|xacro)-", r"\1:", broken)


def _break_tree(
    random: Random, root: ElementTree.Element, donors: Sequence[ElementTree.Element]
) -> None:
    """Make one change somewhere."""
    elements = list(root.iter())
    element = random.choice(elements)
    parents = {child: parent for parent in elements for child in parent}
    values = [value for each in elements for value in each.attrib.values()]
    names = [name for each in elements for name in each.attrib] + ["name", "type", "extra"]

    def drop() -> None:
        if element in parents:
            parents[element].remove(element)

    def duplicate() -> None:
        if element in parents:
            parents[element].append(copy.deepcopy(element))

    def transplant() -> None:
        element.append(copy.deepcopy(random.choice(donors)))

    def move() -> None:
        other = random.choice(elements)
        if element in parents and other not in element.iter():
            parents[element].remove(element)
            other.append(element)

    def nest() -> None:
        for _ in range(random.choice((1, 3, 30))):
            element.append(copy.deepcopy(element) if len(list(element.iter())) < 8 else
                           ElementTree.Element(element.tag, element.attrib))  # fmt: skip

    def rename() -> None:
        element.tag = random.choice([*(each.tag for each in elements), "odd"])

    def shuffle() -> None:
        children = list(element)
        random.shuffle(children)
        element[:] = children

    def change_text() -> None:
        texts = [each.text.strip() for each in elements if each.text and each.text.strip()]
        element.text = _value(random, (element.text or "").strip(), texts)

    def change_attribute() -> None:
        holders = [each for each in elements if each.attrib]
        holder = random.choice(holders) if holders else element
        name = random.choice([*holder.attrib] or names)
        holder.set(name, _value(random, holder.get(name, ""), values))

    def drop_attribute() -> None:
        if element.attrib:
            del element.attrib[random.choice([*element.attrib])]

    def rename_attribute() -> None:
        if element.attrib:
            value = element.attrib.pop(random.choice([*element.attrib]))
            element.set(random.choice(names), value)

    def add_attribute() -> None:
        element.set(random.choice(names), nasty(random))

    changes: list[Callable[[], None]] = [
        drop, duplicate, transplant, move, nest, rename, shuffle, change_text, change_text,
        drop_attribute, rename_attribute, add_attribute,
    ]  # fmt: skip
    random.choice([*changes, *([change_attribute] * 10)])()


def break_data(random: Random, text: str) -> Any:
    """Break the data of a YAML text: keys, values, types and shapes."""
    data = yaml.safe_load(text)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = _changed(random, data)
    return data


_STRANGERS: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**400, float("nan"), float("inf"), 1e308, 1e-320, "", "abc", [], {},
    [[]], {"name": "x"}, [1, 2, 3], "\N{GRINNING FACE}", b"bytes", object, ("a", "b"), {1: 2},
)  # fmt: skip


def _changed(random: Random, data: Any) -> Any:
    """One change in a tree of lists and dicts, without touching the original."""
    if random.random() < 0.15 or not isinstance(data, (dict, list)) or not data:
        return random.choice(_STRANGERS) if random.random() < 0.5 else nasty(random)
    if isinstance(data, list):
        items, place = list(data), random.randrange(len(data))
        choice = random.randrange(8)
        if choice == 0:
            del items[place]
        elif choice == 1:
            items.append(copy.deepcopy(items[place]))
        else:
            items[place] = _changed(random, items[place])
        return items
    table, key = dict(data), random.choice([*data])
    choice = random.randrange(10)
    if choice == 0:
        del table[key]
    elif choice == 1:
        table[random.choice([*data, nasty(random), 7])] = table.pop(key)
    elif choice == 2:
        table[nasty(random)] = copy.deepcopy(table[key])
    else:
        table[key] = _changed(random, table[key])
    return table


def break_lines(random: Random, text: str) -> str:
    """Break a text line by line and word by word."""
    lines = text.splitlines()
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(lines)) if lines else 0
        choice = random.randrange(7)
        if not lines:
            break
        if choice == 0:
            del lines[place]
        elif choice == 1:
            lines.insert(random.randrange(len(lines)), lines[place])
        elif choice == 2:
            lines[place] = " " * random.randrange(5) + lines[place].strip()
        elif choice == 3:
            lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]
        elif choice == 4:
            lines[place] += random.choice(["&a", "*a", " !!python/object:x y", "<<: *a", "]", "{"])
        elif choice == 5:
            lines[place] = re.sub(r"[\w.]+", lambda found: _maybe(random, found[0]), lines[place])
        else:
            lines[place] = _NUMBER.sub(lambda found: _maybe(random, found[0]), lines[place])
    return "\n".join(lines) + random.choice(["\n", ""])


def _maybe(random: Random, word: str) -> str:
    return nasty(random) if random.random() < 0.3 else word


def break_bytes(random: Random, content: bytes) -> bytes:
    """Break a file without regard to what it means."""
    for _ in range(random.choice((1, 1, 2, 5))):
        at, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
        choice = random.randrange(9)
        if choice == 0:
            content = content[:at]
        elif choice == 1:
            content = content[:at] + content[end:]
        elif choice == 2:
            content = content[:at] + content[at:end] * 2 + content[end:]
        elif choice == 3:
            content = content[:at] + bytes(random.randrange(1, 5)) + content[at:]
        elif choice == 4:
            content = content[:at] + random.randbytes(random.randrange(1, 9)) + content[at:]
        elif choice == 5 and content:
            place = random.randrange(len(content))
            flipped = content[place] ^ (1 << random.randrange(8))
            content = content[:place] + bytes([flipped]) + content[place + 1 :]
        elif choice == 6:
            content = random.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b" \n"]) + content
        elif choice == 7:
            content = content.decode("latin-1").encode(random.choice(["utf-16", "utf-32", "cp037"]))
        else:
            content = content[:at] + nasty(random).encode() + content[at:]
        content = content[:200_000]
    return content


def break_size(random: Random, text: str) -> str:
    """Make a text much longer: a line, a word or a bracket again and again."""
    lines = text.splitlines() or [""]
    place, count = random.randrange(len(lines)), random.choice((100, 3000, 100_000))
    line, choice = lines[place], random.randrange(4)
    if choice == 0:
        # Elements or keys with names of their own, or always the same.
        own = random.random() < 0.5
        several = (f"{line[:-2]}{k}{line[-2:]}" if own else line for k in range(count))
        lines[place] = "\n".join(several)
    elif choice == 1:
        words = line.split(" ")
        at = random.randrange(len(words))
        words[at] = " ".join([words[at]] * count)
        lines[place] = " ".join(words)
    elif choice == 2:
        lines[place] = line + random.choice("[{(<") * count
    else:
        lines[place] = _NUMBER.sub(lambda _: "9" * count, line, count=1)
    return "\n".join(lines)[:2_000_000] + "\n"
