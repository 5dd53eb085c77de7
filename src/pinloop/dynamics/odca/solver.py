"""`ODCA`: the linear problem of one configuration, and all four sweeps at a state.

Accelerations, velocities and positions put back on the constraints ask for the same four things:
wrenches on bodies, torques, what each joint's two sides must differ by, and values of further rows
in coordinates (couplings, rolling, momenta), which are bordered (their responses are found by
further sweeps, and a small dense system for their multipliers is left). A coordinate is in a block
or in a joint between blocks, or locked and in neither; loop rows are joints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from ...boundary.arguments import public
from ...boundary.marks import Array, Indices
from ...constraints.rows import RowSet
from ...errors import BadValue, SingularMass
from ...model.mechanism import Mechanism
from ...spatial.lie import adjoint
from ...tolerances import ASSEMBLED, RESPONSE_RANK, THIN_BODY, WITHOUT_MASS
from ..formulations import BoundStateFormulation, FurtherRows, StateFormulation
from .blocks import Blocks
from .handles import CutJoints, Handles, LoopJoints


@dataclass(frozen=True, eq=False)
class Load:
    """What acts, and what is asked for.

    Args:
        forces: on the coordinates of blocks, shape (size,).
        torques: on the coordinates of the robot, shape (nv,).
        apart: part of the motion between blocks that does not come from coordinates, (cuts, 6).
        target: what the coordinates must make all handles measure, shape (columns,).
        values: of the bordered rows, shape (k,).
    """

    forces: Array
    torques: Array
    apart: Array
    target: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Answer:
    """Solution of a problem.

    Args:
        a: accelerations of the robot's coordinates, shape (nv,).
        alpha: of the coordinates of all blocks, shape (size,).
        x: measure numbers of the joint forces, shape (columns,).
        multipliers: of the bordered rows, shape (k,).
    """

    a: Array
    alpha: Array
    x: Array
    multipliers: Array


class Problem:
    """Assembled handle equations at one configuration, with rows in coordinates.

    Unknown at the border are the multipliers ``s`` of the rows, which exert ``J' s`` and ask
    ``J a = value``, and per unit of inertia on loan along ``g`` the force ``s g`` that it would
    need, ``s = g' alpha``; ``parts`` are the responses to a unit of each.

    Args:
        handles: the handle equations, assembled.
        rows: bordered rows in coordinates, shape (k, nv).
    """

    def __init__(self, handles: Handles, rows: Array) -> None:
        self._handles, self._rows, self._loans = handles, rows, handles.loans
        self._parts: list[Answer] = []
        if len(rows) or self._loans:
            self._prepare_border()

    def zero(self) -> Load:
        """No load."""
        handles = self._handles
        return Load(
            np.zeros(handles.blocks.size),
            np.zeros(self._rows.shape[1]),
            np.zeros_like(handles.blocks.bias),
            np.zeros(handles.sweeps.columns),
            np.zeros(len(self._rows)),
        )

    def solve(self, load: Load) -> Answer:
        """Solve for one load: the rows met, and the loans taken back."""
        first, k = self._respond(load), len(self._loans)
        if not self._parts:
            return first
        wanted = np.concatenate([np.zeros(k), load.values]) - self._measure(first)
        on_loan = np.linalg.solve(self._matrix[:k, :k], wanted[:k])
        rows = self._inverse @ (wanted[k:] - self._matrix[k:, :k] @ on_loan)
        strengths = np.concatenate([on_loan - self._from_loans[:, k:] @ rows, rows])
        a, alpha, x = first.a.copy(), first.alpha.copy(), first.x.copy()
        for strength, part in zip(strengths, self._parts, strict=True):
            a += strength * part.a
            alpha += strength * part.alpha
            x += strength * part.x
        return Answer(a, alpha, x, rows)

    def _respond(self, load: Load) -> Answer:
        """Solution without the border."""
        handles = self._handles
        alpha = handles.blocks.respond(load.forces + handles.forces(load.torques))
        x, moved = handles.solve(load.target - handles.measure(alpha))
        alpha += moved
        if not np.isfinite(alpha).all():
            raise SingularMass("the joint forces are not finite; some body moves without mass")
        return Answer(handles.rates(alpha, load.apart), alpha, x, np.zeros(0))

    def _measure(self, answer: Answer) -> Array:
        along = [float(direction @ answer.alpha[at]) for at, direction in self._loans]
        return np.concatenate([along, self._rows @ answer.a])

    def _prepare_border(self) -> None:
        handles, nothing, sizes = self._handles, self.zero(), []
        for at, direction in self._loans:
            forces = nothing.forces.copy()
            forces[at] = direction
            self._parts.append(self._respond(replace(nothing, forces=forces)))
        for row in self._rows:
            self._parts.append(self._respond(replace(nothing, torques=row)))
            free = handles.blocks.respond(handles.forces(row))  # as if no joint held the blocks
            sizes.append(float(row @ handles.rates(free, nothing.apart)))
        k = len(self._loans)
        self._matrix = matrix = np.array([self._measure(part) for part in self._parts]).T
        matrix[:k, :k] -= np.eye(k)
        own = -matrix[:k, :k]
        if k and not np.linalg.eigvalsh(0.5 * (own + own.T))[0] > WITHOUT_MASS:
            raise SingularMass(
                "the mass matrix is not positive definite: some body moves without mass or "
                "inertia, or coordinates of a joint turn about the same axis"
            )
        # Loans first, then rows, which may be redundant: smallest multipliers.
        self._from_loans = np.linalg.solve(matrix[:k, :k], matrix[:k])
        schur = matrix[k:, k:] - matrix[k:, :k] @ self._from_loans[:, k:]
        unit = np.sqrt(np.maximum(sizes, np.finfo(float).tiny))
        units = np.outer(unit, unit)
        self._inverse = np.zeros((0, 0))
        if len(self._rows):
            scaled = np.linalg.pinv(schur / units, rcond=RESPONSE_RANK, hermitian=True)
            self._inverse = scaled / units


_ITERATIONS = 20
_NONE = np.zeros(0, dtype=np.intp)
_NEIGHBOURS, _REACH = 4, 0.05
"""Configurations at which ranks are looked at, and how far away [rad, m]."""


class _ArticulatedSolver(BoundStateFormulation):
    """The four sweeps for one robot."""

    def __init__(self, rows: RowSet, block: int, home: Array | None = None) -> None:
        robot = rows.robot
        self._robot, self._rows, self._home = robot, rows.unlocked, home
        self._locked = rows.locked
        self.loop_rows = [rows.loops.rows_of[loop.name] for loop in robot.loops]
        self.blocks = Blocks(robot.model, block, rows.locked)
        self.cuts = CutJoints(self.blocks, np.array(robot.model.armature))
        self.loops = LoopJoints(robot, self.blocks)
        _set_units(robot, self.blocks, self.cuts, self.loops)
        self.handles = Handles(self.blocks, self.cuts, self.loops)
        # Without limits, which are not known yet.
        self.handles.sweeps.caps = self._ranks_around_home()

    def _update(self, q: Array, v: Array) -> None:
        """First two sweeps, and the handle equations of all pieces."""
        self.blocks.update(q, v)
        self.cuts.update()
        self.loops.update()
        self.handles.update()

    # -- accelerations ------------------------------------------------------------------------

    def solve(self, q: Array, v: Array, tau: Array, further: FurtherRows) -> tuple[Array, Array]:
        self._update(q, v)
        apart = self.blocks.bias
        if self.blocks.cuts:
            apart = apart + self.blocks.below_biases()
        forces, targets = self.blocks.inertial_forces(), self.handles.targets()
        load = Load(forces, tau, apart, targets, further.values)
        answer = Problem(self.handles, further.J).solve(load)
        lam = np.zeros(self._rows)
        reactions = answer.x[self.handles.of_cuts :] * self.loops.scale
        for part, first in zip(self.loop_rows, self.loops.first, strict=False):
            lam[part] = reactions[first : first + part.stop - part.start]
        lam[further.index] = answer.multipliers
        return answer.a, lam

    def _ranks_around_home(self) -> dict[int, Indices]:
        """The largest ranks of inner matrices at the home and beside it; none without a home.

        Rows that depend on each other on the manifold only (Bennett, Bricard) gain rank off it,
        inside the stages of a step, by as much as the loops are open there.
        """
        sweeps, rest = self.handles.sweeps, np.zeros(self._robot.nv)
        ranks: dict[int, Indices] = {}
        if self._home is None or not len(self.loops.D):
            return ranks
        for q in (self._home, *self._neighbours(self._home)):
            self._update(q, rest)
            if not self._is_closed():
                continue
            for key, rank in sweeps.ranks.items():
                ranks[key] = np.maximum(ranks.get(key, 0), rank)
            if all(np.all(rank == sweeps.whole[key]) for key, rank in ranks.items()):
                break
        return ranks

    def _neighbours(self, q: Array) -> Iterator[Array]:
        """Configurations around one, which may be singular itself, with loops closed if it goes."""
        rng, nv = np.random.default_rng(0), self._robot.nv
        none = FurtherRows(np.zeros((0, nv)), np.zeros(0), _NONE)
        for _ in range(_NEIGHBOURS):
            step = self.velocity(q, rng.normal(size=nv), none)
            step *= _REACH / max(float(np.abs(step).max(initial=0.0)), _REACH)
            near = pin.integrate(self._robot.model, q, step)
            yield self.position(near, lambda _: none)

    def _is_closed(self) -> bool:
        residual = self.loops.residual() / self.loops.scale
        return bool(np.linalg.norm(residual) <= ASSEMBLED * max(1.0, self._robot.length))

    # -- velocities and positions -------------------------------------------------------------

    def velocity(self, q: Array, v: Array, further: FurtherRows) -> Array:
        v = v.copy()
        v[self._locked] = 0.0
        self._update(q, v)
        problem, of_loops = Problem(self.handles, further.J), slice(self.handles.of_cuts, None)
        nothing = problem.zero()
        nothing.target[of_loops] = -self.handles.measure(self.blocks.velocity())[of_loops]
        load = replace(nothing, values=further.values - further.J @ v)
        return np.asarray(v + problem.solve(load).a)

    def position(self, q: Array, further: Callable[[Array], FurtherRows]) -> Array:
        rest = np.zeros(self._robot.nv)
        best, error, trial = q, np.inf, q
        for _ in range(_ITERATIONS):
            rows = further(trial)
            self.blocks.update(trial, rest)
            residual = self.loops.residual()
            gap = np.append(residual / self.loops.scale, rows.values)
            new = float(np.linalg.norm(gap))
            if not new < 0.5 * error:
                return trial if new < error else best
            best, error = trial, new
            self._update(trial, rest)
            problem = Problem(self.handles, rows.J)
            target = np.concatenate([np.zeros(self.handles.of_cuts), -residual])
            load = replace(problem.zero(), target=target, values=rows.values)
            trial = pin.integrate(self._robot.model, best, problem.solve(load).a)
        return best


def _set_units(robot: Mechanism, blocks: Blocks, cuts: CutJoints, loops: LoopJoints) -> None:
    """Let the two bodies of a joint alone answer with one, so that inner matrices have no unit."""
    model = robot.model
    inverse = _inverse_inertias(
        np.array([inertia.matrix() for inertia in model.inertias[1:]]).reshape(-1, 6, 6),
        robot.length,
    )
    seats = np.array([model.jointPlacements[k + 1].homogeneous for k in blocks.cuts])
    seats = seats.reshape(-1, 4, 4)
    here = np.broadcast_to(np.eye(4), seats.shape)
    own = _response(inverse, blocks.cuts, here, cuts.D)
    own += _response(inverse, blocks.below, seats, cuts.D)
    cuts.rescale(_unit(own))
    own = _response(inverse, loops.body_b, loops.seat_b, loops.D)
    own += _response(inverse, loops.body_a, loops.seat_a, loops.D)
    loops.rescale(loops.flat(_unit(own)))


def _response(inverse: Array, bodies: Sequence[int] | Indices, seats: Array, D: Array) -> Array:
    """What single bodies answer to each column of ``D``, shape (n, width)."""
    at = np.asarray(bodies, dtype=np.intp)
    W = adjoint(seats).transpose(0, 2, 1) @ D
    response = np.sum(W * (inverse[at] @ W), axis=1)
    response[at < 0] = 0.0
    return np.asarray(response)


def _unit(own: Array) -> Array:
    return np.asarray(1.0 / np.sqrt(np.where(own > 0, own, 1.0)))


def _inverse_inertias(inertia: Array, length: float) -> Array:
    """Inverse inertias, of bodies that have some in every direction."""
    if len(inertia) == 0:
        return np.zeros((1, 6, 6))
    unit = np.repeat([length, 1.0], 3)
    values, vectors = np.linalg.eigh(unit[:, None] * inertia * unit)
    typical = float(np.mean(values[:, -1]))
    size = np.maximum(values[:, -1:], 1e-3 * typical)
    values = np.where(values < THIN_BODY * size, size, values)
    vectors = vectors * unit[:, None]
    return np.asarray((vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1))


@public
@dataclass(frozen=True)
class ODCA(StateFormulation):
    """Orthogonal-complement divide and conquer (paper 3).

    Bodies are joined to pieces and pieces to larger ones, each known only by how its open joints
    answer forces, until one piece is left; then down again for all forces and accelerations. The
    work grows linearly with the number of bodies of chains, trees, and loops coupled along a chain.
    No mass matrix and no Jacobian of more than a block of bodies is formed.

    Locked coordinates are left out: bodies that locks hold together are as one. Couplings,
    prescribed motions and other rows beyond loops are bordered, which costs one more pass over the
    robot for each: many of them on a large robot are for `Augmented`.

    Args:
        block: neighbouring bodies enter as one piece, in joint coordinates, as long as their joints
            have no more coordinates than this; a small robot is one piece, of which only the loop
            joints are left to eliminate. With 1 every body is a piece of its own, as in the paper:
            most accurate, as no mass matrix is left, and several times slower.
    """

    block: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.block, int) or self.block < 1:
            raise BadValue(f"block={self.block!r} of pl.ODCA must be a whole number, at least 1")

    def bind(self, rows: RowSet, home: Array | None) -> BoundStateFormulation:
        """Return the formulation with work space for a robot."""
        return _ArticulatedSolver(rows, self.block, home)
