"""How one joint stopped: times, angles, loads, and whether it is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...boundary.arguments import public
from ...simulation.limits import ends_seen_from, joint_ends
from ...tolerances import NO_LOAD
from .history import StopHistory
from .holding import Holding
from .impact import gear_impulse
from .joint_travel import JointTravel
from .loads import Loads
from .teeth import at_end_stop

__all__ = ["JointStop", "joint_stop"]


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
        travel: length of the way, to and fro [rad].
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
    """The numbers of one joint.

    Args:
        history: the stop.
        name: name of the joint.
        travel: how far the joints moved.
        loads: what they felt.
        holding: what holds them at the end.
    """
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
