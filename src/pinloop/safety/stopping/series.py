"""A stop over time: states, torques by what exerts them, the way of the tool, energies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .loads import energies_at
from .phase import Phase
from .prepared_robot import Drivetrain
from .result import StopResult
from .stop_equations import StopEquations
from .travel import checked_interval, point_motion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """A stop over time. Sliding joints: m and N for rad and N m.

    Torques are those at the joints. While a joint moves, ``brake`` and ``drive`` are taken before
    the losses of its gear. Where a joint stands, what holds it together is split in proportion
    to what brake, dry friction and drive could hold. ``torque`` is the sum of the three, plus
    what gears with losses take and their rotors need.

    Args:
        t: times [s], shape (k,).
        q: configurations, shape (k, nq).
        v: velocities, shape (k, nv).
        torque: of brake, friction, gear and drive together [N m], shape (k, nv).
        brake: of the brake [N m], shape (k, nv).
        friction: of bearings and gear, dry and viscous [N m], shape (k, nv).
        drive: of the drive, also when its motor is shorted [N m], shape (k, nv).
        tool: place of the tool in the world [m], shape (k, 3).
        tool_speed: its speed [m/s], shape (k,).
        kinetic: kinetic energy, rotors included [J], shape (k,).
        potential: potential energy [J], shape (k,).
    """

    t: Array
    q: Array
    v: Array
    torque: Array
    brake: Array
    friction: Array
    drive: Array
    tool: Array
    tool_speed: Array
    kinetic: Array
    potential: Array


def series_of(result: StopResult, every: float | None = 1e-3) -> Series:
    """Evaluate a stop at even times and at its end.

    Args:
        result: the stop.
        every: interval [s]; None: the states that were computed. Where something changes at once
            these have two rows with the same time, before and after; of even times it is the
            state after.
    """
    history, robot = result.history, result.robot
    stored, times = _instants(result.run.t, every)
    equations = history.equations()
    q, v = np.zeros((len(times), robot.nq)), np.zeros((len(times), robot.nv))
    torques = np.zeros((4, len(times), robot.nv))
    energies = np.zeros((2, len(times)))
    for row, (k, t) in enumerate(zip(stored.tolist(), times.tolist(), strict=True)):
        run = history.run
        inside = t != run.t[k]
        q[row], v[row] = history.step(k)(t) if inside else (run.q[k], run.v[k])
        history.enter(equations, k, inside=inside)
        torques[:, row] = _torques(equations, t, q[row], v[row])
        energies[:, row] = energies_at(equations, q[row], v[row])
    tool, speed = point_motion(robot, result.tool, q, v)
    torque, brake, friction, drive = torques
    return Series(times, q, v, torque, brake, friction, drive, tool, speed, *energies)


def _instants(stored: Array, every: float | None) -> tuple[NDArray[np.intp], Array]:
    """The stored state that each instant follows on, and the instants."""
    if every is None:
        return np.arange(len(stored)), np.asarray(stored)
    end = float(stored[-1])
    interval = checked_interval(every, end, ", or None for the states that were computed")
    # Neither accumulated nor with the last bits of a product, which nobody wants to read.
    times = np.array([round(k * interval, 12) for k in range(int(end / interval) + 2)])
    times = np.append(times[times < end], end)
    return np.searchsorted(stored, times, side="right") - 1, times


def _torques(equations: StopEquations, t: float, q: Array, v: Array) -> Array:
    """All torques together, and those of brakes, friction and drives, shape (4, nv)."""
    train, phase = equations.train, equations.phase
    sliding, solved = phase.sliding, equations.solve(t, q, v)
    engaged, way = sliding.engaged(t), sliding.direction
    brake = -way * engaged * (train.motor_brake[0] + train.joint_brake[0])
    friction = train.viscous(v) - way * train.friction(v)
    drive = train.dragged(sliding) + train.shorted(v, sliding)
    follow, stuck = phase.follow, phase.stuck & ~phase.follow
    if follow.any():
        before = train.before_gear(solved.gear_output + solved.holding_torque, way)
        drive = np.where(follow, train.driven(t, sliding, before, solved.a), drive)
    if stuck.any():
        parts = _shares(train, phase, t) * solved.holding_torque
        brake, friction, drive = (
            np.where(stuck, part, moving)
            for part, moving in zip(parts, (brake, friction, drive), strict=True)
        )
    return np.array([solved.torque, brake, friction, drive])


def _shares(train: Drivetrain, phase: Phase, t: float) -> Array:
    """What brake, dry friction and drive could hold at rest, as parts of one, shape (3, nv)."""
    sliding = phase.sliding
    brake = sliding.engaged(t) * (train.motor_brake[1] / train.efficiency + train.joint_brake[1])
    brake = np.where(phase.blocked > 0, np.inf, brake)
    powered = sliding.drives & (sliding.saturated_drive_sign == 0.0)
    drive = np.where(powered, train.drive(sliding) / train.efficiency, 0.0)
    able = np.array([brake, train.friction(np.zeros(len(brake))), drive])
    endless = np.isinf(able)
    able = np.where(endless.any(axis=0), endless.astype(float), able)
    whole = able.sum(axis=0)
    # Nothing can hold, so nothing is held: the part does not matter.
    return np.asarray(able / np.where(whole > 0, whole, 1.0))
