"""The smallest sufficient set of loop rows, found once, before any simulation (paper 5).

Which relative twists can the bodies of a cut joint have at all? The motion algebras of the chains
bound them, loop after loop (`motion`); rows that only forbid what cannot happen are dropped. The
method is conservative: it never drops a row that is needed at any configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import qr

from .assembly import assemble
from .errors import BadValue
from .graph import with_cuts
from .lie import NOTHING, Subspace, identify, span
from .mechanism import LoopJoint, Mechanism, build
from .motion import Algebras, MotionNetwork
from .pairs import MotionGroup, Pair, Universal
from .reduction import CutAlternative, LoopReduction, Regularization
from .sampling import drop_sampled

__all__ = ["regularize"]

Array = NDArray[np.float64]

_ALL_ORDERS = 4
"""Up to so many loops every order is tried; beyond, the loop with the fewest rows comes next."""


def regularize(
    robot: Mechanism,
    *,
    cut: Iterable[str] | None = None,
    recut: bool = False,
    sampled: bool = False,
    samples: int = 12,
    seed: int = 0,
) -> Mechanism:
    """Return the robot with its redundant loop rows removed.

    Args:
        robot: the mechanism; it must be possible to assemble it.
        cut: names of joints that shall be cut. Changes the coordinates of the robot.
        recut: try every joint of every loop as the cut joint and keep the best choice. Changes the
            coordinates of the robot if that gains something; without it the report says what other
            cuts would give.
        sampled: drop also rows that are redundant on this assembly branch without a motion group
            explaining it, from the Jacobians at random configurations. Not proven, but checked at
            fresh configurations.
        samples: number of random configurations of ``sampled``.
        seed: seed of the random configurations.

    Returns:
        The mechanism with fewer rows; its ``regularization`` is the report.

    Raises:
        LoopNotClosed: the robot cannot be assembled.
    """
    if cut is not None:
        robot = _cut_at(robot, list(cut))
    if recut:
        robot = _best_cuts(robot)
    q = assemble(robot)
    reference = _Reference.of(robot, q)
    bounds = _process(reference, reference.cuts)
    selections = {bound.edge.name: _selection(robot, reference, bound) for bound in bounds}
    alternatives = _alternatives(reference)
    loops = tuple(
        _summary(robot, reference, bound, selections[bound.edge.name], alternatives)
        for bound in bounds
    )
    full = sum(loop.pair.rows for loop in robot.loops) + len(robot.couplings)
    rows = sum(len(u) for u in selections.values()) + len(robot.couplings)
    kept = tuple(coupling.name for coupling in robot.couplings)
    report = Regularization(loops, kept, full, rows, robot.nv - rows)
    reduced = replace(robot, regularization=report)
    return drop_sampled(reduced, q, samples, seed) if sampled else reduced


@dataclass(frozen=True, eq=False)
class _Edge:
    """A joint between two rigid groups in the network.

    Args:
        name: name of the joint.
        ends: the two groups, as joint indices of the model.
        algebra: bound on its relative motion, number among the interned algebras.
        dof: its degrees of freedom.
    """

    name: str
    ends: tuple[int, int]
    algebra: int
    dof: int


@dataclass(frozen=True, eq=False)
class _Bound:
    """What one loop may do: the twists of B relative to A that must be told apart, in the world."""

    edge: _Edge
    twists: Subspace
    tied: Subspace
    rows: int


@dataclass(frozen=True, eq=False)
class _Reference:
    """The mechanism as a network of algebras at one assembled configuration.

    Lengths are in units of the characteristic length, from an origin in the middle of the robot.
    """

    size: int
    edges: dict[str, _Edge]
    cuts: tuple[str, ...]
    loops: dict[str, tuple[str, ...]]
    algebras: Algebras
    centre: Array
    length: float
    placements: dict[str, tuple[pin.SE3, pin.SE3]]

    @staticmethod
    def of(robot: Mechanism, q: Array) -> _Reference:
        """Describe the robot at the assembled configuration ``q``."""
        model, length, algebras = robot.model, robot.length, Algebras()
        data = model.createData()
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        points = [placement.translation for placement in list(data.oMi)[1:]]
        centre = np.mean(points, axis=0) if points else np.zeros(3)
        home = pin.SE3(np.eye(3), centre)

        def algebra(twists: Array) -> int:
            """Closure of twists that are given in world axes at the world's origin."""
            local = home.toActionMatrixInverse() @ twists
            local[:3] /= length
            return algebras.number(span(local).closure())

        edges: dict[str, _Edge] = {}
        for name in robot.joints:
            at = robot.coordinates(name)
            columns = np.array(data.J).reshape(6, -1)[:, at.v]
            ends = (int(model.parents[at.index]), at.index)
            edges[name] = _Edge(name, ends, algebra(columns), at.nv)
        placements: dict[str, tuple[pin.SE3, pin.SE3]] = {}
        for loop in robot.loops:
            a, b = data.oMf[loop.frame_a].copy(), data.oMf[loop.frame_b].copy()
            placements[loop.name] = (a, b)
            free = algebras.everything
            if isinstance(loop.pair, (MotionGroup, Universal)):
                free = algebra(b.toActionMatrix() @ loop.pair.free)
            ends = (
                int(model.frames[loop.frame_a].parentJoint),
                int(model.frames[loop.frame_b].parentJoint),
            )
            edges[loop.name] = _Edge(loop.name, ends, free, loop.pair.dof)
        chains = {
            loop.name: tuple(n for n in (*loop.loop.chain_a, *loop.loop.chain_b) if n in edges)
            for loop in robot.loops
        }
        cuts = tuple(loop.name for loop in robot.loops)
        return _Reference(model.njoints, edges, cuts, chains, algebras, centre, length, placements)

    def name(self, space: Subspace) -> str:
        """Name of an algebra in the world, in metres."""
        shift = pin.SE3(np.eye(3), self.centre / self.length)
        return str(identify(space.moved(shift), self.length))

    def network(self, cuts: Sequence[str]) -> MotionNetwork:
        """Bounds from the tree joints alone."""
        network = MotionNetwork(self.size, self.algebras)
        network.tighten((*e.ends, e.algebra) for e in self.edges.values() if e.name not in cuts)
        return network


def _process(reference: _Reference, cuts: Sequence[str]) -> list[_Bound]:
    """Bound loop after loop, in the order that leaves the fewest rows."""
    start = reference.network(cuts)
    if len(cuts) > _ALL_ORDERS:
        return _in_order(reference, start.copy(), list(cuts), greedy=True)
    best: list[_Bound] = []
    for order in permutations(cuts):
        bounds = _in_order(reference, start.copy(), list(order), greedy=False)
        if not best or sum(b.rows for b in bounds) < sum(b.rows for b in best):
            best = bounds
    return best


def _in_order(
    reference: _Reference, network: MotionNetwork, cuts: list[str], *, greedy: bool
) -> list[_Bound]:
    """Bound the loops one by one; each closed loop ties its two groups for those to come."""
    done: list[_Bound] = []
    while cuts:
        candidates = cuts if greedy else cuts[:1]
        bounds = [_bound(reference, network, reference.edges[name]) for name in candidates]
        chosen = min(bounds, key=lambda bound: bound.rows)
        done.append(chosen)
        cuts.remove(chosen.edge.name)
        network.tighten([(*chosen.edge.ends, chosen.edge.algebra)])
    return done


def _bound(reference: _Reference, network: MotionNetwork, edge: _Edge) -> _Bound:
    """Relative twists of the two ends of a cut joint at every closed configuration, seen from B.

    Relative to any third group c, the twist of B lies in the algebra M(c, B) and that of A in
    M(c, A) (paper 5, eq. 27, where c is the root of the loop). Seen from B, the latter is turned by
    the cut joint's own motion: what that motion sweeps has to be taken, or a row would be lost
    where the joint has turned. All groups c bound the same twist, so their bounds intersect.
    """
    algebras = reference.algebras
    a, b = edge.ends
    tied = network.number(a, b)
    moves = algebras.meet(edge.algebra, tied)
    pairs = {(network.number(c, a), network.number(c, b)) for c in range(reference.size)}
    twists = algebras.everything
    for of_a, of_b in sorted(pairs):
        bound = algebras.plus(of_b, algebras.sweep(of_a, moves))
        twists = algebras.meet(twists, bound)
    rows = algebras.dim(algebras.plus(twists, edge.algebra)) - algebras.dim(edge.algebra)
    return _Bound(edge, algebras[twists], algebras[tied], rows)


def _selection(robot: Mechanism, reference: _Reference, bound: _Bound) -> Array:
    """``U``: orthonormal rows that span what the pair's rows can see of the twists (eq. 28)."""
    loop = next(loop for loop in robot.loops if loop.name == bound.edge.name)
    frame_a, frame_b = reference.placements[loop.name]
    twists = bound.twists.basis.copy()
    twists[:3] *= reference.length
    home = pin.SE3(np.eye(3), reference.centre)
    local = (frame_b.inverse() * home).toActionMatrix() @ twists
    if not isinstance(loop.pair, (MotionGroup, Universal)):
        return np.eye(loop.pair.rows)
    seen = np.hstack([S @ local for S in _selectors(loop.pair, frame_a.actInv(frame_b))])
    return _orthonormal_rows(seen, loop.pair, reference.length)


def _selectors(pair: Pair, T: pin.SE3) -> list[Array]:
    """All selectors that a pair can have: one for a group, a turning one if universal."""
    if isinstance(pair, MotionGroup):
        return [pair.selector(T)]
    turns = [pin.SE3(pin.utils.rotate("x", angle), np.zeros(3)) for angle in (0.0, 1.0, 2.0)]
    return [pair.selector(turn) for turn in turns]


def _orthonormal_rows(seen: Array, pair: Pair, length: float) -> Array:
    """Orthonormal basis of the column space of ``seen``, as rows; unit rows where it has some."""
    scale = np.array([1.0 if label.startswith("w") else 1 / length for label in pair.labels])
    if seen.size == 0:
        return np.zeros((0, pair.rows))
    directions, values, _ = np.linalg.svd(scale[:, None] * seen, full_matrices=False)
    rank = int(np.sum(values > 1e-8 * max(values[0], 1e-300))) if values[0] > 1e-12 else 0
    if rank == pair.rows:
        return np.eye(pair.rows)
    basis, _ = np.linalg.qr(directions[:, :rank] / scale[:, None])
    # Pivoting on the projector picks unit vectors wherever the space contains them.
    rows = qr(basis @ basis.T, pivoting=True)[0][:, :rank].T
    rows[np.abs(rows) < 1e-14] = 0.0
    largest = rows[np.arange(rank), np.argmax(np.abs(rows), axis=1)]
    rows *= np.sign(largest)[:, None]
    return np.asarray(rows[np.lexsort((np.argmax(np.abs(rows), axis=1),))])


def _alternatives(reference: _Reference) -> dict[str, tuple[CutAlternative, ...]]:
    """For each loop what cutting another of its joints instead would leave."""
    return {
        name: tuple(
            _exchanged(reference, reference.cuts, name, other)
            for other in _cuttable(reference, name)
        )
        for name in reference.cuts
    }


def _cuttable(reference: _Reference, loop: str) -> list[str]:
    """Joints of a loop that could be cut instead of its cut joint, if that can be in the tree."""
    if reference.edges[loop].algebra == reference.algebras.everything:
        return []
    return [
        name
        for name in reference.loops[loop]
        # A joint with several axes that make no group (universal) stays in the tree.
        if reference.algebras.dim(reference.edges[name].algebra) == reference.edges[name].dof
    ]


def _exchanged(reference: _Reference, cuts: Sequence[str], loop: str, other: str) -> CutAlternative:
    """Rows and mobility with joint ``other`` cut instead of ``loop``."""
    bounds = _process(reference, [other if name == loop else name for name in cuts])
    rows = {bound.edge.name: bound.rows for bound in bounds}
    dofs = sum(edge.dof for name, edge in reference.edges.items() if name not in rows)
    return CutAlternative(other, rows[other], dofs - sum(rows.values()))


def _best_cuts(robot: Mechanism) -> Mechanism:
    """Exchange cut joints as long as that gains mobility or saves rows."""
    for _ in range(len(robot.loops)):
        reference = _Reference.of(robot, assemble(robot))
        bounds = _process(reference, reference.cuts)
        rows = {bound.edge.name: bound.rows for bound in bounds}
        best, exchange = (robot.nv - sum(rows.values()), 0), None
        for loop, alternatives in _alternatives(reference).items():
            for found in alternatives:
                gain = (found.mobility, rows[loop] - found.rows)
                if gain > best:
                    best, exchange = gain, (loop, found.joint)
        if exchange is None:
            break
        kept = [name for name in reference.cuts if name != exchange[0]]
        robot = _cut_at(robot, [*kept, exchange[1]])
    return robot


def _cut_at(robot: Mechanism, names: list[str]) -> Mechanism:
    """The robot with the named joints cut."""
    known = {joint.name for joint in robot.description.joints}
    for name in names:
        if name not in known:
            raise BadValue(f"robot '{robot.name}' has no joint '{name}' to cut")
    joints = with_cuts(robot.description.joints, names)
    return build(replace(robot.description, joints=joints), kinematics_only=True)


def _summary(
    robot: Mechanism,
    reference: _Reference,
    bound: _Bound,
    selection: Array,
    alternatives: dict[str, tuple[CutAlternative, ...]],
) -> LoopReduction:
    """The report on one loop."""
    loop: LoopJoint = next(loop for loop in robot.loops if loop.name == bound.edge.name)

    def chain(names: tuple[str, ...]) -> str:
        screws = NOTHING
        for name in names:
            if name in reference.edges:
                screws = screws + reference.algebras[reference.edges[name].algebra]
        return reference.name(screws.closure())

    return LoopReduction(
        loop=loop.name,
        pair=loop.pair.name,
        root=loop.loop.root,
        algebra_a=chain(loop.loop.chain_a),
        algebra_b=chain(loop.loop.chain_b),
        tied=reference.name(bound.tied),
        full_rows=loop.pair.rows,
        selection=selection,
        alternatives=alternatives[loop.name],
    )
