"""Four-bars that swing through singular configurations, and that start in one (paper 3, 4.2).

No stabilization. Figure 5-a: four bars of equal length, the pivots one above the other; hanging
down, all lie in one line and the constraint equations lose rank: the linkage could go on as a
parallelogram, crossed, or with one bar at rest. Figure 5-b: two bars hang from the upper pivot and
hold the tip of the third; stretched, that one is at the end of its stroke and no longer decides
what they do. Both equilibria are singular, so that the linkages pass them twice per swing. The
distance of the pivots in 5-b, the releases and the initial speeds are our choice.

Expected from the paper (figure 10): O-DCA is not affected, even if it starts in the singular
configuration with a velocity, where textbook methods fail at once. Asserted: that, and the exact
motion of 5-a, where three parallel bars move like a pendulum whose period is an elliptic integral.

Where the linkage only passes such a pose, our textbook methods continue, unlike those of the paper:
a step rarely ends exactly there. What the linkage then does off its manifold, near the branching,
is another matter: compare the energies. ``pl.Augmented`` determines the rank, so that it can start
there too.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ellipk

import pinloop as pl
from common.closure import (
    Array,
    Lagrange,
    Reduction,
    Run,
    Sweeps,
    draw,
    go,
    linkage,
    print_runs,
    start_program,
)

SWING = 0.6
"""Angle from which 5-a is released [rad]."""
SPEED = 1.5
"""Largest joint speed of the runs that start in the singular configuration [rad/s]."""
LIFT = 0.5
"""Angle from which 5-b is released [rad]."""
GRAVITY = 9.81
BARS = ("bar_A", "bar_B", "bar_C")


def parallelogram(angle: float) -> pl.Mechanism:
    """Figure 5-a with its outer bars at an angle from the vertical."""
    x, z = np.sin(angle), -np.cos(angle)
    return linkage("figure 5-a", [[0, 0], [x, z], [x, z - 1], [0, -1]], BARS, cut=3)


def toggle(angle: float) -> pl.Mechanism:
    """Figure 5-b with its first bar at an angle above the horizontal."""
    tip, pivot = np.array([np.cos(angle), np.sin(angle)]), np.array([1.0, 2.0])
    apart = pivot - tip
    distance = float(np.linalg.norm(apart))
    aside = np.sqrt(max(0.0, 1 - distance**2 / 4)) * np.array([-apart[1], apart[0]]) / distance
    return linkage("figure 5-b", [[0, 0], tip, tip + apart / 2 + aside, pivot], BARS, cut=3)


def period(angle: float) -> float:
    """Period of 5-a as a parallelogram, from rest at an angle [s].

    The outer bars turn about their ends, the coupler moves with their tips without turning: inertia
    ``2 (1 + 1/4) + 1``, weight ``2 g / 2 + g`` at unit distance.
    """
    inertia, weight = 2 * (1.0 + 0.25) + 1.0, 2 * 0.5 * GRAVITY + GRAVITY
    return float(4 * np.sqrt(inertia / weight) * ellipk(np.sin(angle / 2) ** 2))


def runs_of(robot: pl.Mechanism, v: Array, until: float) -> list[Run]:
    """Every method from the reference configuration."""
    methods = (
        Sweeps(robot),
        Sweeps(robot, all_four=False),
        Lagrange(robot, plain=False),
        Lagrange(robot, plain=True),
        Reduction(robot, [0]),
    )
    return [go(robot, method, robot.neutral, v, until) for method in methods]


def main(until: float = 20.0, plot: str | None = None) -> dict[str, list[Run]]:
    """All four cases; returns the runs."""
    rest = np.zeros(3)
    # Stretched, the tip rests and the middle hinge moves sideways: bars B and C turn against
    # each other.
    start = SPEED * np.array([0.0, -0.5, 1.0])
    found = {
        "5-a, swinging through": runs_of(parallelogram(SWING), rest, until),
        "5-a, started singular": runs_of(parallelogram(0.0), SPEED * np.array([1, -1, 1]), until),
        "5-b, swinging through": runs_of(toggle(LIFT), rest, until),
        "5-b, started singular": runs_of(toggle(0.0), start, until),
    }
    for title, runs in found.items():
        print_runs(f"figure {title}, {until:g} s", runs)
        sweeps = runs[0]
        assert not sweeps.failure
        assert sweeps.violation.max() < 1e-14 and sweeps.energy.max() < 1e-5
    for case in ("5-a, started singular", "5-b, started singular"):
        by_method = {run.method: run for run in found[case]}
        assert by_method["reduction, velocity level"].failure
        assert bool(by_method["Lagrange, plain"].failure) == case.startswith("5-a")
        assert len(by_method["reduction, velocity level"].t) == 1  # at once
    check_pendulum(found["5-a, swinging through"][0])
    if plot:  # figure 10 of the paper
        draw(plot, found)
    return found


def check_pendulum(run: Run) -> None:
    """A parallelogram that stays one, in the time of its pendulum."""
    angle = SWING + run.q[:, 0]
    assert np.abs(run.q - run.q[:, :1] * np.array([1, -1, 1])).max() < 1e-6
    down = np.flatnonzero((angle[:-1] > 0) & (angle[1:] <= 0))
    assert len(down) >= 2
    part = angle[down] / (angle[down] - angle[down + 1])
    passed = run.t[down] + part * (run.t[down + 1] - run.t[down])
    measured = float(np.mean(np.diff(passed)))
    print(f"period of 5-a: {measured:.4f} s, exact {period(SWING):.4f} s")
    assert abs(measured / period(SWING) - 1) < 1e-3


if __name__ == "__main__":
    start_program(
        main,
        "Four-bars through singular configurations, without stabilization.",
        motion=lambda: pl.simulate(robot := toggle(LIFT), robot.neutral, until=10.0),
    )
