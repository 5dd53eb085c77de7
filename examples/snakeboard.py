"""Snakeboard: dependent coordinates for positions and for velocities (paper 1, section 5.4.2).

Coupler B, boards A (rear) and C (front) with wheels and rotor D in absolute coordinates: x, y and
theta of each, 6 equations of the pins, 2 non-holonomic ones of the wheels, which do not slip. A
force at the centre of mass pushes along the coupler; PD drives (P = 10, D = 0.1) steer the wheels
with 1 Hz and 0.5 rad, here against each other. Masses, lengths and force are estimates.

Relative projections on the constraint space (eq. 67) differ between positions and velocities, and
so do the best dependent coordinates. Every state of the reference takes one Euler step of 0.01 s,
whose velocity is projected with the optimal set, and with the set whose best coordinate is replaced
by the best outside (paper: the 7th smallest; but eight of twelve are dependent, and the headings of
A, C and D never are, which leaves one). eps integrates ``dv' M dv`` of the shifts. Asserted: sums
of the projections, sets that differ, wheels, pins, energy, and eps 1000 times smaller if optimal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

import pinloop as pl
from common.pictures import drawing
from common.program import start_program

BODIES = {"A": (0.8, 0.004), "B": (2.0, 0.042), "C": (0.8, 0.004), "D": (2.4, 0.07)}
"""Mass [kg] and inertia about the vertical [kg m^2]."""
PINS = {"A": -0.25, "C": 0.25, "D": 0.0}
"""Where the bodies' centres sit on the coupler [m]."""
FORCE, STIFFNESS, DAMPING, AMPLITUDE, STEP = 2.0, 10.0, 0.1, 0.5, 0.01
PAPER_EPS = (0.00003e-5, 0.47836e-5)
"""The paper's eps with optimal dependent coordinates and with others."""


class Result(NamedTuple):
    """Per time, at position and velocity level: projections and dependent sets; ``dv' M dv``."""

    t: np.ndarray
    projections: np.ndarray
    sets: list[list[list[int]]]
    errors: np.ndarray


def mechanism() -> pl.Mechanism:
    """Each body on two slides and a hinge of its own; the pins are loops."""
    model, one = pin.Model(), pin.SE3.Identity()
    model.name, model.gravity = "snakeboard", pin.Motion.Zero()
    for name, (mass, inertia) in BODIES.items():
        joint = 0
        for kind, x in zip(("PX", "PY", "RZ"), ("x", "y", "theta"), strict=True):
            joint = model.addJoint(joint, getattr(pin, f"JointModel{kind}")(), one, f"{x}_{name}")
        tensor = inertia * np.diag([0.5, 0.5, 1.0])
        model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), tensor), one)
        model.addBodyFrame(name, joint, one, 0)
    pins = [
        {"name": f"pin_{name}", "pair": "revolute", "axis": [0, 0, 1]}
        | {"a": {"body": "B", "xyz": [x, 0, 0]}, "b": {"body": name}}
        for name, x in PINS.items()
    ]
    return pl.load(model, loops={"format": "pinloop-loops-1", "loops": pins})


def steer(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torques of the PD drives between the coupler and the boards, on the 12 coordinates."""
    tau, phase = np.zeros(12), 2 * np.pi * t
    for board, sign in ((2, -1), (8, 1)):
        angle, rate = sign * AMPLITUDE * np.array([np.sin(phase), 2 * np.pi * np.cos(phase)])
        torque = STIFFNESS * (angle - q[board] + q[5]) + DAMPING * (rate - v[board] + v[5])
        tau[[board, 5]] += torque, -torque
    return tau


def reference(until: float) -> pl.Trajectory:
    """Motion with tight tolerances, from rest along x."""
    robot = mechanism()
    push = pl.forces.PointForce("B", (FORCE, 0, 0), local=True)
    return pl.simulate(
        robot,
        robot.configuration({f"x_{name}": x for name, x in PINS.items()}),
        until=until,
        forces=[push, pl.TorqueFunction(steer, "steering")],
        rows=[pl.constraints.NoSlip(board, (0, 1, 0)) for board in ("A", "C")],
        method=pl.MuntheKaas("dop853", rtol=1e-10, atol=1e-11),
    )


def steps(run: pl.Trajectory) -> Result:
    """Projections along the run, and one Euler step from every state."""
    eom, projections, sets, errors = run.equations[0], [], [], []
    t = np.arange(0.0, run.t[-1] - STEP / 2, STEP)
    for time, q, v in zip(*run(t), strict=True):
        M, J = eom.mass(q), eom.terms(time, q, v)[0]
        levels = J[eom.rows.holonomic], J
        projections.append([pl.dynamics.relative_projections(M, rows) for rows in levels])
        sets.append([pl.dynamics.dependent_coordinates(M, rows)[0].tolist() for rows in levels])
        euler = v + STEP * eom.acceleration(time, q, v)
        there = run.robot.integrate(q, STEP * v)
        M, (J, b, _) = eom.mass(there), eom.terms(time + STEP, there, euler)
        optimal = pl.dynamics.dependent_coordinates(M, J)[0].tolist()
        outside = [
            i for i in np.argsort(-pl.dynamics.relative_projections(M, J)) if i not in optimal
        ]
        for columns in (optimal, [*optimal[1:], outside[0]]):
            shift = np.zeros(12)
            shift[columns] = np.linalg.lstsq(J[:, columns], b - J @ euler, rcond=None)[0]
            errors.append(shift @ M @ shift)
    return Result(t, np.array(projections), sets, np.array(errors).reshape(-1, 2))


def main(until: float = 5.0, plot: str | None = None) -> Result:
    """Print projections, sets and errors, and check them."""
    run = reference(until)
    result, names = steps(run), run.robot.joints
    slips = [run.equations[0].terms(*s)[0] @ s[2] for s in zip(run.t, run.q, run.v, strict=True)]
    print(f"snakeboard, {until} s; projections:    " + "".join(f"{name:>8s}" for name in names))
    for k, level in enumerate(("positions", "velocities")):
        print(f"{level:34s}" + "".join(f"{x:8.3f}" for x in result.projections[-1, k]))
        print("    dependent: " + ", ".join(names[i] for i in result.sets[-1][k]))
    optimal, worse = STEP * result.errors.sum(axis=0)
    steps_ratio = np.median(result.errors[1:, 1] / result.errors[1:, 0])
    best, other = PAPER_EPS
    print(f"eps: optimal {optimal:.3g} (paper {best:g}), else {worse:.3g} (paper {other:g})")
    print(f"ratio {worse / optimal:.0f} (paper {other / best:.0f}), ", end="")
    print(f"in the median step {steps_ratio:.0f}")

    assert np.allclose(result.projections.sum(axis=2), [6, 8], atol=1e-9)
    assert np.abs(np.diff(result.projections, axis=1)).max() > 0.4
    assert all(set(first) != set(second[:6]) for first, second in result.sets)
    assert np.abs(slips).max() < 1e-9 and run.closure().max() < 1e-9
    assert np.abs(run.energy().error).max() < 1e-7
    assert worse > 1000 * optimal
    if plot:
        _plot(result, names, plot)
    return result


def _plot(result: Result, names: tuple[str, ...], path: str) -> None:
    """Figure 8 of the paper."""
    with drawing(path, 12, 4.5) as figure:
        titles = "Relative projection of configuration coordinates (6 equations)", "velocities (8)"
        for level, axes in enumerate(figure.subplots(1, 2, sharey=True)):
            for i, name in enumerate(names):
                style = {
                    "color": f"C{i // 3}",
                    "ls": ("-", "--", ":")[i % 3],
                    "lw": 1 + (11 - i) // 3,
                }
                axes.plot(result.t, result.projections[:, level, i], label=name, **style)
            axes.set(xlabel="t [s]", title=titles[level])
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right center")


if __name__ == "__main__":
    start_program(main, "Snakeboard: relative projections.", motion=lambda: reference(5.0))
