"""Accelerations of a robot whose rows are loops, by the native kernel or Pinocchio's own solver.

Both do in a call or two what the matrices of the rows take dozens for, and hold the same rows. The
kernel evaluates no others. `pin.constraintDynamics` ties points and whole frames; any lower pair is
a frame of which some rows are let go, each by an infinite damping ``mu`` in the factorised system

    [ -diag(mu)  J  ] [-lam]   [-gamma ]
    [    J'      M  ] [  a ] = [ tau - nle ],

No rows that are held are redundant: as many are held as are independent on the manifold, chosen by
pivoting and again where they get bad. What cannot be held so is for the matrices of `equations`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..assembly.continuation import assembled_homes
from ..boundary.marks import Array
from ..constraints.rows import Locked, RowSet
from ..errors import NotFinite, SingularMass
from ..linalg.saddle import Saddle, factor_mass, from_upper, solve_mass
from ..model.mechanism import Mechanism
from ..model.pairs import Pair
from ..model.workspace import WorkSpace, remembered
from ..tolerances import CLOSED, ENTRY_NOISE, HELD_ROW, PIVOT_KEPT, PIVOT_TIE, SAME
from .independence import has_regular_mass
from .kernel_tables import HAS_KERNEL, between_free_bodies, tables_of_rows

if HAS_KERNEL:
    from .._kernel import Dynamics

Engine = Literal["native", "python"]
"""Who computes accelerations: the native kernel where it can, or Pinocchio called from Python."""

_STALE_ROWS, _BAD_ROWS = 1, 2
"""What the kernel says of rows that are a worse choice than before, or none."""
_IMMOVABLE = 1e60
"""Rotor inertia of a locked coordinate. Recursions divide by it: what is left of the coordinate is
far below rounding, and the square of no intermediate result overflows."""
_FREE, _HELD = 1e20, HELD_ROW
"""Damping of a row that is let go, whose multiplier vanishes, and of one that is held; over the
smallest entry of ``J M^-1 J'``."""
_GOOD, _BAD = 1e-3, PIVOT_KEPT
"""A pivot over its row's entry in ``J M^-1 J'`` is the part of the row that the rows before do not
contain: least ones for rows to be chosen, and to be held on to."""
_POOR = 0.03
"""The same below which the solution is refined."""
_WORSE = 0.3
"""Part of what it was below which a pivot makes a choice of rows stale: where loops are open, in
the stages of a step, the rows that are let go stray by its inverse root."""
_MOST_ROWS, _MOST_HELD = 60, 80
"""Rows of its models, six for most loops, up to which Pinocchio is the fastest: it factorises them
as one dense block; and rows that are held up to which the kernel is. With more of them `Augmented`
and the rows that regularization leaves are."""
_DEEP = 16
"""Velocities from bodies to the ground, in the root mean square, beyond which the articulated
bodies of Pinocchio are faster than the kernel's mass matrix."""


def standing(model: pin.Model, locked: NDArray[np.intp]) -> pin.Model:
    """The model for recursions in which some coordinates stand still, wherever they are.

    An articulated body whose joint has an infinite rotor, ``D^-1 = (S'I S + rotor)^-1 = 0``, hands
    all its inertia down: as if the joint were fixed. The same holds for every factor of the mass
    matrix, and axis by axis for joints with several. Work spaces fit both models.
    """
    if len(locked) == 0:
        return model
    model = pin.Model(model)
    model.armature[locked] = _IMMOVABLE
    return model


def standing_exactly(model: pin.Model, locked: NDArray[np.intp]) -> tuple[pin.Model, list[int]]:
    """The same for articulated bodies, and the coordinates that do so but for a remainder.

    A joint with one axis divides by its rotor and nothing else: infinity leaves exactly zero.
    """
    alone = {joint.idx_v for joint in model.joints[1:] if joint.nv == 1}
    model = standing(model, locked)
    model.armature[[k for k in locked if k in alone]] = np.inf
    return model, [int(k) for k in locked if k not in alone]


class _LoopModels(NamedTuple):
    """A robot's loops as constraint models.

    Args:
        models: constraint models of Pinocchio.
        places: place of each of these among all rows of the models.
        size: number of rows of the models.
    """

    models: pin.StdVec_RigidConstraintModel
    places: NDArray[np.intp]
    size: int

    def hold(self, held: HeldRows, least: float) -> HeldRows:
        """A choice with what Pinocchio needs; ``least``: their smallest size."""
        places, damping = self.places[held.chosen], None
        if len(places) < self.size:
            damping = np.full(self.size, _FREE * least)
            damping[places] = _HELD * least
        proximal = pin.ProximalSettings(0.0, 0.0, _HELD * least, 1)
        return held._replace(places=places, proximal=proximal, damping=damping)


class HeldRows(NamedTuple):
    """A choice of rows to hold.

    Args:
        chosen: the rows, among all rows of the pairs, the first to eliminate first.
        places: the same among all rows of the models.
        stale: per held row the pivot below which others would be better.
        bad: the same for pivots at which the choice is no good any more.
        proximal: settings of Pinocchio's solver; None for the kernel.
        damping: per row, infinite where it is let go; None if all rows are held.
    """

    chosen: NDArray[np.intp]
    places: NDArray[np.intp]
    stale: Array
    bad: Array
    proximal: pin.ProximalSettings | None = None
    damping: Array | None = None


class _Prepared(NamedTuple):
    """What Pinocchio's solver needs of a work space, for certain loops."""

    loops: _LoopModels
    states: pin.StdVec_RigidConstraintData
    system: pin.ContactCholeskyDecomposition
    right: Array


class InKernel(NamedTuple):
    """The native kernel in a work space, with the rows that it holds."""

    held: HeldRows
    dynamics: Dynamics


class ConstraintDynamics:
    """A robot's loops in Pinocchio's solver or the kernel. Nothing changes from call to call.

    Args:
        rows: all rows of the robot, those of its loops.
        rank: number of independent rows.
        home: rows to hold wherever they are a good choice.
        engine: who solves.
    """

    def __init__(
        self, rows: RowSet, rank: int, home: HeldRows | None = None, engine: Engine = "native"
    ) -> None:
        self._robot, self.rank = rows.robot, rank
        self._model = standing(rows.robot.model, rows.locked)
        self._locked = rows.locked.tolist()
        self._rows, robot = rows.whole, rows.robot
        self._units = np.where(self._rows.angular, 1.0, 1 / robot.length)
        self.home, self.tables = home, tables_of_rows(robot) if engine == "native" else None
        self._loops = _loop_models(robot) if self.tables is None else None

    @property
    def can(self) -> bool:
        """Whether it is the kernel or Pinocchio that is the fastest for all these rows."""
        if self.tables is not None:
            return self.rank <= _MOST_HELD
        return self._loops is not None and self._loops.size <= _MOST_ROWS

    def choose(self, q: Array, data: pin.Data) -> HeldRows | None:
        """Rows to hold at a configuration; None if no choice is good."""
        units = self._units
        try:
            gram = self._gram(q, data)
        except (SingularMass, NotFinite):  # here is no inverse mass matrix, which is needed
            return None
        chosen = choose_rows(gram * np.outer(units, units), self.rank)
        if chosen is None:
            return None
        chosen = chosen[::-1]  # Pinocchio eliminates the last row first
        sizes = np.diagonal(gram)[chosen]
        stale = bad = _BAD * sizes
        if len(chosen) < len(units):
            pivots = np.diagonal(np.linalg.cholesky(gram[np.ix_(chosen, chosen)])) ** 2
            stale = np.maximum(bad, _WORSE * pivots)
        held = HeldRows(chosen, chosen, stale, bad)
        return held if self._loops is None else self._loops.hold(held, float(sizes.min()))

    def acceleration(
        self, space: WorkSpace, held: HeldRows | None, q: Array, v: Array, tau: Array
    ) -> tuple[Array | None, bool]:
        """Acceleration, shape (nv,), and whether other rows had better be held from here on.

        None where the rows, ``held``, are no good choice. All good choices give the same
        accelerations where loops are closed, but not inside a step.
        """
        if held is None:
            return None, True
        solve = self._by_pinocchio if self.tables is None else self._by_kernel
        a, verdict = solve(space, held, q, v, tau)
        if verdict == _BAD_ROWS:
            return None, True
        return a, verdict == _STALE_ROWS and self._are_closed(space.data, q)

    def kernel(self, held: HeldRows) -> InKernel:
        """A native kernel that holds some rows."""
        assert self.tables is not None
        dynamics = Dynamics(self.tables)
        limits = held.stale.tolist(), held.bad.tolist()
        dynamics.hold(held.chosen.tolist(), *limits, self._model.armature)
        return InKernel(held, dynamics)

    def _by_kernel(
        self, space: WorkSpace, held: HeldRows, q: Array, v: Array, tau: Array
    ) -> tuple[Array, int]:
        """Acceleration by the kernel, and what it says of the rows."""
        kernel = space.solver
        if type(kernel) is not InKernel or kernel.held is not held:
            kernel = space.solver = self.kernel(held)
        a = np.empty(len(v))
        return a, kernel.dynamics.acceleration(q, v, tau, a)

    def _by_pinocchio(
        self, space: WorkSpace, held: HeldRows, q: Array, v: Array, tau: Array
    ) -> tuple[Array, int]:
        """The same by Pinocchio: the same rows, in the same order, and the same pivots."""
        loops, prepared = self._loops, space.solver
        assert loops is not None
        if not isinstance(prepared, _Prepared) or prepared.loops is not loops:
            prepared = self._prepare(space, loops)
        model, data, models, size = self._model, space.data, loops.models, loops.size
        states, system = prepared.states, prepared.system
        a = pin.constraintDynamics(model, data, q, v, tau, models, states, held.proximal)
        if held.damping is not None:
            system.compute(model, data, models, states, held.damping)
            right = prepared.right
            right[:size] = data.primal_rhs_contact
            np.subtract(tau, data.nle, out=right[size:])
            a = system.solve(right)[size:]
        # With a minus; NaN if the mass matrix is singular.
        pivots = -system.D[held.places]
        if not (pivots > held.bad).all():
            return a, _BAD_ROWS
        if (pivots < _POOR / _BAD * held.bad).any():
            # What rounding has left, as in the kernel.
            J = pin.getConstraintsJacobian(model, data, models, states)[held.places]
            right, rates = prepared.right, data.primal_rhs_contact[held.places]
            right[:] = 0.0
            right[held.places] = rates - J @ a
            a += system.solve(right)[size:]
        for k in self._locked:
            a[k] = 0.0  # the limit of its rotor
        return a, _STALE_ROWS if (pivots < held.stale).any() else 0

    def _prepare(self, space: WorkSpace, loops: _LoopModels) -> _Prepared:
        """Prepare a work space for the loops."""
        states = pin.StdVec_RigidConstraintData()
        for model in loops.models:
            states.append(model.createData())
        pin.initConstraintDynamics(self._model, space.data, loops.models, states)
        right = np.empty(loops.size + self._robot.nv)
        prepared = _Prepared(loops, states, space.data.constraint_chol, right)
        space.solver = prepared
        return prepared

    def _are_closed(self, data: pin.Data, q: Array) -> bool:
        """Whether the loops are closed at a configuration."""
        pin.framesForwardKinematics(self._model, data, q)
        gaps = self._units * self._rows.residual_at(data, q)
        return float(np.abs(gaps).max(initial=0.0)) < CLOSED

    def _gram(self, q: Array, data: pin.Data) -> Array:
        """``J M^-1 J'`` of all rows of the pairs at a configuration.

        Pinocchio's solver gives it with a damping, and nothing is known of its size yet.
        """
        M = from_upper(pin.crba(self._model, data, q))
        pin.computeJointJacobians(self._model, data, q)
        pin.updateFramePlacements(self._model, data)
        J = self._rows.jacobian_at(data, q)
        return np.asarray(J @ solve_mass(factor_mass(M, J[:0])[0], J.T))


def constraint_dynamics(
    rows: RowSet, q: Array | None, rank: int, engine: Engine
) -> ConstraintDynamics | None:
    """Pinocchio's solver or the kernel for a robot, if it gives the accelerations of its rows.

    Args:
        rows: all rows of the robot; None is returned if not all of them are such loops or locks.
        q: an assembled configuration, should those that the robot finds by itself be of no use.
        rank: number of rows of loops that are independent with these locks.
        engine: who solves.
    """
    robot = rows.robot
    if rows.unlocked == 0:
        return _of_tree(robot, rows.locks) if engine == "native" else None
    if rank == 0 or len(rows.loops) != rows.unlocked:
        return None
    solver, decided = _at_home(robot, rank, rows.locks, engine)
    if not decided and solver.can and q is not None:
        solver = ConstraintDynamics(rows, rank, None, engine)
        solver.home, _ = _rows_at(solver, rows, [q])
    return None if solver.home is None else solver


@remembered
def _of_tree(robot: Mechanism, locks: tuple[Locked, ...]) -> ConstraintDynamics | None:
    """The kernel for a robot without rows, if it is faster than articulated bodies."""
    model, rows = robot.model, RowSet(robot, (), locks)
    depths = [sum(model.nvs[k] for k in support) for support in model.supports]
    if not has_regular_mass(rows.robot) or np.mean(np.square(depths)) > _DEEP**2:
        return None
    none = np.zeros(0)
    no_rows = none.astype(np.intp)
    solver = ConstraintDynamics(rows, 0, HeldRows(no_rows, no_rows, none, none))
    return None if solver.tables is None else solver


@remembered
def _at_home(
    robot: Mechanism, rank: int, locks: tuple[Locked, ...], engine: Engine
) -> tuple[ConstraintDynamics, bool]:
    """A solver with rows to hold by the robot's own configurations; whether these settle it."""
    rows, decided = RowSet(robot, (), locks), False
    solver = ConstraintDynamics(rows, rank, None, engine)
    if solver.can:
        solver.home, decided = _rows_at(solver, rows, assembled_homes(robot))
    return solver, decided


def _rows_at(
    solver: ConstraintDynamics, rows: RowSet, homes: Iterable[Array]
) -> tuple[HeldRows | None, bool]:
    """Rows to hold by the first of some configurations that can tell, and whether one could."""
    for q in homes:
        with rows.robot.workspace() as data:
            held = solver.choose(q, data)
        agrees = None if held is None else _agrees(solver, held, rows, q)
        if agrees is not None:
            return held if agrees else None, True
    return None, False


def choose_rows(gram: Array, rank: int) -> NDArray[np.intp] | None:
    """Rows that contain the others, by pivoting in their ``J M^-1 J'``; None if none is good.

    Args:
        gram: of all rows, in units that compare.
        rank: how many are independent.
    """
    if not np.isfinite(gram).all():
        return None
    if rank == len(gram):
        return np.arange(rank)
    sizes = np.diagonal(gram).copy()
    sizes[sizes < ENTRY_NOISE * sizes.max()] = np.inf
    # A row that is small in all may soon vanish, and errors off the manifold are large by it. But
    # all rows of a small part of a robot may be.
    chosen, roots = list[int](), np.sqrt(sizes)
    for _ in range(rank):
        left = np.diagonal(gram)
        score = np.where(left < _GOOD * sizes, 0.0, left / roots)
        score[chosen] = 0.0
        # Of equal ones the first, whatever rounding says.
        best = int(np.argmax(score >= (1 - PIVOT_TIE) * score.max()))
        if not score[best] > 0.0:
            return None
        chosen.append(best)
        gram = gram - np.outer(gram[:, best], gram[best]) / gram[best, best]
    return np.sort(np.array(chosen, dtype=np.intp))


def _agrees(solver: ConstraintDynamics, held: HeldRows, rows: RowSet, q: Array) -> bool | None:
    """Whether accelerations are those of the rows at a random velocity with random forces.

    None if the state is too near a singularity to tell. Some joints and inertias are not all in
    Pinocchio's solver, and it says nothing of that.
    """
    robot, rng = rows.robot, np.random.default_rng(0)
    model, rest = standing(robot.model, rows.locked), np.zeros(robot.nv)
    unit = np.where(robot.is_translation, robot.length, 1.0)
    v, push = unit * rng.standard_normal((2, robot.nv))
    v[rows.locked] = push[rows.locked] = 0.0
    with robot.workspace() as data:
        M = from_upper(pin.crba(model, data, q))
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = rows.loops.jacobian_at(data, q)
        saddle = Saddle(M, J, rows.scale[: len(J)], max_rank=solver.rank)
        v -= saddle.project(J @ v)
        pin.forwardKinematics(model, data, q, v, rest)
        gamma = rows.loops.gamma_at(data, q, v)
        tau = M @ push
        f = tau - pin.nonLinearEffects(model, data, q, v)
    exact = saddle.solve(f, -gamma)[0] / unit
    space = robot.spaces.take(model)
    a, _ = solver.acceleration(space, held, q, v, tau)
    robot.spaces.free.append(space)
    if a is None:
        return None
    # What locks make rigid does not move at all: forces alone say then what is small.
    size = max(float(np.abs(exact).max()), float(np.abs(push / unit).max()))
    return float(np.abs(a / unit - exact).max()) < SAME * size


@remembered
def _loop_models(robot: Mechanism) -> _LoopModels | None:
    """The loops of a robot as constraint models; None if these cannot express all its rows."""
    models = pin.StdVec_RigidConstraintModel()
    places: list[int] = []
    size = 0
    for loop in robot.loops:
        rows = _held_rows(loop.pair) if loop.pair.is_group else []
        if not rows:
            return None
        a, b = (robot.model.frames[index] for index in (loop.frame_a, loop.frame_b))
        point = rows == [0, 1, 2] and not between_free_bodies(robot.model, a, b)
        kind = pin.ContactType.CONTACT_3D if point else pin.ContactType.CONTACT_6D
        # Twists are those of A relative to B, in B.
        frames = b.parentJoint, b.placement, a.parentJoint, a.placement
        models.append(
            pin.RigidConstraintModel(kind, robot.model, *frames, pin.ReferenceFrame.LOCAL)
        )
        places += [size + row for row in rows]
        size += 3 if point else 6
    if not places or robot.couplings:
        return None
    return _LoopModels(models, np.array(places, dtype=np.intp), size)


def _held_rows(pair: Pair) -> list[int]:
    """Rows of the relative twist that a pair restricts; none if it restricts combinations.

    All of them, also after regularization: a point would be enough for a planar hinge then, but
    what is kept of frames are rows of the pair where the loop is open, too.
    """
    selector = pair.selector(pin.SE3.Identity())
    if np.count_nonzero(selector) > len(selector):
        return []
    return [int(column) for column in np.argmax(selector, axis=1)]
