"""O-DCA: the orthogonal-complement divide-and-conquer algorithm (paper 3).

`kinematics` and `scan` are its first two sweeps, `tree` and `sweeps` the last two; `joints`,
`loops` and `bodies` fill them, `problem` solves for any load, `solver` is what a robot sees.
"""

from __future__ import annotations

from .odca import ODCA

__all__ = ["ODCA"]
