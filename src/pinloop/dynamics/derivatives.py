"""Derivatives of accelerations and reactions, by implicit differentiation of the saddle problem.

What holds at each state,

    M a + nle - tau - J' lam = 0,      J a + gamma = 0,

is differentiated at fixed ``a`` and ``lam``; the changes of both then solve the same saddle problem
with other right-hand sides. Where rows depend on each other ``lam`` is not unique, but any of them
gives the right change of ``a``, as long as the rank does not change: then ``J'(q) n(q) = 0`` for
every dependency ``n``, so that ``dJ' n = -J' dn`` is a reaction, too.

Off the manifold such rows contradict each other, or depend on each other no more; see
`solved_system`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.row_slopes import RowSlopes
from ..errors import NotFinite, UnknownName
from ..model.mechanism import Mechanism
from ..model.moving_tree import JointChain, MovingTree
from ..model.workspace import remembered
from .equations import EquationsOfMotion
from .native_derivatives import NativeSlopes, native_slopes
from .parameters import Parameter, Placement
from .solved_system import SolvedSystem


@public
@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives at one state, in tangent coordinates: those of velocities.

    Args:
        ddq: acceleration, shape (nv,).
        ddq_dq: its derivative by positions, shape (nv, nv).
        ddq_dv: by velocities, shape (nv, nv).
        ddq_dtau: by generalised forces, shape (nv, nv).
        ddq_dp: by parameters, shape (nv, parameters).
        reactions: reaction of each row, locks last [N, N m], shape (rows,).
        reactions_dq: its derivatives, shape (rows, nv); no numbers (NaN) in rows whose reactions
            are not unique.
        reactions_dv: by velocities, likewise.
        reactions_dtau: by generalised forces, likewise.
        reactions_dp: by parameters, likewise.
        violation_dq: derivative of how fast the rows are violated, ``J v - b``, shape (rows, nv).
        violation_dp: by parameters, shape (rows, parameters).
        J: the same by velocities; where loops are closed also that of positions by positions.
        closure_dp: by parameters, how far closed loops open, shape (rows, parameters): what moves
            a joint needs other positions, ``J dq + closure_dp dp = 0``.
        labels: label of each row.
        parameters: name of each parameter.
    """

    ddq: Array
    ddq_dq: Array
    ddq_dv: Array
    ddq_dtau: Array
    ddq_dp: Array
    reactions: Array
    reactions_dq: Array
    reactions_dv: Array
    reactions_dtau: Array
    reactions_dp: Array
    violation_dq: Array
    violation_dp: Array
    J: Array
    closure_dp: Array
    labels: tuple[str, ...]
    parameters: tuple[str, ...]


@public
@dataclass(frozen=True, eq=False)
class JumpDerivatives:
    """Derivatives of a jump of the velocity to what the rows allow, in tangent coordinates.

    Args:
        v_plus: velocity after it, shape (nv,).
        v_plus_dq: its derivative by positions, shape (nv, nv).
        v_plus_dv: by the velocity before, shape (nv, nv).
        v_plus_dp: by parameters, shape (nv, parameters).
        impulse: impulse of each row [N s, N m s], shape (rows,).
        impulse_dq: its derivatives, shape (rows, nv); NaN in rows whose impulses are not unique.
        impulse_dv: by the velocity before, likewise.
        impulse_dp: by parameters, likewise.
        labels: label of each row.
        parameters: name of each parameter.
    """

    v_plus: Array
    v_plus_dq: Array
    v_plus_dv: Array
    v_plus_dp: Array
    impulse: Array
    impulse_dq: Array
    impulse_dv: Array
    impulse_dp: Array
    labels: tuple[str, ...]
    parameters: tuple[str, ...]


def derivatives_at(
    equations: EquationsOfMotion,
    t: float,
    q: Array,
    v: Array,
    tau: Array | None = None,
    parameters: Sequence[Parameter] = (),
) -> Derivatives:
    """Derivatives of a robot's accelerations and reactions at a state.

    Args:
        equations: its equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        tau: generalised forces besides those of the equations, shape (nv,).
        parameters: further quantities to differentiate by.

    Raises:
        NotFinite: something has no derivative here.
    """
    inputs, n = _Inputs(equations, parameters), len(v)
    if not any(parameter.places for parameter in parameters):
        acting = equations.force(t, q, v) if equations.forces else np.zeros(n)
        native = native_slopes(equations, t, q, v, acting if tau is None else acting + tau)
        if native is not None:
            return _by_kernel(equations, inputs, (t, q, v), native)
    M, f, J, gamma, _ = equations.system(t, q, v)
    solved = SolvedSystem(equations, M, f if tau is None else f + tau, J, -gamma)
    a = solved.x
    tree, row, row_p = inputs.row_slopes((t, q, v, a), solved.multipliers)
    load_q, load_v = tree.load_slopes()
    force_q, force_v = equations.force_slopes(tree, t, q, v)
    missing_q, no_rows = inputs.of_own(load_q - row.force_q - force_q), np.zeros((len(row.J), n))
    missing = [inputs.own(load_v - force_v), -np.eye(n)]
    values = [inputs.by_own(row.acceleration_v), no_rows]
    ddq, reactions = solved.changes(
        inputs.side_by_side(missing_q, missing, inputs.loads(t, q, v, a) - row_p.force),
        inputs.side_by_side(row.acceleration_q, values, row_p.acceleration),
        partial(_turning_slopes, inputs, (t, q), 2 * n),
    )
    violation, opened = np.zeros((2, len(equations.rows), ddq.shape[1] - 2 * n))
    violation[: len(row.J)] = inputs.side_by_side(row.rate_q, [], row_p.rate - inputs.values())
    opened[: len(row.J)] = inputs.side_by_side(row.J, [], 0.0 * row_p.rate)
    return _assembled(
        equations, inputs, t, (a, solved.reactions), (ddq, reactions), (violation, opened, J)
    )


def _by_kernel(
    equations: EquationsOfMotion,
    inputs: _Inputs,
    state: tuple[float, Array, Array],
    native: NativeSlopes,
) -> Derivatives:
    """The same by what the kernel gives: to it, forces and parameters are torques."""
    (t, q, v), n = state, len(native.a)
    ddq, reactions = native.a_by, native.reactions_by
    if inputs.labels:
        loads = inputs.loads(t, q, v, native.a)
        ddq, reactions = (np.hstack([part, -part[:, 2 * n :] @ loads]) for part in (ddq, reactions))
    if equations.forces:
        tree = MovingTree(inputs.chain, q, v, native.a)
        for k, slope in enumerate(equations.force_slopes(tree, t, q, v)):
            for part in (ddq, reactions):
                part[:, k * n : (k + 1) * n] += part[:, 2 * n : 3 * n] @ inputs.own(slope)
    violation, opened = np.zeros((2, len(native.J), ddq.shape[1] - 2 * n))
    violation[:, :n], opened[:, :n] = native.rate_q, native.J
    rows = violation, opened, native.J
    return _assembled(equations, inputs, t, (native.a, native.reactions), (ddq, reactions), rows)


def _assembled(
    equations: EquationsOfMotion,
    inputs: _Inputs,
    t: float,
    values: tuple[Array, Array],
    changes: tuple[Array, Array],
    rows: tuple[Array, Array, Array],
) -> Derivatives:
    """Acceleration and reactions, their changes, and rates and opening of rows, part by part."""
    (a, reactions), (by, reactions_by), (violation, opened, J) = values, changes, rows
    n = len(a)
    if not np.isfinite(by).all():
        raise NotFinite(f"robot '{equations.robot.name}' has no derivatives at t = {t:.6g} s")
    return Derivatives(
        ddq=a,
        ddq_dq=by[:, :n],
        ddq_dv=by[:, n : 2 * n],
        ddq_dtau=by[:, 2 * n : 3 * n],
        ddq_dp=by[:, 3 * n :],
        reactions=reactions,
        reactions_dq=reactions_by[:, :n],
        reactions_dv=reactions_by[:, n : 2 * n],
        reactions_dtau=reactions_by[:, 2 * n : 3 * n],
        reactions_dp=reactions_by[:, 3 * n :],
        violation_dq=violation[:, :n],
        violation_dp=violation[:, n:],
        J=J,
        closure_dp=opened[:, n:],
        labels=equations.rows.labels,
        parameters=inputs.labels,
    )


def acceleration_at(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, tau: Array
) -> Array:
    """The acceleration that `derivatives_at` differentiates, shape (nv,).

    Faster solvers agree with it where the loops are closed, and may not where they are open.

    Args:
        equations: its equations of motion.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        tau: generalised forces besides those of the equations, shape (nv,).
    """
    M, f, J, gamma, _ = equations.system(t, q, v)
    return SolvedSystem(equations, M, f + tau, J, -gamma).x


def jump_derivatives_at(
    equations: EquationsOfMotion, t: float, q: Array, v: Array, parameters: Sequence[Parameter] = ()
) -> JumpDerivatives:
    """Derivatives of the velocity that rows leave, ``M (v+ - v) = J' impulse``, ``J v+ = b``.

    Args:
        equations: equations of motion after the jump.
        t: time [s].
        q: configuration, shape (nq,).
        v: velocity before, shape (nv,).
        parameters: further quantities to differentiate by.

    Raises:
        NotFinite: something has no derivative here.
    """
    M, (J, b, _), n = equations.mass(q), equations.terms(t, q, v), len(v)
    solved = SolvedSystem(equations, M, M @ v, J, b)
    inputs, x = _Inputs(equations, parameters), (solved.x, solved.multipliers)
    missing, rates = inputs.momentum_slopes((t, q, solved.x - v), x, -M)
    rates[:, 2 * n :] -= inputs.values()
    v_plus, impulses = solved.changes(
        missing,
        rates,
        partial(_turning_slopes, inputs, (t, q), n),
    )
    if not np.isfinite(v_plus).all():
        raise NotFinite(f"robot '{equations.robot.name}' has no derivatives at t = {t:.6g} s")
    v_plus_dq, v_plus_dv, v_plus_dp = np.split(v_plus, [n, 2 * n], 1)
    impulse_dq, impulse_dv, impulse_dp = np.split(impulses, [n, 2 * n], 1)
    return JumpDerivatives(
        v_plus=solved.x,
        v_plus_dq=v_plus_dq,
        v_plus_dv=v_plus_dv,
        v_plus_dp=v_plus_dp,
        impulse=solved.reactions,
        impulse_dq=impulse_dq,
        impulse_dv=impulse_dv,
        impulse_dp=impulse_dp,
        labels=equations.rows.labels,
        parameters=inputs.labels,
    )


def _turning_slopes(
    inputs: _Inputs, at: tuple[float, Array], others: int, lam: Array, x: Array
) -> tuple[Array, Array]:
    """Changes of ``J' lam - M x`` and of ``J x``; ``others``: number of inputs that do neither."""
    missing, rates = inputs.momentum_slopes((*at, x), (x, lam), np.zeros((len(x), others)))
    return -missing, rates


class _RowChanges(NamedTuple):
    """Derivatives of ``J v``, ``J a + gamma`` and ``J' lam`` by parameters that are no places."""

    rate: Array
    acceleration: Array
    force: Array


class _Inputs:
    """What is differentiated by: coordinates of a chain, others, and parameters."""

    def __init__(self, equations: EquationsOfMotion, parameters: Sequence[Parameter]) -> None:
        self._equations, self._robot, at = equations, equations.robot, 0
        self._parameters: list[tuple[Parameter, slice]] = []
        self.labels: tuple[str, ...] = ()
        for parameter in parameters:
            self.labels += parameter.labels(self._robot)
            self._parameters.append((parameter, slice(at, at := len(self.labels))))
        places = tuple(name for parameter in parameters for name in parameter.places)
        self.chain = joint_chain(self._robot, places)
        self.columns = self.chain.columns
        self._plain = self.chain.model.nv == len(self.columns)  # in the same order

    def _elsewhere(self, place: str, twist: Array) -> Mechanism:
        """The robot with a joint or frame that a twist has moved; rows of loops as they are."""
        return Placement(place).of_robot(replace(self._robot, regularization=None), twist)

    def row_slopes(
        self, state: tuple[float, Array, Array, Array], lam: Array
    ) -> tuple[MovingTree, RowSlopes, _RowChanges]:
        """The chain in motion, and derivatives of rows by its coordinates and by parameters."""
        equations, (_, q, v, a) = self._equations, state
        tree = MovingTree(self.chain, q, v, a)
        J, acceleration = np.zeros((len(lam), len(v), len(self.labels))), self._no_rows()
        for parameter, own in self._parameters:
            if slopes := parameter.row_slopes(equations, (q, v, a)):
                J[..., own], acceleration[:, own] = slopes
        by_p = np.tensordot(v, J, (0, 1)), acceleration, np.tensordot(lam, J, 1)
        rows = equations.rows.slopes(tree, state, lam, self._elsewhere)
        return tree, rows, _RowChanges(*by_p)

    def loads(self, t: float, q: Array, v: Array, a: Array) -> Array:
        """Derivatives of ``M a + nle - tau`` by parameters that are no places."""
        loads = np.zeros((len(v), len(self.labels)))
        for parameter, own in self._parameters:
            loads[:, own] = parameter.loads(self._equations, t, q, v, a)
        return loads

    def values(self) -> Array:
        """Derivatives of ``b`` in ``J v = b`` by parameters."""
        values = self._no_rows()
        for parameter, own in self._parameters:
            values[:, own] = parameter.value_slopes(self._equations)
        return values

    def momentum_slopes(
        self, at: tuple[float, Array, Array], solution: tuple[Array, Array], others: Array
    ) -> tuple[Array, Array]:
        """Changes of ``M x - J' lam`` and of ``J v``.

        Args:
            at: time, configuration and ``x``.
            solution: ``v`` and ``lam``.
            others: changes of the first by inputs that are neither positions nor parameters.
        """
        (t, q, x), (v, lam), rest = at, solution, np.zeros(len(at[2]))
        _, row, row_p = self.row_slopes((t, q, v, rest), lam)
        # Of the loads at rest what is not weight.
        load, weight = (MovingTree(self.chain, q, rest, a).load_slopes()[0] for a in (x, rest))
        missing_p = self.loads(t, q, rest, x) - self.loads(t, q, rest, rest) - row_p.force
        missing_q, none = self.of_own(load - weight - row.force_q), (len(row.J), others.shape[1])
        return (
            self.side_by_side(missing_q, [others], missing_p),
            self.side_by_side(row.rate_q, [np.zeros(none)], row_p.rate),
        )

    def of_own(self, matrix: Array) -> Array:
        """What concerns the robot's own coordinates, by all of the chain."""
        return matrix if self._plain else matrix[self.columns]

    def own(self, matrix: Array) -> Array:
        """What concerns the robot's own coordinates alone."""
        return self.by_own(self.of_own(matrix))

    def by_own(self, matrix: Array) -> Array:
        """What is by the robot's own coordinates."""
        return matrix if self._plain else matrix[:, self.columns]

    def side_by_side(self, by_q: Array, others: Sequence[Array], by_p: Array) -> Array:
        """Derivatives by positions, by others, and by parameters: places are positions, too.

        Args:
            by_q: by the coordinates of the chain.
            others: as they are.
            by_p: by the parameters; those that are places are written into it.
        """
        for parameter, own in self._parameters:
            if parameter.places:
                moved = [self.chain.moved[name] for name in parameter.places]
                by_p[:, own] = by_q[:, np.concatenate(moved)]
        return np.hstack([self.by_own(by_q), *others, by_p])

    def _no_rows(self) -> Array:
        return np.zeros((self._equations.rows.unlocked, len(self.labels)))


@remembered
def joint_chain(robot: Mechanism, places: tuple[str, ...] = ()) -> JointChain:
    """The chain of a robot in which some places can be moved."""
    known = {*robot.model.names, *(frame.name for frame in robot.model.frames)}
    for name in places:
        if name not in known:
            raise UnknownName("joint or frame", name, sorted(known), robot.name)
    return JointChain(robot.model, places)
