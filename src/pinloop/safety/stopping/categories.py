"""Categories of stops: what drives and brakes do, as values.

Category 0 cuts the power at once. Category 1 brings the robot to rest under control, then brakes,
then cuts the power. Category 2 brings it to rest and keeps the power. When that happens in a stop
is its `plan`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from ...boundary.arguments import checked, public
from ...boundary.marks import INTERNAL, Positive
from ...errors import BadValue
from ..brakes.laws import StopLaw
from .safety_functions import CategoryNumber, SafetyFunction, function_by_name


class Category:
    """What a stop does with drives and brakes, as a frozen dataclass.

    The drives bring the robot to rest by ramps and keep their power, unless an attribute says
    otherwise; brakes are commanded at once, when all stand, or at a time limit.
    """

    number: ClassVar[CategoryNumber]
    """Category of IEC 60204-1 that it belongs to."""
    title: ClassVar[str]
    """What it does, in tables."""
    controlled: ClassVar[bool] = True
    """Whether the drives bring the robot to rest; else power is cut and brakes come at once."""
    on_path: bool = False
    """Whether the drives slow down along the path, all joints together."""
    law: StopLaw | None = None
    """How the drives slow down; None: as the brakes file says."""
    time_limit: float | None = None
    """From the command until brakes come in any case, and the power is cut [s]."""

    @property
    def brakes_at_rest(self) -> bool:
        """Whether brakes are commanded when all stand, and the power is cut when they hold."""
        return False

    @property
    def function(self) -> SafetyFunction | None:
        """Safety function of the drives that it is, if it is one."""
        return None


@public
@dataclass(frozen=True)
class Category0(Category):
    """Power is cut and brakes are commanded at once."""

    number = 0
    function = SafetyFunction.STO
    title = "0: power off and brakes at once"
    controlled = False


@public
@checked
@dataclass(frozen=True)
class Category1(Category):
    """The drives bring the robot to rest; brakes when all stand, or at a time limit.

    When all stand, the drives keep holding until the brakes have their full torque (SS1-r). At the
    time limit the power is cut as in category 0, whatever the robot does (SS1-t).

    Args:
        on_path: slow down along the path, all joints together; otherwise each by its own ramp.
        time_limit: from the command until brakes come in any case [s]; None: when all stand.
        law: how the drives slow down, e.g. `ConstantTime(0.3)`; as the brakes file says by default.
        full_time: whether brakes wait for the time limit, though all stand before (SS1-t).
    """

    on_path: bool = False
    time_limit: Positive | None = None
    law: Annotated[StopLaw | None, INTERNAL] = None
    full_time: bool = False
    number = 1
    title = "1: drives bring the robot to rest, then brakes, then power off"

    def __post_init__(self) -> None:
        if self.full_time and self.time_limit is None:
            raise BadValue(
                f"{SafetyFunction.SS1_T} cuts the power after a fixed time; give it, e.g. "
                "pl.Category1(time_limit=0.5, full_time=True)"
            )

    @property
    def brakes_at_rest(self) -> bool:
        """See `Category`."""
        return not self.full_time

    @property
    def function(self) -> SafetyFunction:
        """See `Category`."""
        return SafetyFunction.SS1_T if self.full_time else SafetyFunction.SS1_R


@public
@checked
@dataclass(frozen=True)
class Category2(Category):
    """The drives bring the robot to rest and hold it.

    Args:
        on_path: slow down along the path, all joints together; otherwise each by its own ramp.
        law: how the drives slow down, e.g. `ConstantTime(0.3)`; as the brakes file says by default.
    """

    on_path: bool = False
    law: Annotated[StopLaw | None, INTERNAL] = None
    number = 2
    function = SafetyFunction.SS2
    title = "2: drives bring the robot to rest and hold it"


def as_category(
    category: int | str | Category,
    *,
    on_path: bool = False,
    law: StopLaw | None = None,
    time_limit: float | None = None,
) -> Category:
    """A category from its number or the name of its safety function; see `Category1`."""
    if isinstance(category, Category):
        return category
    function = function_by_name(category) if isinstance(category, str) else None
    number: object = category if function is None else function.category
    if function is not None and number is None:
        raise BadValue(f"{function} ({function.meaning}) is no stop: {function.instead}")
    if isinstance(number, bool) or number not in (0, 1, 2):
        names = ", ".join(x for x in SafetyFunction if x.category is not None)
        raise BadValue(
            f"category is {category!r}; it must be 0, 1 or 2, {names}, or e.g. pl.Category1()"
        )
    if number == 1:
        return Category1(on_path, time_limit, law, function is SafetyFunction.SS1_T)
    if time_limit is not None:
        raise BadValue("only category 1 has a time limit")
    if number == 2:
        return Category2(on_path, law)
    if on_path or law is not None:
        raise BadValue("category 0 has no drives that could keep to the path or to a law")
    return Category0()
