"""Types of annotations, and marks of what the values of a dataclass's fields may be in files.

`Annotated[float, Range(above=0), "its length [m]"]`. `schema` reads files by them.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from ..errors import BadValue
from ..tolerances import NO_DIRECTION
from ..units import TIMES, in_units
from .files import no_such_file


class Misfit(BadValue):
    """What `__post_init__` of a dataclass refuses because of one of its fields."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key, self.problem = key, problem


@dataclass(frozen=True, eq=False)
class Check:
    """A mark: a rule beside the type.

    Args:
        function: raises ValueError on what it refuses.
        schema: what a JSON schema says of the rule.
    """

    function: Callable[[Any], object]
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class Range:
    """A mark: the numbers that are allowed."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def bounds(self) -> Iterator[tuple[Bound, float]]:
        """Bounds that are given."""
        for name, bound in BOUNDS.items():
            if getattr(self, name) is not None:
                yield bound, getattr(self, name)

    def holds(self, value: float) -> bool:
        """Whether a number is allowed."""
        return all(bound.holds(value, limit) for bound, limit in self.bounds())

    def function(self, value: float) -> None:
        """Refuse a number outside, by a ValueError."""
        for bound, limit in self.bounds():
            if not bound.holds(value, limit):
                raise ValueError(f"expected a number {bound.expected} {limit:g}")

    @property
    def schema(self) -> Mapping[str, Any]:
        """The bounds as JSON schema has them."""
        return {bound.keyword: limit for bound, limit in self.bounds()}

    def __str__(self) -> str:
        return " and ".join(f"{bound.short} {limit:g}" for bound, limit in self.bounds())


@dataclass(frozen=True)
class Bound:
    """A bound: in short, in messages, in JSON schemas, and as a comparison."""

    short: str
    expected: str
    keyword: str
    holds: Callable[[float, float], bool]


BOUNDS: Mapping[str, Bound] = {
    "least": Bound("at least", "greater than or equal to", "minimum", operator.ge),
    "above": Bound("above", "greater than", "exclusiveMinimum", operator.gt),
    "most": Bound("at most", "less than or equal to", "maximum", operator.le),
    "below": Bound("below", "less than", "exclusiveMaximum", operator.lt),
}


@dataclass(frozen=True, eq=False)
class As:
    """A mark: a file has a value of another kind.

    Args:
        kind: what the file has.
        function: makes the value of it, or refuses it by a ValueError.
        schema: what a JSON schema says of the value in the file, if it is not that of the kind.
    """

    kind: Any
    function: Callable[[Any], Any] | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Short:
    """A mark: what is no table (or no list, where one is expected) stands for one.

    Args:
        kind: type of the shorter form.
        full: the key that it is the value of, or a function that makes the longer form of it.
    """

    kind: Any
    full: str | Callable[[Any], object]

    def lengthened(self, value: object) -> object:
        """The longer form."""
        return {self.full: value} if isinstance(self.full, str) else self.full(value)


@dataclass(frozen=True, eq=False)
class Per:
    """A mark: an array of as many finite numbers as the object has whose method takes it."""

    count: Callable[[Any], int]

    def problem(self, owner: Any, value: NDArray[Any]) -> str | None:
        """What is wrong with a value, and what is wanted."""
        wanted = (self.count(owner),)
        if value.shape != wanted:
            return f"has shape {value.shape}; it needs {wanted}"
        if value.dtype.kind not in "fiu":
            return f"is of kind {value.dtype}; it needs real numbers"
        return None if np.isfinite(value).all() else "is not finite"


Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
"""Arrays of numbers, of places, of whole numbers, and of yes and no."""
Configuration = Annotated[Array, Per(lambda owner: owner.robot.nq)]
"""A number per configuration coordinate of the robot."""
Velocity = Annotated[Array, Per(lambda owner: owner.robot.nv)]
"""A number per velocity coordinate of the robot."""


def parted(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and its marks."""
    if get_origin(kind) is NotRequired:
        kind = get_args(kind)[0]
    if get_origin(kind) is Annotated:
        return kind.__origin__, kind.__metadata__
    return kind, ()


def finite(value: object, wanted: str) -> float:
    """A finite number; a ValueError that says what is wanted for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected {wanted}")
    if not abs(value) <= sys.float_info.max:  # integers may have more digits than a float
        raise ValueError(f"expected a finite {wanted.split()[1].rstrip(',')}")
    return float(value)


def _seconds(value: object) -> float:
    time = in_units(value, TIMES) if isinstance(value, str) else value
    return finite(time, "a time, such as 0.8 (s) or 800ms")


def _filled(value: Any) -> None:
    if not value:
        empty = isinstance(value, str)
        raise ValueError(
            "expected a text that is not empty" if empty else "0 items where 1 are needed"
        )


def _nonzero(vector: Sequence[float]) -> None:
    if math.hypot(*vector) < NO_DIRECTION:
        raise ValueError("a zero vector has no direction")


def _there(path: Path) -> None:
    if not os.path.exists(path):  # which a name that is too long may be asked
        raise ValueError(f"{path}: {no_such_file(path)}")


INTERNAL = object()
"""A mark of fields that files do not have."""
existing = Check(_there, {})
"""A file that is there."""
nonempty = Check(_filled, {"minLength": 1, "minItems": 1, "minProperties": 1})
"""A text with a letter, a list or table with an item."""
Name = Annotated[str, nonempty]
NotNegative = Annotated[float, Range(least=0)]
Positive = Annotated[float, Range(above=0)]
Instant = Annotated[
    float,
    As(Any, _seconds, {"anyOf": [{"type": "number"}, {"type": "string", "examples": ["800ms"]}]}),
]
"""A time in s, or a text with its unit."""
Duration = Annotated[Instant, Range(above=0)]
Vector3 = tuple[float, float, float]
Direction = Annotated[Vector3, Check(_nonzero, {})]
"""Three numbers that do not vanish together; of any length."""
