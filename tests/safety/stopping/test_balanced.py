"""What nothing holds: it stays where it hangs, and falls from where it is balanced."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
import scipy

import pinloop as pl
from pinloop.safety.stopping.holding import gravity_stiffness
from pinloop.safety.stopping.prepared_robot import prepare_robot
from pinloop.safety.stopping.stop_equations import StopEquations

from ...screw_tables import Array
from ...states import robot as loaded
from .robots_to_stop import brakes, on_axis, pendulum, slider, two_links, wheel

UP = np.pi / 2
"""Beams and links lie along x at zero, and positive angles raise them."""


@pytest.mark.parametrize(("angle", "outcome"), [(-UP, "stopped"), (UP, "does not hold")])
def test_a_pendulum_without_brake_hangs_or_falls(angle: float, outcome: str) -> None:
    stop = pl.stop(pendulum(), [angle], [0.0], brakes=on_axis(kind="none"))
    assert stop.outcome == outcome
    falls = [text for text in stop.warnings if "least push" in text]
    assert len(falls) == (outcome != "stopped")


def test_a_wheel_without_brake_stays_anywhere() -> None:
    stop = pl.stop(wheel(), [0.3], [0.0], brakes=on_axis(kind="none"))
    assert stop.outcome == "stopped"


@pytest.mark.parametrize(
    ("from_hanging", "outcome"),
    [(UP, "does not hold"), (0.1, "does not hold"), (2e-3, "stopped"), (0.0, "stopped")],
)
def test_a_joint_that_creeps_to_where_it_hangs_is_not_there(
    from_hanging: float, outcome: str
) -> None:
    """A heavy rotor and a damper, through which gravity turns the joint by less than 1 mrad/s."""
    by = on_axis(kind="none", rotor_inertia=2000.0, viscous=2e4)
    stop = pl.stop(pendulum(), [from_hanging - UP], [0.0], brakes=by)
    assert np.abs(stop.run.v).max() < 1e-3 and np.abs(stop.run.a).max() < 1e-2
    assert stop.outcome == outcome


def test_a_carriage_that_creeps_down_a_slope_is_not_held() -> None:
    by = on_axis(kind="none", viscous=100.0)
    stop = pl.stop(slider(mass=2.0, slope=5e-4), [0.0], [0.0], brakes=by)
    assert stop.outcome == "does not hold"
    assert pl.stop(slider(mass=2.0), [0.0], [0.0], brakes=by).outcome == "stopped"


@pytest.mark.parametrize(("fold", "outcome"), [(0.0, "does not hold"), (np.pi, "stopped")])
def test_a_link_on_a_held_one_hangs_or_falls(fold: float, outcome: str) -> None:
    by = brakes(j1={"dynamic_torque": 500.0}, j2={"kind": "none"})
    stop = pl.stop(two_links(), [UP, fold], [0.0, 0.0], brakes=by)
    assert stop.outcome == outcome
    assert stop.holding.held.tolist() == [True, False]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_stiffness_is_the_second_derivative_of_the_energy(sign: float) -> None:
    """Of a four-bar in its lowest and its highest pose; the energy knows nothing of reactions."""
    robot = loaded("four-bar")
    crank = robot.joints[0]
    model, data = robot.model, robot.model.createData()

    def at(angle: float, guess: Array) -> Array:
        return pl.assemble(robot, robot.configuration({crank: angle}, guess), {crank: angle})

    def energy(angle: float, guess: Array) -> float:
        return float(pin.computePotentialEnergy(model, data, at(angle, guess)))

    poses = {0.0: pl.assemble(robot, {crank: 0.0})}
    for angle in np.linspace(0.0, 2 * np.pi, 200).tolist():  # the crank turns all the way round
        poses[angle] = at(angle, list(poses.values())[-1])
    start = min(poses, key=lambda angle: sign * energy(angle, poses[angle]))
    near = poses[start]
    best = scipy.optimize.minimize_scalar(
        lambda angle: sign * energy(angle, near), (start - 0.03, start + 0.03), tol=1e-10
    )
    angle, h = float(best.x), 1e-3
    middle, *sides = (energy(angle + x, near) for x in (0.0, h, -h))
    bend = (sum(sides) - 2 * middle) / h**2
    machine = prepare_robot(robot, pl.Brakes.template(robot))
    q = at(angle, near)
    J = machine.equations.terms(0.0, q, np.zeros(robot.nv))[0]
    motions = scipy.linalg.null_space(J, rcond=1e-9)
    gravity = pin.computeGeneralizedGravity(model, data, q)
    lam = np.linalg.lstsq(J.T, gravity, rcond=1e-9)[0]
    equations = StopEquations(machine.equations, machine.train)
    expected = bend * motions[robot.coordinates(crank).v.start] ** 2
    made = gravity_stiffness(equations, q, motions, lam)
    assert sign * bend > 0.1
    np.testing.assert_allclose(made[0], expected, rtol=1e-4)


def test_joints_without_any_entry_that_nothing_holds_are_named() -> None:
    machine = loaded("spherical_threebar")
    q = pl.assemble(machine)
    stop = pl.stop(machine, q, np.zeros(machine.nv), brakes=pl.Brakes({}), until=0.05)
    assert stop.outcome == "does not hold" and not stop.joints
    assert "nothing holds ball_1, ball_2: there is no brake" in stop.warnings
