"""O-DCA: the orthogonal-complement divide-and-conquer algorithm (paper 3).

`block` and `blocks` gather bodies and move them: the first two sweeps; `assembly_tree` and `sweeps`
are the last two. `handles` are joints between blocks and those that close loops, with the units of
their forces. `solver` solves for any load, and is what a robot sees.
"""

from __future__ import annotations

from .solver import ODCA

__all__ = ["ODCA"]
