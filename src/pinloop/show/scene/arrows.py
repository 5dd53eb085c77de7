"""Reactions of loop joints and locks as arrows: where they start, and forces in world axes.

Numbers over time only; how an arrow is drawn, and how long, is decided by the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ...errors import UnknownName
from ...model.mechanism import Mechanism
from ...model.tree import coordinate_names
from ...model.workspace import create_data
from ...simulation.analysis import lock_reactions, reactions
from ...simulation.trajectory import Trajectory
from ...tolerances import NO_LOAD
from .motion import states_at

__all__ = ["Arrow", "arrows_of", "force_names", "round_scale"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force or a moment over time.

    Args:
        name: the loop joint or lock that it belongs to.
        moment: whether it is a moment [N m] and no force [N].
        start: where it starts, in the world [m], shape (k, 3).
        vector: in world axes [N, N m], shape (k, 3).
        unique: whether it is the only solution at every time; the smallest one otherwise.
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
    """Names of the reactions that are asked for.

    Args:
        run: the motion.
        names: loop joints, and locks as ``"lock:<joint>"``; True for all there are.

    Raises:
        UnknownName: the robot has no such loop joint, or nothing was locked by that name.
    """
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
    """Reactions of a run as arrows.

    Args:
        run: the motion.
        t: times [s], shape (k,).
        names: what `force_names` gives.
        moments: whether moments in loop joints are wanted too; those of locks always are.

    Returns:
        Per loop joint what its body B feels from its body A, at the origin of frame B; per lock
        what it exerts on its joint, at the joint.
    """
    if not names:
        return ()
    robot = run.robot
    states = run(t)
    of_state = run.equations
    equations = [of_state[k] for k in states_at(run, t)]
    arrows: list[Arrow] = []
    for name in names:
        if name.startswith("lock:"):
            lock = lock_reactions(equations, name, t, states.q, states.v)
            joint = name.removeprefix("lock:")
            effort = _by_coordinate(robot, joint, lock.labels, lock.effort)
            start, force, moment = _joint_wrench(robot, joint, states.q, effort)
            unique, wanted = bool(lock.determined.all()), True
        else:
            given = reactions(equations, robot, name, None, t, states.q, states.v)
            places = _frames(robot, robot.frame_id(f"{name}/B"), states.q)
            start = np.array([place.translation for place in places])
            turns = np.array([place.rotation for place in places])
            force, moment = (
                np.einsum("kij,kj->ki", turns, part) for part in (given.force, given.torque)
            )
            unique, wanted = bool(given.determined.all()), moments
        pair = [Arrow(name, False, start, force, unique)]
        pair += [Arrow(name, True, start, moment, unique)] if wanted else []
        arrows += pair
    least = {kind: NO_LOAD * _largest(arrows, kind) for kind in (False, True)}
    return tuple(arrow for arrow in arrows if arrow.largest > least[arrow.moment])


def round_scale(largest: float, length: float) -> float:
    """Newton (or newton metre) per metre: a round number that draws ``largest`` up to ``length``.

    Args:
        largest: largest magnitude.
        length: length of its arrow at most [m].
    """
    wanted = largest / length
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(power * min(step for step in (1, 2, 5, 10) if step * power >= wanted))


def _largest(arrows: Iterable[Arrow], moment: bool) -> float:
    return max((arrow.largest for arrow in arrows if arrow.moment == moment), default=0.0)


def _by_coordinate(robot: Mechanism, joint: str, labels: tuple[str, ...], effort: Array) -> Array:
    """Efforts of a lock by velocity coordinate of its joint, shape (k, nv of the joint)."""
    names = coordinate_names(robot.tree, joint)
    values = np.zeros((len(effort), robot.coordinates(joint).nv))
    for column, label in enumerate(labels):
        axis = label.removeprefix(f"lock:{joint}").removeprefix(".")
        values[:, names.index(axis) if axis else 0] = effort[:, column]
    return values


def _joint_wrench(robot: Mechanism, joint: str, q: Array, effort: Array) -> tuple[Array, ...]:
    """Start [m], force [N] and moment [N m] in the world of the least wrench with given efforts.

    A wrench ``w`` has the effort ``S' w`` on a joint with motions ``S``: the least one that has
    the effort ``tau`` is ``S (S' S)^-1 tau``.
    """
    model, at = robot.model, robot.coordinates(joint)
    data = create_data(model)
    rows = []
    for place, tau in zip(q, effort, strict=True):
        pin.computeJointJacobians(model, data, place)
        jacobian = pin.getJointJacobian(model, data, at.index, pin.LOCAL).reshape(6, -1)
        S = jacobian[:, at.v]
        wrench = S @ np.linalg.solve(S.T @ S, tau)
        turn = data.oMi[at.index].rotation
        rows.append((data.oMi[at.index].translation, turn @ wrench[:3], turn @ wrench[3:]))
    return tuple(np.array([row[k] for row in rows]).reshape(-1, 3) for k in range(3))


def _frames(robot: Mechanism, frame: int, q: Array) -> list[pin.SE3]:
    """Placements of a frame in the world."""
    data = create_data(robot.model)
    frames = []
    for place in q:
        pin.forwardKinematics(robot.model, data, place)
        frames.append(pin.updateFramePlacement(robot.model, data, frame).copy())
    return frames
