"""From states to numbers: energy balance, closure, momenta, reactions. Never steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from ..boundary.arguments import public
from ..boundary.marks import Array
from ..constraints.closure import Constraints
from ..dynamics import EquationsOfMotion
from ..errors import BadValue
from ..integrate import NODES, WEIGHTS
from ..linalg.saddle import Saddle
from ..model.mechanism import Mechanism

Dense = Callable[[float], tuple[Array, Array]]


@public
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
        """Balance error: total energy less its start and the work done."""
        return np.asarray(self.total - self.total[0] - sum(self.work.values()))


@public
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


@public
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


@public
@dataclass(frozen=True, eq=False)
class LockReaction:
    """What a lock holds over time.

    Args:
        t: times, shape (k,).
        labels: label of each locked degree of freedom.
        effort: torque or force of the lock on the joint, shape (k, n) [N m, N].
        determined: whether it is unique, shape (k, n).
    """

    t: Array
    labels: tuple[str, ...]
    effort: Array
    determined: NDArray[np.bool_]


def energy_balance(
    equations: Sequence[EquationsOfMotion],
    t: Array,
    q: Array,
    v: Array,
    dense: Dense,
    jumps: Mapping[int, tuple[float, float]],
) -> EnergyBalance:
    """Energies at the given states, and work between them by Gauss' quadrature on dense output.

    Jumps are the energy lost in the jump that leads to a state, and the work of prescribed motions
    in it, by index of the state.
    """
    states = [e.energies(*state) for e, *state in zip(equations, t, q, v, strict=True)]
    stored = {name: np.array([s[2].get(name, 0.0) for s in states]) for name in states[0][2]}
    work: dict[str, Array] = {
        name: np.zeros(len(t)) for name in equations[0].powers(t[0], q[0], v[0])
    }
    if jumps:
        work["impulses"] = np.zeros(len(t))
    if any(done for _, done in jumps.values()):
        work.setdefault("prescribed motion", np.zeros(len(t)))
    for k in range(1, len(t)):
        for line in work.values():
            line[k] = line[k - 1]
        if k in jumps:
            work["impulses"][k] -= jumps[k][0]
            if "prescribed motion" in work:
                work["prescribed motion"][k] += jumps[k][1]
        h = t[k] - t[k - 1]
        if h == 0.0 or not work:
            continue
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            time = t[k - 1] + node * h
            for name, power in equations[k].powers(time, *dense(time)).items():
                work[name][k] += weight * h * power
    kinetic, potential = (np.array([s[part] for s in states]) for part in (0, 1))
    return EnergyBalance(t, kinetic, potential, stored, work)


def closure_residuals(robot: Mechanism, q: Array) -> Array:
    """Norm of the closure residual of the full rows per configuration, shape (k,), m and rad."""
    rows = Constraints(robot, full=True)
    return np.array([float(np.linalg.norm(rows.residual(place))) for place in q])


def momenta(equations: EquationsOfMotion, t: Array, q: Array, v: Array) -> Momenta:
    """Generalized and centroidal momenta at the given states."""
    model = equations.robot.model
    generalized, centroidal = [], []
    for place, rate in zip(q, v, strict=True):
        generalized.append(equations.mass(place) @ rate)
        with equations.robot.workspace() as data:
            momentum = pin.computeCentroidalMomentum(model, data, place, rate)
            centroidal.append(np.array(momentum.vector))
    table = np.array(centroidal)
    return Momenta(t, np.array(generalized), table[:, :3], table[:, 3:])


def reactions(
    equations: Sequence[EquationsOfMotion],
    robot: Mechanism,
    loop: str,
    frame: str | None,
    t: Array,
    q: Array,
    v: Array,
) -> Reaction:
    """Wrench in a loop joint at the given states, at the origin and in the axes of ``frame``.

    Zero while the loop is open.
    """
    base = robot.loop(loop).frame_b
    target = robot.frame_id(frame or f"{loop}/B")
    full = Constraints(robot, full=True)
    wrenches: list[Array] = []
    unique: list[bool] = []
    for here, time, place, rate in zip(equations, t, q, v, strict=True):
        if loop not in here.rows.loops.rows_of:
            wrenches.append(np.zeros(6))
            unique.append(True)
            continue
        motion = here.motion(time, place, rate)
        wrench = here.loop_wrench(place, loop, motion.multipliers[here.rows.loops.rows_of[loop]])
        with robot.workspace() as data:
            pin.framesForwardKinematics(robot.model, data, place)
            turned = data.oMf[target].actInv(data.oMf[base].act(pin.Force(wrench)))
        wrenches.append(turned.vector.copy())
        # Regularization drops rows because they are redundant: that makes no reaction unique.
        J, _, _ = here.terms(time, place, rate)
        rows = np.vstack([full.jacobian(place), J[len(here.rows.loops) :]])
        saddle = Saddle(here.mass(place), rows)
        unique.append(bool(saddle.determined[full.rows_of[loop]].all()))
    table = np.array(wrenches).reshape(-1, 6)
    name = frame or f"{loop}/B"
    return Reaction(t, name, table[:, :3], table[:, 3:], np.array(unique, dtype=bool))


def lock_reactions(
    equations: Sequence[EquationsOfMotion], lock: str, t: Array, q: Array, v: Array
) -> LockReaction:
    """Torques and forces with which a lock holds its joint; zero while it does not."""
    labels = sorted(
        {
            label
            for here in set(equations)
            for label in here.rows.labels
            if label == lock or label.startswith(f"{lock}.")
        }
    )
    if not labels:
        raise BadValue(f"nothing was locked as '{lock}' in this run")
    efforts = np.zeros((len(t), len(labels)))
    unique = np.ones((len(t), len(labels)), dtype=bool)
    for k, (here, *state) in enumerate(zip(equations, t, q, v, strict=True)):
        motion = None
        for column, label in enumerate(labels):
            if label in here.rows.labels:
                motion = motion or here.motion(*state)
                row = here.rows.labels.index(label)
                efforts[k, column] = motion.multipliers[row]
                unique[k, column] = motion.determined[row]
    return LockReaction(t, tuple(labels), efforts, unique)
