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

from ..lapack import lapack
from ..mechanism import Mechanism
from ..pairs import MotionGroup, Pair
from ..rows import RowSet
from ..saddle import Saddle

__all__ = ["TiedLoops"]

Array = NDArray[np.float64]

_FREE, _HELD = 1e20, 1e-20
"""Damping of a row that is let go, whose multiplier vanishes, and of one that is held; over the
smallest entry of ``J M^-1 J'``."""
_GOOD, _BAD = 1e-3, 1e-5
"""A pivot over its row's entry in ``J M^-1 J'`` is the part of the row that the rows before do not
contain: least ones for rows to be chosen, and to be kept."""
_NOISE = 1e-5
"""Rows below this part of the largest one count as zero."""
_SMALL = 1e-12
"""Damping where nothing is known of the rows yet."""
_POINT = [0, 1, 2]

_EQUAL = 1e-9
"""Relative difference of accelerations that are the same."""


class _Ties(NamedTuple):
    """What ties the loops of a robot; nothing of it changes.

    Args:
        models: constraint models of Pinocchio.
        places: per row that a pair restricts its place among all rows of the models.
        units: factor that makes these rows compare: one over the length for linear ones.
        size: number of rows of the models.
    """

    models: pin.StdVec_RigidConstraintModel
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
        data: work space, of which nothing is kept from call to call; a new one by default.
    """

    def __init__(self, robot: Mechanism, ties: _Ties, data: pin.Data | None = None) -> None:
        self._robot = robot
        self._model, self._data = robot.model, data or robot.model.createData()
        self._ties, self._places, self._units, self._size = ties
        self._states = pin.StdVec_RigidConstraintData()
        for tie in self._ties:
            self._states.append(tie.createData())
        self._rest = np.zeros(robot.nv)
        self._bad: list[float] | None = None
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
        if sum(part.stop - part.start for part in parts) != len(rows):
            return None
        ties = _KNOWN[robot] if robot in _KNOWN else _tied(robot)
        if ties is None:
            return None
        made = cls(robot, ties, data)
        if not made.choose(q, rank):
            return None
        if robot not in _KNOWN:
            _KNOWN[robot] = ties if _agrees(made, rows, q, rank) else None
        return None if _KNOWN[robot] is None else made

    def choose(self, q: Array, rank: int) -> bool:
        """Choose rows to hold at a configuration; says whether there are good ones.

        Args:
            q: configuration, shape (nq,).
            rank: number of independent rows.
        """
        self._bad = None
        self._proximal, self._damping = pin.ProximalSettings(0.0, 0.0, _SMALL, 1), None
        self._solved(q, self._rest, self._rest)
        gram = self._system.getInverseOperationalSpaceInertiaMatrix()
        at = self._places
        chosen = _independent(gram[at[:, None], at] * np.outer(self._units, self._units), rank)
        if chosen is None:
            return False
        at, sizes = at[chosen], np.diagonal(gram)[at[chosen]]
        least = float(sizes.min(initial=np.inf))
        bad = np.zeros(self._size)
        bad[at] = -_BAD * sizes
        self._bad = bad.tolist()
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
        return a if all(map(le, pivots, self._bad)) else None

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
    if rank == len(gram):
        return np.arange(rank)
    sizes = np.sqrt(np.diagonal(gram))
    sizes[sizes < _NOISE * sizes.max()] = np.inf
    _, order, found, _ = lapack().dpstrf(gram / np.outer(sizes, sizes), tol=_GOOD, lower=1)
    return np.sort(order[:rank].astype(np.intp) - 1) if found >= rank else None


def _agrees(tied: TiedLoops, rows: RowSet, q: Array, rank: int) -> bool:
    """Whether accelerations are those of the rows at a random velocity with random forces.

    Some joints and inertias are not all in Pinocchio's solver, and it says nothing of that.
    """
    robot, rng = rows.robot, np.random.default_rng(0)
    model, data, rest = robot.model, robot.model.createData(), np.zeros(robot.nv)
    unit = np.where(robot.is_translation, robot.length, 1.0)
    v, push = unit * rng.standard_normal((2, robot.nv))
    M = np.triu(pin.crba(model, data, q))
    M += np.triu(M, 1).T
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    saddle = Saddle(M, rows.loops.jacobian_at(data, q), rows.scale, max_rank=rank)
    v -= saddle.project(rows.loops.jacobian_at(data, q) @ v)
    pin.forwardKinematics(model, data, q, v, rest)
    gamma = rows.loops.gamma_at(data, q, v)
    tau = M @ push
    exact = saddle.solve(tau - pin.nonLinearEffects(model, data, q, v), -gamma)[0] / unit
    found = tied.acceleration(q, v, tau)
    if found is None:
        return False
    return float(np.abs(found / unit - exact).max()) < _EQUAL * float(np.abs(exact).max())


def _tied(robot: Mechanism) -> _Ties | None:
    """What ties the loops of a robot; None if constraint models cannot express them."""
    models = pin.StdVec_RigidConstraintModel()
    places: list[int] = []
    units: list[float] = []
    for loop in robot.loops:
        rows = _held_rows(loop.pair)
        if not rows:
            return None
        a, b = (robot.model.frames[index] for index in (loop.frame_a, loop.frame_b))
        point = rows == _POINT and not _between_free_bodies(robot.model, a, b)
        # Twists are those of A relative to B, in B.
        models.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D if point else pin.ContactType.CONTACT_6D,
                robot.model, b.parentJoint, b.placement, a.parentJoint, a.placement,
                pin.ReferenceFrame.LOCAL,
            )
        )  # fmt: skip
        places += [len(units) + row for row in rows]
        units += [1 / robot.length] * 3 + ([] if point else [1.0] * 3)
    at = np.array(places, dtype=np.intp)
    return _Ties(models, at, np.array(units)[at], len(units)) if places else None


def _without_choice(robot: Mechanism) -> TiedLoops | None:
    """The solver before it has chosen rows."""
    ties = _tied(robot)
    return None if ties is None else TiedLoops(robot, ties)


def _held_rows(pair: Pair) -> list[int]:
    """Rows of the relative twist that a pair restricts; none if it restricts combinations.

    All of them, also after regularization: a point would be enough for a planar hinge then, but
    what is kept of frames are rows of the pair where the loop is open, too.
    """
    if not isinstance(pair, MotionGroup):
        return []
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
