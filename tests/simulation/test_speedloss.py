"""Tests of `pinloop.simulation.accuracy`: what a projection takes is the error of a step, or a
run stops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.simulation.accuracy import speed_loss

from ..states import moving, one_body, robot
from .test_tangents import FORMULATIONS, flat, random_bars, rates, tangents

every_formulation = pytest.mark.parametrize(
    "formulation", FORMULATIONS, ids=lambda f: type(f).__name__
)
METHODS = {
    "controlled": pl.MuntheKaas(),
    "loose": pl.MuntheKaas("bs32", rtol=1e-3, atol=1e-3),
    "fixed": pl.MuntheKaas("rk4", step=1e-2),
}
every_method = pytest.mark.parametrize("method", METHODS)


def kink(t: float) -> tuple[float, float, float]:
    """At 1 m/s until 0.1 s, then at 3 m/s: no acceleration tells of it."""
    return (t, 1.0, 0.0) if t < 0.095 else (0.095 + 3 * (t - 0.095), 3.0, 0.0)


@every_method
def test_a_prescribed_motion_that_jumps_stops_the_run(method: str) -> None:
    """2 kg from 1 to 3 m/s: 1 J becomes 9 J, and the velocity turns by twice itself."""
    cart = one_body("prismatic", mass=2.0, gravity=(0, 0, 0))
    with pytest.raises(
        pl.SimulationFailed,
        match=r"'prescribed joint' is missed by 2.*turn 2 of the speed and gain 8 of 1 J",
    ) as caught:
        pl.simulate(
            cart, [0.0], [1.0], until=0.2, rows=[pl.constraints.Prescribed("joint", kink)],
            method=METHODS[method],
        )  # fmt: skip
    run = caught.value.trajectory
    assert caught.value.reason == "speed taken"
    assert 0.0 < run.t[-1] < 0.095 and np.all(run.v == 1.0)


@every_method
def test_rates_without_their_accelerations_stop_the_run(method: str) -> None:
    cart = one_body("prismatic", gravity=(0, 0, 0))
    row = pl.constraints.Prescribed("joint", lambda t: (np.sin(9 * t), 9 * np.cos(9 * t), 0.0))
    with pytest.raises(pl.SimulationFailed, match=r"'prescribed joint' is missed by .* and lose"):
        pl.simulate(cart, [0.0], [9.0], until=0.2, rows=[row], method=METHODS[method])


@every_formulation
def test_no_run_is_done_that_a_singular_pose_has_robbed(
    formulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the look at the start: between two tangents the first projection takes the speed."""
    monkeypatch.setattr("pinloop.simulation.initial_state.obstacle", lambda *state: None)
    bars = (0.6, 0.5, 0.4)
    machine = flat(bars)
    first, second = (float(rate) for rate in tangents(bars))
    for part in (0.1, 0.5, 0.8):
        v = rates(bars, 1.0, first + part * (second - first))
        with pytest.raises(pl.SimulationFailed) as caught:
            pl.simulate(machine, machine.neutral, v, until=0.1, formulation=formulation)
        balance = caught.value.trajectory.energy()
        assert np.abs(balance.error).max() < 1e-5 * balance.kinetic.max()


@pytest.mark.parametrize("seed", range(20))
def test_beside_singular_poses_a_run_stops_or_keeps_its_energy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bars = random_bars(seed)
    machine = flat(bars)
    v = rates(bars, 1.0, float(tangents(bars)[seed % 2]))
    v *= 3.0 / np.abs(v).max()
    q = machine.neutral + 10 ** rng.uniform(-12, -4) * rng.normal(size=3)
    try:
        q = pl.assemble(machine, q, limits=False)
        run = pl.simulate(
            machine, q, v, until=0.3, formulation=FORMULATIONS[seed % len(FORMULATIONS)],
            stabilization=pl.Projection(coordinates="mass" if seed % 3 else "optimal"),
        )  # fmt: skip
    except pl.InconsistentVelocity:
        return
    except pl.SimulationFailed as failure:
        run = failure.trajectory
    assert np.abs(run.energy().error).max() < 1e-5 * run.energy().kinetic.max()


# -- the measure ------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [0.5, 99.0, 101.0, 1e6])
def test_a_controlled_step_may_err_by_its_tolerance(times: float) -> None:
    """In the kinetic metric: as many tolerances as allowed, whatever the masses are."""
    machine = robot("four-bar")
    equations = pl.EquationsOfMotion(machine)
    q, v = moving(machine, 2)
    M = equations.mass(q)
    for tolerance in (np.full(3, 1e-5), np.array([1e-4, 1e-6, 1e-5])):
        direction = np.random.default_rng(2).normal(size=3)
        direction *= np.sqrt((np.diag(M) @ tolerance**2) / (direction @ M @ direction))
        after = v + times * direction
        found = speed_loss(equations, 0.0, q, (v, v, after), tolerance)
        assert (found is not None) == (times > 100)
        if found is not None:
            assert found.times == pytest.approx(times / 100)
            lost = 0.5 * v @ M @ v - 0.5 * after @ M @ after
            assert found.energy == pytest.approx(lost) and found.kinetic == pytest.approx(
                0.5 * v @ M @ v
            )


def test_a_fixed_step_may_err_by_what_it_changes() -> None:
    cart = one_body("prismatic", mass=3.0)
    equations = pl.EquationsOfMotion(
        cart, rows=[pl.constraints.Prescribed("joint", lambda t: (0.0, 1.0, 0.0))]
    )
    for start, before, after, fine in (
        (1.0, 1.5, 1.1, True),
        (1.0, 1.5, 0.9, False),
        (1.0, 1.0, 1.0005, True),
        (1.0, 1.0, 1.002, False),
        (0.0, 1.0, 0.5, True),
    ):
        velocities = np.array([start]), np.array([before]), np.array([after])
        found = speed_loss(equations, 0.0, np.zeros(1), velocities, None)
        assert (found is None) == fine
        if found is not None:
            assert found.row == "prescribed joint" and found.residual == abs(before - 1.0)
            assert found.share == pytest.approx(abs(after - before) / before)


@pytest.mark.parametrize("times", [50.0, 150.0])
def test_a_loose_projection_may_correct_by_its_own_tolerance(times: float) -> None:
    """It lets states drift, and then takes as much away at once; lengths count per length."""
    machine = robot("slider-crank")
    q, v = moving(machine, 2)
    M = pl.EquationsOfMotion(machine).mass(q)
    unit = np.where(machine.is_translation, machine.length, 1.0)
    assert np.ptp(unit) > 0
    moved = 1e-4 * unit * np.sqrt((np.diag(M) @ unit**2) / (unit @ M @ unit))
    equations, shifted = pl.EquationsOfMotion(machine), (v, v, v + times * moved)
    found = speed_loss(equations, 0.0, q, shifted, np.full(machine.nv, 1e-14), 1e-4)
    assert (found is not None) == (times > 100)


def test_rounding_is_no_loss_however_fine_the_tolerances_are() -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 2)
    shifted, tolerance = (v, v, v * (1 + 5e-11)), np.full(3, 1e-18)
    assert speed_loss(pl.EquationsOfMotion(machine), 0.0, q, shifted, tolerance) is None
