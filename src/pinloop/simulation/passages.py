"""Through singular poses: the equations of motion on one branch, continued from regular poses.

At a singular pose branches of a mechanism meet, and its rows lose rank. The branch on which a robot
moves goes straight through: configurations, the motions that the branch allows, and accelerations
are as smooth there as elsewhere; only the rows cannot say what they are. So what the rows say at
regular poses before and behind is interpolated. With coordinates ``y`` of the branch these are the
configuration ``q(y)`` and the basis ``N(y)`` of the velocities, at nodes on the line along which
``y`` moves:

    v = N y' + c,    a = N y'' + w,

where ``c`` belongs to rows that move and ``w`` is the rate of ``v`` along the line while ``y'``
stays. With ``R N = 0``, as many rows ``R`` as the branch leaves out motions, these are regular rows

    R v = R c,    R a = R w,

which stand in for those that lose rank, beside the rows on velocities alone. What is left out is of
seventh order in the distance of the nodes. The momentum with which the robot arrives says which
branch that is: the one through the regular poses that it has passed, or, if it starts in a singular
pose, the one along its velocity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.marks import Array
from ..dynamics import EquationsOfMotion
from ..dynamics.equations import System
from ..integrate import NoBranch
from ..linalg.dense import lapack, triangular_vector
from ..linalg.saddle import Elimination, Saddle
from ..tolerances import SAME, Regularity
from .modes import RobotManifold

State = tuple[float, Array, Array]
"""Time, configuration, velocity."""

_NODES = 8
"""Regular poses that are interpolated."""
_PLACES = 12
"""Places on either side at which they are looked for."""
_FARTHEST = 40
"""Places within which a branch gets as regular again as where it is looked at from."""
_LONGEST = 4_000
"""Places of a branch with one coordinate, at most."""
_FORESEEN = 5
"""Nodes from which the next one is foreseen."""
_SPACINGS = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
"""Distances of nodes, of which the first is taken that is good enough: rad, robot lengths."""
_STRAY = 0.3
"""Part of that distance by which a node may be off; farther off it is on another branch."""
_DIP = 0.5
"""Part of the regularity of a base below which a singular pose begins, and behind it ends."""
_ROOM = 4.0
"""By how much poses beside the line may be closed less well than those on it."""
_CLOSER = 0.1
"""Part of the residual of poses between nodes to which closer ones have to bring it."""
_ITERATIONS = 8
_NONE = np.zeros(0, dtype=np.intp)
_DOUBT = 10.0
"""Singular values of rows up to so many times what these are open by may be nothing."""
_ASIDE, _NEARBY = 0.1, 0.3
"""How far from a singular pose its branch is looked for, and found: rad, robot lengths."""


class _Node(NamedTuple):
    """A configuration of the branch.

    Args:
        psi: the configuration as seen from the base, of free coordinates, in units, shape (n,).
        slope: its change per coordinate of the branch, shape (n, d).
        flow: its change per time as rows move, shape (n,).
        basis: ``N``, shape (nv, d).
        drift: ``c``, shape (nv,).
        regularity: of rows and coordinates together, one over their condition.
    """

    psi: Array
    slope: Array
    flow: Array
    basis: Array
    drift: Array
    regularity: float


_Nodes = Callable[[int], _Node | None]
"""The node at a place of a line; None where it is not regular."""


class _Point(NamedTuple):
    """The branch where a state is.

    Args:
        q: configuration, shape (nq,).
        v: velocity, shape (nv,).
        basis: ``N``, shape (nv, d).
        drift: ``c``, shape (nv,).
        w: acceleration with ``y'' = 0``, shape (nv,).
    """

    q: Array
    v: Array
    basis: Array
    drift: Array
    w: Array


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
        self._motion, self._speed = self._seen(q, v)[1], float(np.linalg.norm(v / self._unit))
        self._closing = np.flatnonzero(rows.holonomic)
        self._rolling = np.flatnonzero(~rows.holonomic[: rows.unlocked])
        self._moving = Elimination(rows.locked, robot.nv)
        self._is_closed_alone = len(self._rolling) == 0 and not rolls.any()
        home = np.zeros(len(self._free))
        J = self._rows(t, home)[0]
        self._along = np.linalg.svd(J)[2][_rank(J) :]
        self._unity = np.eye(len(self._along))
        self._is_curve = len(self._along) == 1 and not rows.moving
        self._least = Regularity.BASE
        base = self._solve(t, np.zeros(len(self._along)), home, np.inf)
        if base is None:
            raise NoBranch("the pose where the passage starts is not regular")
        self._least = Regularity.NODE * base.regularity
        best: tuple[float, float, dict[int, _Node | None]] = (np.inf, 0.0, {})
        for self._spacing in _SPACINGS:
            self._curve: dict[int, _Node | None] = {0: base}
            missed = self._missed(t, base)
            # Closer nodes weigh rounding more: they have to be worth it.
            if missed < (_CLOSER * best[0] if best[0] < np.inf else np.inf):
                best = missed, self._spacing, self._curve
            if best[0] <= Regularity.WELL_TOLD or best[0] < missed == np.inf:
                break
        missed, self._spacing, self._curve = best
        if missed == np.inf:
            raise NoBranch("the branch turns too sharply to be interpolated")

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
        here = self._point(t, q, v)
        M, f, J, gamma, _ = self._equations.system(t, here.q, here.v)
        R, K = self._regular_rows(here), self._rolling
        scale = self._equations.rows.scale[K]
        gamma = np.concatenate([-R @ here.w, scale * gamma[K]])
        return M, f, np.vstack([R, scale[:, None] * J[K]]), gamma, None

    def project(
        self, t: float, q: Array, v: Array, held: NDArray[np.intp] = _NONE
    ) -> tuple[Array, Array]:
        """The state of the branch that has the coordinates of this one.

        ``held``: velocity coordinates that keep theirs.
        """
        here = self._point(t, q, v)
        J, b, residual = self._equations.closure(t, here.q)
        scale, K = self._equations.rows.scale[: len(residual)], self._rolling
        self._require_closed((scale * residual)[self._closing])
        if self._is_closed_alone and len(held) == 0:
            return here.q, here.v
        R, kept, known = self._regular_rows(here), here.v.copy(), self._moving.known
        kept[held], kept[known] = v[held], 0.0
        rows = np.vstack([R, scale[K, None] * J[K]])
        rest = np.concatenate([R @ here.drift, scale[K] * b[K]]) - rows @ kept
        moves = Elimination(np.union1d(held, known), len(v))
        M, _, rows, rest = moves.reduce(self._equations.mass(here.q), kept, rows, rest)
        return here.q, kept + moves.restore(Saddle(M, rows).project(rest))

    def _regular_rows(self, here: _Point) -> Array:
        """``R``: orthonormal, in units of the coordinates, none of which is locked."""
        basis, at = here.basis / self._unit[:, None], self._free
        Q = np.linalg.qr(basis[at], mode="complete")[0]
        rows = np.zeros((len(at) - basis.shape[1], len(basis)))
        rows[:, at] = Q[:, basis.shape[1] :].T / self._unit[at]
        return rows

    # -- coordinates --------------------------------------------------------------------------

    def _seen(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Configuration as seen from the base, and its rate: of free joints, without units."""
        psi = self._group.difference(self._base, q)
        rate = self._group.dexp_inv(self._base, psi, v)
        return (psi / self._unit)[self._free], (rate / self._unit)[self._free]

    def _of_all(self, psi: Array) -> Array:
        """``psi`` of all coordinates, with units, shape (nv,)."""
        whole = np.zeros(len(self._unit))
        whole[self._free] = self._unit[self._free] * psi
        return whole

    def _configuration(self, psi: Array) -> Array:
        return self._group.integrate(self._base, self._of_all(psi))

    def _velocities(self, psi: Array) -> Array:
        """Velocity per rate of ``psi``, shape (nv, n)."""
        rates = np.diag(self._unit)[:, self._free]
        return self._group.dexp(self._base, self._of_all(psi), rates)

    def _rows(self, t: float, psi: Array) -> tuple[Array, Array, Array]:
        """Rows on rates of ``psi``, what they ask for, and their residuals, without units."""
        J, b, residual = self._equations.closure(t, self._configuration(psi))
        at, scale = self._closing, self._equations.rows.scale[self._closing]
        return scale[:, None] * (J[at] @ self._velocities(psi)), scale * b[at], scale * residual[at]

    # -- nodes --------------------------------------------------------------------------------

    def _solve(self, t: float, y: Array, guess: Array, reach: float) -> _Node | None:
        """The regular node with coordinates ``y`` near a guess, by Newton's method."""
        psi, before = guess, 1.0
        for _ in range(_ITERATIONS):
            J, b, residual = self._rows(t, psi)
            A, missed = np.vstack([J, self._along]), np.concatenate([-residual, y])
            missed[len(J) :] -= self._along @ psi
            factors, reflectors, _, _ = lapack().dgeqrf(A)
            turned = lapack().dormqr("L", "T", factors, reflectors, missed[:, None], 64)[0]
            step = triangular_vector()(factors[: len(psi)], turned[: len(psi), 0])
            psi = psi + step
            if not _size(psi - guess) < reach:
                return None
            size = _size(step)
            # Convergence is quadratic: what is left after a small step is rounding.
            if size < Regularity.NODE_CLOSED or before < math.sqrt(Regularity.NODE_CLOSED):
                return self._node(psi, b, A, (factors, reflectors))
            before = size
        return None

    def _node(self, psi: Array, b: Array, A: Array, factors: tuple[Array, Array]) -> _Node | None:
        """The node at a solution, if it is regular; ``A`` in reflections, as LAPACK has them."""
        (QR, reflectors), d = factors, len(self._along)
        inverse, singular = lapack().dtrtri(np.triu(QR[: len(psi)]))
        # By Frobenius' norms, which cost less than singular values.
        regularity = 0.0 if singular else 1 / (_size(A) * _size(inverse))
        if not regularity > self._least:
            return None
        # What the rates of coordinates and moving rows ask for.
        wanted = np.zeros((len(A), d + 1))
        wanted[len(b) :, :d], wanted[: len(b), d] = self._unity, b
        turned = lapack().dormqr("L", "T", QR, reflectors, wanted, 64 * (d + 1))[0]
        change = inverse @ turned[: len(inverse)]
        rates = self._velocities(psi) @ change
        return _Node(psi, change[:, :d], change[:, d], rates[:, :d], rates[:, d], regularity)

    def _continued(
        self,
        when: tuple[float, float],
        line: tuple[Array, Array],
        place: int,
        known: list[tuple[int, _Node]],
        first: Array,
    ) -> _Node | None:
        """The node at a place of a line, foreseen from others by their values and slopes.

        These are ``known`` before it on the same side, and no others, which may be known or not:
        the same state gives the same bits. Without any, ``first`` is foreseen, shape (n,).

        ``when``: its time, and how much later that is than at the place before. ``line``: the same
        of its coordinates.
        """
        (t, later), (y, further), guess = when, line, first
        if known := sorted(known, key=lambda item: abs(item[0] - place))[:_FORESEEN]:
            values, slopes = _foreseeing(tuple(k - place for k, _ in known))
            guess = _sum(values, [node.psi for _, node in known])
            guess += _sum(slopes, [node.slope @ further + later * node.flow for _, node in known])
        reach = _STRAY if len(known) > 1 else 1.0
        return self._solve(t, y, guess, reach * self._spacing)

    def _on_curve(self, place: int) -> _Node | None:
        """Node of a branch with one coordinate: they are solved once, from the base outwards."""
        if abs(place) > _LONGEST:
            raise NoBranch("the branch was looked at from too far off")
        way = 1 if place > 0 else -1
        for k in range(way, place + way, way) if place not in self._curve else ():
            if k not in self._curve:
                known = [(j, x) for j, x in self._curve.items() if x is not None and j * way >= 0]
                one = np.array([self._spacing])
                line = k * one, one
                self._curve[k] = self._continued((self._t, 0.0), line, k, known, known[0][1].psi)
        return self._curve[place]

    def _on_line(self, t: float, psi: Array, rate: Array, speed: float) -> _Nodes:
        """Nodes on the line along which a state moves, half a place before it and behind.

        ``speed``: rate of the length along the line [1/s].
        """
        line: dict[int, _Node | None] = {}
        pace = self._spacing / speed if speed > 0.0 else 0.0
        further = pace * (self._along @ rate)

        def node(place: int) -> _Node | None:
            if place not in line:
                if place not in (0, -1):
                    node(place - (1 if place > 0 else -1))
                ahead = (place + 0.5) * pace
                known = [
                    (k, x) for k, x in line.items() if x is not None and (k >= 0) == (place >= 0)
                ]
                there = psi + ahead * rate
                at = self._along @ there, further
                line[place] = self._continued((t + ahead, pace), at, place, known, there)
            return line[place]

        return node

    # -- between them -------------------------------------------------------------------------

    def _point(self, t: float, q: Array, v: Array) -> _Point:
        """The branch where it has the coordinates of a state."""
        seen, motion = self._seen(q, v)
        rate = self._along @ motion
        if self._is_curve:
            place, speed = float((self._along @ seen)[0]) / self._spacing, float(rate[0])
            near = _nearest(self._on_curve, place)
        else:
            place, speed = -0.5, float(np.linalg.norm(v / self._unit))
            along = motion, speed
            if speed < SAME * self._speed and not self._equations.rows.moving:
                along = self._motion, self._speed  # at rest any line will do
            near = _nearest(self._on_line(t, seen, *along), place)
        value, slope = _weights([k for k, _ in near], place)
        velocities = [node.basis @ rate + node.drift for _, node in near]
        return _Point(
            self._configuration(_sum(value, [node.psi for _, node in near])),
            _sum(value, velocities),
            _sum(value, [node.basis for _, node in near]),
            _sum(value, [node.drift for _, node in near]),
            _sum(slope, velocities) * speed / self._spacing,
        )

    def _missed(self, t: float, base: _Node) -> float:
        """Residual of what nodes along the velocity tell; infinite if that is no smooth branch."""
        line = self._on_line(t, base.psi, self._motion, self._speed)
        try:
            ways = [self._way_through(t, line, side, self._speed, base) for side in (1, -1)]
            near = _nearest(line, -0.5)
        except NoBranch:
            return math.inf
        if _rank(self._rows(t, near[0][1].psi)[0]) != len(self._free) - len(self._along):
            return math.inf  # the base is singular itself
        basis = _sum(_weights([k for k, _ in near], -0.5)[0], [node.basis for _, node in near])
        off = np.abs(basis - base.basis).max(initial=0.0)
        smooth = off <= Regularity.SMOOTH * np.abs(base.basis).max(initial=1.0)
        return max(ways) if smooth else math.inf

    def _way_through(self, t: float, line: _Nodes, side: int, speed: float, base: _Node) -> float:
        """Largest residual of poses between nodes, as far as these are less regular."""
        pace, least = self._spacing / speed if speed > 0.0 else 0.0, base.regularity
        # Accelerations take the bends of a branch, in which closer nodes weigh errors more.
        room = _ROOM * (_SPACINGS[0] / self._spacing) ** 2
        missed = 0.0
        for k in range(_FARTHEST):
            place = -0.5 + side * (k + 0.5)
            node = line(round(place))
            if node is not None:
                least = min(least, node.regularity)
                enough = 1.0 if least > _DIP * base.regularity else _DIP
                if node.regularity >= enough * base.regularity:
                    return missed
            between = place + 0.5 * side
            near = _nearest(line, between)
            weights = _weights([k for k, _ in near], between)[0]
            psi = _sum(weights, [node.psi for _, node in near])
            residual = room * self._rows(t + (between + 0.5) * pace, psi)[2]
            self._require_closed(residual)
            missed = max(missed, _size(residual))
        raise NoBranch("the branch does not get regular again")

    def _require_closed(self, residual: Array) -> None:
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


def _nearest(node: _Nodes, place: float) -> list[tuple[int, _Node]]:
    """The nodes around a place of a line, the nearest one first."""
    middle = round(place)
    reach = range(middle - _PLACES, middle + _PLACES + 1)
    near: list[tuple[int, _Node]] = []
    for k in sorted(reach, key=lambda k: abs(k - place)):
        if (there := node(k)) is not None:
            near.append((k, there))
        if len(near) == _NODES:
            break
    behind = sum(k < place for k, _ in near)
    if min(behind, len(near) - behind) < 2 or len(near) < _NODES:
        raise NoBranch("the branch cannot be followed through the singular pose")
    return near


def _rank(J: Array) -> int:
    """Number of rows that are independent at a regular pose."""
    values = np.linalg.svd(J, compute_uv=False)
    return int((values > Regularity.BASE * values.max(initial=0.0)).sum())


def _weights(places: Sequence[int], at: float) -> tuple[Array, Array]:
    """Weights of Lagrange's interpolation for the value and for the slope at a place."""
    powers = np.vander(np.array(places, dtype=float) - at, increasing=True).T
    wanted = np.zeros((len(places), 2))
    wanted[0, 0] = wanted[1, 1] = 1.0
    weights = np.linalg.solve(powers, wanted)
    return np.asarray(weights[:, 0]), np.asarray(weights[:, 1])


@cache
def _foreseeing(places: tuple[int, ...]) -> tuple[Array, Array]:
    """Weights of values and slopes at places, by Hermite's interpolation, for the value at 0."""
    n, at = len(places), np.array(places, dtype=float)
    powers = np.vander(at, 2 * n, increasing=True).T
    slopes = np.arange(2 * n)[:, None] * np.vstack([np.zeros(n), powers[:-1]])
    weights = np.linalg.solve(np.hstack([powers, slopes]), np.eye(2 * n)[0])
    return weights[:n], weights[n:]


def _size(x: Array) -> float:
    """Frobenius' norm."""
    return math.sqrt(np.vdot(x, x))


def _sum(weights: Array, parts: Sequence[Array]) -> Array:
    return np.asarray(np.tensordot(weights, np.array(parts), axes=1))
