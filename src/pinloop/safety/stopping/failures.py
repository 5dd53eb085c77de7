"""Why a stop does not go on: singular poses of loops, damping that steps cannot follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...dynamics.stiffness import limit_message, longest_step
from ...integrate import MuntheKaas, StepFailed
from ...tables.number_format import listed
from .stop_equations import StopEquations

__all__ = ["CHATTER", "INSTANT", "explained"]

Array = NDArray[np.float64]

INSTANT, CHATTER = 1e-3, 200
"""A time [s], and so many changes within it that are chatter."""
_BESIDE = 0.1
"""Regularity of the rows below which a stop that cannot go on has come to a singular pose."""


def explained(
    failure: StepFailed,
    equations: StopEquations,
    method: MuntheKaas,
    regular: float,
    last: tuple[float, Array, Array] | None,
) -> StepFailed:
    """A failure with its cause, where that is known.

    ``last``: time, configuration and velocity of the last state; None if there is none yet.
    """
    small = failure.reason == "step too small"
    if failure.reason == "speed taken" or (small and regular < _BESIDE):
        return _at_singular_pose(failure, equations)
    if last is None:
        return failure
    damping = equations.stiffest_damping(*last)
    if damping is None or longest_step(damping, method) > INSTANT / CHATTER:
        return failure
    text = f"{failure}. {limit_message(damping, method)}; {damping.way_out}"
    return StepFailed(text, failure.reason)


def _at_singular_pose(failure: StepFailed, equations: StopEquations) -> StepFailed:
    """The rows lose rank for what is neither held nor driven."""
    phase, names = equations.phase, equations.train.names
    moved = [names[k] for k in phase.follow.nonzero()[0].tolist()]
    held = [names[k] for k in phase.stuck.nonzero()[0].tolist()]
    parts = [f"while drives move {listed(moved)}"] if moved else []
    parts += [f"while {listed(held)} {'rests' if len(held) == 1 else 'rest'}"] if held else []
    where = " ".join(["the loops come into a singular configuration", " and ".join(parts)])
    why = f" ({failure})" if failure.reason == "speed taken" else ""
    return StepFailed(
        f"{where.rstrip()}, behind which the motion is not determined{why}; look whether joints "
        "are beyond their limits there",
        "singular configuration",
    )
