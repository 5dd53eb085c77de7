"""Tests of blocks, of the assembly tree and of the sweeps over it, without robots.

Oracles: one dense system with all joints at once, by NumPy; what is asked of a partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pinloop.dynamics.odca.assembly_tree import GROUND_END, AssemblyTree, assembly_tree, partition
from pinloop.dynamics.odca.sweeps import Sweeps

from ..screw_tables import Array

Ends = list[tuple[int, int]]


def chain(count: int, *, closed: bool = True) -> Ends:
    last = [(GROUND_END, count - 1)] if closed else []
    return [(k - 1, k) for k in range(count)] + last


def ladder(cells: int) -> Ends:
    """Per cell two rails and a rung; the first cell hangs from the ground."""
    ends: Ends = []
    for k in range(cells):
        above, left, rung, right = 3 * k - 2 if k else GROUND_END, 3 * k, 3 * k + 1, 3 * k + 2
        ends += [(above, left), (left, rung), (above, right), (rung, right)]
    return ends


def star(arms: int) -> Ends:
    return [(GROUND_END, 0)] + [(0, k + 1) for k in range(arms)]


def random_graph(seed: int, bodies: int, loops: int) -> Ends:
    rng = np.random.default_rng(seed)
    ends = [(int(rng.integers(-1, k)), k) for k in range(bodies)]
    pairs = rng.integers(-1, bodies, size=(loops, 2))
    return ends + [(int(a), int(b)) for a, b in pairs]


GRAPHS: dict[str, Ends] = {
    "one body": chain(1, closed=False),
    "chain of 64": chain(64),
    "open chain of 37": chain(37, closed=False),
    "ladder": ladder(9),
    "star": star(13),
    "ring in the air": [(GROUND_END, 0), *[(k, k + 1) for k in range(7)], (7, 0)],
    "two bodies, five joints": [(GROUND_END, 0), *[(0, 1)] * 5],
    "joint of a body to itself": [(GROUND_END, 0), (0, 1), (1, 1), (1, 2)],
    "joint of ground and ground": [(GROUND_END, 0), (GROUND_END, GROUND_END)],
    "two robots": [(GROUND_END, 0), (0, 1), (GROUND_END, 2), (2, 3), (3, 2)],
} | {f"random {seed}": random_graph(seed, 25, 2 * seed) for seed in range(1, 7)}


def handles_of(ends: Ends) -> list[list[int]]:
    count = 1 + max(max(pair) for pair in ends)
    return [[j for j, pair in enumerate(ends) if k in pair] for k in range(count)]


def assembled(ends: Ends, width: int = 1) -> AssemblyTree:
    return assembly_tree(handles_of(ends), ends, [width] * len(ends))


@pytest.mark.parametrize("name", GRAPHS)
def test_every_joint_is_eliminated_once_after_all_that_it_joins(name: str) -> None:
    ends = GRAPHS[name]
    tree = assembled(ends)
    inner = [int(j) for group in tree.groups for j in group.inner_joints.ravel()]
    real = [j for j, pair in enumerate(ends) if pair != (GROUND_END, GROUND_END)]
    assert sorted(inner) == real
    made = {shape: len(leaves) for shape, leaves in tree.leaves.items()}
    for group in tree.groups:
        for slot in group.slots:
            assert slot.pieces.max() < made[slot.shape]
        if group.outer:
            assert group.start == made.get(group.shape, 0)
            made[group.shape] = group.start + group.size


def most_handles(tree: AssemblyTree) -> int:
    return max(len(shape) for shape in tree.pieces)


def test_chains_and_ladders_take_few_rounds_with_few_open_joints() -> None:
    for count in (16, 64, 256, 1024, 1000):
        tree = assembled(chain(count))
        assert tree.rounds <= np.log2(count)
        assert most_handles(tree) == 2
    for cells in (5, 40, 300):
        tree = assembled(ladder(cells))
        assert tree.rounds <= np.log2(3 * cells) + 3
        assert most_handles(tree) <= 4


def test_joints_to_the_ground_do_not_pile_up() -> None:
    """Every body of a chain stands on the ground too: pieces keep their two ends only."""
    ends = chain(60) + [(GROUND_END, k) for k in range(1, 59)]
    assert most_handles(assembled(ends)) <= 3


def test_equal_pieces_are_one_group_per_round() -> None:
    tree = assembled(chain(1024))
    assert len(tree.groups) == tree.rounds == 5


# -- sweeps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("widths", [(1,), (2,), (3, 1, 0, 2)], ids=str)
def test_sweeps_solve_the_system_of_all_joints(name: str, widths: tuple[int, ...]) -> None:
    """``(sum over leaves of U' I^-1 U + compliance) x = y``, all joints at once."""
    ends, rng = GRAPHS[name], np.random.default_rng(3)
    handles = handles_of(ends)
    width = [widths[joint % len(widths)] for joint in range(len(ends))]
    first = np.cumsum([0, *width])
    tree = assembly_tree(handles, ends, width)
    sweeps = Sweeps(tree, width, [6] * len(handles))
    size = sum(width)
    whole = np.zeros((size, size))
    compliance = rng.uniform(0.5, 1.0, size=size)
    roots: dict[int, Array] = {}
    for leaves, root in ((tree.leaves[shape], sweeps.leaves[shape]) for shape in tree.leaves):
        for k, leaf in enumerate(leaves):
            columns = [c for j in handles[leaf] for c in range(first[j], first[j + 1])]
            U = rng.normal(size=(6, len(columns)))  # wrenches that the handles exert
            root[k, :6] = U
            roots[int(leaf)] = U
            whole[np.ix_(columns, columns)] += U.T @ U
    whole += np.diag(compliance)
    sweeps.assemble(compliance)
    for _ in range(2):
        y = rng.normal(size=size)
        for joint, pair in enumerate(ends):  # between ground and ground nothing answers
            if pair == (GROUND_END, GROUND_END):
                y[first[joint] : first[joint + 1]] = 0.0
        x, moves = sweeps.solve(y)
        np.testing.assert_allclose(whole @ x, y, atol=1e-9)
        for shape, leaves in tree.leaves.items():
            for k, leaf in enumerate(leaves.tolist()):
                columns = [c for j in handles[leaf] for c in range(first[j], first[j + 1])]
                np.testing.assert_allclose(moves[shape][k, :6], roots[leaf] @ x[columns], atol=1e-9)


def two_bodies(joints: int, motions: int) -> tuple[Sweeps, Array]:
    """Two bodies joined by several joints that together leave six less ``motions`` freedoms."""
    ends = [(GROUND_END, 0), *[(0, 1)] * joints]
    widths = [2] * len(ends)
    sweeps = Sweeps(assembly_tree(handles_of(ends), ends, widths), widths, [8, 6])
    rng = np.random.default_rng(5)
    U = rng.normal(size=(6, motions)) @ rng.normal(size=(motions, 2 * joints)) / 3
    near, far = (2,) * (joints + 1), (2,) * joints
    sweeps.leaves[near][0, :6, 2:] = sweeps.leaves[far][0, :6] = U
    sweeps.leaves[near][0, 6:, :2] = np.eye(2)
    return sweeps, 2 * U.T @ U


def test_redundant_joints_get_the_smallest_forces() -> None:
    sweeps, X = two_bodies(4, 3)
    sweeps.assemble(np.zeros(10))
    (number,) = sweeps.ranks
    assert sweeps.ranks[number][0] == 2 + 3
    y = np.zeros(10)
    y[2:] = X @ np.random.default_rng(6).normal(size=8)
    x = sweeps.solve(y)[0][2:]
    np.testing.assert_allclose(x, np.linalg.lstsq(X, y[2:], rcond=1e-10)[0], atol=1e-9)


@pytest.mark.parametrize(("size", "extra"), [(1e-11, 0), (1e-7, 1)])
def test_rows_are_independent_as_far_as_everywhere(size: float, extra: int) -> None:
    """Singular values of ``W`` below 1e-9 of the largest one do not count; their squares do not."""
    sweeps, _ = two_bodies(3, 5)
    (leaf,) = sweeps.leaves[(2,) * 3]
    left, _, right = np.linalg.svd(leaf)
    leaf += size * np.outer(left[:, 5], right[5])
    sweeps.assemble(np.zeros(8))
    (number,) = sweeps.ranks
    assert sweeps.ranks[number][0] == 2 + 5 + extra


def test_a_cap_leaves_out_what_is_barely_independent() -> None:
    """Off the manifold a redundant row gains rank; its force must not explode."""
    sweeps, X = two_bodies(4, 3)
    (leaf,) = sweeps.leaves[(2,) * 4]
    rng = np.random.default_rng(7)
    leaf += 3e-5 * np.outer(rng.normal(size=6), rng.normal(size=8))
    y = np.zeros(10)
    y[2:] = X @ rng.normal(size=8) + 1e-4 * rng.normal(size=8)
    sweeps.assemble(np.zeros(10))
    (number,) = sweeps.ranks
    assert sweeps.ranks[number][0] == 2 + 4
    wild = np.abs(sweeps.solve(y)[0]).max()
    sweeps.caps = {number: np.array([2 + 3])}
    sweeps.assemble(np.zeros(10))
    assert np.abs(sweeps.solve(y)[0]).max() < 1e-2 * wild


def test_what_closes_inside_a_leaf_is_eliminated_there_first() -> None:
    """Two joints of each leaf to itself do not meet those of the next one in one matrix."""
    ends: Ends = [(k - 1, k) for k in range(4)] + [(k, k) for k in range(4) for _ in range(2)]
    tree = assembled(ends)
    assert [len(group.inner) for group in tree.groups[:2]] == [2, 2]
    assert sum(group.size for group in tree.groups if group.inner_joints.min() >= 4) == 4
    assert not any(group.regular for group in tree.groups if group.inner_joints.max() >= 4)


def test_leaves_on_the_ground_close_a_loop_when_they_meet() -> None:
    for grounded, regular in (((), True), ((0,), True), ((0, 1), False)):
        (group,) = assembly_tree([[0], [0]], [(0, 1)], [1], grounded).groups
        assert group.regular is regular


# -- blocks ---------------------------------------------------------------------------------


def parents(kind: str, count: int) -> list[int]:
    rng = np.random.default_rng(8)
    if kind == "chain":
        return list(range(-1, count - 1))
    if kind == "star":
        return [-1] + [0] * (count - 1)
    return [int(rng.integers(-1, k)) if k else -1 for k in range(count)]


@pytest.mark.parametrize("kind", ["chain", "star", "random"])
@pytest.mark.parametrize("count", [1, 2, 7, 33, 100])
@pytest.mark.parametrize("limit", [1, 3, 16])
def test_blocks_are_connected_small_and_in_order(kind: str, count: int, limit: int) -> None:
    above, rng = parents(kind, count), np.random.default_rng(9)
    dofs = rng.integers(1, 4, size=count).tolist()
    blocks = partition(above, dofs, limit)
    assert sorted(k for block in blocks for k in block) == list(range(count))
    block_of = {k: number for number, block in enumerate(blocks) for k in block}
    for number, block in enumerate(blocks):
        assert len(block) == 1 or sum(dofs[k] for k in block) <= limit
        assert block == sorted(block)
        first = above[block[0]]
        assert first < 0 or block_of[first] < number
        for k in block[1:]:
            assert above[k] in block if first >= 0 else above[k] < 0 or above[k] in block


def test_chains_are_cut_into_equal_blocks() -> None:
    sizes = [len(block) for block in partition(parents("chain", 100), [1] * 100, 30)]
    assert sizes == [25] * 4


def test_large_branches_are_cut_off_first() -> None:
    """A body with two single bodies and a branch of three on it: two blocks, not four."""
    assert partition([-1, 0, 0, 0, 3, 4], [1] * 6, 5) == [[0, 1, 2], [3, 4, 5]]


def test_bodies_that_cannot_move_are_one_with_those_they_hang_on() -> None:
    """Also where they carry what is cut off; those held by the ground are a block of their own."""
    assert partition([-1, 0, 1, 2], [1, 0, 1, 1], 1) == [[0, 1], [2], [3]]
    assert partition([-1, 0, 0, 1, 2], [1, 0, 0, 1, 1], 1) == [[0, 1, 2], [3], [4]]
    assert partition([-1, 0, -1], [0, 1, 0], 1) == [[0, 1, 2]]
    assert partition([-1, 0], [0, 0], 1) == [[0, 1]]


def test_sequences_are_left_alone() -> None:
    handles: Sequence[Sequence[int]] = ((0,), (0, 1), (1,))
    assembly_tree(handles, ((0, 1), (1, 2)), (1, 1))
    assert partition((-1, 0, 1), (1, 1, 1), 2) == [[0], [1, 2]]
