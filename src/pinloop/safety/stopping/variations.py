"""How a stop as a whole changes with its inputs: along its phases, and through what ends them.

In a phase changes of the state obey the linear equations of `phase_slopes` along the motion that
was recorded. Gauss' collocation solves them on its steps, a method that damping cannot upset; its
points serve the integrals of powers, too. Lengths of paths have points of their own, more where a
speed turns sharply; all are inside, where speeds have a direction.

Where something ends a phase, changes go on by saltation, see `integrate.tangents`. Several things
may happen at one instant, and each later by another time: brakes that come and ramps that end then
add up, because each jump is linear in the torque or the acceleration behind it. Other coincidences
are changes of the sequence of events, across which nothing is smooth: there is no derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.marks import Array, Mask
from ...dynamics.inverse import group_bracket
from ...errors import BadValue
from ...integrate import Step, collocation, saltate
from ...model.moving_tree import JointChain
from ...simulation.modes import RobotManifold
from ...simulation.transitions import Transition
from ...tolerances import ONE_CAUSE, SAME, SENSITIVE_INTEGRAL
from .happenings import Cause, Causes, Happening, Instant
from .history import StopHistory
from .input_changes import InputChanges
from .phase import Phase
from .phase_slopes import PhaseSlopes, impact_slopes
from .stop_equations import StopEquations

_TURN = 1.0
"""By how much all joints together turn between two points of support, at most [rad], about."""
_POINTS = 0.5 + 0.5 * np.polynomial.legendre.leggauss(5)[0]
_INSIDE, _END = collocation(_POINTS, _POINTS), collocation(_POINTS, np.ones(1))[0]
"""Weights of Gauss' points for what lies at these, and at the end."""
_LAST = np.linalg.inv(np.polynomial.legendre.legvander(2.0 * _POINTS - 1.0, 4))[3:]
"""What makes of values at these points their last two coefficients in Legendre polynomials."""
_LEAST = 1e-3
"""Part of a step that is not halved any more."""


@dataclass(frozen=True)
class ToolSpeed:
    """Speed of the origin of a frame, whose integral is the length of its path.

    Args:
        chain: the robot's chain.
        frame: number of the frame.
    """

    chain: JointChain
    frame: int

    def value(self, q: Array, v: Array) -> float:
        """The speed."""
        chain, (joint, place) = self.chain, self.chain.frames[self.frame]
        with chain.spaces.lend(chain.model) as data:
            pin.forwardKinematics(chain.model, data, chain.configuration(q), chain.velocity(v))
            moving = pin.getFrameVelocity(chain.model, data, joint, place, pin.LOCAL).linear
            return math.hypot(*moving)

    def slopes(self, q: Array, v: Array) -> Array:
        """Its derivatives by position and velocity; none at rest, where it has no direction."""
        chain, (joint, place) = self.chain, self.chain.frames[self.frame]
        model, frame, n = chain.model, pin.LOCAL, len(v)
        with chain.spaces.lend(model) as data:
            state = chain.configuration(q), chain.velocity(v), np.zeros(model.nv)
            pin.computeForwardKinematicsDerivatives(model, data, *state)
            moving = pin.getFrameVelocity(model, data, joint, place, frame).linear
            speed = math.hypot(*moving)
            if speed == 0.0:
                return np.zeros(2 * n)
            by = pin.getFrameVelocityDerivatives(model, data, joint, place, frame)
            way = moving / speed
            return np.concatenate([way @ np.reshape(part, (6, -1))[:3] for part in by])[
                self._columns
            ]

    @cached_property
    def _columns(self) -> NDArray[np.intp]:
        """Places of the robot's coordinates among those of the chain, positions and velocities."""
        own = self.chain.columns
        return np.concatenate([own, self.chain.model.nv + own])


class _Piece(NamedTuple):
    """A piece of a step.

    Args:
        step: the step.
        start: where it begins, as part of the step.
        width: how long it is, as part of the step.
    """

    step: Step
    start: float
    width: float

    @property
    def h(self) -> float:
        """How long it takes [s]."""
        return self.width * (self.step.t1 - self.step.t0)

    def states(self, points: Array) -> list[tuple[float, Array, Array]]:
        """Times and states at some parts of it."""
        parts = self.start + self.width * points
        times = self.step.t0 + parts * (self.step.t1 - self.step.t0)
        return list(zip(times.tolist(), *self.step.inside(parts), strict=True))

    def halves(self) -> tuple[_Piece, _Piece]:
        """Its halves."""
        half = 0.5 * self.width
        return _Piece(self.step, self.start, half), _Piece(self.step, self.start + half, half)


class StopVariation:
    """Changes of a stop with inputs, followed from the signal on.

    Attributes:
        changes: of position and velocity at the end, shape (2 nv, k).
        happenings: the instants at which phases end, in order.
        speeds: the speeds of points.
        lengths: lengths of their paths [m], shape (paths,).
        longer: changes of these, shape (paths, k).
        work: changes of what `PhaseSlopes.sink_powers` are over time, shape (6 nv, k).
        notes: what has no derivative, a sentence each.
    """

    def __init__(
        self,
        history: StopHistory,
        equations: StopEquations,
        inputs: InputChanges,
        speeds: Sequence[ToolSpeed] = (),
        *,
        powers: bool = False,
    ) -> None:
        self._history, self._equations, self.inputs = history, equations, inputs
        self.speeds, self._powers = tuple(speeds), powers
        self._manifold = RobotManifold(history.robot)
        self.changes = inputs.initial.copy()
        self.changes[:, inputs.unknown] = np.nan
        self.happenings: list[Happening] = []
        self.notes: list[str] = []
        self._whole = np.zeros(len(speeds) + 1)  # of each path so far, and of the largest power
        self.lengths = np.zeros(len(speeds))
        self.longer = np.zeros((len(speeds), len(inputs.inputs)))
        self.work = np.zeros((6 * history.robot.nv, len(inputs.inputs)))
        self._brake = None if history.plan.category.controlled else inputs.command
        # Of the slip of brakes when the phase began, and of the travel of joints there.
        at_begin = inputs.initial[: history.robot.nv].T
        self._slip = np.array([np.zeros_like(at_begin), at_begin])
        self._causes = Causes(history, equations, inputs)
        self._follow()

    def _follow(self) -> None:
        run = self._history.run
        k, last = 0, len(run.t) - 1
        self._begin_later(int(np.searchsorted(run.t, run.t[0], side="right")) - 1)
        while k < last:
            j = k
            while j < last and run.t[j + 1] == run.t[k]:
                j += 1
            if j > k:
                self._happen(k, j)
            if j < last:
                self._step(j)
            k = j + 1

    def _enter(self, k: int, *, inside: bool) -> PhaseSlopes:
        self._history.enter(self._equations, k, inside=inside)
        if self._equations.passage is not None:
            raise BadValue(
                f"the stop passes a singular pose at t = {self._history.run.t[k]:.6g} s, where it "
                "has no sensitivities; let it pass in another pose"
            )
        return PhaseSlopes(self._equations, self.inputs, self.inputs.begin(self._brake), self._slip)

    # -- steps ------------------------------------------------------------------------------

    def _step(self, k: int) -> None:
        run = self._history.run
        if not (run.v[k : k + 2].any() or run.psi[k].any()):
            return
        phase, step = self._enter(k, inside=True), self._history.step(k)
        turning = np.abs(step.polynomial)[:, ~self._history.robot.is_translation].sum()
        count = max(1, int(np.ceil(turning / _TURN)))
        for number in range(count):
            self._collocate(phase, _Piece(step, number / count, 1.0 / count))

    def _collocate(self, phase: PhaseSlopes, piece: _Piece) -> None:
        """Follow the changes through a piece of a step."""
        h, states = piece.h, piece.states(_POINTS)
        points = [phase.at(*state) for state in states]
        if self._powers:
            values = np.array([
                phase.sink_powers(*state, at) for state, at in zip(states, points, strict=True)
            ])  # fmt: skip
            if not self._is_resolved(piece, -1, values):
                for half in piece.halves():
                    self._collocate(phase, half)
                return
        n, count, size = self._history.robot.nv, len(points), len(self.changes)
        A, more = np.zeros((count, size, size)), np.zeros((count, *self.changes.shape))
        A[:, :n, n:] = np.eye(n)
        for i, at in enumerate(points):
            A[i, :n, :n] = self._turning(states[i][2])
            A[i, n:], more[i, n:] = at.a[:, :size], at.a[:, size + 1 :]
        blocks = _INSIDE[:, :, None, None] * A[:, None]
        matrix = np.eye(count * size) - h * blocks.transpose(0, 2, 1, 3).reshape(
            count * size, count * size
        )
        right = (A @ self.changes + more).reshape(count * size, -1)
        slopes = np.asarray(np.linalg.solve(matrix, right), dtype=float).reshape(count, size, -1)
        if self._powers:
            inside = self.changes + h * np.tensordot(_INSIDE, slopes, 1)
            for state, at, by, part in zip(states, points, inside, _END, strict=True):
                self.work += h * part * phase.sink_power_changes(state, at, by)
        for number in range(len(self.speeds)):
            self._lengthen(number, piece, piece, slopes)
        self.changes = self.changes + h * np.tensordot(_END, slopes, 1)

    def _lengthen(self, number: int, part: _Piece, piece: _Piece, slopes: Array) -> None:
        """Add what a path is longer in a part of a piece, along which changes have slopes."""
        speed, states = self.speeds[number], part.states(_POINTS)
        values = np.array([[speed.value(q, v)] for _, q, v in states])
        if not self._is_resolved(part, number, values):
            for half in part.halves():
                self._lengthen(number, half, piece, slopes)
            return
        self.lengths[number] += part.h * float(_END @ values[:, 0])
        inside = (part.start + part.width * _POINTS - piece.start) / piece.width
        between = self.changes + piece.h * np.tensordot(collocation(_POINTS, inside), slopes, 1)
        for (_, q, v), by, weight in zip(states, between, _END, strict=True):
            self.longer[number] += part.h * weight * (speed.slopes(q, v) @ by)

    def _is_resolved(self, piece: _Piece, number: int, values: Array) -> bool:
        """Whether polynomials follow what is integrated in a piece, one of `_whole`."""
        left = float(np.abs(_LAST @ values).max())
        size = float(np.abs(values).max())
        whole = max(self._whole[number], piece.h * size)
        if piece.width > _LEAST and piece.h * left > SENSITIVE_INTEGRAL * whole:
            return False
        self._whole[number] += piece.h * size
        return True

    def _turning(self, v: Array) -> Array:
        """What positions in curved joints change by because the frame turns, ``[dq, v]``."""
        n = len(v)
        if self._manifold.flat:
            return np.zeros((n, n))
        robot = self._history.robot
        return np.array([group_bracket(robot, unit, v) for unit in np.eye(n)]).T

    # -- events -----------------------------------------------------------------------------

    def _happen(self, first: int, last: int) -> None:
        """Carry changes through what happens between two states of one instant."""
        run, history = self._history.run, self._history
        t, phases = float(run.t[first]), history.phases
        before, after = phases[run.mode[first]], phases[run.mode[last]]
        hits = [change for change in run.transitions if change.t == t]
        slopes = self._enter(first, inside=False)
        if t == run.t[0]:
            causes = [Cause("signal", np.zeros(len(self.inputs.inputs)))]
        else:
            number = int(run.mode[first]) + 1
            causes = self._causes.of(Instant(number, t, slopes, self.changes, self._brake))
        happening = Happening(t, tuple(causes))
        self.happenings.append(happening)
        gone = self._rates(first, slopes)
        self._begin_slip(first, before, after, happening)
        if self._brake is None and history.brake_times.brake == t:
            self._brake = happening.change
        if len(hits) > 1:
            self._lose(np.ones(len(happening.change), bool), t, "several impacts at once")
            return
        shift = run.a[last] - run.a[first]
        small = SAME * max(1.0, float(np.abs(run.a[first : last + 1]).max()))
        if hits:
            self._hit(hits[0], run.a[first], run.a[last], happening)
        elif np.abs(shift).max() > small:
            self._shift(first, last, shift, (before, after), happening)
        if self._powers or (hits and self.speeds):
            rates = self._rates(last, self._enter(last, inside=False))
            self._add_jumps(gone[0] - rates[0], gone[1] - rates[1], happening)

    def _begin_slip(self, k: int, before: Phase, after: Phase, happening: Happening) -> None:
        """Let the slip of brakes begin anew, later where what heats them is another part."""
        part, v = before.sliding.heating, self._history.run.v[k]
        place = self.changes[: len(v)].T.copy()
        for column in ((after.sliding.heating != part) & (v != 0.0)).nonzero()[0].tolist():
            place[:, column] += v[column] * happening.change_of(column)
        self._slip = np.array([self._slip[0] + part * (place - self._slip[1]), place])

    def _rates(self, k: int, phase: PhaseSlopes) -> tuple[Array, Array]:
        """Speeds and powers at a stored state."""
        t, q, v = float(self._history.run.t[k]), self._history.run.q[k], self._history.run.v[k]
        speeds = np.array([speed.value(q, v) for speed in self.speeds])
        if not self._powers:
            return speeds, np.zeros(len(self.work))
        return speeds, phase.sink_powers(t, q, v, phase.at(t, q, v))

    def _begin_later(self, k: int) -> None:
        """Let brakes that act from the signal on come a little later."""
        run, times, train = self._history.run, self._history.brake_times, self._equations.train
        t, inputs = float(run.t[k]), self.inputs
        if times.command <= t:
            self._lose(inputs.command != 0.0, t, "the command comes with the signal, at once")
        if times.off <= t:
            self._lose(inputs.drive_off != 0.0, t, "the power goes with the signal, at once")
        slopes = self._enter(k, inside=False)
        late = inputs.begin(self._brake) + 0.5 * inputs.train.rise
        full = (times.engagement(train)[1] <= t) & train.has_brake & ~slopes.phase.pinned
        _, power = self._rates(k, slopes)
        for column in full.nonzero()[0].tolist():
            own, more = self._brake_response(column, k), late[:, column]
            self._slip[1][:, column] += run.v[k, column] * more
            self._accelerate_later(own, more, np.ones(len(more), dtype=bool))
            self.work[column] -= power[column] * more

    def _add_jumps(self, speeds: Array, powers: Array, happening: Happening) -> None:
        """Add what integrals change by because their integrands jump later.

        Args:
            speeds: by how much less there is of speeds afterwards.
            powers: the same of powers.
            happening: what happens later.
        """
        for sums, gone in ((self.longer, speeds), (self.work, powers)):
            least = SAME * max(1.0, float(np.abs(gone).max(initial=0.0)))
            for row in (np.abs(gone) > least).nonzero()[0].tolist():
                # What brakes take begins with each of them; the rest with what all have in common.
                alone = sums is self.work and row < self._history.robot.nv
                change = happening.change_of(row) if alone else happening.change
                sums[row] += gone[row] * change

    def _lose(self, mask: Mask, t: float, why: str) -> None:
        """Let changes with some inputs be unknown from now on."""
        if mask.any():
            self.changes[:, mask] = np.nan
            self.notes.append(f"t = {1e3 * t:.4g} ms: {why}")

    def _shift(
        self, first: int, last: int, shift: Array, phases: tuple[Phase, Phase], happening: Happening
    ) -> None:
        """Saltation where accelerations jump, but no velocities."""
        change = happening.change
        alike = np.isfinite(change)
        self._accelerate_later(shift, change, alike)
        parted = ~alike & np.isfinite(self.changes).all(axis=0)
        if not parted.any():
            return
        others = [x for x in happening.causes if x.column is None or np.isfinite(x.rate)]
        common = Happening(happening.t, tuple(others)).change if others else None
        rest = np.repeat(shift[:, None], len(change), axis=1)
        for cause in happening.causes:
            if cause.column is None or np.isfinite(cause.rate):
                continue
            own = self._shift_of(cause.column, first, last, phases)
            counts = parted.copy()
            if common is not None and phases[0].pinned[cause.column]:
                # A brake that comes before its drive lets go does nothing until then.
                counts &= phases[1].pinned[cause.column] | (cause.change > common)
            self._accelerate_later(own, cause.change, counts)
            rest[:, counts] -= own[:, None]
        left = parted & (np.abs(rest).max(axis=0) > ONE_CAUSE * np.abs(shift).max())
        nothing = np.full(len(change), np.nan)
        later = nothing if common is None else common
        for k in left.nonzero()[0].tolist():
            self._accelerate_later(rest[:, k], later, np.arange(len(later)) == k)
        lost = parted & ~np.isfinite(self.changes).all(axis=0)
        names = " and ".join(dict.fromkeys(cause.name for cause in happening.causes))
        self._lose(lost, happening.t, f"{names} at once, in one order or the other")

    def _accelerate_later(self, shift: Array, later: Array, some: Mask) -> None:
        """Let accelerations jump later; of some of the inputs."""
        rates = np.zeros(2 * len(shift)), np.append(np.zeros(len(shift)), shift)
        self.changes[:, some] = saltate(self.changes[:, some], later[some], rates)

    def _shift_of(self, column: int, first: int, last: int, phases: tuple[Phase, Phase]) -> Array:
        """Part of a jump of accelerations that is due to one coordinate."""
        run, n = self._history.run, self._history.robot.nv
        torque, given = np.zeros((2, n, 1))
        state = float(run.t[last]), run.q[last], run.v[last]
        before, after = (bool(phase.pinned[column]) for phase in phases)
        if before and after:
            given[column] = run.a[last, column] - run.a[first, column]
        elif not before and not after:
            torque[column] = self._torque_at(column, last) - self._torque_at(column, first)
        elif before:
            return self._brake_response(column, last)
        return self._enter(last, inside=False).response(*state, torque, given)[:, 0]

    def _torque_at(self, column: int, k: int) -> float:
        """Torque of what slides on a coordinate at a state."""
        self._enter(k, inside=False)
        equations, run = self._equations, self._history.run
        joint, before = equations.tables.slide.torques(float(run.t[k]), run.q[k], run.v[k])
        through = equations.train.through_gear(before, equations.phase.sliding.direction)
        return float((joint + through)[column])

    def _brake_response(self, column: int, k: int) -> Array:
        """What the full torque of a brake, on a coordinate that slides, makes of accelerations."""
        run, slopes = self._history.run, self._enter(k, inside=False)
        t, tables, train = float(run.t[k]), self._equations.tables, self._equations.train
        direction = slopes.phase.sliding.direction[column]
        gain = tables.gain(tables.slide.torques(t, run.q[k], run.v[k])[1])[column]
        torque = np.zeros((len(run.v[k]), 1))
        joint, motor = train.sliding_brake(
            t, run.q[k], run.v[k], slopes.phase.sliding, slopes.phase.follow
        )[:, column]
        torque[column] = -direction * (joint + gain * motor)
        return slopes.response(t, run.q[k], run.v[k], torque, np.zeros_like(torque))[:, 0]

    def _hit(self, hit: Transition, a_before: Array, a_after: Array, happening: Happening) -> None:
        """Carry changes through an impact."""
        n, change = self._history.robot.nv, happening.change
        by_q, by_v, by_p = impact_slopes(self._equations, self.inputs, hit)

        def jump(changes: Array) -> Array:
            q, v = changes[:n], changes[n:]
            return np.vstack([q, by_q @ q + by_v @ v + by_p])

        before, after = np.append(hit.v_minus, a_before), np.append(hit.v_plus, a_after)
        self.changes = saltate(self.changes, change, (before, after), jump)
        self._lose(np.isnan(change), happening.t, "an impact and something else at once")
