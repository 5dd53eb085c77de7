"""Everything that can go wrong, as exceptions a user can act on.

One root, `PinloopError`; its children carry the numbers of the problem that failed. No other
exception type may leave the package on bad input.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_REPEATED = 200
"""Characters of what was given that a message repeats."""
_LONGEST = 4000
"""Characters of a message."""
_LONG = re.compile(rf"(?<![^\s(\[=,:])'(?=\S)[^']{{{_REPEATED + 1},}}'|\S{{{_REPEATED + 1},}}")
"""Something quoted, or a word, that is long; a quote opens after a space, not after a name."""


def printable(text: str) -> str:
    r"""Return a text in one line without control characters, which a terminal would obey.

    Escapes, carriage returns, line ends and whatever else shows nothing become ``\x1b`` and the
    like. All that comes from a file and goes to a terminal or into a message passes through here.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def shown(value: object) -> str:
    """Return what was given as messages repeat it: in one line, and cut if it is long."""
    return _cut(printable(_SHORT.repr(value)))


class _Short(reprlib.Repr):
    """Repeats the heads of values."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 4

    def repr_int(self, value: int, level: int) -> str:
        # Python refuses to print integers of thousands of digits.
        return repr(value) if value.bit_length() < _REPEATED else "an integer of many digits"


_SHORT = _Short()


def _cut(text: str, most: int = _REPEATED) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most - 60]} ... {text[-50:]}"


def _bearable(message: str) -> str:
    """A message in one line, with what it repeats cut where that is long."""
    text = _LONG.sub(lambda found: _cut(found[0]), printable(str(message)))
    return _cut(text, _LONGEST)


class PinloopError(Exception):
    """Root of all errors of pinloop.

    Its message is one line of a bearable length, whatever the names and values in it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_bearable(message))

    def __reduce__(self) -> tuple[Any, ...]:
        """Restore it as it is: constructors of children compose their messages."""
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[PinloopError], arguments: tuple[Any, ...]) -> PinloopError:
    error = kind.__new__(kind)
    error.args = arguments
    return error


class PinloopWarning(UserWarning):
    """Something works, but probably not as its author intended."""

    def __init__(self, message: str) -> None:
        super().__init__(_bearable(message))


class LoadError(PinloopError, ValueError):
    """A robot description cannot be turned into a mechanism.

    Args:
        problem: one sentence with the element, the value and the way out.
        source: file or kind of input that holds the problem.
        line: line of the file, counted from 1, where known.
    """

    def __init__(self, problem: str, *, source: str = "", line: int | None = None) -> None:
        self.place = source + (f":{line}" if line is not None else "")
        super().__init__(f"{self.place}: {problem}" if self.place else problem)
        self.problem = problem
        self.source = source
        self.line = line


class BadValue(PinloopError, ValueError):
    """An argument has the wrong shape, range or kind."""


def suggestion(name: object, known: Iterable[str], alike: float = 0.6) -> str:
    """Return "; did you mean 'x'?" for the known name that is most like ``name``, "" if none is.

    Keys of YAML files need not be texts.
    """
    close = get_close_matches(str(name), list(known), n=1, cutoff=alike)
    return f"; did you mean '{close[0]}'?" if close else ""


def listed(names: Iterable[str | int], before: str = "", most: int = 6) -> str:
    """Return names in quotes and numbers of lines, the first few, after ``before``; "" if none."""
    unique = [name for name in dict.fromkeys(names) if name]
    if not unique:
        return ""
    shown = [f"'{name}'" if isinstance(name, str) else f"line {name}" for name in unique[:most]]
    more = len(unique) - most
    return before + ", ".join(shown) + (f" and {more} more" if more > 0 else "")


class UnknownName(PinloopError, LookupError):
    """A name that the robot does not have.

    Args:
        kind: what was looked for, e.g. "joint".
        name: the name that was asked for.
        known: the names that exist.
        robot: name of the robot.
    """

    def __init__(self, kind: str, name: object, known: Iterable[str], robot: str = "") -> None:
        names = list(known)
        close = get_close_matches(name, names, n=3) if isinstance(name, str) else ()
        if close:
            hint = f"did you mean {' or '.join(repr(n) for n in close)}?"
        elif names:
            more = ", ..." if len(names) > 12 else ""
            hint = f"known: {', '.join(names[:12])}{more}"
        else:
            hint = f"there is no {kind} at all"
        of_robot = f" in robot '{robot}'" if robot else ""
        quoted = f"'{name}'" if isinstance(name, str) else shown(name)
        super().__init__(f"no {kind} {quoted}{of_robot}; {hint}")
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
