"""The stops that a vendor declares: one axis moves at a share of its speed, all others stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from ...assembly.assemble import consistent_velocity
from ...boundary.marks import Array
from ...errors import BadValue, StopFailed
from ...integrate import MuntheKaas
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ..brakes.brakes import Brakes
from ..brakes.template import driven_joints
from ..space.interval_tree import joint_limits
from ..stopping import Payload, Standstill, StopResult, Trigger
from ..stopping.categories import Category
from ..stopping.prepared_robot import PreparedRobot, prepare_robot
from ..stopping.stop import stop_prepared
from .extension import Extension, Finder, Pose
from .posture import payload_point

GivenPoses = Mapping[str, Mapping[float, Any]]
"""Per axis and share a configuration, or values of driven joints by name."""

_SAG = 1e-3
"""By so much a joint that rests at its limit may pass it [rad, m]."""
_SPARE = 1.05
"""So many times the travel of the longest stop is left up to the limits."""
_TRIALS = 4
"""A pose with room may need more room; so often it is looked for."""


@dataclass(frozen=True, eq=False)
class AxisStop:
    """The stop of one axis. Sliding axes: m for rad.

    Args:
        speed: speed at the signal [rad/s], signed.
        mass: mass of the payload [kg].
        outcome: as of `StopResult`, or "failed" if the stop could not be computed to its end.
        time: from the signal until all joints are at rest for good [s].
        distance: how far the axis gets from where it was at the signal until it is at rest for good
            [rad]; if gravity pulls it back before its brake acts, the farthest counts.
        reaction_time: part of the time until its brake acts, or its drive slows it down [s].
        reaction_distance: how far it goes in that time [rad].
        last: joint that comes to rest last.
        passed: position limits of joints that it passes; end stops are not computed.
    """

    axis: str
    category: int
    speed_share: float
    payload_share: float
    speed: float
    mass: float
    pose: Pose
    outcome: str
    problem: str = ""
    time: float = np.nan
    distance: float = np.nan
    reaction_time: float = np.nan
    reaction_distance: float = np.nan
    last: str = ""
    passed: tuple[LimitPassed, ...] = ()

    @property
    def extension_share(self) -> float:
        """Share of the largest extension that was asked for."""
        return self.pose.share


@dataclass(frozen=True, eq=False)
class Settings:
    """What all stops have in common; gravity is in the robot's base [m/s^2], shape (3,)."""

    brakes: Brakes
    gravity: Array
    until: float
    method: MuntheKaas
    standstill: Standstill

    def machine(self, robot: Mechanism, payload: Payload, share: float) -> PreparedRobot:
        """The robot with a share of a payload of the same shape, prepared."""
        load = None
        if payload.mass > 0:
            whole = payload.inertia
            inertia = None if whole is None else share * np.asarray(whole, dtype=float)
            load = replace(payload, mass=share * payload.mass, inertia=inertia)
        return prepare_robot(robot, self.brakes, load, self.gravity)

    def stop(
        self, machine: PreparedRobot, category: Category, q: Array, axis: str, speed: float
    ) -> StopResult:
        """Stop one axis while the other driven joints stand."""
        rates = dict.fromkeys(driven_joints(machine.robot), 0.0) | {axis: speed}
        v = consistent_velocity(machine.robot, q, rates)
        return stop_prepared(
            machine, Trigger(), category, q, v, self.until, self.method, self.standstill
        )

    def axis_stop(
        self,
        machine: PreparedRobot,
        category: Category,
        axis: str,
        pose: Pose,
        full: float,
        shares: tuple[float, float],
        mass: float,
    ) -> AxisStop:
        """Stop one axis, and keep what is declared.

        ``full``: full speed of the axis [rad/s, m/s]; ``shares``: of the speed and of the payload;
        ``mass``: of the whole payload [kg].
        """
        part, load = shares
        speed = pose.direction * part * full
        case = AxisStop(axis, category.number, part, load, speed, load * mass, pose, "failed")
        try:
            result = self.stop(machine, category, pose.q, axis, speed)
        except StopFailed as error:
            return replace(case, problem=" ".join(str(error).split()))
        joint = result.joints[axis]
        passed = joint_limits(result.run, tolerance=_SAG)
        return replace(
            case,
            outcome=result.outcome,
            time=result.stopping_time,
            distance=joint.excursion,
            reaction_time=joint.reaction_time,
            reaction_distance=pose.direction * joint.reaction_angle,
            last=max(result.joints.values(), key=lambda item: item.time).name,
            passed=tuple(item for item in passed if item.kind == "position"),
        )


@dataclass(frozen=True, eq=False)
class Declaration:
    """What is to be declared: the stops of some axes with all shares.

    Args:
        payload: the largest payload.
        shares: shares of speed, extension and payload, by number of the category.
        speeds: full speed of each axis [rad/s, m/s].
        given: poses to be used, see `GivenPoses`.
    """

    robot: Mechanism
    settings: Settings
    payload: Payload
    categories: tuple[Category, ...]
    shares: Mapping[int, tuple[float, ...]]
    speeds: Mapping[str, float]
    given: GivenPoses

    @cached_property
    def _machines(self) -> dict[float, PreparedRobot]:
        """The robot with each share of its payload."""
        parts = sorted({share for shares in self.shares.values() for share in shares})
        return {part: self.settings.machine(self.robot, self.payload, part) for part in parts}

    def extensions(self) -> dict[str, Extension]:
        """Per axis what it reaches, and its poses, from which it can stop before its limits."""
        point = payload_point(self.payload, self.settings.gravity)
        finder = Finder(self.robot, driven_joints(self.robot), point)
        parts, found = [*self._machines], {}
        for axis in self.speeds:
            given = self.given.get(axis)
            for share in given or ():
                if share not in parts:
                    raise BadValue(
                        f"extension_poses gives axis '{axis}' a pose for {share!r}; the shares are "
                        f"{', '.join(f'{part:g}' for part in parts)}"
                    )
            found[axis] = finder.extension(axis, parts, given, self._room(finder, axis))
        return found

    def _room(self, finder: Finder, axis: str) -> float:
        """How far an axis must still be able to move, so that it stops before the limits [rad, m].

        With the largest payload of each category, at full speed.
        """
        heavy = [(self._machines[max(self.shares[c.number])], c) for c in self.categories]
        full, room = self.speeds[axis], 0.0
        for _ in range(_TRIALS):
            pose = finder.extended(axis, room)
            stops = (self.settings.axis_stop(*x, axis, pose, full, (1.0, 1.0), 0.0) for x in heavy)
            # What cannot be computed counts for nothing.
            travel = float(np.nanmax([0.0, *(stop.distance for stop in stops)]))
            if travel <= room:
                break
            room = _SPARE * travel
        return room

    def stops(self, extensions: Mapping[str, Extension]) -> tuple[AxisStop, ...]:
        """All stops, as far as there are poses."""
        return tuple(
            self.settings.axis_stop(
                self._machines[mass], category, axis, pose, full, (part, mass), self.payload.mass
            )
            for category in self.categories
            for axis, full in self.speeds.items()
            for mass, share, part in product(self.shares[category.number], repeat=3)
            if (pose := extensions[axis].poses.get(share)) is not None
        )
