"""How what drives follow changes with the inputs of a stop: by differences of plans.

Laws by which drives stop are of many kinds, and may be anyone's; on a path they are stretched to
the slowest joint. Plans are cheap, and smooth in what they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...boundary.marks import Array
from ...errors import BadValue
from ...tolerances import INPUT_STEP
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import CHAIN_PARAMETERS
from .history import StopHistory
from .inputs import OF_PLAN, StopInput, brake_number, recorded_motion, trigger_of
from .plan import Plan, make_plan
from .reference import EvenPiece, Piece, Reference, ramp_ends
from .stop_equations import StopEquations


class _Variant(NamedTuple):
    """A plan with an input changed; the sum of all with their weights is the derivative."""

    weight: float
    plan: Plan


class PlanChanges:
    """Changes of what drives follow with k inputs.

    Args:
        history: the stop.
        equations: its equations of motion.
        inputs: the inputs.
        initial: changes of position and velocity at the signal, shape (2 nv, k).

    Attributes:
        ramp_end: changes of the times at which ramps of drives end, shape (k, nv).
        known: whether plans tell how long drives take: on their path, drives of limited torque
            take as long as a trial has found.
    """

    def __init__(
        self,
        history: StopHistory,
        equations: StopEquations,
        inputs: Sequence[StopInput],
        initial: Array,
    ) -> None:
        self._history, self._equations, self._initial = history, equations, initial
        self._plan, self._driven_by_motion = history.plan, recorded_motion(history) is not None
        self.known = self._plan.longest == 0.0
        if not self.known:
            self.known = self._changed(None, 0, 0.0).duration == self._plan.duration
        self._variants = [self._variants_of(of, k) for k, of in enumerate(inputs)]
        self.ramp_end = self._sum(lambda plan: ramp_ends(plan.reference))

    def references(self, piece: Piece, t: float) -> tuple[Array, Array]:
        """Changes of velocity and acceleration of the drives on a piece, shape (k, nv) each."""
        reference = self._plan.reference
        at = reference.pieces.index(piece)
        if at == 0 and isinstance(piece, EvenPiece):
            speeds = np.where(reference.follows, self._initial[len(reference.follows) :].T, 0.0)
            return speeds, np.zeros_like(speeds)
        middle = _inside(reference, at)

        def values(plan: Plan) -> Array:
            own = plan.reference.at(middle)
            return np.array([own.v(t), own.a(t)])

        speeds, rates = self._sum(values).swapaxes(0, 1)
        return speeds, rates

    def _sum(self, value: Callable[[Plan], Array]) -> Array:
        """Derivatives of an array by the inputs, shape (k, ...)."""
        sums = np.zeros((len(self._variants), *value(self._plan).shape))
        for own, variants in zip(sums, self._variants, strict=True):
            for variant in variants:
                there = value(variant.plan)
                at = np.isfinite(there)
                own[at] += variant.weight * there[at]
        return sums

    def _variants_of(self, of: StopInput, k: int) -> list[_Variant]:
        """Plans with an input larger and smaller; on one side only at the end of its range."""
        if of.quantity not in OF_PLAN or not (
            self._plan.category.controlled or self._driven_by_motion
        ):
            return []
        h = INPUT_STEP * (abs(of.value) or 1.0)
        for stencil in _STENCILS:
            try:
                return [
                    _Variant(weight / h, self._changed(of, k, times * h))
                    for times, weight in stencil
                ]
            except BadValue:
                continue
        raise BadValue(f"input '{of.name}' of the stop can neither be larger nor smaller")

    def _changed(self, of: StopInput | None, k: int, step: float) -> Plan:
        """The plan with an input changed."""
        history, quantity = self._history, "" if of is None else of.quantity
        trigger = trigger_of(history, history.plan.chain)
        if quantity in CHAIN_PARAMETERS or quantity == "instant":
            field = "at" if quantity == "instant" else quantity
            part: dict[str, Any] = {field: getattr(trigger, field) + step}
            trigger = replace(trigger, **part)
        q0, v0, brakes = history.run.q[0], history.run.v[0], history.train.brakes
        if quantity == "speed":
            v0 = v0 + step * self._initial[len(v0) :, k]
        elif of is not None and quantity not in ("instant", *CHAIN_PARAMETERS):
            brakes = _other_drives(brakes, of, step)
        return make_plan(self._equations.equations, brakes, trigger, history.plan.category, q0, v0)


_STENCILS = (
    ((1.0, 0.5), (-1.0, -0.5)),
    ((0.0, -1.5), (1.0, 2.0), (2.0, -0.5)),
    ((0.0, 1.5), (-1.0, -2.0), (-2.0, 0.5)),
)
"""Steps and weights of a first derivative: by central differences, else to one side."""


def _other_drives(brakes: Brakes, of: StopInput, step: float) -> Brakes:
    """The brakes with a number of a drive changed, or those of all by the same part."""
    changed = {}
    for joint in [of.joint] if of.joint else brakes.joints:
        brake = brakes.joints.get(joint)
        if brake is None or (value := brake_number(brake, of.quantity)) is None:
            continue
        number = value + step if of.joint else value * (1.0 + step)
        part: dict[str, Any] = {of.quantity: number}
        changed[joint] = replace(brake, **part)
    return replace(brakes, joints={**brakes.joints, **changed})


def _inside(reference: Reference, at: int) -> float:
    """A time well inside a piece of a reference."""
    starts = (*reference.starts, np.inf)
    first, last = starts[at], starts[at + 1]
    return 0.5 * (first + last) if np.isfinite(last) else first + 1.0
