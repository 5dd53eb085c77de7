"""What the loops of a mechanism allow, loop after loop, and the rows that are needed for it.

A network with one node per rigid group of bodies. Every joint bounds the relative motion of its
two groups by a subalgebra of se(3); chains of joints bound it by the closure of the sum (paper 5,
section 5), several chains by the intersection. Path consistency over all triples of groups makes
the bounds as tight as these two rules can. `regularize` asks here and makes a mechanism and a
report of the answers.

All twists are in one world frame at one assembled configuration, lengths in units of a
characteristic length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import compress, permutations

import numpy as np
import pinocchio as pin
import scipy

from ..boundary.marks import Array
from ..model.graph import Cluster, clusters
from ..model.mechanism import Mechanism
from ..model.pairs import Pair
from ..model.workspace import TreeKinematics
from ..spatial.lie import Algebras, Subspace, identify, span
from ..tolerances import LAST_BITS, RANK, SELECTION_DUST

_ALL_ORDERS = 4
"""Up to so many loops every order is tried; beyond, the loop with the fewest rows comes next."""


@dataclass(frozen=True, eq=False)
class Edge:
    """A joint between two rigid groups in the network.

    Args:
        ends: the two groups, as joint indices of the model.
        algebra: bound on its relative motion, number among the interned algebras.
    """

    name: str
    ends: tuple[int, int]
    algebra: int
    dof: int


@dataclass(frozen=True, eq=False)
class Bound:
    """What one loop may do.

    Args:
        twists: twists of B relative to A that must be told apart, in the world; seen from B, or
            from A if ``over``.
        tied: relative motion of the two groups that the chains and earlier loops leave.
        over: whether fewer rows are needed if the joint is turned over, A for B.
    """

    edge: Edge
    twists: Subspace
    tied: Subspace
    rows: int
    over: bool


@dataclass(frozen=True, eq=False)
class Reference:
    """The mechanism as a network of algebras at one assembled configuration.

    Lengths are in units of the characteristic length, from an origin in the middle of the robot.

    Args:
        edges: all joints that move, those of the tree and those that are cut, by name.
        loops: tree joints that move in the loop of each cut joint.
        centre: origin [m], shape (3,).
        length: characteristic length [m].
        placements: frames A and B of each cut joint in the world.
        order: place of each joint in the description.
        coupled: joints of couplings.
    """

    edges: dict[str, Edge]
    cuts: tuple[str, ...]
    loops: dict[str, tuple[str, ...]]
    clusters: tuple[Cluster, ...]
    algebras: Algebras
    centre: Array
    length: float
    placements: dict[str, tuple[pin.SE3, pin.SE3]]
    pairs: dict[str, Pair]
    order: dict[str, int]
    coupled: frozenset[str]
    couplings: int
    _names: dict[int, str] = field(default_factory=dict)

    @staticmethod
    def of(robot: Mechanism, q: Array) -> Reference:
        """Describe the robot at the assembled configuration ``q``."""
        model, length, algebras = robot.model, robot.length, Algebras()
        at = TreeKinematics(model).update(q)
        points = [placement.translation for placement in list(at.oMi)[1:]]
        centre = np.mean(points, axis=0) if points else np.zeros(3)
        home = pin.SE3(np.eye(3), centre)

        def algebra(twists: Array) -> int:
            """Closure of twists that are given in world axes at the world's origin."""
            local = home.toActionMatrixInverse() @ twists
            local[:3] /= length
            return algebras.number(span(local).closure())

        edges: dict[str, Edge] = {}
        for name in robot.joints:
            place = robot.coordinates(name)
            ends = (int(model.parents[place.index]), place.index)
            edges[name] = Edge(name, ends, algebra(at.J[:, place.v]), place.nv)
        placements: dict[str, tuple[pin.SE3, pin.SE3]] = {}
        for loop in robot.loops:
            a, b = at.oMf[loop.frame_a].copy(), at.oMf[loop.frame_b].copy()
            placements[loop.name] = (a, b)
            free = algebra(b.toActionMatrix() @ loop.pair.algebra)
            ends = (
                int(model.frames[loop.frame_a].parentJoint),
                int(model.frames[loop.frame_b].parentJoint),
            )
            edges[loop.name] = Edge(loop.name, ends, free, loop.pair.dof)
        chains = {
            loop.name: tuple(n for n in (*loop.loop.chain_a, *loop.loop.chain_b) if n in edges)
            for loop in robot.loops
        }
        cuts = tuple(loop.name for loop in robot.loops)
        coupled = frozenset(name for coupling in robot.couplings for name in coupling.joints)
        return Reference(
            edges,
            cuts,
            chains,
            clusters(chains),
            algebras,
            centre,
            length,
            placements,
            {loop.name: loop.pair for loop in robot.loops},
            {joint.name: place for place, joint in enumerate(robot.description.joints)},
            coupled,
            len(robot.couplings),
        )

    def is_group(self, joint: str) -> bool:
        """Whether the motions of a joint form a group; those of tree joints are taken for one."""
        pair = self.pairs.get(joint)
        return pair is None or pair.is_group

    def name(self, space: Subspace) -> str:
        """Name of an algebra in the world, in metres."""
        number = self.algebras.number(space)
        if number not in self._names:
            shift = pin.SE3(np.eye(3), self.centre / self.length)
            self._names[number] = str(identify(space.moved(shift), self.length))
        return self._names[number]

    def network(self, cluster: Cluster, cuts: Sequence[str]) -> MotionNetwork:
        """Bounds within a cluster from its tree joints alone.

        What lies outside adds nothing: it hangs on single groups of the cluster, so that a path
        over it returns to where it left.
        """
        ties = [
            self.edges[name]
            for name in sorted({*cluster.joints, *cluster.names}, key=self.order.__getitem__)
            if name not in cuts
        ]
        whole = self.algebras.nothing
        for edge in ties:
            whole = self.algebras.join(whole, edge.algebra)
        network = MotionNetwork(self.algebras, whole)
        network.tighten((*edge.ends, edge.algebra) for edge in ties)
        return network


def process(reference: Reference) -> list[Bound]:
    """Bound the loops of a mechanism, cluster after cluster."""
    return [
        bound
        for cluster in reference.clusters
        for bound in process_cluster(reference, cluster, cluster.names)
    ]


def process_cluster(reference: Reference, cluster: Cluster, cuts: Sequence[str]) -> list[Bound]:
    """Bound loop after loop, in the order that leaves the fewest rows."""
    start = reference.network(cluster, cuts)
    if len(cuts) > _ALL_ORDERS:
        return _greedily(reference, start, list(cuts))
    best: list[Bound] = []
    for order in permutations(cuts):
        bounds = _in_order(reference, start.copy(), order)
        if not best or sum(b.rows for b in bounds) < sum(b.rows for b in best):
            best = bounds
    return best


def _in_order(reference: Reference, network: MotionNetwork, cuts: Sequence[str]) -> list[Bound]:
    """Bound the loops one by one; each closed loop ties its two groups for those to come."""
    done: list[Bound] = []
    for name in cuts:
        done.append(_bound(reference, network, reference.edges[name]))
        network.tighten([(*done[-1].edge.ends, done[-1].edge.algebra)])
    return done


def _greedily(reference: Reference, network: MotionNetwork, cuts: list[str]) -> list[Bound]:
    """Bound the loop with the fewest rows next, the first of them if several have as few.

    A loop is looked at again only if bounds of its two groups have changed: it depends on no other.
    """
    edges = [reference.edges[name] for name in cuts]
    waiting = dict(enumerate(_bound_each(reference, network, edges)))
    queue = [(bound.rows, place) for place, bound in waiting.items()]
    heapify(queue)
    between: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, edge in enumerate(edges):
        for a, b in permutations(edge.ends):
            between[a][b].add(place)
    done: list[Bound] = []
    while waiting:
        rows, place = heappop(queue)
        if place not in waiting or waiting[place].rows != rows:
            continue  # was changed since it was queued
        chosen = waiting.pop(place)
        done.append(chosen)
        # A loop sees what bounds its two groups against each other, and against a third one.
        again = {
            place
            for a, c in network.tighten([(*chosen.edge.ends, chosen.edge.algebra)])
            for b in between[a].keys() & {c, *network.bounded(c)}
            for place in between[a][b] & waiting.keys()
        }
        bounds = _bound_each(reference, network, [edges[place] for place in sorted(again)])
        for place, bound in zip(sorted(again), bounds, strict=True):
            waiting[place] = bound
            heappush(queue, (bound.rows, place))
    return done


def _bound_each(
    reference: Reference, network: MotionNetwork, edges: Sequence[Edge]
) -> Iterator[Bound]:
    """Bound each of some loops by itself, parallel ones once.

    Two groups may be joined by thousands of joints with the same algebra, which see the same.
    """
    parallel: dict[tuple[tuple[int, int], int], Bound] = {}
    for edge in edges:
        if not reference.is_group(edge.name):
            yield _bound(reference, network, edge)  # its rows depend on its own frames
            continue
        key = (edge.ends, edge.algebra)
        if key not in parallel:
            parallel[key] = _bound(reference, network, edge)
        yield replace(parallel[key], edge=edge)


def _bound(reference: Reference, network: MotionNetwork, edge: Edge) -> Bound:
    """Relative twists of the two ends of a cut joint at every closed configuration.

    Relative to any third group c, the twist of B lies in the algebra M(c, B) and that of A in
    M(c, A) (paper 5, eq. 27, where c is the root of the loop). Seen from B, the latter is turned by
    the cut joint's own motion: what that motion sweeps has to be taken, or a row would be lost
    where the joint has turned. All groups c bound the same twist, so their bounds intersect. Seen
    from A it is the other way round; the side with fewer rows is better.
    """
    algebras = reference.algebras
    a, b = edge.ends
    tied = network.number(a, b)
    moves = algebras.meet(edge.algebra, tied)
    # Where either bound is the whole, so is what the two give together.
    groups = {a, b} | (network.bounded(a) & network.bounded(b))
    best: Bound | None = None
    for over, (near, far) in ((False, (b, a)), (True, (a, b))):
        sides = {(network.number(c, near), network.number(c, far)) for c in groups}
        twists = network.whole
        for of_near, of_far in sorted(sides):
            both = algebras.plus(of_near, algebras.sweep(of_far, moves))
            twists = algebras.intersection(twists, both)
        bound = Bound(edge, algebras[twists], algebras[tied], 0, over)
        bound = replace(bound, rows=_needed(reference, bound))
        if best is None or bound.rows < best.rows:
            best = bound
        swept = any(algebras.sweep(of_far, moves) != of_far for _, of_far in sides)
        if not swept or not reference.is_group(edge.name):
            break  # nothing to gain, or a pair that is not the same turned over
    assert best is not None
    return best


def _needed(reference: Reference, bound: Bound) -> int:
    """Number of rows that a loop needs."""
    pair = reference.pairs.get(bound.edge.name)
    if pair is not None and not pair.is_group:
        return len(selection(reference, bound))
    free = reference.algebras[bound.edge.algebra]
    return (bound.twists + free).dim - free.dim


def selection(reference: Reference, bound: Bound) -> Array:
    """``U``: orthonormal rows that span what the pair's rows can see of the twists (eq. 28)."""
    pair = reference.pairs[bound.edge.name]
    if not pair.sample_selectors:
        return np.eye(pair.rows)
    frames = reference.placements[bound.edge.name]
    frame_b = frames[0] if bound.over else frames[1]
    twists = bound.twists.basis.copy()
    twists[:3] *= reference.length
    home = pin.SE3(np.eye(3), reference.centre)
    local = (frame_b.inverse() * home).toActionMatrix() @ twists
    seen = np.hstack([S @ local for S in pair.sample_selectors])
    # For a group the algebras have decided how many, see `_needed`.
    rank = bound.rows if pair.is_group else None
    return _orthonormal_rows(seen, pair, reference.length, rank)


def _orthonormal_rows(seen: Array, pair: Pair, length: float, rank: int | None) -> Array:
    """Orthonormal basis of the column space of ``seen``, as rows; unit rows where it has some.

    Its rank is the numerical one if it is not given.
    """
    scale = np.array([1.0 if is_angle else 1 / length for is_angle in pair.row_is_angle])
    if seen.size == 0:
        return np.zeros((0, pair.rows))
    directions, values, _ = np.linalg.svd(scale[:, None] * seen, full_matrices=False)
    if rank is None:
        # As `span` decides for groups: twists are of size one.
        rank = int(np.sum(values > RANK * max(1.0, float(values[0]))))
    if rank == pair.rows:
        return np.eye(pair.rows)

    basis, _ = np.linalg.qr(directions[:, :rank] / scale[:, None])
    # Pivoting on the projector picks unit vectors wherever the space contains them.
    rows = scipy.linalg.qr(basis @ basis.T, pivoting=True)[0][:, :rank].T
    # The singular values leave rounding of numbers without unit, the QR of those with units.
    sizes = np.abs(rows) * scale
    rounding = sizes < SELECTION_DUST * sizes.max(axis=1, keepdims=True, initial=0.0)
    rows[rounding | (np.abs(rows) < LAST_BITS)] = 0.0
    largest = rows[np.arange(rank), np.argmax(np.abs(rows), axis=1)]
    rows *= np.sign(largest)[:, None]
    return np.asarray(rows[np.lexsort((np.argmax(np.abs(rows), axis=1),))] + 0.0)


class MotionNetwork:
    """Bounds on the relative motion of every two groups of a mechanism.

    Only bounds that are tighter than the ``whole`` are stored: in a planar linkage those of bodies
    near each other, so that it takes time and memory linear in the linkage.

    Args:
        whole: an algebra that holds every relative motion, se(3) by default.
    """

    def __init__(self, algebras: Algebras, whole: int | None = None) -> None:
        self.algebras = algebras
        self.whole = algebras.everything if whole is None else whole
        self._bounds: dict[int, dict[int, int]] = {}

    def copy(self) -> MotionNetwork:
        """A network that can be tightened without changing this one."""
        other = MotionNetwork(self.algebras, self.whole)
        other._bounds = {group: bounds.copy() for group, bounds in self._bounds.items()}
        return other

    def number(self, a: int, b: int) -> int:
        """Number of the algebra in which the relative motion of two groups lies."""
        if a == b:
            return self.algebras.nothing
        return self._bounds.get(a, _NO_BOUNDS).get(b, self.whole)

    def bounded(self, group: int) -> Set[int]:
        """Groups whose motion relative to a group is bounded by less than the whole."""
        return self._bounds.get(group, _NO_BOUNDS).keys()

    def tighten(self, ties: Iterable[tuple[int, int, int]]) -> set[tuple[int, int]]:
        """Take further bounds (group, group, algebra) into account, and all that follows.

        Returns:
            The pairs of groups whose bound has changed, both ways round.
        """
        touched: set[tuple[int, int]] = set()
        changed: list[tuple[int, int]] = []
        for a, b, algebra in ties:
            changed += self._narrow(a, b, algebra)
        while changed:
            a, b = changed.pop()
            touched |= {(a, b), (b, a)}
            for c in sorted((self._reached(a, b) | self._reached(b, a)) - {a, b}):
                changed += self._through(a, b, c) + self._through(b, a, c)
        return touched

    def _reached(self, a: int, b: int) -> set[int]:
        """Groups that may be bounded against a by way of b."""
        bounds = self._bounds.get(b, _NO_BOUNDS)
        whole = self.algebras.generating(self.number(a, b), bounds.values(), self.whole)
        return set(compress(bounds, ~whole))

    def _through(self, a: int, b: int, c: int) -> list[tuple[int, int]]:
        """Bound a-c by way of b."""
        step, old = self.number(b, c), self.number(a, c)
        if step == self.whole or old == self.algebras.nothing:
            return []
        both = self.algebras.join(self.number(a, b), step)
        return [] if both in (old, self.whole) else self._narrow(a, c, both)

    def _narrow(self, a: int, b: int, algebra: int) -> list[tuple[int, int]]:
        """Intersect one bound; returns the pair if that made it smaller."""
        if a == b:
            return []
        old = self.number(a, b)
        new = self.algebras.meet(old, algebra)
        # Where screws meet, the bound on both may be larger than either: keep what is there.
        if self.algebras.dim(new) >= self.algebras.dim(old):
            return []
        for group, other in ((a, b), (b, a)):
            self._bounds.setdefault(group, {})[other] = new
        return [(a, b)]


_NO_BOUNDS: dict[int, int] = {}
