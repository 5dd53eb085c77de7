"""Arguments of the wrong kind: one sentence for all public functions, from their annotations.

`public` stands above every function and class that users call. It costs next to nothing while
arguments are right. Where a call fails inside with what Python raises on values of the wrong kind,
the arguments are held against the annotations, and the first that does not fit is named. A call
whose arguments all fit fails as it did: that is a defect of pinloop, and is not hidden. `checked`
stands above values that users write down, such as forces: these are held against the annotations
and their marks where they are made, before a NaN or a text gets far away from its author.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from itertools import repeat
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, overload

import numpy as np
from numpy.typing import ArrayLike

from ..errors import BadValue, PinloopError, UnknownName, shown
from ..tolerances import NO_DIRECTION
from ..units import TIMES, in_units, listed
from .marks import Array, Per, Range, parted

Thing = TypeVar("Thing", bound=Callable[..., Any])
Value = TypeVar("Value")

_MOST_JOBS = 10_000
_CONFUSED = (TypeError, AttributeError, ValueError, LookupError, ArithmeticError)
"""What Python, NumPy and Boost raise on values of the wrong kind."""


class _Numbers:
    """Stands for `ArrayLike` in annotations, whose union would dissolve in others."""


_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    type(None): "None",
    _Numbers: "numbers",
    os.PathLike: "a path",
    np.ndarray: "an array of numbers",
}


def public(thing: Thing) -> Thing:
    """Let a function, or a class with its public methods, name arguments of the wrong kind.

    Args:
        thing: the function or class.
    """
    if not isinstance(thing, type):
        function: Thing = _explaining(thing, _refuse_nan)
        return function
    for name, member in list(vars(thing).items()):
        if name not in ("__init__", "__call__") and name.startswith("_"):
            continue
        if isinstance(member, types.FunctionType):
            setattr(thing, name, _explaining(member))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(thing, name, type(member)(_explaining(member.__func__)))
    return thing


def checked(cls: type[Value]) -> type[Value]:
    """Let a dataclass refuse fields that do not fit annotations and marks, or are not finite."""
    owner: Any = cls
    construct = owner.__init__

    @wraps(construct)
    def construct_checked(self: Any, *arguments: Any, **options: Any) -> None:
        construct(self, *arguments, **options)
        for name, kind in _field_kinds(owner):
            if problem := _problem(name, getattr(self, name), kind):
                label, value, wanted = problem
                what = f"{label} is {shown(value)} ({type(value).__name__})"
                raise BadValue(f"{what}; {cls.__name__} needs {wanted}")

    owner.__init__ = construct_checked
    return cls


@cache
def _field_kinds(cls: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((part.name, _resolved(part.type, cls)) for part in fields(cls))


def _problem(label: str, value: Any, kind: Any) -> tuple[str, Any, str] | None:
    """What is wrong with a field or a part of it: its label, value, and what it should be."""
    bare, marks = parted(_Numbers if kind == ArrayLike else kind)
    origin, parts = get_origin(bare), get_args(bare)
    problem = label, value, _described(bare)
    if origin in (Union, types.UnionType):
        problems = [_problem(label, value, part) for part in parts]
        if None in problems:
            return None
        # Of a number outside its range, or a table with a wrong item, that is the reason.
        alike = (why for why, part in zip(problems, parts, strict=True) if _alike(value, part))
        return next(alike, problem)
    inner: Iterable[tuple[str, Any, Any]] = ()
    if _alike(value, kind) and isinstance(value, Mapping) and parts:
        inner = ((f"{label}[{shown(key)}]", item, parts[1]) for key, item in value.items())
    elif _alike(value, kind) and isinstance(value, (list, tuple)) and parts:
        same = origin is not tuple or parts[-1] is Ellipsis
        kinds = repeat(parts[0]) if same else parts
        inner = ((f"{label}[{k}]", *pair) for k, pair in enumerate(zip(value, kinds)))  # noqa: B905
    if found := next(filter(None, (_problem(*part) for part in inner)), None):
        return found
    if not _fits(value, bare):
        return problem
    ranges = [mark for mark in marks if isinstance(mark, Range)]
    if bare is float and not (math.isfinite(value) and all(r.holds(value) for r in ranges)):
        return label, value, " ".join(["a finite number", *map(str, ranges)])
    if bare is _Numbers and not np.all(np.isfinite(np.asarray(value, dtype=float))):
        return label, value, "finite numbers"
    return None


def _alike(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, whatever is in it."""
    bare = parted(kind)[0]
    origin = get_origin(bare)
    if not isinstance(origin, type) or bare in _SCALARS:
        return _fits(value, bare)
    return isinstance(value, list if origin is tuple and isinstance(value, list) else origin)


def _refuse_nan(function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse a number that is none, which would go through every comparison."""
    for value in (*arguments, *options.values()):
        if isinstance(value, float) and value != value:
            given = inspect.signature(function).bind(*arguments, **options).arguments
            named = (given | options).items()
            name = next((name for name, other in named if other is value), "an argument")
            raise BadValue(f"{name} is nan; {function.__name__} needs a number")


def _explaining(function: Any, before: Callable[..., None] | None = None) -> Any:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if before is not None:
            before(function, arguments, options)
        try:
            return function(*arguments, **options)
        except PinloopError:
            raise
        except _CONFUSED as error:
            problem = _misfit(function, arguments, options)
            if problem is None:
                raise
            raise BadValue(problem) from error

    return call


def _misfit(function: Any, arguments: Iterable[Any], options: Mapping[str, Any]) -> str | None:
    """What is wrong with the first argument that does not fit its annotation, or None."""
    signature = inspect.signature(function)
    try:
        given = signature.bind(*arguments, **options).arguments
    except TypeError:
        return None  # a wrong number or name of arguments is Python's to tell
    for name, value in given.items():
        parameter = signature.parameters[name]
        kind = _resolved(parameter.annotation, function)
        values = {name: value}
        if parameter.kind is parameter.VAR_POSITIONAL:
            values = {f"{name}[{k}]": item for k, item in enumerate(value)}
        elif parameter.kind is parameter.VAR_KEYWORD:
            values = dict(value)
        for label, item in values.items():
            if not _fits(item, kind):
                what = f"{label} is {shown(item)} ({type(item).__name__})"
                owner = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                return f"{what}; {owner.strip('_')} needs {_described(kind)}"
            for mark in parted(kind)[1]:
                if isinstance(mark, Per) and (problem := mark.problem(given["self"], item)):
                    return f"{label} {problem}"
    return None


def _resolved(annotation: Any, function: Any) -> Any:
    """The kind that an annotation names; Any if it cannot be known when the program runs."""
    if annotation is inspect.Parameter.empty:
        return Any
    if not isinstance(annotation, str):
        return annotation
    names = vars(sys.modules[function.__module__]) | {"ArrayLike": _Numbers}
    try:
        return eval(annotation, dict(names))
    except (NameError, TypeError):
        # Names that only type checkers import.
        return Any


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind, as far as that can be seen without using it up."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if kind == ArrayLike:  # in an alias; what it is made of differs between releases of NumPy
        return _is_numbers(value)
    if kind is None:
        return value is None
    if origin is Annotated:
        return _fits(value, parts[0])
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if origin is not None:
        return _holds(value, origin, parts)
    if isinstance(kind, type) and not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind)
    return True


def _holds(value: Any, origin: Any, parts: tuple[Any, ...]) -> bool:
    """Whether a container is of a kind, and what is in it."""
    if origin is type:
        return isinstance(value, type)
    if not isinstance(origin, type) or origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype != object
    if issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if not isinstance(value, list if origin is tuple and isinstance(value, list) else origin):
        return False
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return False  # an array by its class, but nothing to walk through
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(k, parts[0]) and _fits(v, parts[1]) for k, v in value.items())
    if isinstance(value, (str, bytes)):
        return False  # its letters are not what is meant
    if isinstance(value, Collection) and parts:
        if origin is tuple and parts[-1] is not Ellipsis:
            return len(value) == len(parts) and all(map(_fits, value, parts))
        return all(_fits(item, parts[0]) for item in value)
    return True


def _is_number(value: Any) -> bool:
    single = isinstance(value, np.ndarray) and value.ndim == 0
    return (isinstance(value, Real) or single) and _is_numbers(value)


def _is_text(value: Any) -> bool:
    """Whether a value is a text without halves of characters, which no library takes."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_numbers(value: Any) -> bool:
    if value is None:  # which NumPy takes for NaN
        return False
    try:
        np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


_SCALARS: Mapping[Any, Callable[[Any], bool]] = {
    float: lambda value: _is_number(value) and not isinstance(value, bool),
    int: lambda value: isinstance(value, (int, np.integer)) and not isinstance(value, bool),
    bool: lambda value: isinstance(value, (bool, np.bool_)),
    str: _is_text,
    _Numbers: _is_numbers,
}


def _described(kind: Any) -> str:
    if kind == ArrayLike:
        return _WORDS[_Numbers]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_described, parts)))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin is Annotated:
        return _described(parts[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a table of {_described(parts[0])} and {_described(parts[1])}"
    if origin is np.ndarray:
        return _WORDS[np.ndarray]
    if isinstance(origin, type) and issubclass(origin, Callable):  # type: ignore[arg-type]
        return "a function"
    if origin is not None:
        return f"several of {_described(parts[0])}" if parts else str(origin.__name__)
    if kind in _WORDS:
        return _WORDS[kind]
    name = getattr(kind, "__name__", str(kind))
    return {"Path": "a path", "Mechanism": "a robot (pl.load gives one)"}.get(name, f"a {name}")


# -- checks by hand --------------------------------------------------------------------------------


def flat_numbers(
    values: ArrayLike, what: str, count: int | None = None, units: Mapping[str, float] | None = None
) -> Array:
    """Return ``values`` as a flat array after checking that they are (``count``) finite numbers.

    ``what`` is their name, for messages. With ``units``, each may be a text, see `in_si`.
    """
    if units is not None and isinstance(values, (str, list, tuple)):
        parts = [values] if isinstance(values, str) else values
        values = [in_si(x, what, units) if isinstance(x, str) else x for x in parts]
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(values)}, which is not made of numbers") from None
    if array.ndim != 1:
        raise BadValue(f"{what} has shape {array.shape}; it must be flat")
    if count is not None and array.size != count:
        raise BadValue(f"{what} has {count} numbers, not {array.size}")
    if not np.isfinite(array).all():
        raise BadValue(f"{what} is not finite at index {int(np.argmin(np.isfinite(array)))}")
    return array


def in_si(text: str, what: str, units: Mapping[str, float]) -> float:
    """The SI value of a number with one of some units, as a text: "25deg".

    ``units`` are their sizes, see `pinloop.units`; ``what`` is the name of the number.
    """
    value = in_units(text, units)
    if value is not None:
        return value
    known = listed(units)
    if not known:
        raise BadValue(f"{what} is '{text}': a joint with several axes takes plain numbers")
    raise BadValue(
        f"{what} is '{text}': no number, with or without a unit ({known}); write for example "
        f"30{known.split(', ')[-1]}"
    )


@overload
def as_seconds(time: float | str, what: str) -> float: ...
@overload
def as_seconds(time: float | str | None, what: str) -> float | None: ...
def as_seconds(time: float | str | None, what: str) -> float | None:
    """A time with a unit as a text, such as "800 ms", in seconds; all else as it is."""
    return in_si(time, what, TIMES) if isinstance(time, str) else time


def unit_vector(vector: ArrayLike, what: str) -> Array:
    """Return ``vector`` at unit length, shape (3,)."""
    try:
        values = np.asarray(vector, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers") from None
    size = float(np.linalg.norm(values))
    if values.shape != (3,) or not np.isfinite(size) or size < NO_DIRECTION:
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers")
    return values / size


def place_of(name: str, known: Sequence[str], kind: str) -> int:
    """Where a name is among those that are known. ``kind``: what it is a name of."""
    if name not in known:
        raise UnknownName(kind, name, known)
    return known.index(name)


def require_kind(value: object, kind: type | tuple[type, ...], what: str, way_out: str) -> None:
    """Refuse a value of another kind, before something inside stumbles over it.

    The message calls it ``what``, and says what to give instead: the ``way_out``.
    """
    if not isinstance(value, kind):
        owner = type(value)
        text = f"{shown(value)} ({owner.__name__})"
        if "\n" in repr(value) and not isinstance(value, str):  # nobody reads it in one line
            text = f"a {owner.__module__.partition('.')[0]}.{owner.__name__}"
        raise BadValue(f"{what} is {text}; {way_out}")


def require_whole(value: object, what: str, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number from zero on."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value <= most:  # type: ignore[operator]
        raise BadValue(f"{what} is {shown(value)}; give a whole number from 0 to {most}")


def require_jobs(jobs: object, what: str) -> None:
    """Refuse what is no number of ``what``, processes or threads: -1 means all cores."""
    whole = isinstance(jobs, int) and not isinstance(jobs, bool)
    if not whole or jobs == 0 or abs(jobs) > _MOST_JOBS:  # type: ignore[arg-type]
        raise BadValue(f"jobs is {shown(jobs)}; give a number of {what}, or -1 for all cores")
