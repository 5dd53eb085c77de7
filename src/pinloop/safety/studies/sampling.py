"""Which points of a space are looked at: grid, Sobol, random, corners. Knows no robot.

Points are in the unit cube and come in blocks, so that a study needs no memory for those to come;
a point depends on its number alone, not on the blocks.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...errors import BadValue

__all__ = ["Corners", "Grid", "Random", "Sampling", "Sobol"]

Array = NDArray[np.float64]

_BITS = 30
"""Of the numbers of Sobol's sequence; it has two to the power of it points."""


class Sampling(ABC):
    """A way to choose points."""

    @abstractmethod
    def size(self, names: tuple[str, ...]) -> int:
        """Number of points.

        Args:
            names: names of the variables that vary.
        """

    @abstractmethod
    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points number ``first`` to ``last - 1`` in the unit cube, shape (last - first, d)."""


@public
@dataclass(frozen=True)
class Grid(Sampling):
    """All combinations of equally spaced values, ends included.

    Args:
        counts: number of values per variable, or one number for all; 1 is the middle.
    """

    counts: int | Mapping[str, int] = 3

    def _per_variable(self, names: tuple[str, ...]) -> tuple[int, ...]:
        if isinstance(self.counts, Mapping):
            for name in self.counts:
                if name not in names:
                    raise BadValue(
                        f"the grid counts '{name}', which does not vary; {list(names)} do"
                    )
            counts = tuple(self.counts.get(name, 1) for name in names)
        else:
            counts = (self.counts,) * len(names)
        for count in counts:
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise BadValue(f"a grid has 1, 2, ... values per variable, not {count!r}")
        return counts

    def size(self, names: tuple[str, ...]) -> int:
        """Product of the counts."""
        return prod(self._per_variable(names))

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the grid; the last variable changes fastest."""
        counts = self._per_variable(names)
        rest = np.arange(first, last)
        columns: list[Array] = []
        for count in reversed(counts):
            step = rest % count
            columns.append(step / (count - 1) if count > 1 else np.full(len(step), 0.5))
            rest = rest // count
        return np.array(columns[::-1]).reshape(len(counts), last - first).T


@public
@dataclass(frozen=True)
class Corners(Sampling):
    """Both ends of every variable in all combinations: 2 to the power of their number."""

    def size(self, names: tuple[str, ...]) -> int:
        """Number of corners."""
        return int(2 ** len(names))

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Corners as bits of their number."""
        return Grid(2).block(names, first, last)


@public
@dataclass(frozen=True)
class Random(Sampling):
    """Independent uniform points.

    Args:
        count: number of points.
        seed: seed of the generator.
    """

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.count, self.seed)

    def size(self, names: tuple[str, ...]) -> int:
        """Number of points."""
        return self.count

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the stream, wherever the block begins."""
        generator = np.random.PCG64(self.seed)
        generator.advance(first * len(names))  # one draw per double
        return np.random.Generator(generator).random((last - first, len(names)))


@public
@dataclass(frozen=True)
class Sobol(Sampling):
    """Scrambled Sobol points, which fill a space evenly.

    Args:
        count: number of points; powers of two are balanced.
        seed: seed of the scrambling.
    """

    count: int
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.count, self.seed)
        if self.count > 2**_BITS:
            raise BadValue(f"Sobol's sequence has {2**_BITS} points, not {self.count}")

    def size(self, names: tuple[str, ...]) -> int:
        """Number of points."""
        return self.count

    def block(self, names: tuple[str, ...], first: int, last: int) -> Array:
        """Points of the sequence, wherever the block begins."""
        if not names:
            return np.zeros((last - first, 0))
        generator = np.random.default_rng(self.seed)
        engine = scipy.stats.qmc.Sobol(len(names), scramble=True, bits=_BITS, rng=generator)
        if first:
            engine.fast_forward(first)
        # Blocks need not be powers of two, of which SciPy would warn at the first one.
        points = engine.random(last - first) if first else _quiet(engine, last)
        return np.asarray(points)


def _quiet(engine: Any, count: int) -> Array:
    """The first points, whose number need not be a power of two."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The balance properties", category=UserWarning)
        return np.asarray(engine.random(count))


def _check(count: int, seed: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadValue(f"a study of {count!r} cases is empty; give a number of at least 1")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BadValue(f"the seed is {seed!r}; give a whole number of at least 0")
