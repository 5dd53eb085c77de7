"""Snakeboard: dependent coordinates for positions and for velocities (paper 1, section 5.4.2).

Coupler B, boards A (rear) and C (front) with wheels, and rotor D, in absolute planar coordinates
``(x, y, theta)`` of each: 12 coordinates, 6 rows of the pins, and 2 non-holonomic rows of the wheels,
which do not slip sideways. A constant force at the centre of mass pushes along the coupler; PD
drives (P = 10, D = 0.1) steer the wheels with 1 Hz and 0.5 rad, here against each other.

The relative projections on the constraint space (eq. 67) differ between positions and velocities,
and with them the best dependent coordinates. Then each reference state takes one Euler step of
0.01 s, whose velocity is projected with the optimal set, and with the set whose best coordinate is
replaced by the best one outside (eight of the twelve are dependent; headings of boards and rotor
cannot be, as no row contains their rates, which leaves one). eps integrates ``dv' M dv`` of the
correction. Paper: 0.00003e-5 and 0.47836e-5. Asserted: the sums of the projections, which are the
numbers of rows; sets that differ; wheels, pins and energy of the reference; eps more than 1000
times smaller with the optimal set. Masses, lengths and force are estimates for a demonstrator.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

ARM = 0.25
"""From the centre of the coupler to the pins of the boards [m]."""
BODIES = {"A": (0.8, 0.004), "B": (2.0, 0.042), "C": (0.8, 0.004), "D": (2.4, 0.07)}
"""Mass [kg] and inertia about the vertical [kg m^2]."""
PINS = {"A": -ARM, "C": ARM, "D": 0.0}
"""Where the bodies sit on the coupler [m]."""
FORCE = 2.0
"""[N]"""
STIFFNESS, DAMPING, AMPLITUDE, STEP = 10.0, 0.1, 0.5, 0.01


class Result(NamedTuple):
    """What the run and the steps from it give, over time."""

    run: pl.Trajectory
    t: Array
    positions: Array
    """Relative projections of the coordinates at position level, shape (k, 12)."""
    velocities: Array
    """The same at velocity level."""
    best: tuple[list[list[int]], list[list[int]]]
    """Dependent coordinates at the two levels, best first."""
    errors: Array
    """``dv' M dv`` of the corrections, optimal and sub-optimal, shape (k, 2)."""


def mechanism() -> pl.Mechanism:
    """Each body carried by two slides and a hinge of its own; the pins are loops."""
    model = pin.Model()
    model.name, model.gravity = "snakeboard", pin.Motion.Zero()
    for name, (mass, inertia) in BODIES.items():
        joint = 0
        motions = (pin.JointModelPX(), "x"), (pin.JointModelPY(), "y"), (pin.JointModelRZ(), "theta")
        for motion, label in motions:
            joint = model.addJoint(joint, motion, pin.SE3.Identity(), f"{label}_{name}")
        tensor = inertia * np.diag([0.5, 0.5, 1.0])
        model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), tensor), pin.SE3.Identity())
        model.addBodyFrame(name, joint, pin.SE3.Identity(), 0)
    pins = [
        {"name": f"pin_{name}", "pair": "revolute", "axis": [0, 0, 1]}
        | {"a": {"body": "B", "xyz": [x, 0, 0]}, "b": {"body": name}}
        for name, x in PINS.items()
    ]
    return pl.load(model, loops={"format": "pinloop-loops-1", "loops": pins})


def reference(until: float) -> pl.Trajectory:
    """Motion with tight tolerances."""
    robot = mechanism()
    theta = {name: robot.coordinates(f"theta_{name}").v.start for name in BODIES}

    def steer(t: float, q: Array, v: Array) -> Array:
        tau, phase = np.zeros(robot.nv), 2 * np.pi * t
        for board, sign in (("A", -1), ("C", 1)):
            target = sign * AMPLITUDE * np.array([np.sin(phase), 2 * np.pi * np.cos(phase)])
            error = target - [x[theta[board]] - x[theta["B"]] for x in (q, v)]
            torque = STIFFNESS * error[0] + DAMPING * error[1]
            tau[theta[board]] += torque
            tau[theta["B"]] -= torque
        return tau

    return pl.simulate(
        robot,
        robot.configuration({f"x_{name}": x for name, x in PINS.items()}),
        until=until,
        forces=[pl.PointForce("B", (FORCE, 0, 0), local=True), pl.TorqueFunction(steer, "steering")],
        rows=[pl.NoSlip(board, (0, 1, 0)) for board in ("A", "C")],
        method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-11),
    )


def steps(run: pl.Trajectory) -> Result:
    """Projections along the run, and one Euler step from every state."""
    eom, robot = run.equations, run.robot
    holonomic = eom.rows.holonomic
    t = np.arange(0.0, run.t[-1] - STEP / 2, STEP)
    positions, velocities, errors = [], [], []
    best: tuple[list[list[int]], list[list[int]]] = [], []
    for state in zip(*run(t), strict=True):
        time, q, v = state
        M, J = eom.mass(q), eom.terms(*state)[0]
        for rows, found, sets in ((J[holonomic], positions, best[0]), (J, velocities, best[1])):
            found.append(pl.relative_projections(M, rows))
            sets.append(pl.dependent_coordinates(M, rows)[0].tolist())
        a = eom.acceleration(*state)
        q, v = robot.integrate(q, STEP * v), v + STEP * a
        M, (J, b, _) = eom.mass(q), eom.terms(time + STEP, q, v)
        optimal = pl.dependent_coordinates(M, J)[0].tolist()
        outside = [i for i in np.argsort(-pl.relative_projections(M, J)) if i not in optimal]
        errors.append([])
        for columns in (optimal, [*optimal[1:], outside[0]]):
            shift = np.zeros(robot.nv)
            shift[columns] = np.linalg.lstsq(J[:, columns], b - J @ v, rcond=None)[0]
            errors[-1].append(shift @ M @ shift)
    return Result(run, t, np.array(positions), np.array(velocities), best, np.array(errors))
