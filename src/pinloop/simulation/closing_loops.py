"""Loops in a run: they have met before they close, and stay closed though rows were dropped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..dynamics import EquationsOfMotion
from ..integrate import StepFailed
from ..linalg.dense import norm
from ..tolerances import TORN
from .events import Action, CloseLoop
from .modes import ModalSystem, Mode, RobotManifold
from .stabilization import Projection, Projector


class LoopWatch:
    """Rows that regularization dropped must stay closed by themselves.

    Args:
        equations: equations of motion, whose other rows are closed.
        projects: whether something closes these; else the drift is to be seen.
    """

    def __init__(self, equations: EquationsOfMotion, *, projects: bool) -> None:
        self._equations, rows = equations, equations.rows
        self._is_whole = rows.whole is rows.loops or not projects
        self._seen: Array | None = None

    def look(self, q: Array) -> None:
        """Raise if a loop is torn apart at a configuration."""
        if self._is_whole or (self._seen is not None and np.array_equal(q, self._seen)):
            return
        self._seen, rows = q, self._equations.rows
        residual = self._equations.residual_of_whole(q)
        if norm(residual) > TORN * max(1.0, self._equations.robot.length):
            names = rows.whole.by_name(residual)
            worst = max(names, key=lambda name: names[name])
            raise StepFailed(
                f"loop '{worst}' is torn apart (residual {names[worst]:.3g}) although its "
                "regularized rows are closed; simulate with regularization=False",
                "loop torn apart",
            )


def close_loops(
    system: ModalSystem, at: tuple[float, Array], actions: Sequence[Action], mode: Mode
) -> Array:
    """Configuration with loops closed that are about to close; they must have met.

    Args:
        system: equations of motion by mode.
        at: time [s] and configuration.
        actions: what happens.
        mode: the mode with these loops closed.
    """
    (t, q), closing = at, [action for action in actions if isinstance(action, CloseLoop)]
    if not closing:
        return q
    residual = Constraints(system.mechanism(mode.opened), full=True)
    gaps = residual.by_name(residual.residual(q))
    for action in closing:
        if gaps[action.loop] > action.tolerance:
            raise StepFailed(
                f"loop '{action.loop}' shall close but is open by {gaps[action.loop]:.3g} "
                f"(m and rad; tolerance {action.tolerance:g}); bring its frames together first",
                "loop not met",
            )
    manifold = RobotManifold(system.robot).in_mode(mode)
    return Projector(system.equations(mode), Projection(), manifold).position(t, q)[0]
