"""Which numbers of a stop's brakes are uncertain, and the stop with others instead.

Guesses may be off by a factor, on all joints the same way (see `brakes.estimates`); a number with a
spread varies by that, together with those that it is correlated with; a torque without one is
anywhere in its tolerance, and may have lost what wear takes. What follows of that is in `bands`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array
from ...errors import PinloopError
from ...model.mechanism import Mechanism
from ..brakes.brakes import Brakes
from ..brakes.estimates import LEAST_HOLD, NINE_OF_TEN, RAMPS, STATIC_TO_DYNAMIC, gear_of, spreads
from ..brakes.joint_brake import Chain, JointBrake
from ..brakes.uncertainty import ParameterDistribution, correlation_matrix
from .categories import Category
from .inputs import TORQUE, brake_number, trigger_of
from .intervals import Guesses
from .prepared_robot import payload_of
from .result import StopResult
from .standstill import Standstill
from .stop import stop

_INPUTS = {"dynamic_torque": TORQUE}
"""Names of parameters among the inputs of a stop where they differ."""
_PATIENCE = 20.0
"""How much longer a stop with other numbers may take."""


def find_guesses(robot: Mechanism, brakes: Brakes, category: Category) -> Guesses:
    """The guesses on which all stops of a robot in a category rest, whatever comes out."""
    missing = (
        row.joint
        for row in brakes.assumptions(robot)
        if row.parameter == "rotor_inertia" and row.source == "guess" and not row.value
        if brakes.joints[row.joint].has_motor
    )
    return Guesses(tuple(_guessed(robot, brakes, category)), tuple(missing))


def _guessed(robot: Mechanism, brakes: Brakes, category: Category) -> dict[str, list[str]]:
    """Joints by parameters that are guesses and count, in the order of the brakes file."""
    joints: dict[str, list[str]] = {}
    chosen = {} if category.law is None else category.law.own  # no guesses: they were asked for
    factors = _guess_factors(robot)
    for row in brakes.assumptions(robot):
        if row.source != "guess" or not row.value or row.parameter not in factors:
            continue
        brake = brakes.joints[row.joint]
        if row.parameter in chosen or row.parameter in brake.spreads:
            continue
        if brake.kind == "friction":
            joints.setdefault(row.parameter, []).append(row.joint)
    return {x: on for x, on in joints.items() if category.controlled or x not in RAMPS}


def _guess_factors(robot: Mechanism) -> Mapping[str, tuple[float, float]]:
    """Ends of guesses, as parts of them, per parameter."""
    return spreads(gear_of(pin.computeTotalMass(robot.model), sliding=False))


@dataclass(frozen=True, eq=False)
class UncertainBrakes:
    """A stop whose brake data are uncertain; ``known``: stops that have been made, by deviations.

    Deviations are those of ``distributions``, in their standard deviations.
    """

    result: StopResult
    known: dict[tuple[float, ...], StopResult | None] = field(default_factory=dict)

    @cached_property
    def guessed(self) -> dict[str, list[str]]:
        """Joints by parameters that are guesses and count."""
        return _guessed(self._robot, self.result.brakes, self.result.category)

    @property
    def _robot(self) -> Mechanism:
        """The robot with all its rotors."""
        return self.result.history.train.robot

    @cached_property
    def _factors(self) -> Mapping[str, tuple[float, float]]:
        return _guess_factors(self._robot)

    # -- distributions ----------------------------------------------------------------------

    @cached_property
    def distributions(self) -> tuple[ParameterDistribution, ...]:
        """What is uncertain: first what has a spread, in the order of ``Brakes.spreads``."""
        brakes = self.result.brakes
        return (
            *(self._with_spread(name, spread) for name, spread in self._spreads.items()),
            *(
                ParameterDistribution(
                    name, tuple(joints), "lognormal", 1.0, 1.0,
                    math.log(self._factors[name][1]) / NINE_OF_TEN, "guess",
                )
                for name, joints in self.guessed.items()
            ),
            *(x for name, brake in brakes.joints.items() for x in _evenly(name, brake)),
        )  # fmt: skip

    @cached_property
    def _spreads(self) -> dict[str, float]:
        """Standard deviations that count in this stop, by numbers such as ``delay:joint_1``."""
        chosen = {} if self.result.category.law is None else self.result.category.law.own
        return {
            name: spread
            for name, spread in self.result.brakes.spreads.items()
            if name.partition(":")[0] not in chosen and self._counts(*name.partition(":")[::2])
        }

    def _counts(self, parameter: str, joint: str) -> bool:
        """Whether a number with a spread is one of this stop."""
        brakes, chain = self.result.brakes, self.result.chain
        if not joint:  # a trigger may have times of its own
            return bool(getattr(chain, parameter) == getattr(brakes.chain, parameter))
        return brake_number(brakes.joints[joint], parameter) is not None

    def _with_spread(self, name: str, spread: float) -> ParameterDistribution:
        parameter, _, joint = name.partition(":")
        if not joint:
            value = float(getattr(self.result.chain, parameter))
            return ParameterDistribution(
                parameter, (), "normal", value, value, spread, "spread", relative=False
            )
        value = brake_number(self.result.brakes.joints[joint], parameter) or 0.0
        relative = parameter == "dynamic_torque" and value > 0.0
        unit = value if relative else 1.0
        return ParameterDistribution(
            parameter, (joint,), "normal", value / unit, value / unit, spread / unit, "spread",
            relative,
        )  # fmt: skip

    @cached_property
    def correlations(self) -> Array:
        """Correlations of the distributions, shape (k, k)."""
        names = list(self._spreads)
        pairs = [x for x in self.result.brakes.correlations if set(x.between) <= set(names)]
        matrix = np.eye(len(self.distributions))
        matrix[: len(names), : len(names)] = correlation_matrix(names, pairs)
        return matrix

    def inputs(self, distribution: ParameterDistribution) -> list[str]:
        """What a stop depends on by a distribution: one input for all joints if they are all."""
        name, joints = distribution.parameter, distribution.joints
        own = _INPUTS.get(name, name)
        if not joints:
            return [own]
        given = [n for n, brake in self.result.brakes.joints.items() if getattr(brake, name, 1.0)]
        return [own] if len(joints) > 1 and set(given) == set(joints) else [
            f"{own}:{joint}" for joint in joints
        ]  # fmt: skip

    # -- other stops ------------------------------------------------------------------------

    def stop_at(self, deviations: Array) -> StopResult | None:
        """The stop with other numbers; None if it does not come to rest and hold."""
        key = tuple(np.round(deviations, 3).tolist())
        if key not in self.known:
            try:
                other = stop_again(self.result, *self._changed(deviations))
            except PinloopError:
                other = None
            self.known[key] = other if other is not None and other.holds else None
        return self.known[key]

    def _changed(self, deviations: Array) -> tuple[Brakes, Chain]:
        """Brakes and chain with other numbers."""
        result = self.result
        changed, chain = dict(result.brakes.joints), result.chain
        for each, deviation in zip(self.distributions, deviations.tolist(), strict=True):
            value = each.value_at(deviation)
            if not each.joints:
                own: Any = {each.parameter: value}
                chain = replace(chain, **own)
            for joint in each.joints:
                changed[joint] = self._scaled(changed[joint], joint, each, value)
        return replace(result.brakes, joints=changed), chain

    def _scaled(
        self, brake: JointBrake, joint: str, each: ParameterDistribution, value: float
    ) -> JointBrake:
        """A brake with another number, or with a number times a factor."""
        name = each.parameter
        if name in ("dynamic_torque", TORQUE) and each.relative:
            factor = value
            if each.source == "guess":
                # Nobody builds in brakes that hardly hold the arm.
                load = abs(self.result.joints[joint].load) / brake.gear_ratio
                load = load if brake.side == "motor" else load * brake.gear_ratio
                least = LEAST_HOLD * load / STATIC_TO_DYNAMIC / brake.dynamic_torque
                factor = max(factor, min(least, 1.0))
            static = None if brake.static_torque is None else factor * brake.static_torque
            torque = factor * brake.dynamic_torque
            return replace(brake, dynamic_torque=torque, static_torque=static)
        if not each.relative:
            value = max(value, brake.dynamic_torque) if name == "static_torque" else value
        elif getattr(brake, name) is not None:
            value *= getattr(brake, name)
        else:
            return brake
        other: Any = {name: value}
        return replace(brake, **other)


def _evenly(joint: str, brake: JointBrake) -> Sequence[ParameterDistribution]:
    """What is anywhere between two ends: the torque of a brake that nobody has measured."""
    even = []
    if brake.kind != "friction" or brake.static == 0.0:
        return ()
    if brake.tolerance and brake.band == 0.0 and "dynamic_torque" not in brake.spreads:
        width = brake.tolerance
        even.append(_torque(joint, 1.0, width, "tolerance"))
    if brake.wear:
        even.append(_torque(joint, 1.0 - 0.5 * brake.wear, 0.5 * brake.wear, "wear"))
    return even


def _torque(joint: str, center: float, width: float, source: str) -> ParameterDistribution:
    """Both torques of a brake, anywhere within half a width of a center."""
    spread = width / math.sqrt(3.0)
    return ParameterDistribution(TORQUE, (joint,), "uniform", 1.0, center, spread, source)


def stop_again(result: StopResult, brakes: Brakes, chain: Chain | None = None) -> StopResult:
    """The same stop with other brakes, and times of the signal chain."""
    history, times = result.history, result.chain if chain is None else chain
    robot, gravity, trigger = history.train.robot, result.robot.gravity, trigger_of(history, times)
    given = trigger.motion is None
    return stop(
        robot,
        result.run.q[0] if given else None,
        result.run.v[0] if given else None,
        brakes=brakes,
        category=result.category,
        payload=payload_of(robot, result.robot),
        trigger=trigger,
        gravity=None if np.array_equal(gravity, robot.gravity) else gravity,
        until=_PATIENCE * float(result.run.t[-1]),
        method=history.method,
        standstill=Standstill(history.slow),
        limits="end stop" if history.ends else "warn",
    )
