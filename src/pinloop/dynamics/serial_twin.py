"""`serial`: a leg, wrist or hand whose motors act through loops, as a serial robot with maps.

Controllers and learned policies want joints; the firmware has motors, and between them is a
linkage. The way through it is in `linkage_motion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import ArrayLike

from ..assembly.assemble import assemble
from ..assembly.search import Problem, jacobian_rank, null_space, velocity_mask
from ..boundary.arguments import flat_numbers, public
from ..boundary.marks import Array, Indices
from ..boundary.values import forward, stored_fields
from ..errors import BadValue, listed
from ..linalg.box import Bounds
from ..model.description import Coupling
from ..model.mechanism import Mechanism, build, require_robot
from ..model.without_linkage import Linkage, find_linkage, without_linkage
from ..tables.number_format import number, numbers
from ..tables.report import Notes, Report, Reported, Table
from ..tolerances import AT_LIMIT, LINKAGE_FIT, SAME
from .joint_axes import JointAxes, Limits
from .linkage_motion import LEAP, Axes, LinkageMotion
from .twin_pose import TwinPose

if TYPE_CHECKING:
    from .motor_map import SerialMap

_TURN = np.pi
"""Range of a hinge whose file has none, both ways [rad]."""
_RAYS = {1: 2, 2: 9, 3: 4}
"""Poses along an edge of the box of positions, by its dimension, to which it is looked."""
_ROOM = 0.1
"""Part of the range of joints that follow by which formulas that are not exact may pass it."""
_DEGREE = 4
"""Of polynomials of joints that follow: as many as MJCF has."""


@public
@dataclass(frozen=True, eq=False)
class SerialTwin(Reported):
    """A robot without the linkage that moves some of its joints, and the way through the linkage.

    Args:
        looped: the robot with its loops.
        robot: the robot without the linkage: its mass is on the bodies that carry it, the joints
            are actuated, their armature, ranges, torques and speeds are those of the motors.
        joints: names of the k joints.
        motors: names of the k motors.
        followers: names of further joints that follow them.
        ranges: lowest and highest position of each joint [rad, m], shape (k, 2), within which
            everything holds.
        ends: what is wrong beyond the ranges, "" if they are those of the file.
        home: configuration of the looped robot to which ``regularity`` refers, shape (nq,).
        margin: least ``regularity`` within the ranges.
        torques: limits of the motors [N m, N].
        speeds: limits of the motors [rad/s, m/s].
    """

    looped: Mechanism
    robot: Mechanism
    joints: tuple[str, ...]
    motors: tuple[str, ...]
    followers: tuple[str, ...]
    ranges: Array
    ends: str
    home: Array
    margin: float
    torques: Bounds
    speeds: Bounds

    __getstate__ = stored_fields

    # -- poses ------------------------------------------------------------------------------------

    def at_joints(self, positions: ArrayLike | Mapping[str, float]) -> TwinPose:
        """The pose at positions of the joints.

        Args:
            positions: by name, or in the order of ``joints`` [rad, m], shape (k,).

        Raises:
            BadValue: they are beyond the ranges, or near a singular pose.
        """
        return self._reach(positions, self.home)

    def at_motors(self, positions: ArrayLike | Mapping[str, float]) -> TwinPose:
        """The pose at positions of the motors, on the branch of assemblies of the home.

        Args:
            positions: by name, or in the order of ``motors`` [rad, m], shape (k,).

        Raises:
            BadValue: the joints would be beyond the ranges, or near a singular pose.
        """
        motion, goal = self.motion, self._positions(positions, self.motors, "motor")
        q, _, problem = motion.lead(goal, motion.motors)
        if problem:
            raise BadValue(f"on the way to these positions of the motors {problem}")
        pose = self.at_joints(q[motion.joints.q])
        if np.abs(pose.motors - goal).max() > LEAP:
            raise BadValue("these positions of the motors belong to another branch of assemblies")
        return pose

    def poses(self, count: int = 5) -> tuple[TwinPose, ...]:
        """Poses on a grid over the ranges, ``count`` per joint, the last joint changing first."""
        return self.along(product(*(np.linspace(low, high, count) for low, high in self.ranges)))

    def along(self, positions: Iterable[ArrayLike]) -> tuple[TwinPose, ...]:
        """Poses one after another, see `at_joints`, each led from the one before it."""
        poses = list[TwinPose]()
        for goal in positions:
            poses.append(self._reach(goal, poses[-1].q if poses else self.home))
        return tuple(poses)

    # -- what is made of it -----------------------------------------------------------------------

    def fit(self, tolerance: float = LINKAGE_FIT) -> SerialMap:
        """The maps as polynomials, functions for NumPy and JAX, with a bound on their error.

        Args:
            tolerance: largest error of positions [rad, m]; of inertia, over its largest entry, a
                hundred times as much.
        """
        fitted: SerialMap = forward("dynamics.motor_fit", "fit_serial", self, tolerance)
        return fitted

    def save(self, path: str | Path, *, tolerance: float = LINKAGE_FIT) -> Path:
        """Write the robot without loops and, beside it, the maps as JSON.

        Args:
            path: ``.urdf`` or, for MuJoCo, ``.xml``; the maps go to ``<name>.serial.json``.
            tolerance: see `fit`.

        Returns:
            The path.
        """
        written: Path = forward("interop.serial_files", "save_serial", self, path, tolerance)
        return written

    def table(self, count: int = 5) -> Report:
        """Motors, Jacobian, inertia and regularity on a grid of poses."""
        pairs = [*product(range(len(self.joints)), repeat=2)]
        heads = [*(f"joint | {name}" for name in self.joints)]
        heads += [f"motor | {name}" for name in self.motors]
        heads += [f"d motor / d joint | {i + 1}{j + 1}" for i, j in pairs]
        heads += [f"inertia | {i + 1}{j + 1}" for i, j in pairs if j >= i]
        rows = []
        for x in self.poses(count):
            cells = numbers([*x.joints]) + numbers([*x.motors]) + numbers([*x.jacobian.ravel()])
            cells += [f"{x.inertia[i, j]:.4g}" for i, j in pairs if j >= i]
            rows.append([*cells, number(x.regularity, 2)])
        title = f"Serial twin of '{self.looped.name}'"
        table = Table.of("Over the ranges, in SI units", (*heads, "regularity"), rows)
        return Report.of(title, [table])

    def __rich__(self) -> Report:
        own = self.home_pose.inertia.diagonal()
        limits = zip(self.joints, self.ranges, own, self.torque_box, self.speed_box, strict=True)
        rows = [
            [name, *numbers(ends), *(f"{x:.4g}" for x in values)] for name, ends, *values in limits
        ]
        heads = ("<joint", "range | from", "range | to", "inertia added at home", "torque", "speed")
        table = Table.of("Joints, in SI units", heads, rows)
        notes = [f"motors: {listed(self.motors)}"]
        notes += [f"follow: {listed(self.followers)}"] if self.followers else []
        notes += [f"beyond the ranges {self.ends}"] if self.ends else []
        return Report.of(f"Serial twin of '{self.looped.name}'", [table, Notes.of("", notes)])

    @cached_property
    def home_pose(self) -> TwinPose:
        """The pose at home."""
        return self._pose(self.home)

    @cached_property
    def torque_box(self) -> Array:
        """Torques of the joints [N m, N] that all corners of this box allow, shape (k,)."""
        return _box(self.torques, [np.asarray(np.linalg.inv(x.jacobian.T)) for x in self.grid])

    @cached_property
    def speed_box(self) -> Array:
        """Speeds of the joints [rad/s, m/s] that all corners of this box allow, shape (k,)."""
        return _box(self.speeds, [x.jacobian for x in self.grid])

    @cached_property
    def grid(self) -> tuple[TwinPose, ...]:
        """Poses over the ranges, of which limits are taken."""
        return self.poses(5 if len(self.joints) < 3 else 3)

    # -- the way through the linkage --------------------------------------------------------------

    @cached_property
    def linkage(self) -> Linkage:
        """What is not in the serial robot."""
        return find_linkage(self.looped, (*self.joints, *self.followers))

    @cached_property
    def motion(self) -> LinkageMotion:
        """The way through the linkage."""
        names = self.joints, self.motors, self.followers
        return LinkageMotion(self.looped, names, self.linkage, self.home, self.margin)

    def _pose(self, q: Array) -> TwinPose:
        return self.motion.pose(q, self.torques, self.speeds)

    def _positions(
        self, given: ArrayLike | Mapping[str, float], names: Sequence[str], kind: str
    ) -> Array:
        if isinstance(given, Mapping):
            if set(given) != set(names):
                raise BadValue(f"the {kind}s of the twin are {listed(names)}; give each of them")
            given = [given[name] for name in names]
        return flat_numbers(given, f"the positions of the {kind}s {listed(names)}", len(names))

    def _reach(self, positions: ArrayLike | Mapping[str, float], start: Array) -> TwinPose:
        """See `at_joints`; led from an assembly within the ranges."""
        y = self._positions(positions, self.joints, "joint")
        low, high = self.ranges.T
        for name, x, a, b in zip(self.joints, y, low, high, strict=True):
            if not a - AT_LIMIT <= x <= b + AT_LIMIT:
                why = f", where {self.ends}" if self.ends else ""
                raise BadValue(
                    f"joint '{name}' at {x:.6g} is beyond the range of the twin, {a:.6g} to "
                    f"{b:.6g}{why}"
                )
        q, _, problem = self.motion.lead(y, self.motion.joints, start)
        if problem:
            raise BadValue(f"at {self._shown(y)} {problem}")
        return self._pose(q)

    def _shown(self, y: Array) -> str:
        return ", ".join(f"{name} = {x:.4g}" for name, x in zip(self.joints, y, strict=True))


# -- making one ----------------------------------------------------------------------------------


@public
def serial(
    robot: Mechanism,
    joints: Sequence[str],
    *,
    motors: Sequence[str] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    start: ArrayLike | None = None,
    margin: float = 0.3,
    torques: Limits | None = None,
    speeds: Limits | None = None,
) -> SerialTwin:
    """The serial twin of a robot whose motors move some joints through loops.

    Args:
        robot: the mechanism with its loops.
        joints: names of the joints, hinges and slides, that the serial robot is to have: as many as
            there are motors, then, with one motor, those that follow it.
        motors: names of the driven joints; by default those of the file that these loops move.
        ranges: lowest and highest position by joint [rad, m]; by default those of the file, drawn
            in so far, of several joints alike, that nothing is singular or beyond a limit.
        start: configuration from which loops are closed at home, shape (nq,); neutral by default.
        margin: least regularity, from 1 at home to 0 in a singular pose.
        torques: limits of motors [N m, N] by name, instead of those of the file.
        speeds: limits of motors [rad/s, m/s] by name, instead of those of the file.

    Raises:
        BadValue: joints and motors do not determine each other, or not all over the ranges.
    """
    require_robot(robot)
    if not 0.0 < margin < 1.0:
        raise BadValue(f"the margin is {margin:g}; it lies between 0 and 1")
    linkage, home = find_linkage(robot, Axes.of(robot, joints).names), assemble(robot, start)
    if motors is None:
        if robot.description.actuated is None:
            raise BadValue(f"the file of robot '{robot.name}' names no motors; give motors=[...]")
        motors = [name for name in robot.actuated if name in linkage.depending]
    driven = Axes.of(robot, motors)
    if strangers := [name for name in driven.names if name not in linkage.depending]:
        raise BadValue(f"motor '{strangers[0]}' moves none of {listed(joints)}; leave it out")
    leading = _independent(robot, linkage, home, (joints, driven.names))
    axes = JointAxes(robot, driven.names)
    limits = axes.limits("effort", torques or {}), axes.limits("velocity", speeds or {})
    followers = tuple(name for name in joints if name not in leading)
    box = np.zeros((len(leading), 2))
    twin = SerialTwin(
        robot, robot, leading, driven.names, followers, box, "", home, margin, *limits
    )
    if problem := twin.motion.problem(home, twin.motion.motions(home)):
        raise BadValue(f"at home {problem}; give another start=")
    box, ends = _ranges(twin, ranges)
    twin = replace(twin, ranges=box, ends=ends)
    return replace(twin, robot=_serial_robot(twin))


def _independent(
    robot: Mechanism, linkage: Linkage, home: Array, names: tuple[Sequence[str], Sequence[str]]
) -> tuple[str, ...]:
    """The first joints that determine all others, as many as there are motors."""
    mask = velocity_mask(robot, linkage.depending)
    free = null_space(Problem.closure(robot).jacobian(home)[:, mask])
    T = np.zeros((robot.nv, free.shape[1]))
    T[mask] = free
    joints, motors = (Axes.of(robot, x) for x in names)
    leading = list[int]()
    for k in range(len(joints.names)):
        rows = T[joints.v[[*leading, k]]]
        if jacobian_rank(rows) == len(rows):
            leading.append(k)
    chosen = tuple(joints.names[k] for k in leading)

    def rank(*columns: Indices) -> int:
        return jacobian_rank(T[np.concatenate(columns)])

    both = rank(joints.v, motors.v)
    if not rank(motors.v) == len(motors.names) == len(chosen) == both:
        raise BadValue(
            f"motors {listed(motors.names) or 'none'} and joints {listed(joints.names)} do not "
            f"determine each other: {rank(motors.v)} and {len(chosen)} of them move independently, "
            f"{both} all together; name other joints=, motors=, or another start="
        )
    if len(chosen) > 1 and len(chosen) < len(joints.names):
        others = [name for name in joints.names if name not in chosen]
        raise BadValue(f"joints {listed(others)} follow several others; leave them out")
    return chosen


def _ranges(twin: SerialTwin, given: Mapping[str, tuple[float, float]] | None) -> tuple[Array, str]:
    """Ranges within which rays from home meet nothing, and what is beyond."""
    axes, model, k = twin.motion.joints, twin.looped.model, len(twin.joints)
    box = np.column_stack([model.lowerPositionLimit[axes.q], model.upperPositionLimit[axes.q]])
    turns = ~twin.looped.is_translation[axes.v]
    box[turns] = box[turns].clip(-_TURN, _TURN)
    for name, ends in (given or {}).items():
        if name not in twin.joints:
            raise BadValue(f"'{name}' is none of the joints {listed(twin.joints)} of the twin")
        box[twin.joints.index(name)] = ends
    for name, (low, high) in zip(twin.joints, box, strict=True):
        if not (np.isfinite(high - low) and low < high):
            raise BadValue(
                f"joint '{name}' has no range; give it: ranges={{{name!r}: (low, high)}}"
            )
    middle = twin.home[axes.q].clip(*box.T)
    parts, problem, last = np.ones((k, 2)), "", _RAYS.get(k, 3) - 1
    for place in np.array([*product(range(last + 1), repeat=k)]):
        if not np.isin(place, (0, last)).any():
            continue  # not at the surface
        corner = box[:, 0] + place / last * np.ptp(box, axis=1)
        # Both ends of one joint are drawn in by themselves, a box of several as a whole.
        side = (0, int(place[0] > 0)) if k == 1 else ...
        goal = middle + parts[side].min() * (corner - middle)
        _, reached, wrong = twin.motion.lead(goal, axes)
        if wrong and given is not None:
            raise BadValue(f"on the way to {twin._shown(corner)} {wrong}; give less in ranges=")
        parts[side] *= reached
        problem = wrong or problem
    return middle[:, None] + parts * (box - middle[:, None]), problem


def _serial_robot(twin: SerialTwin) -> Mechanism:
    """The robot without the linkage, with the armature, ranges and limits that it gave."""
    fields, box = dict[str, dict[str, tuple[float, ...]]](), (twin.torque_box, twin.speed_box)
    inertia, joints = twin.home_pose.inertia.diagonal(), twin.looped.description.joints
    for name, added, ends, *limits in zip(twin.joints, inertia, twin.ranges, *box, strict=True):
        own = sum(next(joint.armature for joint in joints if joint.name == name))
        values = (added + own, *ends, *limits)
        keys = ("armature", "lower", "upper", "effort", "velocity")
        fields[name] = {key: (float(value),) for key, value in zip(keys, values, strict=True)}
    followers = [_follower(twin, k) for k in range(len(twin.followers))]
    for coupling in followers:
        line = Polynomial(coupling.polynomials[0])(0.0) + Polynomial(coupling.polynomials[1])
        travel = -line(np.linspace(twin.ranges[0, 0], twin.ranges[0, 1], 101))
        low, high, room = travel.min(), travel.max(), _ROOM * np.ptp(travel)
        fields[coupling.joints[0]] = {"lower": (float(low - room),), "upper": (float(high + room),)}
    changed = without_linkage(twin.looped, twin.linkage, twin.home, fields, followers)
    return build(changed, kinematics_only=True)


def _follower(twin: SerialTwin, k: int) -> Coupling:
    """A joint that follows, as a polynomial of the least degree that is exact, or the highest."""
    low, high = twin.ranges[0]
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * (np.arange(9) + 0.5) / 9)
    values = np.array([pose.followers[k] for pose in twin.along(nodes[:, None])])
    for degree in range(1, _DEGREE + 1):
        fitted = Chebyshev.fit(nodes, values, degree, domain=[low, high])
        if np.abs(fitted(nodes) - values).max() < SAME:
            break
    terms = tuple(-float(c) for c in fitted.convert(kind=Polynomial).coef)
    name, leader = twin.followers[k], twin.joints[0]
    if degree == 1:
        return Coupling.linear(f"{name}:mimic", name, leader, -terms[1], -terms[0])
    return Coupling(f"{name}:follows", (name, leader), ((0.0, 1.0), terms))


def _box(bounds: Bounds, maps: Sequence[Array]) -> Array:
    """Largest box that maps take into bounds, with edges like what each could do alone."""
    most = np.minimum(-bounds.low, bounds.high)
    if not (np.isfinite(most).all() and most.min() > 0.0):
        return np.full(len(most), 0.0 if most.min() <= 0.0 else np.inf)
    with np.errstate(divide="ignore"):  # where a motor has no part in a joint
        alone = np.min([(most[:, None] / np.abs(A)).min(axis=0) for A in maps], axis=0)
    return np.asarray(alone * min(float((most / (np.abs(A) @ alone)).min()) for A in maps))
