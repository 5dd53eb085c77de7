"""When brakes are commanded and power goes: the categories of a stop.

Category 0 cuts the power at once. Category 1 brings the robot to rest under control, then brakes,
then cuts the power. Category 2 brings it to rest and keeps the power.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...boundary.arguments import checked, public
from ...boundary.marks import Positive
from ...errors import BadValue
from .drivetrain import Drivetrain

__all__ = ["BrakeTimes", "Category", "Category0", "Category1", "Category2", "as_category"]

Array = NDArray[np.float64]


class Category:
    """What a stop does with drives and brakes, as a frozen dataclass.

    The drives bring the robot to rest by ramps and keep their power, unless an attribute says
    otherwise; brakes are commanded at once, when all stand, or at a time limit.
    """

    number: ClassVar[Literal[0, 1, 2]]
    """Category of IEC 60204-1 that it belongs to."""
    title: ClassVar[str]
    """What it does, in tables."""
    controlled: ClassVar[bool] = True
    """Whether the drives bring the robot to rest; else power is cut and brakes come at once."""
    brakes_at_rest: ClassVar[bool] = False
    """Whether brakes are commanded when all stand, and the power is cut when they hold."""
    on_path: bool = False
    """Whether the drives slow down along the path, all joints together."""
    time_limit: float | None = None
    """From the command until brakes come in any case, and the power is cut [s]."""


@public
@dataclass(frozen=True)
class Category0(Category):
    """Power is cut and brakes are commanded at once."""

    number = 0
    title = "0: power off and brakes at once"
    controlled = False


@public
@checked
@dataclass(frozen=True)
class Category1(Category):
    """The drives bring the robot to rest; brakes when all stand, or at a time limit.

    When all stand, the drives keep holding until the brakes have their full torque. At the time
    limit the power is cut as in category 0, whatever the robot does.

    Args:
        on_path: slow down along the path, all joints together; otherwise each by its own ramp.
        time_limit: from the command until brakes come in any case [s]; None: when all stand.
    """

    on_path: bool = False
    time_limit: Positive | None = None
    number = 1
    title = "1: drives bring the robot to rest, then brakes, then power off"
    brakes_at_rest = True


@public
@checked
@dataclass(frozen=True)
class Category2(Category):
    """The drives bring the robot to rest and hold it.

    Args:
        on_path: slow down along the path, all joints together; otherwise each by its own ramp.
    """

    on_path: bool = False
    number = 2
    title = "2: drives bring the robot to rest and hold it"


def as_category(category: int | Category) -> Category:
    """A category from its number, with its defaults."""
    if isinstance(category, Category):
        return category
    known: dict[int, Category] = {0: Category0(), 1: Category1(), 2: Category2()}
    if isinstance(category, bool) or category not in known:
        raise BadValue(f"category is {category!r}; it must be 0, 1 or 2, or e.g. pl.Category1()")
    return known[category]


@dataclass(frozen=True, eq=False)
class BrakeTimes:
    """Instants of a stop [s]; infinite while not known.

    Args:
        command: when the controller has decided to stop.
        brake: when the brakes are commanded.
        off: when the torque of the drives is gone.
    """

    command: float
    brake: float
    off: float

    def engagement(self, train: Drivetrain) -> tuple[Array, Array]:
        """When each brake begins to act, and when it has its full torque, shape (nv,)."""
        begin = self.brake + train.delay
        return begin, begin + train.rise

    def breaks(self, train: Drivetrain) -> list[float]:
        """Instants at which a torque jumps or changes its slope."""
        instants = {self.off}
        begin, full = self.engagement(train)
        for instant in (begin, full):
            instants |= set(instant[train.has_brake].tolist())
        return sorted(instant for instant in instants if np.isfinite(instant))

    def ramp(self, train: Drivetrain, t: float) -> tuple[Array, Array]:
        """Part of the torque of each brake from ``t`` on, and its rate [1/s], shape (nv,)."""
        begin, full = self.engagement(train)
        if not np.isfinite(self.brake):
            return np.zeros(len(begin)), np.zeros(len(begin))
        rise = np.where(train.rise > 0, train.rise, 1.0)
        rising = (begin <= t) & (t < full)
        part = np.where(rising, (t - begin) / rise, np.where(full <= t, 1.0, 0.0))
        return part, np.where(rising, 1.0 / rise, 0.0)
