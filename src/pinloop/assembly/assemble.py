"""Consistent configurations and velocities: close the loops, keep what is fixed, reach targets.

Kinematics only: nothing here knows masses or forces.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from ..boundary.arguments import flat_numbers, public, require_kind, require_whole
from ..boundary.marks import Array
from ..errors import BadValue, InconsistentVelocity, LoopNotClosed, PinloopWarning
from ..model.mechanism import Mechanism, require_robot
from ..tolerances import CLOSED, COINCIDENT, CONSISTENT, CONTRADICTION, LEAST_SQUARES
from .open_loops import describe_gaps, joints_at_limits, not_closed
from .search import Problem, approach, outside_limits, search, velocity_mask

_RESTARTS, _FEW = 40, 6
"""Searches from random configurations before loops count as open, and before a drawn pose does: of
900 poses of six robots 810 could be reached, all of them after 5 such searches at most."""


@public
def assemble(
    robot: Mechanism,
    guess: ArrayLike | Mapping[str, ArrayLike] | None = None,
    fixed: Mapping[str, ArrayLike] | None = None,
    targets: Mapping[str, pin.SE3] | None = None,
    *,
    limits: bool = True,
    seed: int = 0,
) -> Array:
    """Find a configuration that closes every loop.

    Gauss-Newton steps of least change on the configuration manifold, damped and with line search;
    if they get stuck, restarts from random configurations. The first assembly found from the guess
    is the one near it. Where joints are given by name, the other actuated joints stay where they
    are, or as near to it as the loops allow.

    Args:
        robot: the mechanism.
        guess: where to start, shape (nq,), neutral by default. Or values by joint: they stay as
            given if the loops can close with them. Otherwise they become the nearest ones in the
            sense of least squares, and a `PinloopWarning` says by how much and which limits block.
        fixed: values by joint that must be kept exactly [rad, m].
        targets: placements that bodies or frames must reach in the world (inverse kinematics).
        limits: respect the joints' position limits.
        seed: seed of the restarts.

    Returns:
        The configuration, shape (nq,).

    Raises:
        LoopNotClosed: carries the configuration nearest to closed that was reached from the
            start, the residuals, and what blocks it.
    """
    require_robot(robot)
    require_whole(seed, "seed")
    fixed = dict(fixed or {})
    wanted: dict[str, ArrayLike] = {}
    start = robot.neutral
    if isinstance(guess, Mapping):
        wanted = {name: value for name, value in guess.items() if name not in fixed}
        start = robot.configuration(wanted)
    elif guess is not None:
        start = robot.checked_configuration(guess)
    start = robot.configuration(fixed, start)
    for name, pose in (targets or {}).items():
        if not isinstance(pose, pin.SE3):
            raise BadValue(f"target of '{name}' must be a pin.SE3, not {type(pose).__name__}")
    problem = Problem.closure(robot, held=tuple(fixed), targets=dict(targets or {}), limits=limits)
    holding = replace(problem, held=(*fixed, *wanted))
    _check_fixed(holding, start)
    q = _with_motors(holding, start, seed)
    if q is None and wanted:
        q = _nearest(problem, tuple(wanted), start, seed)
        if q is not None:
            text = _moved_text(problem, tuple(wanted), start, q)
            warnings.warn(text, PinloopWarning, stacklevel=3)
    if q is None:
        raise not_closed(problem, start, seed)
    return q


def reach(robot: Mechanism, pose: Mapping[str, ArrayLike]) -> Array | None:
    """As `assemble` with joints that are fixed, but without saying what blocks it."""
    problem = Problem.closure(robot, held=tuple(pose), targets={}, limits=True)
    start = robot.configuration(pose)
    beyond = outside_limits(robot, start, problem.held)
    return None if beyond else _with_motors(problem, start, seed=0, restarts=_FEW)


def _with_motors(
    problem: Problem, start: Array, seed: int, restarts: int = _RESTARTS
) -> Array | None:
    """A closed configuration with what is held; actuated joints that are not stay if they can."""
    motors = tuple(name for name in problem.robot.actuated if name not in problem.held)
    stay = bool(motors and problem.held and not problem.targets)
    if stay:
        q, error = search(replace(problem, held=(*problem.held, *motors)), start, seed, restarts=0)
        if error < CLOSED:
            return q
    q, error = search(problem, start, seed, restarts)
    if error >= CLOSED:
        return None
    return approach(problem, q, motors, start) if stay else q


def _nearest(problem: Problem, wanted: tuple[str, ...], start: Array, seed: int) -> Array | None:
    """A closed configuration with the wanted joints as near to the start as loops and limits allow.

    The search goes on from the configurations next to the start and to neutral, whichever leads
    nearer; from random ones only if neither can be closed.
    """
    robot = problem.robot
    neutral = _with_held(problem, robot.neutral, start)
    ends = [search(problem, q, seed, restarts=0) for q in (start, neutral)]
    closed = [q for q, error in ends if error < CLOSED]
    if not closed:
        q, error = search(problem, start, seed, restarts=_RESTARTS)
        if error >= CLOSED:
            return None
        closed = [q]
    nearest = min(
        (approach(problem, q, wanted, start) for q in closed),
        key=lambda q: _distance(problem, wanted, q, start),
    )
    motors = tuple(name for name in robot.actuated if name not in (*problem.held, *wanted))
    return approach(replace(problem, held=(*problem.held, *wanted)), nearest, motors, start)


def _with_held(problem: Problem, q: Array, start: Array) -> Array:
    """``q`` with the joints that are held as in the start."""
    q = np.array(q)
    for name in problem.held:
        at = problem.robot.coordinates(name).q
        q[at] = start[at]
    return q


def _distance(problem: Problem, joints: tuple[str, ...], q0: Array, q1: Array) -> float:
    """Distance of some joints in two configurations, radians and characteristic lengths."""
    change = pin.difference(problem.robot.model, q0, q1) / problem.column_scale
    return float(np.linalg.norm(change[velocity_mask(problem.robot, joints)]))


def _moved_text(problem: Problem, wanted: tuple[str, ...], start: Array, q: Array) -> str:
    """Which of the given values could not be kept, what they became, and why."""
    robot = problem.robot
    values = ", ".join(
        f"'{name}' is at {_value(robot, name, q)} instead of {_value(robot, name, start)}"
        for name in wanted
        if _distance(problem, (name,), q, start) > COINCIDENT
    )
    blocking = [name for name in joints_at_limits(problem, q) if name not in wanted]
    reason = "the loops allow no nearer ones"
    if blocking:
        reason = "blocked by the position limits of " + ", ".join(map(repr, blocking))
    return (
        f"robot '{robot.name}' cannot be assembled with the joints as given; nearest: {values}; "
        + reason
    )


@public
def consistent_velocity(
    robot: Mechanism,
    q: ArrayLike,
    rates: Mapping[str, ArrayLike] | None = None,
    *,
    twists: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """Find the velocity that has the given rates and twists and keeps every loop closed.

    What they and the loops leave free is as small as possible (radians and characteristic lengths).

    Args:
        robot: the mechanism.
        q: an assembled configuration, shape (nq,).
        rates: rates by joint [rad/s, m/s]; kept exactly.
        twists: per body or frame, the velocity of its origin [m/s] and its angular velocity
            [rad/s], in the axes of the world, shape (6,); or the former alone, shape (3,).

    Returns:
        The velocity, shape (nv,).

    Raises:
        LoopNotClosed: ``q`` is not assembled.
        InconsistentVelocity: the loops do not allow these rates and twists.
    """
    require_robot(robot)
    q = robot.checked_configuration(q)
    problem = Problem.closure(robot)
    if np.linalg.norm(problem.residual(q)) > CONSISTENT:
        raise LoopNotClosed(
            f"{describe_gaps(problem, q)}; assemble the robot first",
            q=q,
            residuals=problem.constraints.by_name(problem.constraints.residual(q)),
        )
    rates, twists = ({} if given is None else given for given in (rates, twists))
    for what, by_name in (("rates", rates), ("twists", twists)):
        require_kind(by_name, Mapping, what, "give a dict of names and values")
    scale = problem.column_scale
    moving, wanted = _twist_rows(robot, q, twists, scale)
    jacobian = np.vstack([problem.jacobian(q), moving])
    closing = len(jacobian) - len(moving)
    values = np.concatenate([np.zeros(closing), wanted])
    given, v, left = _completed(problem, rates, jacobian, values)
    largest = max(1.0, *(float(np.max(np.abs(x), initial=0.0)) for x in (given / scale, wanted)))
    if np.linalg.norm(left) > CONTRADICTION * largest:
        asked = ", ".join(f"'{name}' at {x!s}" for name, x in [*rates.items(), *twists.items()])
        gaps = np.abs(left[:closing])
        reason = "they contradict each other"
        if gaps.max(initial=0.0) > CONTRADICTION * largest:
            worst = problem.constraints.labels[int(np.argmax(gaps))]
            reason = f"row '{worst}' would open at {gaps.max():.3g} per second"
        raise InconsistentVelocity(
            f"robot '{robot.name}': the loops do not allow {asked} together; {reason}; give fewer "
            f"{'rates' if rates else 'twists'}",
            v=v,
            residual=float(np.linalg.norm(left)),
        )
    return v


@public
def consistent_acceleration(
    robot: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    accelerations: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """Find the acceleration that has the given ones of joints and keeps every loop closed.

    What they and the loops leave free is as small as possible (radians and characteristic lengths).

    Args:
        robot: the mechanism.
        q: an assembled configuration, shape (nq,).
        v: a velocity that the loops allow, shape (nv,), see `consistent_velocity`.
        accelerations: by joint [rad/s^2, m/s^2]; kept exactly.

    Returns:
        The acceleration, shape (nv,).

    Raises:
        InconsistentVelocity: the loops do not allow these accelerations.
    """
    require_robot(robot)
    q, v = robot.checked_configuration(q), robot.checked_velocity(v)
    wanted = {} if accelerations is None else accelerations
    require_kind(wanted, Mapping, "accelerations", "give a dict of names and values")
    problem = Problem.closure(robot)
    bias = problem.row_scale * problem.constraints.gamma(q, v)
    given, a, left = _completed(problem, wanted, problem.jacobian(q), -bias)
    size = max(1.0, *(float(np.abs(x).max(initial=0.0)) for x in (given, bias)))
    if np.linalg.norm(left) > CONTRADICTION * size:
        asked = ", ".join(f"'{name}' at {x!s}" for name, x in wanted.items())
        raise InconsistentVelocity(
            f"robot '{robot.name}': the loops do not allow accelerations of {asked} together; give "
            "fewer",
            v=v,
            residual=float(np.linalg.norm(left)),
        )
    return a


def _completed(
    problem: Problem, by_joint: Mapping[str, ArrayLike], jacobian: Array, values: Array
) -> tuple[Array, Array, Array]:
    """The shortest ``x`` with ``jacobian x = values`` in which some joints are given.

    Returns:
        What is given, ``x``, and by how much the equations are missed.
    """
    given, scale = problem.robot.velocity(by_joint), problem.column_scale
    free, x = ~velocity_mask(problem.robot, tuple(by_joint)), given.copy()
    missing = values - jacobian @ (given / scale)
    x[free] = scale[free] * np.linalg.lstsq(jacobian[:, free], missing, rcond=LEAST_SQUARES)[0]
    return given, x, jacobian @ (x / scale) - values


def _twist_rows(
    robot: Mechanism, q: Array, twists: Mapping[str, ArrayLike], scale: Array
) -> tuple[Array, Array]:
    """Rows on scaled velocities and their values, lengths in characteristic lengths."""
    rows, values = [np.zeros((0, robot.nv))], [np.zeros(0)]
    model, world = robot.model, pin.LOCAL_WORLD_ALIGNED
    with robot.workspace() as data:
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for name, twist in twists.items():
            frame = robot.frame_id(name)
            wanted = flat_numbers(twist, f"the twist of '{name}'")
            if len(wanted) not in (3, 6):
                raise BadValue(f"the twist of '{name}' has {len(wanted)} numbers; it takes 6, or 3")
            J = pin.getFrameJacobian(model, data, frame, world).reshape(6, -1)
            unit = np.array([robot.length] * 3 + [1.0] * 3)[: len(wanted)]
            rows.append(J[: len(wanted)] * scale / unit[:, None])
            values.append(wanted / unit)
    return np.vstack(rows), np.concatenate(values)


def _check_fixed(problem: Problem, q: Array) -> None:
    """A fixed value beyond a limit is a contradiction of the user's own."""
    if not problem.limits:
        return
    for name, value, low, high, hint in outside_limits(problem.robot, q, problem.held):
        raise BadValue(
            f"joint '{name}' is set to {value:.9g}, outside its limits [{low:.9g}, {high:.9g}]"
            f"{hint}; limits=False (--ignore-limits) ignores them"
        )


def _value(robot: Mechanism, joint: str, q: Array) -> str:
    return ", ".join(f"{x:.4g}" for x in q[robot.coordinates(joint).q])
