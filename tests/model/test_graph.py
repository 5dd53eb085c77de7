"""Tests of `pinloop.model.graph` on graphs drawn by hand and on random ones, checked by union-
find.
"""

from __future__ import annotations

from collections.abc import Sequence

import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinloop.errors import LoadError
from pinloop.model.description import GROUND, Joint
from pinloop.model.graph import FundamentalLoop, SpanningTree, clusters, spanning_tree
from pinloop.model.pairs import make_pair

UNIT = pin.SE3.Identity()


def link(
    name: str, parent: str, child: str, pair: str = "revolute", cut: bool | None = None
) -> Joint:
    kind = make_pair(pair, length=0.1 if pair == "rod" else None)
    return Joint(name, kind, parent, child, UNIT, UNIT, cut)


def bodies_of(joints: Sequence[Joint]) -> list[str]:
    ends = [end for joint in joints for end in (joint.parent, joint.child)]
    return [body for body in dict.fromkeys(ends) if body != GROUND]


def tree_of(joints: Sequence[Joint], base: str | None = None) -> SpanningTree:
    return spanning_tree(bodies_of(joints), joints, base)


def names(joints: Sequence[Joint]) -> list[str]:
    return [joint.name for joint in joints]


# Two loops: over b1, b2, b3 with root b1, and over b2, b4, b5, b6 with root b2.
EXAMPLE = [
    link("J1", GROUND, "b1"), link("J2", "b1", "b2"), link("J3", "b3", "b2"),
    link("J4", "b1", "b3"), link("J5", "b2", "b4"), link("J6", "b2", "b5"),
    link("J7", "b5", "b6"), link("J8", "b6", "b4"),
]  # fmt: skip


def changed(**pairs: Joint) -> list[Joint]:
    return [pairs.get(joint.name, joint) for joint in EXAMPLE]


def test_example_graph_has_the_loops_one_sees() -> None:
    tree = tree_of(EXAMPLE)
    assert names(tree.cuts) == ["J3", "J8"]
    assert tree.loops == (
        FundamentalLoop("J3", "b1", ("J4",), ("J2",)),
        FundamentalLoop("J8", "b2", ("J6", "J7"), ("J5",)),
    )


def test_edges_come_depth_first_with_siblings_as_described() -> None:
    tree = tree_of(EXAMPLE)
    assert [(e.joint.name, e.parent, e.child) for e in tree.edges] == [
        ("J1", GROUND, "b1"),
        ("J2", "b1", "b2"),
        ("J5", "b2", "b4"),
        ("J6", "b2", "b5"),
        ("J7", "b5", "b6"),
        ("J4", "b1", "b3"),
    ]
    assert {edge.orientation for edge in tree.edges} == {1}


def test_joint_with_more_freedom_is_cut_and_its_neighbour_walked_backwards() -> None:
    tree = tree_of(changed(J7=link("J7", "b5", "b6", "spherical")))
    assert names(tree.cuts) == ["J3", "J7"]
    edge = next(edge for edge in tree.edges if edge.joint.name == "J8")
    assert (edge.parent, edge.child, edge.orientation) == ("b4", "b6", -1)
    assert tree.loops[1] == FundamentalLoop("J7", "b2", ("J6",), ("J5", "J8"))


def test_joint_from_a_body_to_the_ground_is_walked_backwards() -> None:
    (edge,) = tree_of([link("J", "b", GROUND)]).edges
    assert (edge.parent, edge.child, edge.orientation) == (GROUND, "b", -1)


def test_cut_true_is_never_in_the_tree_and_cut_false_goes_first() -> None:
    cut = tree_of(changed(J2=link("J2", "b1", "b2", cut=True)))
    assert names(cut.cuts) == ["J2", "J8"]
    assert cut.loops[0] == FundamentalLoop("J2", "b1", (), ("J4", "J3"))
    kept = tree_of(changed(J3=link("J3", "b3", "b2", "spherical", cut=False)))
    assert names(kept.cuts) == ["J4", "J8"], "a ball joint that must stay, in spite of its freedom"


@pytest.mark.parametrize("contact", ["rod", "point_on_line", "point_on_plane"])
def test_contacts_close_loops_even_where_a_tree_joint_is_dearer(contact: str) -> None:
    joints = [
        link("a", GROUND, "b", "free"),
        link("touch", GROUND, "b", contact),
        link("also", GROUND, "b", contact, cut=False),
    ]
    assert names(tree_of(joints).cuts) == ["touch", "also"]
    with pytest.raises(LoadError, match="nothing carries 'b': 'touch'"):
        tree_of(joints[1:2])


@pytest.mark.parametrize("count", range(2, 9))
def test_equal_joints_of_a_ring_give_two_short_chains(count: int) -> None:
    ends = [GROUND, *(f"b{k}" for k in range(count)), GROUND]
    joints = [link(f"j{k}", ends[k], ends[k + 1]) for k in range(count + 1)]
    (loop,) = tree_of(joints).loops
    assert loop.root == GROUND
    assert len(loop.chain_a) + len(loop.chain_b) == count
    assert abs(len(loop.chain_a) - len(loop.chain_b)) <= 1


def test_chain_of_a_body_that_is_hinged_to_the_root_twice_is_empty_on_one_side() -> None:
    (loop,) = tree_of([link("a", GROUND, "b"), link("b", GROUND, "b")]).loops
    assert loop == FundamentalLoop("b", GROUND, (), ("a",))


def test_base_is_ground() -> None:
    joints = [link("j", "base", "b"), link("k", GROUND, "c"), link("close", "b", "c", cut=True)]
    tree = tree_of(joints, base="base")
    assert names([edge.joint for edge in tree.edges]) == ["j", "k"]
    assert tree.loops == (FundamentalLoop("close", GROUND, ("j",), ("k",)),)
    with pytest.raises(LoadError, match="'base'"):
        tree_of(joints)


def test_joint_between_ground_and_base_closes_a_loop_of_its_own() -> None:
    tree = tree_of([link("weld", GROUND, "base"), link("j", "base", "b")], base="base")
    assert names(tree.cuts) == ["weld"]
    assert (tree.loops[0].chain_a, tree.loops[0].chain_b) == ((), ())


def test_bodies_in_the_air_are_named_with_the_way_out() -> None:
    with pytest.raises(LoadError, match=r"'p', 'q' are connected .* by 'pq' but not to the ground"):
        tree_of([link("j", GROUND, "b"), link("pq", "p", "q")])
    with pytest.raises(LoadError, match=r"without the cut joints 'k' nothing carries 'c'"):
        tree_of([link("j", GROUND, "b"), link("k", "b", "c", cut=True)])
    with pytest.raises(LoadError, match=r"no joint carries 'lonely'"):
        spanning_tree(["b", "lonely"], [link("j", GROUND, "b")], None)


# -- random graphs --------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> list[Joint]:
    """Connected graphs: a random tree, further joints, everything shuffled and turned around."""
    count = draw(st.integers(1, 9))
    body = [GROUND, *(f"b{k}" for k in range(count))]
    ends = [(body[draw(st.integers(0, k))], body[k + 1]) for k in range(count)]
    for _ in range(draw(st.integers(0, 6))):
        first, second = draw(st.lists(st.integers(0, count), min_size=2, max_size=2, unique=True))
        ends.append((body[first], body[second]))
    pairs = st.sampled_from(["revolute", "cylindrical", "spherical", "fixed", "free", "rod"])
    cuts = st.sampled_from([None, None, None, True, False])
    joints = [
        link(f"j{k}", *(pair if draw(st.booleans()) else pair[::-1]), draw(pairs), draw(cuts))
        for k, pair in enumerate(ends)
    ]
    return list(draw(st.permutations(joints)))


class Forest:
    """Union-find over bodies."""

    def __init__(self) -> None:
        self.above: dict[str, str] = {}

    def root(self, body: str) -> str:
        while body in self.above:
            body = self.above[body]
        return body

    def join(self, joint: Joint) -> bool:
        first, second = self.root(joint.parent), self.root(joint.child)
        if first != second:
            self.above[first] = second
        return first != second


def cost(joint: Joint) -> tuple[bool, int]:
    return joint.cut is not False, joint.pair.dof


@settings(max_examples=150, deadline=None, derandomize=True)
@given(graphs())
def test_random_graph_gets_a_smallest_tree_and_loops_that_close(joints: list[Joint]) -> None:
    bodies, forest = bodies_of(joints), Forest()
    usable = [joint for joint in joints if joint.cut is not True and joint.pair.name != "rod"]
    cheapest = [joint for joint in sorted(usable, key=cost) if forest.join(joint)]  # Kruskal
    if len(cheapest) < len(bodies):
        lost = [body for body in bodies if forest.root(body) != forest.root(GROUND)]
        with pytest.raises(LoadError) as caught:
            tree_of(joints)
        assert all(f"'{body}'" in str(caught.value) for body in lost[:6])
        return

    tree = tree_of(joints)
    chosen = [edge.joint for edge in tree.edges]
    assert sorted(map(cost, chosen)) == sorted(map(cost, cheapest))
    assert len(tree.loops) == len(tree.cuts) == len(joints) - len(bodies)
    assert names(tree.cuts) == [j.name for j in joints if j.name not in set(names(chosen))]
    check_depth_first(tree)
    for cut, loop in zip(tree.cuts, tree.loops, strict=True):
        check_loop(tree, cut, loop)


def check_depth_first(tree: SpanningTree) -> None:
    """Each edge hangs on the branch that was being walked, and its joint joins its two bodies."""
    branch = [GROUND]
    for edge in tree.edges:
        while branch[-1] != edge.parent:
            branch.pop()
        branch.append(edge.child)
        ends = (edge.joint.parent, edge.joint.child)
        assert ends == ((edge.parent, edge.child)[:: edge.orientation])


def check_loop(tree: SpanningTree, cut: Joint, loop: FundamentalLoop) -> None:
    """Both chains lead from the root to the ends of the cut joint, with nothing in common."""
    assert loop.joint == cut.name
    assert not set(loop.chain_a) & set(loop.chain_b)
    edges = {edge.joint.name: edge for edge in tree.edges}
    for chain, end in ((loop.chain_a, cut.parent), (loop.chain_b, cut.child)):
        here = loop.root
        for name in chain:
            assert edges[name].parent == here
            here = edges[name].child
        assert here == end


# -- clusters -------------------------------------------------------------------------------------


def test_clusters_share_no_joint() -> None:
    found = clusters({"a": "pq", "b": "rs", "c": "qt", "idle": "", "d": "tr", "e": "x"})
    assert [(one.names, sorted(one.joints)) for one in found] == [
        (("a", "b", "c", "d"), ["p", "q", "r", "s", "t"]),
        (("idle",), []),
        (("e",), ["x"]),
    ]
    assert clusters({}) == ()


@given(st.dictionaries(st.integers(0, 40).map(str), st.sets(st.sampled_from("abcdefghijklmnop"))))
def test_clusters_are_the_connected_components(joints: dict[str, set[str]]) -> None:
    found = clusters(joints)
    assert sorted(name for one in found for name in one.names) == sorted(joints)
    for one in found:
        # What can be reached from the first loop over shared joints, by brute force.
        reached, touched = {one.names[0]}, set(joints[one.names[0]])
        while more := {n for n in joints if joints[n] & touched} - reached:
            reached |= more
            touched |= set().union(*(joints[n] for n in more))
        assert reached == set(one.names) and touched == set(one.joints)


def test_many_loops_in_one_cluster_take_no_deep_recursion() -> None:
    chain = {str(k): (str(k), str(k + 1)) for k in range(20_000)}
    (cluster,) = clusters(chain)
    assert len(cluster.names) == 20_000
