"""A step of a stop that ends where something happens in it.

When that is, and what happens then, is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...integrate import Step
from .crossing import Crossing

if TYPE_CHECKING:
    from .course import Course

__all__ = ["prolonged", "shortened"]

_CORRECTIONS = 4
"""How often the root of an event is corrected by the state that a step to it gives."""
_INSTANT = 1e-8
"""Part of a step over which what is left beside velocity and acceleration is rounding."""


def shortened(course: Course, step: Step, found: Crossing) -> tuple[Step, bool]:
    """The step taken again to where something happens, corrected by what the method gives.

    Close to a singularity a shorter step may be a worse one: then it ends before, and nothing
    has happened yet.

    Args:
        course: the course.
        step: the step.
        found: what happens in it.

    Returns:
        The shorter step, and whether it reaches what happens.
    """
    root, best, least = found.t, step, np.inf
    slack = 1e-4 * (step.t1 - step.t0)
    for _ in range(_CORRECTIONS):
        if best is not step and abs(root - best.t1) <= _INSTANT * (best.t1 - best.t0):
            taken = prolonged(course, best, root)
        else:
            taken = _taken_to(course, step, root)
        if taken.t1 < root:
            return taken, False
        value = found.guard(root, taken.q1, taken.v1)
        if abs(value) >= 0.5 * least:
            break
        best, least = taken, abs(value)
        if abs(value) <= 1e-3 * course.tiny:
            break
        ahead, behind = min(root + slack, step.t1), max(root - slack, step.t0)
        rise = found.guard(ahead, *step(ahead)) - found.guard(behind, *step(behind))
        if rise == 0.0:
            break
        root -= value * (ahead - behind) / rise
        if not step.t0 < root < step.t1:
            break
    return best, True


def prolonged(course: Course, step: Step, end: float) -> Step:
    """A step that goes on for an instant, or ends an instant earlier: its velocity changes evenly.

    Args:
        course: the course, in the phase of the step.
        step: the step.
        end: where it is to end [s]; so near that the jerk leaves nothing but rounding.
    """
    more = end - step.t1
    way = more * step.v1
    q = course.manifold.normalize(course.manifold.integrate(step.q1, way))
    psi = step.psi + course.manifold.dexp_inv(step.q0, step.psi, way)
    v = course.with_pinned(end, step.v1 + more * step.a1)
    a = course.equations.acceleration(end, q, v)
    return replace(step, t1=end, psi=psi, q1=q, v1=v, a1=a)


def _taken_to(course: Course, step: Step, root: float) -> Step:
    """The step taken again to an instant inside it; it may end before."""
    stepper, start = course.stepper, (step.q0, step.v0, step.a0)
    if stepper.method.step is not None:
        return stepper.fixed(step.t0, root, start)
    return stepper.controlled(step.t0, root - step.t0, root, start)[0]
