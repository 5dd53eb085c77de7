"""Work space of Pinocchio: as many `pin.Data` of a model as are in use at once, and no more.

Whoever evaluates something takes one, and gives it back: two threads never write to the same one,
nor does a function of the user's that asks for another state in the middle of an evaluation. What
stands in one that was just taken is of no meaning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import pinocchio as pin

from ..errors import BadValue

Parameters = ParamSpec("Parameters")
Robot = TypeVar("Robot", bound="HasMemory")
Result = TypeVar("Result")

_REMEMBERED = 16
"""So many results of a function are kept with a robot, the latest ones."""
_NOTHING: Any = object()
_LARGE = 2**28
"""Memory from which on it is asked whether there is as much [bytes]."""


class WorkSpace:
    """One `pin.Data`, and in ``solver`` what a solver of Pinocchio has prepared in it last."""

    __slots__ = ("data", "solver")

    def __init__(self, model: pin.Model) -> None:
        self.data = create_data(model)
        self.solver: Any = None


class WorkSpaces:
    """All work spaces of one model that nobody is using.

    They can be taken and given back from several threads: that is what lists of Python allow.

    Attributes:
        free: the work spaces; append one to give it back.
    """

    def __init__(self) -> None:
        self.free: list[WorkSpace] = []

    def __reduce__(self) -> tuple[Callable[[], WorkSpaces], tuple[()]]:
        """A copy has work spaces of its own."""
        return WorkSpaces, ()

    def take(self, model: pin.Model) -> WorkSpace:
        """One that nobody else has; BadValue if there is no memory for another one."""
        try:
            return self.free.pop()
        except IndexError:
            pass
        return WorkSpace(model)

    @contextmanager
    def lend(self, model: pin.Model) -> Iterator[pin.Data]:
        """Lend the `pin.Data` of a work space for the time of a ``with`` block."""
        space = self.take(model)
        try:
            yield space.data
        finally:
            self.free.append(space)


class Memory(dict[Hashable, dict[Hashable, Any]]):
    """What functions have computed from a robot alone; a copy of the robot computes it again."""

    def __reduce__(self) -> tuple[Callable[[], Memory], tuple[()]]:
        """A copy remembers nothing."""
        return Memory, ()


class HasMemory(Protocol):
    """A robot, as far as it is known here."""

    @property
    def memory(self) -> Memory:
        """What has been computed from it."""
        ...


def remembered(
    function: Callable[Concatenate[Robot, Parameters], Result],
) -> Callable[Concatenate[Robot, Parameters], Result]:
    """Let a function of a robot and hashable arguments keep its results with the robot.

    They live as long as the robot does, and depend on nothing but the arguments.
    """

    @wraps(function)
    def call(robot: Robot, /, *args: Parameters.args, **options: Parameters.kwargs) -> Result:
        results = robot.memory.setdefault(function, {})
        key = args, *options.items()
        result: Result = results.get(key, _NOTHING)
        if result is _NOTHING:
            result = results[key] = function(robot, *args, **options)
            for old in list(results)[:-_REMEMBERED]:
                results.pop(old, None)
        return result

    return call


def create_data(model: pin.Model) -> pin.Data:
    """A `pin.Data`, for whoever needs one for long; `Mechanism.workspace` is for a moment.

    Not by `model.createData`, which takes the memory twice: it returns a copy. Raises `BadValue`
    where there is not enough memory.
    """
    # Four tensors of second derivatives make up nearly all of it.
    needed = 4 * 8 * int(model.nv) ** 3
    free = _available() if needed > _LARGE else None
    if free is None or needed < free:
        try:
            return pin.Data(model)
        except MemoryError:
            pass
    left = "" if free is None else f", and {free / 2**30:.1f} GB are free"
    raise BadValue(
        f"robot '{model.name}' has {model.nv} velocities: the work space of Pinocchio for it takes "
        f"{needed / 2**30:.1f} GB{left}. It grows with the cube of their number: split the robot, "
        "make joints fixed that need not move, or take a machine with more memory"
    )


def _available() -> int | None:
    """Memory that can be had without swapping [bytes]; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
