"""Derivatives of a robot in a mode, and what follows: linear systems, charts, equilibria.

Independent coordinates are chosen among the robot's own by optimal partitioning. Near an operating
point ``q0, v0`` the others follow from the rows: with ``J v = b`` and the chosen ``I``, ``D``

    dq = F dx,   J F = 0,  F_I = 1          dv = F du + G dq,   J G = -d(J v - b)/dq,  G_I = 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import ArrayLike, NDArray

from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array
from ..constraints.relative_motion import JointMotion
from ..constraints.rows import Row
from ..dynamics import EquationsOfMotion
from ..dynamics.derivatives import (
    Derivatives,
    JumpDerivatives,
    derivatives_at,
    joint_chain,
    jump_derivatives_at,
)
from ..dynamics.forces import Force
from ..dynamics.independence import dependent_coordinates
from ..dynamics.inverse import group_bracket
from ..dynamics.parameters import Parameter
from ..errors import BadValue, LoopNotClosed, PinloopWarning
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..model.tree import coordinate_names
from ..tolerances import BALANCED, LEAST_SQUARES
from .modes import ModalSystem, Mode
from .stabilization import Projection, Projector

_ITERATIONS = 50
_LARGEST_STEP = 0.3
"""Of Newton's method for equilibria [rad, m]."""
_FREE = Mode()


@public
def derivatives(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    mode: Mode = _FREE,
    rows: Sequence[Row] = (),
    forces: Sequence[Force] = (),
    parameters: Sequence[Parameter] = (),
) -> Derivatives:
    """Derivatives of the acceleration and of the reactions of a robot with loops and locks.

    Exact, by implicit differentiation; those of rows and forces of your own that do not know their
    own slopes are by differences of fourth order.

    Args:
        robot: the mechanism.
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        tau: generalised forces besides ``forces``, shape (nv,); none by default.
        mode: what is locked and open.
        rows: constraint rows beyond loops and couplings.
        forces: what acts on the robot besides gravity.
        parameters: quantities to differentiate by, see `pinloop.parameters`.

    Forces and rows that depend on time are taken at time 0; `derivatives_at` takes any.
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    tau = None if tau is None else flat_numbers(tau, "tau", robot.nv)
    equations = _equations(robot, q, v, (mode, rows, forces, 0.0))
    return derivatives_at(equations, 0.0, q, v, tau, parameters)


@public
def transition_derivatives(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    after: Mode,
    *,
    rows: Sequence[Row] = (),
    parameters: Sequence[Parameter] = (),
) -> JumpDerivatives:
    """Derivatives of the velocity after a change of mode, and of its impulses.

    Args:
        robot: the mechanism.
        q: assembled configuration, shape (nq,).
        v: velocity before, shape (nv,).
        after: mode after; what is locked and open then decides alone, see `pinloop.transition`.
        rows: constraint rows beyond loops and couplings.
        parameters: quantities to differentiate by, see `pinloop.parameters`.
    """
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    equations = _equations(robot, q, v, (after, rows, (), 0.0))
    return jump_derivatives_at(equations, 0.0, q, v, parameters)


_Setup = tuple[Mode, Sequence[Row], Sequence[Force], float]
"""Mode, rows, forces and time."""


def _equations(robot: Mechanism, q: Array, v: Array, setup: _Setup) -> EquationsOfMotion:
    """Equations of motion in a mode, whose rank is that around a state; warns where it is not."""
    mode, rows, forces, t = setup
    if not isinstance(mode, Mode):
        raise BadValue(f"{mode!r} is no mode; give pl.Mode(locks=('elbow',))")
    system = ModalSystem(robot, rows=rows, forces=forces)
    equations = system.begin(system.renewed(mode, q), t, q, v)
    J, scale = equations.terms(t, q, v)[0], equations.rows.scale
    here = Saddle(equations.mass(q), J, scale, max_rank=equations.max_rank).rank
    if equations.rank is not None and here < equations.rank:
        warnings.warn(
            f"robot '{robot.name}' is in a singular pose: its constraints have rank {here} here "
            f"and {equations.rank} around; accelerations jump there, and derivatives say nothing "
            "of the motion",
            PinloopWarning,
            stacklevel=4,
        )
    return equations


@public
@dataclass(frozen=True, eq=False)
class Chart:
    """Independent coordinates of the states that the rows allow, around one of them.

    Args:
        q0: configuration in the middle, shape (nq,).
        v0: velocity in the middle, shape (nv,).
        positions: velocity coordinates along which positions are counted, in order.
        rates: those whose velocities are independent; more or others if rows are non-holonomic.
        names: name of each coordinate ("elbow", "base.vx"), positions first.
    """

    q0: Array
    v0: Array
    positions: NDArray[np.intp]
    rates: NDArray[np.intp]
    names: tuple[str, ...]
    equations: EquationsOfMotion
    t: float

    def state(self, x: ArrayLike) -> tuple[Array, Array]:
        """Configuration and velocity at coordinates, which are zero in the middle.

        Raises:
            LoopNotClosed: the loops cannot be closed there.
        """
        x, robot = flat_numbers(x, "x", len(self.names)), self.equations.robot
        count, step = len(self.positions), np.zeros(robot.nv)
        step[self.positions] = x[:count]
        q = self._closed(pin.integrate(robot.model, self.q0, step))
        v = self.v0.copy()
        v[self.rates] += x[count:]
        return q, self._allowed(q, v)

    def coordinates(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Coordinates of a state."""
        robot = self.equations.robot
        q, v = robot.checked_configuration(q), robot.checked_velocity(v)
        step = pin.difference(robot.model, self.q0, q)
        return np.append(step[self.positions], (v - self.v0)[self.rates])

    def _closed(self, q: Array) -> Array:
        """The configuration with the same independent coordinates whose loops are closed."""
        equations = self.equations
        projector = Projector(equations, Projection())
        held = np.zeros(equations.robot.nv, dtype=bool)
        held[self.positions] = held[equations.rows.locked] = True
        projector.lock(held)
        try:
            return projector.position(self.t, q)[0]
        except BadValue as error:
            residual = equations.residual(self.t, q)[: len(equations.rows.loops)]
            raise LoopNotClosed(
                f"robot '{equations.robot.name}' has no closed configuration at these coordinates "
                "of a chart; stay nearer to its middle",
                q=q,
                residuals=equations.rows.loops.by_name(residual),
            ) from error

    def _allowed(self, q: Array, v: Array) -> Array:
        """The velocity with the same independent rates that the rows allow."""
        J, b, _ = self.equations.closure(self.t, q)
        dependent = np.setdiff1d(np.arange(len(v)), self.rates)
        rows = self.equations.rows.scale[:, None] * J
        missing = self.equations.rows.scale * (b - J @ v)
        v[dependent] += np.linalg.lstsq(rows[:, dependent], missing, rcond=LEAST_SQUARES)[0]
        return v


@public
@dataclass(frozen=True, eq=False)
class LinearSystem:
    """``dx/dt = f0 + A x + B u``, ``y = y0 + C x + D u`` around an operating point.

    Args:
        A: shape (states, states).
        B: shape (states, inputs).
        C: shape (outputs, states).
        D: shape (outputs, inputs).
        f0: rate of the states in the middle; zero but for the rates of positions in an equilibrium.
        chart: what the states are; it takes them to configurations and velocities.
        inputs: name of each input: joints, whose torques are counted from those in the middle.
        outputs: name of each output.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    f0: Array
    chart: Chart
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @cached_property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of ``A`` [1/s], the slowest first."""
        values = np.linalg.eigvals(self.A).astype(complex)
        return values[np.argsort(np.abs(values), kind="stable")]

    def state_space(self) -> Any:
        """The same as a `scipy.signal.StateSpace`."""
        return scipy.signal.StateSpace(self.A, self.B, self.C, self.D)


@public
def linearize(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    mode: Mode = _FREE,
    rows: Sequence[Row] = (),
    forces: Sequence[Force] = (),
    t: float = 0.0,
) -> LinearSystem:
    """Linear system of a robot around a state, in independent coordinates.

    Damping of the robot's file acts if ``forces`` has a `JointDamping`; dry friction has no slope.

    Args:
        robot: the mechanism.
        q: assembled configuration, shape (nq,).
        v: velocity that the rows allow, shape (nv,); at rest by default.
        tau: generalised forces besides ``forces``, shape (nv,).
        inputs: joints whose torques are inputs; the actuated ones by default.
        outputs: joints, for their coordinates; ``d <joint>`` for their rates; bodies or frames, for
            their displacement and turn in the axes of the world, six each. The states by default.
        mode: what is locked and open.
        rows: constraint rows beyond loops and couplings.
        forces: what acts on the robot besides gravity.
        t: time for forces and rows that depend on it [s].
    """
    q = robot.checked_configuration(q)
    v = np.zeros(robot.nv) if v is None else robot.checked_velocity(v)
    tau = None if tau is None else flat_numbers(tau, "tau", robot.nv)
    equations = _equations(robot, q, v, (mode, rows, forces, t))
    slopes = derivatives_at(equations, t, q, v, tau)
    chart = make_chart(equations, t, q, v, slopes)
    F, dv_x, dv_u = _tangent(chart, slopes)
    bracket = [0.5 * group_bracket(robot, column, v) for column in F.T]
    rates_x = dv_x + np.array(bracket).reshape(-1, robot.nv).T
    positions, rates = chart.positions, chart.rates
    A = np.block([
        [rates_x[positions], dv_u[positions]],
        [(slopes.ddq_dq @ F + slopes.ddq_dv @ dv_x)[rates], (slopes.ddq_dv @ dv_u)[rates]],
    ])  # fmt: skip
    names = tuple(robot.actuated if inputs is None else inputs)
    columns, labels = name_columns(robot, names)
    B = np.vstack([np.zeros((len(positions), len(columns))), slopes.ddq_dtau[rates][:, columns]])
    if outputs is None:
        C, seen = np.eye(len(A)), chart.names
    else:
        tree = MovingTree(joint_chain(robot), q, v, slopes.ddq)
        parts = [_output(equations, name, tree, (F, dv_x, dv_u)) for name in outputs]
        C = np.vstack([np.zeros((0, len(A))), *(rows_of for rows_of, _ in parts)])
        seen = tuple(label for _, names_of in parts for label in names_of)
    f0 = np.append(v[positions], slopes.ddq[rates])
    return LinearSystem(A, B, C, np.zeros((len(C), B.shape[1])), f0, chart, labels, seen)


def name_columns(robot: Mechanism, joints: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Velocity coordinates of joints, and their names."""
    columns, names = [], []
    for joint in joints:
        at = robot.coordinates(joint).v
        columns += [*range(at.start, at.stop)]
        axes = coordinate_names(robot.tree, joint)
        names += [joint] if len(axes) == 1 else [f"{joint}.{axis}" for axis in axes]
    return columns, tuple(names)


def make_chart(
    equations: EquationsOfMotion,
    t: float,
    q: Array,
    v: Array,
    slopes: Derivatives,
    held: NDArray[np.bool_] | None = None,
) -> Chart:
    """The independent coordinates that are best at a state; ``held``: rows that hold rates."""
    robot, rows, M = equations.robot, equations.rows, equations.mass(q)
    J, free = rows.scale[:, None] * slopes.J, []
    for chosen in (J[position_rows(equations)], J if held is None else J[held]):
        rank = equations.max_rank if len(chosen) == len(J) else None
        dependent, _ = dependent_coordinates(M, chosen, max_rank=rank)
        free.append(np.setdiff1d(np.arange(robot.nv), dependent))
    columns, names = name_columns(robot, robot.joints)
    name_of = dict(zip(columns, names, strict=True))
    labels = [name_of[k] for k in free[0]] + [f"d {name_of[k]}" for k in free[1]]
    return Chart(q, v, free[0], free[1], tuple(labels), equations, t)


def position_rows(equations: EquationsOfMotion) -> NDArray[np.bool_]:
    """Which rows restrict positions: locks do, too, though some have no residual."""
    rows = equations.rows
    locks = {lock.label for lock in rows.locks}
    held = [label in locks or label.rpartition(".")[0] in locks for label in rows.labels]
    return np.asarray(rows.holonomic | np.array(held, dtype=bool))


def _tangent(chart: Chart, slopes: Derivatives) -> tuple[Array, Array, Array]:
    """``dq/dx``, ``dv/dx`` and ``dv/du`` for positions ``x`` and rates ``u``."""
    scale = chart.equations.rows.scale[:, None]
    J, held = scale * slopes.J, position_rows(chart.equations)
    count, rates = np.eye(len(chart.positions)), np.eye(len(chart.rates))
    F = follow_rows(J[held], chart.positions, count, np.zeros((int(held.sum()), len(count))))
    turning = -scale * slopes.violation_dq @ F
    dv_x = follow_rows(J, chart.rates, np.zeros((len(rates), len(count))), turning)
    return F, dv_x, follow_rows(J, chart.rates, rates, np.zeros((len(J), len(rates))))


def follow_rows(J: Array, chosen: NDArray[np.intp], given: Array, values: Array) -> Array:
    """All coordinates with ``J x = values``, of which some are given."""
    whole = np.zeros((J.shape[1], given.shape[1]))
    whole[chosen] = given
    others = np.setdiff1d(np.arange(len(whole)), chosen)
    missing = values - J @ whole
    whole[others] = np.linalg.lstsq(J[:, others], missing, rcond=LEAST_SQUARES)[0]
    return whole


def _output(
    equations: EquationsOfMotion, name: str, tree: MovingTree, tangent: tuple[Array, Array, Array]
) -> tuple[Array, list[str]]:
    """Rows of ``C`` of an output, and their names."""
    robot, (F, dv_x, dv_u) = equations.robot, tangent
    joint = name.removeprefix("d ")
    if joint in robot.joints or any(joint == loop.name for loop in robot.loops):
        motion = JointMotion(robot, joint)
        several = len(motion.axes) > 1
        labels = [f"{name}.{axis}" for axis in motion.axes] if several else [name]
        rows = motion.slopes(tree, np.zeros(len(motion.axes)))
        if joint == name:
            return np.hstack([rows.J @ F, np.zeros((len(rows.J), dv_u.shape[1]))]), labels
        return np.hstack([rows.rate_q @ F + rows.J @ dv_x, rows.J @ dv_u]), labels
    frame = robot.frame_id(name)
    linear = tree.point(frame, np.zeros(3))[1]
    angular = (tree.moves(frame)[:, None] * tree.twists[:, 3:]).T
    rows_of = np.vstack([linear, angular])[:, tree.chain.columns] @ F
    labels = [f"{name}: {axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")]
    return np.hstack([rows_of, np.zeros((6, dv_u.shape[1]))]), labels


@public
def equilibrium(
    robot: Mechanism,
    q: ArrayLike,
    tau: ArrayLike | None = None,
    *,
    mode: Mode = _FREE,
    rows: Sequence[Row] = (),
    forces: Sequence[Force] = (),
    t: float = 0.0,
) -> Array:
    """The configuration near another one at which the robot stays at rest, stable or not.

    Newton's method on the accelerations of the independent coordinates, which are zero there.

    Args:
        robot: the mechanism.
        q: assembled configuration to start from, shape (nq,).
        tau: generalised forces besides ``forces``, shape (nv,).
        mode: what is locked and open.
        rows: constraint rows beyond loops and couplings.
        forces: what acts on the robot besides gravity.
        t: time for forces and rows that depend on it [s].

    Raises:
        BadValue: there is none that Newton's method finds from here.
    """
    q, rest = robot.checked_configuration(q), np.zeros(robot.nv)
    for _ in range(_ITERATIONS):
        system = linearize(robot, q, rest, tau, mode=mode, rows=rows, forces=forces, t=t)
        count = len(system.chart.positions)
        left, slope = system.f0[count:], system.A[count:, :count]
        step = np.linalg.lstsq(slope, -left, rcond=LEAST_SQUARES)[0]
        size = float(np.abs(step).max(initial=0.0))
        if size < BALANCED:
            return q
        x = np.append(step * min(1.0, _LARGEST_STEP / size), np.zeros(len(system.A) - count))
        q = system.chart.state(x)[0]
    raise BadValue(
        f"robot '{robot.name}' finds no equilibrium near this configuration: after {_ITERATIONS} "
        f"steps the next one would be {size:.3g} rad or m; start from another one, or add forces "
        "that hold it"
    )
