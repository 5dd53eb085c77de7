"""Heavy top: a body on a ball joint stays on its pivot on SE(3), not on SO(3)xR3 (paper 2, 5.1).

A box on a spherical joint to the ground, without gravity, integrated with RK4 in absolute
coordinates and no stabilization. A constant twist that the joint allows moves the body exactly in
the joint, so SE(3) keeps the pivot to machine precision; SO(3)xR3 cuts the corner of every step.
Asserted: the initial energy of the paper, both drifts of the pivot, kinetic energies that drift at
least two orders of magnitude apart, and where the centre of mass ends. The paper does not print how
long it ran; here it is 1 s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pinloop as pl
from common.spaces import (
    STEP,
    Array,
    Panel,
    Space,
    draw,
    free_run,
    print_table,
    start_program,
    thrown,
)

MASS = 21.6
INERTIA = np.diag([0.36, 0.306, 0.09])
CENTRE = np.array([0.5, 0.0, 0.0])
"""From the pivot [m]."""
SPIN = np.pi * np.array([0.0, 20.0, 10.0])
"""Angular velocity at the start [rad/s]."""
PAPER_ENERGY = 13.97e3
"""Kinetic energy at the start as the paper prints it [J]."""


class Drift(NamedTuple):
    """How far a run leaves pivot, energy and the true motion over time."""

    t: Array
    pivot: Array
    kinetic: Array
    end: Array
    """Centre of mass at the end [m]."""


def mechanism() -> pl.Mechanism:
    """The top in relative coordinates."""
    body = {"name": "top", "mass": MASS, "com": CENTRE, "inertia": INERTIA}
    pivot = {"name": "pivot", "pair": "spherical", "parent": "ground", "child": "top"}
    return pl.from_screws(
        {
            "name": "heavy top",
            "gravity": [0, 0, 0],
            "bodies": [body],
            "joints": [pivot | {"point": [0, 0, 0]}],
        }
    )


def start(robot: pl.Mechanism) -> Array:
    """Initial velocity in absolute coordinates: of the centre of mass, then angular."""
    return robot.velocity({"top@ground": [*np.cross(SPIN, CENTRE), *SPIN]})


def drift(space: Space, until: float, step: float = STEP) -> Drift:
    """Integrate in one configuration space, freely."""
    robot = mechanism().absolute(space)
    run = free_run(robot, start(robot), until, step)
    end = robot.placement(run.q[-1], "top").act(CENTRE)
    return Drift(run.t, run.closure(), run.energy().kinetic, end)


def true_end(until: float) -> Array:
    """Centre of mass at the end [m], in relative coordinates with tight tolerances."""
    robot = mechanism()
    method = pl.MuntheKaas("dop853", rtol=1e-12, atol=1e-12)
    run = pl.simulate(
        robot, robot.neutral, robot.velocity({"pivot": SPIN}), until=until, method=method
    )
    return np.asarray(robot.placement(run.q[-1], "top").act(CENTRE))


def main(until: float = 1.0, plot: str | None = None) -> dict[str, Drift]:
    """Compare the two spaces; returns their drifts."""
    rigid, split = drift("SE3", until), drift("SO3xR3", until)
    true = true_end(until)
    both = (rigid, split)
    energy = [float(np.abs(d.kinetic / d.kinetic[0] - 1).max()) for d in both]
    pivot = [float(d.pivot.max()) for d in both]
    missed = [float(np.linalg.norm(d.end - true)) for d in both]

    rows = (
        (
            "kinetic energy at the start [kJ]",
            [d.kinetic[0] / 1e3 for d in both],
            f"{PAPER_ENERGY / 1e3:.2f}",
        ),
        ("drift of the pivot [m]", pivot, "accuracy of the computation | visible"),
        ("drift of the energy / energy", energy, "two orders of magnitude apart"),
        ("centre of mass at the end, error [m]", missed, ""),
    )
    print_table("heavy top", until, rows, digits=4)

    assert abs(rigid.kinetic[0] - PAPER_ENERGY) < 5.0
    assert pivot[0] < 1e-13 and pivot[1] > 1e6 * pivot[0]
    assert energy[1] > 100 * energy[0]
    assert missed[0] < 0.01 * missed[1]
    if plot:
        _plot(both, plot)
    return {"SE3": rigid, "SO3xR3": split}


def _plot(both: tuple[Drift, Drift], path: str) -> None:
    """Figures 2 and 3 of the paper, on one logarithmic scale each."""
    one, two = both
    lost, more = (np.abs(d.kinetic / d.kinetic[0] - 1) for d in both)
    panels = [
        Panel("Heavy top: drift of the pivot [m]", (one.pivot, two.pivot)),
        Panel("Drift of the kinetic energy, relative", (lost, more)),
    ]
    draw(path, one.t, panels, (1, 2), (10, 4))


if __name__ == "__main__":
    start_program(main, "Heavy top in two configuration spaces.", motion=thrown(mechanism, start))
