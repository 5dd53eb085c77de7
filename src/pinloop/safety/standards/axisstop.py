"""The stop of one axis while all others stand, and what it needs: speed, payload, brake.

Which stops are made, and what becomes of their numbers, is in `annexb`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...assembly.assemble import consistent_velocity
from ...boundary.arguments import flat_numbers
from ...errors import BadValue, StopFailed
from ...integrate import MuntheKaas
from ...model.mechanism import Mechanism
from ...simulation.limits import LimitPassed
from ...tolerances import INTEGRATION
from ..brakes.brakes import Brakes
from ..space.interval_tree import joint_limits
from ..stopping import Payload, Standstill, StopResult, Trigger
from ..stopping.plan import Category
from ..stopping.prepared_robot import PreparedRobot, prepare_robot, tool_of
from ..stopping.stop import stop_prepared
from ..studies.space import driven_joints
from .extension import Point, Pose

Array = NDArray[np.float64]

METHOD = MuntheKaas("dopri5", rtol=INTEGRATION, atol=INTEGRATION)
_SAG = 1e-3
"""By so much a joint that rests at its limit may pass it [rad, m]."""
_NO_LIMIT = 1e6
"""Velocity limits above this are none [rad/s, m/s]."""


@dataclass(frozen=True, eq=False)
class AxisStop:
    """The stop of one axis. Sliding axes: m for rad.

    Args:
        axis: name of the axis.
        category: number of the category.
        speed_share: share of the full speed.
        payload_share: share of the payload.
        speed: speed at the signal [rad/s], signed.
        mass: mass of the payload [kg].
        pose: the pose at the signal.
        outcome: as of `StopResult`, or "failed" if the stop could not be computed to its end.
        problem: why it failed.
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
    """What all stops have in common.

    ``brakes``: the brakes; ``gravity``: gravity in the robot's base [m/s^2], shape (3,); ``until``:
    limit of the time of a stop [s]; ``method``: integrator; ``standstill``: what counts as standing
    still.
    """

    brakes: Brakes
    gravity: Array
    until: float
    method: MuntheKaas
    standstill: Standstill

    def machine(self, robot: Mechanism, payload: Payload | None) -> PreparedRobot:
        """The robot with a payload, prepared."""
        return prepare_robot(robot, self.brakes, payload, self.gravity)

    def stop(
        self, machine: PreparedRobot, category: Category, q: Array, axis: str, speed: float
    ) -> StopResult:
        """Stop one axis while the other driven joints stand."""
        rates = dict.fromkeys(driven_joints(machine.robot), 0.0) | {axis: speed}
        v = consistent_velocity(machine.robot, q, rates)
        return stop_prepared(
            machine, Trigger(), category, q, v, self.until, self.method, self.standstill
        )

    def travel(
        self, machine: PreparedRobot, category: Category, q: Array, axis: str, speed: float
    ) -> float:
        """How far an axis goes until it stands [rad, m]; 0 if that cannot be computed."""
        try:
            return self.stop(machine, category, q, axis, speed).joints[axis].excursion
        except StopFailed:
            return 0.0

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
        case = AxisStop(
            axis, category.number, part, load, speed, load * mass, pose, outcome="failed"
        )
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


def checked_axes(
    robot: Mechanism, brakes: Brakes, axes: Sequence[str] | None, categories: Sequence[Category]
) -> tuple[str, ...]:
    """Return the axes after checking that they are driven and have what the categories need."""
    if robot.loops and robot.description.actuated is None:
        raise BadValue(
            f"the file of robot '{robot.name}' does not say which joints of its loops are driven; "
            "list them in its loops file: actuated: [...]"
        )
    driven = driven_joints(robot)
    if isinstance(axes, str):
        axes = (axes,)
    names = tuple(driven[:3] if axes is None else dict.fromkeys(axes))
    if not names:
        raise BadValue(f"robot '{robot.name}' has no driven joint whose stops could be declared")
    for name in names:
        robot.coordinates(name)  # says so if there is no such joint
        if name not in driven:
            raise BadValue(
                f"axis '{name}' of robot '{robot.name}' is not driven; driven are "
                f"{', '.join(driven)}"
            )
        brake = brakes.joints.get(name)
        braked = any(category.number < 2 for category in categories)
        if brake is None or (braked and brake.kind == "none"):
            raise BadValue(
                f"axis '{name}' of robot '{robot.name}' has no brake: nothing stops it; give it "
                f"one in the brakes file: joints: {name}: kind: friction"
            )
    return names


def full_speed(robot: Mechanism, axis: str, given: float | None) -> float:
    """Full speed of an axis [rad/s, m/s], given or from the robot's file."""
    if given is not None:
        speed = float(flat_numbers(given, f"the full speed of axis '{axis}'", 1)[0])
    else:
        speed = float(robot.model.upperVelocityLimit[robot.coordinates(axis).v.start])
    if 0 < speed < _NO_LIMIT:
        return speed
    unit = "m/s" if robot.is_translation[robot.coordinates(axis).v.start] else "rad/s"
    raise BadValue(
        f"the full speed of axis '{axis}' of robot '{robot.name}' is {speed:g} {unit}; give it, "
        f"e.g. speeds={{'{axis}': 2.0}}"
    )


def checked_payload(robot: Mechanism, payload: Payload | float | None) -> Payload:
    """Return the largest payload, with its frame, after checking that it is known."""
    if payload is None:
        raise BadValue(
            f"the largest payload of robot '{robot.name}' is not known: give payload=, a mass in "
            "kg or a pl.Payload; 0 if it carries none"
        )
    if not isinstance(payload, Payload):
        payload = Payload(float(flat_numbers(payload, "payload", 1)[0]))
    frame = tool_of(robot) if payload.frame is None else payload.frame
    robot.frame_id(frame)  # says so if there is no such frame
    return replace(payload, frame=frame)


def part_of(payload: Payload, share: float) -> Payload | None:
    """A share of a payload of the same shape; None if there is nothing."""
    if payload.mass == 0:
        return None
    inertia = payload.inertia
    if inertia is not None:
        inertia = share * np.asarray(inertia, dtype=float)
    return replace(payload, mass=share * payload.mass, inertia=inertia)


def point_of(payload: Payload, gravity: Array) -> Point:
    """The centre of a payload on its frame, whose distance from an axis is the extension."""
    size = float(np.linalg.norm(gravity))
    place = flat_numbers(payload.com, "the centre of mass of the payload", 3)
    return Point(str(payload.frame), place, gravity / size if size else gravity)
