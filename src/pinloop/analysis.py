"""From states to numbers: energy balance, closure, momenta, reactions. Never steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from .constraints import Constraints
from .dynamics import EquationsOfMotion
from .errors import UnknownName
from .mechanism import Mechanism
from .saddle import Saddle

__all__ = [
    "EnergyBalance",
    "Momenta",
    "Reaction",
    "closure_residuals",
    "energy_balance",
    "momenta",
    "reactions",
]

Array = NDArray[np.float64]
Dense = Callable[[float], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class EnergyBalance:
    """Energies and work over time [J].

    Args:
        t: times, shape (k,).
        kinetic: kinetic energy.
        potential: potential energy of gravity.
        stored: energy stored in each conservative force.
        work: work done on the robot by each other force, and by moving rows, since the start.
    """

    t: Array
    kinetic: Array
    potential: Array
    stored: dict[str, Array]
    work: dict[str, Array]

    @property
    def total(self) -> Array:
        """Kinetic, potential and stored energy together."""
        return np.asarray(self.kinetic + self.potential + sum(self.stored.values()))

    @property
    def error(self) -> Array:
        """What the balance misses: total energy less its start and the work done."""
        return np.asarray(self.total - self.total[0] - sum(self.work.values()))


@dataclass(frozen=True, eq=False)
class Momenta:
    """Momenta over time.

    Args:
        t: times, shape (k,).
        generalized: momenta ``M v`` conjugate to the joint velocities, shape (k, nv).
        linear: linear momentum in the world [kg m/s], shape (k, 3).
        angular: angular momentum about the centre of mass in world axes [kg m^2/s], shape (k, 3).
    """

    t: Array
    generalized: Array
    linear: Array
    angular: Array


@dataclass(frozen=True, eq=False)
class Reaction:
    """Wrench in a loop joint over time: what body B feels from body A.

    Args:
        t: times, shape (k,).
        frame: frame in whose origin and axes it is given.
        force: shape (k, 3) [N].
        torque: shape (k, 3) [N m].
        determined: whether it is unique, shape (k,); where rows are redundant, it is the smallest.
    """

    t: Array
    frame: str
    force: Array
    torque: Array
    determined: NDArray[np.bool_]


def energy_balance(
    equations: EquationsOfMotion, t: Array, q: Array, v: Array, dense: Dense
) -> EnergyBalance:
    """Energies at the given states, and work between them by Gauss' quadrature on dense output."""
    states = [equations.energies(*state) for state in zip(t, q, v, strict=True)]
    stored = {name: np.array([s[2][name] for s in states]) for name in states[0][2]}
    names = list(equations.powers(t[0], q[0], v[0]))
    work = {name: np.zeros(len(t)) for name in names}
    if names:
        nodes, weights = np.polynomial.legendre.leggauss(4)
        for k in range(1, len(t)):
            half = 0.5 * (t[k] - t[k - 1])
            done = dict.fromkeys(names, 0.0)
            for node, weight in zip(nodes, weights, strict=True):
                time = t[k - 1] + half * (1 + node)
                for name, power in equations.powers(time, *dense(time)).items():
                    done[name] = done.get(name, 0.0) + weight * half * power
            for name in names:
                work[name][k] = work[name][k - 1] + done[name]
    return EnergyBalance(
        t,
        np.array([s[0] for s in states]),
        np.array([s[1] for s in states]),
        stored,
        work,
    )


def closure_residuals(robot: Mechanism, q: Array) -> Array:
    """Norm of the closure residual of the full rows per configuration, shape (k,), m and rad."""
    rows = Constraints(robot, full=True)
    return np.array([float(np.linalg.norm(rows.residual(place))) for place in q])


def momenta(equations: EquationsOfMotion, t: Array, q: Array, v: Array) -> Momenta:
    """Generalized and centroidal momenta at the given states."""
    model = equations.robot.model
    data = model.createData()
    generalized, centroidal = [], []
    for place, rate in zip(q, v, strict=True):
        generalized.append(equations.mass(place) @ rate)
        momentum = pin.computeCentroidalMomentum(model, data, place, rate)
        centroidal.append(np.array(momentum.vector))
    table = np.array(centroidal)
    return Momenta(t, np.array(generalized), table[:, :3], table[:, 3:])


def reactions(
    equations: EquationsOfMotion, loop: str, frame: str | None, t: Array, q: Array, v: Array
) -> Reaction:
    """Wrench in a loop joint at the given states, at the origin and in the axes of ``frame``."""
    robot, rows = equations.robot, equations.rows.loops
    joints = {joint.name: joint for joint in robot.loops}
    if loop not in joints:
        raise UnknownName("loop joint", loop, joints, robot.name)
    joint = joints[loop]
    target = robot.frame_id(frame or f"{loop}/B")
    data, full = robot.model.createData(), Constraints(robot, full=True)
    wrenches, unique = [], []
    for time, place, rate in zip(t, q, v, strict=True):
        motion = equations.motion(time, place, rate)
        part = rows.rows_of[loop]
        pin.framesForwardKinematics(robot.model, data, place)
        wrench = pin.Force(equations.loop_wrench(place, loop, motion.multipliers[part]))
        wrenches.append(data.oMf[target].actInv(data.oMf[joint.frame_b].act(wrench)).vector.copy())
        # Regularization drops rows because they are redundant: that makes no reaction unique.
        saddle = Saddle(equations.mass(place), full.jacobian(place))
        unique.append(bool(saddle.determined[full.rows_of[loop]].all()))
    table = np.array(wrenches).reshape(-1, 6)
    name = frame or f"{loop}/B"
    return Reaction(t, name, table[:, :3], table[:, 3:], np.array(unique, dtype=bool))
