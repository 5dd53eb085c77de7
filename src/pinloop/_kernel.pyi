"""What the native kernel offers to Python; how it does it is in `src/native`."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loop = tuple[int, pin.SE3, int, pin.SE3, Sequence[Array], bool]
"""Joint that carries frame A and the frame's place there, the same of B; what each row takes of the
motion of B relative to A, in the axes of B, shape (k, 6); and whether these rows tie the origins of
A and B, rather than the twists of the two frames."""

class Tables:
    """A robot as tables, which do not change."""

def tables_of(model: pin.Model, loops: Sequence[Loop]) -> Tables | None:
    """The tables of a model and its loops, whose rows are numbered in this order.

    None if there is a joint that the kernel does not know.
    """

class Dynamics:
    """Accelerations of a robot, for one thread at a time."""

    def __init__(self, tables: Tables) -> None: ...
    def hold(
        self, rows: Sequence[int], stale: Sequence[float], bad: Sequence[float], armature: Array
    ) -> None:
        """Choose rows, the first to eliminate first, with limits of their pivots, and rotors."""

    def acceleration(self, q: Array, v: Array, tau: Array, a: Array) -> int:
        """Write an acceleration to ``a``; 0 if it is good, 1 if rows are stale, 2 if it is bad."""

    @property
    def multipliers(self) -> list[float]:
        """Reactions of the rows in the last solution."""
