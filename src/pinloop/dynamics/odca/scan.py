"""The two kinematic sweeps: placements and twists of all bodies in O(log depth) array operations.

A sum or product along the paths of a tree, by halves like the assembly of a chain: upwards every
second node takes in its predecessor, then every fourth, ...; downwards each hands its result on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["TreeScan"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class TreeScan:
    """Prefix sums and products along the paths from the root of a forest.

    Args:
        parents: parent of each node, -1 for roots; parents come before children.
    """

    def __init__(self, parents: Sequence[int]) -> None:
        parent = np.array(parents, dtype=np.intp)
        depth = np.zeros(len(parent), dtype=np.intp)
        for node, above in enumerate(parents):
            depth[node] = depth[above] + 1 if above >= 0 else 1
        self._up: list[tuple[Indices, Indices]] = []
        down: list[tuple[Indices, Indices]] = []
        ancestor, reach = parent.copy(), 1
        deepest = int(depth.max(initial=0))
        while reach <= deepest:
            own = np.flatnonzero((depth % (2 * reach) == reach) & (ancestor >= 0))
            down.append((own, ancestor[own]))
            full = np.flatnonzero(depth % (2 * reach) == 0)
            self._up.append((full, ancestor[full]))
            ancestor = np.where(ancestor >= 0, ancestor[ancestor], -1)
            reach *= 2
        self._down = down[::-1]

    def product(self, steps: Array) -> Array:
        """Products of matrices from the root to each node, shape (nodes, k, k)."""
        total = steps.copy()
        for nodes, before in self._up + self._down:
            if len(nodes):
                total[nodes] = total[before] @ total[nodes]
        return total

    def sum(self, steps: Array) -> Array:
        """Sums from the root to each node, shape (nodes, k)."""
        total = steps.copy()
        for nodes, before in self._up + self._down:
            if len(nodes):
                total[nodes] += total[before]
        return total
