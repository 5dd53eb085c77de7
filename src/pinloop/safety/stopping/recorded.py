"""`JointTrajectory`: a recorded or planned motion of joints, as trigger of a stop (STOPPING.md, 3).

Times and values become a C2 cubic spline; a robot at an instant of it becomes a state. Reading the
file is in `recordfile`; what happens after the signal is in `stop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ...boundary.arguments import public
from ...boundary.marks import Array
from ...boundary.values import stored_fields
from ...errors import BadValue, LoadError, UnknownName
from ...model.mechanism import Mechanism
from ...tolerances import SAME
from .following import STRIDE, Follower
from .recordfile import read_table


@public
@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Joint coordinates over time, recorded or planned.

    Between the samples runs the cubic spline through all of them whose second derivative is
    continuous (a straight line through two samples, a parabola through three). It follows noise
    too: smooth what an encoder has recorded before rates and accelerations are taken from it.

    A stop needs the motion from the signal until the robot is told otherwise, so the recording
    has to go on for the reaction time; nothing is made up beyond its last sample.

    Args:
        joints: names of the joints, each with one degree of freedom.
        t: times of the samples [s], strictly increasing, shape (k,), k >= 2; from 4 samples on
            the spline is of full order.
        values: coordinates [rad, m], shape (k, len(joints)). An angle that was wrapped at a full
            turn must be unwrapped first (`numpy.unwrap`).
        units: per joint "rad" or "m" where the source says so, else ""; checked against a robot.
        source: file that it was read from, for messages.
    """

    joints: tuple[str, ...]
    t: Array
    values: Array
    units: tuple[str, ...] = ()
    source: str = ""

    __getstate__ = stored_fields

    def __post_init__(self) -> None:
        if isinstance(self.joints, str) or not all(isinstance(n, str) for n in self.joints):
            raise BadValue(f"joints is {self.joints!r}; it must be a tuple of names")
        joints = tuple(self.joints)
        units = tuple(self.units) or ("",) * len(joints)
        t, values = _numbers(self.t, "the times"), _numbers(self.values, "the values")
        if not joints or t.ndim != 1 or values.shape != (len(t), len(joints)):
            raise BadValue(
                f"a motion of {len(joints)} joints needs times of shape (k,) and values of shape "
                f"(k, {len(joints)}), not {t.shape} and {values.shape}"
            )
        twice = sorted({name for name in joints if joints.count(name) > 1})
        if twice:
            raise BadValue(f"joint '{twice[0]}' occurs twice in the motion; name each joint once")
        if len(units) != len(joints) or not set(units) <= {"", "rad", "m"}:
            raise BadValue(f"units is {units!r}; give 'rad', 'm' or '' for each joint")
        if len(t) < 2:
            raise BadValue(f"a motion needs at least 2 samples (better 4), not {len(t)}")
        late = np.flatnonzero(np.diff(t) <= 0)
        if late.size:
            k = int(late[0])
            raise BadValue(
                f"times must increase: t[{k + 1}] = {float(t[k + 1])!r} is not after t[{k}] = "
                f"{float(t[k])!r}"
            )
        for name, value in (("joints", joints), ("t", t), ("values", values), ("units", units)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"<JointTrajectory of {len(self.joints)} joints, {len(self.t)} samples, "
            f"{self.start:g} s to {self.end:g} s>"
        )

    @classmethod
    def from_csv(cls, path: str | Path, joints: Sequence[str] | None = None) -> JointTrajectory:
        """Read a recording: a header row, then one row per sample.

        The header names the time (``t`` or ``time``) and the joints, in any order, with units
        where they are not s, rad and m: ``joint_1 [deg]``, ``joint_1 (deg)``, ``joint_1_deg``,
        ``t [ms]``, ``time_ms``. Columns are separated by commas, semicolons or tabs; with the
        last two a comma is a decimal point. Tables that `Trajectory.to_csv` and
        `StopResult.to_csv` wrote are understood as they are.

        Args:
            path: the file, UTF-8 or UTF-16 with byte order mark, or Windows' Western encoding.
            joints: take these joints only and leave out other columns; also for joints whose
                own names end like a unit. By default every column but the time is a joint.

        Raises:
            LoadError: names the file, the line and the column.
        """
        return cls(*read_table(path, joints), str(path))

    # -- the motion -------------------------------------------------------------------------

    @property
    def start(self) -> float:
        """Time of the first sample [s]."""
        return float(self.t[0])

    @property
    def end(self) -> float:
        """Time of the last sample [s]."""
        return float(self.t[-1])

    @property
    def duration(self) -> float:
        """From the first to the last sample [s]."""
        return self.end - self.start

    def positions(self, t: float) -> Array:
        """Coordinates at ``t`` [rad, m], in the order of ``joints``.

        Raises:
            BadValue: ``t`` lies outside the recording.
        """
        return self._at(t, 0)

    def rates(self, t: float) -> Array:
        """First derivatives at ``t`` [rad/s, m/s], in the order of ``joints``.

        Raises:
            BadValue: ``t`` lies outside the recording.
        """
        return self._at(t, 1)

    def accelerations(self, t: float) -> Array:
        """Second derivatives at ``t`` [rad/s^2, m/s^2], in the order of ``joints``.

        Raises:
            BadValue: ``t`` lies outside the recording.
        """
        return self._at(t, 2)

    @cached_property
    def _spline(self) -> scipy.interpolate.CubicSpline:
        return scipy.interpolate.CubicSpline(self.t, self.values)

    def _at(self, t: float, derivative: int) -> Array:
        return np.asarray(self._spline(self._inside(t), derivative), dtype=float)

    def _inside(self, t: float) -> float:
        """``t`` within the recording; sums of times may be off by rounding."""
        try:
            time = float(t)
        except (TypeError, ValueError):
            raise BadValue(f"t is {t!r}; it must be a time in s") from None
        start, end = self.start, self.end
        slack = 16 * float(np.spacing(max(abs(start), abs(end))))
        if start - slack <= time <= end + slack:
            return min(max(time, start), end)
        way_out = (
            "the robot goes on as recorded until it is told to brake, so let the signal come "
            "earlier, or record for longer"
            if time > end
            else "let the signal come later"
        )
        raise BadValue(
            f"t = {time:.9g} s lies outside the recorded motion, which runs from {start:.9g} s to "
            f"{end:.9g} s; {way_out}"
        )

    # -- the motion of a robot --------------------------------------------------------------

    def state(
        self, robot: Mechanism, t: float, *, guess: ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Configuration and velocity of a robot at an instant of the recording.

        Recorded joints stand and move as recorded. Loops and couplings move the others: they are
        followed from ``guess`` to the first sample and on along the recording, so that every
        instant is on the same assembly branch. What neither recording nor loops determine stays
        as in ``guess``, with the least velocity. A recording of more joints than the robot has
        degrees of freedom is followed by as many as there are; the others may differ by 0.01 (rad,
        characteristic lengths), as rounded numbers do.

        Args:
            robot: the mechanism.
            t: when [s].
            guess: configuration that picks the assembly branch, shape (nq,); neutral by default.

        Returns:
            Configuration, shape (nq,), and velocity, shape (nv,).

        Raises:
            UnknownName: a recorded name is no joint of the robot (`LoadError` with the file, if it
                was read from one).
            BadValue: ``t`` is outside the recording, an actuated joint is not recorded, or a
                recorded joint has not one degree of freedom.
            LoopNotClosed: the loops do not allow the recorded positions.
            InconsistentVelocity: the loops do not allow the recorded rates.
        """
        values, rates = self.positions(t), self.rates(t)
        self.check(robot)
        if not robot.loops and not robot.couplings:
            return robot.configuration(self._named(values), guess), robot.velocity(
                self._named(rates)
            )
        follower = Follower(robot, self.joints, guess)
        q = follower.begin(self._named(self.values[0]), self.start)
        for time in self._stations(robot, t):
            q = follower.next(q, self._named(self.positions(time)), time)
        return q, follower.velocity(q, self._named(rates), t)

    def speeds_above_limits(self, robot: Mechanism) -> tuple[str, ...]:
        """One sentence for each joint that is faster than its velocity limit allows.

        The largest speed is that of the spline, also between samples. Limits that are zero or
        infinite count as not given. Joints that turn by more than half a turn from one sample to
        the next are named too: an angle may have been wrapped.

        Raises:
            UnknownName: a recorded name is no joint of the robot.
        """
        sentences = []
        times = self._extreme_times()
        for k, name in enumerate(self.joints):
            column = self._column(robot, name)
            unit = "m" if robot.is_translation[column] else "rad"
            limit = float(robot.model.upperVelocityLimit[column])
            rates = np.abs(self._spline(times[k], 1)[:, k])
            worst = int(np.argmax(rates))
            if limit > 0 and rates[worst] > limit * (1 + SAME):
                sentences.append(
                    f"joint '{name}' reaches {rates[worst]:.4g} {unit}/s at t = "
                    f"{times[k][worst]:.4g} s, above its velocity limit of {limit:.4g} {unit}/s"
                )
            jumps = np.abs(np.diff(self.values[:, k]))
            if unit == "rad" and jumps.max() > np.pi:
                at = int(np.argmax(jumps))
                sentences.append(
                    f"joint '{name}' turns by {jumps[at]:.4g} rad from t = {self.t[at]:.6g} s to "
                    f"the next sample; if its angle was wrapped, unwrap it (numpy.unwrap)"
                )
        return tuple(sentences)

    def _extreme_times(self) -> list[Array]:
        """Per joint the times at which its speed may be largest: samples and zeros of its rate.

        The second derivative of a cubic spline is linear between samples.
        """
        accelerations = self._spline(self.t, 2)
        before, after = accelerations[:-1], accelerations[1:]
        turns = before * after < 0
        with np.errstate(divide="ignore", invalid="ignore"):
            zeros = self.t[:-1, None] + np.diff(self.t)[:, None] * before / (before - after)
        return [np.concatenate([self.t, zeros[turns[:, k], k]]) for k in range(len(self.joints))]

    def _named(self, numbers: Array) -> dict[str, float]:
        return dict(zip(self.joints, map(float, numbers), strict=True))

    def _stations(self, robot: Mechanism, t: float) -> Array:
        """Times from the first sample to ``t`` between which no joint moves far."""
        last = self._inside(t)
        columns = [self._column(robot, name) for name in self.joints]
        scale = np.where(robot.is_translation[columns], robot.length, 1.0)
        times = np.append(self.t[self.t < last], last)
        steps = np.abs(np.diff(self._spline(times) / scale, axis=0)).max(axis=1, initial=0.0)
        travel = np.concatenate([[0.0], np.cumsum(steps)])
        count = int(np.ceil(travel[-1] / STRIDE))
        inner = np.interp(np.arange(1, count) * STRIDE, travel, times)
        return np.unique(np.concatenate([[self.start], inner, [last]]))

    def check(self, robot: Mechanism) -> None:
        """Check that recorded names are joints with one axis, and that every drive is recorded.

        Args:
            robot: the robot that moves like this.

        Raises:
            PinloopError: see `state`.
        """
        for name, unit in zip(self.joints, self.units, strict=True):
            column = self._column(robot, name)
            own = "m" if robot.is_translation[column] else "rad"
            if unit and unit != own:
                raise BadValue(
                    f"joint '{name}' of robot '{robot.name}' is recorded in {unit}, but its "
                    f"coordinate is in {own}; correct the unit of its column"
                )
        tree = set(robot.joints)
        absent = [n for n in robot.actuated if n in tree and n not in self.joints]
        if absent:
            listed = ", ".join(map(repr, absent))
            way_out = (
                "record them"
                if robot.description.actuated is not None
                else "record them, or say in the robot's file which joints are actuated"
            )
            raise BadValue(
                f"the motion does not have the actuated joints {listed} of robot '{robot.name}'; "
                f"{way_out}"
            )

    def _column(self, robot: Mechanism, name: str) -> int:
        try:
            at = robot.coordinates(name)
        except UnknownName as error:
            if self.source:
                raise LoadError(str(error), source=self.source) from None
            raise
        if at.nv != 1:
            raise BadValue(
                f"joint '{name}' of robot '{robot.name}' has {at.nv} degrees of freedom; only "
                "joints with one can be recorded"
            )
        return int(at.v.start)


def _numbers(values: ArrayLike, what: str) -> Array:
    """A copy that nobody can change, after checking that it is made of finite numbers."""
    try:
        array = np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise BadValue(f"{what} of the motion are not made of numbers") from None
    if not np.all(np.isfinite(array)):
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadValue(f"{what} of the motion are not finite at index {index}")
    array.setflags(write=False)
    return array
