"""Through singular poses: the equations of motion on one branch, continued from regular poses.

At a singular pose branches of a mechanism meet, and its rows lose rank. The branch on which a robot
moves goes straight through: configurations, the motions that the branch allows, and accelerations
are as smooth there as elsewhere; only the rows cannot say what they are. So what the rows say at
regular poses before and behind is interpolated. With coordinates ``y`` of the branch and speeds
``u = E v`` these are the configuration ``q(y)``, the basis ``N(y)`` of the velocities, and ``w``:

    v = N u + c,    a = N u' + w,    E N = 1,

where ``c`` belongs to rows that move. All are functions on the branch. They are interpolated at
nodes on the line through the state along which rows regain their rank the fastest. With
``R N = 0``, as many rows ``R`` as the branch leaves out motions, these are regular rows

    R v = R c,    R a = R w,

which stand in for those that lose rank, beside the rows on velocities alone. The nodes leave out
the singular pose and what is close to it; a state that is not itself so close is its only node.
What is left out by interpolation is of order `passage_lines.NODES` in their distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.equations import System
from ..dynamics.kernel_tables import evaluate_rows, loop_tables
from ..integrate import NoBranch
from ..linalg.saddle import Elimination, Saddle
from ..tolerances import SAME, TINY, Regularity
from .modes import RobotManifold
from .passage_lines import Line, Nodes, foresee, line_weights, nearest_loss, node_places

State = tuple[float, Array, Array]
"""Time, configuration, velocity."""

_CLOSE = 0.4
"""Part of the line on either side within which a state is interpolated."""
_REACHES = tuple(0.5 * 0.6**k for k in range(8))
"""Half lengths of lines, of which the first is taken that is good enough: rad, robot lengths."""
_STRIDE = 0.2
"""Distance of poses in which a branch is explored, over that half length."""
_BEYOND = 1.2
"""How far it is explored on either side of the singular pose, over that half length."""
_FARTHEST = 120
"""Poses at which a branch is looked at, at most."""
_STRAY = 0.3
"""Part of a line by which a node may be off; farther off it is on another branch."""
_MOVED = 0.5
"""Part of the regularity of nodes through the base below which others are of another line."""
_CLOSER = 0.1
"""Part of the error between nodes to which shorter lines have to bring it."""
_ITERATIONS = 10
_HELD_AGAIN = 4
"""How often a state moves along its branch to where what is held is, which Newton's method finds:
a state as near as the end of a step is there after two."""
_NUDGE = 1e-4
"""How far beside the base it is asked where rows get less regular: rad, robot lengths."""
_NONE = np.zeros(0, dtype=np.intp)
_DOUBT = 10.0
"""Singular values of rows up to so many times what these are open by may be nothing."""
_ASIDE, _NEARBY = 0.1, 0.3
"""How far from a singular pose its branch is looked for, and found: rad, robot lengths."""


_Around: TypeAlias = tuple[Nodes | None, Array, Array | None]
"""Nodes around a state, if there are any, their weights, and those of its rate if they tell it."""


class _NoLoss(NoBranch):
    """Rows lose no rank as far as a line was followed; shorter strides lead less far."""


class BranchPoint(NamedTuple):
    """The branch where a state is.

    Args:
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        basis: ``N``, shape (nv, d).
        drift: ``c``, shape (nv,).
        around: nodes around it, velocities there, the weights of values, and of rates if told.
    """

    q: Array
    v: Array
    basis: Array
    drift: Array
    around: tuple[Nodes, Array, Array, Array | None]

    @property
    def is_regular(self) -> bool:
        """Whether it is its own node, where rows tell all that the branch does."""
        regularity = self.around[0].regularity
        return len(regularity) == 1 and float(regularity[0]) > Regularity.LOST


class Passage:
    """A branch through a singular pose, and the motion on it.

    It is the branch of a state that is closed and regular; `NoBranch` if that is not smooth.
    """

    def __init__(self, equations: EquationsOfMotion, t: float, q: Array, v: Array) -> None:
        self._equations, self._base, self._t, self._v = equations, q, t, v
        robot, rows = equations.robot, equations.rows
        self._group = RobotManifold(robot)
        self._unit = np.where(robot.is_translation, robot.length, 1.0)
        # A locked axis of a joint that turns about others restricts velocities, as rolling does.
        joints = [np.arange(robot.nv)[robot.coordinates(name).v] for name in robot.joints]
        curved = [at for at in joints if self._group.curved[at].any()]
        turning = [at for at in curved if not np.isin(at, rows.locked).all()]
        rolls = np.isin(rows.lock_columns, np.concatenate([_NONE, *turning]))
        self._free = np.delete(np.arange(robot.nv), rows.lock_columns[~rolls])
        self._closing = np.flatnonzero(rows.holonomic)
        self._scale = rows.scale[self._closing]
        plain = len(self._closing) == len(rows.loops) == rows.unlocked
        native = plain and not rows.moving and equations.wanted_engine == "native"
        self._tables = loop_tables(rows) if native else None
        self._rolling = np.flatnonzero(~rows.holonomic[: rows.unlocked])
        self._moving = Elimination(rows.locked, robot.nv)
        self._is_closed_alone = len(self._rolling) == 0 and not rolls.any()
        n, speed = len(self._free), float(np.linalg.norm(v / self._unit))
        # Rows that depend on others are folded into them.
        J = self._rows(np.array([t]), np.zeros((1, n)))[0][0]
        (U, _, V), rank = np.linalg.svd(J), _rank(J)
        self._fold, self._along = U[:, :rank].T, V[rank:]
        self._pace = (speed or 1.0) if rows.moving else None
        self._is_curve = len(self._along) == 1 and not rows.moving
        base = self._solve(np.zeros((1, self._axes)), np.zeros((1, n)), np.inf)
        if base is None or base.regularity[0] < Regularity.BASE:
            raise NoBranch("the pose where the passage starts is not regular")
        self._line = self._find_line(base)

    @property
    def start(self) -> State:
        """Time, configuration and velocity from which it is opened again."""
        return self._t, self._base, self._v

    def acceleration(self, t: float, q: Array, v: Array) -> Array:
        """Acceleration at the state of the branch that has the coordinates of this one."""
        M, f, J, gamma, _ = self.system(t, q, v)
        M, f, J, rates = self._moving.reduce(M, f, J, -gamma)
        return self._moving.restore(Saddle(M, J).solve(f, rates)[0])

    def system(self, t: float, q: Array, v: Array) -> System:
        """What a formulation solves at that state: `EquationsOfMotion.system` with rows ``R``.

        Their multipliers are not those of the loops, but all together give the same forces. Locked
        coordinates have no row.
        """
        return self.system_at(t, self.locate(t, q, v))

    def system_at(self, t: float, here: BranchPoint) -> System:
        """The same at a point of the branch."""
        M, f, J, gamma, _ = self._equations.system(t, here.q, here.v)
        R, K = self._regular_rows(here), self._rolling
        nodes, velocities, value, slope = here.around
        w = value @ self._bends(nodes, velocities) if slope is None else slope @ velocities
        scale = self._equations.rows.scale[K]
        gamma = np.concatenate([-R @ w, scale * gamma[K]])
        return M, f, np.vstack([R, scale[:, None] * J[K]]), gamma, None

    def project(
        self, t: float, q: Array, v: Array, held: NDArray[np.intp] = _NONE
    ) -> tuple[Array, Array]:
        """The state of the branch that has the coordinates of this one.

        ``held``: velocity coordinates that keep theirs, and stay where they are.
        """
        asked, known, K = q, self._moving.known, self._rolling
        moves = Elimination(np.union1d(held, known), len(v))
        for _ in range(_HELD_AGAIN):
            here = self.locate(t, q, v)
            J, b, residual = self._equations.closure(t, here.q)
            scale = self._equations.rows.scale[: len(residual)]
            _require_closed((scale * residual)[self._closing])
            if self._is_closed_alone and len(held) == 0:
                return here.q, here.v
            R, M = self._regular_rows(here), self._equations.mass(here.q)
            rows, none = np.vstack([R, scale[K, None] * J[K]]), np.zeros_like(v)
            none[held] = self._group.difference(here.q, asked)[held]
            rounding = Regularity.NODE_CLOSED + np.spacing(_size(here.q))
            if np.abs(none / self._unit).max() < rounding:
                break
            # A branch is one of what moves: what is held is where it was only along its motions.
            reduced = moves.reduce(M, none, rows, -rows @ none)
            q = self._group.integrate(
                here.q, none + moves.restore(Saddle(reduced[0], reduced[2]).project(reduced[3]))
            )
        else:
            raise NoBranch("the branch does not lead to where what is held is")
        kept = here.v.copy()
        kept[held], kept[known] = v[held], 0.0
        rest = np.concatenate([R @ here.drift, scale[K] * b[K]]) - rows @ kept
        M, _, rows, rest = moves.reduce(M, kept, rows, rest)
        return here.q, kept + moves.restore(Saddle(M, rows).project(rest))

    def _regular_rows(self, here: BranchPoint) -> Array:
        """``R``: orthonormal, in units of the coordinates, none of which is locked."""
        basis, at = here.basis / self._unit[:, None], self._free
        Q = np.linalg.qr(basis[at], mode="complete")[0]
        rows = np.zeros((len(at) - basis.shape[1], len(basis)))
        rows[:, at] = Q[:, basis.shape[1] :].T / self._unit[at]
        return rows

    # -- the branch where a state is ------------------------------------------------------------

    def locate(self, t: float, q: Array, v: Array) -> BranchPoint:
        """The branch where it has the coordinates and speeds of a state."""
        psi, speeds = self._group.difference(self._base, q), self._along @ self._seen(v)
        rate = self._along @ self._seen(self._group.dexp_inv(self._base, psi, v))
        psi = self._seen(psi)
        y = self._along @ psi
        if self._pace is not None:
            y, rate = np.append(y, self._pace * (t - self._t)), np.append(rate, self._pace)
        nodes, value, slope = self._regular(self._around(y, psi, rate))
        velocities = nodes.basis @ speeds + nodes.drift
        basis, drift = np.tensordot(value, nodes.basis, 1), value @ nodes.drift
        q = self._configurations((value @ nodes.psi)[None])[0]
        around = nodes, velocities, value, slope
        return BranchPoint(q, value @ velocities, basis, drift, around)

    def _regular(self, around: Iterable[_Around]) -> tuple[Nodes, Array, Array | None]:
        """The first of these whose nodes are there, and as regular as those of the line."""
        least = _MOVED * self._line.nodes.regularity.min()
        for nodes, value, slope in around:
            if nodes is not None and nodes.regularity.min() >= least:
                return nodes, value, slope
        raise NoBranch("the branch cannot be followed through the singular pose")

    def _around(self, y: Array, psi: Array, rate: Array) -> Iterator[_Around]:
        """Nodes around a state, their weights, and those of its rate.

        It is its own node if it is regular. Near the singular pose others are on the line along
        which it moves if that leads across; otherwise, or if the branch is not smooth there, on
        that of the base, and tell nothing of the rate.
        """
        line = self._line
        place = float(line.along @ y)
        is_near = abs(place - line.middle) <= _CLOSE * line.reach
        if not (is_near and self._is_curve):
            yield self._solve(y[None], psi[None], _STRAY * line.reach), np.ones(1), None
        if not is_near:
            return
        ahead = float(line.along @ rate)
        value, slope = line_weights(line.places, place)
        if self._is_curve:
            yield line.nodes, value, ahead * slope
            return
        aside, across = y - place * line.along, rate - ahead * line.along
        leads = _size(across) < abs(ahead)
        for tilt in ([across / ahead] if leads else []) + [0.0 * across]:
            beside = aside + (line.places - place)[:, None] * tilt
            guess = line.nodes.psi + (line.nodes.slope @ beside[:, :, None])[:, :, 0]
            guess += psi - value @ guess  # what bends the branch bends it all along
            at = beside + line.places[:, None] * line.along
            nodes = self._solve(at, guess, _STRAY * line.reach)
            yield nodes, value, ahead * slope if tilt.any() or not across.any() else None

    def _bends(self, nodes: Nodes, velocities: Array) -> Array:
        """``w`` at nodes by their rows, shape (k, nv)."""
        at, q, w = self._closing, self._configurations(nodes.psi), np.zeros_like(velocities)
        if self._tables is not None:
            gamma = evaluate_rows(self._tables, len(at), q, velocities)[1]
        else:
            states = zip(nodes.t.tolist(), q, velocities, strict=True)
            gamma = np.array([self._equations.terms(*state)[2][at] for state in states])
        folded = self._fold @ (self._scale * gamma)[:, :, None]
        w[:, self._free] = -(nodes.solver[:, :, : len(self._fold)] @ folded)[:, :, 0]
        return self._unit * w

    # -- nodes ------------------------------------------------------------------------------------

    @property
    def _axes(self) -> int:
        """Number of coordinates of the branch, with time as rows move."""
        return len(self._along) + (self._pace is not None)

    def _times(self, y: Array) -> Array:
        """Times of coordinates, shape (k,)."""
        return np.full(len(y), self._t) if self._pace is None else self._t + y[:, -1] / self._pace

    def _seen(self, motion: Array) -> Array:
        """A motion of free joints, without units."""
        return (motion / self._unit)[self._free]

    def _steps(self, psi: Array) -> Array:
        """``psi`` of all coordinates, with units, shape (k, nv)."""
        whole = np.zeros((len(psi), len(self._unit)))
        whole[:, self._free] = self._unit[self._free] * psi
        return whole

    def _configurations(self, psi: Array) -> Array:
        """Configurations, shape (k, nq)."""
        steps = self._steps(psi)
        if len(self._base) == len(self._unit):
            return np.asarray(self._base + steps)
        return np.array([self._group.integrate(self._base, step) for step in steps])

    def _charts(self, psi: Array) -> Array:
        """Free velocities per rate of ``psi``, without units, shape (k, n, n)."""
        rates = np.diag(self._unit)[:, self._free]
        charts = np.array([self._group.dexp(self._base, x, rates) for x in self._steps(psi)])
        return charts[:, self._free] / self._unit[self._free, None]

    def _rows(self, t: Array, psi: Array) -> tuple[Array, Array, Array]:
        """Rows on free velocities, what they ask for, and residuals, without units.

        Shapes (k, m, n), (k, m), (k, m).
        """
        at, scale, q = self._closing, self._scale, self._configurations(psi)
        if self._tables is not None:
            rest = np.zeros((len(q), len(self._unit)))
            J, b, residual = evaluate_rows(self._tables, len(at), q, rest)
            b = np.zeros_like(residual)
        else:
            states = zip(t.tolist(), q, strict=True)
            parts = zip(*(self._equations.closure(*state) for state in states), strict=True)
            J, b, residual = (np.array(part)[:, at] for part in parts)
        J = J[:, :, self._free] * (scale[:, None] * self._unit[self._free])
        return J, scale * b, scale * residual

    def _solve(self, y: Array, guess: Array, reach: float) -> Nodes | None:
        """Nodes with given coordinates near guesses, by Newton's method; None if one fails."""
        r, d, t = len(self._fold), len(self._along), self._times(y)
        psi, is_last = guess, False
        for _ in range(_ITERATIONS):
            J, b, residual = self._rows(t, psi)
            tangent: Array = np.empty((len(y), r + d, r + d))
            tangent[:, :r], tangent[:, r:] = self._fold @ J, self._along
            A = tangent
            if not self._group.flat:
                A = tangent.copy()
                A[:, :r] = tangent[:, :r] @ self._charts(psi)
            missed = np.concatenate([-residual @ self._fold.T, y[:, :d] - psi @ self._along.T], 1)
            try:
                inverse = np.asarray(np.linalg.inv(A), dtype=float)
            except np.linalg.LinAlgError:
                return None
            step = (inverse @ missed[:, :, None])[:, :, 0]
            psi, size = psi + step, _size(step)
            if not _size(psi - guess) < reach:
                return None
            if is_last or size < Regularity.NODE_CLOSED:
                break
            # Convergence is quadratic: the next step is not larger than this.
            is_last = size**2 * _size(inverse) < Regularity.NODE_CLOSED
        else:
            return None
        asked = self._fold @ b[:, :, None]
        slope = inverse[:, :, r:]
        if self._pace is not None:
            slope = np.concatenate([slope, inverse[:, :, :r] @ asked / self._pace], 2)
        solver = inverse if A is tangent else np.asarray(np.linalg.inv(tangent), dtype=float)
        sizes = np.sqrt((tangent**2).sum((1, 2)) * (solver**2).sum((1, 2)))
        rates = np.zeros((len(y), len(self._unit), d + 1))
        rates[:, self._free, :d] = solver[:, :, r:]
        rates[:, self._free, d:] = solver[:, :, :r] @ asked
        rates *= self._unit[:, None]
        return Nodes(t, psi, slope, solver, rates[:, :, :d], rates[:, :, d], 1.0 / sizes)

    # -- the line through the base ----------------------------------------------------------------

    def _find_line(self, base: Nodes) -> Line:
        """The longest line through the singular pose that tells the branch well."""
        if self._pace is None and not self._v.any():  # it rests where it is, singular or not
            return Line(np.zeros(self._axes), np.inf, 1.0, np.zeros(1), base)
        best, least, why = None, np.inf, NoBranch("nothing moves")
        for along in self._directions(base) if self._axes else ():
            for reach in _REACHES:
                try:
                    line = self._line_through(base, along, reach)
                    missed = self._missed(line)
                except NoBranch as trouble:
                    why = trouble
                    if isinstance(trouble, _NoLoss):
                        break
                    continue
                # Closer nodes weigh rounding more: they have to be worth it.
                if is_better := best is None or missed < _CLOSER * least:
                    best, least = line, missed
                enough = Regularity.WELL_TOLD if is_better else Regularity.MEETING
                if least <= enough:  # else rounding is all that is left of it
                    break
            if best is not None:
                return best
        raise why

    def _directions(self, base: Nodes) -> Iterator[Array]:
        """Where the state goes, and where rows lose their rank the fastest: unit vectors."""
        motion = self._along @ self._seen(self._v)
        if self._pace is not None:
            motion = np.append(motion, self._pace)
        if motion.any():
            yield motion / _size(motion)
        y = _NUDGE * np.eye(self._axes)
        beside = self._solve(y, y @ base.slope[0].T, np.inf) if len(motion) > 1 else None
        if beside is not None and (falls := base.regularity - beside.regularity).any():
            yield falls / _size(falls)

    def _line_through(self, base: Nodes, along: Array, reach: float) -> Line:
        """A line through the base with nodes on both sides of the singular pose."""
        stride, beyond = _STRIDE * reach * along, _BEYOND / _STRIDE
        known, regularity, first, last, low = {0: base}, {0: float(base.regularity[0])}, 0, 0, 0
        while min(last - low, low - first) < beyond:
            if last - first > _FARTHEST:
                raise _NoLoss("the branch does not get regular again")
            way = 1 if last - low < beyond else -1
            k = last + 1 if way > 0 else first - 1
            first, last = min(first, k), max(last, k)
            near = {j: node for j, node in known.items() if j * way >= 0}
            stray = (_STRAY if len(near) > 1 else 1.0) * _STRIDE * reach
            node = self._solve((k * stride)[None], foresee(near, k, stride)[None], stray)
            regularity[k] = 0.0 if node is None else float(node.regularity[0])
            if node is not None and regularity[k] > Regularity.NODE * base.regularity[0]:
                known[k] = node
            low = nearest_loss(regularity)
        before, behind = regularity[low - 1], regularity[low + 1]
        # Beside the singular pose it is as large as the distance from there.
        middle = low + (before - behind) / max(before + behind, TINY)
        at = middle + node_places() / _STRIDE
        guess = np.array([foresee(known, place, stride) for place in at])
        nodes = self._solve(at[:, None] * stride, guess, _STRAY * reach)
        if nodes is None:
            raise NoBranch("the branch turns too sharply to be interpolated")
        length = _STRIDE * reach
        return Line(along, length * middle, reach, length * at, nodes)

    def _missed(self, line: Line) -> float:
        """Error between the nodes of a line; `NoBranch` if they tell of no smooth branch."""
        J, _, residual = self._rows(line.nodes.t[:1], line.nodes.psi[:1])
        _require_closed(residual)
        if _rank(J[0]) != len(self._fold):
            raise NoBranch("the pose where the passage starts is singular")
        missed = 0.0
        for part in (-0.1, 0.0, 0.1):
            place = line.middle + part * line.reach
            psi = line_weights(line.places, place)[0] @ line.nodes.psi
            residual = self._rows(self._times((place * line.along)[None]), psi[None])[2]
            _require_closed(residual)
            missed = max(missed, _size(residual))
        for part in (-_CLOSE, _CLOSE):
            place = line.middle + part * line.reach
            weights, _ = line_weights(line.places, place)
            guess = weights @ line.nodes.psi
            node = self._solve((place * line.along)[None], guess[None], _STRAY * line.reach)
            if node is None:
                raise NoBranch("the branch turns too sharply to be interpolated")
            basis = np.tensordot(weights, line.nodes.basis, 1)
            off = np.abs(basis - node.basis[0]).max(initial=0.0)
            if off > Regularity.SMOOTH * np.abs(basis).max(initial=1.0):
                raise NoBranch("the branch turns too sharply to be interpolated")
            missed = max(missed, float(off))
        return missed


def _require_closed(residual: Array) -> None:
    """Branches that pass each other without meeting are not joined: there the motion turns."""
    if np.linalg.norm(residual) > Regularity.MEETING:
        raise NoBranch("branches come close there, but do not meet")


def open_passage(equations: EquationsOfMotion, t: float, q: Array, v: Array) -> Passage:
    """The branch of a closed state; in a singular pose its velocity says which one that is.

    `NoBranch` if there is no smooth branch, or several go on with this velocity.
    """
    try:
        return Passage(equations, t, q, v)
    except NoBranch:
        robot = equations.robot
        unit = np.where(robot.is_translation, robot.length, 1.0)
        speed = float(np.linalg.norm(v / unit))
        if speed == 0.0 or equations.rows.moving:
            raise
    before = _nearly_closed(equations, t, q, -_ASIDE / speed * v)
    if np.abs(pin.difference(robot.model, before, q) / unit).max() > _NEARBY:
        raise NoBranch("the loops do not close beside it")
    passage = Passage(equations, t, before, v)
    q_there, v_there = passage.project(t, q, v)
    off = np.abs(pin.difference(robot.model, q, q_there) / unit).max()
    turned = np.abs((v_there - v) / unit).max() / speed
    if off > Regularity.SAME_BRANCH or turned > Regularity.TURNED:
        raise NoBranch("branches meet there, and the velocity does not tell which one goes on")
    return passage


def _nearly_closed(equations: EquationsOfMotion, t: float, q: Array, step: Array) -> Array:
    """A configuration a step aside, closed as far as rows are independent without doubt."""
    robot, rows = equations.robot, equations.rows
    unit, at = np.where(robot.is_translation, robot.length, 1.0), np.flatnonzero(rows.holonomic)
    for _ in range(_ITERATIONS):
        q = pin.integrate(robot.model, q, step)
        J, _, residual = equations.closure(t, q)
        missed, J = (rows.scale * residual)[at], (rows.scale[:, None] * J * unit)[at]
        doubt = min(_DOUBT * _size(missed), 1.0)
        step = unit * np.linalg.lstsq(J, -missed, rcond=max(doubt, SAME))[0]
    return np.asarray(q)


def _rank(J: Array) -> int:
    """Number of rows that are independent at a regular pose."""
    values = np.linalg.svd(J, compute_uv=False)
    return int((values > Regularity.BASE * values.max(initial=0.0)).sum())


def _size(x: Array) -> float:
    """Frobenius' norm."""
    return math.sqrt(np.vdot(x, x))
