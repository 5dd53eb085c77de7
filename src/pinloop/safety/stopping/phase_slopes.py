"""How accelerations and torques of a stop change with its state and its inputs, in one phase.

What holds in a phase,

    (M + I_g) a + nle - joint_side(t, v) - g before(t, v) - J' lam - holding = 0,   J a + gamma = 0,

with ``a`` given where a coordinate is pinned, ``holding`` zero where it is not, ``I_g`` the rotors
behind gears with losses and ``g`` what these let through, is differentiated as in
`dynamics.derivatives`: the changes solve the same saddle problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...dynamics.derivatives import joint_chain
from ...errors import BadValue
from ...linalg.dense import slope
from ...linalg.saddle import Saddle
from ...model.moving_tree import MovingTree, load_slopes
from ...simulation.transitions import Transition
from ...tolerances import SLOPE_TIME
from .drivetrain import STEP, imaginary
from .input_changes import InputChanges
from .loads import sink_torques
from .phase import Phase
from .stop_equations import Solved, StopEquations


class SolvedSlopes(NamedTuple):
    """A solution of the equations of a phase, and its derivatives at one state.

    Columns: positions, velocities, time, inputs; shape (nv, 2 nv + 1 + k).

    Args:
        solved: the solution.
        a: derivatives of the acceleration.
        gear_output: of what gears of what moves let through.
        holding_torque: of what pins.
    """

    solved: Solved
    a: Array
    gear_output: Array
    holding_torque: Array

    def along(self, slopes: Array, changes: Array) -> Array:
        """Changes of something with these derivatives at a fixed time, shape (nv, k).

        ``changes``: of position and velocity with the inputs, shape (2 nv, k).
        """
        n = len(changes)
        return np.asarray(slopes[:, :n] @ changes + slopes[:, n + 1 :])

    def rates(self, slopes: Array, v: Array) -> Array:
        """How fast something with these derivatives changes along the motion, shape (nv,)."""
        n = len(v)
        return np.asarray(slopes[:, : 2 * n] @ np.append(v, self.solved.a) + slopes[:, 2 * n])


@dataclass(frozen=True, eq=False)
class PinnedProblem:
    """``M x = f + J' lam`` where free, ``J x = b``, and ``x`` given where it is pinned."""

    saddle: Saddle
    M: Array
    J: Array
    free: NDArray[np.intp]
    held: NDArray[np.intp]

    def changes(self, missing: Array, values: Array, given: Array) -> tuple[Array, Array]:
        """Changes of ``x``, and of what pins it.

        Args:
            missing: changes of ``M x - f - J' lam`` at fixed unknowns, shape (n, k).
            values: changes of ``J x - b``, likewise, shape (rows, k).
            given: changes of what is given, shape (n, k).
        """
        free, held = self.free, self.held
        x, torque = np.zeros((2, *missing.shape))
        x[held] = given[held]
        rest = -missing[free] - self.M[np.ix_(free, held)] @ x[held]
        x[free], lam = self.saddle.solve(rest, -values - self.J[:, held] @ x[held])
        torque[held] = self.M[held] @ x + missing[held] - self.J[:, held].T @ lam
        return x, torque


class PhaseSlopes:
    """The derivatives in a phase.

    Args:
        equations: equations of the stop, which have entered the phase.
        inputs: what it is differentiated by, besides the state.
        begin: changes of the times at which brakes begin to act, shape (k, nv).
        slip: changes of the slip of brakes, see `TrainChanges.phase`.
    """

    def __init__(
        self, equations: StopEquations, inputs: InputChanges, begin: Array, slip: Array
    ) -> None:
        self._equations, self._inputs = equations, inputs
        self.phase: Phase = equations.phase
        self._beside = inputs.train.phase(self.phase, begin, slip)
        self._slide = inputs.train.beside.sliding_torques(self._beside.sliding, self.phase.follow)
        dragged = (
            self.phase.follow & equations.train.fading.some & (self.phase.sliding.heating != 0)
        )
        if dragged.any():
            name = equations.train.names[int(np.argmax(dragged))]
            raise BadValue(
                f"the drive of '{name}' moves on while its brake, whose torque falls with speed or "
                "heat, closes: such stops have no sensitivities; let the power go before"
            )
        self.chain = joint_chain(equations.equations.robot)

    def at(self, t: float, q: Array, v: Array) -> SolvedSlopes:
        """Derivatives at a state."""
        equations, at, n = self._equations, self._equations.tables, len(v)
        system, a, lam, solved, gain = self._solved(t, q, v)
        load_q, load_v, rows = self._load_slopes(t, q, v, a, lam)
        by_travel, by_speed, by_time = at.slide.slopes(t, q, v)
        by_input = imaginary(np.array(self._slide.torques(t, q, v)))
        by_input[1][:, at.held] = 0.0  # see `PhaseTables`
        count = by_input.shape[1]
        gear = np.zeros((n, 2 * n + 1 + count))
        gear[:, :n][np.diag_indices(n)] = gain * by_travel[1]
        gear[:, n : 2 * n][np.diag_indices(n)] = gain * by_speed[1]
        gear[:, 2 * n] = gain * by_time[1]
        gear[:, 2 * n + 1 :] = (gain * by_input[1]).T
        if equations.train.has_losses:
            losses = self._loss_changes(gain, at.slide.torques(t, q, v)[1], a)
            gear[:, 2 * n + 1 :] += losses.T
        missing = -gear
        missing[:, :n] += load_q - np.diag(by_travel[0])
        missing[:, n : 2 * n] += load_v - np.diag(by_speed[0])
        missing[:, 2 * n] -= by_time[0]
        missing[:, 2 * n + 1 :] += self._inputs.loads(equations, t, q, v, a) - by_input[0].T
        values = np.zeros((rows.shape[0], missing.shape[1]))
        values[:, : 2 * n] = rows
        change, torque = system.changes(missing, values, self._given(t, n, count))
        gear[at.rotors] -= (gain * equations.train.lossy)[at.rotors, None] * change[at.rotors]
        return SolvedSlopes(solved, change, gear, torque)

    def response(self, t: float, q: Array, v: Array, torque: Array, given: Array) -> Array:
        """Change of the acceleration with torques on coordinates, and what is given, (nv, k)."""
        system, *_ = self._solved(t, q, v)
        return system.changes(-torque, np.zeros((len(system.J), torque.shape[1])), given)[0]

    def sink_powers(self, t: float, q: Array, v: Array, at: SolvedSlopes) -> Array:
        """Powers by sink and coordinate, those of drives last, shape (6 nv,)."""
        own, train = self.phase, self._equations.train
        return (sink_torques(train, own.sliding, own.follow, (t, q, v), at.solved) * v).ravel()

    def sink_power_changes(
        self, state: tuple[float, Array, Array], at: SolvedSlopes, changes: Array
    ) -> Array:
        """Their changes, shape (6 nv, k).

        ``state``: time, configuration and velocity. ``changes``: of position and velocity with the
        inputs, shape (2 nv, k).
        """
        (t, q, v), own, solved = state, self._beside, at.solved
        v, travel = v + STEP * changes[len(v) :].T, STEP * changes[: len(v)].T
        a, output, holding = (
            x + STEP * at.along(slopes, changes).T
            for x, slopes in (
                (solved.a, at.a),
                (solved.gear_output, at.gear_output),
                (solved.holding_torque, at.holding_torque),
            )
        )
        beside = Solved(a, solved.joint_side, output, holding)
        sliding = replace(own.sliding, place=own.sliding.place - travel)
        train = self._inputs.train.beside
        power = imaginary(sink_torques(train, sliding, own.follow, (t, q, v), beside) * v)
        return np.asarray(power.transpose(0, 2, 1).reshape(-1, len(v)))

    def bound_changes(self, t: float, v: Array) -> tuple[Array, Array]:
        """Changes of the bounds of what is pinned, lower and upper, shape (k, nv) each."""
        rates = self._inputs.plan.references(self.phase.piece, t)[1]
        return self._inputs.train.bounds(self._beside, t, v, rates)

    def _solved(
        self, t: float, q: Array, v: Array
    ) -> tuple[PinnedProblem, Array, Array, Solved, Array]:
        """The saddle problem, acceleration, multipliers, all of the solution, gains of gears."""
        equations, at = self._equations, self._equations.tables
        M, f, J, gamma, cap = equations.system(t, q, v)
        M = M.copy()
        joint_side, before = at.slide.torques(t, q, v)
        gain = at.gain(before)
        heavier = np.zeros(len(v))
        heavier[at.rotors] = (gain * equations.train.lossy)[at.rotors]
        M += np.diag(heavier)
        free, held, a = at.free, at.held, at.given(t).copy()
        scale = equations.equations.rows.scale
        saddle = Saddle(M[np.ix_(free, free)], J[:, free], scale, max_rank=cap)
        applied = f + joint_side + gain * before
        a[free], lam = saddle.solve(
            applied[free] - M[np.ix_(free, held)] @ a[held], -gamma - J[:, held] @ a[held]
        )
        holding = np.zeros(len(v))
        holding[held] = (M @ a - applied - J.T @ lam)[held]
        solved = Solved(a, joint_side, gain * before - heavier * a, holding)
        return PinnedProblem(saddle, M, J, free, held), a, lam, solved, gain

    def _load_slopes(
        self, t: float, q: Array, v: Array, a: Array, lam: Array
    ) -> tuple[Array, Array, Array]:
        """Derivatives of what inertia, weight and rows take, and of the rows."""
        rows, own = self._equations.equations.rows, self.chain.columns
        at = np.ix_(own, own)
        if not len(rows):
            load_q, load_v = load_slopes(self.chain, q, v, a)
            return load_q[at], load_v[at], np.zeros((0, 2 * len(v)))
        tree = MovingTree(self.chain, q, v, a)
        slopes = rows.slopes(tree, (t, q, v, a), lam)
        load_q, load_v = tree.load_slopes()
        by_state = np.hstack([slopes.acceleration_q[:, own], slopes.acceleration_v[:, own]])
        return (load_q - slopes.force_q)[at], load_v[at], by_state

    def _loss_changes(self, gain: Array, before: Array, a: Array) -> Array:
        """Changes of what gears let through with their efficiency and rotors, shape (k, nv)."""
        train, rotors = self._equations.train, self._equations.tables.rotors
        turned = np.zeros(len(a))
        turned[rotors] = a[rotors]
        by_efficiency = np.where(gain > 1.0, -(gain**2), 1.0)  # of 1 / eta, or of eta
        through = by_efficiency * (before - train.lossy * turned)
        changes = self._inputs.train
        return changes.efficiency * through - changes.lossy * gain * turned

    def _given(self, t: float, n: int, count: int) -> Array:
        """Changes of the accelerations of what is pinned, shape (nv, 2 nv + 1 + k)."""
        given, follow = np.zeros((n, 2 * n + 1 + count)), self.phase.follow
        if follow.any():
            piece = self.phase.piece
            jerk = slope(lambda s: piece.a(t + s), SLOPE_TIME)
            given[:, 2 * n] = np.where(follow, jerk, 0.0)
            given[:, 2 * n + 1 :] = np.where(
                follow, self._inputs.plan.references(piece, t)[1], 0.0
            ).T
        return given


def impact_slopes(
    equations: StopEquations, inputs: InputChanges, hit: Transition
) -> tuple[Array, Array, Array]:
    """Derivatives of the velocity after an impact by position, velocity before, and inputs."""
    n, q, rest, dv = len(hit.v_plus), hit.q, np.zeros(len(hit.v_plus)), hit.v_plus - hit.v_minus
    names = equations.train.names
    M, _, J, _, _ = equations.system(hit.t, q, hit.v_minus)
    M = equations.train.with_rotors(M)
    count, at = len(J), [label.partition(":") for label in hit.labels]
    active = [
        (kind == "drive", names.index(name))
        for (kind, _, name), impulse in zip(at[count:], hit.impulse[count:], strict=True)
        if impulse != 0.0
    ]
    held = np.array([column for _, column in active], dtype=np.intp)
    free = np.setdiff1d(np.arange(n), held)
    saddle = Saddle(M[np.ix_(free, free)], J[:, free], equations.equations.rows.scale)
    chain = joint_chain(equations.equations.robot)
    own = chain.columns
    tree = MovingTree(chain, q, hit.v_plus, rest)
    rows = equations.equations.rows.slopes(tree, (hit.t, q, hit.v_plus, rest), hit.impulse[:count])
    load, weight = (MovingTree(chain, q, rest, x).load_slopes()[0] for x in (dv, rest))
    by_p = inputs.loads(equations, hit.t, q, rest, dv)
    by_p = by_p - inputs.loads(equations, hit.t, q, rest, rest) + (inputs.train.lossy * dv).T
    missing = np.hstack([(load - weight - rows.force_q)[np.ix_(own, own)], -M, by_p])
    values = np.zeros((count, missing.shape[1]))
    values[:, :n] = rows.rate_q[:, own]
    given = np.zeros(missing.shape)
    piece = equations.phase.piece
    for driven, column in active:
        if driven:
            given[column, 2 * n :] = inputs.plan.references(piece, hit.t)[0][:, column]
    problem = PinnedProblem(saddle, M, J, free, held)
    by_q, by_v, by_p = np.split(problem.changes(missing, values, given)[0], [n, 2 * n], 1)
    return by_q, by_v, by_p
