"""Finding what guessed brake data leave open: which they are, and what the stop may be instead.

A guess may be off by a factor, on all joints the same way; nine of ten are within their spread (see
`brakes.estimates`). Let ``w`` be the half widths of the spreads and ``s`` the derivatives of an
outcome by the guesses, in logarithms. Of all guesses as likely as the ends of a spread, the outcome
is largest, to first order, at ``w^2 s / |w s|``, and smallest opposite to that: nine tenths of the
outcomes are between. Only these two places come from the derivatives; stops are made there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...errors import PinloopError
from ..brakes.brakes import Brakes
from ..brakes.estimates import LEAST_HOLD, RAMPS, STATIC_TO_DYNAMIC, gear_of, spreads
from ..brakes.joint_brake import JointBrake
from .guesses import Band, Guesses
from .plan import Trigger
from .prepared_robot import payload_of
from .reference import RecordedPiece
from .result import StopResult
from .simulation import Standstill
from .stop import stop

_INPUTS = {"dynamic_torque": "brake_torque"}
"""Names of parameters among the inputs of a stop where they differ."""
_USUAL = {
    "dynamic_torque": -1.0, "delay": 0.2, "rise": 0.1, "rotor_inertia": 0.3,
    "deceleration": -1.0, "ramp_time": 1.0, "time_constant": 1.0,
}  # fmt: skip
"""Derivatives that are taken for those that a stop does not have: weak, late, heavy is longer."""
_PATIENCE = 20.0
"""How much longer a stop with other guesses may take."""
_SHORT = 1e-3
"""Shorter paths [m] and times [s] have no band."""


def find_guesses(result: StopResult) -> Guesses:
    """The guesses of a stop, with the band if the robot came to rest."""
    uncertain = _Uncertain(result)
    missing = tuple(uncertain.missing)
    if result.outcome != "stopped" or not uncertain.joints:
        return Guesses(tuple(uncertain.joints), missing)
    bands = {
        "stopping_time": uncertain.band("stopping_time", lambda other: other.stopping_time),
        "path": uncertain.band("path", lambda other: other.point().length),
    }
    return Guesses(tuple(uncertain.joints), missing, **bands)


@dataclass(frozen=True, eq=False)
class _Uncertain:
    """A stop whose brake data are guesses; ``known``: stops at other places, by the place."""

    result: StopResult
    known: dict[tuple[float, ...], StopResult | None] = field(default_factory=dict)

    @cached_property
    def joints(self) -> dict[str, list[str]]:
        """Joints by parameters that are guesses and count, in the order of the brakes file."""
        joints: dict[str, list[str]] = {}
        brakes, category = self.result.brakes, self.result.category
        chosen = {} if category.law is None else category.law.own  # no guesses: they were asked for
        for row in self.result.assumptions:
            if row.source != "guess" or not row.value or row.parameter not in self._spreads:
                continue
            if row.parameter in chosen:
                continue
            if brakes.joints[row.joint].kind == "friction":
                joints.setdefault(row.parameter, []).append(row.joint)
        return {x: on for x, on in joints.items() if category.controlled or x not in RAMPS}

    @cached_property
    def missing(self) -> list[str]:
        """Joints with a motor whose rotor nobody knows."""
        brakes = self.result.brakes.joints
        return [
            row.joint
            for row in self.result.assumptions
            if row.parameter == "rotor_inertia" and row.source == "guess" and not row.value
            if brakes[row.joint].has_motor
        ]

    @cached_property
    def _spreads(self) -> Mapping[str, Band]:
        robot = self.result.history.train.robot
        return spreads(gear_of(pin.computeTotalMass(robot.model), sliding=False))

    @cached_property
    def _width(self) -> Array:
        """Half the width of the spread of each guess, in logarithms."""
        return np.array([math.log(self._spreads[name][1]) for name in self.joints])

    @cached_property
    def _slopes(self) -> dict[str, Array]:
        """Derivatives of the logarithms of outcomes by those of guesses."""
        outputs = ("stopping_time", "path")
        inputs = {name: self._inputs(name, joints) for name, joints in self.joints.items()}
        every = [name for names in inputs.values() for name in names]
        usual = np.array([_USUAL[name] for name in self.joints])
        try:
            found = self.result.sensitivity(outputs, every)
        except PinloopError:
            return dict.fromkeys(outputs, usual)
        values = np.where(found.output_values > 0.0, found.output_values, np.nan)
        parts = found.matrix * found.input_values / values[:, None]
        slopes = {}
        for output, row in zip(outputs, parts, strict=True):
            by = dict(zip(every, row.tolist(), strict=True))
            sums = np.array([sum(by[name] for name in names) for names in inputs.values()])
            slopes[output] = np.where(np.isfinite(sums), sums, usual)
        return slopes

    def _inputs(self, name: str, joints: list[str]) -> list[str]:
        """What a stop depends on by a guess: one input for all joints, if all are guesses."""
        given = [n for n, brake in self.result.brakes.joints.items() if getattr(brake, name)]
        own = _INPUTS.get(name, name)
        return [own] if set(given) == set(joints) else [f"{own}:{joint}" for joint in joints]

    def band(self, output: str, measure: Callable[[StopResult], float]) -> Band | None:
        """The smallest and the largest value of an outcome; None if there is no band."""
        value = measure(self.result)
        pull = self._width * self._slopes[output]
        if value < _SHORT or not pull.any():
            return None
        place = self._width * pull / np.linalg.norm(pull)
        ends = [self._stop_at(sign * place) for sign in (-1.0, 1.0)]
        values = [math.inf if end is None else measure(end) for end in ends]
        return min(values[0], value), max(values[1], value)

    def _stop_at(self, place: Array) -> StopResult | None:
        """The stop with other guesses, by the logarithms of factors; None if it does not hold."""
        key = tuple(np.round(place, 2).tolist())
        if key not in self.known:
            factors = dict(zip(self.joints, np.exp(place).tolist(), strict=True))
            try:
                other = stop_again(self.result, self._changed(factors))
            except PinloopError:
                other = None
            self.known[key] = other if other is not None and other.holds else None
        return self.known[key]

    def _changed(self, factors: Mapping[str, float]) -> Brakes:
        """The brakes with other guesses."""
        brakes = self.result.brakes
        changed = dict(brakes.joints)
        for name, factor in factors.items():
            for joint in self.joints[name]:
                changed[joint] = self._scaled(changed[joint], joint, name, factor)
        return replace(brakes, joints=changed)

    def _scaled(self, brake: JointBrake, joint: str, name: str, factor: float) -> JointBrake:
        if name == "dynamic_torque":
            # Nobody builds in brakes that hardly hold the arm.
            load = abs(self.result.joints[joint].load) / brake.gear_ratio
            load = load if brake.side == "motor" else load * brake.gear_ratio
            least = LEAST_HOLD * load / STATIC_TO_DYNAMIC / brake.dynamic_torque
            factor = max(factor, min(least, 1.0))
            static = None if brake.static_torque is None else factor * brake.static_torque
            torque = factor * brake.dynamic_torque
            return replace(brake, dynamic_torque=torque, static_torque=static)
        value = getattr(brake, name)
        return brake if value is None else replace(brake, **{name: factor * value})


def stop_again(result: StopResult, brakes: Brakes) -> StopResult:
    """The same stop with other brakes."""
    history = result.history
    robot, first = history.train.robot, history.plan.reference.pieces[0]
    chain = {name: getattr(result.chain, name) for name in ("sensor", "controller", "drive_off")}
    moving, gravity = isinstance(first, RecordedPiece), result.robot.gravity
    motion, at = (first.motion, first.signal) if isinstance(first, RecordedPiece) else (None, 0.0)
    return stop(
        robot,
        None if moving else result.run.q[0],
        None if moving else result.run.v[0],
        brakes=brakes,
        category=result.category,
        payload=payload_of(robot, result.robot),
        trigger=Trigger(motion, at, **chain),
        gravity=None if np.array_equal(gravity, robot.gravity) else gravity,
        until=_PATIENCE * float(result.run.t[-1]),
        method=history.method,
        standstill=Standstill(history.slow),
        limits="end stop" if history.ends else "warn",
    )
