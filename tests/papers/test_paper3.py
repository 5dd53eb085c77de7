"""Paper 3 (orthogonal-complement divide and conquer): closure of loops, singular four-bars.

Runs shorter than the examples', which check growth exponents and 20 s of the paper.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from ..screw_tables import Array
from .programs import picture, program


def drawn(path: str | None) -> bool:
    return path is None or Path(path).stat().st_size > 10_000


def test_sweeps_keep_loops_closed_where_multipliers_let_them_open(tmp_path: Path) -> None:
    path = picture(tmp_path)
    found = program("odca_loops").main(until=2.0, plot=path)
    assert drawn(path)
    for runs in found.values():
        sweeps, alone, lagrange, _ = runs
        assert sweeps.violation.max() < 1e-14
        assert lagrange.violation.max() > 1e3 * sweeps.violation.max()
        assert alone.violation[-1] == pytest.approx(lagrange.violation[-1], rel=0.5)
        assert np.all(np.diff(sweeps.t) > 0) and sweeps.t[-1] == 2.0


def fourbar_angle(until: float) -> float:
    """Crank angle of the four-bar at a time, from its energy alone.

    One freedom: ``T = m(c) c'^2 / 2`` with the mass from finite differences of the placements of
    three rods, ``m c'' + m' c'^2 / 2 + U' = 0``.
    """

    def centres(c: float) -> Array:
        """Centres of mass, and angles, of crank, coupler and rocker."""
        tip, pivot = np.array([np.cos(c), np.sin(c)]), np.array([0.44, 0.0])
        apart = pivot - tip
        distance = float(np.linalg.norm(apart))
        normal = np.array([-apart[1], apart[0]]) / distance
        aside = np.sqrt(1 - distance**2 / 4) * normal
        joint = tip + apart / 2 + aside
        angles = [c, np.arctan2(*(joint - tip)[::-1]), np.arctan2(*(joint - pivot)[::-1])]
        middles = [tip / 2, (tip + joint) / 2, (pivot + joint) / 2]
        return np.array([[*middle, angle] for middle, angle in zip(middles, angles, strict=True)])

    def mass(c: float) -> float:
        h = 1e-4
        turn = np.angle(np.exp(1j * (centres(c + h) - centres(c - h))[:, 2]))
        move = (centres(c + h) - centres(c - h))[:, :2]
        return float((np.sum(move**2) + np.sum(turn**2)) / (4 * h * h))

    def rates(t: float, y: Array) -> list[float]:
        c, speed = y
        h = 1e-4
        slope = (mass(c + h) - mass(c - h)) / (2 * h)
        lift = float(np.sum((centres(c + h) - centres(c - h))[:, 1]) / (2 * h))
        return [speed, -(0.5 * slope * speed**2 + 9.81 * lift) / mass(c)]

    assert centres(0.0)[1] == pytest.approx([0.86, -0.48, np.arctan2(-0.96, -0.28)], abs=1e-9)
    return float(solve_ivp(rates, (0, until), [0.0, 0.0], rtol=1e-8, atol=1e-8).y[0, -1])


def test_fourbar_falls_as_its_energy_says() -> None:
    runs = program("odca_loops").release("fourbar", until=0.8)
    expected = fourbar_angle(0.8)
    assert expected < -0.4
    for run in runs:
        assert run.q[-1, 0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("case", ["parallelogram", "toggle"])
def test_only_textbook_methods_fail_in_the_singular_configuration(case: str) -> None:
    singular = program("odca_singular")
    robot = getattr(singular, case)(0.0)
    direction = {"parallelogram": [1.0, -1.0, 1.0], "toggle": [0.0, -0.5, 1.0]}[case]
    runs = singular.runs_of(robot, singular.SPEED * np.array(direction), 0.7)
    failed = {run.method: bool(run.failure) for run in runs}
    assert failed == {
        "O-DCA, all four sweeps": False,
        "O-DCA, accelerations only": False,
        "Lagrange, pl.Augmented": False,
        "Lagrange, plain": case == "parallelogram",
        "reduction, velocity level": True,
    }
    assert runs[0].violation.max() < 1e-14
    assert runs[0].energy.max() < 1e-5


def test_parallelogram_swings_through_with_the_period_of_its_pendulum() -> None:
    """`check_pendulum` of the example, against integration of the pendulum's equation."""
    singular = program("odca_singular")

    def crossing(t: float, y: Array) -> float:
        return float(y[0])

    inertia, weight = 3.5, 2 * 9.81
    motion: Any = solve_ivp(
        lambda t, y: [y[1], -weight / inertia * np.sin(y[0])],
        (0, 2), [singular.SWING, 0.0], events=crossing, rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    quarter = motion.t_events[0][0]
    assert singular.period(singular.SWING) == pytest.approx(4 * quarter, rel=1e-8)
    robot = singular.parallelogram(singular.SWING)
    from_rest = singular.go(robot, singular.Sweeps(robot), robot.neutral, np.zeros(3), 4.5)
    assert not from_rest.failure
    singular.check_pendulum(from_rest)
