"""Which joint limits a run passes, when and by how much.

Between stored states too: steps are polynomials, and their extrema are roots of derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from numbers import Real
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...errors import BadValue
from ...simulation.limits import LimitPassed, ends_seen_from, joint_ends
from ...simulation.trajectory import Trajectory
from ...tolerances import LIMIT_PASSED, REAL_ROOT, SHORT_STEP
from .interval_tree import BINOMIALS, CONTROL, EVEN, Steps, checked_run, expand_steps

Array = NDArray[np.float64]
Kind = Literal["position", "velocity"]
Side = Literal["lower", "upper"]

_POWERS = np.array(
    [[BINOMIALS[5, i] * BINOMIALS[i, j] * (-1) ** (i - j) for j in range(6)] for i in range(6)]
)
"""From control points to coefficients of powers."""


@public
def joint_limits(run: Trajectory, *, tolerance: float = LIMIT_PASSED) -> tuple[LimitPassed, ...]:
    """Return the position and velocity limits of tree joints that a run passes, in order of time.

    Coordinates of joints with a quaternion, and velocities of all curved joints, are interpolated
    at six instants of each step; the others are exact.

    Args:
        run: the run.
        tolerance: limits that are passed by less are not reported: a joint may rest on its end
            stop [rad, m, rad/s, m/s].
    """
    run = checked_run(run)
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < np.inf:
        raise BadValue(f"tolerance is {tolerance!r}; it must be a number >= 0")
    steps = expand_steps(run)
    motions = {
        "position": (run.q, _positions(run, steps)),
        "velocity": (run.v, _velocities(run, steps)),
    }
    farthest = {
        (kind, sign): np.vstack([sign * stored, *(sign * control)]).max(axis=0)
        for kind, (stored, control) in motions.items()
        for sign in (1.0, -1.0)
    }
    passages = []
    seen = {(x.cell, x.side): x.level for x in ends_seen_from(joint_ends(run.robot), run.q[0])}
    for joint, coordinate, cell, kind, side, limit in _limits(run):
        stored, control = motions[kind]
        sign = 1.0 if side == "upper" else -1.0
        level = seen.get((cell, side), limit) if kind == "position" else limit
        if farthest[kind, sign][cell] - sign * level <= tolerance:
            continue
        over = sign * (stored[:, cell] - level), sign * (control[:, :, cell] - level)
        passed = _passed(run.t, steps, *over, float(tolerance))
        if passed is not None:
            passages.append(LimitPassed(joint, coordinate, kind, side, limit, *passed))
    return tuple(sorted(passages, key=lambda passed: passed.t))


def _limits(run: Trajectory) -> Iterator[tuple[str, int, int, Kind, Side, float]]:
    """All finite limits: joint, coordinate, its place in q or v, kind, side, value."""
    model = run.robot.model
    limits: tuple[tuple[Kind, Side, Array], ...] = (
        ("position", "lower", model.lowerPositionLimit),
        ("position", "upper", model.upperPositionLimit),
        ("velocity", "lower", model.lowerVelocityLimit),
        ("velocity", "upper", model.upperVelocityLimit),
    )
    for joint in run.robot.joints:
        at = run.robot.coordinates(joint)
        for kind, side, values in limits:
            cells = at.q if kind == "position" else at.v
            for coordinate, cell in enumerate(range(cells.start, cells.stop)):
                if np.isfinite(values[cell]):
                    yield joint, coordinate, cell, kind, side, float(values[cell])


def _positions(run: Trajectory, steps: Steps) -> Array:
    """Control points of all coordinates on each step, shape (k, 6, nq)."""
    if steps.flat and run.robot.nq == run.robot.nv:
        return np.asarray(run.q[steps.number, None] + steps.psi)
    values = np.zeros((len(steps.number), 6, run.robot.nq))
    for k, (here, step) in enumerate(zip(steps.number, steps.steps, strict=True)):
        values[k, 0], values[k, -1] = run.q[here], run.q[here + 1]
        for i in range(1, 5):
            psi = step.along(EVEN[i] * step.t1)
            values[k, i] = pin.integrate(run.robot.model, run.q[here], psi)
    return np.asarray(CONTROL @ values)


def _velocities(run: Trajectory, steps: Steps) -> Array:
    """Control points of all velocities on each step, shape (k, 6, nv)."""
    v0, v1 = run.v[steps.number, None], run.v[steps.number + 1, None]
    straight = v0 + EVEN[:, None] * (v1 - v0)
    long = (steps.length > SHORT_STEP)[:, None, None]
    if steps.flat:
        return np.where(long, steps.rates, straight)
    for k, step in enumerate(steps.steps):
        if long[k]:
            straight[k, 1:-1] = [step(at * step.t1)[1] for at in EVEN[1:-1]]
    return np.asarray(CONTROL @ straight)


def _passed(
    t: Array, steps: Steps, stored: Array, control: Array, tolerance: float
) -> tuple[float, float, float] | None:
    """When a limit is passed first, by how much at most, and when that is.

    ``t``: stored times [s]; ``stored``: how far the coordinate is beyond the limit at the stored
    times, shape (len(t),); ``control``: control points of that on each step, shape (k, 6);
    ``tolerance``: passing it by less does not count.
    """
    most = int(np.argmax(stored))
    by, worst, first = float(stored[most]), float(t[most]), np.inf
    # A polynomial lies in the hull of its control points: most steps need no closer look.
    highest = control.max(axis=1)
    for k in np.flatnonzero(highest > tolerance):
        start, length = float(t[steps.number[k]]), float(steps.length[k])
        if highest[k] <= by and start >= first:
            continue
        powers = Polynomial(_POWERS @ control[k])
        for s in _roots(powers.deriv()):
            if powers(s) > by:
                by, worst = float(powers(s)), start + s * length
        if start < first:
            cuts = [0.0, *_roots(powers - tolerance), 1.0]
            beyond = [a for a, b in pairwise(cuts) if powers((a + b) / 2) > tolerance]
            first = min([first, *(start + s * length for s in beyond)])
    return (min(first, worst), by, worst) if by > tolerance else None


def _roots(polynomial: Polynomial) -> list[float]:
    """Real roots inside (0, 1), rising."""
    roots = polynomial.trim(0.0).roots()
    real = roots[np.abs(roots.imag) < REAL_ROOT].real
    return sorted(float(root) for root in real if 0 < root < 1)
