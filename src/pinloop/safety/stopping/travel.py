"""How joints and points stopped: how far they went and for how long, and what joints felt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...errors import BadValue, shown
from ...integrate import Bernstein, unit_roots
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...simulation.limits import ends_seen_from, joint_ends
from ...simulation.trajectory import Trajectory
from ...tolerances import NO_LOAD
from .history import StopHistory
from .holding import Holding
from .loads import Loads
from .teeth import at_end_stop, gear_impulse

_MOST = 10_000_000
"""More instants are a mistake in the unit of their interval."""


@public
@dataclass(frozen=True)
class JointStop:
    """The stop of one joint. Sliding joints: m and N for rad and N m.

    Args:
        name: name of the joint.
        reaction_time: from the signal until its brake acts, or until its drive slows it down [s].
        braking_time: from then until it is at rest for good [s].
        reaction_angle: how far it moves in the reaction time [rad], signed.
        braking_angle: how far it moves from then to the end [rad], signed.
        travel: length of the path, to and fro [rad].
        excursion: largest distance from where it was at the signal [rad].
        beyond_limit: how far it gets beyond a limit of its position at most [rad]; no end stop
            holds it there.
        peak_speed: [rad/s].
        impulse: sum of the impulses of teeth and stops on it, sizes [N m s].
        peak_torque: largest torque of brake, friction, gear and drive together [N m].
        peak_gear_torque: largest torque in its gear, impulses spread over their time [N m].
        gear_limit: what the gear may carry [N m]; None if not known.
        dissipated: what its brake, friction and gear turned into heat [J].
        slips: how often it came loose again after it had stood.
        load: torque that holding takes at the end [N m].
        hold: torque up to which it is held at the end [N m]; infinite if a tooth holds it.
        state: at the end: "held", "free", "moving".
    """

    name: str
    reaction_time: float
    braking_time: float
    reaction_angle: float
    braking_angle: float
    travel: float
    excursion: float
    beyond_limit: float
    peak_speed: float
    impulse: float
    peak_torque: float
    peak_gear_torque: float
    gear_limit: float | None
    dissipated: float
    slips: int
    load: float
    hold: float
    state: Literal["held", "free", "moving"]

    @property
    def time(self) -> float:
        """From the signal until it is at rest for good [s]."""
        return self.reaction_time + self.braking_time

    @property
    def angle(self) -> float:
        """From the signal to the end [rad], signed."""
        return self.reaction_angle + self.braking_angle

    @property
    def margin(self) -> float:
        """Torque that holds over torque that is needed; infinite without load."""
        # A load as small as rounding is none.
        return self.hold / abs(self.load) if abs(self.load) > NO_LOAD * self.hold else np.inf

    @property
    def gear_use(self) -> float | None:
        """Peak torque of the gear over what it may carry; None if that is not known."""
        return None if self.gear_limit is None else self.peak_gear_torque / self.gear_limit


def joint_stop(
    history: StopHistory, name: str, travel: JointTravel, loads: Loads, holding: Holding
) -> JointStop:
    """The numbers of one joint."""
    train, run = history.train, history.run
    brake, column = train.brakes.joints[name], train.columns[name]
    since = float(travel.since[column])
    moves = bool(np.isnan(since))
    end = float(run.t[-1]) if moves else since
    acts = history.plan.chain.command
    if not history.plan.category.controlled and train.has_brake[column]:
        acts = float(history.brake_times.engagement(train)[0][column])
    reaction = min(acts, end)
    before, total = travel.until(column, reaction), float(travel.places[-1, column])
    lock = f"lock:{name}"
    impulse = sum(
        abs(float(change.impulse_of(lock).sum()))
        for change in run.transitions
        if lock in change.labels
    )
    shocks = [0.0]
    for change in run.transitions:
        at_end = at_end_stop(history.ends, column, change.q)
        shocks.append(abs(gear_impulse(train, change, column, at_end=at_end)))
    return JointStop(
        name=name,
        reaction_time=reaction,
        braking_time=end - reaction,
        reaction_angle=before,
        braking_angle=total - before,
        travel=float(travel.length[column]),
        excursion=float(travel.largest[column]),
        beyond_limit=_beyond_limit(history, name, travel),
        peak_speed=float(loads.speed[column]),
        impulse=float(impulse),
        peak_torque=float(loads.torque[column]),
        peak_gear_torque=max(float(loads.gear[column]), max(shocks) / brake.impact_time),
        gear_limit=brake.peak_gear_torque,
        dissipated=float(sum(heat[column] for heat in loads.heat.values())),
        slips=int(travel.slips[column]),
        load=float(holding.load[column]),
        hold=float(holding.hold[column]),
        state="moving" if moves else "held" if holding.held[column] else "free",
    )


def _beyond_limit(history: StopHistory, name: str, travel: JointTravel) -> float:
    """How far a joint gets beyond its limits; what is stored as cosine and sine has none."""
    robot, q = history.robot, history.run.q[0]
    at = robot.coordinates(name)
    if at.nq != at.nv:
        return 0.0
    column = at.v.start
    farthest = {1: float(travel.highest[column]), -1: -float(travel.lowest[column])}
    ends = ends_seen_from([end for end in joint_ends(robot) if end.column == column], q)
    return max([0.0, *(end.beyond(q) + farthest[end.sign] for end in ends)])


@dataclass(frozen=True, eq=False)
class JointTravel:
    """The paths of all velocity coordinates in a stop [rad, m].

    Args:
        history: the stop.
        places: how far each coordinate has come at the stored states, shape (k, nv).
        length: of the path to and fro, shape (nv,).
        lowest: farthest place below the start, shape (nv,); not above 0.
        highest: farthest place above the start, shape (nv,); not below 0.
        since: since when each stands for good [s], shape (nv,); NaN if it does not.
        slips: how often each came loose again after it had stood, shape (nv,).
    """

    history: StopHistory
    places: Array
    length: Array
    lowest: Array
    highest: Array
    since: Array
    slips: NDArray[np.int64]

    @property
    def largest(self) -> Array:
        """Largest distance from the start, shape (nv,)."""
        return np.maximum(self.highest, -self.lowest)

    def until(self, column: int, t: float) -> float:
        """How far a coordinate has come at a time, signed."""
        times = self.history.run.t
        k = int(np.searchsorted(times, t, side="right")) - 1
        place = float(self.places[k, column])
        return place if times[k] == t else place + float(self.history.step(k).along(t)[column])


def measure_joint_travel(history: StopHistory) -> JointTravel:
    """The paths of all coordinates of joints with one axis; of others they mean little."""
    rates = history.run.psi
    places = np.vstack([np.zeros(rates.shape[1]), np.cumsum(rates, axis=0)])
    length = np.abs(rates).sum(axis=0)
    lowest, highest = places.min(axis=0), places.max(axis=0)
    for k, column, turns in _turns(history):
        way = rates[k, column]
        length[column] += np.abs(np.diff([0.0, *turns, way])).sum() - abs(way)
        lowest[column] = min(lowest[column], places[k, column] + min(turns))
        highest[column] = max(highest[column], places[k, column] + max(turns))
    since, slips = stand_since(history), _slips(history)
    return JointTravel(history, places, length, lowest, highest, since, slips)


def stand_since(history: StopHistory) -> Array:
    """Since when each coordinate has been slower than what counts as standing [s], shape (nv,).

    NaN where it has not.
    """
    # What may stick stands once it sticks; what may not, once it is slow.
    moves = _moves(history, np.where(history.train.dry, history.tiny, history.slow))
    times = np.append(history.run.t, np.nan)
    last = len(moves) - 1 - np.argmax(moves[::-1], axis=0)
    return np.asarray(np.where(moves.any(axis=0), times[last + 1], times[0]))


def _moves(history: StopHistory, slow: Array | float) -> NDArray[np.bool_]:
    """At which states coordinates are faster than something, or slide though at zero, (k, nv)."""
    still = [phase.pinned | (phase.sliding.direction == 0.0) for phase in history.phases]
    slides = ~np.array(still)[history.run.mode]
    return np.asarray((np.abs(history.run.v) > slow) | slides)


def _slips(history: StopHistory) -> NDArray[np.int64]:
    """How often each coordinate moved after it had been stuck, shape (nv,)."""
    run = history.run
    stuck = np.array([phase.stuck for phase in history.phases])[run.mode]
    lasts = np.append(np.diff(run.t) > 0.0, True)[:, None]  # not what ends as it begins
    moves = _moves(history, history.tiny) & lasts
    # What is neither stuck nor moves is as it was before.
    known = np.maximum.accumulate(np.where(stuck | moves, np.arange(len(run.t))[:, None], 0))
    stood, moved = (np.take_along_axis(mask, known, axis=0) for mask in (stuck, moves))
    return np.asarray((stood[:-1] & moved[1:]).sum(axis=0))


def all_stand_since(history: StopHistory) -> float:
    """Since when all stand, of a stop that has come to rest [s]."""
    simple = history.train.single
    since = stand_since(history)[simple]
    times = since[~np.isnan(since)].tolist()
    if not simple.all() and history.slow_since is not None:
        times.append(history.slow_since)  # joints in space stand when frames are slow
    return float(max(times, default=0.0))


def _turns(history: StopHistory) -> Iterator[tuple[int, int, list[float]]]:
    """Steps and coordinates that turn round in them, and how far these have come where they do."""
    moving = history.moving
    slopes = np.arange(1.0, len(moving.p) + 1.0)[:, None, None] * moving.p
    # Where no control point of a rate has another sign than the others it has no zero.
    hull = np.tensordot(Bernstein.of(len(slopes) - 1).of_powers, slopes, axes=1)
    slow = history.tiny * moving.h[:, None]
    for row, column in np.argwhere((hull.min(axis=0) < -slow) & (hull.max(axis=0) > slow)).tolist():
        powers = np.append(moving.p[::-1, row, column], 0.0)
        turns = [float(np.polyval(powers, part)) for part in unit_roots(np.polyder(powers))]
        if turns:
            yield int(moving.steps[row]), column, turns


@public
@dataclass(frozen=True, eq=False)
class PointStop:
    """The path of a point of the robot.

    Args:
        frame: the frame whose origin it is.
        t: times [s], shape (k,).
        path: places in the world [m], shape (k, 3).
        speed: [m/s], shape (k,).
        reaction: index of the time at which the reaction ends.
    """

    frame: str
    t: Array
    path: Array
    speed: Array
    reaction: int

    @property
    def displacement(self) -> float:
        """Straight distance from where it was at the signal to where it ends [m]."""
        return float(np.linalg.norm(self.path[-1] - self.path[0]))

    @property
    def length(self) -> float:
        """Length of the path [m]."""
        return _length(self.path)

    @property
    def reaction_length(self) -> float:
        """Length of the path in the reaction time [m]."""
        return _length(self.path[: self.reaction + 1])

    @property
    def braking_length(self) -> float:
        """Length of the path after the reaction time [m]."""
        return _length(self.path[self.reaction :])

    @property
    def peak_speed(self) -> float:
        """Largest speed [m/s]."""
        return float(self.speed.max())


def point_stop(run: Trajectory, frame: str, reaction_time: float, every: float) -> PointStop:
    """The path of the origin of a frame or body.

    ``reaction_time``: [s]; its end is one of the times, unless the motion ends before. ``every``:
    interval between its places [s].
    """
    end = float(run.t[-1])
    count = max(2, int(np.ceil(end / checked_interval(every, end))) + 1)
    reaction = min(reaction_time, end)
    times = np.union1d(np.linspace(0.0, end, count), [*run.t, reaction])
    path, speed = point_motion(run.robot, frame, *run(times)[1:])
    return PointStop(frame, times, path, speed, int(np.searchsorted(times, reaction)))


def checked_interval(every: object, end: float, or_else: str = "") -> float:
    """The interval of states up to ``end`` [s], after checking that it gives a bearable number.

    ``or_else``: what may be given instead, for the message.
    """
    if isinstance(every, (int, float)) and 0 < every < np.inf and end / every < _MOST:
        return float(every)
    raise BadValue(f"every is {shown(every)}; it is an interval in s, for example 0.001{or_else}")


def point_motion(robot: Mechanism, frame: str, q: Array, v: Array) -> tuple[Array, Array]:
    """Places of the origin of a frame or body in the world [m], and its speeds [m/s].

    ``q``: configurations, shape (k, nq). ``v``: velocities, shape (k, nv).

    Returns:
        Shapes (k, 3) and (k,).
    """
    model, index = robot.model, robot.frame_id(frame)
    data = create_data(model)
    places, speeds = np.zeros((len(q), 3)), np.zeros(len(q))
    for row, state in enumerate(zip(q, v, strict=True)):
        pin.forwardKinematics(model, data, *state)
        places[row] = pin.updateFramePlacement(model, data, index).translation
        speeds[row] = np.linalg.norm(pin.getFrameVelocity(model, data, index, pin.LOCAL).linear)
    return places, speeds


def _length(path: Array) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
