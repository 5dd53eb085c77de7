"""O-DCA: the orthogonal-complement divide-and-conquer algorithm (paper 3).

`block` and `blocks` gather bodies and move them: the first two sweeps; `assembly_tree` and `sweeps`
are the last two. `cuts` and `loop_joints` are the joints between blocks, with the units of their
forces (`column_units`), and `handles` puts both together. `held` knows which coordinate is where,
`problem` solves for any load, `solver` is what a robot sees.
"""

from __future__ import annotations

from .solver import ODCA

__all__ = ["ODCA"]
