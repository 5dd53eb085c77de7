"""Spherical double pendulum: which joints a configuration space keeps (paper 2, section 5.2).

Two boxes on spherical joints, the first to the ground, thrown hard in the field of gravity and
integrated with RK4 in absolute coordinates without stabilization. On SE(3) the joint to the ground
holds to machine precision, because the first body's motions form a group; the joint between two
moving bodies is violated in both spaces, and more than the one to the ground. Energies drift alike.
Asserted: just that, within an order of magnitude for "alike". The paper finds SE(3) generally
better; here that is so at joint 1, while at joint 2 SO(3)xR3 has the smaller error constant.
Masses follow from the density of the paper's heavy top; 1 s is our choice.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

SIDES = np.array([0.2, 0.1, 0.05])
"""Of the boxes [m]."""
MASS = 2700.0 * float(np.prod(SIDES))
"""Aluminium [kg]."""
SPIN_1, SPIN_2 = np.array([10.0, 0, 0]), np.pi * np.array([10.0, 10, 20])
"""Angular velocities at the start [rad/s]."""
HALF = np.array([0.1, 0, 0])
STEP = 1e-3


class Drift(NamedTuple):
    """How far a run leaves the joints and the energy over time."""

    t: Array
    opening: dict[str, Array]
    """Per joint how far its two points are apart [m]."""
    energy: Array
    """Gain of total energy over the kinetic energy of the start."""


def mechanism() -> pl.Mechanism:
    """The pendulum in relative coordinates, stretched along x."""
    inertia = MASS / 12 * (np.sum(SIDES**2) * np.eye(3) - np.diag(SIDES**2))
    ball = {"pair": "spherical"}
    return pl.from_screws(
        {
            "name": "spherical double pendulum",
            "bodies": [
                {"name": "one", "mass": MASS, "com": HALF, "inertia": inertia},
                {"name": "two", "mass": MASS, "com": 3 * HALF, "inertia": inertia},
            ],
            "joints": [
                ball | {"name": "joint_1", "parent": "ground", "child": "one", "point": 0 * HALF},
                ball | {"name": "joint_2", "parent": "one", "child": "two", "point": 2 * HALF},
            ],
        }
    )


def start(robot: pl.Mechanism) -> Array:
    """Initial velocity in absolute coordinates: per body of the centre of mass, then angular."""
    first = np.cross(SPIN_1, HALF)
    second = 2 * first + np.cross(SPIN_2, HALF)
    return robot.velocity({"one@ground": [*first, *SPIN_1], "two@ground": [*second, *SPIN_2]})


def drift(space: Literal["SE3", "SO3xR3", "auto"], until: float, step: float = STEP) -> Drift:
    """Integrate in one configuration space, freely."""
    robot = mechanism().absolute(space)
    method = pl.MuntheKaas("rk4", step=step)
    run = pl.simulate(
        robot, robot.neutral, start(robot), until=until, method=method, stabilization=None
    )
    rows, energy = pl.Constraints(robot, full=True), run.energy()
    openings = [rows.by_name(rows.residual(q)) for q in run.q]
    opening = {name: np.array([o[name] for o in openings]) for name in openings[0]}
    return Drift(run.t, opening, (energy.total - energy.total[0]) / energy.kinetic[0])


def main(until: float = 1.0, plot: str | None = None) -> dict[str, Drift]:
    """Compare the two spaces; returns their drifts."""
    both = drift("SE3", until), drift("SO3xR3", until)
    one, two = ([float(d.opening[f"joint_{k}"].max()) for d in both] for k in (1, 2))
    energy = [float(np.abs(d.energy).max()) for d in both]

    print(f"double pendulum, {until} s, RK4 with {STEP} s  SE(3)    SO(3)xR3   paper")
    print(_row("violation of joint 1 [m]", one, "SE(3) better"))
    print(_row("violation of joint 2 [m]", two, "larger than that of joint 1"))
    print(_row("drift of energy / kinetic energy", energy, "comparable"))

    assert one[0] < 1e-13 and one[1] > 1e6 * one[0]
    assert all(second > first for first, second in zip(one, two, strict=True))
    assert min(two) > 1e-7 and max(two) < 10 * min(two)
    assert max(energy) < 10 * min(energy)
    if plot:
        _plot(both, plot)
    return {"SE3": both[0], "SO3xR3": both[1]}


def _row(label: str, numbers: list[float], paper: str) -> str:
    return f"{label:38s}{numbers[0]:9.2g}{numbers[1]:12.2g}   {paper}"


def _plot(both: tuple[Drift, Drift], path: str) -> None:
    """Figures 5 to 7 of the paper."""
    figure = import_module("matplotlib.figure").Figure(figsize=(12, 4), layout="constrained")
    panels = figure.subplots(1, 3)
    for d, name in zip(both, ("SE(3)", "SO(3)×R³"), strict=True):
        for axes, values in zip(panels, (*d.opening.values(), np.abs(d.energy)), strict=True):
            axes.semilogy(d.t[1:], np.maximum(values[1:], 1e-17), label=name)
    titles = ("Violation of joint 1 [m]", "Violation of joint 2 [m]", "Energy drift, relative")
    for axes, title in zip(panels, titles, strict=True):
        axes.set(title=title, xlabel="t [s]")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Double pendulum in two configuration spaces.")
    parser.add_argument("--plot", metavar="PNG", help="draw the drifts (needs matplotlib)")
    main(plot=parser.parse_args().plot)
