"""Dataclasses as the schema of files: reading with lines, their lines in messages.

What a table of a file may hold is a frozen dataclass. Annotations say what a key may be, marks in
`Annotated` its range and shorter forms of it; the default of the field is that of the file. What a
key means is a text among the marks, or what the docstring says of it under ``Args``. Documents that
are written are typed dictionaries. Knows no robot.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

from ..errors import BadValue, InconsistentVelocity, LoadError, LoopNotClosed, UnknownName, shown
from .files import read_bytes
from .marks import INTERNAL, As, Check, Misfit, Name, Range, Short, parted
from .yaml import has_item, line_of, read_yaml

T = TypeVar("T")
Place = tuple[int | str, ...]

_LARGEST = 1e30
"""No length, mass or inertia is larger; products of a few such numbers stay finite."""


# -- keys -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key of a table.

    Args:
        default: what it is where it is not given; `MISSING` if it must be.
    """

    kind: Any
    default: Any
    meaning: str

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is MISSING


def keys_of(kind: Any) -> Mapping[str, Key]:
    """The keys of a table, from its dataclass or typed dictionary."""
    return _keys_of(kind)


@cache
def _keys_of(kind: Any) -> Mapping[str, Key]:
    hints = get_type_hints(kind, include_extras=True)
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _arguments(base.__doc__ or "")
    if is_typeddict(kind):
        defaults = {
            name: None if get_origin(hint) is NotRequired else MISSING
            for name, hint in hints.items()
        }
    else:
        defaults = {
            field.name: field.default
            if field.default_factory is MISSING
            else field.default_factory()
            for field in fields(kind)
            if INTERNAL not in parted(hints[field.name])[1]
        }
    return {
        name: Key(hints[name], default, _meaning(hints[name]) or meanings.get(name, ""))
        for name, default in defaults.items()
    }


def _arguments(docstring: str) -> dict[str, str]:
    """What a docstring says under ``Args``."""
    _, _, section = inspect.cleandoc(docstring).partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0]
    parts = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: _for_users(" ".join(text.split())) for name, text in parts}


def _for_users(text: str) -> str:
    """A sentence without shapes of arrays, which files do not have."""
    return re.sub(r", shape \([^)]*\)", "", text).replace("``", "`").removesuffix(".")


def _meaning(kind: Any) -> str:
    return next((mark for mark in reversed(parted(kind)[1]) if isinstance(mark, str)), "")


# -- reading --------------------------------------------------------------------------------------


def read_data(
    kind: type[T], data: object, source: str, *, folder: Path | None = None, extra: bool = False
) -> T:
    """Make a table of what a file holds, by the dataclass of the table.

    The data are what `read_yaml` returned, or dicts and lists of the caller; NumPy arrays and
    numbers are welcome. Paths in them are relative to ``folder``, the working directory by default,
    and with ``extra`` keys of the document that nobody knows are passed over. A `LoadError` names
    the ``source``, the first key that does not fit, its value and what is expected.
    """
    reader = _Reader(data, folder or Path(), extra)
    value: T = reader.read(kind, data, ())
    if reader.problems:
        # A misspelt key is also a missing one: the misspelling is the better explanation.
        place, text, _ = min(reader.problems, key=lambda problem: not problem[2])
        if len(reader.problems) > 1:
            text += f" (and {len(reader.problems) - 1} more)"
        raise LoadError(text, source=source, line=line_of(data, place))
    return value


@dataclass(frozen=True, eq=False)
class Document:
    """A YAML file as it was written, for whoever finds later what is wrong with it.

    Args:
        path: the file; paths in it are relative to its folder.
        data: what is in it, with lines.
    """

    path: Path
    data: Any

    @classmethod
    def open(cls, path: str | Path, kind: str) -> Document:
        """Read a file; ``kind`` is what it is, for messages: "study file"."""
        return cls(Path(path), read_yaml(read_bytes(path, kind), str(path), kind))

    def read(self, kind: type[T]) -> T:
        """Make the table of the file; see `read_data`."""
        return read_data(kind, self.data, str(self.path), folder=self.path.parent)

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Say of what is refused inside which place of the file it comes from."""
        try:
            yield
        except LoadError:
            raise  # it has a place already
        except (BadValue, UnknownName, LoopNotClosed, InconsistentVelocity) as error:
            text, label = str(error), label_of(place)
            text = text if text.startswith(label) else f"{label}: {text}"
            line = line_of(self.data, place)
            raise LoadError(text, source=str(self.path), line=line) from None


def label_of(place: Place) -> str:
    """``("loops", 2, "pair")`` as ``loops[2].pair``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".") or "the document"


def _hint(name: object, keys: Mapping[str, Key]) -> str:
    """What else a key may be meant to be: one spelled alike, or one of a table among the keys."""
    if close := get_close_matches(str(name), keys, n=1):
        return f"did you mean '{close[0]}'?"
    for table, key in keys.items():
        kind = parted(key.kind)[0]
        if is_dataclass(kind) and name in keys_of(kind):
            return f"it belongs in '{table}'"
    return f"known keys: {', '.join(keys)}"


class _Reader:
    """Makes values of data, and collects what does not fit: place, sentence, unknown key or not."""

    def __init__(self, data: Any, folder: Path, extra: bool) -> None:
        self._data, self._folder, self._extra = data, folder, extra
        self.problems: list[tuple[Place, str, bool]] = []

    def read(self, kind: Any, value: Any, place: Place) -> Any:
        """The value at a place; whatever it is if there is a problem with it."""
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        kind, marks = parted(kind)
        before, given = len(self.problems), value
        for mark in marks:
            if isinstance(mark, Short) and not isinstance(value, (Mapping, *_full_form(kind))):
                value = mark.lengthened(value)
        other = next((mark for mark in marks if isinstance(mark, As)), None)
        if other is None:
            value = self._of_kind(kind, value, place)
        else:
            value = self.read(other.kind, value, place)
        try:
            if other and other.function and len(self.problems) == before:
                value = other.function(value)
            for mark in marks:
                if isinstance(mark, Check | Range) and len(self.problems) == before:
                    mark.function(value)
        except LoadError:
            raise  # of another file that is named here
        except ValueError as error:
            self._refuse(place, given, str(error))
        return value

    def _of_kind(self, kind: Any, value: Any, place: Place) -> Any:
        origin, parts = get_origin(kind), get_args(kind)
        if kind is Path:
            text = self.read(Name, value, place)
            return self._folder / text if isinstance(text, str) else text
        if kind in _SCALARS:
            try:
                return _SCALARS[kind](value)
            except ValueError as error:
                return self._refuse(place, value, str(error))
        if origin in (Union, UnionType):
            return self._either(parts, value, place)
        if origin is Literal:
            if any(type(value) is type(word) and value == word for word in parts):
                return value
            return self._refuse(place, value, f"expected {_listed(parts)}")
        if is_dataclass(kind):
            return self._table(kind, value, place)
        if origin in (tuple, list):
            return self._list(parts, value, place)
        if origin in (dict, Mapping):
            return self._dict(parts, value, place)
        return value

    def _either(self, parts: tuple[Any, ...], value: Any, place: Place) -> Any:
        """One of several types: the first that has the shape of the value and takes it."""
        if value is None and NoneType in parts:
            return None
        kinds = [part for part in parts if part is not NoneType]
        alike = [part for part in kinds if _shape(value) == _full_form(parted(part)[0])]
        before, problems = len(self.problems), []
        for part in alike or kinds[:1]:
            result = self.read(part, value, place)
            if len(self.problems) == before:
                return result
            problems.append(self.problems[before:])
            del self.problems[before:]
        self.problems += problems[0]
        return None

    def _table(self, kind: Any, value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return self._refuse(place, value, "expected a table of keys and values")
        before, keys = len(self.problems), keys_of(kind)
        values = {}
        for name, key in keys.items():
            if name in value:
                values[name] = self.read(key.kind, value[name], (*place, name))
            elif key.required:
                meaning = f": {key.meaning}" if key.meaning else ""
                self._add((*place, name), f" is missing{meaning}")
        for name in value:
            if name not in keys and not (self._extra and not place):
                self._add((*place, name), f" is not a known key; {_hint(name, keys)}", unknown=True)
        if len(self.problems) > before:
            return None
        try:
            return kind(**values)
        except Misfit as error:
            return self._refuse((*place, error.key), values.get(error.key), error.problem)
        except ValueError as error:
            return self._add(place, f": {error}")

    def _list(self, parts: tuple[Any, ...], value: Any, place: Place) -> Any:
        if not isinstance(value, list | tuple):
            return self._refuse(place, value, "expected a list")
        if parts[-1] is Ellipsis:
            parts = (parts[0],) * len(value)
        before, items = len(self.problems), zip(parts, value, strict=False)
        read = tuple(self.read(part, item, (*place, k)) for k, (part, item) in enumerate(items))
        if len(value) != len(parts) and len(self.problems) == before:
            few = "it has too few items"
            many = f"{len(value)} items where {len(parts)} are needed"
            return self._refuse(place, value, few if len(value) < len(parts) else many)
        return read

    def _dict(self, parts: tuple[Any, ...], value: Any, place: Place) -> Any:
        if not isinstance(value, Mapping):
            return self._refuse(place, value, "expected a table of keys and values")
        table = {}
        for name, item in value.items():
            if not isinstance(name, str) or not name:
                self._refuse((*place, name), name, "expected a text as key (quotes make one)")
            else:
                table[name] = self.read(parts[1], item, (*place, name))
        return table

    def _refuse(self, place: Place, value: Any, expected: str) -> None:
        self._add(place, f" is {shown(value)}: {expected}")

    def _add(self, place: Place, text: str, *, unknown: bool = False) -> None:
        self.problems.append((place, self._label(place) + text, unknown))

    def _label(self, place: Place) -> str:
        """The label of a place without what a longer form puts in."""
        here, steps = self._data, []
        for depth, step in enumerate(place):
            if has_item(here, step):
                here = here[step]
            elif depth < len(place) - 1 or not isinstance(here, Mapping):
                continue
            steps.append(step)
        return label_of(tuple(steps))


def _shape(value: object) -> tuple[type, ...]:
    """What the data are, as `_full_form` has it."""
    forms: tuple[tuple[type, ...], ...] = ((Mapping,), (list, tuple))
    return next((form for form in forms if isinstance(value, form)), ())


def _full_form(kind: Any) -> tuple[type, ...]:
    """What the data of a table or list are; nothing for numbers and texts."""
    if is_dataclass(kind) or get_origin(kind) in (dict, Mapping):
        return (Mapping,)
    return (list, tuple) if get_origin(kind) in (tuple, list) else ()


def _listed(words: Sequence[object]) -> str:
    *most, last = map(repr, words)
    return f"{', '.join(most)} or {last}" if most else last


def _number(value: object) -> float:
    """A finite number; texts such as ``1e-3``, which YAML 1.1 takes for words, are numbers too."""
    if isinstance(value, bool):
        raise ValueError("expected a number, not yes or no")
    if not isinstance(value, int | float | str):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except ValueError:
        raise ValueError("expected a number") from None
    except OverflowError:
        number = 2 * _LARGEST
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    if abs(number) > _LARGEST:
        raise ValueError(f"expected a number of at most {_LARGEST:g}")
    return number


def _whole(value: object) -> int:
    number = _number(value)
    if not number.is_integer():
        raise ValueError("expected a whole number")
    return value if isinstance(value, int) else int(number)


def _truth(value: object) -> bool:
    word = value.lower() if isinstance(value, str) else value
    for truth, words in ((True, _YES), (False, _NO)):
        if isinstance(word, bool | int | float | str) and word in words:
            return truth
    raise ValueError("expected yes or no")


_YES = (True, "true", "yes", "on", "y", "t", "1")
_NO = (False, "false", "no", "off", "n", "f", "0")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text (quotes make one)")
    return value


_SCALARS: Mapping[Any, Callable[[object], object]] = {
    float: _number,
    int: _whole,
    bool: _truth,
    str: _text,
}
