"""The assembly tree: in which order pieces of a robot are joined (paper 3, figure 2).

Topology only: pieces and joints are numbers. From the leaves upwards each round joins neighbours,
up to four at a time and so that few joints stay open on the outside: chains are halved twice per
round, legs disappear into their platform, coupled loops close inside. All pieces of a round that
look alike form one `Group`, so that they can be worked on as one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import DisjointSet

from ...boundary.marks import Indices

Shape = tuple[int, ...]
"""Number of columns of each handle of a piece."""

GROUND_END = -1
"""Leaf index of the ground."""
_ARITY = 4
_INNER = 4
"""Joints that a round may eliminate in one piece beyond those of two neighbours."""


@dataclass(frozen=True, eq=False)
class Slot:
    """One child of every piece of a group.

    Args:
        shape: columns of each handle of the child.
        pieces: index of each child among all pieces of that shape, shape (pieces,).
        places: place of each of its handles among the joints of the piece.
    """

    shape: Shape
    pieces: Indices
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Group:
    """Pieces that are made alike in one round.

    Args:
        slots: their children.
        inner: places of the joints that are eliminated.
        outer: places of the joints that stay open: the handles of the piece, in order.
        inner_joints: shape (pieces, inner).
        outer_joints: shape (pieces, outer).
        widths: columns of each joint, by place.
        start: index of the first of them among all pieces of their shape.
        regular: no loop closes, so that the inner matrix is positive definite whatever happens.
    """

    slots: tuple[Slot, ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    inner_joints: Indices
    outer_joints: Indices
    widths: Shape
    start: int
    regular: bool

    @property
    def size(self) -> int:
        """Number of pieces."""
        return len(self.inner_joints)

    @property
    def shape(self) -> Shape:
        """Columns of each handle of the pieces."""
        return tuple(self.widths[place] for place in self.outer)


@dataclass(frozen=True, eq=False)
class AssemblyTree:
    """All groups, in the order of assembly.

    Args:
        leaves: per shape, the leaves that have it, in order.
        groups: the groups, children before parents.
        pieces: per shape, how many pieces have it, leaves included.
        rounds: number of rounds.
    """

    leaves: dict[Shape, Indices]
    groups: tuple[Group, ...]
    pieces: dict[Shape, int]
    rounds: int


@dataclass(eq=False)
class _Piece:
    """A piece while the tree is built; ``handles`` are the open joints, in order."""

    handles: list[int]
    number: int
    size: int
    grounded: bool = False
    index: int = -1


@dataclass(eq=False)
class _Plan:
    """A piece to be made: its children, and where their handles go."""

    children: list[_Piece]
    places: list[tuple[int, ...]]
    inner: list[int]
    outer: list[int]
    joints: list[int]
    regular: bool
    piece: _Piece = field(init=False)

    def key(self, widths: Sequence[int]) -> tuple[object, ...]:
        """What plans have in common that can be carried out together."""
        looks = tuple(widths[joint] for joint in self.joints)
        return looks, tuple(self.places), tuple(self.inner), tuple(self.outer), self.regular


def assembly_tree(
    handles: Sequence[Sequence[int]],
    ends: Sequence[tuple[int, int]],
    widths: Sequence[int],
    grounded: Sequence[int] = (),
) -> AssemblyTree:
    """Plan the assembly of a robot.

    Args:
        handles: per leaf its joints, in order; a joint of a leaf to itself occurs once.
        ends: per joint the indices of its two leaves; `GROUND_END` for the ground.
        widths: columns of each joint.
        grounded: leaves that cannot move as a whole.
    """
    pieces = [
        _Piece(list(own), number, 1, number in grounded) for number, own in enumerate(handles)
    ]
    builder = _Builder(ends, widths)
    leaves: dict[Shape, list[int]] = {}
    for piece in pieces:
        leaves.setdefault(builder.store(piece), []).append(piece.number)
    builder.join(pieces)
    arrays = {shape: np.array(numbers, dtype=np.intp) for shape, numbers in leaves.items()}
    return AssemblyTree(arrays, tuple(builder.groups), builder.counts, builder.rounds)


class _Builder:
    """Rounds until all joints are eliminated."""

    def __init__(self, ends: Sequence[tuple[int, int]], widths: Sequence[int]) -> None:
        self.widths = widths
        self.counts: dict[Shape, int] = {}
        self.groups: list[Group] = []
        self.rounds = 0
        self._grounded = {joint for joint, pair in enumerate(ends) if GROUND_END in pair}
        self._own = {joint for joint, (a, b) in enumerate(ends) if a == b != GROUND_END}

    def store(self, piece: _Piece) -> Shape:
        """Give a piece its index among those of the same shape."""
        shape = tuple(self.widths[joint] for joint in piece.handles)
        piece.index = self.counts.get(shape, 0)
        self.counts[shape] = piece.index + 1
        return shape

    def join(self, pieces: list[_Piece]) -> None:
        """Carry out all rounds."""
        # What closes inside a leaf is eliminated there, before it makes larger matrices larger.
        clusters = [[piece] for piece in pieces if self._own.intersection(piece.handles)]
        if len(pieces) == 1:
            clusters = []
        while True:
            clusters = clusters or _clusters(pieces, self._grounded | self._own)
            if not clusters:
                clusters = [[piece] for piece in pieces if piece.handles]
            if not clusters:
                return
            plans = [_plan(cluster, self._grounded, self._own) for cluster in clusters]
            self.groups += self._grouped(plans)
            gone = {id(child) for plan in plans for child in plan.children}
            pieces = [piece for piece in pieces if id(piece) not in gone]
            pieces = sorted(pieces + [plan.piece for plan in plans], key=lambda piece: piece.number)
            self.rounds += 1
            clusters = []

    def _grouped(self, plans: list[_Plan]) -> list[Group]:
        """Plans of a round by their looks."""
        alike: dict[tuple[object, ...], list[_Plan]] = {}
        for plan in plans:
            alike.setdefault(plan.key(self.widths), []).append(plan)
        groups = []
        for same in alike.values():
            for plan in same:
                self.store(plan.piece)
            groups.append(self._group(same))
        return groups

    def _group(self, same: list[_Plan]) -> Group:
        first = same[0]
        slots = tuple(
            Slot(
                tuple(self.widths[joint] for joint in child.handles),
                np.array([plan.children[k].index for plan in same], dtype=np.intp),
                first.places[k],
            )
            for k, child in enumerate(first.children)
        )
        joints = np.array([plan.joints for plan in same], dtype=np.intp)
        return Group(
            slots,
            tuple(first.inner),
            tuple(first.outer),
            joints[:, first.inner],
            joints[:, first.outer],
            tuple(self.widths[joint] for joint in first.joints),
            first.piece.index,
            first.regular,
        )


# -- who is joined with whom ------------------------------------------------------------------


class _Neighbours:
    """Which pieces share how many joints.

    Attributes:
        open: per piece, number of joints to other pieces.
        shared: per piece, its neighbours and the number of joints shared with each.
    """

    def __init__(self, pieces: Sequence[_Piece], single: set[int]) -> None:
        owners: dict[int, list[int]] = {}
        for k, piece in enumerate(pieces):
            for joint in piece.handles:
                if joint not in single:
                    owners.setdefault(joint, []).append(k)
        self.open = [0] * len(pieces)
        self.shared: list[dict[int, int]] = [{} for _ in pieces]
        for a, b in owners.values():
            self.open[a] += 1
            self.open[b] += 1
            self.shared[a][b] = self.shared[a].get(b, 0) + 1
            self.shared[b][a] = self.shared[b].get(a, 0) + 1

    def outside(self, members: Sequence[int]) -> int:
        """Joints that stay open when pieces are joined; two are as good as none."""
        inside = sum(self.shared[a].get(b, 0) for a in members for b in members)
        return max(2, sum(self.open[a] for a in members) - inside)


def _clusters(pieces: Sequence[_Piece], single: set[int]) -> list[list[_Piece]]:
    """Disjoint sets of neighbours to join in this round, the cheapest first."""
    near = _Neighbours(pieces, single)
    pairs = sorted(
        (near.outside((a, b)), pieces[a].size + pieces[b].size, a, b)
        for a in range(len(pieces))
        for b in near.shared[a]
        if a < b
    )
    taken = [False] * len(pieces)
    clusters = []
    for cost, _, a, b in pairs:
        # A hub that would grow waits until its arms are short.
        if taken[a] or taken[b] or cost > max(near.open[a], near.open[b], pairs[0][0]):
            continue
        members = _grown([a, b], near, taken, pieces)
        for member in members:
            taken[member] = True
        clusters.append([pieces[member] for member in sorted(members)])
    return clusters


def _grown(
    members: list[int], near: _Neighbours, taken: Sequence[bool], pieces: Sequence[_Piece]
) -> list[int]:
    """The pair with further neighbours, as long as the piece does not get more handles."""
    while len(members) < _ARITY:
        inside = sum(near.shared[a].get(b, 0) for a in members for b in members) // 2
        bound = max(near.open[member] for member in members)
        beside = {
            other
            for member in members
            for other in near.shared[member]
            if not taken[other] and other not in members
        }
        offers = []
        for other in beside:
            joints = sum(near.shared[other].get(member, 0) for member in members)
            cost = near.outside([*members, other])
            if inside + joints <= _INNER and cost <= max(2, bound):
                offers.append((cost, pieces[other].size, other))
        if not offers:
            break
        members = [*members, min(offers)[2]]
    return members


# -- what comes of it -------------------------------------------------------------------------


def _plan(cluster: list[_Piece], grounded: set[int], own: set[int]) -> _Plan:
    """Where the handles of the children go, and which joints are eliminated.

    Joints to the ground stay open as long as a chain has no more than its two ends (paper 3, eq.
    42: both ends of a closed chain are solved for together), and else are eliminated at once.
    """
    order: dict[int, int] = {}
    times: dict[int, int] = {}
    for child in cluster:
        for joint in child.handles:
            order.setdefault(joint, len(order))
            times[joint] = times.get(joint, 0) + 1
    beyond = [j for j in order if j not in grounded and j not in own and times[j] == 1]
    to_ground = [j for j in order if j in grounded]
    keep = bool(beyond) and len(beyond) + len(to_ground) <= 2
    outer = [j for j in order if j in beyond or (keep and j in grounded)]
    inner = [j for j in order if j not in set(outer)]
    if not all(_is_range([order[joint] for joint in child.handles]) for child in cluster):
        # Where children do not lie in one stretch anyway, let inner and outer joints do.
        order = {joint: place for place, joint in enumerate([*inner, *outer])}
    places = [tuple(order[joint] for joint in child.handles) for child in cluster]
    plan = _Plan(
        cluster,
        places,
        [order[j] for j in inner],
        [order[j] for j in outer],
        [*order],
        _closes_no_loop(cluster, inner, grounded),
    )
    plan.piece = _Piece(
        outer,
        min(child.number for child in cluster),
        sum(child.size for child in cluster),
        any(child.grounded for child in cluster) or any(j in grounded for j in inner),
    )
    return plan


def _is_range(places: list[int]) -> bool:
    return all(b == a + 1 for a, b in pairwise(places))


def _closes_no_loop(cluster: list[_Piece], inner: list[int], grounded: set[int]) -> bool:
    """Whether joints between pieces and ground form a tree."""
    ground = len(cluster)
    joined = DisjointSet(range(ground + 1))
    for k, child in enumerate(cluster):
        if child.grounded:
            joined.merge(k, ground)
    for joint in inner:
        ends = [k for k, child in enumerate(cluster) for own in child.handles if own == joint]
        if not joined.merge(ends[0], ground if joint in grounded else ends[-1]):
            return False
    return True


# -- which bodies are one leaf ------------------------------------------------------------------


def partition(parents: Sequence[int], dofs: Sequence[int], limit: int) -> list[list[int]]:
    """Bodies of each block; blocks come after those they hang on.

    From the tips downwards, branches are cut off, the largest first, wherever they would become too
    large together (that gives the fewest parts; Kundu and Misra 1977). What is left on the ground
    is put together as it fits.

    Args:
        parents: parent of each body, -1 for the ground; parents come before children.
        dofs: coordinates of each body's joint; bodies without any are one with those they hang on.
        limit: coordinates of a block; a single joint may have more.
    """
    n, total = len(parents), sum(dofs)
    # Equal parts rather than full ones and a rest.
    limit = max(1, -(-total // max(1, -(-total // limit))))
    first, size = _branches(parents, dofs, limit)
    blocks: list[list[int]] = []
    block_of: list[int] = []
    grounded, room = -1, -1
    for k in range(n):
        if not first[k]:
            block_of.append(block_of[parents[k]])
        elif parents[k] < 0 and size[k] <= room:
            block_of.append(grounded)
            room -= size[k]
        else:
            block_of.append(len(blocks))
            blocks.append([])
            if parents[k] < 0:
                grounded, room = block_of[k], limit - size[k]
        blocks[block_of[k]].append(k)
    return blocks


def _branches(
    parents: Sequence[int], dofs: Sequence[int], limit: int
) -> tuple[list[bool], list[int]]:
    """Which bodies are the first of a branch that is cut off, and coordinates of that branch."""
    n, size = len(parents), list(dofs)
    branches: list[list[int]] = [[] for _ in range(n)]
    first = [True] * n
    for k in reversed(range(n)):
        if dofs[k] == 0 and parents[k] >= 0:
            branches[parents[k]] += branches[k]
            first[k] = False
            continue
        branches[k].sort(key=lambda child: size[child])
        size[k] += sum(size[child] for child in branches[k])
        while size[k] > limit and branches[k]:
            size[k] -= size[branches[k].pop()]
        for child in branches[k]:
            first[child] = False
        if parents[k] >= 0:
            branches[parents[k]].append(k)
    return first, size
