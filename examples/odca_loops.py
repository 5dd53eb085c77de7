"""Four-bar and seven-bar released from rest: how far their loops open in 10 s (paper 3, 4.1).

No stabilization. Expected from the paper: O-DCA keeps loops closed to machine precision, the error
of multipliers at acceleration level grows with the square of time, that of a reduction at velocity
level linearly (figures 6 to 9). Asserted: these growth rates, and that all methods describe the
same motion.

The reason: the accelerations of O-DCA alone are those of every other method, and drift alike
(second line). What closes the loops are the first two sweeps of the paper, which assemble positions
and velocities of all bodies after every step as the last two assemble accelerations.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pinloop as pl
from common.closure import Lagrange, Reduction, Run, Sweeps, draw, go, print_runs, start_program

ROBOTS = Path(__file__).parents[1] / "urdf"
INDEPENDENT = {"fourbar": [0], "sevenbar": [0, 3]}
"""Independent velocities of the reduction: crank; bars 1 and 4."""
PAPER_VIOLATION = 1e-14
"""Order of the violation by O-DCA that the paper reports [m]."""
PAPER_EXPONENTS = {"O-DCA": 0.7, "Lagrange": 2.0, "reduction": 1.0}
"""Growth of the violation over time that the paper reports."""


def mechanism(name: str) -> pl.Mechanism:
    """A linkage without redundant rows."""
    return pl.regularize(pl.load(ROBOTS / f"{name}.urdf"))


def release(name: str, until: float) -> list[Run]:
    """Release a linkage from rest, once per method."""
    robot = mechanism(name)
    methods = (
        Sweeps(robot),
        Sweeps(robot, all_four=False),
        Lagrange(robot, plain=True),
        Reduction(robot, INDEPENDENT[name]),
    )
    rest = np.zeros(robot.nv)
    return [go(robot, method, robot.neutral, rest, until) for method in methods]


def main(until: float = 10.0, plot: str | None = None) -> dict[str, list[Run]]:
    """Compare the methods on both linkages; returns the runs."""
    found = {name: release(name, until) for name in INDEPENDENT}
    for name, runs in found.items():
        print_runs(f"{name}, released from rest, {until:g} s", runs)
        sweeps, alone, lagrange, reduction = runs
        assert not any(run.failure for run in runs)
        assert sweeps.violation.max() < PAPER_VIOLATION
        # One motion: the same angles at the end, and the energy of the start.
        for run in runs:
            assert run.energy.max() < 1e-5
            assert np.abs(run.q[-1] - sweeps.q[-1]).max() < 1e-4
        # Without the first two sweeps it is a method at acceleration level like any other.
        assert 0.2 < alone.violation[-1] / lagrange.violation[-1] < 5
        assert reduction.violation[-1] < lagrange.violation[-1]
        assert reduction.violation[-1] > 1e4 * sweeps.violation[-1]
        if until >= 10.0:
            assert sweeps.exponent < PAPER_EXPONENTS["O-DCA"]
            assert 1.5 < lagrange.exponent < 2.5
            assert 0.6 < reduction.exponent < 1.4
    if plot:  # figures 6 to 9 of the paper
        draw(plot, found)
    return found


if __name__ == "__main__":
    start_program(
        main,
        "Closure of a four-bar and a seven-bar without stabilization.",
        motion=lambda: pl.simulate(robot := mechanism("sevenbar"), robot.neutral, until=10.0),
    )
