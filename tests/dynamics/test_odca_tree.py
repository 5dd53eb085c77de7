"""Tests of the assembly tree, of the sweeps over it, and of sums along trees, without robots.

Oracles: one dense system with all joints at once, by NumPy; sums and products one node after the
other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pinloop.dynamics.odca.scan import TreeScan
from pinloop.dynamics.odca.sweeps import Sweeps
from pinloop.dynamics.odca.tree import GROUND_END, assembly_tree

from ..tables import Array

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
    return [[j for j, pair in enumerate(ends) for end in pair if end == k] for k in range(count)]


@pytest.mark.parametrize("name", GRAPHS)
def test_every_joint_is_eliminated_once_after_all_that_it_joins(name: str) -> None:
    ends = GRAPHS[name]
    tree = assembly_tree(handles_of(ends), ends)
    inner = [int(j) for group in tree.groups for j in group.inner_joints.ravel()]
    real = [j for j, pair in enumerate(ends) if pair != (GROUND_END, GROUND_END)]
    assert sorted(inner) == real
    made = {count: len(bodies) for count, bodies in tree.leaves.items()}
    for group in tree.groups:
        for slot in group.slots:
            assert slot.pieces.max() < made[slot.handles]
        if group.outer:
            assert group.start == made.get(len(group.outer), 0)
            made[len(group.outer)] = group.start + group.size


def test_chains_and_ladders_take_few_rounds_with_few_open_joints() -> None:
    for count in (16, 64, 256, 1024, 1000):
        tree = assembly_tree(handles_of(chain(count)), chain(count))
        assert tree.rounds <= np.log2(count)
        assert max(tree.pieces) == 2
    for cells in (5, 40, 300):
        tree = assembly_tree(handles_of(ladder(cells)), ladder(cells))
        assert tree.rounds <= np.log2(3 * cells) + 3
        assert max(tree.pieces) <= 4


def test_joints_to_the_ground_do_not_pile_up() -> None:
    """Every body of a chain stands on the ground too: pieces keep their two ends only."""
    ends = chain(60) + [(GROUND_END, k) for k in range(1, 59)]
    assert max(assembly_tree(handles_of(ends), ends).pieces) <= 3


def test_equal_pieces_are_one_group_per_round() -> None:
    tree = assembly_tree(handles_of(chain(1024)), chain(1024))
    assert len(tree.groups) == tree.rounds == 5


# -- sweeps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("width", [1, 2])
def test_sweeps_solve_the_system_of_all_joints(name: str, width: int) -> None:
    """``(sum over bodies of U' I^-1 U + compliance) x = y``, all joints at once."""
    ends, rng = GRAPHS[name], np.random.default_rng(3)
    handles = handles_of(ends)
    tree = assembly_tree(handles, ends)
    sweeps = Sweeps(tree, len(ends), width)
    size = len(ends) * width
    whole = np.zeros((size, size))
    compliance = rng.uniform(0.5, 1.0, size=(len(ends), width))
    for count, bodies in tree.leaves.items():
        for k, body in enumerate(bodies):
            U = rng.normal(size=(6, count * width))  # wrenches that the handles exert
            sweeps.leaves[count][k] = U.T @ U
            columns = [j * width + c for j in handles[body] for c in range(width)]
            place = np.zeros((count * width, size))
            place[np.arange(count * width), columns] = 1.0
            whole += place.T @ (U.T @ U) @ place
    whole += np.diag(compliance.ravel())
    sweeps.assemble(compliance)
    for _ in range(2):
        y = rng.normal(size=(len(ends), width))
        for joint, pair in enumerate(ends):  # between ground and ground nothing answers
            if pair == (GROUND_END, GROUND_END):
                y[joint] = 0.0
        x = sweeps.solve(y)
        np.testing.assert_allclose(whole @ x.ravel(), y.ravel(), atol=1e-9)


def two_bodies(joints: int, motions: int) -> tuple[Sweeps, Array]:
    """Two bodies joined by several joints that together leave six less ``motions`` freedoms."""
    ends = [(GROUND_END, 0), *[(0, 1)] * joints]
    tree = assembly_tree(handles_of(ends), ends)
    sweeps = Sweeps(tree, len(ends), 2)
    rng = np.random.default_rng(5)
    U = np.zeros((6, 2 * (joints + 1)))
    U[:, 2:] = rng.normal(size=(6, motions)) @ rng.normal(size=(motions, 2 * joints)) / 3
    sweeps.leaves[joints + 1][0] = U.T @ U
    sweeps.leaves[joints][0] = U[:, 2:].T @ U[:, 2:]
    sweeps.leaves[joints + 1][0][0, 0] = sweeps.leaves[joints + 1][0][1, 1] = 1.0
    return sweeps, 2 * U[:, 2:].T @ U[:, 2:]


def test_redundant_joints_get_the_smallest_forces() -> None:
    sweeps, X = two_bodies(4, 3)
    sweeps.assemble(np.zeros((5, 2)))
    (number,) = sweeps.ranks
    assert sweeps.ranks[number][0] == 2 + 3
    y = np.zeros((5, 2))
    y[1:] = (X @ np.random.default_rng(6).normal(size=8)).reshape(4, 2)
    x = sweeps.solve(y)[1:].ravel()
    np.testing.assert_allclose(x, np.linalg.lstsq(X, y[1:].ravel(), rcond=1e-10)[0], atol=1e-9)


def test_a_cap_leaves_out_what_is_barely_independent() -> None:
    """Off the manifold a redundant row gains rank; its force must not explode."""
    sweeps, X = two_bodies(4, 3)
    (leaf,) = sweeps.leaves[4]
    rng = np.random.default_rng(7)
    noise = rng.normal(size=8)
    leaf += 1e-9 * np.outer(noise, noise)
    y = np.zeros((5, 2))
    y[1:] = (X @ rng.normal(size=8)).reshape(4, 2) + 1e-4 * rng.normal(size=(4, 2))
    sweeps.assemble(np.zeros((5, 2)))
    (number,) = sweeps.ranks
    assert sweeps.ranks[number][0] == 2 + 4
    wild = np.abs(sweeps.solve(y)).max()
    sweeps.caps = {number: np.array([2 + 3])}
    sweeps.assemble(np.zeros((5, 2)))
    assert np.abs(sweeps.solve(y)).max() < 1e-2 * wild


# -- sums along trees -----------------------------------------------------------------------


def parents(kind: str, count: int) -> list[int]:
    rng = np.random.default_rng(8)
    if kind == "chain":
        return list(range(-1, count - 1))
    if kind == "star":
        return [-1] + [0] * (count - 1)
    return [int(rng.integers(-1, k)) if k else -1 for k in range(count)]


@pytest.mark.parametrize("kind", ["chain", "star", "random"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 33, 100])
def test_scan_is_the_walk_along_the_tree(kind: str, count: int) -> None:
    above, rng = parents(kind, count), np.random.default_rng(9)
    steps, numbers = rng.normal(size=(count, 3, 3)), rng.normal(size=(count, 2))
    products, sums = steps.copy(), numbers.copy()
    for node, parent in enumerate(above):
        if parent >= 0:
            products[node] = products[parent] @ steps[node]
            sums[node] = sums[parent] + numbers[node]
    scan = TreeScan(above)
    size = np.abs(products).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(scan.product(steps) / size, products / size, atol=1e-11)
    np.testing.assert_allclose(scan.sum(numbers), sums, atol=1e-12)


def test_sequences_are_left_alone() -> None:
    handles: Sequence[Sequence[int]] = ((0,), (0, 1), (1,))
    assembly_tree(handles, [(0, 1), (1, 2)])
    steps = np.ones((3, 1))
    TreeScan([-1, 0, 1]).sum(steps)
    np.testing.assert_array_equal(steps, 1.0)
