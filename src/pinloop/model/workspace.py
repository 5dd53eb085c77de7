"""Work space of Pinocchio: as many `pin.Data` of a model as are in use at once, and no more.

Whoever evaluates something takes one, and gives it back: two threads never write to the same one,
nor does a function of the user's that asks for another state in the middle of an evaluation. What
stands in one that was just taken is of no meaning.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
import pinocchio as pin

from ..boundary.marks import Array
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


_MANY = 64
"""Coordinates beyond which no `pin.Data` is made for kinematics: its tensors take 32 nv^3 bytes."""


class TreeKinematics:
    """Placements and Jacobian of a tree at one configuration, in memory linear in its joints.

    What `Constraints` reads of a `pin.Data`, under the same names. A `pin.Data` itself does the
    work as long as it is small; the results agree to rounding.

    Attributes:
        oMi: placements of all joints in the world.
        oMf: those of all frames.
        J: twists of all coordinates, in world axes at the world's origin, shape (6, nv).
    """

    def __init__(self, model: pin.Model) -> None:
        self._model = model
        self._q: Array | None = None
        self._data = model.createData() if model.nv <= _MANY else None
        if self._data is None:
            joints = ((joint, joint.createData()) for joint in model.joints)
            placed = zip(model.parents, model.jointPlacements, joints, strict=True)
            self._joints = list(placed)[1:]
            self._frames = [(frame.parentJoint, frame.placement) for frame in model.frames]
        self.oMi: Sequence[pin.SE3] = ()
        self.oMf: Sequence[pin.SE3] = ()
        self.J = np.zeros((6, model.nv))

    def __reduce__(self) -> tuple[Callable[[pin.Model], TreeKinematics], tuple[pin.Model]]:
        """Pinocchio's joints cannot be pickled: the work space is made anew."""
        return TreeKinematics, (self._model,)

    def update(self, q: Array) -> TreeKinematics:
        """Move to a configuration, shape (nq,), if it is another one; returns itself."""
        if self._q is not None and np.array_equal(q, self._q):
            return self
        self._q = np.array(q)
        model, data = self._model, self._data
        if data is not None:
            pin.computeJointJacobians(model, data, q)
            pin.updateFramePlacements(model, data)
            self.oMi, self.oMf = data.oMi, data.oMf
            self.J = data.J.reshape(6, -1)  # (6,) for nv = 1
            return self
        placed = [pin.SE3.Identity()]
        for parent, placement, (joint, moved) in self._joints:
            joint.calc(moved, q)
            oMi = placed[parent] * placement * moved.M
            placed.append(oMi)
            columns = slice(joint.idx_v, joint.idx_v + joint.nv)
            self.J[:, columns] = oMi.toActionMatrix() @ np.reshape(moved.S, (6, -1))
        self.oMi = placed
        self.oMf = [placed[parent] * placement for parent, placement in self._frames]
        return self
