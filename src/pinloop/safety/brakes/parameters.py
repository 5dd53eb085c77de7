"""What each number of a brake file means: unit, range, default, what leaving it out means.

The one list of parameters; files, schema, documentation and checks are made from it. Knows neither
files nor robots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

from ...errors import BadValue

__all__ = ["CHAIN_PARAMETERS", "JOINT_PARAMETERS", "FrozenTable", "Parameter", "Value", "quantity"]

Value = float | str | None
"""A number, a word, or nothing."""

Item = TypeVar("Item")


class FrozenTable(Mapping[str, Item], Generic[Item]):
    """A mapping from names that cannot be changed; it can be hashed and pickled."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, Item]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


_KINDS = ("friction", "tooth", "none")


@dataclass(frozen=True)
class Parameter:
    """One parameter.

    Args:
        meaning: what it is, one sentence.
        default: its value where it is not given.
        unit: unit on a joint that turns.
        sliding: unit on a joint that slides, where it is another one.
        where: where it is measured: at the joint, at the motor, or on the side of the brake.
        words: the words that it may be, if it is no number.
        least: smallest value allowed.
        above: all values allowed are larger.
        most: largest value allowed.
        below: all values allowed are smaller.
        otherwise: what None means; empty if it must be a number.
        kinds: kinds of brakes that it has an effect with.
    """

    meaning: str
    default: Value
    unit: str = ""
    sliding: str = ""
    where: Literal["joint", "motor", "brake"] = "joint"
    words: tuple[str, ...] = ()
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    otherwise: str = ""
    kinds: tuple[str, ...] = _KINDS

    def unit_at(self, *, sliding: bool, side: str) -> str:
        """Unit on a joint that slides or turns and whose brake is on ``side``."""
        at_joint = self.where == "joint" or (self.where == "brake" and side == "joint")
        return self.sliding if sliding and at_joint and self.sliding else self.unit

    @property
    def range(self) -> str:
        """The values allowed, in words; empty for any number."""
        if self.words:
            return " or ".join(self.words)
        bounds = (
            (self.least, "at least {:g}"),
            (self.above, "above {:g}"),
            (self.most, "at most {:g}"),
            (self.below, "below {:g}"),
        )
        limits = [text.format(bound) for bound, text in bounds if bound is not None]
        return " and ".join(limits)

    def allows(self, value: Value) -> bool:
        """Whether ``value``, which `plain` returned, is in the range."""
        if value is None:
            return bool(self.otherwise)
        if isinstance(value, str):
            return value in self.words
        return (
            not self.words
            and math.isfinite(value)
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def plain(self, value: object) -> Value:
        """``value`` as a float, a text or None.

        Raises:
            BadValue: it is none of them.
        """
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            try:
                return float(value)
            except (OverflowError, TypeError):
                pass
        raise BadValue(f"{value!r} is neither a number nor a text")


JOINT_PARAMETERS: FrozenTable[Parameter] = FrozenTable(
    {
        "kind": Parameter(
            "what stops the joint: a friction brake; a tooth or pin that engages in a gap; none",
            "friction",
            words=_KINDS,
        ),
        "side": Parameter(
            "where the brake acts: on the motor shaft or directly on the joint",
            "motor",
            words=("motor", "joint"),
            kinds=("friction",),
        ),
        "gear_ratio": Parameter(
            "motor turns per joint turn (on a sliding joint: motor angle per joint travel)",
            1.0,
            unit="",
            sliding="rad/m",
            above=0.0,
        ),
        "efficiency": Parameter(
            "efficiency of the gear; the loss follows the direction of power",
            1.0,
            above=0.0,
            most=1.0,
        ),
        "rotor_inertia": Parameter(
            "inertia of rotor, brake disc and gear, motor side",
            None,
            unit="kg m^2",
            where="motor",
            least=0.0,
            otherwise="the armature that the robot's file gives",
        ),
        "dynamic_torque": Parameter(
            "torque of the brake while it slides, on the side of the brake",
            0.0,
            unit="N m",
            sliding="N",
            where="brake",
            least=0.0,
            kinds=("friction",),
        ),
        "static_torque": Parameter(
            "torque that the brake holds at standstill, on the side of the brake",
            None,
            unit="N m",
            sliding="N",
            where="brake",
            least=0.0,
            otherwise="as dynamic_torque",
            kinds=("friction",),
        ),
        "tolerance": Parameter(
            "half width of the band of both torques, as a fraction of them",
            0.0,
            least=0.0,
            below=1.0,
            kinds=("friction",),
        ),
        "band": Parameter(
            "where in the band this brake is: -1 low end, 0 nominal, +1 high end",
            0.0,
            least=-1.0,
            most=1.0,
            kinds=("friction",),
        ),
        "delay": Parameter(
            "time from the command to the first torque of the brake",
            0.0,
            unit="s",
            least=0.0,
            kinds=("friction", "tooth"),
        ),
        "rise": Parameter(
            "time from the first to the full torque, which grows linearly",
            0.0,
            unit="s",
            least=0.0,
            kinds=("friction",),
        ),
        "coulomb": Parameter(
            "dry friction of gear and bearings while they slide, joint side",
            0.0,
            unit="N m",
            sliding="N",
            least=0.0,
        ),
        "breakaway": Parameter(
            "dry friction of gear and bearings at standstill (Stribeck), joint side",
            None,
            unit="N m",
            sliding="N",
            least=0.0,
            otherwise="as coulomb",
        ),
        "stribeck_speed": Parameter(
            "speed v_s over which breakaway falls to coulomb, as exp(-(v/v_s)^2), joint side",
            0.0,
            unit="rad/s",
            sliding="m/s",
            least=0.0,
        ),
        "viscous": Parameter(
            "viscous friction of gear and bearings, joint side",
            0.0,
            unit="N m s/rad",
            sliding="N s/m",
            least=0.0,
        ),
        "short_circuit": Parameter(
            "viscous torque of the motor when its terminals are shorted as the power goes, "
            "motor side",
            0.0,
            unit="N m s/rad",
            where="motor",
            least=0.0,
        ),
        "drive_torque": Parameter(
            "largest torque of the drive in a controlled stop (categories 1 and 2), motor side",
            None,
            unit="N m",
            where="motor",
            least=0.0,
            otherwise="not limited",
        ),
        "deceleration": Parameter(
            "deceleration of the joint in a controlled stop (categories 1 and 2), joint side",
            None,
            unit="rad/s^2",
            sliding="m/s^2",
            above=0.0,
            otherwise="unknown; categories 1 and 2 need it",
        ),
        "peak_gear_torque": Parameter(
            "torque that the gear may carry for a moment, joint side",
            None,
            unit="N m",
            sliding="N",
            above=0.0,
            otherwise="unknown",
        ),
        "pitch": Parameter(
            "tooth brake: distance of the teeth, joint side; 0: it engages at once",
            0.0,
            unit="rad",
            sliding="m",
            least=0.0,
            kinds=("tooth",),
        ),
        "tooth_offset": Parameter(
            "tooth brake: joint coordinate of one tooth",
            0.0,
            unit="rad",
            sliding="m",
            kinds=("tooth",),
        ),
        "impact_time": Parameter(
            "duration over which the impulse of an engagement is spread for its peak torque",
            1e-3,
            unit="s",
            above=0.0,
            kinds=("tooth",),
        ),
    }
)
"""Parameters of a joint, in the order of the file."""

CHAIN_PARAMETERS: FrozenTable[Parameter] = FrozenTable(
    {
        "sensor": Parameter("time of the sensor or button", 0.0, unit="s", least=0.0),
        "controller": Parameter(
            "time of the controller, until it commands brakes and power", 0.0, unit="s", least=0.0
        ),
        "drive_off": Parameter(
            "time from the command until the torque of the motors is gone", 0.0, unit="s", least=0.0
        ),
    }
)
"""Parameters of the chain from the signal to the command, in the order of the file."""


def quantity(value: Value, unit: str, parameter: Parameter) -> tuple[str, str]:
    """Value of a parameter and its unit, which is empty if there is none; times in ms."""
    if value is None:
        return parameter.otherwise, ""
    if isinstance(value, str):
        return value, ""
    if unit == "s":
        return f"{1e3 * value:g}", "ms"
    return f"{value:g}", unit
