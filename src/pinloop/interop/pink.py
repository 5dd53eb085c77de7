"""Closed loops and locked joints for Pink's inverse kinematics; no solver lives here."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..dynamics.equations import EquationsOfMotion
from ..errors import BadValue
from ..tolerances import RANK

try:
    import pink.tasks
except ImportError:
    raise BadValue("pink is not installed: pip install 'pinloop[pink]'") from None


class LoopTask(pink.tasks.Task):
    r"""All rows of a robot as a task of Pink: loops close, locked joints stay.

    With ``constraints=[LoopTask(...)]`` they hold at each step to first order, and what a step has
    left open the next one closes; with ``tasks=[...]`` they are weighed against other tasks by
    ``cost``. Rows ``J dq = -gain e`` that depend on each other would be a singular problem, so of
    ``J = U S V'`` those are given that are independent: ``S V' dq = -gain U' e``.

    Args:
        equations: equations of motion, for their loops, couplings and locks; masses and forces do
            not matter.
        cost: weight of the errors, which are in radians and lengths of the robot, as a task.
        gain: part of the error that a step makes good.
        lm_damping: see `pink.tasks.Task`.
    """

    @public
    def __init__(
        self,
        equations: EquationsOfMotion,
        cost: float = 1.0,
        gain: float = 1.0,
        lm_damping: float = 0.0,
    ) -> None:
        super().__init__(cost=cost, gain=gain, lm_damping=lm_damping)
        self.equations, self._scale = equations, equations.rows.scale

    def compute_error(self, configuration: Any) -> Array:
        """Error of the independent rows, shape (rank,)."""
        return self._independent(configuration)[1]

    def compute_jacobian(self, configuration: Any) -> Array:
        """Independent rows, shape (rank, nv)."""
        return self._independent(configuration)[0]

    def _independent(self, configuration: Any) -> tuple[Array, Array]:
        J, _, residual = self.equations.closure(0.0, np.array(configuration.q))
        scale = self._scale
        if len(J) == 0:
            return J, residual
        U, s, V = np.linalg.svd(scale[:, None] * J, full_matrices=False)
        rank = int(np.sum(s > RANK * s[0]))
        if self.equations.max_rank is not None:
            rank = min(rank, self.equations.max_rank)
        return s[:rank, None] * V[:rank], U[:, :rank].T @ (scale * residual)

    def __repr__(self) -> str:
        return f"LoopTask({self.equations.robot.name!r}, cost={self.cost}, gain={self.gain})"
