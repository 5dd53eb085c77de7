"""What is taken for a stop where nothing is said: a pose, full speed, a brakes file.

Everything chosen here comes with words for it, so that a report can say what was assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ...assembly.assemble import assemble, consistent_velocity
from ...assembly.search import Problem, null_space
from ...boundary.marks import Array
from ...errors import BadValue, InconsistentVelocity
from ...model.mechanism import Mechanism
from ...model.workspace import create_data
from ...tables.number_format import joint_value, units_of
from ...tolerances import MOTION_SHARE, RANK, SAME
from ..brakes.brakes import Brakes
from ..brakes.template import driven_joints, position_range
from .prepared_robot import tool_of

_MARGIN = 0.1
"""Part of its range that a joint is kept away from its limits by."""
_SPEED = 1.0
"""Full speed of a joint whose file does not tell it [rad/s, m/s]."""
_PULL = 1e-3
"""Gravity that works less than this part of the largest power at any joint does not count."""


# -- pose ---------------------------------------------------------------------------------------


def default_pose(
    robot: Mechanism, fixed: Mapping[str, ArrayLike] | None = None
) -> tuple[Array, str]:
    """A configuration that is assembled, and how it was chosen.

    Joints are at zero, or as near to it as a tenth of their range before their limits; then the
    loops are closed by the least change.

    ``fixed``: values by joint that are kept [rad, m].

    Raises:
        LoopNotClosed: there is none with these values.
    """
    start = {
        name: _inside(*position_range(robot, name))
        for name in robot.joints
        if robot.coordinates(name).nq == 1
    }
    fixed = dict(fixed or {})
    q = assemble(robot, robot.configuration(start), fixed)
    rest = "all other joints" if fixed else "all joints"
    loops = ", adjusted so that the loops close" if robot.loops or robot.couplings else ""
    words = f"assumed: {rest} at zero, or as close to zero as their limits allow{loops}"
    if not fixed:
        return q, words
    given = ", ".join(f"{name} at {_written(robot, name, v)}" for name, v in fixed.items())
    return q, given if len(fixed) == len(robot.joints) else f"{given}; {words}"


def _inside(low: float, high: float) -> float:
    """What is nearest to zero between two limits, with a margin where both are finite."""
    if np.isfinite(low) and np.isfinite(high):
        margin = _MARGIN * (high - low)
        low, high = low + margin, high - margin
    return min(max(0.0, low), high)


def _written(robot: Mechanism, name: str, value: ArrayLike, per: str = "") -> str:
    numbers = ", ".join(f"{x:.4g}" for x in np.atleast_1d(np.asarray(value, dtype=float)))
    if robot.coordinates(name).nv > 1:
        return f"({numbers})"
    return f"{numbers} {units_of(robot, name).si}{per}"


# -- speed --------------------------------------------------------------------------------------


def default_velocity(
    robot: Mechanism,
    q: Array,
    fraction: float | None = 1.0,
    given: Mapping[str, ArrayLike] | None = None,
) -> tuple[Array, str]:
    """A velocity that the loops allow, and how it was chosen.

    All actuated joints move with a fraction of their speed limits, 1 rad/s or 1 m/s where there
    is none: in the direction in which gravity pulls, which makes the stop longer; where gravity
    does nothing, away from the nearer position limit. If the loops do not allow all of it, it is
    the nearest motion that they allow, and no joint moves faster than asked for.

    ``q``: an assembled configuration, shape (nq,). ``fraction``: of the speed limits; None: only
    what is given moves, and what the loops move. ``given``: rates of joints that move otherwise
    [rad/s, m/s]; kept as they are.

    Returns:
        The velocity, shape (nv,), and words for it.

    Raises:
        InconsistentVelocity: the loops do not allow what is given.
        BadValue: the robot has no joint that could move by itself.
    """
    given = dict(given or {})
    names = [] if fraction is None else [n for n in driven_joints(robot) if n not in given]
    if not names and not given:
        raise BadValue(
            f"robot '{robot.name}' has no actuated joint with one degree of freedom; say which "
            "joints move, for example --speed NAME=0.5"
        )
    part = 1.0 if fraction is None else fraction
    limits = {name: _limit(robot, name) for name in names}
    directions = _directions(robot, q, names)
    rates = {name: part * directions[name] * (limits[name] or _SPEED) for name in names}
    words = [f"{name} at {_written(robot, name, rate, '/s')}" for name, rate in given.items()]
    if names:
        words += _speed_words(part, limits, others=bool(given))
    if given:
        return consistent_velocity(robot, q, {**rates, **given}), "; ".join(words)
    changed = "changed to what the loops and the limits of all joints allow"
    try:
        v = consistent_velocity(robot, q, rates)
    except InconsistentVelocity:
        v = _nearest(robot, q, rates)
        words.append(changed)
    excess = _excess(robot, v, part)
    if excess > 1.0 + SAME:
        v = v / excess
        words.append(changed)
    return v, "; ".join(dict.fromkeys(words))


def _speed_words(fraction: float, limits: Mapping[str, float | None], *, others: bool) -> list[str]:
    words = [
        f"{'all other' if others else 'all'} motors at {100 * fraction:g} % of their speed limits, "
        "in the direction in which gravity pulls, else away from the nearer limit"
    ]
    unknown = [name for name, limit in limits.items() if limit is None]
    if unknown:
        words.append(f"assumed for {', '.join(unknown)}: a limit of {_SPEED:g} rad/s or m/s")
    return words


def _limit(robot: Mechanism, joint: str) -> float | None:
    """Speed limit of a joint with one axis; None if its file does not tell one."""
    limit = float(robot.model.upperVelocityLimit[robot.coordinates(joint).v.start])
    return limit if np.isfinite(limit) and limit > 0 else None


def _directions(robot: Mechanism, q: Array, names: list[str]) -> dict[str, float]:
    """The sign of the motion of each joint."""
    data = create_data(robot.model)
    load = np.asarray(pin.computeGeneralizedGravity(robot.model, data, q))
    columns = [robot.coordinates(name).v.start for name in names]
    # Power of gravity in the motion with unit speed at one joint and none at the other ones.
    motions = np.eye(robot.nv)[:, columns]
    if robot.loops or robot.couplings:
        free = _free(robot, q)
        motions = free @ np.linalg.pinv(free[columns], rcond=RANK)
    pull = -load @ motions
    weight = float(np.abs(pull).max(initial=0.0))
    signs = {}
    for name, power in zip(names, pull, strict=True):
        if abs(power) > _PULL * weight and weight > 0:
            signs[name] = float(np.sign(power))
        else:
            signs[name] = _away(robot, q, name)
    return signs


def _away(robot: Mechanism, q: Array, name: str) -> float:
    """The sign of the motion away from the nearer limit; positive between two."""
    (low, high), here = position_range(robot, name), joint_value(robot, name, q)
    return -1.0 if high - here < here - low else 1.0


def _free(robot: Mechanism, q: Array) -> Array:
    """Velocities that the loops allow, as columns, shape (nv, m)."""
    problem = Problem.closure(robot)
    return np.asarray(problem.column_scale[:, None] * null_space(problem.jacobian(q)))


def _nearest(robot: Mechanism, q: Array, rates: Mapping[str, float]) -> Array:
    """The motion that the loops allow whose rates are nearest to some, as parts of them."""
    columns = [robot.coordinates(name).v.start for name in rates]
    wanted = np.array(list(rates.values()))
    free = _free(robot, q)
    parts, *_ = np.linalg.lstsq(free[columns] / wanted[:, None], np.ones(len(wanted)), rcond=RANK)
    v = np.asarray(free @ parts)
    if not np.abs(v[columns] / wanted).max(initial=0.0) > MOTION_SHARE:
        raise BadValue(
            f"the loops of robot '{robot.name}' let no joint move in the direction of gravity; say "
            "how it moves, for example --speed NAME=0.5"
        )
    return v


def _excess(robot: Mechanism, v: Array, fraction: float) -> float:
    """How much faster than a fraction of its limit the fastest joint is, if loops move joints."""
    if fraction == 0 or not (robot.loops or robot.couplings):
        return 0.0
    over = [0.0]
    for name in robot.joints:
        at = robot.coordinates(name)
        limit = _limit(robot, name) if at.nv == 1 else None
        if limit is not None:
            over.append(abs(float(v[at.v.start])) / (limit * fraction))
    return max(over)


# -- brakes -------------------------------------------------------------------------------------


def brakes_beside(path: str | Path) -> Path | None:
    """The brakes file beside a robot file, ``<robot>.brakes.yaml``, if there is one."""
    for suffix in (".brakes.yaml", ".brakes.yml"):
        beside = Path(path).with_suffix(suffix)
        if beside.is_file():
            return beside
    return None


def default_brakes(robot: Mechanism, path: str | Path, payload: float = 0.0) -> tuple[Brakes, bool]:
    """Brakes from the file beside a robot file, or guessed ones; and whether there is a file.

    ``payload``: mass at the tool that guessed brakes are to hold [kg].
    """
    beside = brakes_beside(path)
    if beside is not None:
        return Brakes.from_yaml(beside), True
    loaded = robot.with_payload(tool_of(robot), payload) if payload else robot
    return Brakes.template(loaded), False
