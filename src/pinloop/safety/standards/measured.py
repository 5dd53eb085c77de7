"""One stop of one axis that somebody has published or measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...assembly.assemble import assemble, consistent_velocity
from ...assembly.search import outside_limits
from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue, PinloopError
from ...model.mechanism import Mechanism
from ...tables.number_format import units_of
from ..brakes.brakes import Brakes
from ..stopping import Payload, StopResult, stop
from ..stopping.categories import as_category
from ..stopping.safety_functions import SafetyFunction, function_by_name

NUMBERS = ("time", "angle", "power_off", "brakes_closed")
"""What a row may give of how a stop came out."""
_LEAST_SHAPE, _LARGEST_SHAPE = 0.05, 5.0
"""Shapes beyond these are mistakes rather than stops, see `Measured.doubt`."""
_SLIP = 10.0
"""Speeds so many times the limit of a joint are mistakes of units."""
_OWN = ("q", "v", "trigger", "brakes", "payload", "category")
"""Arguments of `stop` that a row gives."""


@public
@dataclass(frozen=True)
class Measured:
    """One stop of one axis, the others at rest. Sliding joints: m for rad.

    Args:
        joint: the axis.
        speed: its speed at the signal, signed [rad/s].
        time: stopping time from the signal [s]; None if not given.
        angle: stopping angle from the signal, as a size [rad]; None if not given.
        pose: coordinates of joints at the signal [rad]; the others are at zero.
        payload: a point at the tool [kg].
        category: of the stop: 0, 1, 2, or a safety function; "SS1-t" needs the power_off.
        units: per joint "rad" or "m" where it is known what its numbers are; compared with the
            robot.
        place: where this stop stands, e.g. "table.csv:3".
        power_off: from the signal until the torque of the drives is gone [s]; None if not given.
        brakes_closed: from the signal until all brakes have their full torque [s]; likewise.
        rounding: half the unit of the last digit, in SI units, per number that is given: "time",
            "angle", "power_off", "brakes_closed"; a file tells it by its digits.
        weight: how much the stop counts in a fit, beside others with 1: as a mean of so many stops.
    """

    joint: str
    speed: float
    time: float | None
    angle: float | None
    pose: Mapping[str, float] = field(default_factory=dict)
    payload: float = 0.0
    category: int | str = 0
    units: Mapping[str, str] = field(default_factory=dict)
    place: str = field(default="", compare=False)
    power_off: float | None = None
    brakes_closed: float | None = None
    rounding: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0

    def __post_init__(self) -> None:
        of = f"of a stop of '{self.joint}'"
        if not (math.isfinite(self.speed) and self.speed != 0.0):
            raise BadValue(f"the speed {of} is {self.speed}; it must be a number other than 0")
        for name, value in self.given.items():
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise BadValue(f"the {name} {of} is {value}; it is a size and must be above 0")
        for name, half in self.rounding.items():
            if name not in NUMBERS or not 0.0 <= half < math.inf:
                raise BadValue(
                    f"the rounding {of} has {name}: {half}; give sizes for {', '.join(NUMBERS)}"
                )
        if not 0.0 < self.weight < math.inf:
            raise BadValue(f"the weight {of} is {self.weight}; it must be above 0")
        if not (math.isfinite(self.payload) and self.payload >= 0.0):
            raise BadValue(f"the payload {of} is {self.payload} kg; it must be 0 or more")
        if self.function is None and self.category not in (0, 1, 2):
            raise BadValue(
                f"the category {of} is {self.category}; it must be 0, 1 or 2, or the name of a "
                "safety function such as SS1-r"
            )
        if self.function is SafetyFunction.SS1_T and self.power_off is None:
            raise BadValue(f"the power_off {of} is not known, by which SS1-t is timed; give it")

    @property
    def function(self) -> SafetyFunction | None:
        """Safety function that the category is named by."""
        return function_by_name(self.category) if isinstance(self.category, str) else None

    @property
    def number(self) -> int:
        """Number of the category."""
        return as_category(self.category, time_limit=self._limit(0.0)).number

    def _limit(self, reaction: float) -> float | None:
        """Time limit of the stop, with the time that the chain takes beside it [s]."""
        if self.function is not SafetyFunction.SS1_T or self.power_off is None:
            return None
        return self.power_off - reaction

    @property
    def given(self) -> dict[str, float]:
        """The numbers that are given."""
        return {name: x for name in NUMBERS if (x := getattr(self, name)) is not None}

    @property
    def rounded(self) -> Array:
        """Standard deviations of the logarithms of ``given`` by rounding: even within an interval.

        Zero where the rounding is not known.
        """
        halves = [self.rounding.get(name, 0.0) / value for name, value in self.given.items()]
        return np.array(halves) / math.sqrt(3.0)

    @property
    def numbers(self) -> int:
        """How many of time, angle, and instants of power and brakes are given."""
        return len(self.given)

    @property
    def shape(self) -> float | None:
        """Measured ``d / (v0 t)``: at least 1/2 for a delay and a constant deceleration."""
        if self.time is None or self.angle is None:
            return None
        return self.angle / (abs(self.speed) * self.time)

    @property
    def doubt(self) -> str:
        """What is hardly possible about its numbers, as where a unit is wrong; else empty."""
        if self.shape is None or _LEAST_SHAPE <= self.shape <= _LARGEST_SHAPE:
            return ""
        return (
            f"joint '{self.joint}' goes {self.shape:.3g} times as far as it would at the speed of "
            "the signal in the whole time; are the units right? Else leave out its time or angle"
        )

    @property
    def likely_time(self) -> float:
        """Time that the stop takes, about, if it is not given [s]."""
        if self.time is None and self.angle is not None:
            return 2.0 * self.angle / abs(self.speed)
        assert self.given, "a row without numbers is not fitted"
        return next(iter(self.given.values()))

    def errors(self, result: StopResult) -> Array:
        """Logarithms of computed over measured numbers; infinite if the axis moves on."""
        joint = result.joints[self.joint]
        computed = {
            "time": joint.time,
            "angle": abs(joint.angle),
            "power_off": result.power_off or 0.0,
            "brakes_closed": result.brakes_closed or 0.0,
        }
        ratios = [computed[name] / given for name, given in self.given.items()]
        if joint.state == "moving" or min(ratios, default=1.0) <= 0.0:
            return np.full(len(ratios), np.inf)
        return np.asarray(np.log(ratios))

    def check(self, robot: Mechanism) -> None:
        """Check that a robot has these joints, and with these units, and that numbers are possible.

        Raises:
            UnknownName: the robot has no such joint.
            BadValue: the joint has several degrees of freedom, or slides where it should turn; or
                there is a `doubt`.
        """
        for name in (self.joint, *self.pose):
            dof = robot.coordinates(name).nv
            if dof != 1:
                raise BadValue(f"joint '{name}' has {dof} degrees of freedom; an axis has one")
            given, si = self.units.get(name), units_of(robot, name).si
            if given not in (None, si):
                does = "slides" if si == "m" else "turns"
                raise BadValue(
                    f"joint '{name}' {does}, but its numbers are given in {given} and its like; "
                    f"give them in {si} and its like"
                )
        require_possible_speeds(robot, {self.joint: self.speed})
        if self.doubt:
            raise BadValue(self.doubt)

    def state(self, robot: Mechanism, brakes: Brakes) -> tuple[Array, Array]:
        """Configuration and velocity at the signal; joints with brakes but its own are at rest.

        Raises:
            PinloopError: see `check`; or loops do not close in this pose, or it has no brake.
        """
        self.check(robot)
        if self.joint not in brakes.joints:
            raise BadValue(
                f"the brakes have no entry for joint '{self.joint}'; they have "
                f"{', '.join(brakes.joints) or 'none at all'}"
            )
        q, v = robot.configuration(dict(self.pose)), robot.velocity({self.joint: self.speed})
        for name, *values, _ in outside_limits(robot, q, self.pose):
            units = units_of(robot, name)
            at, low, high = (f"{units.factor * value:.5g}" for value in values)
            raise BadValue(
                f"the pose has joint '{name}' at {at} {units.shown}, outside its limits, {low} to "
                f"{high} {units.shown}"
            )
        if robot.loops or robot.couplings:
            q = assemble(robot, fixed=dict(self.pose))
            v = consistent_velocity(
                robot, q, dict.fromkeys(brakes.joints, 0.0) | {self.joint: self.speed}
            )
        return q, v

    def stop(self, robot: Mechanism, brakes: Brakes, **arguments: Any) -> StopResult:
        """Make this stop; ``arguments`` are all else that `stop` takes."""
        for name in _OWN:
            if name in arguments:
                raise BadValue(f"'{name}' is given by each row of the table; leave it out")
        q, v = self.state(robot, brakes)
        load = Payload(self.payload) if self.payload else None
        limit = self._limit(brakes.chain.command + brakes.chain.drive_off)
        category = as_category(self.category, time_limit=limit)
        return stop(robot, q, v, brakes=brakes, payload=load, category=category, **arguments)

    def attempt(
        self, robot: Mechanism, brakes: Brakes, **arguments: Any
    ) -> StopResult | PinloopError:
        """As `stop`, but return the error of a stop that fails."""
        try:
            return self.stop(robot, brakes, **arguments)
        except PinloopError as error:
            return error


def require_possible_speeds(robot: Mechanism, speeds: Mapping[str, float]) -> None:
    """Refuse speeds at the signal that are far above the limits of joints, as in other units."""
    for name, speed in speeds.items():
        limit = robot.model.upperVelocityLimit[robot.coordinates(name).v.start]
        if 0.0 < _SLIP * limit < abs(speed):
            si = units_of(robot, name).si
            raise BadValue(
                f"joint '{name}' moves at {abs(speed):.4g} {si}/s at the signal, "
                f"{abs(speed) / limit:.3g} times its velocity limit; are the units right?"
            )
