"""What a stop depends on, number by number: names, values, and how they change all that acts.

A name is a quantity, or a quantity of a joint: "payload", "speed:joint_1", "delay:joint_2",
"sensor". A quantity that joints have, without a joint, is that of all of them together, by the same
part: it counts from 1. Laws of brakes, gears and drives are differentiated where they stand; what
makes their numbers from those of the brakes file is linear or nearly so, and told by differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...boundary.arguments import require_kind
from ...boundary.marks import Array
from ...dynamics.derivatives import joint_chain
from ...dynamics.parameters import PointMass
from ...errors import BadValue, UnknownName
from ...model.moving_tree import MovingTree
from ...tolerances import FOLLOWED_JOINTS, INPUT_STEP, LEAST_SQUARES
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import CHAIN_PARAMETERS, JOINT_PARAMETERS, JointBrake
from .history import StopHistory
from .loads import SINKS, sink_torques
from .phase import Phase, pinned_bounds
from .plan import Plan, Trigger, make_plan
from .prepared_robot import Drivetrain, SlidingTorques, payload_of, tool_of
from .reference import Piece, RecordedPiece, Reference
from .stop_equations import Solved, StopEquations

_TORQUE = "brake_torque"
"""Both torques of a brake, by the same part."""
_OF_BRAKE = (
    *("dynamic_torque", "static_torque", "band", "delay", "rise", "coulomb", "breakaway"),
    *("stribeck_speed", "viscous", "short_circuit", "efficiency", "gear_ratio", "rotor_inertia"),
    *("drive_torque", "deceleration", "ramp_time", "jerk", "time_constant", "torque_share"),
)
"""Parameters of a joint in the brakes file that the motion depends on smoothly."""
_OF_RAMP = ("deceleration", "ramp_time", "jerk", "time_constant")
_OF_PLAN = ("speed", "instant", *_OF_RAMP, *CHAIN_PARAMETERS)
_OF_CONTROL = ("drive_torque", "torque_share", *_OF_RAMP)


@dataclass(frozen=True)
class StopInput:
    """A number that a stop depends on.

    Args:
        name: its name.
        quantity: what it is.
        joint: whose it is; empty for what belongs to none, or to all joints together.
        value: what it was; 1 for what belongs to all together.
        unit: its unit; empty for that.
    """

    name: str
    quantity: str
    joint: str
    value: float
    unit: str


class Variant(NamedTuple):
    """A stop with one of its inputs changed; the derivative is the sum of all with their weights.

    Args:
        weight: of this one [1/unit].
        step: by how much the input is larger.
        train: brakes, gears, friction, drives.
        plan: what the drives follow.
    """

    weight: float
    step: float
    train: Drivetrain
    plan: Plan


def stop_inputs(history: StopHistory, names: Iterable[str] | None = None) -> tuple[StopInput, ...]:
    """The inputs of a stop that are named; all that are not zero by default."""
    if names is not None:
        return tuple(_named(history, name) for name in distinct_names(names, "to"))
    every = [_named(history, name) for name in _all_names(history)]
    return tuple(each for each in every if each.value != 0.0)


def distinct_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """One name or several, each once."""
    chosen = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in chosen:
        require_kind(name, str, what, "give names such as 'delay:JOINT' or 'angle:JOINT'")
    return chosen


def _all_names(history: StopHistory) -> Iterator[str]:
    """Names of all inputs of a stop that may count."""
    brakes, controlled = history.train.brakes, history.plan.category.controlled
    if _motion(history) is None:
        followed = _followed(history)
        yield from (f"speed:{name}" for name in followed)
        yield from (f"pose:{name}" for name in followed)
    if payload_of(history.train.robot, history.robot) is not None:
        yield "payload"
    yield from CHAIN_PARAMETERS
    for name, brake in brakes.joints.items():
        for quantity in (_TORQUE, *_OF_BRAKE):
            torque = quantity in ("dynamic_torque", "static_torque")
            if torque or quantity == "gear_ratio" or (quantity in _OF_CONTROL and not controlled):
                continue  # the torques together are what counts; teeth can be counted
            if quantity in _OF_RAMP and history.run.v[0, history.train.columns[name]] == 0.0:
                continue
            if _number(history, brake, quantity) is not None:
                yield f"{quantity}:{name}"


def _named(history: StopHistory, name: str) -> StopInput:
    """An input by its name."""
    quantity, _, joint = name.partition(":")
    robot, brakes = history.train.robot, history.train.brakes
    load = payload_of(robot, history.robot)
    plain = {"payload": (0.0 if load is None else load.mass, "kg")}
    if (motion := _motion(history)) is not None:
        plain["instant"] = motion.signal, "s"
    plain |= {key: (getattr(history.plan.chain, key), "s") for key in CHAIN_PARAMETERS}
    if quantity in plain and not joint:
        return StopInput(name, quantity, "", float(plain[quantity][0]), plain[quantity][1])
    known = ("speed", "pose", _TORQUE, *_OF_BRAKE)
    if quantity not in known or (quantity == "pose" and not joint):
        raise UnknownName("input of a stop", name, [*plain, *(f"{k}:JOINT" for k in known)])
    if quantity in ("speed", "pose"):
        if motion is not None:
            raise BadValue(f"'{name}' follows from the motion of the trigger; give 'instant'")
        if not joint:
            return StopInput(name, quantity, "", 1.0, "")
        column = robot.coordinates(joint).v.start
        if robot.coordinates(joint).nv != 1:
            raise BadValue(f"'{name}': joint '{joint}' has several degrees of freedom")
        unit = "m" if robot.is_translation[column] else "rad"
        if quantity == "speed":
            return StopInput(name, quantity, joint, float(history.run.v[0, column]), f"{unit}/s")
        at = history.robot.coordinates(joint).q
        q = history.run.q[0, at]
        angle = float(q[0]) if len(q) == 1 else float(np.arctan2(q[1], q[0]))
        return StopInput(name, quantity, joint, angle, unit)
    if not joint:
        return StopInput(name, quantity, "", 1.0, "")
    if joint not in brakes.joints:
        raise UnknownName("brake of joint", joint, brakes.joints, brakes.robot)
    value = _number(history, brakes.joints[joint], quantity)
    if value is None:
        raise BadValue(f"the stop does not depend on '{name}': its joint has no such number")
    if quantity == _TORQUE:
        return StopInput(name, quantity, joint, 1.0, "")
    sliding = bool(robot.is_translation[robot.coordinates(joint).v.start])
    unit = JOINT_PARAMETERS[quantity].unit_at(sliding=sliding, side=brakes.joints[joint].side)
    return StopInput(name, quantity, joint, value, unit)


def _number(history: StopHistory, brake: JointBrake, quantity: str) -> float | None:
    """A number of a brake; None if it has none that a stop depends on smoothly."""
    if quantity == _TORQUE:
        return 1.0 if brake.kind == "friction" and brake.static > 0.0 else None
    if not brake.uses(quantity):
        return None
    if quantity == "efficiency" and brake.efficiency == 1.0:
        return None  # losses in one direction only
    value = brake.static if quantity == "static_torque" else getattr(brake, quantity)
    return None if value is None else float(value)


def _motion(history: StopHistory) -> RecordedPiece | None:
    """The recorded motion that the robot was on."""
    first = history.plan.reference.pieces[0]
    return first if isinstance(first, RecordedPiece) else None


def _followed(history: StopHistory) -> list[str]:
    """Joints whose drives lead the others, or that are free to move by themselves."""
    names, follows = history.train.names, history.plan.reference.follows
    return [names[k] for k in follows.nonzero()[0].tolist() if history.train.single[k]]


def _changed(brakes: Brakes, of: StopInput, step: float) -> Brakes:
    """The brakes with one of their inputs changed."""
    if of.quantity in CHAIN_PARAMETERS:
        chain = replace(brakes.chain, **{of.quantity: getattr(brakes.chain, of.quantity) + step})
        return replace(brakes, chain=chain)
    joints = [of.joint] if of.joint else list(brakes.joints)
    changed = {}
    for joint in joints:
        brake = brakes.joints[joint]
        if of.quantity == _TORQUE:
            names = [key for key in ("dynamic_torque", "static_torque") if getattr(brake, key)]
            part = {key: getattr(brake, key) * (1.0 + step) for key in names}
        else:
            value = brake.static if of.quantity == "static_torque" else None
            value = getattr(brake, of.quantity) if value is None else value
            if value is None:
                continue
            part = {of.quantity: value + step if of.joint else value * (1.0 + step)}
        changed[joint] = replace(brake, **part)
    return replace(brakes, joints={**brakes.joints, **changed})


class InputChanges:
    """How all that acts in a stop changes with its inputs, k of them.

    Attributes:
        inputs: the inputs.
        initial: changes of position and velocity at the signal, shape (2 nv, k).
        command: of the time of the command [s/unit], shape (k,).
        drive_off: of the time from the command until the drives are off, shape (k,).
        delay: of the delays of brakes, shape (k, nv).
        rise: of the rises of their torques, shape (k, nv).
        ramp_end: of the times at which ramps of drives end, shape (k, nv).
        efficiency: of the gears, shape (k, nv).
        lossy: of the rotors behind gears with losses, shape (k, nv).
        unknown: mask of inputs with which the stop changes in a way that is not known, shape (k,).
    """

    def __init__(
        self, history: StopHistory, equations: StopEquations, inputs: Sequence[StopInput]
    ) -> None:
        self.inputs, self._history = tuple(inputs), history
        self._equations = equations
        self.unknown = np.zeros(len(inputs), dtype=bool)
        self.initial = self._initial()
        plan = history.plan
        # How long drives of limited torque take on their path is found by trial.
        self._slowed = plan.longest > 0.0 and plan.duration != self._plan(None, 0.0).duration
        self._variants = [self._variants_of(k) for k in range(len(inputs))]
        chain = history.plan.chain
        of = {name: np.array([float(x.quantity == name) for x in inputs]) for name in vars(chain)}
        self.command, self.drive_off = of["sensor"] + of["controller"], of["drive_off"]
        self.delay, self.rise = self._of_train("delay"), self._of_train("rise")
        self.efficiency, self.lossy = self._of_train("efficiency"), self._of_train("lossy")
        self._armature = self._of_train("reflected") - self.lossy
        self.ramp_end = self._sum(lambda x: ramp_ends(x.plan.reference))
        self._payload = [k for k, of in enumerate(inputs) if of.quantity == "payload"]
        load, robot = payload_of(history.train.robot, history.robot), history.train.robot
        com = (0.0, 0.0, 0.0) if load is None else tuple(np.asarray(load.com).tolist())
        self._mass = PointMass(str(tool_of(robot) if load is None else load.frame), com)

    def _of_train(self, name: str) -> Array:
        return self._sum(lambda x: np.asarray(getattr(x.train, name)))

    def _sum(self, value: Callable[[Variant], Array]) -> Array:
        """Derivatives of an array by the inputs, shape (k, ...)."""
        shape = value(self._nominal).shape
        sums = np.zeros((len(self.inputs), *shape))
        for k, variants in enumerate(self._variants):
            for variant in variants:
                there = value(variant)
                at = np.isfinite(there)
                sums[k][at] += variant.weight * there[at]
        return sums

    @cached_property
    def _nominal(self) -> Variant:
        return Variant(0.0, 0.0, self._history.train, self._history.plan)

    def _variants_of(self, k: int) -> list[Variant]:
        """The stop with an input larger and smaller; on one side only at the end of its range."""
        of, train, plan = self.inputs[k], self._history.train, self._history.plan
        in_brakes = of.quantity in (_TORQUE, *_OF_BRAKE)
        in_plan = of.quantity in _OF_PLAN and (plan.category.controlled or _motion(self._history))
        if self._slowed:
            self.unknown[k] = True
        if not (in_brakes or in_plan):
            return []
        h = INPUT_STEP * (abs(of.value) or 1.0)
        for stencil in _STENCILS:
            try:
                variants = []
                for times, weight in stencil:
                    brakes = train.brakes
                    if in_brakes:
                        brakes = _changed(brakes, of, times * h)
                    own = Drivetrain(train.robot, brakes) if in_brakes else train
                    changed = self._plan(of, times * h, brakes) if in_plan else plan
                    variants.append(Variant(weight / h, times * h, own, changed))
            except BadValue:
                continue
            return variants
        raise BadValue(f"input '{of.name}' of the stop can neither be larger nor smaller")

    def _plan(self, of: StopInput | None, step: float, brakes: Brakes | None = None) -> Plan:
        """The plan with an input changed."""
        history, quantity = self._history, "" if of is None else of.quantity
        chain, motion = history.plan.chain, _motion(history)
        times = {name: getattr(chain, name) for name in CHAIN_PARAMETERS}
        if quantity in times:
            times[quantity] += step
        at = 0.0 if motion is None else motion.signal + step * (quantity == "instant")
        trigger = Trigger(None if motion is None else motion.motion, at, **times)
        q0, v0 = history.run.q[0], history.run.v[0]
        if of is not None and quantity == "speed":
            v0 = v0 + step * self.initial[len(v0) :, self.inputs.index(of)]
        own = history.train.brakes if brakes is None else brakes
        category = history.plan.category
        return make_plan(self._equations.equations, own, trigger, category, q0, v0)

    def _initial(self) -> Array:
        """Changes of the state at the signal; joints that do not lead follow by the loops."""
        history, equations = self._history, self._equations.equations
        q, v, n = history.run.q[0], history.run.v[0], history.robot.nv
        changes, rest = np.zeros((2 * n, len(self.inputs))), np.zeros(n)
        tree = MovingTree(joint_chain(history.robot), q, v, rest)
        rows = equations.rows.slopes(tree, (0.0, q, v, rest), np.zeros(len(equations.rows)))
        own = tree.chain.columns
        J, turning = rows.J[:, own], rows.rate_q[:, own]
        for k, of in enumerate(self.inputs):
            if of.quantity == "instant":
                motion = _motion(history)
                assert motion is not None
                changes[:n, k] = v
                h = INPUT_STEP
                ahead, behind = (
                    motion.motion.state(history.robot, motion.signal + step)[1] for step in (h, -h)
                )
                changes[n:, k] = (ahead - behind) / (2.0 * h)
            elif of.quantity == "speed" and not of.joint:
                changes[n:, k] = v
            elif of.quantity in ("speed", "pose"):
                column = history.train.robot.coordinates(of.joint).v.start
                lead = history.plan.reference.follows.copy()
                lead[column] = True
                unit = (np.arange(n) == column)[lead].astype(float)
                rows_of = np.vstack([J, np.eye(n)[lead]])
                motion_of = _followed_by(rows_of, np.append(np.zeros(len(J)), unit), of.name)
                if of.quantity == "speed":
                    changes[n:, k] = motion_of
                    self.unknown[k] = of.value == 0.0  # to and fro are two different stops
                    continue
                changes[:n, k] = motion_of
                values = np.append(-turning @ motion_of, np.zeros(int(lead.sum())))
                changes[n:, k] = _followed_by(rows_of, values, of.name)
        return changes

    # -- in a phase ---------------------------------------------------------------------------

    def _sliding(self, phase: Phase, begin: Array) -> Iterator[tuple[int, Variant, Phase]]:
        """The phase with every input changed, as far as its drive train is."""
        sliding = phase.sliding
        # What a brake has of its torque, (t - begin) / rise, starts with `ramp`.
        ramp = -sliding.slope * (begin + sliding.ramp * self.rise)
        slope = -(sliding.slope**2) * self.rise
        for k, variants in enumerate(self._variants):
            moves = ramp[k].any() or slope[k].any()
            h = INPUT_STEP * (abs(self.inputs[k].value) or 1.0)
            some = variants or (
                [self._nominal._replace(weight=s / (2 * h), step=s * h) for s in (1.0, -1.0)]
                if moves
                else []
            )
            for variant in some:
                changed = replace(
                    sliding,
                    ramp=sliding.ramp + variant.step * ramp[k],
                    slope=sliding.slope + variant.step * slope[k],
                )
                yield k, variant, replace(phase, sliding=changed)

    def sliding_torques(self, phase: Phase, begin: Array) -> SlidingTorques:
        """Changes of the torques of what slides in a phase.

        ``begin``: changes of the times at which brakes begin to act, shape (k, nv).
        """
        count, n = len(self.inputs), len(phase.stuck)
        rest, rate, viscous = np.zeros((3, 2, count, n))
        extra, shape = np.zeros((2, count, n))
        for k, variant, changed in self._sliding(phase, begin):
            slide, weight = variant.train.sliding_torques(changed.sliding), variant.weight
            rest[:, k] += weight * slide.rest
            viscous[:, k] += weight * slide.viscous
            if slide.rate is not None:
                rate[:, k] += weight * slide.rate
            if slide.extra is not None:
                extra[k] += weight * slide.extra
                shape[k] += weight * np.where(np.isfinite(slide.shape), slide.shape, 0.0)
        for part in (rest, rate, viscous):
            part[1][:, phase.pinned] = 0.0  # see `PhaseTables`
        start = float(np.asarray(phase.sliding.start))
        return SlidingTorques(start, rest, rate, viscous, extra, shape)

    def bounds(self, phase: Phase, begin: Array, t: float, v: Array) -> tuple[Array, Array]:
        """Changes of the bounds of what is pinned, lower and upper, shape (k, nv) each."""
        low, high = np.zeros((2, len(self.inputs), len(v)))
        for k, variant, changed in self._sliding(phase, begin):
            for sums, bound in zip(
                (low, high), pinned_bounds(variant.train, changed, t, v), strict=True
            ):
                sums[k] += variant.weight * np.where(np.isfinite(bound), bound, 0.0)
        return low, high

    def sink_torques(self, phase: Phase, begin: Array, t: float, v: Array, solved: Solved) -> Array:
        """Changes of what takes energy in a phase with the inputs alone, shape (6, k, nv)."""
        sums = np.zeros((len(SINKS) + 1, len(self.inputs), len(v)))
        for k, variant, changed in self._sliding(phase, begin):
            own = sink_torques(variant.train, changed.sliding, phase.follow, t, v, solved)
            sums[:, k] += variant.weight * own
        return sums

    def references(self, piece: Piece, t: float) -> tuple[Array, Array]:
        """Changes of velocity and acceleration of the drives on a piece, shape (k, nv) each."""
        at = self._history.plan.reference.pieces.index(piece)
        middle = _inside(self._history.plan.reference, at)

        def values(variant: Variant) -> Array:
            own = variant.plan.reference.at(middle)
            return np.array([own.v(t), own.a(t)])

        speeds, rates = self._sum(values).swapaxes(0, 1)
        return speeds, rates

    def loads(self, equations: StopEquations, t: float, q: Array, v: Array, a: Array) -> Array:
        """Changes of ``M a + nle`` by payload and rotors at fixed accelerations, shape (nv, k)."""
        loads = (self._armature * a).T.copy()
        if self._payload:
            loads[:, self._payload] = self._mass.loads(equations.equations, t, q, v, a)
        return np.asarray(loads)


_STENCILS = (
    ((1.0, 0.5), (-1.0, -0.5)),
    ((0.0, -1.5), (1.0, 2.0), (2.0, -0.5)),
    ((0.0, 1.5), (-1.0, -2.0), (-2.0, 0.5)),
)
"""Steps and weights of a first derivative: by central differences, else to one side."""


def ramp_ends(reference: Reference) -> Array:
    """When the drive of each coordinate has come to rest on its ramp [s], NaN where it has none."""
    ends = np.full(len(reference.follows), np.nan)
    for piece, after in zip(reference.pieces[1:-1], reference.pieces[2:], strict=True):
        t = after.start
        done = (piece.v(0.5 * (piece.start + t)) != 0.0) & ~(after.v(t) != 0.0)
        done &= after.a(t) == 0.0
        ends[done] = t
    return ends


def _inside(reference: Reference, at: int) -> float:
    """A time well inside a piece of a reference."""
    starts = (*reference.starts, np.inf)
    first, last = starts[at], starts[at + 1]
    return 0.5 * (first + last) if np.isfinite(last) else first + 1.0


def _followed_by(rows: Array, values: Array, name: str) -> Array:
    """The motion with given values of some rows."""
    motion = np.linalg.lstsq(rows, values, rcond=LEAST_SQUARES)[0]
    if np.abs(rows @ motion - values).max(initial=0.0) > FOLLOWED_JOINTS:
        raise BadValue(f"'{name}' follows from other joints by the loops; name those")
    return np.asarray(motion)
