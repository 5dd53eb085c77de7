"""What values and their classes share: copies, calls of rooms above, names that files know.

Classes that files and commands ask for by name enter by being defined. There is no list to be
edited, and nothing that a file names is ever imported: a class is known once the module that
defines it has been imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..errors import BadValue


def stored_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, without what it has cached, for use as ``__getstate__``.

    So reading a frozen value changes neither its pickle nor its copies.
    """
    return {name: getattr(value, name) for name in _field_names(value.__class__)}


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def construct_again(value: Any) -> tuple[type[Any], tuple[Any, ...]]:
    """Let a copy of a dataclass be constructed from its fields, for use as ``__reduce__``.

    So what its class does to its fields is done to those of the copy: pickles forget, for example,
    that an array cannot be written to.
    """
    return type(value), tuple(getattr(value, field.name) for field in fields(value) if field.init)


T = TypeVar("T")


def forward(room: str, function: str, *arguments: Any, **options: Any) -> T:  # type: ignore[type-var]
    """Call a function of a room that is named relative to the package.

    What it returns has the type that the caller declares.
    """
    result: T = getattr(import_module(f"pinloop.{room}"), function)(*arguments, **options)
    return result


_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OWN = __name__.partition(".")[0]


def origin(cls: type) -> str | None:
    """``module:class`` of a class that is not pinloop's own, as files name it; else None."""
    own = cls.__module__.partition(".")[0] == _OWN
    return None if own else f"{cls.__module__}:{cls.__qualname__}"


class Registry(Generic[T]):
    """The classes of one kind, by name."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._classes: dict[str, type[T]] = {}

    def enter(self, name: str, cls: type[T]) -> None:
        """Enter a class under a name; one that is defined anew, as in a notebook, replaces itself.

        Raises:
            BadValue: the name is another class's, or none that files can hold.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadValue(
                f"the {self._kind} {cls.__qualname__} cannot be called {name!r}; take small "
                "letters, digits and underscores, such as 'point_on_cylinder'"
            )
        other = self._classes.get(name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise BadValue(
                f"the {self._kind} {cls.__qualname__} cannot be called '{name}': that is the "
                f"{self._kind} {other.__qualname__} of {other.__module__}"
            )
        self._classes[name] = cls

    def __iter__(self) -> Iterator[type[T]]:
        """Every class once, in the order of their names."""
        return iter(dict.fromkeys(self._classes[name] for name in sorted(self._classes)))

    def find(self, name: str, defined_in: str | None = None) -> type[T] | None:
        """Return the class called ``name``, or None if there is none.

        Case, and ``-`` or blanks for ``_``, do not matter. Where a file says that the class is
        ``defined_in`` some module, as its `origin`, and it is not known, a `BadValue` says what to
        import.
        """
        key = str(name).strip().lower().replace("-", "_").replace(" ", "_")
        if key in self._classes or defined_in is None:
            return self._classes.get(key)
        module, _, class_name = defined_in.partition(":")
        where, way_out = f"module '{module}'", f"import {module}"
        if module == "__main__":
            where, way_out = "the program that wrote the file", "define or import it"
        raise BadValue(
            f"{self._kind} '{name}' is the class {class_name} of {where}, which is not imported "
            f"here; {way_out} before you load"
        )
