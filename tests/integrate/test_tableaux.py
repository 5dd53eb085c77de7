"""Tests of the Butcher tableaux: order conditions of rooted trees, derived here, nothing copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np
import pytest

from pinloop.integrate import METHODS, Tableau, get_tableau

from ..screw_tables import Array

Tree = tuple["Tree", ...]
"""A rooted tree: the trees at its root, sorted."""

every_method = pytest.mark.parametrize("name", METHODS)
IMPLICIT = {"radau5": 5, "radau9": 9}
ORDERS = {"euler": 1, "heun": 2, "rk4": 4, "bs32": 3, "dopri5": 5, "dop853": 8} | IMPLICIT
EMBEDDED = {"bs32": [2], "dopri5": [4], "dop853": [5, 3], "radau5": [3], "radau9": [5]}
"""Orders of the formulas whose difference to the step estimates the error."""


@cache
def trees(size: int) -> tuple[Tree, ...]:
    """All rooted trees with ``size`` nodes."""
    if size == 1:
        return ((),)
    found = set()
    for parts in _partitions(size - 1, size - 1):
        counts = Counter(parts)
        choices = [combinations_with_replacement(trees(s), n) for s, n in counts.items()]
        for combination in _product([list(choice) for choice in choices]):
            found.add(tuple(sorted(t for group in combination for t in group)))
    return tuple(sorted(found))


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _partitions(total - first, first):
            yield (first, *rest)


def _product(choices: list[list[tuple[Tree, ...]]]) -> Iterator[tuple[tuple[Tree, ...], ...]]:
    if not choices:
        yield ()
        return
    for head in choices[0]:
        for tail in _product(choices[1:]):
            yield (head, *tail)


def nodes(tree: Tree) -> int:
    return 1 + sum(map(nodes, tree))


def density(tree: Tree) -> int:
    """``gamma``: product of the sizes of all subtrees."""
    return nodes(tree) * prod(map(density, tree))


def weight(tree: Tree, a: Array) -> Array:
    """Elementary weights of the stages: product over the branches of ``a @ weight``."""
    found = np.ones(len(a))
    for branch in tree:
        found = found * (a @ weight(branch, a))
    return found


def defect(a: Array, b: Array, size: int) -> float:
    """By how much weights miss the order conditions of all trees with ``size`` nodes."""
    return max(abs(float(b @ weight(tree, a)) - 1 / density(tree)) for tree in trees(size))


def with_end(tableau: Tableau, count: int) -> Array:
    """Stage matrix; with the derivative at the end of the step as a last stage if so many count."""
    if count == tableau.stages:
        return tableau.a
    assert count == tableau.stages + 1
    a = np.zeros((count, count))
    a[:-1, :-1], a[-1, :-1] = tableau.a, tableau.b
    return a


def with_start(tableau: Tableau) -> Tableau:
    """An implicit method with the slope at the start as a stage that counts for nothing."""
    grown = np.pad(tableau.a, ((1, 0), (1, 0)))
    return Tableau(tableau.name, grown, grown[-1], (grown[-1],), tableau.order, tableau.error_order)


def test_number_of_rooted_trees() -> None:
    """1, 1, 2, 4, 9, 20, 48, 115: known since Cayley."""
    assert [len(trees(size)) for size in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    # Each order of growing the nodes counts once: the trees of size n stand for (n - 1)! of them.
    labelled = [sum(factorial(n) // (density(t) * _symmetry(t)) for t in trees(n))
                for n in range(1, 8)]  # fmt: skip
    assert labelled == [factorial(n - 1) for n in range(1, 8)]


def _symmetry(tree: Tree) -> int:
    counts = Counter(tree)
    return prod(factorial(n) * _symmetry(branch) ** n for branch, n in counts.items())


@every_method
def test_tableau_is_consistent(name: str) -> None:
    tableau = get_tableau(name)
    assert tableau.name == name and tableau.order == ORDERS[name]
    s = tableau.stages
    assert tableau.a.shape == (s, s) and tableau.b.shape == tableau.c.shape == (s,)
    assert np.all(np.triu(tableau.a) == 0) == (name not in IMPLICIT) != tableau.implicit
    np.testing.assert_allclose(tableau.c, [sum(row) for row in tableau.a.tolist()], rtol=1e-13)
    assert (
        (tableau.c[0] == 0) == (name not in IMPLICIT)
        and np.all(tableau.c >= 0)
        and np.all(tableau.c <= 1 + 1e-12)
    )
    assert sum(tableau.b) == pytest.approx(1.0, abs=1e-14)


@every_method
def test_order_conditions(name: str) -> None:
    tableau = get_tableau(name)
    for size in range(1, ORDERS[name] + 1):
        assert defect(tableau.a, tableau.b, size) < 1e-13
    assert defect(tableau.a, tableau.b, ORDERS[name] + 1) > 1e-7


@every_method
def test_error_estimates_are_differences_to_formulas_of_lower_order(name: str) -> None:
    tableau = get_tableau(name)
    assert len(tableau.errors) == len(EMBEDDED.get(name, []))
    for weights, order in zip(tableau.errors, EMBEDDED.get(name, []), strict=True):
        if name in IMPLICIT:  # what is left of the weights belongs to a stage at the start
            tableau = with_start(tableau)
            weights = np.append(-weights.sum(), weights)
        a = with_end(tableau, len(weights))
        assert abs(sum(weights)) < 1e-14
        b = np.append(tableau.b, np.zeros(len(weights) - tableau.stages))
        for size in range(1, order + 1):
            assert defect(a, b - weights, size) < 1e-13
        assert defect(a, b - weights, order + 1) > 1e-5


def test_the_step_control_knows_the_order_of_its_estimate() -> None:
    assert get_tableau("bs32").error_order == 2
    assert get_tableau("dopri5").error_order == 4
    # The two estimates of dop853 are combined into one that falls like h^8.
    assert get_tableau("dop853").error_order == 7


def test_classical_coefficients() -> None:
    rk4 = get_tableau("rk4")
    assert rk4.b.tolist() == [1 / 6, 1 / 3, 1 / 3, 1 / 6] and rk4.c.tolist() == [0, 0.5, 0.5, 1]
    assert get_tableau("heun").b.tolist() == [0.5, 0.5]
    assert get_tableau("dopri5") is get_tableau("dopri5")
