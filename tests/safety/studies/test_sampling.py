"""Points of samplings: the right ones, and the same ones however they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.studies.space import Sampling

NAMES = ("payload", "speed.a", "speed.b")

SAMPLINGS: list[Sampling] = [
    pl.safety.Grid(4),
    pl.safety.Grid({"payload": 3, "speed.b": 5}),
    pl.safety.Corners(),
    pl.safety.Random(37, seed=3),
    pl.safety.Sobol(37, seed=3),
    pl.safety.Sobol(64),
]


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=repr)
@pytest.mark.parametrize("cuts", [(1,), (2, 3, 4), (7,), (5, 6)])
def test_points_do_not_depend_on_blocks(sampling: Sampling, cuts: Sequence[int]) -> None:
    size = sampling.size(NAMES)
    whole = sampling.block(NAMES, 0, size)
    assert whole.shape == (size, 3)
    assert np.all((whole >= 0) & (whole <= 1))
    edges = [0, *(cut for cut in cuts if cut < size), size]
    parts = [sampling.block(NAMES, a, b) for a, b in pairwise(edges)]
    assert np.array_equal(np.vstack(parts), whole)
    single = [sampling.block(NAMES, k, k + 1)[0] for k in range(size)]
    assert np.array_equal(single, whole)
    assert len(np.unique(whole, axis=0)) == size


def test_a_grid_is_all_combinations_with_both_ends() -> None:
    grid = pl.safety.Grid({"payload": 2, "speed.b": 3})
    expected = [(a, 0.5, b) for a, b in product((0.0, 1.0), (0.0, 0.5, 1.0))]
    assert grid.size(NAMES) == 6
    assert np.array_equal(grid.block(NAMES, 0, 6), expected)
    assert pl.safety.Grid(3).size(NAMES) == 27


def test_corners_are_both_ends_of_everything() -> None:
    assert pl.safety.Corners().size(NAMES) == 8
    assert np.array_equal(
        pl.safety.Corners().block(NAMES, 0, 8), list(product((0.0, 1.0), repeat=3))
    )


def test_a_grid_of_many_variables_is_counted_exactly() -> None:
    names = tuple(f"x{k}" for k in range(100))
    assert pl.safety.Grid(3).size(names) == 3**100


@pytest.mark.parametrize("kind", [pl.safety.Random, pl.safety.Sobol])
def test_seeds(kind: type[pl.safety.Random] | type[pl.safety.Sobol]) -> None:
    one, again, other = (kind(16, seed).block(NAMES, 0, 16) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.any(one == other)


def test_sobol_points_fill_the_space_evenly() -> None:
    # Every half, quarter, ... of every range holds its share exactly: a net in base 2.
    points = pl.safety.Sobol(64, seed=5).block(NAMES, 0, 64)
    for parts in (2, 4, 8, 16):
        for column in points.T:
            counts = np.histogram(column, bins=parts, range=(0, 1))[0]
            assert np.array_equal(counts, np.full(parts, 64 // parts))
    boxes = np.histogramdd(points, bins=(2, 2, 2), range=[(0, 1)] * 3)[0]
    assert np.all(boxes == 8)


def test_random_points_are_uniform() -> None:
    points = pl.safety.Random(20_000, seed=1).block(NAMES, 0, 20_000)
    assert np.allclose(points.mean(axis=0), 0.5, atol=0.01)
    assert np.allclose(np.cov(points.T), np.eye(3) / 12, atol=0.003)


def test_without_variables() -> None:
    for sampling in (pl.safety.Grid(3), pl.safety.Corners()):
        assert sampling.size(()) == 1
        assert sampling.block((), 0, 1).shape == (1, 0)
    for other in (pl.safety.Random(4), pl.safety.Sobol(4)):
        assert other.block((), 1, 3).shape == (2, 0)


@pytest.mark.parametrize("count", [0, -1, True, 2.5, "8"])
def test_empty_samplings_are_refused(count: int) -> None:
    for kind in (pl.safety.Random, pl.safety.Sobol):
        with pytest.raises(pl.BadValue, match="is empty; give a number of at least 1"):
            kind(count)
    with pytest.raises(pl.BadValue, match=r"a grid has 1, 2, \.\.\. values per variable"):
        pl.safety.Grid(count).size(NAMES)
    with pytest.raises(pl.BadValue, match=r"a grid has 1, 2, \.\.\. values per variable"):
        pl.safety.Grid({"payload": count}).size(NAMES)


@pytest.mark.parametrize("seed", [-1, 0.5, False, None])
def test_seeds_that_are_none(seed: int) -> None:
    for kind in (pl.safety.Random, pl.safety.Sobol):
        with pytest.raises(pl.BadValue, match="the seed is"):
            kind(4, seed)


def test_more_points_than_the_sequence_has() -> None:
    with pytest.raises(pl.BadValue, match="has 1073741824 points, not 1073741825"):
        pl.safety.Sobol(2**30 + 1)
    assert pl.safety.Sobol(2**30).size(("x",)) == 2**30


def test_a_grid_over_what_does_not_vary() -> None:
    with pytest.raises(pl.BadValue, match=r"counts 'speed\.c', which does not vary; \['payload'"):
        pl.safety.Grid({"speed.c": 3}).size(NAMES)
