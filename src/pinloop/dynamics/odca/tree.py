"""The assembly tree: in which order pieces of a robot are joined (paper 3, figure 2).

Topology only: pieces and joints are numbers. From the bodies upwards each round joins neighbours,
up to four at a time and so that few joints stay open on the outside: chains are halved twice per
round, legs disappear into their platform, coupled loops close inside. All pieces of a round that
look alike form one `Group`, so that they can be worked on as one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["GROUND_END", "AssemblyTree", "Group", "Slot", "assembly_tree"]

Indices = NDArray[np.intp]

GROUND_END = -1
"""Body index of the ground."""
_ARITY = 4
_INNER = 4
"""Joints that a round may eliminate in one piece beyond those of two neighbours."""


@dataclass(frozen=True, eq=False)
class Slot:
    """One child of every piece of a group.

    Args:
        handles: number of handles of the child.
        pieces: index of each child among all pieces with that many handles, shape (pieces,).
        places: place of each of its handles among the joints of the piece.
    """

    handles: int
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
        start: index of the first of them among all pieces with as many handles.
        regular: no loop closes, so that the inner matrix is positive definite whatever happens.
    """

    slots: tuple[Slot, ...]
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    inner_joints: Indices
    outer_joints: Indices
    start: int
    regular: bool

    @property
    def size(self) -> int:
        """Number of pieces."""
        return len(self.inner_joints)


@dataclass(frozen=True, eq=False)
class AssemblyTree:
    """All groups, in the order of assembly.

    Args:
        leaves: per number of handles, the bodies that have so many, in order.
        groups: the groups, children before parents.
        pieces: per number of handles, how many pieces have so many, bodies included.
        rounds: number of rounds.
    """

    leaves: dict[int, Indices]
    groups: tuple[Group, ...]
    pieces: dict[int, int]
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
    made: _Piece = field(init=False)

    @property
    def key(self) -> tuple[object, ...]:
        handles = tuple(len(child.handles) for child in self.children)
        return handles, tuple(self.places), tuple(self.inner), tuple(self.outer), self.regular


def assembly_tree(
    handles: Sequence[Sequence[int]], ends: Sequence[tuple[int, int]]
) -> AssemblyTree:
    """Plan the assembly of a robot.

    Args:
        handles: per body its joints, in order.
        ends: per joint the indices of its two bodies; `GROUND_END` for the ground.
    """
    pieces = [_Piece(list(own), number, 1) for number, own in enumerate(handles)]
    counts: dict[int, int] = {}
    leaves: dict[int, list[int]] = {}
    for piece in pieces:
        _store(piece, counts)
        leaves.setdefault(len(piece.handles), []).append(piece.number)
    grounded = {joint for joint, (a, b) in enumerate(ends) if GROUND_END in (a, b)}
    groups: list[Group] = []
    rounds = 0
    while True:
        clusters = _clusters(pieces, grounded)
        if not clusters:
            clusters = [[piece] for piece in pieces if piece.handles]
        if not clusters:
            break
        plans = [_plan(cluster, grounded) for cluster in clusters]
        groups += _grouped(plans, counts)
        gone = {id(child) for plan in plans for child in plan.children}
        pieces = [piece for piece in pieces if id(piece) not in gone]
        pieces = sorted(pieces + [plan.made for plan in plans], key=lambda piece: piece.number)
        rounds += 1
    arrays = {count: np.array(bodies, dtype=np.intp) for count, bodies in leaves.items()}
    return AssemblyTree(arrays, tuple(groups), counts, rounds)


def _store(piece: _Piece, counts: dict[int, int]) -> None:
    """Give a piece its index among those with as many handles."""
    count = len(piece.handles)
    piece.index = counts.get(count, 0)
    counts[count] = piece.index + 1


# -- who is joined with whom ------------------------------------------------------------------


class _Neighbours:
    """Which pieces share how many joints.

    Attributes:
        open: per piece, number of joints to other pieces.
        shared: per piece, its neighbours and the number of joints shared with each.
    """

    def __init__(self, pieces: Sequence[_Piece], grounded: set[int]) -> None:
        owners: dict[int, list[int]] = {}
        for k, piece in enumerate(pieces):
            for joint in piece.handles:
                if joint not in grounded:
                    owners.setdefault(joint, []).append(k)
        self.open = [0] * len(pieces)
        self.shared: list[dict[int, int]] = [{} for _ in pieces]
        for a, b in owners.values():
            if a != b:
                self.open[a] += 1
                self.open[b] += 1
                self.shared[a][b] = self.shared[a].get(b, 0) + 1
                self.shared[b][a] = self.shared[b].get(a, 0) + 1

    def outside(self, members: Sequence[int]) -> int:
        """Joints that stay open when pieces are joined; two are as good as none."""
        inside = sum(self.shared[a].get(b, 0) for a in members for b in members)
        return max(2, sum(self.open[a] for a in members) - inside)


def _clusters(pieces: Sequence[_Piece], grounded: set[int]) -> list[list[_Piece]]:
    """Disjoint sets of neighbours to join in this round, the cheapest first."""
    near = _Neighbours(pieces, grounded)
    pairs = sorted(
        (near.outside((a, b)), pieces[a].size + pieces[b].size, a, b)
        for a in range(len(pieces))
        for b in near.shared[a]
        if a < b
    )
    taken = [False] * len(pieces)
    found = []
    for cost, _, a, b in pairs:
        # A hub that would grow waits until its arms are short.
        if taken[a] or taken[b] or cost > max(near.open[a], near.open[b], pairs[0][0]):
            continue
        members = _grown([a, b], near, taken, pieces)
        for member in members:
            taken[member] = True
        found.append([pieces[member] for member in sorted(members)])
    return found


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


def _plan(cluster: list[_Piece], grounded: set[int]) -> _Plan:
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
    beyond = [j for j in order if j not in grounded and times[j] == 1]
    to_ground = [j for j in order if j in grounded]
    keep = bool(beyond) and len(beyond) + len(to_ground) <= 2
    outer = [j for j in order if j in beyond or (keep and j in grounded)]
    inner = [j for j in order if j not in set(outer)]
    if not all(_is_range([order[joint] for joint in child.handles]) for child in cluster):
        # Where children do not lie in one stretch anyway, let inner and outer joints do.
        order = {joint: place for place, joint in enumerate([*inner, *outer])}
    places = [tuple(order[joint] for joint in child.handles) for child in cluster]
    plan = _Plan(
        cluster, places, [order[j] for j in inner], [order[j] for j in outer], [*order],
        _closes_no_loop(cluster, inner, grounded),
    )  # fmt: skip
    plan.made = _Piece(
        outer,
        min(child.number for child in cluster),
        sum(child.size for child in cluster),
        any(child.grounded for child in cluster) or any(j in grounded for j in inner),
    )
    return plan


def _is_range(places: list[int]) -> bool:
    return all(b == a + 1 for a, b in pairwise(places))


def _closes_no_loop(cluster: list[_Piece], inner: list[int], grounded: set[int]) -> bool:
    """Whether joints between pieces and ground form a tree; union and find."""
    ground = len(cluster)
    root = [ground if child.grounded else k for k, child in enumerate(cluster)] + [ground]

    def find(k: int) -> int:
        while root[k] != k:
            k = root[k]
        return k

    for joint in inner:
        ends = [k for k, child in enumerate(cluster) for own in child.handles if own == joint]
        a, b = find(ends[0]), find(ground if joint in grounded else ends[1])
        if a == b:
            return False
        root[min(a, b)] = max(a, b)
    return True


def _grouped(plans: list[_Plan], counts: dict[int, int]) -> list[Group]:
    """Plans of a round by their looks."""
    alike: dict[tuple[object, ...], list[_Plan]] = {}
    for plan in plans:
        alike.setdefault(plan.key, []).append(plan)
    groups = []
    for same in alike.values():
        for plan in same:
            _store(plan.made, counts)
        first = same[0]
        slots = tuple(
            Slot(
                len(child.handles),
                np.array([plan.children[k].index for plan in same], dtype=np.intp),
                first.places[k],
            )
            for k, child in enumerate(first.children)
        )
        joints = np.array([plan.joints for plan in same], dtype=np.intp)
        groups.append(
            Group(
                slots,
                tuple(first.inner),
                tuple(first.outer),
                joints[:, first.inner],
                joints[:, first.outer],
                first.made.index,
                first.regular,
            )
        )
    return groups
