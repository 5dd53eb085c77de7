"""What happened in a stop, as data: its states, its phases, and what lies inside its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...boundary.marks import Array
from ...boundary.values import stored_fields
from ...dynamics.equations import robot_equations
from ...integrate import INNER, TURN, MuntheKaas, Step, hermite, refined, slope_powers, value_powers
from ...model.mechanism import Mechanism
from ...simulation.limits import JointEnd
from ...simulation.modes import RobotManifold
from ...simulation.passages import Passage, State
from ...simulation.trajectory import Trajectory
from .drivetrain import Drivetrain
from .phase import Phase, PhaseEvent, PhaseTables
from .plan import BrakeTimes, Plan
from .stop_equations import StopEquations


@dataclass(frozen=True, eq=False)
class StopHistory:
    """A stop that has been computed, phase by phase.

    Args:
        robot: the robot that stopped, without the rotors behind gears with losses, which are
            torques here.
        train: brakes, gears, friction, drives.
        plan: what the drives followed.
        brake_times: when brakes were commanded and power went.
        run: states over time; the number of its mode is that of the phase.
        phases: the phases, one after another.
        branches: per state, where the branch starts on which it was reached through a singular
            pose, see `Passage.start`; None elsewhere.
        ends: position limits that are end stops.
        method: integrator.
        tiny: speeds below it count as zero [rad/s, m/s].
        slow: speeds below it count as standing [rad/s, m/s].
        slow_since: since when nothing was faster than that [s]; None if something is.
        causes: per phase what ended the one before it; nothing for the first.
    """

    robot: Mechanism
    train: Drivetrain
    plan: Plan
    brake_times: BrakeTimes
    run: Trajectory
    phases: tuple[Phase, ...]
    branches: tuple[State | None, ...]
    ends: tuple[JointEnd, ...]
    method: MuntheKaas
    tiny: float
    slow: float
    slow_since: float | None
    causes: tuple[tuple[PhaseEvent, ...], ...] = ()

    __getstate__ = stored_fields

    def equations(self) -> StopEquations:
        """New equations of motion of the robot that stopped."""
        run = self.run
        equations = robot_equations(self.robot).around(float(run.t[0]), run.q[0])
        return StopEquations(equations, self.train, self.tables, self.passages)

    @cached_property
    def tables(self) -> dict[Phase, PhaseTables]:
        """What follows from the phases, as far as somebody has entered them."""
        return {}

    @cached_property
    def passages(self) -> dict[tuple[float, bytes], Passage]:
        """The branches, as far as somebody has opened them, see `StopEquations`."""
        return {}

    def enter(self, equations: StopEquations, k: int, *, inside: bool = False) -> None:
        """Let equations be those of state k, or of the step from there to the next."""
        equations.enter(self.phases[self.run.mode[k]])
        start = self.branch(k, inside=inside)
        equations.follow(None if start is None else equations.passage_from(start))

    def branch(self, k: int, *, inside: bool) -> State | None:
        """Where the branch of state k starts, or of the step from there; see ``branches``."""
        mode = self.run.mode
        return self.branches[k + inside if mode[k + inside] == mode[k] else k]

    def step(self, k: int) -> Step:
        """The step from state k to the next, for what lies between them."""
        # Not on the manifold of the phase, which holds what is stuck to the last bit.
        return self.run.step(k, self._manifold)

    @cached_property
    def _manifold(self) -> RobotManifold:
        return RobotManifold(self.robot)

    @cached_property
    def moving(self) -> MovingSteps:
        """The steps in which something moves."""
        run, robot = self.run, self.robot
        lasts = np.diff(run.t) > 0.0
        moves = run.v[:-1].any(axis=1) | run.v[1:].any(axis=1) | run.psi.any(axis=1)
        steps = (lasts & moves).nonzero()[0]
        length = run.t[steps + 1] - run.t[steps]
        h = length[:, None]
        (v0, v1), (a0, a1) = ((h * x[steps], h * x[steps + 1]) for x in (run.v, run.a))
        p = hermite(run.psi[steps], v0, v1, h * a0, h * a1)
        if run.inner is not None:
            p = refined(p, INNER, h * h * np.moveaxis(run.inner[steps], 1, 0))
        dense = None if robot.nq == robot.nv else tuple(map(self.step, steps.tolist()))
        turns = ~robot.is_translation
        return MovingSteps(steps, run.t[steps], length, run.q[steps], p, turns, dense)


class Pieces(NamedTuple):
    """Pieces of steps.

    Args:
        rows: the step of each, by its place among those that move, shape (k,).
        start: where each begins, as part of the step, shape (k,).
        width: how long it is, as part of the step, shape (k,).
    """

    rows: NDArray[np.intp]
    start: Array
    width: Array

    def parts(self, points: Array) -> Array:
        """Parts of the steps at points of all pieces, from 0 to 1, shape (k, g)."""
        return self.start[:, None] + self.width[:, None] * points

    def without(self, some: NDArray[np.bool_]) -> Pieces:
        """All but some."""
        return Pieces(self.rows[~some], self.start[~some], self.width[~some])

    def halves(self) -> Pieces:
        """All of them, halved."""
        half = 0.5 * self.width
        starts = np.concatenate([self.start, self.start + half])
        return Pieces(np.tile(self.rows, 2), starts, np.tile(half, 2))


@dataclass(frozen=True, eq=False)
class MovingSteps:
    """Steps in which something moves, k of them.

    Args:
        steps: number of the state at which each starts, shape (k,).
        start: when each starts [s], shape (k,).
        h: how long each takes [s], shape (k,).
        q: configuration at which each starts, shape (k, nq).
        p: coefficients of the path in each, shape (5|8, k, nv); of joints that are no vector space
            only nearly right.
        turns: mask of the coordinates that are angles, shape (nv,).
        dense: the steps, with what they know of curved joints; None if no joint is curved.
    """

    steps: NDArray[np.intp]
    start: Array
    h: Array
    q: Array
    p: Array
    turns: NDArray[np.bool_]
    dense: tuple[Step, ...] | None

    @cached_property
    def pieces(self) -> Pieces:
        """The steps, cut so short that all joints together turn by little in each piece."""
        paths = np.abs(self.p).sum(axis=0)  # a bound, to and fro
        counts = np.maximum(np.ceil(paths[:, self.turns].sum(axis=1) / TURN), 1.0).astype(np.intp)
        rows = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pieces(rows, place / counts[rows], 1.0 / counts[rows])

    def inside(self, rows: NDArray[np.intp], parts: Array) -> tuple[Array, Array]:
        """Configurations and velocities inside some of the steps.

        Args:
            rows: the steps, by their place in ``steps``, shape (m,).
            parts: the parts of each, from 0 to 1, shape (m, g).

        Returns:
            Shapes (m, g, nq) and (m, g, nv).
        """
        if self.dense is None:
            p = self.p[:, rows]
            q = self.q[rows, None] + np.einsum("kgp,pkn->kgn", value_powers(parts, len(p)), p)
            rates = np.einsum("kgp,pkn->kgn", slope_powers(parts, len(p)), p)
            return q, np.asarray(rates / self.h[rows, None, None])
        states = [
            self.dense[row].inside(some) for row, some in zip(rows.tolist(), parts, strict=True)
        ]
        q = np.array([q for q, _ in states]).reshape(*parts.shape, self.q.shape[1])
        return q, np.array([v for _, v in states]).reshape(*parts.shape, self.p.shape[2])
