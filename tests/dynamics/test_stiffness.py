"""Damping that explicit steps cannot follow is told, with its joint, before a run crawls.

Oracles: closed forms of one hinge, finite differences of torques and accelerations, counted steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pinloop as pl
from pinloop.dynamics.forces import Force
from pinloop.dynamics.stiffness import stiffest_damping
from pinloop.integrate.tableaux import get_tableau

from .. import screw_tables as tables
from ..mechanisms import four_bar
from ..states import allowed, moving, one_body, robot

MOMENT = 0.1
"""Moment of inertia of the hinge [kg m^2]."""


def hinge(damping: float = 0.0, friction: float = 0.0) -> pl.Mechanism:
    machine = one_body("revolute", inertia=(MOMENT, MOMENT, MOMENT), gravity=(0.0, 0.0, 0.0))
    machine.model.damping = np.array([damping])
    machine.model.upperDryFrictionLimit = np.array([friction])
    return machine


FORCES: list[Force] = [
    pl.forces.JointDamping({"crank": 0.3, "rocker": 0.7}),
    pl.forces.JointFriction(0.5, {"elbow": 2.0, "crank": 1.0}),
    pl.PD("crank", 5.0, 0.8),
    pl.forces.Damper("coupler", "ground", 0.9),
]


@pytest.mark.parametrize("force", FORCES, ids=lambda force: type(force).__name__)
def test_damping_is_the_slope_of_the_torque(force: Any) -> None:
    machine = robot("four-bar")
    q, v = moving(machine, 3)
    equations = pl.EquationsOfMotion(machine, forces=[force])
    (found,) = equations.dampings(0.0, q, v).values()
    step = 1e-6
    slopes = [
        (equations.force(0.0, q, v - step * e) - equations.force(0.0, q, v + step * e)) / (2 * step)
        for e in np.eye(machine.nv)
    ]
    assert np.abs(found).max() > 1e-2
    np.testing.assert_allclose(found, np.array(slopes).T, atol=1e-8)


def test_time_constant_of_a_hinge() -> None:
    machine = hinge(damping=25.0)
    equations = pl.EquationsOfMotion(
        machine, forces=[pl.forces.JointDamping(), pl.PD("joint", 0.0, 15.0)]
    )
    found = stiffest_damping(equations, 0.0, np.zeros(1), np.zeros(1))
    assert found is not None
    assert (found.joint, found.force) == ("joint", "joint damping")
    assert (found.damping, found.inertia) == pytest.approx((40.0, MOMENT))
    assert found.time_constant == pytest.approx(MOMENT / 40.0)


@pytest.mark.parametrize("name", ["four-bar", "five-bar", "double-pendulum"])
def test_rates_of_loops_are_those_of_their_accelerations(name: str) -> None:
    """At rest ``a`` falls with the velocity by the rate, along the motion that falls fastest."""
    machine = robot(name)
    q, _ = moving(machine, 3)
    coefficients = {joint: 10.0 * (k + 1) for k, joint in enumerate(machine.joints)}
    equations = pl.EquationsOfMotion(machine, forces=[pl.forces.JointDamping(coefficients)])
    found = stiffest_damping(equations, 0.0, q, np.zeros(machine.nv))
    assert found is not None
    F, step = allowed(pl.Constraints(machine).jacobian(q)), 1e-6

    def a(u: Any) -> Any:
        return F.T @ equations.acceleration(0.0, q, step * F @ u)

    slopes = np.array([(a(-u) - a(u)) / (2 * step) for u in np.eye(F.shape[1])]).T
    fastest = max(np.linalg.eigvals(slopes).real)
    assert 1 / found.time_constant == pytest.approx(fastest, rel=1e-6)


def test_robots_without_damping_have_none() -> None:
    for forces in (
        [],
        [pl.forces.JointSpring("joint", 3.0)],
        [pl.TorqueFunction(lambda t, q, v: -v)],
    ):
        equations = pl.EquationsOfMotion(hinge(), forces=forces)
        assert stiffest_damping(equations, 0.0, np.zeros(1), np.zeros(1)) is None


@pytest.mark.parametrize(
    ("method", "limit"), [("euler", 2.0), ("heun", 2.0), ("rk4", 2.785), ("dopri5", 3.307)]
)
def test_stability_limits_are_those_of_the_textbook(method: str, limit: float) -> None:
    """Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.2."""
    assert get_tableau(method).real_stability == pytest.approx(limit, abs=2e-3)


def test_a_run_that_would_crawl_says_so_at_its_start() -> None:
    machine = hinge(damping=1e6)
    with pytest.warns(pl.PinloopWarning) as caught:
        run = pl.simulate(machine, np.zeros(1), np.ones(1), until=1e-3)
    (warning,) = caught
    message = str(warning.message)
    assert warning.filename == __file__
    assert "'joint damping' of joint 'joint' (1e+06 N m s/rad on 0.1 kg m^2)" in message
    assert "a time constant of 1e-07 s" in message and "losses=False" in message
    assert "about 3e+03 of them" in message
    assert len(run.t) == pytest.approx(3e3, rel=0.1)


def test_damping_that_steps_can_follow_is_not_worth_a_word() -> None:
    run = pl.simulate(hinge(damping=1e3), np.zeros(1), np.ones(1), until=1e-2)
    assert run.v[-1, 0] == pytest.approx(0.0, abs=1e-7)


def test_a_run_that_begins_to_crawl_says_so_then() -> None:
    """Smoothed friction is stiff only near standstill, which is reached on the way."""
    machine = hinge()
    friction = pl.forces.JointFriction(1e-6, {"joint": 50.0})
    equations = pl.EquationsOfMotion(machine, forces=[friction])
    found = stiffest_damping(equations, 0.0, np.zeros(1), np.full(1, 0.5))
    assert found is None
    with pytest.raises(pl.SimulationFailed, match="'joint friction' of joint 'joint'") as caught:
        pl.simulate(machine, np.zeros(1), np.full(1, 0.5), until=0.01, forces=[friction])
    assert caught.value.trajectory.t[-1] == pytest.approx(0.5 * MOMENT / 50.0, rel=0.1)


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
def test_a_state_that_becomes_infinite_is_told_with_the_joint() -> None:
    method = pl.MuntheKaas("rk4", step=1e-4)
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(hinge(damping=1e6), np.zeros(1), np.ones(1), until=0.1, method=method)
    message = str(caught.value)
    assert "the state became infinite at t = 0.00" in message
    assert "'joint damping' of joint 'joint'" in message and "shorter than 2.8e-07 s" in message


@pytest.mark.filterwarnings("ignore::pinloop.PinloopWarning")
@pytest.mark.parametrize("damping", [1e11, 1e13])
def test_damping_beyond_all_steps_is_no_singular_mass(damping: float) -> None:
    machine = tables.build(four_bar())
    machine.model.damping = np.full(machine.nv, damping)
    q, v = machine.neutral, pl.consistent_velocity(machine, machine.neutral, {"crank": 1.0})
    with pytest.raises(pl.SimulationFailed) as caught:
        pl.simulate(machine, q, v, until=1e-3)
    message = str(caught.value)
    assert "mass matrix" not in message and "'joint damping' of joint" in message


@pytest.mark.parametrize(
    "formulation", [None, pl.Augmented(), pl.Projected(), pl.Voronets(), pl.ODCA()], ids=str
)
def test_infinite_states_are_no_singular_mass(formulation: Any) -> None:
    machine = robot("four-bar")
    equations = pl.EquationsOfMotion(machine, formulation=formulation)
    q, v = moving(machine, 1)
    equations.acceleration(0.0, q, v)
    with pytest.raises(pl.NotFinite, match=r"infinite at t = 0\.5 s"):
        equations.acceleration(0.5, np.full(machine.nq, np.nan), v)
