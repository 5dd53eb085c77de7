"""Equations of motion of a robot: one pass over the tree, rows, forces, and a formulation.

Nothing is remembered from one evaluation to the next: the same arguments give the same bits, in any
order, from any thread, and after pickling. Work space is taken for one evaluation and given back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import copy
from functools import cached_property, partial
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..assembly.continuation import assembled_home
from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array, Configuration, Velocity
from ..constraints.rows import Locked, Row, RowSet
from ..errors import BadValue, PinloopError, shown
from ..linalg.dense import norm
from ..linalg.saddle import Elimination, Saddle
from ..model.mechanism import Mechanism
from ..model.moving_tree import MovingTree
from ..model.workspace import create_data, remembered
from ..tolerances import ASSEMBLED
from .applied import AppliedForces
from .forces import Force
from .formulations import (
    Augmented,
    Automatic,
    BodyMotion,
    BoundStateFormulation,
    Formulation,
    FurtherRows,
    MatrixFormulation,
    Motion,
    StateFormulation,
    body_motion,
    with_reactions,
)
from .independence import INFINITE, general_rank, has_regular_mass, infinite_state
from .kernel_tables import HAS_KERNEL, evaluate_rows, loop_tables, tables_of_rows
from .pinocchio_solver import ConstraintDynamics, Engine, constraint_dynamics, standing_exactly
from .right_hand_side import RightHandSide

if HAS_KERNEL:
    from .._kernel import Tables

Rows = tuple[Array, Array, Array]
System = tuple[Array, Array, Array, Array, int | None]
"""See `EquationsOfMotion.system`."""

_DERIVED = (
    "_home_closure",
    "_independent_at_home",
    "rank",
    "max_rank",
    "_unlocked_rank",
    "_constraint_dynamics",
    "_standing",
)


@public
class EquationsOfMotion:
    """``M a + nle = tau + J' lam``, ``J a + gamma = 0`` for a robot with rows and forces.

    How many rows are independent is a property of an assembled configuration, the home. It is the
    one next to the neutral configuration, or what is given to `around`: on a mechanism whose
    branches differ in mobility it must be on the branch of the motion.

    Args:
        robot: the mechanism; its regularization is respected.
        rows: constraint rows beyond loops and couplings.
        locks: locked joints, or their names: their coordinates stand still. A row for each gives
            its reaction, after all other rows.
        forces: what acts on the robot besides gravity.
        formulation: how the reactions are eliminated; by default `Automatic`: as `Augmented`, and
            accelerations by faster solvers where these give the same, see `solver`.
    """

    def __init__(
        self,
        robot: Mechanism,
        *,
        rows: Sequence[Row] = (),
        locks: Sequence[str | Locked] = (),
        forces: Sequence[Force] = (),
        formulation: Formulation | None = None,
    ) -> None:
        for kind, given, wanted in (
            ("force", forces, Force),
            ("row", rows, Row),
            ("lock", locks, (str, Locked)),
        ):
            if isinstance(given, str):
                raise BadValue(f"{kind}s are {given!r}; give a list")
            for value in given:
                if not isinstance(value, wanted):
                    way_out = f"see the {kind}s of pinloop"
                    if kind == "force" and callable(value):
                        way_out = "a function of t, q and v is one as pl.TorqueFunction(function)"
                    raise BadValue(f"{shown(value)} is not a {kind}; {way_out}")
        if formulation is not None and not isinstance(formulation, Formulation):
            raise BadValue(f"{formulation!r} is no formulation; write e.g. pl.Voronets()")
        self.robot = robot
        held = [Locked(lock) if isinstance(lock, str) else lock for lock in locks]
        self.rows = RowSet(robot, rows, held)
        self.given_forces = tuple(forces)
        self._applied = AppliedForces(robot, forces)
        self.forces = self._applied.bound
        formulation = Automatic() if formulation is None else formulation
        self._automatic = formulation if isinstance(formulation, Automatic) else None
        self._on_state = formulation if isinstance(formulation, StateFormulation) else None
        self._solvers: list[BoundStateFormulation] = []
        self._matrices: MatrixFormulation = Augmented()
        if isinstance(formulation, MatrixFormulation) and self._automatic is None:
            self._matrices = formulation
        self._scale = self.rows.scale[: self.rows.unlocked]
        self._model = robot.model
        self._locked = self.rows.locked if len(self.rows.locked) else None
        moving = np.ones(robot.nv, dtype=bool)
        moving[self.rows.locked] = False
        self._free = moving.nonzero()[0]
        self._rest = np.zeros(robot.nv)
        self._no_rows, self._no_rates = np.zeros((0, robot.nv)), np.zeros(0)
        self._only_loops = len(self.rows.loops) == len(self.rows)
        self._is_tree = self.rows.unlocked == 0
        self._by_recursion = self._is_tree and has_regular_mass(robot)
        of_loops = max((self.rows.loops.rows_of[loop.name].stop for loop in robot.loops), default=0)
        # Couplings and further rows, but not locks.
        self._further = np.arange(of_loops, self.rows.unlocked, dtype=np.intp)
        self._home: tuple[float, Array] | None = None
        self._only_given_by_robot = not rows

    def __repr__(self) -> str:
        return (
            f"<EquationsOfMotion of '{self.robot.name}': {len(self.rows)} rows, rank {self.rank}, "
            f"solver {self.solver}, engine {self.engine}>"
        )

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: what has work space or is derived from the rest is made again."""
        return {key: self.__dict__[key] for key in self.__dict__ if key not in _DERIVED} | {
            "_solvers": []
        }

    def around(self, t: float, q: Configuration) -> EquationsOfMotion:
        """The same equations with another home, from which the number of independent rows is taken.

        Args:
            t: time for rows that depend on it [s].
            q: assembled configuration, shape (nq,); where loops are open, all rows count.
        """
        if self._is_home(t, q):
            return self
        home = t, self.robot.checked_configuration(q).copy()
        other = object.__new__(EquationsOfMotion)
        other.__dict__.update(self.__dict__)  # `copy` takes five times as long
        for derived in _DERIVED:
            other.__dict__.pop(derived, None)
        other._home = home
        return other

    def with_force(self, force: Force) -> EquationsOfMotion:
        """The same equations with one more force."""
        other = copy(self)
        other.given_forces = (*self.given_forces, force)
        other._applied = self._applied.with_force(force.bind(self.robot))
        other.forces = other._applied.bound
        return other

    @cached_property
    def rank(self) -> int | None:
        """Number of rows that are independent in general around the home; None if that is open.

        Rows that are dependent on the manifold only (paradoxical linkages: Bennett, Bricard) gain
        rank off it, inside the stages of a step, by as much as the loops are open there. Taken for
        independent they would kick; so the rank on the manifold, in general, is not exceeded.
        """
        if self._is_tree:
            return len(self.rows.locked)
        t, q = self._home or (0.0, assembled_home(self.robot))
        if q is None:
            return None
        if self._home and self._is_closed(self._home_closure[2]) and self._independent_at_home:
            return len(self.rows)
        if self._only_given_by_robot:
            return _rank_around(self.robot, self.rows.locks, tuple(q.tolist()))
        return self._rank_around(t, q)

    def _rank_around(self, t: float, q: Array) -> int | None:
        """The same around a configuration, by all rows."""
        try:
            J, _, residual = self.closure(t, q)
        except PinloopError:
            if self._home is not None:
                raise
            return None  # rows of the user's need not exist at the neutral configuration
        if not self._is_closed(residual):
            return None
        return general_rank(
            self.robot, q, J, self.rows.scale, self.mass, lambda q: self.closure(t, q)[0]
        )

    def _is_closed(self, residual: Array) -> bool:
        """Whether loops and couplings are closed."""
        gap = (self.rows.scale * residual)[: len(self.rows.loops)]
        return norm(gap) <= ASSEMBLED

    @cached_property
    def _home_closure(self) -> tuple[Array, Array, Array]:
        """`closure` at the home that was given."""
        assert self._home is not None
        return self.closure(*self._home)

    @cached_property
    def _independent_at_home(self) -> bool:
        assert self._home is not None
        return self._are_independent(self._home[1], self._home_closure[0])

    def _are_independent(self, q: Array, J: Array) -> bool:
        return Saddle(self.mass(q), J, self.rows.scale).rank == len(J)

    def _is_home(self, t: float, q: Array) -> bool:
        home = self._home
        # Bytes are compared in a fraction of the time of arrays.
        return home is not None and home[0] == t and home[1].tobytes() == q.tobytes()

    @cached_property
    def max_rank(self) -> int | None:
        """Number of rows that can be independent at all, if that is known and less than all."""
        return None if self.rank == len(self.rows) else self.rank

    @cached_property
    def _unlocked_rank(self) -> int | None:
        """The same of the rows of no lock, where locked coordinates do not move."""
        return None if self.max_rank is None else self.max_rank - len(self.rows.locked)

    @cached_property
    def _standing(self) -> tuple[pin.Model, list[int]]:
        """The model for Pinocchio's recursions, see `standing_exactly`."""
        return standing_exactly(self._model, self.rows.locked)

    @cached_property
    def _constraint_dynamics(self) -> ConstraintDynamics | None:
        """Pinocchio's solver for loops, if nothing else was asked for and it is right."""
        # A formulation that is asked for is the one that is used.
        if self._automatic is None or self.rank is None:
            return None
        q = None if self._home is None else self._home[1]
        rank = self.rank - len(self.rows.locked)
        return constraint_dynamics(self.rows, q, rank, self._automatic.engine)

    @property
    def tables(self) -> Tables | None:
        """The robot in the kernel, if it can compute these accelerations, but for the forces."""
        return None if self._constraint_dynamics is None else self._constraint_dynamics.tables

    @property
    def solver(self) -> str:
        """Name of what computes accelerations.

        "aba" and "constraintDynamics" are methods of Pinocchio, and of the kernel; else the name of
        the formulation. Where the rows that "constraintDynamics" holds nearly depend on each other,
        `Augmented` takes over.
        """
        if self._on_state is not None:
            return type(self._on_state).__name__
        if self._by_recursion:
            return "aba"
        return "constraintDynamics" if self._constraint_dynamics else type(self._matrices).__name__

    @property
    def wanted_engine(self) -> Engine:
        """What may compute accelerations, whether it can or not."""
        return "python" if self._automatic is None else self._automatic.engine

    @property
    def engine(self) -> Engine:
        """What computes accelerations: the native kernel, or Python, which may call Pinocchio."""
        return "python" if self.tables is None else "native"

    def acceleration(self, t: float, q: Configuration, v: Velocity) -> Array:
        """Acceleration, shape (nv,); of what is not finite an error, shapes are not checked.

        The same bits for the same arguments, in any order and from any thread.

        Args:
            t: time [s].
            q: configuration, shape (nq,).
            v: velocity, shape (nv,).
        """
        # Not if one of them is NaN; floats of Python overflow without a warning.
        if not abs(t) + sum(map(abs, q.tolist() + v.tolist())) < INFINITE:
            raise infinite_state(t)
        return self.right_hand_side().once(t, q, v)

    def right_hand_side(self) -> RightHandSide:
        """Accelerations along one run."""
        loads = self._joint_loads if self.forces else None
        spaces = None if self._on_state is not None else self.robot.spaces
        return RightHandSide(self.robot, self._constraint_dynamics, spaces, loads, self._solve)

    def motion(self, t: float, q: Configuration, v: Velocity) -> Motion:
        """Accelerations and reactions at a state."""
        rows = self.rows
        with self.robot.workspace() as data:
            a, lam = self._solve(data, t, q, v)
            if self._by_recursion and len(rows.locked) == len(rows):  # what locks exert, alone
                forces = pin.rnea(self._model, data, q, v, a) - self._joint_loads(data, t, q, v)
                forces[self._free] = 0.0
                held = np.ones(len(rows), dtype=bool)
                return Motion(a, forces[rows.lock_columns], held, len(rows), forces)
            M, f, J, _, _ = self._system(data, t, q, v)
            return with_reactions(rows, M, f, J, a, lam)

    def jump(self, t: float, q: Configuration, v: Velocity) -> Motion:
        """Jump of a velocity to the nearest one, in the kinetic metric, that all rows allow.

        With impulses as multipliers; ``M dv = J' impulse``, ``J (v + dv) = b`` (paper 4, eq. 22).
        """
        M, (J, b, _), still = self.mass(q), self.terms(t, q, v), -v[self.rows.locked]
        free, u = Elimination(self.rows.locked, len(v)), self.rows.unlocked
        M_ff, f, J_f, rates = free.reduce(M, np.zeros(len(v)), J[:u], (b - J @ v)[:u], still)
        x, impulse = Saddle(M_ff, J_f, self.rows.scale[:u]).solve(f, rates)
        return with_reactions(self.rows, M, np.zeros(len(v)), J, free.restore(x, still), impulse)

    def body_motion(self, t: float, q: Configuration, v: Velocity) -> BodyMotion:
        """Accelerations of all bodies and wrenches in all joints at a state."""
        by_state = self._on_state is not None  # then work space would be large for a large robot
        with nullcontext() if by_state else self.robot.workspace() as data:
            a, lam = self._solve(data, t, q, v)
        return body_motion(self.robot, self.rows.loops, q, v, a, lam)

    def closed(self, t: float, q: Configuration, v: Velocity) -> tuple[Array, Array]:
        """The state nearby that all rows allow, by the formulation's own sweeps.

        Raises:
            BadValue: the formulation has no sweeps for positions and velocities.
        """
        solver = self._solver(
            "this formulation knows accelerations only; give formulation=pl.ODCA(), or let "
            "pl.simulate project (stabilization=pl.Projection())"
        )
        q = solver.position(q, lambda q: self._rows_at(t, q, self._rest, "position"))
        v = solver.velocity(q, v, self._rows_at(t, q, v, "velocity"))
        self._solvers.append(solver)
        return q, v

    def mass(self, q: Configuration) -> Array:
        """Mass matrix, shape (nv, nv)."""
        with self.robot.workspace() as data:
            return self._full(pin.crba(self._model, data, q))

    def residual(self, t: float, q: Configuration) -> Array:
        """Position residual of all rows, zeros for rows on velocities only."""
        return self.closure(t, q)[2]

    def residual_of_whole(self, q: Configuration) -> Array:
        """Residual of all rows of loops, also those that regularization has dropped."""
        whole = self.rows.whole
        if known := self._natively(tables_of_rows(self.robot), len(whole), q, self._rest):
            return known[2]
        with self.robot.workspace() as data:
            pin.framesForwardKinematics(self._model, data, q)
            return whole.residual_at(data, q)

    def closure(self, t: float, q: Configuration) -> tuple[Array, Array, Array]:
        """``J``, ``b`` and the position residual of all rows at a configuration."""
        if self._only_loops and (known := self._loops_natively(q, self._rest)):
            return known[0], np.zeros(len(self.rows)), known[2]
        with self.robot.workspace() as data:
            self._kinematics(data, q, self._rest)
            return self.rows.closure(t, q, data)

    def _loops_natively(self, q: Array, v: Array) -> Rows | None:
        """``J``, ``gamma`` and residuals of the rows of loops by the kernel, if it has them."""
        return self._natively(loop_tables(self.rows), len(self.rows.loops), q, v)

    def _natively(self, tables: Tables | None, count: int, q: Array, v: Array) -> Rows | None:
        """The same of tables with so many rows; None, too, of loops open by over 150 degrees."""
        if tables is None or self.wanted_engine == "python":
            return None
        (J,), (gamma,), (gaps,) = evaluate_rows(tables, count, q[None], v[None])
        return (J, gamma, gaps) if np.isfinite(J.sum() + sum(gaps.tolist())) else None

    def closure_at_start(self, t: float, q: Array) -> tuple[Array, Array, Array]:
        """`closure`, which is evaluated once at the home."""
        return self._home_closure if self._is_home(t, q) else self.closure(t, q)

    def are_independent(self, t: float, q: Array) -> bool:
        """Whether all rows are independent at a configuration; evaluated once at the home."""
        if self._is_home(t, q):
            return self._independent_at_home
        return self._are_independent(q, self.closure(t, q)[0])

    def terms(self, t: float, q: Configuration, v: Velocity) -> tuple[Array, Array, Array]:
        """``J``, ``b`` and ``gamma`` of all rows: ``J v = b``, ``J a + gamma = 0``."""
        with self.robot.workspace() as data:
            self._kinematics(data, q, v)
            return self.rows.terms(t, q, v, data)

    def evaluate(
        self, data: pin.Data, t: float, q: Configuration, v: Velocity, *, locks: bool = True
    ) -> tuple[Array, Array, Array, Array]:
        """`terms` and `force` at once, in a work space that holds the kinematics afterwards."""
        self._kinematics(data, q, v)
        terms = self.rows.terms(t, q, v, data, locks=locks)
        return *terms, self._applied.torque(t, q, v, data)

    def force(self, t: float, q: Configuration, v: Velocity) -> Array:
        """Sum of the applied generalised forces, shape (nv,)."""
        with self.robot.workspace() as data:
            self._kinematics(data, q, v)
            return self._applied.torque(t, q, v, data)

    def loop_wrench(self, q: Configuration, loop: str, multipliers: Array) -> Array:
        """Wrench of a loop joint on its body B, at and in frame B, force first, shape (6,).

        A and B are those of the robot's description, also where regularization turned them over.
        """
        joint, rows = self.robot.loop(loop), self.rows.loops.rows_of[loop]
        multipliers = flat_numbers(multipliers, "multipliers", rows.stop - rows.start)
        declared = next(other for other in self.robot.description.joints if other.name == loop)
        with self.robot.workspace() as data:
            pin.framesForwardKinematics(self._model, data, q)
            wrench = self.rows.loops.wrench(data, loop, multipliers)
            if (declared.parent, declared.child) == (joint.body_a, joint.body_b):
                return wrench
            far = data.oMf[joint.frame_a].actInv(data.oMf[joint.frame_b])
        return -np.array(far.act(pin.Force(wrench)).vector)

    def energies(
        self, t: float, q: Configuration, v: Velocity
    ) -> tuple[float, float, dict[str, float]]:
        """Kinetic energy, potential energy of gravity, and stored energy by force [J]."""
        with self.robot.workspace() as data:
            M = self._full(pin.crba(self._model, data, q))
            if self._applied.need_kinematics:
                self._kinematics(data, q, v)
            potential = float(pin.computePotentialEnergy(self._model, data, q))
            stored = self._applied.energies(t, q, data)
        return 0.5 * float(v @ M @ v), potential, stored

    def powers(self, t: float, q: Configuration, v: Velocity) -> dict[str, float]:
        """Power of each force that does not store its work, and of moving rows [W]."""
        with self.robot.workspace() as data:
            self._kinematics(data, q, v)
            powers = self._applied.powers(t, q, v, data)
            if self.rows.moving:
                b = self.rows.terms(t, q, v, data, locks=False)[1]
                powers["prescribed motion"] = float(self._solve(data, t, q, v)[1] @ b)
        return powers

    def dampings(self, t: float, q: Configuration, v: Velocity) -> dict[str, Array]:
        """``-d torque / d v`` of each force of which it is known, shape (nv, nv)."""
        with self.robot.workspace() as data:
            self._kinematics(data, q, v)
            return self._applied.dampings(t, q, v, data)

    def force_slopes(
        self, tree: MovingTree, t: float, q: Configuration, v: Velocity
    ) -> tuple[Array, Array]:
        """Derivatives of the applied forces by the coordinates of a tree at the state."""
        return self._applied.slopes(tree, t, q, v, self._kinematics)

    def system(self, t: float, q: Configuration, v: Velocity) -> System:
        """What a formulation solves: ``M``, ``f``, ``J``, ``gamma``, largest possible rank.

        ``M a = f + J' lam``, ``J a + gamma = 0``, with the applied forces less ``nle`` in ``f``.
        """
        with self.robot.workspace() as data:
            return self._system(data, t, q, v)

    def system_along_run(self) -> Callable[[float, Array, Array], System]:
        """`system` for one run, in one thread, in a work space of its own."""
        return partial(self._system, create_data(self._model))

    def _system(
        self, data: pin.Data, t: float, q: Array, v: Array, *, locks: bool = True
    ) -> System:
        """The same in a work space; without ``locks`` ``M`` is that of the free coordinates."""
        model, entries = self._model, self._mirrored if locks else self._mirrored_free
        bare = (self._only_loops or not locks) and not self._applied.need_kinematics
        if self._is_tree and bare:
            f = self._applied.torque(t, q, v, data) - pin.nonLinearEffects(model, data, q, v)
            M = pin.crba(model, data, q).take(entries)
            return M, f, self._no_rows, self._no_rates, None
        bare = bare and self.rows.unlocked == len(self.rows.loops)
        if bare and (rows := self._loops_natively(q, v)):
            (J, gamma, _), tau = rows, self._applied.torque(t, q, v, data)
        else:
            J, _, gamma, tau = self.evaluate(data, t, q, v, locks=locks)
        nle = np.array(pin.nonLinearEffects(model, data, q, v))
        M = pin.crba(model, data, q).take(entries)
        return M, tau - nle, J, gamma, self.max_rank if locks else self._unlocked_rank

    def _solve(self, data: pin.Data | None, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Acceleration at a state, and reactions of the rows that are not those of locks."""
        if self._on_state is not None:
            solver = self._solver("")
            solution = solver.solve(q, v, *self._loads(t, q, v))
            self._solvers.append(solver)
            return solution
        if self._by_recursion:
            model, nearly = self._standing
            a = pin.aba(model, data, q, v, self._joint_loads(data, t, q, v))
            for k in nearly:
                a[k] = 0.0
            return a, self._no_rates
        M, f, J, gamma, max_rank = self._system(data, t, q, v, locks=False)
        if self._locked is None:
            return self._matrices.solve(M, J, f, gamma, self._scale, max_rank)
        free = self._free
        x, lam = self._matrices.solve(M, J.take(free, 1), f[free], gamma, self._scale, max_rank)
        f[free], f[self._locked] = x, 0.0
        return f, lam

    def _solver(self, otherwise: str) -> BoundStateFormulation:
        """A solver of the state formulation that nobody is using, to be put back after use.

        Raises:
            BadValue: the formulation works on matrices.
        """
        if self._on_state is None:
            raise BadValue(otherwise)
        try:
            return self._solvers.pop()
        except IndexError:
            home = assembled_home(self.robot) if self._home is None else self._home[1]
            return self._on_state.bind(self.rows, home)

    def _joint_loads(self, data: pin.Data, t: float, q: Array, v: Array) -> Array:
        """Applied forces, shape (nv,)."""
        if not self.forces:
            return self._rest
        if self._applied.need_kinematics:
            self._kinematics(data, q, v)
        return self._applied.torque(t, q, v, data)

    def _loads(self, t: float, q: Array, v: Array) -> tuple[Array, FurtherRows]:
        """Applied forces and rows beyond loops: what a state formulation cannot see itself.

        Without either no work space is made, which would be large for a large robot.
        """
        tau = self.force(t, q, v) if self.forces else self._rest
        return tau, self._rows_at(t, q, v, "acceleration")

    def _rows_at(
        self, t: float, q: Array, v: Array, level: Literal["position", "velocity", "acceleration"]
    ) -> FurtherRows:
        """Rows beyond loops, and what they ask of accelerations, velocities or corrections."""
        index = self._further
        if len(index) == 0:
            return FurtherRows(self._no_rows, self._no_rates, index)
        J, b, gamma = (part[index] for part in self.terms(t, q, v))
        if level == "acceleration":
            return FurtherRows(J, -gamma, index)
        if level == "velocity":
            return FurtherRows(J, b, index)
        # What restricts the velocity of one joint, must not be moved by a correction either.
        held = self.rows.holonomic[index] | (np.count_nonzero(J, axis=1) == 1)
        residual = self.residual(t, q)[index]
        return FurtherRows(J[held], -residual[held], index[held])

    def _full(self, M: Array) -> Array:
        """Full matrix of what `crba` writes to the upper triangle."""
        return M.take(self._mirrored)

    @property
    def _mirrored(self) -> NDArray[np.intp]:
        """Place of each entry in the upper triangle."""
        return _mirrored(self.robot)

    @cached_property
    def _mirrored_free(self) -> NDArray[np.intp]:
        """The same of the coordinates that are not locked."""
        return self._mirrored[np.ix_(self._free, self._free)]

    def _kinematics(self, data: pin.Data, q: Array, v: Array) -> None:
        """Placements, velocities, joint Jacobians, and accelerations without joint acceleration."""
        model = self._model
        pin.forwardKinematics(model, data, q, v, self._rest)
        pin.computeJointJacobians(model, data)
        pin.updateFramePlacements(model, data)


@remembered
def robot_equations(
    robot: Mechanism, locks: tuple[Locked, ...] = (), forces: tuple[Force, ...] = ()
) -> EquationsOfMotion:
    """Equations of motion with nothing but what belongs to a robot, which many runs share."""
    return EquationsOfMotion(robot, locks=locks, forces=forces)


@remembered
def _mirrored(robot: Mechanism) -> NDArray[np.intp]:
    """Place of each entry of a full mass matrix in the upper triangle."""
    row, column = np.indices((robot.nv, robot.nv))
    return np.asarray(np.minimum(row, column) * robot.nv + np.maximum(row, column))


@remembered
def _rank_around(robot: Mechanism, locks: tuple[Locked, ...], q: tuple[float, ...]) -> int | None:
    """`EquationsOfMotion.rank` around a configuration, of loops, couplings and locks alone."""
    return robot_equations(robot, locks)._rank_around(0.0, np.array(q))
