"""Paper 2 (choice of configuration space): its four mechanisms, in runs shorter than the examples'.

Each example checks what the paper claims; here it runs with the claims, and its mechanism is
compared with what follows by hand: energies at the start, motions from other equations, and errors
that fall with the order of the method.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import pinloop as pl

from .programs import picture, program

Array = NDArray[np.float64]


def kinetic_energy(bodies: list[tuple[float, Array, Array, Array]]) -> float:
    """Of bodies given by mass, inertia, velocity of the centre and angular velocity."""
    return float(sum(0.5 * (m * v @ v + w @ inertia @ w) for m, inertia, v, w in bodies))


def box(mass: float, a: float, b: float, c: float) -> Array:
    return mass / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])


def energy_of(robot: pl.Mechanism, v: Array) -> float:
    return float(pl.EquationsOfMotion(robot).energies(0.0, robot.neutral, v)[0])


def allowed(robot: pl.Mechanism, v: Array) -> bool:
    return bool(np.abs(pl.Constraints(robot, full=True).jacobian(robot.neutral) @ v).max() < 1e-12)


def drawn(path: str | None) -> bool:
    return path is None or Path(path).stat().st_size > 10_000


# -- heavy top ------------------------------------------------------------------------------


def top_by_euler(until: float) -> Array:
    """Centre of mass of the torque-free top: Euler's equations about the pivot, ``R' = R w^``."""
    r = np.array([0.5, 0, 0])
    inertia = np.diag([0.36, 0.306, 0.09]) + 21.6 * (r @ r * np.eye(3) - np.outer(r, r))

    def rate(t: float, state: Array) -> Array:
        R, w = state[:9].reshape(3, 3), state[9:]
        turning = np.column_stack([np.cross(w, e) for e in np.eye(3)])
        rates = np.linalg.solve(inertia, np.cross(inertia @ w, w))
        return np.concatenate([(R @ turning).ravel(), rates])

    start = np.r_[np.eye(3).ravel(), 0, 20 * np.pi, 10 * np.pi]
    found = solve_ivp(rate, (0, until), start, method="DOP853", rtol=1e-12, atol=1e-12)
    return np.asarray(found.y[:9, -1].reshape(3, 3) @ r)


def test_heavy_top_stays_on_its_pivot_on_se3_only(tmp_path: Path) -> None:
    path = picture(tmp_path)
    drifts = program("heavy_top").main(until=0.2, plot=path)
    assert drawn(path)
    w, r = np.pi * np.array([0, 20, 10]), np.array([0.5, 0, 0])
    by_hand = kinetic_energy([(21.6, np.diag([0.36, 0.306, 0.09]), np.cross(w, r), w)])
    assert by_hand == pytest.approx(13.97e3, abs=5)
    for drift in drifts.values():
        assert drift.kinetic[0] == pytest.approx(by_hand, rel=1e-12)
        assert drift.t[-1] == 0.2
    np.testing.assert_allclose(drifts["SE3"].end, top_by_euler(0.2), atol=1e-6)
    assert np.linalg.norm(drifts["SO3xR3"].end - top_by_euler(0.2)) > 1e-5


def test_heavy_top_drifts_with_the_order_of_the_method() -> None:
    top = program("heavy_top")
    coarse, fine = (top.drift("SO3xR3", 0.2, step).pivot.max() for step in (1e-3, 5e-4))
    assert 12 < coarse / fine < 20
    coarse, fine = (
        np.linalg.norm(top.drift("SE3", 0.2, step).end - top_by_euler(0.2)) for step in (2e-3, 1e-3)
    )
    assert 12 < coarse / fine < 20


# -- mechanisms of boxes --------------------------------------------------------------------


def test_double_pendulum_keeps_the_joint_to_the_ground_on_se3_only(tmp_path: Path) -> None:
    pendulum, path = program("spherical_double_pendulum"), picture(tmp_path)
    drifts = pendulum.main(until=0.3, plot=path)
    assert drawn(path)
    w1, w2, half = np.array([10.0, 0, 0]), np.pi * np.array([10, 10, 20]), np.array([0.1, 0, 0])
    inertia = box(2.7, 0.2, 0.1, 0.05)
    v2 = 2 * np.cross(w1, half) + np.cross(w2, half)
    by_hand = kinetic_energy([(2.7, inertia, np.cross(w1, half), w1), (2.7, inertia, v2, w2)])
    robot = pendulum.mechanism().absolute("SO3xR3")
    v = pendulum.start(robot)
    assert allowed(robot, v)
    assert energy_of(robot, v) == pytest.approx(by_hand, rel=1e-12)
    assert set(drifts["SE3"].opening) == {"joint_1", "joint_2"}


@pytest.mark.parametrize("space", ["SE3", "SO3xR3", "auto"])
def test_joint_between_moving_bodies_opens_with_the_order_of_the_method(space: str) -> None:
    pendulum = program("spherical_double_pendulum")
    coarse, fine = (
        pendulum.drift(space, 0.2, step).opening["joint_2"].max() for step in (2e-3, 1e-3)
    )
    assert 11 < coarse / fine < 22


def test_floating_bodies_are_alike_in_both_spaces(tmp_path: Path) -> None:
    floating, path = program("floating_bodies"), picture(tmp_path)
    drifts = floating.main(until=0.5, plot=path)
    assert drawn(path)
    w1, w2, half = np.array([0, 0, -10.0]), np.array([1, -1, 2 * np.pi]), np.array([0.1, 0, 0])
    v2 = np.cross(w1, half) + np.cross(w2, half)
    for drift in drifts.values():
        np.testing.assert_allclose(drift.linear[0], 2.7 * v2, atol=1e-13)
        spins = box(2.7, 0.2, 0.1, 0.05) @ (w1 + w2)
        # About the common centre of mass the centres move with half of v2, on opposite sides.
        np.testing.assert_allclose(drift.angular[0], spins + np.cross(half, 2.7 * v2), atol=1e-13)


def test_three_bar_loop_keeps_its_base_joints_on_se3_only(tmp_path: Path) -> None:
    loop, path = program("three_bar_loop"), picture(tmp_path)
    drifts = loop.main(until=0.3, plot=path)
    assert drawn(path)
    robot = loop.mechanism().absolute("SE3")
    v = loop.start(robot)
    assert allowed(robot, v)
    # The boxes' x axes run along (0.6, +-0.8, 0); spins of 20 and 30 rad/s about these.
    inertia, energy = box(2.7, 0.2, 0.1, 0.05), 0.0
    for sign, spin in ((1, 20.0), (-1, 30.0)):
        along = np.array([0.6 * sign, 0.8, 0])
        w = np.array([10.0, 0, 0]) + spin * along
        R = np.column_stack([along, np.cross([0, 0, 1.0], along), [0, 0, 1.0]])
        energy += kinetic_energy([(2.7, R @ inertia @ R.T, np.cross(w, 0.1 * along), w)])
    assert energy_of(robot, v) == pytest.approx(energy, rel=1e-9)
    assert set(drifts["SE3"].opening) == {"ball_1", "ball_2", "ball_3"}


# -- the table ------------------------------------------------------------------------------


def test_table_of_all_mechanisms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = picture(tmp_path)
    table = program("configuration_space").main(until=0.2, plot=path)
    assert drawn(path)
    won = [line.what for line in table if line.winner == "SE3"]
    assert won == ["pivot", "energy", "joint_1", "ball_1", "ball_3"]
    assert not [line for line in table if line.winner == "SO3xR3"]
    printed = capsys.readouterr().out
    assert "spherical_double_pendulum; auto: SE3, SO3xR3" in printed
    assert "floating_bodies; auto: SO3xR3, SO3xR3" in printed
