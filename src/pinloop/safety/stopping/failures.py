"""Why a stop does not go on: changes without end, singular poses, damping that takes tiny steps.

What to say of a failure, and nothing that mends one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...boundary.marks import Array
from ...dynamics.stiffness import way_out
from ...integrate import MuntheKaas, StepFailed
from ...simulation.initial_state import meeting
from ...tables.number_format import listed
from .stop_equations import StopEquations

INSTANT, CHATTER = 1e-3, 1000
"""A time [s], and so many changes within it that are chatter.

A joint at one end stop may throw another one against its own, and so on, ever more often and more
softly. Until nothing moves any more, they do so 40 times, and each time all others slip."""
_FAST = INSTANT / 200
"""Time constant of damping that makes steps too small [s]."""
_BESIDE = 0.1
"""Regularity of the rows below which a stop that cannot go on has come to a singular pose."""

_AT_SINGULAR_POSE = ("speed taken", "bifurcation")
"""Reasons for which steps fail there."""


def chatter_message(recent: Sequence[tuple[float, str]]) -> str:
    """What to say of changes that come one upon the other; those without a name changed nothing."""
    names = ", ".join(dict.fromkeys(name for _, name in recent[-10:] if name))
    text = f"{len(recent)} changes within a millisecond" + (f" ({names})" if names else "")
    if all(name for _, name in recent):
        return text
    return (
        f"{text}: what it takes to hold the joints jumps from one instant to the next, as it does "
        "where loops come into a singular configuration, behind which the motion is not "
        "determined; look whether joints are beyond their limits there"
    )


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
    if failure.reason in _AT_SINGULAR_POSE or (small and regular < _BESIDE):
        return _at_singular_pose(failure, equations)
    if last is None:
        return failure
    damping = equations.stiffest_damping(*last)
    if damping is None or damping.time_constant > _FAST:
        return failure
    tried = method.when_stiff == "switch"
    return StepFailed(f"{failure}. {damping}; {way_out(method, tried=tried)}", failure.reason)


def _at_singular_pose(failure: StepFailed, equations: StopEquations) -> StepFailed:
    """The rows lose rank for what is neither held nor driven."""
    phase, names = equations.phase, equations.train.names
    moved = [names[k] for k in phase.follow.nonzero()[0].tolist()]
    held = [names[k] for k in phase.stuck.nonzero()[0].tolist()]
    parts = [f"while drives move {listed(moved)}"] if moved else []
    parts += [f"while {listed(held)} {'rests' if len(held) == 1 else 'rest'}"] if held else []
    where = " ".join(["the loops come into a singular configuration", " and ".join(parts)])
    why = f" ({failure})" if failure.reason in _AT_SINGULAR_POSE else ""
    if failure.q is not None:
        why = f" ({failure}; {meeting(equations.equations, 0.0, failure.q)})"
    drives = "give their drive_torque, and " if moved and not phase.sliding.limited else ""
    return StepFailed(
        f"{where.rstrip()}, behind which the motion is not determined{why}; {drives}look whether "
        "joints are beyond their limits there",
        "singular configuration",
    )
