"""Which limits of joints a run passes, when and by how much.

Between stored states too: steps are polynomials, and their extremes are roots of derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.special import comb

from ..errors import BadValue
from ..trajectory import Trajectory
from .leaves import CONTROL, EVEN, Steps, checked_run, steps_of

__all__ = ["LimitPassed", "joint_limits"]

Array = NDArray[np.float64]

_POWERS = np.array(
    [[comb(5, i) * comb(i, j) * (-1) ** (i - j) for j in range(6)] for i in range(6)]
)
"""From control points to coefficients of powers."""
_SHORT = 1e-6
"""Steps shorter than this [s] are judged by their ends: the slope of their dense output shows how
far the last bits of the stored states are apart."""


@dataclass(frozen=True)
class LimitPassed:
    """A limit of a joint that a run passes.

    Args:
        joint: name of the joint.
        coordinate: which of the joint's coordinates (or velocities), counted from 0.
        kind: "position" or "velocity".
        side: "lower" or "upper".
        limit: the limit [rad, m, rad/s, m/s].
        t: instant at which it is passed first [s].
        by: how far it is passed at most [rad, m, rad/s, m/s].
        worst_t: instant of that [s].
    """

    joint: str
    coordinate: int
    kind: Literal["position", "velocity"]
    side: Literal["lower", "upper"]
    limit: float
    t: float
    by: float
    worst_t: float


def joint_limits(run: Trajectory, *, tolerance: float = 1e-6) -> tuple[LimitPassed, ...]:
    """Return the position and velocity limits of tree joints that a run passes, in order of time.

    Coordinates of joints with a quaternion, and velocities of all curved joints, are interpolated
    at six instants of each step; the others are exact.

    Args:
        run: the run.
        tolerance: what is passed by less is not reported: a joint that rests on its stop
            [rad, m, rad/s, m/s].
    """
    run = checked_run(run)
    if not (isinstance(tolerance, (int, float)) and 0 <= tolerance < np.inf):
        raise BadValue(f"tolerance is {tolerance!r}; it must be a number >= 0")
    model, steps = run.robot.model, steps_of(run)
    found: list[LimitPassed] = []
    positions, velocities = _positions(run, steps), _velocities(run, steps)
    for name in run.robot.joints:
        at = run.robot.coordinates(name)
        for kind, cells, stored, inner, limits in (
            ("position", at.q, run.q, positions,
             (model.lowerPositionLimit, model.upperPositionLimit)),
            ("velocity", at.v, run.v, velocities,
             (model.lowerVelocityLimit, model.upperVelocityLimit)),
        ):  # fmt: skip
            for cell in range(cells.start, cells.stop):
                for side, sign in (("lower", -1), ("upper", 1)):
                    limit = float(limits[side == "upper"][cell])
                    if np.isfinite(limit):
                        beyond = _Beyond(run.t, steps, sign * (stored[:, cell] - limit),
                                         sign * (inner[:, :, cell] - limit))  # fmt: skip
                        passed = beyond.passed(tolerance)
                        if passed is not None:
                            where = name, cell - cells.start, kind, side, limit
                            found.append(LimitPassed(*where, *passed))
    return tuple(sorted(found, key=lambda passed: passed.t))


def _positions(run: Trajectory, steps: Steps) -> Array:
    """Control points of all coordinates on each step, shape (k, 6, nq)."""
    model = run.robot.model
    values = np.zeros((len(steps.number), 6, run.robot.nq))
    for k, (here, step) in enumerate(zip(steps.number, steps.steps, strict=True)):
        values[k, 0], values[k, -1] = run.q[here], run.q[here + 1]
        for i in range(1, 5):
            psi = step.along(EVEN[i] * step.t1)
            values[k, i] = pin.integrate(model, run.q[here], psi)
    return np.asarray(CONTROL @ values)


def _velocities(run: Trajectory, steps: Steps) -> Array:
    """Control points of all velocities on each step, shape (k, 6, nv)."""
    values = np.zeros((len(steps.number), 6, run.robot.nv))
    for k, (here, step) in enumerate(zip(steps.number, steps.steps, strict=True)):
        values[k, 0], values[k, -1] = run.v[here], run.v[here + 1]
        if step.t1 > _SHORT:
            values[k, 1:-1] = [step(at * step.t1)[1] for at in EVEN[1:-1]]
        else:
            values[k, 1:-1] = run.v[here] + EVEN[1:-1, None] * (run.v[here + 1] - run.v[here])
    return np.asarray(CONTROL @ values)


class _Beyond:
    """How far one coordinate is beyond one limit, over a run.

    Args:
        t: stored times [s].
        steps: the steps of the run.
        stored: at the stored times, shape (len(t),).
        control: control points on each step, shape (k, 6).
    """

    def __init__(self, t: Array, steps: Steps, stored: Array, control: Array) -> None:
        self._t, self._steps, self._stored, self._control = t, steps, stored, control

    def passed(self, tolerance: float) -> tuple[float, float, float] | None:
        """When the limit is passed first, by how much at most, and when that is."""
        k = int(np.argmax(self._stored))
        by, worst = float(self._stored[k]), float(self._t[k])
        over = np.flatnonzero(self._stored > tolerance)
        first = float(self._t[over[0]]) if len(over) else np.inf
        # A polynomial lies in the hull of its control points: most steps need no closer look.
        for k in np.flatnonzero(self._control.max(axis=1) > tolerance):
            here = self._steps.number[k]
            start, length = float(self._t[here]), self._steps.steps[k].t1
            powers = _powers(self._control[k])
            for s in _roots(powers.deriv()):
                if powers(s) > by:
                    by, worst = float(powers(s)), start + s * length
            if start < first:
                cuts = [0.0, *_roots(powers - tolerance), 1.0]
                beyond = [a for a, b in pairwise(cuts) if powers((a + b) / 2) > tolerance]
                first = min([first, *(start + s * length for s in beyond)])
        return (min(first, worst), by, worst) if by > tolerance else None


def _powers(control: Array) -> np.polynomial.Polynomial:
    """A polynomial on [0, 1] from its control points."""
    return np.polynomial.Polynomial(_POWERS @ control)


def _roots(polynomial: np.polynomial.Polynomial) -> list[float]:
    """Real roots inside (0, 1), rising."""
    roots = polynomial.trim(0.0).roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    return sorted(float(root) for root in real if 0 < root < 1)
