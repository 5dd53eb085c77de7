"""`ODCA`, the formulation that users write down."""

from __future__ import annotations

from dataclasses import dataclass

from ...boundary.arguments import public
from ...constraints.rows import RowSet
from ...errors import BadValue
from ..formulations import BoundStateFormulation, StateFormulation
from .solver import ArticulatedSolver

__all__ = ["ODCA"]


@public
@dataclass(frozen=True)
class ODCA(StateFormulation):
    """Orthogonal-complement divide and conquer (paper 3).

    Bodies are joined to pieces and pieces to larger ones, each known only by how its open joints
    answer forces, until one piece is left; then down again for all forces and accelerations. The
    work grows linearly with the number of bodies of chains, trees, and loops coupled along a chain.
    No mass matrix and no Jacobian of more than a block of bodies is formed.

    Rows on one coordinate (locks, prescribed motions) take a column out of that joint's motion map.
    Couplings and other rows that tie coordinates of several joints are bordered, which costs one
    more pass over the robot for each: many of them on a large robot are for `Augmented`.

    Args:
        block: neighbouring bodies enter as one piece, in joint coordinates, as long as their joints
            have no more coordinates than this; a small robot is one piece, of which only the loop
            joints are left to eliminate. With 1 every body is a piece of its own, as in the paper:
            most accurate, as no mass matrix is left, and several times slower.
    """

    block: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.block, int) or self.block < 1:
            raise BadValue(f"block={self.block!r} of pl.ODCA must be a whole number, at least 1")

    def bind(self, rows: RowSet) -> BoundStateFormulation:
        """Return the formulation with work space for a robot."""
        loops = [rows.loops.rows_of[loop.name] for loop in rows.robot.loops]
        return ArticulatedSolver(rows.robot, loops, len(rows), self.block)
