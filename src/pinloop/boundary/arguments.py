"""Arguments of the wrong kind: one sentence for all public functions, from their annotations.

`public` stands above every function and class that users call. It costs nothing while arguments are
right. Where a call fails inside with what Python raises on values of the wrong kind, the arguments
are held against the annotations, and the first that does not fit is named. A call whose arguments
all fit fails as it did: that is a defect of pinloop, and is not hidden.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BadValue, PinloopError, shown
from ..tolerances import NO_DIRECTION

Array = NDArray[np.float64]
Thing = TypeVar("Thing", bound=Callable[..., Any])

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


_PUBLIC: set[type] = set()
"""Public dataclasses, whose fields are annotated as arguments are."""


def public(thing: Thing) -> Thing:
    """Let a function, or a class with its public methods, name arguments of the wrong kind.

    Args:
        thing: the function or class.
    """
    if not isinstance(thing, type):
        function: Thing = _explaining(thing)
        return function
    if is_dataclass(thing):
        _PUBLIC.add(thing)
    for name, member in list(vars(thing).items()):
        if name not in ("__init__", "__call__") and name.startswith("_"):
            continue
        if isinstance(member, types.FunctionType):
            setattr(thing, name, _explaining(member))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(thing, name, type(member)(_explaining(member.__func__)))
    return thing


def _explaining(function: Any) -> Any:
    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except PinloopError:
            raise
        except _CONFUSED as error:
            given = (*arguments, *options.values())
            problem = _misfit(function, arguments, options) or _misfit_within(given)
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
                return f"{what}; {function.__name__.strip('_')} needs {_described(kind)}"
    return None


def _misfit_within(arguments: Iterable[Any]) -> str | None:
    """What is wrong with a field of public values, such as forces, that are fitting arguments."""
    for argument in arguments:
        for value in argument if isinstance(argument, (list, tuple)) else (argument,):
            if type(value) not in _PUBLIC:
                continue
            for part in fields(value):
                kind, item = _resolved(part.type, type(value)), getattr(value, part.name)
                if not _fits(item, kind):
                    what = f"{part.name} is {shown(item)} ({type(item).__name__})"
                    return f"{what}; {type(value).__name__} needs {_described(kind)}"
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
        return isinstance(value, np.ndarray)
    if issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if not isinstance(value, list if origin is tuple and isinstance(value, list) else origin):
        return False
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(_fits(k, parts[0]) and _fits(v, parts[1]) for k, v in value.items())
    if isinstance(value, (str, bytes)):
        return False  # its letters are not what is meant
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)) and parts:
        if origin is tuple and parts[-1] is not Ellipsis:
            return len(value) == len(parts) and all(map(_fits, value, parts))
        return all(_fits(item, parts[0]) for item in value)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and _is_numbers(value)


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
    _Numbers: _is_numbers,
}


def _described(kind: Any) -> str:
    """A kind in words."""
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


def flat_numbers(values: ArrayLike, what: str, count: int | None = None) -> Array:
    """Return ``values`` as a flat array after checking that they are (``count``) finite numbers.

    Args:
        values: what was given.
        what: its name, for messages.
        count: how many numbers it must have; any number by default.
    """
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(values)}, which is not made of numbers") from None
    if array.ndim != 1:
        raise BadValue(f"{what} has shape {array.shape}; it must be flat")
    if count is not None and array.size != count:
        raise BadValue(f"{what} has {count} numbers, not {array.size}")
    if not np.all(np.isfinite(array)):
        raise BadValue(f"{what} is not finite at index {int(np.argmin(np.isfinite(array)))}")
    return array


def unit_vector(vector: ArrayLike, what: str) -> Array:
    """Return ``vector`` at unit length, shape (3,).

    Args:
        vector: what was given.
        what: its name, for messages.
    """
    try:
        values = np.asarray(vector, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers") from None
    size = float(np.linalg.norm(values))
    if values.shape != (3,) or not np.isfinite(size) or size < NO_DIRECTION:
        raise BadValue(f"{what} is {shown(vector)}; it must be a direction of 3 numbers")
    return values / size


def require_kind(value: object, kind: type | tuple[type, ...], what: str, way_out: str) -> None:
    """Refuse a value of another kind, before something inside stumbles over it.

    Args:
        value: what was given.
        kind: what it must be.
        what: its name, for messages.
        way_out: what to give instead.
    """
    if not isinstance(value, kind):
        raise BadValue(f"{what} is {shown(value)} ({type(value).__name__}); {way_out}")


def require_whole(value: object, what: str, most: int = 2**63 - 1) -> None:
    """Refuse what is no whole number from zero on.

    Args:
        value: what was given.
        what: its name, for messages.
        most: the largest that is allowed.
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value <= most:  # type: ignore[operator]
        raise BadValue(f"{what} is {shown(value)}; give a whole number from 0 to {most}")
