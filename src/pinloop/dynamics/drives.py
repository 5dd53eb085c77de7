"""Torques of drives for a motion, within their limits: inverse dynamics of robots with loops.

With an orthogonal complement ``F`` of the rows (``J F = 0``) the reactions drop out: of the torques
``tau`` of the drives, whose rates are ``G v``,

    F'G' tau = F' (M a + nle - f)                                       (paper 4, eqs. 8-9)

is all that is left, whether reactions are unique or not. What more drives than degrees of freedom
leave open is decided by limits and weights; where limits forbid the motion, by how much, and how
much slower it would be allowed, is part of the answer. What drives can do elsewhere in the
workspace is in `capability`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..assembly.search import null_space
from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array
from ..constraints.rows import Locked, Row
from ..errors import BadValue, InconsistentVelocity, shown
from ..linalg.box import BoundedSolutions, Bounds
from ..model.mechanism import Mechanism, require_robot
from ..regularization.sampled_redundancy import with_all_rows
from ..tables.number_format import numbers
from ..tables.report import Cell, Report, Reported, Table
from ..tolerances import CONSISTENT, SAME
from .equations import EquationsOfMotion
from .forces import Force
from .joint_axes import JointAxes, Limits
from .losses import FrictionAxis, JointFriction, friction_axes, losses_of_file

_REFITS = 50
"""Times that the time scale of a motion is looked for with forces that do not follow a parabola."""


@public
@dataclass(frozen=True, eq=False)
class DriveLoad(Reported):
    """Torques of the drives of a robot, at a state or along a motion.

    Along a motion arrays have a further, leading axis for the states.

    Args:
        drives: name of each axis that is driven: its joint ("elbow", "base.wz").
        units: unit of each torque.
        torque: torques or forces of the drives [N m, N], shape (k,). Where limits forbid the motion
            they exceed the limits by the least fraction of them.
        rate: rates of the drives [rad/s, m/s], shape (k,).
        bounds: lower and upper limits of the torques.
        slowdown: by how much longer the motion has to take to be within the limits: 1 if it is,
            inf if no slower motion is.
    """

    drives: tuple[str, ...]
    units: tuple[str, ...]
    torque: Array
    rate: Array
    bounds: Bounds
    slowdown: float

    @property
    def feasible(self) -> bool:
        """Whether the drives can make the motion."""
        return self.slowdown == 1.0

    @property
    def power(self) -> Array:
        """Power that each drive gives to the robot [W], in the shape of the torques."""
        return self.torque * self.rate

    @property
    def excess(self) -> Array:
        """How far torques are beyond their limits, with their sign, in the shape of the torques."""
        beyond = self.torque - np.clip(self.torque, *self.bounds)
        return np.where(np.abs(beyond) > SAME * self.bounds.size, beyond, 0.0)

    @property
    def exceeded(self) -> dict[str, float]:
        """Drives whose limits are exceeded, and by how much at most [N m, N]."""
        worst = np.abs(self.excess).reshape(-1, len(self.drives)).max(axis=0, initial=0.0)
        return {drive: float(x) for drive, x in zip(self.drives, worst, strict=True) if x > 0.0}

    def __rich__(self) -> Report:
        k = len(self.drives)
        torque, power = (np.abs(x).reshape(-1, k) for x in (self.torque, self.power))
        limit = np.maximum(*np.abs(self.bounds))
        used = np.array([100.0, 1.0, 1.0])[:, None] * (
            torque.max(axis=0) / limit,
            np.sqrt(np.mean(torque**2, axis=0)),
            power.max(axis=0),
        )
        exceeded = [self.exceeded.get(drive) for drive in self.drives]
        columns = (torque.max(axis=0), limit, used[0], exceeded, used[1], used[2])
        texts = [numbers(column, most=1) for column in columns]
        rows = [
            [name, unit, *(Cell(text, "bad" if beyond else "") for text in cells)]
            for name, unit, beyond, *cells in zip(
                self.drives, self.units, exceeded, *texts, strict=True
            )
        ]
        heads = ("<drive", "<unit", "largest torque", "limit", "used [%]", "beyond", "rms torque")
        end = f"The motion has to take {self.slowdown:.4g} times as long to be within the limits."
        if self.feasible:
            end = "The drives can make this motion."
        elif self.slowdown == np.inf:
            end = "However slow the motion is, it is not within the limits."
        return Report.of("Drives", [Table.of("Loads", (*heads, "largest power [W]"), rows)], end)


@public
class DriveTorques:
    """What drives have to give for motions of a robot: prepared once, called for every state.

    Dry friction opposes the motion, of an axis at rest the motion that begins; while nothing moves
    nor begins to, it is zero. A joint that is locked needs no torque. States may be given in any
    order and from any thread.

    Args:
        robot: the mechanism.
        actuated: names of the driven joints, also of ones that close loops; those of the robot by
            default.
        limits: limits of torques by joint [N m, N], instead of those of the robot's file. A limit
            of zero in a file is none.
        weights: what a squared torque costs by joint, > 0; 1 by default. It matters where there are
            more drives than degrees of freedom.
        rows: constraint rows beyond loops and couplings.
        locks: locked joints, such as ``mode.locks``.
        forces: what acts on the robot besides gravity and drives.
        losses: let the damping and dry friction of the robot's file act.
    """

    def __init__(
        self,
        robot: Mechanism,
        *,
        actuated: Sequence[str] | None = None,
        limits: Limits | None = None,
        weights: Mapping[str, float] | None = None,
        rows: Sequence[Row] = (),
        locks: Sequence[str | Locked] = (),
        forces: Sequence[Force] = (),
        losses: bool = True,
    ) -> None:
        require_robot(robot)
        self.robot = robot
        acting = [*forces, *(losses_of_file(robot) if losses else ())]
        dry = [x for x in acting if isinstance(x, JointFriction) and x.speed is None]
        self._friction = _DryFriction(robot, friction_axes(robot, dry))
        smooth = [force for force in acting if not any(force is x for x in dry)]
        equations = EquationsOfMotion(with_all_rows(robot), rows=rows, locks=locks, forces=smooth)
        self.equations = equations
        self.axes = JointAxes(robot, robot.actuated if actuated is None else actuated)
        self.bounds = self.axes.limits("effort", limits or {})
        costs = self.axes.numbers(weights or {}, 1.0, "weight")
        if not ((costs > 0.0) & np.isfinite(costs)).all():
            raise BadValue(f"weights of drives are {shown(weights)}; they must be > 0 and finite")
        # Solutions are torques times the roots of their weights: the shortest one costs least.
        self._roots = np.sqrt(costs)
        self._scaled = Bounds(*(end * self._roots for end in self.bounds))
        size = np.where(np.isfinite(self.bounds), np.abs(self.bounds), 0.0).max(axis=0)
        self._stretch = np.where(size > 0.0, size, 1.0) * self._roots

    def __call__(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: float = 0.0) -> DriveLoad:
        """Torques at a state.

        Args:
            q: assembled configuration, shape (nq,).
            v: velocity that the rows allow, shape (nv,).
            a: acceleration that the rows allow, shape (nv,).
            t: time for forces and rows that depend on it [s].

        Raises:
            BadValue: the drives do not determine the motion, and it needs more than they give.
            InconsistentVelocity: the rows do not allow this velocity or acceleration.
        """
        demand = self.demand(q, v, a, t)
        return self._load(self._torque(demand), demand.rate, _slowdown([demand]))

    def unlimited(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: float = 0.0) -> Array:
        """Torques at a state without a look at limits, shape (k,); see `__call__`."""
        demand = self.demand(q, v, a, t)
        return demand.solutions.inverse @ demand.needed / self._roots

    def along(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: ArrayLike | None = None
    ) -> DriveLoad:
        """Torques along a motion, such as ``run.q, run.v, run.a``; it is slowed down as a whole.

        Args:
            q: configurations, shape (n, nq).
            v: velocities, shape (n, nv).
            a: accelerations, shape (n, nv).
            t: times, shape (n,), for forces and rows that depend on them; zero by default.
        """
        states = [np.atleast_2d(np.asarray(x, dtype=float)) for x in (q, v, a)]
        count = len(states[0])
        times = np.zeros(count) if t is None else flat_numbers(t, "t", count)
        if any(len(x) != count for x in states):
            lengths = ", ".join(str(len(x)) for x in states)
            raise BadValue(f"q, v and a have {lengths} states; give one of each for every instant")
        demands = [self.demand(*state) for state in zip(*states, times.tolist(), strict=True)]
        shape = (count, len(self.axes.names))
        torque = np.array([self._torque(demand) for demand in demands]).reshape(shape)
        rate = np.array([demand.rate for demand in demands]).reshape(shape)
        return self._load(torque, rate, _slowdown(demands))

    def demand(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: float = 0.0) -> Demand:
        """What a motion asks of the drives at a state; see `__call__`."""
        q, v = self.robot.checked_configuration(q), self.robot.checked_velocity(v)
        a, t = self.robot.checked_velocity(a), float(flat_numbers(t, "t", 1)[0])
        equations, model = self.equations, self.robot.model
        with self.robot.workspace() as data:
            J, b, gamma, force = equations.evaluate(data, t, q, v)
            friction = self._friction.torque(data, v, a)
            G = self.axes.jacobian(data)
            load = pin.rnea(model, data, q, v, a) - force - friction
        J = self._allowed(J, b, gamma, v, a)
        F = null_space(J)
        solutions = BoundedSolutions((G @ F).T / self._roots)
        needed = F.T @ load
        missing = float(np.abs(solutions.outside(needed)).max(initial=0.0))
        if missing > CONSISTENT * float(np.abs(load).max(initial=0.0)):
            raise self._undetermined(F.shape[1])
        state = t, q, v, a
        return Demand(equations, state, F, friction, solutions, self._scaled, needed, G @ v)

    def _torque(self, demand: Demand) -> Array:
        """Torques of the drives; beyond their limits by as little as there must be."""
        x, within = demand.solved
        if not within:
            stretch = demand.solutions.least_stretch(demand.needed, self._scaled, self._stretch)
            x, _ = demand.solutions.solve(
                demand.needed, self._scaled.stretched(stretch * self._stretch)
            )
        return np.asarray(x / self._roots)

    def _load(self, torque: Array, rate: Array, slowdown: float) -> DriveLoad:
        return DriveLoad(self.axes.names, self.axes.units, torque, rate, self.bounds, slowdown)

    def _allowed(self, J: Array, b: Array, gamma: Array, v: Array, a: Array) -> Array:
        """Scaled rows, which must allow the velocity and the acceleration."""
        scale, name = self.equations.rows.scale, self.robot.name
        size = max(1.0, float(np.abs(v).max(initial=0.0)) ** 2, float(np.abs(a).max(initial=0.0)))
        for label, rest in (("velocity", J @ v - b), ("acceleration", J @ a + gamma)):
            left = math.hypot(*(scale * rest).tolist())
            if left > CONSISTENT * size:
                text = f"the rows do not allow this {label}; they are violated by {left:.3g}"
                raise InconsistentVelocity(f"robot '{name}': {text}", v=v, residual=left)
        return np.asarray(scale[:, None] * J)

    def _undetermined(self, dof: int) -> BadValue:
        return BadValue(
            f"robot '{self.robot.name}' has {dof} degrees of freedom here, which the actuated "
            f"joints {', '.join(map(repr, self.axes.joints))} do not determine, and "
            "the motion needs more; name more joints in actuated=, or give the others the "
            "accelerations that they have by themselves"
        )


@dataclass(frozen=True, eq=False)
class Demand:
    """What a motion asks of drives at a state, and whether their limits allow it.

    In coordinates ``x`` whose squares cost the same: torques times the roots of their weights.

    Args:
        equations: the robot with all that acts smoothly.
        state: time, configuration, velocity, acceleration.
        F: orthonormal columns of the motions that the rows allow, shape (nv, dof).
        friction: generalised force of dry friction, however fast the motion is.
        solutions: of ``A x = F' load``.
        bounds: of ``x``.
        needed: ``F' load``, shape (dof,).
        rate: rates of the drives.
    """

    equations: EquationsOfMotion
    state: tuple[float, Array, Array, Array]
    F: Array
    friction: Array
    solutions: BoundedSolutions
    bounds: Bounds
    needed: Array
    rate: Array

    @cached_property
    def solved(self) -> tuple[Array, bool]:
        """The shortest solution, and whether it is within the bounds."""
        x, facet = self.solutions.solve(self.needed, self.bounds)
        return x, facet is None

    def last_within(self, start: float) -> float | None:
        """The largest rate of time from ``start`` down to 0 that the limits allow.

        At rate ``s`` velocities are ``s v`` and accelerations ``s^2 a``. With forces that are
        linear in velocities the load is a parabola in ``s``; with others nearly, on an interval
        that shrinks until it ends where the limits allow.
        """
        s = start
        if start == 1.0 and self.solved[1]:
            return s
        for _ in range(_REFITS):
            needed = self._needed(s)
            if self.solutions.solve(needed, self.bounds)[1] is None:
                break
            rest, half = self._needed(0.0), self._needed(0.5 * s)
            slope = (4.0 * half - 3.0 * rest - needed) / s
            curve = 2.0 * (needed - 2.0 * half + rest) / s**2
            path = np.column_stack([rest, slope, curve])
            last = self.solutions.last_within(path, self.bounds, s)
            if not last:
                return None
            s = last
        return s

    def _needed(self, s: float) -> Array:
        """``F' load`` at a rate of time."""
        t, q, v, a = self.state
        v, a, robot = s * v, s**2 * a, self.equations.robot
        force = self.equations.force(t, q, v) + self.friction
        with robot.workspace() as data:
            return np.asarray(self.F.T @ (pin.rnea(robot.model, data, q, v, a) - force))


def _slowdown(demands: Sequence[Demand]) -> float:
    """By how much longer a motion has to take so that limits allow all of it."""
    s, before = 1.0, np.inf
    while s < before:  # where a state allows less, another may not allow that
        before = s
        for demand in demands:
            last = demand.last_within(s)
            if last is None:
                return np.inf
            s = last
    return 1.0 / s


class _DryFriction:
    """Dry friction that opposes a motion, or the one that begins."""

    def __init__(self, robot: Mechanism, axes: Sequence[FrictionAxis]) -> None:
        self._nv = robot.nv
        own = [axis for axis in axes if axis.column is not None]
        self._columns = np.array([axis.column for axis in own], dtype=np.intp)
        self._limits = np.array([axis.limit for axis in own])
        self._others = [axis for axis in axes if axis.column is None]

    def torque(self, data: pin.Data, v: Array, a: Array) -> Array:
        """Generalised force, shape (nv,), at the kinematics in ``data``."""
        force = np.zeros(self._nv)
        at = self._columns
        force[at] = -self._limits * _directions(v[at], a[at])
        for axis in self._others:
            J = axis.motion.jacobian(data)[axis.place]
            # At rest an axis has no acceleration but that of the joints.
            force -= axis.limit * _directions(J @ v, J @ a) * J
        return force


def _directions(rates: ArrayLike, accelerations: ArrayLike) -> Array:
    """Signs of rates [rad/s, m/s], or of accelerations where there are none."""
    begins = np.where(np.abs(accelerations) > SAME, np.sign(accelerations), 0.0)
    return np.where(np.abs(rates) > SAME, np.sign(rates), begins)
