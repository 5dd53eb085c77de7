"""How bodies can possibly move relative to each other: motion algebras of a closed mechanism.

A network with one node per rigid group of bodies. Every joint bounds the relative motion of its
two groups by a subalgebra of se(3); chains of joints bound it by the closure of the sum (paper 5,
section 5), several chains by the intersection. Path consistency over all triples of groups makes
the bounds as tight as these two rules can.

All twists are in one world frame at one assembled reference configuration, lengths in units of a
characteristic length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .lie import EVERYTHING, NOTHING, Subspace, identify, span

__all__ = ["Algebras", "MotionNetwork"]


_EQUAL = 1e-8
"""Subspaces whose projectors differ by less are the same."""


class Algebras:
    """Interned subspaces of se(3): equal ones share a number, each operation is done once."""

    def __init__(self) -> None:
        self._spaces: list[Subspace] = []
        self._numbers: dict[bytes, list[int]] = {}
        self._results: dict[tuple[str, int, int], int] = {}
        self.nothing = self.number(NOTHING)
        self.everything = self.number(EVERYTHING)

    def number(self, space: Subspace) -> int:
        """Number of a subspace; a new one if no equal subspace is known."""
        # Rounding finds the candidates only; adding zero removes the sign of -0.0.
        projector = space.projector
        bucket = self._numbers.setdefault((np.round(projector, 6) + 0.0).tobytes(), [])
        for number in bucket:
            if np.abs(self._spaces[number].projector - projector).max() < _EQUAL:
                return number
        bucket.append(len(self._spaces))
        self._spaces.append(space)
        return bucket[-1]

    def __getitem__(self, number: int) -> Subspace:
        return self._spaces[number]

    def dim(self, number: int) -> int:
        """Dimension of a subspace."""
        return self._spaces[number].dim

    def join(self, a: int, b: int) -> int:
        """The smallest algebra that contains both."""
        if a == b or b == self.nothing or a == self.everything:
            return a
        if a == self.nothing or b == self.everything:
            return b
        return self._once("join", a, b, lambda x, y: (x + y).closure(), symmetric=True)

    def meet(self, a: int, b: int) -> int:
        """A bound on what lies in both: their intersection, or more where screws meet.

        The groups of two algebras may meet in more than the group of their intersection: a screw
        and a translation along its axis share the steps of whole turns, which are other assemblies.
        A helical algebra is therefore taken with the translation along its axis, unless one of the
        two contains the other.
        """
        if a == b or a == self.nothing or b == self.everything:
            return a
        if b == self.nothing or a == self.everything:
            return b
        return self._once("meet", a, b, _common, symmetric=True)

    def intersection(self, a: int, b: int) -> int:
        """The intersection of both as vector spaces."""
        return self._once("intersection", a, b, lambda x, y: x & y, symmetric=True)

    def plus(self, a: int, b: int) -> int:
        """The sum of both as vector spaces."""
        return self._once("plus", a, b, lambda x, y: x + y, symmetric=True)

    def sweep(self, a: int, motions: int) -> int:
        """What the motions turn ``a`` into, all together."""
        return self._once("sweep", a, motions, lambda x, y: x.swept(y), symmetric=False)

    def _once(
        self,
        operation: str,
        a: int,
        b: int,
        compute: Callable[[Subspace, Subspace], Subspace],
        *,
        symmetric: bool,
    ) -> int:
        key = (operation, b, a) if symmetric and b < a else (operation, a, b)
        found = self._results.get(key)
        if found is None:
            found = self.number(compute(self._spaces[a], self._spaces[b]))
            self._results[key] = found
        return found


def _common(x: Subspace, y: Subspace) -> Subspace:
    """Bound on the intersection of two groups, as an algebra."""
    if y.contains(x.basis):
        return x
    if x.contains(y.basis):
        return y
    return _without_pitch(x) & _without_pitch(y)


def _without_pitch(space: Subspace) -> Subspace:
    """A helical algebra together with the translation along its axis; others as they are."""
    name = identify(space)
    if not name.kind.startswith("helical") or name.axis is None:
        return space
    return space + span(np.array([*name.axis, 0.0, 0.0, 0.0]))


class MotionNetwork:
    """Bounds on the relative motion of every two of ``size`` rigid groups.

    Args:
        size: number of groups, the ground included.
        algebras: where algebras are interned.
    """

    def __init__(self, size: int, algebras: Algebras) -> None:
        self.algebras = algebras
        # Lists, because single entries are read and written all the time.
        self._bounds = [[algebras.everything] * size for _ in range(size)]
        for group in range(size):
            self._bounds[group][group] = algebras.nothing

    def copy(self) -> MotionNetwork:
        """A network that can be tightened without changing this one."""
        other = MotionNetwork(0, self.algebras)
        other._bounds = [row.copy() for row in self._bounds]
        return other

    def number(self, a: int, b: int) -> int:
        """Number of the algebra in which the relative motion of two groups lies."""
        return self._bounds[a][b]

    def tighten(self, ties: Iterable[tuple[int, int, int]]) -> None:
        """Take further bounds (group, group, algebra) into account, and all that follows."""
        changed: list[tuple[int, int]] = []
        for a, b, algebra in ties:
            changed += self._narrow(a, b, algebra)
        while changed:
            a, b = changed.pop()
            for c in range(len(self._bounds)):
                if c not in (a, b):
                    changed += self._through(a, b, c) + self._through(b, a, c)

    def _through(self, a: int, b: int, c: int) -> list[tuple[int, int]]:
        """Bound a-c by way of b."""
        step, old = self._bounds[b][c], self._bounds[a][c]
        if step == self.algebras.everything or old == self.algebras.nothing:
            return []
        way = self.algebras.join(self._bounds[a][b], step)
        return [] if way in (old, self.algebras.everything) else self._narrow(a, c, way)

    def _narrow(self, a: int, b: int, algebra: int) -> list[tuple[int, int]]:
        """Intersect one bound; returns the pair if that made it smaller."""
        if a == b:
            return []
        old = self._bounds[a][b]
        new = self.algebras.meet(old, algebra)
        # Where screws meet, the bound on both may be larger than either: keep what is there.
        if self.algebras.dim(new) >= self.algebras.dim(old):
            return []
        self._bounds[a][b] = self._bounds[b][a] = new
        return [(a, b)]
