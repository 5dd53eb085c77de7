"""Whole stops whose events, ways and loads are known in closed form, one after another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pinloop as pl
from pinloop.safety.space.interval_tree import expand_steps
from pinloop.safety.stopping.travel import measure_joint_travel

from .robots_to_stop import G, brakes, carriages, on_axis, slider, stop, train

# -- whole stops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [-1, 1])
@pytest.mark.parametrize("efficiency", [1.0, 0.8])
def test_brake_that_grows_with_its_load(efficiency: float, way: int) -> None:
    """Train of two with rising brakes: b comes loose when its load, which rises faster, wins."""
    heavy, light, dry, v = 3.0, 1.0, 2.0, 2.0
    slope, held = 150.0, 20.0 / efficiency  # of a's brake, and of what holds b [N/s]
    result = stop(
        train(heavy, light), [way * v, 0.0],
        brakes(
            a={"dynamic_torque": 60.0, "rise": 0.4},
            b={"side": "motor", "dynamic_torque": 8.0, "rise": 0.4, "coulomb": dry,
               "efficiency": efficiency},
        ),
    )  # fmt: skip
    load = light * slope / (heavy + light)
    times = [t for t, name in result.events if name == "b comes loose"]
    assert times[0] == pytest.approx(dry / (load - held), rel=1e-6)
    assert np.sign(result.joints["b"].angle) == way


def test_brake_that_grows_faster_than_its_load() -> None:
    """Both at nothing at first: b never moves on a, and both stop as one mass."""
    force, rise, v = 60.0, 0.4, 2.0
    numbers = {"dynamic_torque": force, "rise": rise}
    for way in (-1, 1):
        result = stop(train(3.0, 1.0), [way * v, 0.0], brakes(a=numbers, b=numbers))
        assert result.joints["b"].slips == 0 and result.joints["b"].travel == 0.0
        stands = np.sqrt(2 * 4.0 * v * rise / force)
        assert result.joints["a"].time == pytest.approx(stands, rel=1e-7)


def test_drive_that_pulls_what_its_load_pushes_through_a_gear_with_losses() -> None:
    """Train of two: b stands still by friction, its weak drive pulling; then a is braked.

    The inertia that shakes b loose is larger than the drive, but the drive still gives power: its
    gear does not turn round because friction, which acts beside it, is larger than both.
    """
    drive, dry, efficiency, rotor, heavy, light = 10.0, 15.0, 0.8, 0.01, 5.0, 3.0
    weak, brake, limit = 9.0, 100.0, 1.5
    result = stop(
        train(heavy, light), [2.0, 2.0],
        brakes(
            pl.safety.Chain(drive_off=0.5),
            a={"dynamic_torque": brake, "deceleration": 1.0, "drive_torque": weak},
            b={"side": "motor", "efficiency": efficiency, "rotor_inertia": rotor, "coulomb": dry,
               "drive_torque": drive, "deceleration": 1.0},
        ),
        category=pl.Category1(time_limit=limit),
    )  # fmt: skip
    assert result.outcome == "stopped" and result.ledger.relative_error < 1e-9
    last = int(np.flatnonzero(result.run.t == limit)[-1])
    assert result.run.v[last][1] == 0.0
    M = np.array([[heavy + light, light], [light, light + efficiency * rotor]])
    # The drive of a slows it down too: b has dragged it beyond its reference before.
    expected = np.linalg.solve(M, [-brake - weak, efficiency * drive - dry])
    np.testing.assert_allclose(result.run.a[last], expected, rtol=1e-9)


def test_friction_turns_round_with_a_recorded_motion() -> None:
    """Until its power goes, a joint swings to and fro: friction takes energy on both ways."""
    t = np.linspace(0, 6, 601)
    motion = pl.safety.JointTrajectory(("axis",), t, np.sin(2 * t)[:, None])
    start, command, dry, mass, force = 0.3, 2.0, 5.0, 2.0, 40.0
    result = pl.stop(
        slider(mass),
        brakes=on_axis(pl.safety.Chain(controller=command), coulomb=dry, dynamic_torque=force),
        trigger=pl.safety.Trigger(motion, at=start),
    )
    # sin(2 t) turns round at pi/4 and 3 pi/4; then it is braked and comes to rest.
    corners = np.sin(2 * np.array([start, np.pi / 4, start + command]))
    way = float(np.abs(np.diff(corners)).sum())
    speed = 2 * np.cos(2 * (start + command))
    way += mass * speed**2 / (2 * (force + dry))
    heat = result.ledger.dissipated["dry friction"]
    assert heat.sum() == pytest.approx(dry * way, rel=1e-6)
    turns = [time for time, name in result.events if name == "axis turns round"]
    assert turns == pytest.approx([np.pi / 4 - start], rel=1e-6)


def test_recorded_joint_that_starts_after_the_signal() -> None:
    """Exactly at rest at the signal, under way when the power goes: the drive takes it along."""
    t = np.linspace(0, 4, 4001)
    later = np.where(t > 1.5, 0.5 * (t - 1.5) ** 2, 0.0)
    motion = pl.safety.JointTrajectory(("a", "b"), t, np.column_stack([0.5 * t, later]))
    trigger = pl.safety.Trigger(motion, at=0.2)
    robot, force, mass = carriages(2.0, 3.0), 40.0, 3.0
    assert trigger.motion is not None and trigger.motion.state(robot, 0.2)[1][1] == 0.0
    both = {"dynamic_torque": force}
    result = pl.stop(
        robot, brakes=brakes(pl.safety.Chain(controller=2.0), a=both, b=both), trigger=trigger
    )
    speed = 0.2 + 2.0 - 1.5
    braking = mass * speed**2 / (2 * force)
    assert result.joints["b"].angle == pytest.approx(0.5 * speed**2 + braking, rel=1e-4)
    assert result.joints["b"].braking_time == pytest.approx(mass * speed / force, rel=1e-4)


@pytest.mark.parametrize(("share", "held"), [(0.5, False), (0.65, True)])
def test_holding_takes_the_rotor_of_what_falls_into_account(share: float, held: bool) -> None:
    """Hoist on a hoist: a falls, b has to hold its weight less what falling takes off it."""
    heavy, light, rotor, efficiency = 2.0, 1.0, 2.0, 0.5
    robot = train(heavy, light, axis=np.array([0.0, 0.0, 1.0]))
    # The load of a drives its rotor through the gear: power flows to the motor.
    falls = (heavy + light) * G / (heavy + light + rotor / efficiency)
    assert 0.5 < 1 - falls / G < 0.65
    result = stop(
        robot, [0.0, 0.0],
        brakes(
            a={"side": "motor", "efficiency": efficiency, "rotor_inertia": rotor},
            b={"dynamic_torque": share * light * G},
        ),
        until=0.01,
    )  # fmt: skip
    assert result.outcome == "does not hold"
    assert result.holding.held.tolist() == [False, held]


# -- what is reported of joints and points ---------------------------------------------------------


def test_impulses_one_after_another_on_a_joint() -> None:
    """Train of two with teeth: a is caught, and holds against b when that is caught later."""
    heavy, light, later, short = 3.0, 1.0, 0.1, 2e-3
    tooth = {"kind": "tooth", "impact_time": short}
    result = stop(train(heavy, light), [1.0, 0.5], brakes(a=tooth, b={**tooth, "delay": later}))
    # b goes on over ground at 1.5 m/s until its own tooth; a has had its own momentum until then.
    a, b = result.joints["a"], result.joints["b"]
    assert a.impulse == pytest.approx(heavy * 1.0 + light * 1.5, rel=1e-9)
    assert a.peak_gear_torque == pytest.approx(heavy * 1.0 / short, rel=1e-9)
    assert b.impulse == pytest.approx(light * 1.5, rel=1e-9)
    assert b.peak_gear_torque == pytest.approx(light * 1.5 / short, rel=1e-9)
    assert b.angle == pytest.approx(1.5 * later, rel=1e-9)
    assert result.ledger.impacts == pytest.approx(0.5 * heavy + 0.5 * light * 1.5**2, rel=1e-9)


def test_reactions_of_joints_and_of_a_point() -> None:
    """Every joint reacts when its own brake comes, the robot when the first one does."""
    first, second, v, force = 0.04, 0.11, 1.0, 40.0
    robot = carriages(2.0, 3.0)
    result = stop(
        robot, [v, v],
        brakes(
            a={"dynamic_torque": force, "delay": second},
            b={"dynamic_torque": force, "delay": first},
        ),
    )  # fmt: skip
    assert result.reaction_time == first
    assert [one.reaction_time for one in result.joints.values()] == [second, first]
    angles = [one.reaction_angle for one in result.joints.values()]
    assert angles == pytest.approx([v * second, v * first], rel=1e-9)
    for every in (0.013, 1.0):
        way = result.point("body_b", every=every)
        assert way.t[way.reaction] == first
        assert way.reaction_length == pytest.approx(v * first, rel=1e-9)
        assert way.braking_length == pytest.approx(3.0 * v**2 / (2 * force), rel=1e-7)


def test_joint_that_stands_before_its_brake_comes() -> None:
    """Dry friction stops it: all of its way is reaction, and nothing is braking."""
    mass, dry, v = 2.0, 8.0, 1.0
    numbers = on_axis(coulomb=dry, dynamic_torque=40.0, delay=1.0)
    one = stop(slider(mass), v, numbers).joints["axis"]
    assert one.reaction_time == pytest.approx(mass * v / dry, rel=1e-7)
    assert one.reaction_angle == pytest.approx(mass * v**2 / (2 * dry), rel=1e-7)
    assert one.braking_time == 0.0 and abs(one.braking_angle) < 1e-12


def test_brakes_come_at_the_very_time_limit() -> None:
    """In the middle of a ramp, where nothing else happens."""
    mass, v, slower, limit, force = 2.0, 2.0, 1.0, 0.73, 40.0
    numbers = on_axis(dynamic_torque=force, deceleration=slower)
    result = stop(slider(mass), v, numbers, category=pl.Category1(time_limit=limit))
    speed = v - slower * limit
    one = result.joints["axis"]
    assert one.time == pytest.approx(limit + mass * speed / force, rel=1e-9)
    way = 0.5 * (v + speed) * limit + mass * speed**2 / (2 * force)
    assert one.angle == pytest.approx(way, rel=1e-9)


def test_control_points_of_steps_begin_and_end_at_the_stored_states() -> None:
    """Bernstein's first and last coefficients are the ends, whatever the length of a step."""
    numbers = on_axis(dynamic_torque=30.0, rise=0.2, delay=0.03, viscous=2.0)
    run = stop(slider(), 2.0, numbers).run
    steps = expand_steps(run)
    assert np.ptp(steps.length) > 1e-3
    np.testing.assert_allclose(steps.rates[:, 0], run.v[steps.number], atol=1e-12)
    np.testing.assert_allclose(steps.rates[:, -1], run.v[steps.number + 1], atol=1e-12)
    np.testing.assert_allclose(steps.psi[:, -1], run.psi[steps.number], atol=1e-12)


def test_way_of_a_joint_that_turns_round_slowly() -> None:
    """A free carriage rolls up a gentle slope and back: to and fro, not where it ends."""
    slope, v, until = 0.005, 0.05, 2.0
    free = pl.Brakes({"axis": pl.safety.JointBrake(kind="none")}, pl.safety.Chain())
    result = stop(slider(2.0, slope), v, free, until=until)
    pull = G * np.sin(slope)
    top, back = v**2 / (2 * pull), 0.5 * pull * (until - v / pull) ** 2
    one = result.joints["axis"]
    assert one.travel == pytest.approx(top + back, rel=1e-7)
    assert one.excursion == pytest.approx(top, rel=1e-7)
    assert one.angle == pytest.approx(top - back, rel=1e-7)


def test_way_of_a_joint_that_turns_round_twice_in_a_step() -> None:
    """``x = s - 3 s^2 + 2 s^3`` begins and ends with the same speed; turns at (3 -+ sqrt 3) / 6."""
    free = pl.Brakes({"axis": pl.safety.JointBrake(kind="none")}, pl.safety.Chain())
    history = stop(slider(), 1.0, free, until=1.0).history
    column = np.array([[0.0], [0.0]])
    run = replace(
        history.run, t=np.array([0.0, 1.0]), q=column, v=column + 1.0, a=np.array([[-6.0], [6.0]]),
        psi=column[:1], inner=None, mode=np.zeros(2, dtype=int),
    )  # fmt: skip
    travel = measure_joint_travel(replace(history, run=run))
    turn = np.sqrt(3.0) / 18.0
    assert travel.length[0] == pytest.approx(4 * turn, rel=1e-12)
    assert (travel.lowest[0], travel.highest[0]) == pytest.approx((-turn, turn), rel=1e-12)


@pytest.mark.parametrize("category", [pl.Category1(on_path=True), pl.Category2(on_path=True)])
def test_a_recording_that_is_at_rest_at_the_signal(category: pl.Category1 | pl.Category2) -> None:
    """The spline through it leaves a speed of some 1e-17, for which there is nothing to slow down.

    Without a chain the robot stands where it stood.
    """
    t = np.linspace(0, 2, 201)
    motion = pl.safety.JointTrajectory(("a",), t, (t**2)[:, None])
    numbers = {"dynamic_torque": 40.0, "deceleration": 2.0, "drive_torque": 30.0}
    result = pl.stop(
        carriages(2.0), brakes=brakes(pl.safety.Chain(), a=numbers), category=category,
        trigger=pl.safety.Trigger(motion, at=0.0),
    )  # fmt: skip
    assert result.outcome == "stopped"
    assert abs(result.joints["a"].angle) < 1e-12


@pytest.mark.parametrize("drive_off", [0.0, 0.05])
@pytest.mark.parametrize("delay", [0.0, 0.02])
def test_the_command_of_category_0_is_told_once(drive_off: float, delay: float) -> None:
    """Though it changes nothing by itself, and other things may come with it."""
    chain = pl.safety.Chain(sensor=0.03, controller=0.04, drive_off=drive_off)
    result = stop(carriages(2.0), [1.0], brakes(chain, a={"dynamic_torque": 20.0, "delay": delay}))
    for events in (result.events, result.run.events):
        assert [time for time, name in events if name == "command"] == [pytest.approx(0.07)]
        assert [time for time, _ in events] == sorted(time for time, _ in events)
    assert [t for t, name in result.events if name == "power off"] == [
        pytest.approx(0.07 + drive_off)
    ]
