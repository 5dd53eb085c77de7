"""Tests of `pinloop.simulation.accuracy`: what a run may miss of its energy, and that it says so
if it does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.simulation.accuracy import Accuracy, Course, explained_error, turned_over

from ..screw_tables import Array
from ..states import moving, one_body, robot

METHODS = {
    f"{name} {tolerance:g}": pl.MuntheKaas(name, rtol=tolerance, atol=tolerance)
    for name, tolerance in (
        ("bs32", 1e-3), ("dopri5", 1e-3), ("dopri5", 1e-8), ("dop853", 1e-5), ("dop853", 1e-11),
    )
}  # fmt: skip
MACHINES = ["four-bar", "prrr3", "rssr", "bennett", "double-pendulum", "palletizer"]


def ratio(run: pl.Trajectory) -> float:
    """Largest error of the balance over what is explained."""
    assert run.accuracy is not None
    states = run.t, run.q, run.v, run.a
    course = Course(run.robot, run.equations, *states, run._at, run.accuracy)
    balance = run.energy()
    explained = explained_error(course, balance)
    assert np.all(np.diff(explained) >= 0) and explained[0] >= 0
    return float(np.max(np.abs(balance.error)[1:] / explained[1:]))


def told(run: pl.Trajectory) -> list[str]:
    """What a run says of its energy, not of limits that joints pass."""
    return [warning for warning in run.warnings if "limit" not in warning]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", MACHINES)
def test_healthy_runs_miss_a_part_of_what_is_explained(name: str, method: str) -> None:
    machine = robot(name)
    q, v = moving(machine, 1, speed=3.0)
    push = pl.TorqueFunction(lambda t, q, v: 2 * np.sin(9 * t) * np.eye(machine.nv)[0])
    for forces in ([], [push]):
        run = pl.simulate(machine, q, v, until=0.3, method=METHODS[method], forces=forces)
        assert ratio(run) < 0.1 and told(run) == []


# -- what a known error is worth ------------------------------------------------------------------


def pushed(run: pl.Trajectory, at: int, push: Array) -> pl.Trajectory:
    """A run of a conservative system in which a velocity jumps for no reason."""
    v = run.v.copy()
    v[at:] += push
    return replace(run, v=v)


def cart(method: pl.MuntheKaas, **more: Any) -> pl.Trajectory:
    """3 kg at 2 m/s with nothing that acts."""
    body = one_body("prismatic", mass=3.0, gravity=(0, 0, 0))
    return pl.simulate(body, [0.0], [2.0], until=1.0, method=method, **more)


def test_a_known_error_is_explained_up_to_the_tolerances_of_all_steps() -> None:
    """``3 kg 2 m/s`` times ``1e-3 2 m/s + 1e-5 L`` per step, by hand."""
    run = cart(pl.MuntheKaas(rtol=1e-3, atol=1e-5, largest=0.1))
    steps = len(run.t) - 1
    assert run.accuracy == Accuracy(
        pl.MuntheKaas(rtol=1e-3, atol=1e-5, largest=0.1), steps, pl.Projection().tol
    )
    explained = steps * 3.0 * 2.0 * (1e-3 * 2.0 + 1e-5 * run.robot.length)
    for part, fine in ((0.5, True), (0.98, True), (1.02, False), (3.0, False)):
        # 0.5 * 3 ((2 + x)^2 - 4) = part * explained; forces and momenta are a little larger then.
        x = np.sqrt(4.0 + part * explained / 1.5) - 2.0
        wrong = pushed(run, steps, np.array([x]))
        assert (wrong.warnings == ()) == fine
        assert ratio(wrong) == pytest.approx(part, rel=0.02)
    assert "warning: the energy balance is off by" in str(wrong)
    assert "times what the tolerances explain, from t = 1 s on" in str(wrong)


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("name", ["four-bar", "rssr", "prrr3"])
def test_energy_that_is_lost_or_made_is_told(name: str, sign: int) -> None:
    machine = robot(name)
    q, v = moving(machine, 1)
    run = pl.simulate(machine, q, v, until=0.3, losses=False)
    assert told(run) == []
    at = len(run.t) // 2
    wrong = pushed(run, at, sign * 1e-3 * run.v[at])
    (warning,) = told(wrong)
    assert "times what the tolerances explain" in warning
    assert f"from t = {run.t[at]:.6g} s on" in warning


def test_fixed_steps_may_miss_a_hundredth_of_the_energy_turned_over() -> None:
    """A pendulum from the side, with Euler's method: the error goes with the step."""
    machine = one_body("revolute", com=(0.5, 0, 0), gravity=(0, -9.81, 0))
    fine = pl.simulate(machine, [0.0], until=1.0, method=pl.MuntheKaas("euler", step=0.002))
    part = np.abs(fine.energy().error).max() / turned_over(fine.energy())
    assert 1e-3 < part < 1e-2 and fine.warnings == ()
    coarse = pl.simulate(machine, [0.0], until=1.0, method=pl.MuntheKaas("euler", step=0.05))
    balance = coarse.energy()
    assert turned_over(balance) == pytest.approx(
        np.ptp(balance.kinetic) + np.ptp(balance.potential)
    )
    part = np.abs(balance.error).max() / turned_over(balance)
    assert part > 0.02
    (warning,) = coarse.warnings
    assert f"{part:.2g} of the energy turned over: take a smaller step" in warning


# -- work, locks, samples -----------------------------------------------------------------------


@pytest.mark.parametrize(("method", "least"), [("dopri5", 15), ("dop853", 7)])
@pytest.mark.parametrize("every", [None, 0.05])
def test_work_of_forces_impulses_and_motions_is_no_error(
    every: float | None, method: str, least: int
) -> None:
    machine = robot("five-bar")
    rows = [pl.constraints.Prescribed("m1", lambda t: (0.2 * np.sin(3 * t), 0.6 * np.cos(3 * t),
                                           -1.8 * np.sin(3 * t)))]  # fmt: skip
    v = pl.consistent_velocity(machine, machine.neutral, {"m1": 0.6, "m2": 0.5})
    run = pl.simulate(
        machine, machine.neutral, v, until=0.6, rows=rows, save_every=every,
        method=pl.MuntheKaas(method),
        forces=[pl.forces.JointDamping({"e1": 0.3}), pl.PD("m2", 20.0, 1.0, 0.3)],
        events=[pl.lock("m2", at=0.31)],
    )  # fmt: skip
    assert run.transitions and run.transitions[0].energy_loss > 0
    assert len(run.energy().work) == 4 and run.warnings == ()
    assert run.accuracy is not None and run.accuracy.steps > least


@pytest.mark.parametrize("method", ["dopri5 1e-08", "rk4"])
def test_samples_too_few_to_integrate_work_along_are_no_error_of_the_run(method: str) -> None:
    """The push swings with a period of 0.31 s; a quintic over 0.25 s does not follow it."""
    chosen = METHODS.get(method, pl.MuntheKaas("rk4", step=1e-3))
    push = pl.Torque("joint", lambda t: 60 * np.cos(20 * t))
    dense = cart(chosen, forces=[push])
    run = cart(chosen, forces=[push], save_every=0.25)
    missed = np.abs(run.energy().error).max()
    assert missed > 0.015 * turned_over(run.energy())
    assert missed > 1e4 * np.abs(dense.energy().error).max()
    assert dense.warnings == () and run.warnings == ()


def test_errors_of_positions_are_worth_their_forces() -> None:
    """A stiff spring: where it turns round there is no momentum, but ``k x`` times the error."""
    stiffness, x = 1e6, 1e-3
    body = one_body("prismatic", mass=2.0, gravity=(0, 0, 0))
    method = pl.MuntheKaas(rtol=1e-5, atol=1e-5)
    run = pl.simulate(body, [x], until=1e-6, forces=[pl.forces.JointSpring("joint", stiffness)],
                      method=method)  # fmt: skip
    assert run.accuracy is not None
    steps, force = run.accuracy.steps, stiffness * x
    explained = 2 * force * 2e-5 * body.length * steps  # of the spring, and of what it moves
    assert ratio(replace(run, v=run.v + [[0.0]] * len(run.t))) < 0.1
    for part, fine in ((0.9, True), (1.2, False)):
        push = np.sqrt(2 * part * explained / 2.0)
        assert (pushed(run, len(run.t) - 1, np.array([push])).warnings == ()) == fine


def test_saved_runs_know_nothing_of_their_accuracy(tmp_path: Any) -> None:
    run = cart(pl.MuntheKaas())
    again = pl.load_trajectory(run.save(tmp_path / "run.npz"))
    assert again.accuracy is None and again.warnings == ()
