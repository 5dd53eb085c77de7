"""What happens in a run when: frames of a replay, locks, open loops, and reactions as arrows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ...boundary.marks import Array, Integers
from ...errors import BadValue, UnknownName, shown
from ...model.mechanism import Mechanism
from ...model.tree import coordinate_names
from ...model.workspace import create_data
from ...simulation.analysis import lock_reactions, reactions
from ...simulation.modes import Mode
from ...simulation.trajectory import Trajectory
from ...tolerances import NO_LOAD

Spans = tuple[tuple[float, float], ...]

_RATE, _FEWEST, _MOST = 60.0, 40, 2400
"""Frames per second of motion, and how many there are at least and at most."""
_RECORDED = 10**6
"""Instants of a recording at most."""


def frame_times(
    run: Trajectory, until: float = np.inf, *, rate: float = _RATE, most: int = _MOST
) -> Array:
    """Times of the frames of a run [s]: even ones, and those at which its mode changes.

    There are ``rate`` even ones per second of motion, at most ``most``.
    """
    start, end = float(run.t[0]), max(min(float(run.t[-1]), until), float(run.t[0]))
    count = int(np.clip(np.ceil(rate * (end - start)), min(_FEWEST, most), most))
    changes = run.t[1:][np.diff(run.mode) != 0]
    changes = changes[changes < end][:: 1 + len(changes) // most]
    return np.union1d(np.linspace(start, end, count + 1), changes)


def recorded_times(run: Trajectory, rate: float) -> Array:
    """Times of the frames of a run in a file for other tools [s], ``rate`` of them per second."""
    span = float(run.t[-1] - run.t[0])
    if not 0.0 < rate * max(span, 1.0) <= _RECORDED:
        way_out = f"it must be > 0, with up to {_RECORDED} instants in all"
        raise BadValue(f"rate is {shown(rate)}; {way_out}")
    return frame_times(run, rate=rate, most=_RECORDED)


def checked_times(run: Trajectory, times: Iterable[float], what: str) -> tuple[float, ...]:
    """Times in s, after a check that they are within the run."""
    start, end = float(run.t[0]), float(run.t[-1])
    values = []
    for time in times:
        try:
            value = float(time)
        except (TypeError, ValueError):
            raise BadValue(f"the time of {what} is {time!r}; give seconds") from None
        if not start <= value <= end:
            raise BadValue(
                f"{what} at {value:.6g} s is outside the run, which goes from {start:.6g} to "
                f"{end:.6g} s"
            )
        values.append(value)
    return tuple(values)


def _states_at(run: Trajectory, t: Array) -> Integers:
    """Number of the last stored state at or before each time, shape (k,)."""
    return np.searchsorted(run.t, t, side="right") - 1


def modes_at(run: Trajectory, t: Array) -> Integers:
    """Number of the mode at each time: where it changes, that which begins, shape (k,)."""
    return np.asarray(run.mode[_states_at(run, t)], dtype=np.int64)


def standing_spans(run: Trajectory) -> dict[str, Spans]:
    """Per joint that is locked as a whole at some time the spans in which it is, in s."""
    locked = [[lock.joint for lock in mode.locks if not lock.axes] for mode in run.modes]
    spans = _spans(run, locked)
    return {name: spans[name] for name in run.robot.joints if name in spans}


def opened_spans(run: Trajectory) -> dict[str, Spans]:
    """Per loop joint that is open at some time the spans in which it is, in s."""
    spans = _spans(run, [list(mode.opened) for mode in run.modes])
    return {loop.name: spans[loop.name] for loop in run.robot.loops if loop.name in spans}


def _spans(run: Trajectory, names: Sequence[Sequence[str]]) -> dict[str, Spans]:
    """Spans of time in which what is named per mode holds."""
    by_name: dict[str, list[tuple[float, float]]] = {}
    ends = np.append(run.t[1:], run.t[-1])
    for number, start, end in zip(run.mode, run.t, ends, strict=True):
        for name in names[number]:
            spans = by_name.setdefault(name, [])
            if spans and spans[-1][1] == start:
                spans[-1] = (spans[-1][0], float(end))
            else:
                spans.append((float(start), float(end)))
    # A joint that sticks for no time at all, because others decide otherwise, does not stand.
    last = float(run.t[-1])
    lasting = {
        name: tuple((a, b) for a, b in spans if b > a or a == last)
        for name, spans in by_name.items()
    }
    return {name: spans for name, spans in lasting.items() if spans}


def is_within(spans: Spans, time: float, last: float) -> bool:
    """Whether a time is in one of the spans; each but one that ends ``last`` is without its end."""
    return any(start <= time < end or time == end == last for start, end in spans)


def mode_spans(run: Trajectory) -> list[tuple[float, str]]:
    """When each mode begins [s], and in words what is locked and open in it."""
    numbers = modes_at(run, run.t)
    spans: list[tuple[float, str]] = []
    for k in np.flatnonzero(np.append([True], np.diff(numbers) != 0)):
        words = _in_words(run.modes[numbers[k]])
        # Modes that differ in the rows that hold the loops are one to whoever looks on.
        if not spans or words != spans[-1][1]:
            spans.append((float(run.t[k]), words))
    return spans


def _in_words(mode: Mode) -> str:
    locks = [
        f"{lock.joint} ({', '.join(lock.axes)})" if lock.axes else lock.joint for lock in mode.locks
    ]
    parts = [f"locked: {', '.join(locks)}"] if locks else []
    if mode.opened:
        parts.append(f"open: {', '.join(sorted(mode.opened))}")
    return "; ".join(parts) or "nothing locked"


# -- reactions ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force [N] or moment [N m] of a loop joint or lock over time; the page draws it.

    It starts at ``start`` in the world [m]; its vector is in world axes; both have shape (k, 3). It
    is ``unique`` if it is the only solution at every time, the smallest one otherwise.
    """

    name: str
    moment: bool
    start: Array
    vector: Array
    unique: bool

    @property
    def largest(self) -> float:
        """Largest magnitude over time [N, N m]."""
        return float(np.linalg.norm(self.vector, axis=1).max(initial=0.0))


def force_names(run: Trajectory, names: Sequence[str] | bool) -> tuple[str, ...]:
    """Names of the reactions that are asked for; an `UnknownName` if the run has none such."""
    locks = dict.fromkeys(lock.label for mode in run.modes for lock in mode.locks)
    known = [*(loop.name for loop in run.robot.loops), *locks]
    if isinstance(names, bool):
        return tuple(known) if names else ()
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in known:
            raise UnknownName("loop joint or lock", name, known, run.robot.name)
    return chosen


def arrows_of(
    run: Trajectory, t: Array, names: Sequence[str], *, moments: bool = False
) -> tuple[Arrow, ...]:
    """Reactions of a run as arrows, at times [s], shape (k,); names are what `force_names` gives.

    Per loop joint what its body B feels from its body A, at the origin of frame B; per lock what it
    exerts on its joint, at the joint. Moments of locks are always among them, those of loop joints
    if ``moments`` are wanted.
    """
    if not names:
        return ()
    robot, states, of_state = run.robot, run(t), run.equations
    equations = [of_state[k] for k in _states_at(run, t)]
    arrows: list[Arrow] = []
    for name in names:
        if name.startswith("lock:"):
            lock = lock_reactions(equations, name, t, states.q, states.v)
            joint = name.removeprefix("lock:")
            effort = _by_coordinate(robot, joint, lock.labels, lock.effort)
            start, force, moment = _joint_wrench(robot, joint, states.q, effort)
            unique = bool(lock.determined.all())
        else:
            wrench = reactions(equations, robot, name, None, t, states.q, states.v)
            places = [robot.placement(q, f"{name}/B") for q in states.q]
            start = np.array([place.translation for place in places])
            turns = np.array([place.rotation for place in places])
            force, moment = (
                np.einsum("kij,kj->ki", turns, part) for part in (wrench.force, wrench.torque)
            )
            unique = bool(wrench.determined.all())
        arrows.append(Arrow(name, False, start, force, unique))
        if moments or name.startswith("lock:"):
            arrows.append(Arrow(name, True, start, moment, unique))
    least = [
        NO_LOAD * max(a.largest * (a.moment is kind) for a in arrows) for kind in (False, True)
    ]
    return tuple(arrow for arrow in arrows if arrow.largest > least[arrow.moment])


def round_scale(largest: float, length: float) -> float:
    """Newton per metre, a round number: a force ``largest`` is drawn up to ``length`` [m] long."""
    wanted = largest / length
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(power * min(step for step in (1, 2, 5, 10) if step * power >= wanted))


def _by_coordinate(robot: Mechanism, joint: str, labels: tuple[str, ...], effort: Array) -> Array:
    """Efforts of a lock by velocity coordinate of its joint, shape (k, nv of the joint)."""
    names = coordinate_names(robot.tree, joint)
    values = np.zeros((len(effort), robot.coordinates(joint).nv))
    for column, label in enumerate(labels):
        axis = label.removeprefix(f"lock:{joint}").removeprefix(".")
        values[:, names.index(axis) if axis else 0] = effort[:, column]
    return values


def _joint_wrench(robot: Mechanism, joint: str, q: Array, effort: Array) -> Iterator[Array]:
    """Start [m], force [N] and moment [N m] in the world of the least wrench with given efforts.

    A wrench ``w`` has the effort ``S' w`` on a joint with motions ``S``: the least one that has
    the effort ``tau`` is ``S (S' S)^-1 tau``.
    """
    model, at = robot.model, robot.coordinates(joint)
    data = create_data(model)
    rows = np.zeros((3, len(q), 3))
    for k, (place, tau) in enumerate(zip(q, effort, strict=True)):
        pin.computeJointJacobians(model, data, place)
        jacobian = pin.getJointJacobian(model, data, at.index, pin.LOCAL).reshape(6, -1)
        S = jacobian[:, at.v]
        wrench = S @ np.linalg.solve(S.T @ S, tau)
        turn = data.oMi[at.index].rotation
        rows[:, k] = data.oMi[at.index].translation, turn @ wrench[:3], turn @ wrench[3:]
    yield from rows
