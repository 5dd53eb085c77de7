"""Satellite that unfolds its panels: angular momentum as a constraint (paper 1, section 5.4.1).

A planar satellite of the size of INTELSAT V, a main body and two panels of four parts each, unfolds
in 10 s without outer forces. First-order Euler with a step of 0.01 s gains angular momentum about
the centre of mass step by step; with the conservation law as a non-holonomic constraint equation,
and projection to it, the gain vanishes. Asserted: that the drift grows, is first order in the step,
and falls to machine precision with that equation; and that the reference (dop853) keeps energy and
momentum at least as well as the paper's, to 1.1e-9 J and 1.6e-9 kg m^2/s.

Masses and lengths are estimates. The paper does not say what drives the panels: here springs in all
hinges, and cables that let the parts of a panel open together, one against the other. The panels
are mirror images; the satellite spins slowly, so that they do not move alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pinloop as pl
from common.pictures import drawing
from common.program import start_program

BODY, BODY_MASS = (1.7, 2.1), 870.0
"""Sides [m] and mass [kg] of the main body; its inertia is that of a box."""
PART, PART_MASS = (1.74, 0.03), 8.0
"""Sides [m] and mass [kg] of each of the eight parts of the panels."""
PANELS = {"east": 1, "west": -1}
"""The panels, and on which side of the body they are."""
STIFFNESS = 0.57
"""Of the springs in all hinges [N m/rad]; unloaded when the panels are flat."""
SPIN = 0.05
"""Of the folded satellite [rad/s]."""
UNTIL, STEP = 10.0, 0.01
PAPER_ENERGY, PAPER_MOMENTUM = 1.1e-9, 1.6e-9
"""Largest errors of the paper's reference: energy [J], angular momentum [kg m^2/s]."""


def mechanism() -> pl.Mechanism:
    """The satellite with its panels flat, along x."""
    bodies, cables = [_plate("body", 0.0, BODY, BODY_MASS)], []
    joints: list[dict[str, Any]] = [
        {"name": "float", "pair": "planar", "parent": "ground", "child": "body", "axis": [0, 0, 1]}
    ]
    for panel, sign in PANELS.items():
        for k in range(1, 5):
            near, part = "body" if k == 1 else f"{panel}_{k - 1}", f"{panel}_{k}"
            hinge, edge = f"{panel}_hinge_{k}", BODY[0] / 2 + (k - 1) * PART[0]
            bodies.append(_plate(part, sign * (edge + PART[0] / 2), PART, PART_MASS))
            ends = {"parent": near, "child": part, "point": [sign * edge, 0, 0]}
            joints.append({"name": hinge, "pair": "revolute", "axis": [0, 0, sign]} | ends)
            if k > 1:
                cable = {"name": f"{panel}_cable_{k}", "joint": hinge, "source": f"{panel}_hinge_1"}
                cables.append(cable | {"ratio": 2.0 * (-1) ** (k - 1)})
    table = {"name": "satellite", "gravity": [0, 0, 0], "bodies": bodies, "joints": joints}
    return pl.from_screws(table | {"couplings": cables})


def _plate(name: str, x: float, sides: tuple[float, float], mass: float) -> dict[str, Any]:
    """A body with its centre at ``x``, as deep as its second side."""
    a, b = sides
    inertia = mass / 12 * np.diag([2 * b**2, a**2 + b**2, a**2 + b**2])
    return {"name": name, "mass": mass, "com": [x, 0, 0], "inertia": inertia}


def unfold(
    method: pl.MuntheKaas, *, law: bool = False, until: float = UNTIL
) -> tuple[pl.Trajectory, np.ndarray, np.ndarray]:
    """The run, and the errors of angular momentum [kg m^2/s] and energy [J] over time."""
    robot = mechanism()
    hinges = [f"{panel}_hinge_{k}" for panel in PANELS for k in range(1, 5)]
    run = pl.simulate(
        robot,
        pl.assemble(robot, {f"{panel}_hinge_1": np.pi / 2 for panel in PANELS}),
        robot.velocity({"float": [0, 0, SPIN]}),
        until=until,
        forces=[pl.forces.JointSpring(hinge, STIFFNESS) for hinge in hinges],
        rows=[pl.constraints.AngularMomentum((0, 0, 1))] if law else [],
        method=method,
        stabilization=pl.Projection(tol=1e-14),
    )
    momentum, energy = run.momentum().angular[:, 2], run.energy().total
    return run, momentum - momentum[0], energy - energy[0]


def main(until: float = UNTIL, plot: str | None = None) -> dict[str, float]:
    """Compare Euler without and with the law; returns the largest errors of momentum and energy."""
    tight = pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12)
    reference, exact, energy = unfold(tight, until=until)
    free, drift, _ = unfold(pl.MuntheKaas("euler", step=STEP), until=until)
    _, finer, _ = unfold(pl.MuntheKaas("euler", step=STEP / 2), until=until)
    held, rest, _ = unfold(pl.MuntheKaas("euler", step=STEP), law=True, until=until)
    errors = {"reference": exact, "free": drift, "finer": finer, "held": rest}
    worst = {name: float(np.abs(error).max()) for name, error in errors.items()}
    momentum = float(reference.momentum().angular[0, 2])
    lost = float(np.abs(energy).max())
    turned = reference.robot.coordinates("float").q
    angles = [
        float(np.degrees(np.arctan2(run.q[-1, turned][3], run.q[-1, turned][2])))
        for run in (reference, free, held)
    ]

    print(f"satellite, {until} s, angular momentum {momentum:.4f} kg m^2/s     paper")
    print(_row("reference, dop853: error of energy [J]", lost, f"{PAPER_ENERGY:g}"))
    print(_row("  error of angular momentum [kg m^2/s]", worst["reference"], f"{PAPER_MOMENTUM:g}"))
    print(_row(f"Euler, step {STEP} s: the same", worst["free"], "grows"))
    print(_row("Euler, half the step", worst["finer"], ""))
    print(_row(f"Euler, step {STEP} s, the law as a row", worst["held"], "eliminated"))
    print("body at the end: {:.3f} deg; Euler {:.3f}; with the law {:.3f}".format(*angles))

    assert lost < PAPER_ENERGY and worst["reference"] < PAPER_MOMENTUM
    assert worst["free"] > 1e-5 * momentum and abs(drift[-1]) > 0.9 * worst["free"]
    assert 1.8 < worst["free"] / worst["finer"] < 2.2
    assert worst["held"] < 1e-13 * momentum
    if plot:
        _plot(reference, (free.t, drift, rest), plot)
    return worst | {"energy": lost}


def _row(label: str, value: float, paper: str) -> str:
    return f"{label:42s}{value:9.1e}   {paper}"


def _plot(run: pl.Trajectory, euler: tuple[np.ndarray, ...], path: str) -> None:
    """Figure 5 of the paper, and how the panels open."""
    with drawing(path, 11, 4.5) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
        for error, label in zip(euler[1:], ("Euler", "Euler, momentum as a row"), strict=True):
            left.plot(euler[0], error, label=label)
        left.set(title="Error of the angular momentum [kg m²/s]", xlabel="t [s]")
        left.legend()
        for k, time in enumerate(np.array([0, 0.6, 0.8, 1]) * run.t[-1]):
            for body in run.robot.description.bodies:
                sides = np.array(BODY if body.name == "body" else PART) / 2
                corners = sides * [[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]
                at = run.robot.placement(run(float(time)).q, body.name)
                x, y, _ = np.transpose([at.act(np.array([*c, 0]) + body.com) for c in corners])
                right.plot(x, y - 4.2 * k, color="0.2" if body.name == "body" else "C0", lw=1)
            right.text(-8, 0.6 - 4.2 * k, f"{time:.0f} s")
        right.set(title="Unfolding", aspect="equal", xlabel="m", yticks=[])


if __name__ == "__main__":
    start_program(
        main, "Satellite unfolding its panels.", motion=lambda: unfold(pl.MuntheKaas())[0]
    )
