"""O-DCA: the orthogonal-complement divide-and-conquer algorithm (paper 3).

`block` and `blocks` gather bodies and move them: the first two sweeps; `assembly_tree` and `sweeps`
are the last two. `joints` are those between blocks and those that close loops, and `handles` puts
both together, with the units of their forces. `problem` knows which coordinate is where and solves
for any load, `solver` is what a robot sees.
"""

from __future__ import annotations

from .solver import ODCA

__all__ = ["ODCA"]
