"""Bodies and joints as a graph: spanning tree, cut joints, loops (paper 1, section 2.1).

Topology only: nothing here knows where a frame is or what a joint does, only how many degrees of
freedom it leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from scipy.cluster.hierarchy import DisjointSet

from ..errors import LoadError
from .description import GROUND, Joint


@dataclass(frozen=True, eq=False)
class TreeEdge:
    """A joint of the spanning tree, which carries ``child``; ``parent`` is nearer to the ground.

    ``orientation`` is +1 if the joint's own parent is nearer to the ground, else -1 (s(alpha)).
    """

    joint: Joint
    parent: str
    child: str
    orientation: int


@dataclass(frozen=True)
class FundamentalLoop:
    """The loop that one cut joint closes.

    ``root`` is the last body that both chains share; ``chain_a`` and ``chain_b`` are the tree
    joints from it to the cut joint's parent and child, in order.
    """

    joint: str
    root: str
    chain_a: tuple[str, ...]
    chain_b: tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """Loops and couplings that share joints, so that they can only be closed together.

    ``names`` are in the order in which they were given; ``joints`` are the tree joints in them.
    """

    names: tuple[str, ...]
    joints: frozenset[str]


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A spanning tree rooted at the ground: edges in depth-first order, parents before children.

    ``cuts`` are the joints outside the tree (the cotree), in the order they were described, and
    ``loops`` the fundamental loop of each.
    """

    edges: tuple[TreeEdge, ...]
    cuts: tuple[Joint, ...]
    loops: tuple[FundamentalLoop, ...]

    def edge(self, joint: str) -> TreeEdge:
        """The edge of a joint of the tree."""
        return next(edge for edge in self.edges if edge.joint.name == joint)


def spanning_tree(
    bodies: Sequence[str], joints: Sequence[Joint], base: str | None, source: str = ""
) -> SpanningTree:
    """Choose which joints carry ``bodies`` and which close loops.

    Joints marked ``cut=True`` close loops; those marked ``cut=False`` are taken into the tree
    first. The rest is a minimum spanning tree in degrees of freedom: few coordinates in the tree,
    few rows in the cuts; among equals the tree grows in breadth, so that chains stay short.

    ``base`` is a body welded to the ground, or None; ``source`` says where the robot comes from. A
    body that hangs on no joint that may be in the tree is a `LoadError`.
    """
    carrier = _grow(joints, base)
    missing = [body for body in bodies if body not in carrier and body != base]
    if missing:
        raise LoadError(_unreached(missing, joints), source=source)
    edges = _depth_first(joints, carrier, base)
    in_tree = {edge.joint.name for edge in edges}
    cuts = tuple(joint for joint in joints if joint.name not in in_tree)
    by_child = {edge.child: edge for edge in edges}
    return SpanningTree(edges, cuts, tuple(_loop(cut, by_child, base) for cut in cuts))


def with_cuts(joints: Sequence[Joint], names: Sequence[str]) -> tuple[Joint, ...]:
    """Cut the named joints; what was cut before is free then, so that the tree can close."""
    return tuple(
        replace(joint, cut=True if joint.name in names else joint.cut and None) for joint in joints
    )


def clusters(joints: Mapping[str, Iterable[str]]) -> tuple[Cluster, ...]:
    """Group loops and couplings into clusters that share no joint, in time linear in their size.

    Of loops alone these are the blocks of the graph of bodies: what one cluster does is nothing to
    another, but for bodies that both hang on. ``joints`` are the tree joints in each, by its name.
    """
    sets, user = DisjointSet(joints), dict[str, str]()
    for name, used in joints.items():
        for joint in used:
            sets.merge(name, user.setdefault(joint, name))
    groups: dict[str, list[str]] = {}
    for name in joints:
        groups.setdefault(sets[name], []).append(name)
    return tuple(
        Cluster(tuple(names), frozenset(joint for name in names for joint in joints[name]))
        for names in groups.values()
    )


def _grow(joints: Sequence[Joint], base: str | None) -> dict[str, TreeEdge]:
    """Prim's algorithm from the ground; returns for each body the edge that carries it."""
    at_body: dict[str, list[int]] = {}
    for index, joint in enumerate(joints):
        if joint.cut is not True and joint.pair.carries_bodies:
            at_body.setdefault(joint.parent, []).append(index)
            at_body.setdefault(joint.child, []).append(index)
    carrier: dict[str, TreeEdge] = {}
    reached = {GROUND} if base is None else {GROUND, base}
    queue: list[tuple[bool, int, int, int, str]] = []

    def offer(body: str, depth: int) -> None:
        for index in at_body.get(body, ()):
            joint = joints[index]
            heappush(queue, (joint.cut is not False, joint.pair.dof, depth, index, body))

    for body in sorted(reached):
        offer(body, 0)
    while queue:
        _, _, depth, index, body = heappop(queue)
        joint = joints[index]
        forward = joint.parent == body
        far = joint.child if forward else joint.parent
        if far in reached:
            continue
        reached.add(far)
        carrier[far] = TreeEdge(joint, body, far, 1 if forward else -1)
        offer(far, depth + 1)
    return carrier


def _depth_first(
    joints: Sequence[Joint], carrier: Mapping[str, TreeEdge], base: str | None
) -> tuple[TreeEdge, ...]:
    """Order the edges as Pinocchio wants them: depth first, siblings as described."""
    order = {joint.name: index for index, joint in enumerate(joints)}
    children: dict[str, list[TreeEdge]] = {}
    for edge in carrier.values():
        parent = GROUND if edge.parent == base else edge.parent
        children.setdefault(parent, []).append(edge)
    for siblings in children.values():
        siblings.sort(key=lambda edge: order[edge.joint.name], reverse=True)
    stack = list(children.get(GROUND, ()))
    edges: list[TreeEdge] = []
    while stack:
        edge = stack.pop()
        edges.append(edge)
        stack.extend(children.get(edge.child, ()))
    return tuple(edges)


def _path(body: str, by_child: Mapping[str, TreeEdge], base: str | None) -> list[tuple[str, str]]:
    """Pairs (parent body, joint) from the ground to ``body``."""
    path: list[tuple[str, str]] = []
    while body not in (GROUND, base):
        edge = by_child[body]
        path.append((GROUND if edge.parent == base else edge.parent, edge.joint.name))
        body = edge.parent
    return path[::-1]


def _loop(cut: Joint, by_child: Mapping[str, TreeEdge], base: str | None) -> FundamentalLoop:
    """Fundamental loop of a cut joint: what the two paths do not share."""
    path_a = _path(cut.parent, by_child, base)
    path_b = _path(cut.child, by_child, base)
    shared = 0
    while shared < min(len(path_a), len(path_b)) and path_a[shared] == path_b[shared]:
        shared += 1
    rest_a, rest_b = path_a[shared:], path_b[shared:]
    root = (rest_a or rest_b or [(cut.parent, "")])[0][0]
    return FundamentalLoop(
        cut.name, root, tuple(joint for _, joint in rest_a), tuple(joint for _, joint in rest_b)
    )


def _unreached(missing: Sequence[str], joints: Sequence[Joint]) -> str:
    """Explain why bodies hang in the air, and what to do."""
    lost = set(missing)
    names = ", ".join(f"'{body}'" for body in missing[:6]) + (", ..." if len(missing) > 6 else "")
    cut = [j.name for j in joints if j.cut is True and ({j.parent, j.child} & lost)]
    contacts = [
        f"'{j.name}' ({j.pair.name})"
        for j in joints
        if not j.pair.carries_bodies and {j.parent, j.child} & lost
    ]
    inner = [j.name for j in joints if j.parent in lost and j.child in lost]
    if cut:
        return (
            f"without the cut joints {', '.join(map(repr, cut[:6]))} nothing carries {names}; "
            "leave one of these joints uncut"
        )
    if contacts:
        return (
            f"nothing carries {names}: {', '.join(contacts[:6])} cannot, as such a pair has no "
            "coordinates; join the body by another pair too"
        )
    if inner:
        return (
            f"{names} are connected to each other by {', '.join(map(repr, inner[:6]))} but not to "
            "the ground; join one of them to the ground (a 'free' joint lets it float)"
        )
    return f"no joint carries {names}; join each to another body or to the ground"
