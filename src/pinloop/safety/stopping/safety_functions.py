"""Names of safety functions of drives (IEC 61800-5-2) and of stop categories (IEC 60204-1).

The one place for them: Python, files, command line and tables take them from here. What a stop of a
category does is in `plan`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from ...boundary.arguments import public
from ...errors import UnknownName

CategoryNumber = Literal[0, 1, 2]
StopName = Literal[0, 1, 2, "STO", "SS1-r", "SS1-t", "SS2"]


@public
class SafetyFunction(StrEnum):
    """A safety function of drives.

    SS1-r without its monitor: what lags behind its ramp is told, and goes on.
    """

    STO = "STO"
    SS1_R = "SS1-r"
    SS1_T = "SS1-t"
    SS2 = "SS2"
    SOS = "SOS"
    SLS = "SLS"

    @classmethod
    def _missing_(cls, value: object) -> SafetyFunction:
        raise UnknownName("safety function", value, [function.value for function in cls])

    @property
    def meaning(self) -> str:
        """What the drives do."""
        return _MEANINGS[self][0]

    @property
    def category(self) -> CategoryNumber | None:
        """Stop category; None of what stops nothing."""
        return _MEANINGS[self][1]

    @property
    def instead(self) -> str:
        """What to do for a function that stops nothing."""
        return _INSTEAD.get(self, "")


_MEANINGS: dict[str, tuple[str, CategoryNumber | None]] = {
    "STO": ("safe torque off: the power is cut at once", 0),
    "SS1-r": ("safe stop 1: the drives bring the robot to rest, then the power is cut", 1),
    "SS1-t": ("safe stop 1: the drives slow down, after a fixed time the power is cut", 1),
    "SS2": ("safe stop 2: the drives bring the robot to rest, then SOS", 2),
    "SOS": ("safe operating stop: the drives hold the robot at rest", None),
    "SLS": ("safely limited speed: the drives keep below a speed", None),
}
_INSTEAD = {
    "SOS": "it holds what is at rest, and SS2 brings it there",
    "SLS": "it limits speeds; let the stop begin at that speed",
}


def function_by_name(name: str) -> SafetyFunction | None:
    """The safety function of this name, in large or small letters; None if there is none."""
    known = {function.value.lower(): function for function in SafetyFunction}
    return known.get(name.lower().replace("_", "-"))
