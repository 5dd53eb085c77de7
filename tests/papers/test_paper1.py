"""Paper 1 (differential-geometric modelling): satellite and snakeboard of section 5.4.

Runs shorter than the examples', which check the paper's claims; models and projections are compared
with what follows by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

import pinloop as pl

from .programs import picture, program


def drawn(path: str | None) -> bool:
    return path is None or Path(path).stat().st_size > 10_000


# -- satellite ------------------------------------------------------------------------------


def folded_inertia() -> tuple[float, float]:
    """Inertia about the centre of mass of the folded satellite, and the height of that centre.

    All parts lie on one another, upwards from the hinges in the middle of the body's sides.
    """
    body = 870.0 / 12 * (1.7**2 + 2.1**2)
    part = 8.0 / 12 * (1.74**2 + 0.03**2)
    mass, height = 870.0 + 8 * 8.0, 8 * 8.0 * 0.87 / (870.0 + 8 * 8.0)
    about_body = body + 8 * (part + 8.0 * (0.85**2 + 0.87**2))
    return about_body - mass * height**2, height


def test_angular_momentum_of_the_satellite_drifts_unless_it_is_a_row(tmp_path: Path) -> None:
    satellite, path = program("satellite_panels"), picture(tmp_path)
    worst = satellite.main(until=7.0, plot=path)
    assert drawn(path)
    assert worst["free"] > 1e9 * worst["held"]
    assert worst["reference"] < 1e-6 * worst["free"]


def test_satellite_starts_folded_and_opens() -> None:
    satellite = program("satellite_panels")
    run, momentum, energy = satellite.unfold(pl.MuntheKaas("dopri5"), until=4.0)
    inertia, height = folded_inertia()
    assert run.momentum().angular[0, 2] == pytest.approx(0.05 * inertia, rel=1e-12)
    # Four springs per panel: 90 deg at the body, 180 deg at the others.
    stored = 2 * 0.5 * 0.57 * (1 + 3 * 4) * (np.pi / 2) ** 2
    spinning = 0.5 * 0.05**2 * (inertia + (870.0 + 64.0) * height**2)
    assert run.energy().total[0] == pytest.approx(stored + spinning, rel=1e-12)
    assert np.abs(momentum).max() < 1e-5 and np.abs(energy).max() < 1e-5
    hinges = [run.robot.coordinates(f"{panel}_hinge_1").q for panel in ("east", "west")]
    assert all(run.q[-1, at][0] < run.q[0, at][0] - 0.1 for at in hinges)
    # It opens, so it turns more slowly: a skater with spread arms.
    assert run.v[-1, 2] < 0.9 * 0.05


def test_conservation_law_changes_no_motion() -> None:
    """It holds anyway: as a row it has nothing to push, it only corrects the integrator."""
    satellite, method = program("satellite_panels"), pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    free, held = (satellite.unfold(method, law=law, until=3.0)[0] for law in (False, True))
    np.testing.assert_allclose(held.q[-1], free.q[-1], atol=1e-8)
    np.testing.assert_allclose(held.v[-1], free.v[-1], atol=1e-8)


# -- snakeboard -----------------------------------------------------------------------------

COUPLED = {"A": 0.8, "B": 2.0, "C": 0.8, "D": 2.4}
TOTAL = sum(COUPLED.values())
TURNING = 0.042 + 2 * 0.8 * 0.25**2
"""Inertia of what turns with the coupler: boards and rotor are points to it."""


def projections_at_rest() -> tuple[list[float], list[float]]:
    """Relative projections of (x, y, theta) of A, B, C, D with the board straight along x.

    Pins alone leave two translations and the turning of the coupler with boards and rotor carried
    along; ``e' M e`` of their normed directions, divided by the mass of a coordinate, is what is
    free of it. Straight wheels leave the translation along x only.
    """
    positions, velocities = [], []
    for body, mass in COUPLED.items():
        arm = 0.25 if body in "AC" else 0.0
        turns = 0.042 / TURNING if body == "B" else 1.0
        positions += [1 - mass / TOTAL, 1 - mass / TOTAL - mass * arm**2 / TURNING, 1 - turns]
        velocities += [1 - mass / TOTAL, 1.0, 1.0 if body == "B" else 0.0]
    return positions, velocities


def test_relative_projections_of_the_snakeboard(tmp_path: Path) -> None:
    path = picture(tmp_path)
    result = program("snakeboard").main(until=1.0, plot=path)
    assert drawn(path)
    np.testing.assert_allclose(result.projections[0], projections_at_rest(), atol=1e-9)
    names = program("snakeboard").mechanism().joints
    for first, second in result.sets:
        positions, velocities = ({names[i] for i in chosen} for chosen in (first, second))
        assert len(positions) == 6 and len(velocities) == 8
        # Sideways the boards are free as positions, and tied as velocities.
        assert {"y_A", "y_C"} <= velocities and not {"y_A", "y_C"} & positions
        assert not {"theta_A", "theta_C", "theta_D"} & (positions | velocities)


def test_corrections_of_the_snakeboard_are_second_order_in_the_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Euler leaves the rows by h^2, so ``dv' M dv`` falls by 16 with half the step."""
    board = program("snakeboard")
    run = board.reference(0.5)
    coarse = board.steps(run).errors[10:, 0]
    monkeypatch.setattr(board, "STEP", 0.005)
    fine = board.steps(run).errors[20::2, 0]
    assert 10 < np.median(coarse / fine[: len(coarse)]) < 24


def test_straight_snakeboard_is_a_sledge(monkeypatch: pytest.MonkeyPatch) -> None:
    board = program("snakeboard")
    monkeypatch.setattr(board, "AMPLITUDE", 0.0)
    run = board.reference(1.0)
    at = run.robot.coordinates("x_B").q
    assert run.q[-1, at][0] == pytest.approx(0.5 * 2.0 / TOTAL, rel=1e-9)


def test_steering_follows_its_target() -> None:
    run = program("snakeboard").reference(1.3)
    theta = {name: run.robot.coordinates(f"theta_{name}").q.start for name in "ABC"}
    t = np.array([0.25, 0.6, 1.0, 1.25])
    q = run(t).q
    target = 0.5 * np.sin(2 * np.pi * t)
    np.testing.assert_allclose(q[:, theta["C"]] - q[:, theta["B"]], target, atol=0.05)
    np.testing.assert_allclose(q[:, theta["A"]] - q[:, theta["B"]], -target, atol=0.05)


def test_force_stays_parallel_to_the_coupler() -> None:
    run = program("snakeboard").reference(1.3)
    x, y, theta = (run.robot.coordinates(f"{name}_B").v.start for name in ("x", "y", "theta"))
    t = np.linspace(0.0, 1.3, 2001)
    _, q, v = run(t)
    along = np.cos(q[:, theta]) * v[:, x] + np.sin(q[:, theta]) * v[:, y]
    assert np.abs(q[:, theta]).max() > 0.1
    work = run.energy().work["force on B"][-1]
    assert work == pytest.approx(2.0 * trapezoid(along, t), rel=1e-6)
