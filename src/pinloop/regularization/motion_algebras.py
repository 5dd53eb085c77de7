"""How bodies can possibly move relative to each other: motion algebras of a closed mechanism.

A network with one node per rigid group of bodies. Every joint bounds the relative motion of its
two groups by a subalgebra of se(3); chains of joints bound it by the closure of the sum (paper 5,
section 5), several chains by the intersection. Path consistency over all triples of groups makes
the bounds as tight as these two rules can.

All twists are in one world frame at one assembled reference configuration, lengths in units of a
characteristic length.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from ..spatial.lie import Algebras


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
