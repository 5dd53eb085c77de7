"""Satellite that unfolds its panels: angular momentum as a row (paper 1, section 5.4.1).

A planar satellite of the size of INTELSAT V, a main body and two panels of four parts each, unfolds
in 10 s without outer forces. First-order Euler with a step of 0.01 s gains angular momentum about
the centre of mass step by step; with the conservation law as a non-holonomic row, and projection to
it, the gain is gone. Asserted: that the drift grows, is first order in the step, and falls to
machine precision with the row; and that the reference (dop853) keeps energy and momentum at least
as well as the paper's, to 1.1e-9 J and 1.6e-9 kg m^2/s.

Masses and lengths are estimates. The paper does not say what drives the panels: here springs in all
hinges, and cables that let the parts of a panel open together, one against the other. The panels
are mirror images; the satellite spins slowly, so that they do not move alike.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import numpy as np

import pinloop as pl

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


def mechanism() -> pl.Mechanism:
    """The satellite with its panels flat, along x."""
    bodies: list[dict[str, Any]] = [_plate("body", 0.0, BODY, BODY_MASS)]
    joints: list[dict[str, Any]] = [
        {"name": "float", "pair": "planar", "parent": "ground", "child": "body", "axis": [0, 0, 1]}
    ]
    cables = []
    for panel, sign in PANELS.items():
        near = "body"
        for k in range(1, 5):
            part, hinge, edge = f"{panel}_{k}", f"{panel}_hinge_{k}", BODY[0] / 2 + (k - 1) * PART[0]
            bodies.append(_plate(part, sign * (edge + PART[0] / 2), PART, PART_MASS))
            ends = {"parent": near, "child": part, "point": [sign * edge, 0, 0]}
            joints.append({"name": hinge, "pair": "revolute", "axis": [0, 0, sign]} | ends)
            if k > 1:
                cable = {"name": f"{panel}_cable_{k}", "joint": hinge, "source": f"{panel}_hinge_1"}
                cables.append(cable | {"ratio": 2.0 * (-1) ** (k - 1)})
            near = part
    return pl.from_screws(
        {
            "name": "satellite",
            "gravity": [0, 0, 0],
            "bodies": bodies,
            "joints": joints,
            "couplings": cables,
        }
    )


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
    folded = {f"{panel}_hinge_1": np.pi / 2 for panel in PANELS}
    run = pl.simulate(
        robot,
        pl.assemble(robot, folded),
        robot.velocity({"float": [0, 0, SPIN]}),
        until=until,
        forces=[
            pl.JointSpring(f"{panel}_hinge_{k}", STIFFNESS) for panel in PANELS for k in range(1, 5)
        ],
        rows=[pl.AngularMomentum((0, 0, 1))] if law else [],
        method=method,
        stabilization=pl.Projection(tol=1e-14),
    )
    momentum, energy = run.momentum().angular[:, 2], run.energy().total
    return run, momentum - momentum[0], energy - energy[0]


def main(until: float = UNTIL, plot: str | None = None) -> dict[str, float]:
    """Compare Euler without and with the law; returns the largest errors of angular momentum."""
    reference, exact_momentum, exact_energy = unfold(
        pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12), until=until
    )
    free, drift, _ = unfold(pl.MuntheKaas("euler", step=STEP), until=until)
    _, finer, _ = unfold(pl.MuntheKaas("euler", step=STEP / 2), until=until)
    held, rest, _ = unfold(pl.MuntheKaas("euler", step=STEP), law=True, until=until)
    momentum = float(reference.momentum().angular[0, 2])
    worst = {
        "reference": float(np.abs(exact_momentum).max()),
        "free": float(np.abs(drift).max()),
        "finer": float(np.abs(finer).max()),
        "held": float(np.abs(rest).max()),
    }
    energy = float(np.abs(exact_energy).max())

    print(f"satellite unfolds in {until} s with angular momentum {momentum:.4f} kg m^2/s")
    print(f"  reference, dop853: error of energy            {energy:9.1e} J        (paper: 1.1e-9)")
    print(f"                     error of momentum          {worst['reference']:9.1e} kg m^2/s "
          "(paper: 1.6e-9)")  # fmt: skip
    print(f"  Euler, step {STEP} s: error of momentum       {worst['free']:9.1e} kg m^2/s")
    print(f"  Euler, half the step                          {worst['finer']:9.1e} kg m^2/s")
    print(f"  Euler, step {STEP} s, with the law as a row   {worst['held']:9.1e} kg m^2/s "
          "(paper: eliminated)")  # fmt: skip
    q = free.robot.coordinates("float").q
    angle = [float(np.degrees(np.arctan2(*run.q[-1, q][:1:-1]))) for run in (reference, free, held)]
    print("  body at the end: {:.3f} deg, by Euler {:.3f}, with the law {:.3f}".format(*angle))

    assert energy < 1.1e-9 and worst["reference"] < 1.6e-9
    assert worst["free"] > 1e-5 * abs(momentum) and worst["free"] > 0.9 * abs(drift[-1])
    assert 1.8 < worst["free"] / worst["finer"] < 2.2
    assert worst["held"] < 1e-13 * abs(momentum)
    if plot:
        _plot(reference, (free.t, drift, rest), plot)
    return worst


def _plot(
    reference: pl.Trajectory, euler: tuple[np.ndarray, np.ndarray, np.ndarray], path: str
) -> None:
    """Figure 5 of the paper, and how the panels open."""
    figure = import_module("matplotlib.figure").Figure(figsize=(12, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    t, drift, rest = euler
    left.plot(t, drift, label="Euler")
    left.plot(t, rest, label="Euler, momentum as a row")
    left.set(title="Error of the angular momentum [kg m²/s]", xlabel="t [s]")
    left.grid(alpha=0.3)
    left.legend()
    robot = reference.robot
    for k, time in enumerate((0.0, 6.0, 8.0, 10.0)):
        q = reference(min(time, reference.t[-1])).q
        for body in robot.description.bodies:
            a, b = BODY if body.name == "body" else PART
            corners = np.array([[-a, -b], [a, -b], [a, b], [-a, b], [-a, -b]]) / 2
            outline = [
                robot.placement(q, body.name).act(np.array([*corner, 0]) + np.array(body.com))
                for corner in corners
            ]
            x, y, _ = np.transpose(outline)
            right.plot(x, y - 4.2 * k, color="0.2" if body.name == "body" else "C0", lw=1)
        right.text(-8, -4.2 * k + 0.6, f"{time:.0f} s")
    right.set(title="Unfolding (reference)", aspect="equal", xlabel="m", yticks=[])
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Satellite unfolding its panels.")
    parser.add_argument("--plot", metavar="PNG", help="draw errors and motion (needs matplotlib)")
    main(plot=parser.parse_args().plot)
