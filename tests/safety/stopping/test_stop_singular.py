"""Tests of `pl.stop` at singular poses of loops: energy is kept, or the stop says where it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pinloop as pl
from pinloop.integrate import Flow, StepFailed
from pinloop.safety.stopping import on_path, simulation
from pinloop.safety.stopping.failures import explained

from ...mechanisms import COUPLER, CRANK, GROUND_BAR, ROCKER, four_bar, four_bar_q
from ...screw_tables import Array, build
from ...states import robot

SINGULAR = "the loops come into a singular configuration"


def turned_over(stop: pl.StopResult) -> float:
    """The largest energy of a stop [J]."""
    ledger, equations = stop.ledger, stop.history.equations().equations
    kinetic = max(
        0.5 * float(v @ equations.mass(q) @ v) for q, v in zip(stop.run.q, stop.run.v, strict=True)
    )
    return max(ledger.kinetic_before, ledger.heat, kinetic)


SWINGS = [(0.9, 3.0), (2.2, 8.0), (2.8, 3.0)]
"""Angle and rate with which the spherical four-bar swings through its flat poses."""


@pytest.mark.parametrize(("angle", "rate"), SWINGS)
def test_swings_through_many_flat_poses_keep_their_energy(angle: float, rate: float) -> None:
    """What swings freely in a stop moves as it does in a run."""
    machine = robot("spherical_fourbar")
    brakes = pl.Brakes({name: pl.safety.JointBrake(kind="none") for name in machine.joints})
    q = pl.assemble(machine, {"joint_1": angle})
    v = pl.consistent_velocity(machine, q, {"joint_1": rate})
    method = pl.MuntheKaas("dopri5", rtol=1e-10, atol=1e-10)
    stop = pl.stop(machine, q, v, brakes=brakes, until=3.0, method=method)
    run = pl.simulate(machine, q, v, until=3.0, method=method)
    assert abs(stop.ledger.error) < 1e-8 * turned_over(stop)
    np.testing.assert_allclose(stop.run.q[-1], run.q[-1], atol=1e-5)


@pytest.mark.parametrize("category", [0, 1, 2])
@pytest.mark.parametrize("angle", [-7e-5, 1e-3])
def test_what_is_at_rest_beside_a_flat_pose_is_held_there(angle: float, category: int) -> None:
    """No branch is to be followed before it is decided what moves at all."""
    machine = robot("spherical_fourbar")
    q = pl.assemble(machine, {"joint_1": angle})
    stop = pl.stop(machine, q, np.zeros(3), brakes=pl.Brakes.template(machine), category=category)
    assert stop.outcome == "stopped" and np.abs(stop.run.v[-1]).max() < 1e-12
    if category:  # drives hold it until its brake does
        np.testing.assert_allclose(stop.run.q[-1], q, atol=1e-12)
    else:  # without power it falls until its brake comes
        assert stop.ledger.potential_drop > 0 and stop.ledger.relative_error < 1e-6


def before_a_dead_point() -> tuple[pl.Mechanism, Array, Array]:
    """The rocker is to go on beyond its farthest place, where crank and coupler are in line."""
    machine, bar = build(four_bar()), CRANK + COUPLER
    dead = float(np.arccos((bar**2 + GROUND_BAR**2 - ROCKER**2) / (2 * bar * GROUND_BAR)))
    q = machine.configuration(four_bar_q(dead + 0.2), machine.neutral)
    return machine, q, pl.consistent_velocity(machine, q, {"crank": -1.0})


@pytest.mark.parametrize("category", [0, 1])
def test_drives_that_go_on_into_a_dead_point_are_named(category: int, tmp_path: Path) -> None:
    """As long as nobody says how much torque they have."""
    machine, q, v = before_a_dead_point()
    motor = pl.safety.JointBrake(dynamic_torque=5.0, deceleration=1.0)
    brakes = pl.Brakes({"rocker": motor}, pl.safety.Chain(sensor=5.0))
    with pytest.raises(pl.StopFailed, match=f"{SINGULAR} while drives move rocker, ") as failed:
        pl.stop(machine, q, v, brakes=brakes, category=category, until=6.0)
    assert "give their drive_torque" in str(failed.value)
    result = failed.value.result
    assert result.run.q[-1, 0] - q[0] == pytest.approx(-0.2, abs=1e-3)
    assert json.loads(result.save_json(tmp_path / "stop.json").read_text())
    assert "rocker" in str(result.table())


@pytest.mark.parametrize("drive", [30.0, 90.0])
@pytest.mark.parametrize("category", [0, 1, pl.Category1(on_path=True)])
def test_drives_yield_in_a_dead_point(category: int | pl.Category1, drive: float) -> None:
    """They go on until that takes all their torque, and then pull with that, as in a run."""
    machine, q, v = before_a_dead_point()
    motor = pl.safety.JointBrake(dynamic_torque=50.0, deceleration=1.0, drive_torque=drive)
    brakes = pl.Brakes({"rocker": motor}, pl.safety.Chain(sensor=0.8))
    stop = pl.stop(machine, q, v, brakes=brakes, category=category)
    assert stop.outcome == "stopped" and stop.ledger.relative_error < 1e-8
    assert any("drives cannot go on" in text for _, text in stop.events)
    k, way = machine.coordinates("rocker").v.start, np.sign(v[machine.coordinates("rocker").v][0])
    yields = next(t for t, text in stop.events if text == "rocker comes loose")
    command = next(t for t, text in stop.events if text == "command")
    assert 0.0 < yields < command
    _, q1, v1 = (x[0] for x in stop.run([yields]))
    assert v1[k] == pytest.approx(v[k])
    J, _, gamma = pl.EquationsOfMotion(machine).terms(0.0, q1, v1)
    rows, rest = np.vstack([J, np.eye(len(v))[k]]), np.append(-gamma, 0.0)
    a = np.linalg.lstsq(rows, rest)[0]
    needed = pl.inverse_dynamics(machine, q1, v1, a, actuated=["rocker"])
    assert needed == pytest.approx(way * drive, rel=1e-6)
    pull = pl.Torque("rocker", way * drive)
    later = np.linspace(yields, next(t for t, _ in stop.events if t > yields), 20)
    run = pl.simulate(machine, q1, v1, until=later[-1] - yields, forces=[pull])
    for (_, qs, vs), t in zip(zip(*stop.run(later), strict=True), later, strict=True):
        np.testing.assert_allclose(run(t - yields)[1], qs, atol=1e-7)
        np.testing.assert_allclose(run(t - yields)[2], vs, atol=1e-6)


def test_a_path_that_begins_at_once_is_looked_at_from_there() -> None:
    """Without a chain of signals the command comes with the signal; the drives lack torque."""
    machine = robot("fourbar")
    q = pl.assemble(machine, {"joint_1": 0.7})
    v = pl.consistent_velocity(machine, q, {"joint_1": 2.0})
    motor = pl.safety.JointBrake(dynamic_torque=200.0, deceleration=50.0, drive_torque=30.0)
    chains = pl.safety.Chain(), pl.safety.Chain(sensor=1e-6)
    onward = pl.Category1(on_path=True)
    at_once, later = (
        pl.stop(machine, q, v, brakes=pl.Brakes({"joint_1": motor}, chain), category=onward)
        for chain in chains
    )
    assert any("reduced to" in text for _, text in at_once.events)
    assert at_once.stopping_time == pytest.approx(later.stopping_time, rel=1e-4)


def test_energy_that_no_tolerance_explains_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without branches and guards: swings lose or gain tens of joules."""
    monkeypatch.setattr(simulation, "Flow", lambda *parts, **_: Flow(*parts[:3]))
    machine, doubtful = robot("spherical_fourbar"), 0
    dopri5 = pl.MuntheKaas("dopri5")
    brakes = pl.Brakes({"joint_1": pl.safety.JointBrake(kind="none")})
    for angle, rate in SWINGS:
        q = pl.assemble(machine, {"joint_1": angle})
        v = pl.consistent_velocity(machine, q, {"joint_1": rate})
        stop = pl.stop(machine, q, v, brakes=brakes, until=5.0, method=dopri5)
        off = abs(stop.ledger.error) > 1e-4 * turned_over(stop)
        said = [text for text in stop.warnings if "energy balance is off by" in text]
        assert bool(said) or not off
        doubtful += off
    assert doubtful


@pytest.mark.parametrize("rtol", [1e-5, 1e-8])
@pytest.mark.parametrize("name", ["fourbar", "sevenbar", "delta", "six_axis_arm"])
def test_nothing_is_said_of_a_healthy_balance(name: str, rtol: float) -> None:
    machine = robot(name)
    q = pl.assemble(machine)
    v = pl.consistent_velocity(machine, q, {machine.actuated[0]: 0.7})
    brakes = pl.Brakes.template(machine)
    method = pl.MuntheKaas("dopri5", rtol=rtol, atol=rtol)
    stop = pl.stop(machine, q, v, brakes=brakes, method=method)
    assert not [text for text in stop.warnings if "energy balance" in text]


def test_few_rates_are_tried_where_the_place_that_lacks_torque_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside a singular pose each place tells little of the next: 211 rates were tried once."""
    tried = list[float]()
    look = on_path._Path._lack

    def count(path: on_path._Path, rate: float) -> on_path._Lack:
        tried.append(rate)
        return look(path, rate)

    monkeypatch.setattr(on_path._Path, "_lack", count)
    machine = pl.example("sevenbar")
    q = pl.assemble(machine, [-0.105, 0.166, -0.172, 0.927, 6.28, 0.927])
    J = pl.EquationsOfMotion(machine).terms(0.0, q, np.zeros(6))[0]
    v = np.array([-2.633, 4.223, -4.501, 0.0, -10.697, 0.0])
    v -= np.linalg.lstsq(J, J @ v)[0]
    brakes = pl.Brakes.template(machine)
    stop = pl.stop(machine, q, v, brakes=brakes, category=pl.Category2(on_path=True))
    note = "deceleration on the path reduced to 38.7 % by the torque of the drives"
    assert any(text == note for _, text in stop.events)
    assert len(tried) < 20


DEAD_CENTRES = [
    (
        [-0.02, 4.85, -2.176, 3.609, -0.25, -0.397, 0.746, 0.25, 5.836, 0.079],
        [0.076, 3.684, -2.069, -1.616, 0.097, -2.658, 5.577, 1.47, 0.149, 0.08],
        pl.Category1(on_path=True),
    ),
    (
        [0.249, 0.666, -0.285, -0.381, -0.184, -0.136, 0.849, 0.24, -1.658, -3.394],
        [1.332, -0.527, -2.199, 2.726, -0.445, 3.351, -3.036, -1.158, 2.646, -5.643],
        pl.Category2(),
    ),
]
"""States of a 3-PRRR from which a slide turns at its dead centre while its leg is fast."""


@pytest.mark.parametrize(("pose", "speeds", "category"), DEAD_CENTRES)
def test_a_slide_that_turns_at_its_dead_centre_takes_no_speed(
    pose: list[float], speeds: list[float], category: pl.Category1 | pl.Category2
) -> None:
    """What is exactly at rest there for an instant tells nothing of the speed of its leg."""
    machine = pl.example("prrr3")
    q = pl.assemble(machine, pose)
    J = pl.EquationsOfMotion(machine).terms(0.0, q, np.zeros(machine.nv))[0]
    v = np.array(speeds)
    v -= np.linalg.lstsq(J, J @ v)[0]
    stop = pl.stop(machine, q, v, brakes=pl.Brakes.template(machine), category=category)
    assert any("comes to rest" in text for _, text in stop.events)
    assert abs(stop.ledger.error) < 1e-6 * stop.ledger.turned_over


def test_no_branch_is_followed_where_only_brakes_make_rows_depend() -> None:
    """The loops of a platform on six legs are far from singular where five legs stand.

    There a branch of the loops says no more than their rows, and its own pose for what stands.
    """
    platform = robot("stewart")
    legs = [0.0327, 0.0489, 0.0382, -0.0455, -0.0464, 0.0241]
    rates = [-0.558, -0.034, -0.460, -0.162, 0.104, 0.306]
    names = [f"leg_{k}" for k in range(1, 7)]
    q = pl.assemble(platform, dict(zip(names, legs, strict=True)))
    v = pl.consistent_velocity(platform, q, dict(zip(names, rates, strict=True)))
    brakes = pl.Brakes.template(platform).at_band(0.718).missing("leg_3")
    stop = pl.stop(platform, q, v, brakes=brakes, payload=12.366)
    assert stop.outcome == "stopped" and abs(stop.ledger.relative_error) < 1e-7
    assert stop.history.branches == (None,) * len(stop.run.t)
    # It has come near such a pose: one leg turns about another axis than its own.
    assert np.abs(stop.run.v).max() > 30.0


def test_steps_that_get_too_small_are_put_down_to_a_singular_pose_only_beside_one() -> None:
    machine = robot("spherical_fourbar")
    q, brakes = pl.assemble(machine, {"joint_1": 0.9}), pl.Brakes.template(machine)
    stop = pl.stop(machine, q, np.zeros(3), brakes=brakes)
    equations = stop.history.equations()
    stop.history.enter(equations, 0)
    small = StepFailed("a step of 1e-15 s is too large", "step too small")
    met = StepFailed("branches meet", "bifurcation")
    other = StepFailed("not finite", "not finite")

    def explain(failure: StepFailed, regular: float) -> StepFailed:
        return explained(failure, equations, pl.MuntheKaas(), regular, None)

    assert SINGULAR in str(explain(small, 0.01)) and SINGULAR in str(explain(met, 1.0))
    assert explain(small, 0.5) is small and explain(other, 0.01) is other
