"""Closed loop of three bars: the base joints hold on SE(3), the one between not (paper 2, 5.4).

Two boxes and the ground form a triangle with ball joints. Each box moves in the group of rotations
about its own base joint, as long as the constraints say so: integrated with RK4 in absolute
coordinates without stabilization, SE(3) keeps both base joints to machine precision although they
close a loop. The joint between the boxes is violated in both spaces, and energies drift alike.
Asserted: that, within an order of magnitude for "alike". The paper prints neither the distance of
the base joints nor the initial velocity: the robot file says what was chosen, and the triangle
starts swinging and its boxes spinning as below. 1 s is our choice.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pinloop as pl

Array = NDArray[np.float64]

ROBOT = Path(__file__).parents[1] / "urdf" / "spherical_threebar.urdf"
BASE_1, BASE_2, APEX = np.array([[0, 0, 0], [0.24, 0, 0], [0.12, 0.16, 0]])
"""Joints at the start [m]."""
SWING = np.array([10.0, 0, 0])
"""Angular velocity of the triangle about the line through the base joints [rad/s]."""
SPINS = 20.0, 30.0
"""Of the boxes about the lines through their own joints [rad/s]."""
STEP = 1e-3


class Drift(NamedTuple):
    """How far a run leaves the joints and the energy over time."""

    t: Array
    opening: dict[str, Array]
    """Per joint how far its two points are apart [m]."""
    energy: Array
    """Gain of total energy over the kinetic energy of the start."""


def mechanism() -> pl.Mechanism:
    """The loop in relative coordinates, flat in the horizontal plane."""
    return pl.load(ROBOT)


def start(robot: pl.Mechanism) -> Array:
    """Initial velocity in absolute coordinates: per body of the centre of mass, then angular."""
    rates = {}
    for bar, foot, spin in zip(("bar_1", "bar_2"), (BASE_1, BASE_2), SPINS, strict=True):
        along = APEX - foot
        angular = SWING + spin * along / np.linalg.norm(along)
        rates[f"{bar}@ground"] = [*np.cross(angular, along / 2), *angular]
    return robot.velocity(rates)


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
    names = ("ball_1", "ball_2", "ball_3")
    one, two, three = ([float(d.opening[name].max()) for d in both] for name in names)
    energy = [float(np.abs(d.energy).max()) for d in both]

    print(f"three-bar loop, {until} s, RK4 with {STEP} s   SE(3)    SO(3)xR3   paper")
    print(_row("violation of joint 1, base [m]", one, "perfect on SE(3)"))
    print(_row("violation of joint 2, between [m]", two, "similar"))
    print(_row("violation of joint 3, base [m]", three, "perfect on SE(3)"))
    print(_row("drift of energy / kinetic energy", energy, "similar"))

    for base in (one, three):
        assert base[0] < 1e-13 and base[1] > 1e5 * base[0]
    assert min(two) > 1e-10 and max(two) < 10 * min(two)
    assert max(energy) < 10 * min(energy)
    if plot:
        _plot(both, plot)
    return {"SE3": both[0], "SO3xR3": both[1]}


def _row(label: str, numbers: list[float], paper: str) -> str:
    return f"{label:38s}{numbers[0]:9.2g}{numbers[1]:12.2g}   {paper}"


def _plot(both: tuple[Drift, Drift], path: str) -> None:
    """Figures 12 to 15 of the paper."""
    figure = import_module("matplotlib.figure").Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for d, name in zip(both, ("SE(3)", "SO(3)×R³"), strict=True):
        for axes, values in zip(panels, (*d.opening.values(), np.abs(d.energy)), strict=True):
            axes.semilogy(d.t[1:], np.maximum(values[1:], 1e-17), label=name)
    joints = [f"Violation of joint {k} [m]" for k in (1, 2, 3)]
    for axes, title in zip(panels, (*joints, "Energy drift, relative"), strict=True):
        axes.set(title=title, xlabel="t [s]")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Three-bar loop in two configuration spaces.")
    parser.add_argument("--plot", metavar="PNG", help="draw the drifts (needs matplotlib)")
    main(plot=parser.parse_args().plot)
