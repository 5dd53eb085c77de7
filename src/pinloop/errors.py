"""Everything that can go wrong, as exceptions a user can act on.

One root, `PinloopError`; its children carry the numbers of the problem that failed. No other
exception type may leave the package on bad input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BadValue",
    "InconsistentVelocity",
    "LoadError",
    "LoopNotClosed",
    "PinloopError",
    "PinloopWarning",
    "SimulationFailed",
    "SingularMass",
    "StopFailed",
    "UnknownName",
]


class PinloopError(Exception):
    """Root of all errors of pinloop."""


class PinloopWarning(UserWarning):
    """Something works, but probably not as its author intended."""


class LoadError(PinloopError):
    """A robot description cannot be turned into a mechanism.

    Args:
        problem: one sentence with the element, the value and the way out.
        source: file or kind of input that holds the problem.
        line: line of the file, counted from 1, where known.
    """

    def __init__(self, problem: str, *, source: str = "", line: int | None = None) -> None:
        where = source + (f":{line}" if line is not None else "")
        super().__init__(f"{where}: {problem}" if where else problem)
        self.problem = problem
        self.source = source
        self.line = line


class BadValue(PinloopError):
    """An argument has the wrong shape, range or kind."""


class UnknownName(PinloopError):
    """A name that the robot does not have.

    Args:
        kind: what was looked for, e.g. "joint".
        name: the name that was asked for.
        known: the names that exist.
        robot: name of the robot.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], robot: str = "") -> None:
        names = list(known)
        close = get_close_matches(name, names, n=3)
        if close:
            hint = f"did you mean {' or '.join(repr(n) for n in close)}?"
        elif names:
            more = ", ..." if len(names) > 12 else ""
            hint = f"known: {', '.join(names[:12])}{more}"
        else:
            hint = f"there is no {kind} at all"
        of_robot = f" in robot '{robot}'" if robot else ""
        super().__init__(f"no {kind} '{name}'{of_robot}; {hint}")
        self.name = name


class LoopNotClosed(PinloopError):
    """No configuration was found that closes every loop.

    Args:
        message: what is open, by how much and what blocks it.
        q: the closest configuration found, shape (nq,).
        residuals: per loop, coupling or target: its residual norm (m and rad mixed).
        blocked_by: what had to be released for the loops to close; empty if out of reach.
    """

    def __init__(
        self,
        message: str,
        *,
        q: NDArray[Any],
        residuals: Mapping[str, float],
        blocked_by: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.q = q
        self.residuals = dict(residuals)
        self.blocked_by = blocked_by


class InconsistentVelocity(PinloopError):
    """The loops do not allow the velocities that were asked for.

    Args:
        message: which rate cannot be had and by how much.
        v: the closest velocity found, shape (nv,).
        residual: norm of what is left of the constraints.
    """

    def __init__(self, message: str, *, v: NDArray[Any], residual: float) -> None:
        super().__init__(message)
        self.v = v
        self.residual = residual


class SingularMass(PinloopError):
    """The mass matrix is singular: something moves without inertia."""


class NotFinite(PinloopError):
    """A state or a force has become infinite or no number, as in a step that was far too long."""


class SimulationFailed(PinloopError):
    """A run could not go on; what was computed is not lost.

    Args:
        message: what happened, when, and what to try.
        trajectory: everything up to the failure.
        reason: short name of the failure, e.g. "step too small".
    """

    def __init__(self, message: str, *, trajectory: Any, reason: str) -> None:
        super().__init__(message)
        self.trajectory = trajectory
        self.reason = reason


class StopFailed(PinloopError):
    """A stop could not be computed to its end; what was computed is not lost.

    Args:
        message: what happened, when, and what to try.
        result: everything up to the failure.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result
