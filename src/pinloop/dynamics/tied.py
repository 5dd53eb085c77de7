"""Accelerations of a robot whose rows are loops, by Pinocchio's own solver for them.

`pin.constraintDynamics` does in two calls what the matrices of the rows take dozens for. It ties
points and whole frames; any lower pair is a frame of which some rows are let go. A row is let go by
an infinite damping ``mu`` of its own in the factorised system

    [ -diag(mu)  J  ] [-lam]   [-gamma ]
    [    J'      M  ] [  a ] = [ tau - nle ],

so that no rows are redundant: as many are held as are independent on the manifold, chosen by
pivoting and again where they get bad. What cannot be held so is for the matrices of `equations`.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import le
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..constraints import Constraints
from ..errors import NotFinite, SingularMass
from ..lapack import triangular
from ..mechanism import Mechanism
from ..pairs import MotionGroup
from ..rows import RowSet
from ..saddle import Saddle, factor_mass, from_upper

__all__ = ["TiedLoops"]

Array = NDArray[np.float64]

_FREE, _HELD = 1e20, 1e-20
"""Damping of a row that is let go, whose multiplier vanishes, and of one that is held; over the
smallest entry of ``J M^-1 J'``."""
_GOOD, _BAD = 1e-3, 1e-5
"""A pivot over its row's entry in ``J M^-1 J'`` is the part of the row that the rows before do not
contain: least ones for rows to be chosen, and to be kept."""
_WORSE = 0.3
"""Part of what it was below which a pivot makes a choice of rows stale: where loops are open, in
the stages of a step, the rows that are let go stray by its inverse root."""
_CLOSED = 1e-10
"""Residual of loops that are closed: rad, characteristic lengths."""
_NOISE = 1e-10
"""Entries below this part of the largest one count as zero: the row vanishes."""

_EQUAL = 1e-9
"""Relative difference of accelerations that are the same."""


class _Ties(NamedTuple):
    """What ties the loops of a robot; nothing of it changes.

    Args:
        models: constraint models of Pinocchio.
        held: per loop the rows of the twist of A relative to B, in B, that its pair restricts.
        places: place of each of these among all rows of the models.
        units: factor that makes these rows compare: one over the length for linear ones.
        size: number of rows of the models.
    """

    models: pin.StdVec_RigidConstraintModel
    held: list[list[int]]
    places: NDArray[np.intp]
    units: Array
    size: int


_KNOWN: WeakKeyDictionary[Mechanism, _Ties | None] = WeakKeyDictionary()
"""Robots for which the solver was tried: their ties, None if it is not to be used."""


class TiedLoops:
    """A robot's loops as constraint models of Pinocchio, and which of their rows are held.

    Args:
        robot: the mechanism.
        ties: what ties its loops.
        whole: all rows of its loops.
        data: work space, of which nothing is kept from call to call; a new one by default.
    """

    def __init__(
        self, robot: Mechanism, ties: _Ties, whole: Constraints, data: pin.Data | None = None
    ) -> None:
        self._robot = robot
        self._model, self._data = robot.model, data or robot.model.createData()
        self._ties, self._held, self._places, self._units, self._size = ties
        self._states = pin.StdVec_RigidConstraintData()
        for tie in self._ties:
            self._states.append(tie.createData())
        self._rows = whole
        self._bad: list[float] | None = None
        self._worse: list[float] = []
        self._damping: Array | None = None
        pin.initConstraintDynamics(self._model, self._data, self._ties, self._states)
        self._system = self._data.constraint_chol
        self._right = np.empty(self._size + robot.nv)

    def __reduce__(self) -> tuple[Callable[[Mechanism], TiedLoops | None], tuple[Mechanism]]:
        """Constraint models cannot be pickled: they are made, and rows chosen, anew."""
        return _without_choice, (self._robot,)

    @classmethod
    def of(cls, rows: RowSet, q: Array, rank: int, data: pin.Data) -> TiedLoops | None:
        """The robot in Pinocchio's solver, if that gives the accelerations of its rows.

        Args:
            rows: all rows of the robot; None is returned if not all of them are such loops.
            q: an assembled configuration.
            rank: number of independent rows.
            data: work space for all calls.
        """
        robot = rows.robot
        parts = [rows.loops.rows_of[loop.name] for loop in robot.loops]
        if rank == 0 or sum(part.stop - part.start for part in parts) != len(rows):
            return None
        ties = _KNOWN[robot] if robot in _KNOWN else _tied(robot)
        if ties is None:
            return None
        made = cls(robot, ties, rows.whole, data)
        if not made.choose(q, rank):
            return None
        if robot not in _KNOWN:
            agrees = _agrees(made, rows, q, rank)
            if agrees is None:
                return None
            _KNOWN[robot] = ties if agrees else None
        return None if _KNOWN[robot] is None else made

    def choose(self, q: Array, rank: int) -> bool:
        """Choose rows to hold at a configuration; says whether there are good ones.

        Args:
            q: configuration, shape (nq,).
            rank: number of independent rows.
        """
        self._bad = self._damping = None
        try:
            gram = self._gram(q)
        except (SingularMass, NotFinite):  # here is no inverse mass matrix, which is needed
            return False
        chosen = _independent(gram * np.outer(self._units, self._units), rank)
        if chosen is None:
            return False
        at, sizes = self._places[chosen], np.diagonal(gram)[chosen]
        least = float(sizes.min())
        bad = np.zeros(self._size)
        bad[at] = -_BAD * sizes
        worse = bad.copy()
        if len(at) < len(self._places):
            # Pinocchio eliminates the last row first.
            last = chosen[::-1]
            pivots = np.diagonal(np.linalg.cholesky(gram[np.ix_(last, last)]))[::-1] ** 2
            worse[at] = np.minimum(bad[at], -_WORSE * pivots)
        self._bad, self._worse, self._rank = bad.tolist(), worse.tolist(), rank
        self._proximal = pin.ProximalSettings(0.0, 0.0, _HELD * least, 1)
        if len(at) < self._size:
            self._damping = np.full(self._size, _FREE * least)
            self._damping[at] = _HELD * least
        return True

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array | None:
        """Acceleration, shape (nv,); None where no rows are chosen, or they are no good choice."""
        if self._bad is None:
            return None
        a = self._solved(q, v, tau)
        # The pivots of the rows come first, with a minus; NaN if the mass matrix is singular.
        pivots = self._system.D[: self._size].tolist()
        if all(map(le, pivots, self._worse)):
            return a
        if not all(map(le, pivots, self._bad)):
            return None
        # All good choices give the same accelerations here, but not inside a step.
        if self._are_closed():
            self.choose(q, self._rank)
        return a

    def _are_closed(self) -> bool:
        """Whether the loops are closed at the configuration that was solved last."""
        apart = np.concatenate([
            pin.log6(state.c1Mc2).vector[rows]
            for state, rows in zip(self._states, self._held, strict=True)
        ])  # fmt: skip
        return float(np.abs(self._units * apart).max()) < _CLOSED

    def _gram(self, q: Array) -> Array:
        """``J M^-1 J'`` of all rows of the pairs at a configuration.

        Pinocchio's solver gives it with a damping, and nothing is known of its size yet.
        """
        model, data = self._model, self._data
        M = from_upper(pin.crba(model, data, q))
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        J = self._rows.jacobian_at(data, q)[: len(self._places)]
        root = factor_mass(M, J[:0])[1]
        Y = triangular()(1.0, root, J.T, lower=1)
        return np.asarray(Y.T @ Y)

    def _solved(self, q: Array, v: Array, tau: Array) -> Array:
        model, data, ties, states = self._model, self._data, self._ties, self._states
        a = pin.constraintDynamics(model, data, q, v, tau, ties, states, self._proximal)
        if self._damping is None:
            return np.array(a)
        self._system.compute(model, data, ties, states, self._damping)
        right, size = self._right, self._size
        right[:size] = data.primal_rhs_contact
        np.subtract(tau, data.nle, out=right[size:])
        return np.asarray(self._system.solve(right)[size:])


def _independent(gram: Array, rank: int) -> NDArray[np.intp] | None:
    """Rows that contain the others, by pivoting; None if no choice is good.

    Args:
        gram: ``J M^-1 J'`` of rows that compare, shape (m, m).
        rank: number of independent rows.
    """
    if not np.isfinite(gram).all():
        return None
    if rank == len(gram):
        return np.arange(rank)
    sizes = np.diagonal(gram).copy()
    sizes[sizes < _NOISE * sizes.max()] = np.inf
    chosen: list[int] = []
    for _ in range(rank):
        left = np.diagonal(gram) / sizes
        left[chosen] = 0.0
        best = int(np.argmax(left))  # of equal ones the first, whatever rounding says
        if left[best] < _GOOD:
            return None
        chosen.append(best)
        gram = gram - np.outer(gram[:, best], gram[best]) / gram[best, best]
    return np.sort(np.array(chosen, dtype=np.intp))


def _agrees(tied: TiedLoops, rows: RowSet, q: Array, rank: int) -> bool | None:
    """Whether accelerations are those of the rows at a random velocity with random forces.

    None if the state is too near a singularity to tell. Some joints and inertias are not all in
    Pinocchio's solver, and it says nothing of that.
    """
    robot, rng = rows.robot, np.random.default_rng(0)
    model, data, rest = robot.model, robot.model.createData(), np.zeros(robot.nv)
    unit = np.where(robot.is_translation, robot.length, 1.0)
    v, push = unit * rng.standard_normal((2, robot.nv))
    M = from_upper(pin.crba(model, data, q))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    J = rows.loops.jacobian_at(data, q)
    saddle = Saddle(M, J, rows.scale, max_rank=rank)
    v -= saddle.project(J @ v)
    pin.forwardKinematics(model, data, q, v, rest)
    gamma = rows.loops.gamma_at(data, q, v)
    tau = M @ push
    exact = saddle.solve(tau - pin.nonLinearEffects(model, data, q, v), -gamma)[0] / unit
    found = tied.acceleration(q, v, tau)
    if found is None:
        return None
    return float(np.abs(found / unit - exact).max()) < _EQUAL * float(np.abs(exact).max())


def _tied(robot: Mechanism) -> _Ties | None:
    """What ties the loops of a robot; None if constraint models cannot express them."""
    models = pin.StdVec_RigidConstraintModel()
    held: list[list[int]] = []
    places: list[int] = []
    units: list[float] = []
    for loop in robot.loops:
        pair = loop.pair
        if not isinstance(pair, MotionGroup):
            return None
        rows = _held_rows(pair)
        if not rows:
            return None
        a, b = (robot.model.frames[index] for index in (loop.frame_a, loop.frame_b))
        point = pair.is_point and not _between_free_bodies(robot.model, a, b)
        # Twists are those of A relative to B, in B.
        models.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D if point else pin.ContactType.CONTACT_6D,
                robot.model, b.parentJoint, b.placement, a.parentJoint, a.placement,
                pin.ReferenceFrame.LOCAL,
            )
        )  # fmt: skip
        held.append(rows)
        places += [len(units) + row for row in rows]
        units += [1 / robot.length] * 3 + ([] if point else [1.0] * 3)
    at = np.array(places, dtype=np.intp)
    return _Ties(models, held, at, np.array(units)[at], len(units)) if places else None


def _without_choice(robot: Mechanism) -> TiedLoops | None:
    """The solver before it has chosen rows."""
    ties = _tied(robot)
    return None if ties is None else TiedLoops(robot, ties, Constraints(robot, full=True))


def _held_rows(pair: MotionGroup) -> list[int]:
    """Rows of the relative twist that a pair restricts; none if it restricts combinations.

    All of them, also after regularization: a point would be enough for a planar hinge then, but
    what is kept of frames are rows of the pair where the loop is open, too.
    """
    selector = pair.selector(pin.SE3.Identity())
    if np.count_nonzero(selector) > len(selector):
        return []
    return [int(column) for column in np.argmax(selector, axis=1)]


def _between_free_bodies(model: pin.Model, a: pin.Frame, b: pin.Frame) -> bool:
    """Whether a loop ties bodies in absolute coordinates.

    Where a loop is open, a tied point differs from the rows of its pair by the turning of A. By
    these rows alone integration on SE(3) keeps such loops closed (paper 2), so they get frames.
    """
    return all(
        joint == 0 or (model.nvs[joint] == 6 and model.parents[joint] == 0)
        for joint in (a.parentJoint, b.parentJoint)
    )
