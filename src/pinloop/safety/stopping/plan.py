"""The plan of a stop: when brakes are commanded and power goes, and what the drives follow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ...boundary.arguments import checked, public
from ...boundary.marks import INTERNAL, Array, NotNegative
from ...dynamics import EquationsOfMotion
from ...errors import BadValue
from ...integrate import NoBranch
from ...linalg.saddle import Saddle
from ...simulation.passages import open_passage
from ...tolerances import HELD_ACCELERATION, NO_SPEED, TIME_SUM
from ..brakes.brakes import Brakes
from ..brakes.joint_brake import Chain, JointBrake
from ..brakes.laws import LAWS, Ramp, StopLaw
from .categories import Category
from .drivetrain import Drivetrain
from .recorded import JointTrajectory
from .reference import CurvedPiece, EvenPiece, Piece, RecordedPiece, Reference, slow_joints


@dataclass(frozen=True, eq=False)
class BrakeTimes:
    """Instants of a stop [s]; infinite while not known.

    Args:
        command: when the controller has decided to stop.
        brake: when the brakes are commanded.
        off: when the torque of the drives is gone.
    """

    command: float
    brake: float
    off: float

    def engagement(self, train: Drivetrain) -> tuple[Array, Array]:
        """When each brake begins to act, and when it has its full torque, shape (nv,)."""
        begin = self.brake + train.delay
        return begin, begin + train.rise

    def breaks(self, train: Drivetrain) -> list[float]:
        """Instants at which a torque jumps or changes its slope, in any order."""
        acting = np.array(self.engagement(train))[:, train.has_brake]
        return [t for t in (self.off, *acting.ravel().tolist()) if np.isfinite(t)]

    def ramp(self, train: Drivetrain, t: float) -> tuple[Array, Array]:
        """Part of the torque of each brake from ``t`` on, and its rate [1/s], shape (nv,)."""
        begin, full = self.engagement(train)
        if t < self.brake:
            return np.zeros(len(begin)), np.zeros(len(begin))
        part, slope = (full <= t).astype(float), np.zeros(len(begin))
        rising = (begin <= t) & (t < full)
        if any(rising.tolist()):
            part[rising] = (t - begin[rising]) / train.rise[rising]
            slope[rising] = 1.0 / train.rise[rising]
        return part, slope


@public
@checked
@dataclass(frozen=True, eq=False)
class Trigger:
    """What the robot does when the signal comes, and how long it takes until brakes are commanded.

    Args:
        motion: what the robot is doing; going on at constant joint speeds by default.
        at: when the signal comes, in the time of ``motion`` [s].
        sensor: time from the signal until the controller knows [s]; that of the brakes by default.
        controller: time from then until the command [s]; that of the brakes by default.
        drive_off: time from the command until the drives are off [s]; that of the brakes by
            default.
    """

    motion: Annotated[JointTrajectory | None, INTERNAL] = None
    at: Annotated[float, INTERNAL] = 0.0
    sensor: NotNegative | None = None
    controller: NotNegative | None = None
    drive_off: NotNegative | None = None

    def chain(self, defaults: Chain) -> Chain:
        """The chain with what is given here."""
        names = "sensor", "controller", "drive_off"
        given = {name: t for name in names if (t := getattr(self, name)) is not None}
        return replace(defaults, **given) if given else defaults


@dataclass(frozen=True, eq=False)
class Plan:
    """A plan.

    Args:
        category: category of the stop.
        chain: from the signal to the command.
        brake_times: when brakes are commanded and power goes, as far as known at the signal.
        reference: what the drives follow.
        duration: how long they take from the command until all stand [s]; 0 without control.
        ramp: the speed on the path, from 1 to 0, if all is to stay on its path.
        longest: how long they may take on their path [s]: until a recorded motion ends; 0 if all
            is not to stay on its path.
    """

    category: Category
    chain: Chain
    brake_times: BrakeTimes
    reference: Reference
    duration: float = 0.0
    ramp: Ramp = Ramp()  # noqa: RUF009 (frozen)
    longest: float = 0.0

    def lasting(self, duration: float) -> Ramp:
        """The speed on the path with another duration [s]."""
        return self.ramp if duration == self.ramp.end else self.ramp.stretched(duration)

    def on_path(self, duration: float) -> Plan:
        """The plan with all joints together on the path that they were on.

        ``duration``: how long it takes from the command until all stand [s].

        Raises:
            BadValue: a recorded motion ends before.
        """
        command = self.brake_times.command
        before = self.reference.pieces[0]
        assert not isinstance(before, CurvedPiece)
        slowing = before.slowed(command, self.lasting(duration))
        rest = EvenPiece(command + duration, np.zeros(len(self.reference.follows)))
        return replace(self, reference=self.reference.stops_by(*slowing, rest), duration=duration)


def make_plan(
    equations: EquationsOfMotion,
    brakes: Brakes,
    trigger: Trigger,
    category: Category,
    q0: Array,
    v0: Array,
) -> Plan:
    """The plan of a stop from a state at the signal.

    ``q0``: configuration at the signal, shape (nq,). ``v0``: velocity at the signal, shape (nv,).
    """
    chain = trigger.chain(brakes.chain)
    now = not category.controlled
    command, off = chain.command, chain.command + chain.drive_off
    brake_times = BrakeTimes(command, command if now else np.inf, off if now else np.inf)
    columns = _driven(equations, brakes, q0, v0)
    follows = np.zeros(len(v0), dtype=bool)
    follows[list(columns.values())] = True
    first = _before_command(trigger, columns, np.where(follows, v0, 0.0))
    if isinstance(first, RecordedPiece):
        first.require_known(off if now else command)
    rest = np.zeros(len(v0))
    # Without power nobody follows; a recorded motion need not be known any longer.
    reference = Reference(follows, (first, EvenPiece(off, rest)))
    plan = Plan(category, chain, brake_times, reference)
    if now:
        return plan
    # At rest the spline through a recording leaves rounding.
    v, a = (
        np.where(np.abs(x) > least, x, 0.0)
        for x, least in ((first.v(command), NO_SPEED), (first.a(command), HELD_ACCELERATION))
    )
    drives = {
        k: _drive(brakes, name, category) for name, k in columns.items() if v[k] != 0.0 or a[k]
    }
    if not category.on_path:
        ramps = {
            k: law.ramp(float(v[k]), float(a[k]), numbers) for k, (law, numbers) in drives.items()
        }
        pieces = slow_joints(command, ramps, len(v0))
        duration = max((ramp.end for ramp in ramps.values()), default=0.0)
        return replace(plan, reference=reference.stops_by(*pieces), duration=duration)
    if not v.any():
        return replace(plan, reference=reference.stops_by(EvenPiece(command, rest)))
    ramp = _path_ramp({k: drive for k, drive in drives.items() if v[k] != 0.0}, v)
    longest = np.inf
    if trigger.motion is not None:
        left = trigger.motion.end - trigger.at - command
        longest = left * ramp.end / ramp.whole * (1.0 - TIME_SUM)
    return replace(plan, ramp=ramp, longest=longest).on_path(ramp.end)


def _driven(equations: EquationsOfMotion, brakes: Brakes, q: Array, v: Array) -> dict[str, int]:
    """Velocity coordinates of the driven joints of the tree, by name.

    As many as move independently: where loops couple drives, those with a brake come first, and
    what is left goes along. In a singular pose the branch of the velocity tells how many these are.
    """
    robot = equations.robot
    names = brakes.motorized(robot)
    columns = {name: robot.coordinates(name).v.start for name in names}
    if len(equations.rows) == 0:
        return columns
    M = np.eye(robot.nv)  # ranks do not depend on masses
    rows = equations.closure_at_start(0.0, q)[0]
    rank, general = Saddle(M, rows).rank, equations.rank
    if general is not None and rank < general and v.any():
        with suppress(NoBranch):
            rows = equations.closure(*open_passage(equations, 0.0, q, v).start[:2])[0]
            rank = Saddle(M, rows).rank
    every = np.vstack([rows, M[list(columns.values())]])
    if Saddle(M, every).rank == rank + len(columns):
        return columns
    chosen: dict[str, int] = {}
    for name in sorted(names, key=lambda name: name not in brakes.joints):
        more = np.vstack([rows, M[columns[name]]])
        if Saddle(M, more).rank > rank:
            rows, rank = more, rank + 1
            chosen[name] = columns[name]
    return chosen


def _drive(brakes: Brakes, joint: str, category: Category) -> tuple[StopLaw, dict[str, float]]:
    """The law by which a drive brings its joint to rest, and its numbers."""
    brake = brakes.joints.get(joint)
    law = category.law or LAWS[JointBrake().law if brake is None else brake.law]
    values = {name: getattr(brake, name, None) for name in law.numbers}
    for name in law.needs:
        if values[name] is None:
            example = f"joints: {joint}: {name}: {_EXAMPLES.get(name, 1.0)}"
            raise BadValue(
                f"a stop of category {category.number} {law.title} needs the {name} of joint "
                f"'{joint}'; give it with the law, '{law.name}:{name}={_EXAMPLES.get(name, 1.0)}', "
                f"or in the brakes file: {example}"
            )
    return law, {name: value for name, value in values.items() if value is not None}


_EXAMPLES = {"deceleration": 5.0, "ramp_time": 0.4, "time_constant": 0.1, "jerk": 100.0}


def _path_ramp(drives: Mapping[int, tuple[StopLaw, dict[str, float]]], v: Array) -> Ramp:
    """The speed on a path, from 1 to 0, that the drives of all joints that move allow.

    ``drives``: law and numbers by velocity coordinate. ``v``: velocity, shape (nv,).
    """
    laws = {law.name: law for law, _ in drives.values()}
    if len(laws) > 1 or not all(law.on_path for law in laws.values()):
        raise BadValue(
            f"the drives stop by the laws {', '.join(laws)}; on the path all need one and the same "
            "that is told in time; give one with the category, e.g. law=pl.safety.ConstantTime(0.3)"
        )
    (law,) = laws.values()
    return law.together([(float(v[k]), numbers) for k, (_, numbers) in drives.items()])


def _before_command(trigger: Trigger, columns: dict[str, int], v0: Array) -> Piece:
    """What the driven joints do from the signal on."""
    motion = trigger.motion
    if motion is None:
        return EvenPiece(0.0, v0)
    driven = [k for k, name in enumerate(motion.joints) if name in columns]
    at = np.array([columns[motion.joints[k]] for k in driven], dtype=np.intp)
    reversing = np.zeros(len(v0), dtype=bool)
    later = motion.values[max(int(np.searchsorted(motion.t, trigger.at)) - 1, 0) :]
    reversing[at] = np.ptp(later, axis=0)[driven] > 0.0
    return RecordedPiece(0.0, motion, trigger.at, np.array(driven, np.intp), at, reversing)


class PendingInstants:
    """The instants of a stop, as far as they are known.

    Attributes:
        brake_times: when brakes are commanded and power goes; infinite while not known.
        breaks: instants at which something changes by itself, in order [s].
        reference_ends: when the last piece of the reference begins, in which all stand if they are
            to [s].
    """

    def __init__(self, plan: Plan, train: Drivetrain) -> None:
        self._plan, self._train = plan, train
        limit = plan.category.time_limit
        # When brakes come in any case.
        self._limit = np.inf if limit is None else plan.chain.command + limit
        self._brakes_follow = plan.category.brakes_at_rest or np.isfinite(self._limit)
        # The command to cut the power changes nothing yet: no phase begins with it.
        self._at_once = not plan.category.controlled
        self.brake_times: BrakeTimes = plan.brake_times
        self.reference_ends = plan.reference.starts[-1]
        self.breaks = self._all_breaks()
        self._ramp: tuple[int, tuple[Array, Array]] | None = None

    def ramp(self, t: float) -> tuple[Array, Array]:
        """`BrakeTimes.ramp`, the same arrays until something comes."""
        place = bisect_right(self.breaks, t)
        if self._ramp is None or self._ramp[0] != place:
            part, rate = self.brake_times.ramp(self._train, t)
            if any(rate.tolist()):
                return part, rate
            self._ramp = place, (part, rate)
        return self._ramp[1]

    def _all_breaks(self) -> list[float]:
        times, starts = self.brake_times, self._plan.reference.starts
        waiting = [] if np.isfinite(times.brake) else [self._limit]
        commands = [] if self._at_once else [times.command]
        instants = {*times.breaks(self._train), *starts, *waiting, *commands}
        return sorted(instant for instant in instants if np.isfinite(instant))

    def passed(self, since: float, t: float) -> list[tuple[float, str]]:
        """What has come without changing anything between two times."""
        command = self.brake_times.command
        return [(command, "command")] if self._at_once and since < command <= t else []

    def due(self, since: float, t: float) -> list[float]:
        """Instants that have come between two times."""
        return [instant for instant in self.breaks if since < instant <= t]

    def waiting(self, t: float) -> bool:
        """Whether something is still to come after ``t``."""
        return self.brakes_wait or any(instant > t for instant in self.breaks)

    @property
    def brakes_wait(self) -> bool:
        """Whether brakes are to be commanded at an instant that is not known yet."""
        return self._brakes_follow and self.brake_times.brake == np.inf

    def brakes_due(self, t: float, *, stand: bool) -> str:
        """Why the brakes of a controlled stop are to be commanded now; empty if they are not.

        ``stand``: whether the drives have brought all to rest.
        """
        if not self.brakes_wait:
            return ""
        if self._limit <= t:
            return "time limit"
        return "drives stand" if stand and self._plan.category.brakes_at_rest else ""

    def command_brakes(self, t: float) -> None:
        """Command the brakes of a controlled stop, and cut the power when they hold or at once."""
        late = self._limit <= t
        full = (t + self._train.delay + self._train.rise)[self._train.has_brake].max(initial=t)
        off = t + self._plan.chain.drive_off if late else float(full)
        self.brake_times = replace(self.brake_times, brake=t, off=off)
        self.breaks, self._ramp = self._all_breaks(), None

    def named(self, due: list[float]) -> list[str]:
        """What happens at some instants."""
        begin, full = self.brake_times.engagement(self._train)
        names = []
        for instant in due:
            if instant == self.brake_times.command and not self._at_once:
                names.append("command")
            elif instant in self._plan.reference.starts and 0 < instant != self.brake_times.off:
                names.append("a ramp ends")
            if instant == self.brake_times.off:
                names.append("power off")
            for column in self._train.has_brake.nonzero()[0].tolist():
                if begin[column] == instant:
                    names.append(f"brake of {self._train.names[column]} engages")
                elif full[column] == instant:
                    names.append(f"brake of {self._train.names[column]} has its full torque")
        return names
