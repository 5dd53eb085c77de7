"""How bodies can possibly move relative to each other: motion algebras of a closed mechanism.

A network with one node per rigid group of bodies. Every joint bounds the relative motion of its
two groups by a subalgebra of se(3); chains of joints bound it by the closure of the sum (paper 5,
section 5), several chains by the intersection. Path consistency over all triples of groups makes
the bounds as tight as these two rules can.

All twists are in one world frame at one assembled reference configuration, lengths in units of a
characteristic length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

import numpy as np

from ..spatial.lie import EVERYTHING, NOTHING, Subspace, identify, span
from ..tolerances import EQUAL_SPACES


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
            if np.abs(self._spaces[number].projector - projector).max() < EQUAL_SPACES:
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
        number = self._results.get(key)
        if number is None:
            number = self.number(compute(self._spaces[a], self._spaces[b]))
            self._results[key] = number
        return number


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
    """Bounds on the relative motion of every two groups of a mechanism.

    Only bounds that are tighter than the ``whole`` are stored: in a planar linkage those of bodies
    near each other, so that it takes time and memory linear in the linkage.

    Args:
        algebras: where algebras are interned.
        whole: an algebra that holds every relative motion, se(3) by default.
    """

    def __init__(self, algebras: Algebras, whole: int | None = None) -> None:
        self.algebras = algebras
        self.whole = algebras.everything if whole is None else whole
        self._bounds: dict[int, dict[int, int]] = {}

    def copy(self) -> MotionNetwork:
        """A network that can be tightened without changing this one."""
        other = MotionNetwork(self.algebras, self.whole)
        other._bounds = {group: bounds.copy() for group, bounds in self._bounds.items()}
        return other

    def number(self, a: int, b: int) -> int:
        """Number of the algebra in which the relative motion of two groups lies."""
        if a == b:
            return self.algebras.nothing
        return self._bounds.get(a, _NO_BOUNDS).get(b, self.whole)

    def bounded(self, group: int) -> Set[int]:
        """Groups whose motion relative to a group is bounded by less than the whole."""
        return self._bounds.get(group, _NO_BOUNDS).keys()

    def tighten(self, ties: Iterable[tuple[int, int, int]]) -> set[int]:
        """Take further bounds (group, group, algebra) into account, and all that follows.

        Returns:
            The groups of which some bound has changed.
        """
        touched: set[int] = set()
        changed: list[tuple[int, int]] = []
        for a, b, algebra in ties:
            changed += self._narrow(a, b, algebra)
        while changed:
            a, b = changed.pop()
            touched |= {a, b}
            for c in sorted((self.bounded(a) | self.bounded(b)) - {a, b}):
                changed += self._through(a, b, c) + self._through(b, a, c)
        return touched

    def _through(self, a: int, b: int, c: int) -> list[tuple[int, int]]:
        """Bound a-c by way of b."""
        step, old = self.number(b, c), self.number(a, c)
        if step == self.whole or old == self.algebras.nothing:
            return []
        way = self.algebras.join(self.number(a, b), step)
        return [] if way in (old, self.whole) else self._narrow(a, c, way)

    def _narrow(self, a: int, b: int, algebra: int) -> list[tuple[int, int]]:
        """Intersect one bound; returns the pair if that made it smaller."""
        if a == b:
            return []
        old = self.number(a, b)
        new = self.algebras.meet(old, algebra)
        # Where screws meet, the bound on both may be larger than either: keep what is there.
        if self.algebras.dim(new) >= self.algebras.dim(old):
            return []
        for group, other in ((a, b), (b, a)):
            self._bounds.setdefault(group, {})[other] = new
        return [(a, b)]


_NO_BOUNDS: dict[int, int] = {}
