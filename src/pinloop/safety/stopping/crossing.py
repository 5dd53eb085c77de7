"""Where in a step a speed passes zero, a drive is met, a tooth is hit, or a joint comes loose.

Speeds and angles of joints with one degree of freedom are polynomials in a step, those of its dense
output, also where other joints are curved. A step in which something happens is taken again, so
that it ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from ...integrate import (
    COARSE,
    FINE,
    Flow,
    Step,
    StepMemory,
    Stepper,
    slope_powers,
    value_powers,
)
from ...tolerances import BOUND_INSTANT, LAST_BITS, REAL_ROOT, STEP_INSTANT, TORQUE_FIT
from .phase import Phase
from .prepared_robot import Drivetrain
from .stop_equations import StopEquations

__all__ = [
    "TURN",
    "Crossing",
    "Guard",
    "Watched",
    "WatchedCoordinates",
    "first_crossing",
    "first_passed",
    "prolonged",
    "shortened",
    "watched_joints",
]

Array = NDArray[np.float64]
Guard = Callable[[float, Array, Array], float]
Signal = Callable[[float], Array]

TURN = 2.0
"""How far all joints together may turn in a piece of a step [rad]; why is said in `loads`."""
_CORRECTIONS = 4
"""How often the root of an event is corrected by the state that a step to it gives."""
_SAMPLES = 8
"""Parts of a step in which guards are looked at."""
_HALVINGS = 20
"""How often a piece of a step is halved, at most, for polynomials to follow."""
_PARTS = np.linspace(0.0, 1.0, _SAMPLES + 1)
_WAYS, _SPEEDS = value_powers(_PARTS), slope_powers(_PARTS)


@dataclass(frozen=True, eq=False)
class Watched:
    """A coordinate that is watched: ``sign (x - level(t))`` is positive until something happens.

    Args:
        column: velocity coordinate.
        q_index: its coordinate in q, if the angle is watched; None for the speed.
        sign: see above.
        level: value at which something happens, or a function of time.
        name: what happens then.
    """

    column: int
    q_index: int | None
    sign: float
    level: float | Callable[[float], float]
    name: str

    def at(self, t: float) -> float:
        """The level at a time."""
        return self.level if isinstance(self.level, float) else self.level(t)

    def guard(self, t: float, q: Array, v: Array) -> float:
        """Positive until it happens."""
        value = v[self.column] if self.q_index is None else q[self.q_index]
        return float(self.sign * (value - self.at(t)))


class WatchedCoordinates:
    """All coordinates that are watched in a phase.

    Args:
        joints: the coordinates, k of them.
    """

    def __init__(self, joints: Sequence[Watched]) -> None:
        self.joints = joints
        self._columns = np.array([joint.column for joint in joints], dtype=np.intp)
        self._signs = np.array([joint.sign for joint in joints])
        self._angles = [k for k, joint in enumerate(joints) if joint.q_index is not None]
        indices = [joints[k].q_index for k in self._angles]
        self._q_indices = np.array(indices, dtype=np.intp)
        self._changing = [k for k, joint in enumerate(joints) if not isinstance(joint.level, float)]
        levels = [joint.level for joint in joints]
        self._levels = np.array([x if isinstance(x, float) else 0.0 for x in levels])

    def guards(self, step: Step) -> Array:
        """Their guards at even parts of a step, shape (parts + 1, k)."""
        h, p = step.t1 - step.t0, step.polynomial[:, self._columns]
        values = _SPEEDS @ p / h
        if self._angles:
            values[:, self._angles] = step.q0[self._q_indices] + _WAYS @ p[:, self._angles]
        values -= self._levels
        for k in self._changing:
            values[:, k] -= [self.joints[k].at(step.t0 + part * h) for part in _PARTS]
        return np.asarray(self._signs * values)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Something that happens in a step.

    Args:
        t: when, on the dense output [s].
        watched: the coordinate it happens to; None where what the phase rests on ends.
        guard: passes zero there.
    """

    t: float
    watched: Watched | None
    guard: Guard


def first_crossing(
    step: Step, watched: WatchedCoordinates, equations: StopEquations, violation: float, band: float
) -> Crossing | None:
    """The first thing that happens in a step.

    Args:
        step: the step.
        watched: the coordinates to look at.
        equations: the equations, which know when their phase ends.
        violation: how far beyond its end the phase may have been in the step.
        band: how far beyond zero a guard that starts at zero must get to count.
    """
    crossing = _first_of_watched(step, watched, band)
    ended = _first_beyond(step, equations, violation, step.t1 if crossing is None else crossing.t)
    return crossing if ended is None else ended


def watched_joints(phase: Phase, train: Drivetrain, band: float) -> list[Watched]:
    """What may happen to the joints in a phase besides coming loose or hitting a tooth.

    Args:
        phase: the phase.
        train: names of the joints, and which have friction or losses.
        band: speeds that count as zero.
    """
    piece, watched = phase.piece, []
    for column in (~phase.pinned).nonzero()[0].tolist():
        way, drive_sign = (
            phase.sliding.direction[column],
            phase.sliding.saturated_drive_sign[column],
        )
        name = train.names[column]
        if way:
            watched.append(Watched(column, None, way, 0.0, f"{name} comes to rest"))
        if drive_sign:
            level = _component(piece.v, column)
            watched.append(Watched(column, None, -drive_sign, level, f"{name} meets its drive"))
    # Friction and losses of what follows its drive turn round with it.
    for column in (phase.follow & piece.may_reverse & train.dry).nonzero()[0].tolist():
        for way in (-1.0, 1.0):
            if phase.sliding.direction[column] != -way:
                name = f"{train.names[column]} turns round"
                watched.append(Watched(column, None, way, -2.0 * way * band, name))
    return watched


def _component(signal: Signal, column: int) -> Callable[[float], float]:
    return lambda t: float(signal(t)[column])


def _first_of_watched(step: Step, watched: WatchedCoordinates, band: float) -> Crossing | None:
    if not watched.joints:
        return None
    guards = watched.guards(step)
    passed = (guards[-1] <= 0.0) | (guards.min(axis=0) < -band)
    first: Crossing | None = None
    for k in passed.nonzero()[0].tolist():
        joint = watched.joints[k]
        root = _root(joint, guards[:, k], step, step.polynomial[:, joint.column], band)
        if root is not None and (first is None or root < first.t):
            first = Crossing(root, joint, joint.guard)
    return first


def _root(joint: Watched, values: Array, step: Step, p: Array, band: float) -> float | None:
    """Where a guard passes from positive to negative, on the polynomial of its coordinate."""
    below = (values[1:] < -band).nonzero()[0]
    if not len(below):
        # Exactly at zero where the step ends, after having been positive.
        return step.t1 if values[-1] <= 0.0 and values.max() > band else None
    end = int(below[0]) + 1
    above = (values[:end] > 0.0).nonzero()[0]
    h = step.t1 - step.t0
    if not (len(above) or callable(joint.level)):
        return step.t0 + h * _back_at_zero(joint, p, _PARTS[end])

    # Of six numbers Python's sums are several times as fast as NumPy's.
    orders = range(1, 6)
    if joint.q_index is None:
        powers = [k * c / h for k, c in zip(orders, p.tolist(), strict=True)]
    else:
        powers = [float(step.q0[joint.q_index]), *p.tolist()]
    powers.reverse()

    def value(s: float) -> float:
        x = 0.0
        for c in powers:
            x = x * s + c
        return joint.sign * (x - joint.at(step.t0 + s * h))

    if len(above):
        return step.t0 + h * float(
            scipy.optimize.brentq(value, _PARTS[above[-1]], _PARTS[end], xtol=LAST_BITS)
        )
    if value(0.0) <= -band:
        return step.t0
    # A drive that was left and is met again between two samples: so near it is there in any case.
    return step.t0 + h * float(
        scipy.optimize.brentq(lambda s: value(s) + band, 0.0, _PARTS[end], xtol=LAST_BITS)
    )


def _back_at_zero(joint: Watched, p: Array, end: float) -> float:
    """Part of a step at which a guard that starts at zero is back there; 0 if it goes down at once.

    Between two samples it may have been positive: what has just left a tooth may fall back.
    """
    # The zero at the start is divided out: of the way, or of the speed, whose constant is nothing.
    rest = p if joint.q_index is not None else (p * np.arange(1, 6))[1:]
    if not joint.sign * rest[0] > 0.0:
        return 0.0
    roots = np.roots(rest[::-1])
    real = roots.real[(np.abs(roots.imag) < REAL_ROOT) & (roots.real > 0.0) & (roots.real <= end)]
    return float(real.min(initial=np.inf)) if len(real) else 0.0


def _first_beyond(
    step: Step, equations: StopEquations, violation: float, end: float
) -> Crossing | None:
    """Where what is pinned comes loose, or the power in a gear turns round, before ``end``."""
    # A step may go on far behind what ends it: a brake stops in microseconds what is light.
    part = (end - step.t0) / (step.t1 - step.t0)
    way = float(value_powers(part) @ np.abs(step.polynomial).sum(axis=1))
    if not (violation > 0.0 or way > TURN):
        return None

    def passed(t: float) -> Array:
        return equations.passed(t, *step(t))

    if equations.phase.redundant:  # each instant is dear, and kinks have no polynomial
        count = 3 + int(4 * way / TURN)
        parts = [(part, np.inf) for part in np.linspace(0.0, 1.0, count)[1:].tolist()]
        bracket = _first_confirmed(passed, step.t0, end, parts)
    else:
        pieces = 1 + int(way / TURN)
        bracket = first_passed(passed, step.t0, end, pieces, equations.accuracy)
    if bracket is None:
        return None

    def over(t: float) -> float:
        return float(passed(t).max())

    before, root = bracket
    if over(before) >= 0.0:  # at the start of a phase it may be at its bound already
        root = before
    else:
        after, beyond = root, BOUND_INSTANT
        root = float(scipy.optimize.brentq(over, before, after, xtol=BOUND_INSTANT))
        # An instant before the bound is passed would be found again and again.
        while over(root) < 0.0:
            root, beyond = min(root + beyond, after), 2.0 * beyond
    return Crossing(root, None, lambda t, q, v: -equations.beyond(t, q, v))


def first_passed(
    passed: Callable[[float], Array], start: float, end: float, pieces: int, accuracy: Array
) -> tuple[float, float] | None:
    """Instants before and behind the one at which the first of some functions gets positive.

    Polynomials follow the functions, on pieces that are halved until they do so closely; where one
    is positive, also between the points, the function itself is asked.

    Args:
        passed: the functions of time; those that are minus infinity never get positive.
        start: start of the interval [s]; a function may be at zero there.
        end: its end [s].
        pieces: number of pieces to begin with.
        accuracy: how closely polynomials follow each function at least.
    """
    ends = np.linspace(start, end, pieces + 1)
    waiting = [(a, b, 0) for a, b in zip(ends[-2::-1], ends[:0:-1], strict=True)]
    while waiting:
        a, b, halvings = waiting.pop()
        heights = _heights(passed, a, b, accuracy, surely=halvings == _HALVINGS)
        if heights is None:
            middle = 0.5 * (a + b)
            waiting += [(middle, b, halvings + 1), (a, middle, halvings + 1)]
            continue
        bracket = _first_confirmed(passed, a, b, heights)
        if bracket is not None:
            return bracket
    return None


def _heights(
    passed: Callable[[float], Array], a: float, b: float, accuracy: Array, *, surely: bool
) -> list[tuple[float, float]] | None:
    """Parts of a piece in order, and the largest of the polynomials there; [] if all are negative.

    None if polynomials do not follow the functions closely, and need not ``surely`` be taken.
    """
    values = np.array([passed(a + (b - a) * part) for part in COARSE.points])
    for rule in (COARSE, FINE):
        if rule is FINE:
            coarse = values
            values = np.empty((len(rule.points), coarse.shape[1]))
            values[::2] = coarse
            values[1::2] = [passed(a + (b - a) * part) for part in rule.points[1::2]]
        finite = np.isfinite(values).all(axis=0)
        bounded = values[:, finite]
        if not bounded.size:
            return []
        (places, tops), missed = rule.highest(bounded), rule.missed(bounded)
        below = tops + missed <= 0.0
        if below.all():
            return []
        close = missed <= accuracy[finite] + TORQUE_FIT * np.abs(bounded).max(axis=0)
        if (close | below).all() or (surely and rule is FINE):
            even = (rule.between @ bounded).max(axis=1)
            parts = np.concatenate([np.linspace(0.0, 1.0, len(even)), places])
            return sorted(zip(parts.tolist(), [*even.tolist(), *tops.tolist()], strict=True))
    return None


def _first_confirmed(
    passed: Callable[[float], Array], a: float, b: float, heights: list[tuple[float, float]]
) -> tuple[float, float] | None:
    """The first instant at which polynomial and function are positive, and the one before it.

    The start is none: there a function may be at zero.
    """
    before = a
    for part, height in heights:
        t = a + part * (b - a)
        if part > 0.0 and height > 0.0 and passed(t).max() > 0.0:
            return before, t
        before = t
    return None


def shortened(
    stepper: Stepper,
    flow: Flow,
    equations: StopEquations,
    step: Step,
    crossing: Crossing,
    tiny: float,
) -> tuple[Step, bool]:
    """The step taken again to where something happens, corrected by what the method gives.

    Close to a singularity a shorter step may be a worse one: then it ends before, and nothing
    has happened yet.

    Args:
        stepper: what took the step.
        flow: what it follows.
        equations: equations of the stop, in the phase of the step.
        step: the step.
        crossing: what happens in it.
        tiny: speeds below it count as zero.

    Returns:
        The shorter step, and whether it reaches what happens.
    """
    root, best, least = crossing.t, step, np.inf
    slack = 1e-4 * (step.t1 - step.t0)
    for _ in range(_CORRECTIONS):
        if best is not step and abs(root - best.t1) <= STEP_INSTANT * (best.t1 - best.t0):
            taken = prolonged(flow, equations, best, root)
        else:
            taken = _taken_to(stepper, flow, step, root)
        if taken.t1 < root:
            return taken, False
        value = crossing.guard(root, taken.q1, taken.v1)
        if abs(value) >= 0.5 * least:
            break
        best, least = taken, abs(value)
        if abs(value) <= 1e-3 * tiny:
            break
        ahead, behind = min(root + slack, step.t1), max(root - slack, step.t0)
        rise = crossing.guard(ahead, *step(ahead)) - crossing.guard(behind, *step(behind))
        if rise == 0.0:
            break
        root -= value * (ahead - behind) / rise
        if not step.t0 < root < step.t1:
            break
    return best, True


def prolonged(flow: Flow, equations: StopEquations, step: Step, end: float) -> Step:
    """A step that goes on for an instant, or ends an instant earlier: its velocity changes evenly.

    Args:
        flow: what the step follows.
        equations: equations of the stop, in the phase of the step.
        step: the step.
        end: where it is to end [s]; so near that the jerk leaves nothing but rounding.
    """
    more = end - step.t1
    way = more * step.v1
    q = flow.manifold.normalize(flow.manifold.integrate(step.q1, way))
    psi = step.psi + flow.manifold.dexp_inv(step.q0, step.psi, way)
    v = equations.phase.pin_velocity(end, step.v1 + more * step.a1)
    a = equations.acceleration(end, q, v)
    return replace(step, t1=end, psi=psi, q1=q, v1=v, a1=a)


def _taken_to(stepper: Stepper, flow: Flow, step: Step, root: float) -> Step:
    """The step taken again to an instant inside it; it may end before."""
    start = step.q0, step.v0, step.a0
    if stepper.method.step is not None:
        return stepper.fixed(flow, StepMemory(), step.t0, root, start)[0]
    return stepper.controlled(flow, StepMemory(), step.t0, root - step.t0, root, start)[0]
