"""Tests of `pl.stop`: the chain before the brakes, and controlled stops, in closed form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from .robots_to_stop import (
    UP,
    G,
    at_joint,
    brakes,
    carriages,
    on_axis,
    slider,
    stands,
    stop,
    train,
    two_links,
    wheel,
)

RAMP = 3.0
"""Deceleration of controlled stops [rad/s^2]."""


# -- the chain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trigger", [False, True])
def test_load_goes_on_evenly_then_falls_then_is_braked(trigger: bool) -> None:
    """Signal, command at 80 ms, power off at 100 ms, brake from 140 ms on."""
    mass, force, v = 2.0, 60.0, -0.8
    chain, told = pl.safety.Chain(sensor=0.03, controller=0.05, drive_off=0.02), None
    if trigger:
        chain = pl.safety.Chain(sensor=9.0, controller=0.05, drive_off=9.0)
        told = pl.safety.Trigger(sensor=0.03, drive_off=0.02)
    by = on_axis(chain, dynamic_torque=force, delay=0.06)
    result = stop(slider(mass, UP), v, by, trigger=told)
    fast = v - 0.04 * G
    slower = force / mass - G
    before = 0.1 * v + 0.04 * (v + fast) / 2
    one = stands(result, before - fast**2 / (2 * slower), 0.14 - fast / slower)
    assert one.reaction_time == pytest.approx(0.14) == result.reaction_time
    assert one.reaction_angle == pytest.approx(before)
    assert one.peak_speed == pytest.approx(-fast)
    assert result.chain.command == pytest.approx(0.08)
    assert result.run(0.1).v[0] == pytest.approx(v, rel=1e-12)
    # The drive held the weight against the way, to the end of its power.
    assert result.ledger.drive_work == pytest.approx(mass * G * 0.1 * v)


def test_motor_pulls_against_the_brake_until_its_power_is_gone() -> None:
    """Brake from 40 ms on, motor until 130 ms: the robot goes on at the same speed meanwhile."""
    chain = pl.safety.Chain(controller=0.03, drive_off=0.1)
    by = on_axis(chain, dynamic_torque=4.0, delay=0.01, coulomb=1.0)
    result = stop(wheel(2.0), 3.0, by)
    one = stands(result, 3 * 0.13 + 9.0 / 5, 0.13 + 6.0 / 5)
    assert one.reaction_time == pytest.approx(0.04)
    assert one.reaction_angle == pytest.approx(0.12)
    assert result.ledger.drive_work == pytest.approx(3.0 * (0.13 * 1.0 + 0.09 * 4.0))
    assert result.ledger.dissipated["brake"][0] == pytest.approx(4.0 * (one.angle - 0.12), rel=1e-6)


def test_motion_of_the_trigger_goes_on_until_the_power_is_gone() -> None:
    """Accelerating at the signal: ``q = 0.2 + 0.5 t + 0.6 t^2``."""
    times = np.linspace(0, 2, 9)
    motion = pl.safety.JointTrajectory(
        ("axis",), times, (0.2 + 0.5 * times + 0.6 * times**2)[:, None]
    )
    by = on_axis(pl.safety.Chain(sensor=0.1, drive_off=0.2), dynamic_torque=4.0)
    result = pl.stop(wheel(2.0), brakes=by, trigger=pl.safety.Trigger(motion=motion, at=0.5))
    assert result.run.q[0][0] == pytest.approx(0.6) and result.run.v[0][0] == pytest.approx(1.1)
    fast = 0.5 + 1.2 * 0.8
    way = 0.5 * 0.3 + 0.6 * (0.8**2 - 0.5**2)
    stands(result, way + 2 * fast**2 / 8, 0.3 + fast / 2)
    # The motor also accelerates the wheel.
    work = 0.5 * 2.0 * (fast**2 - 1.1**2) + 4.0 * (0.5 * 0.2 + 0.6 * (0.8**2 - 0.6**2))
    assert result.ledger.drive_work == pytest.approx(work, rel=1e-6)


# -- ramps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", [1, 2])
def test_every_joint_on_a_ramp_of_its_own(category: int) -> None:
    """Time ``v / d``, angle ``v^2 / 2 d``, whatever gravity and the other joint ask for."""
    chain = pl.safety.Chain(controller=0.02, drive_off=0.01)
    drive = {"static_torque": 200.0, "dynamic_torque": 100.0, "delay": 0.05, "rise": 0.03}
    by = brakes(chain, j1=drive | {"deceleration": 4.0}, j2=drive | {"deceleration": 9.0})
    result = stop(two_links(), [1.0, -1.5], by, category=category, q=[0.3, 0.4])
    assert result.outcome == "stopped" and result.category.number == category
    for name, v, d in (("j1", 1.0, 4.0), ("j2", -1.5, 9.0)):
        angle = 0.02 * v + np.sign(v) * v**2 / (2 * d)
        one = stands(result, angle, 0.02 + abs(v) / d, name)
        assert one.reaction_time == pytest.approx(0.02)
        assert one.reaction_angle == pytest.approx(0.02 * v)
        assert one.peak_speed == pytest.approx(abs(v)) and one.slips == 0
        assert one.hold == (pytest.approx(200.0) if category == 1 else np.inf)
        assert one.excursion / (one.peak_speed * one.time) > 0.5
    assert result.stopping_time == pytest.approx(0.02 + 0.25)
    assert result.reaction_time == pytest.approx(0.02)
    assert not any(result.ledger.dissipated["brake"])
    # The drives take what the robot had and what gravity gives.
    taken = result.ledger.kinetic_before + result.ledger.potential_drop
    assert result.ledger.drive_work == pytest.approx(-taken, rel=1e-6)


@pytest.mark.parametrize("category", [pl.Category1(on_path=True), pl.Category2(on_path=True)])
def test_all_joints_together_on_their_path(category: pl.Category1 | pl.Category2) -> None:
    """The slowest joint gives the time; the ratio of the angles stays that of the speeds."""
    drive = {"dynamic_torque": 200.0}
    by = brakes(j1=drive | {"deceleration": 4.0}, j2=drive | {"deceleration": 9.0})
    result = stop(two_links(), [1.0, -1.5], by, category=category, q=[0.3, 0.4])
    duration = 1.0 / 4.0
    for name, v in (("j1", 1.0), ("j2", -1.5)):
        stands(result, v * duration / 2, duration, name)
    moved = result.run.q[1:] - result.run.q[0]
    np.testing.assert_allclose(moved @ [1.5, 1.0], 0.0, atol=1e-9)


def test_on_a_curved_path() -> None:
    """The parameter runs at 1 first, at 0 at the end: half the duration further on the path."""

    def path(t: Any) -> Any:
        return np.stack((0.1 + 0.8 * t - 0.2 * t**2, 0.4 - 0.3 * t + 0.5 * t**3), axis=-1)

    times = np.linspace(0, 3, 13)
    trigger = pl.safety.Trigger(pl.safety.JointTrajectory(("j1", "j2"), times, path(times)), at=0.4)
    by = brakes(
        pl.safety.Chain(controller=0.1),
        j1={"dynamic_torque": 200.0, "deceleration": 1.0},
        j2={"dynamic_torque": 200.0, "deceleration": 9.0},
    )
    result = pl.stop(two_links(), brakes=by, category=pl.Category1(on_path=True), trigger=trigger)
    duration = (0.8 - 0.4 * 0.5) / 1.0
    assert result.stopping_time == pytest.approx(0.1 + duration)
    for t in np.linspace(0, 0.1 + duration, 9):
        s = max(t - 0.1, 0.0)
        at = 0.4 + min(t, 0.1) + s - s**2 / (2 * duration)
        np.testing.assert_allclose(result.run(t).q, path(at), atol=1e-7)


def on_recorded_path(times_longer: float, known: float) -> pl.StopResult:
    """A wheel of 2 kg m^2 at 1.5 rad/s, told to brake at 3 rad/s^2 along its path: 0.5 s.

    Args:
        times_longer: its drive needs so many times longer.
        known: the recording is long enough for a stop that takes so many times longer.
    """
    v, asked = 1.5, 0.5
    end = 0.2 + 0.1 + 0.5 * known * asked
    motion = pl.safety.JointTrajectory(
        ("axis",), np.array([0.0, end]), np.array([[0.0], [v * end]])
    )
    by = on_axis(
        pl.safety.Chain(controller=0.1), dynamic_torque=50.0, deceleration=RAMP,
        drive_torque=2.0 * RAMP / times_longer,
    )  # fmt: skip
    trigger = pl.safety.Trigger(motion, at=0.2)
    return pl.stop(wheel(2.0), brakes=by, category=pl.Category1(on_path=True), trigger=trigger)


@pytest.mark.parametrize(
    ("times_longer", "known"), [(0.9, 1.1), (3.0, 9.0), (3.0, 3.5), (1.2, 1.3), (3.0, 3.000001)]
)
def test_deceleration_on_a_recorded_path_that_is_long_enough(
    times_longer: float, known: float
) -> None:
    """Reduced to what the drive has, found also where twice as long would not be recorded."""
    result = on_recorded_path(times_longer, known)
    duration = 0.5 * max(1.0, times_longer)
    one = result.joints["axis"]
    assert one.time == pytest.approx(0.1 + duration, rel=1e-5)
    assert one.angle == pytest.approx(1.5 * (0.1 + duration / 2), rel=1e-5)
    said = [text for _, text in result.events if "path" in text]
    if times_longer < 1.0:
        assert not said
        return
    (text,) = said
    assert f"reduced to {100 / times_longer:.3g} %" in text


@pytest.mark.parametrize(("times_longer", "known"), [(3.0, 2.5), (3.0, 1.0), (1.01, 1.0)])
def test_recorded_path_that_is_too_short_for_the_drives(times_longer: float, known: float) -> None:
    with pytest.raises(
        pl.BadValue,
        match=rf"reduced to {100 / known:.3g} %, .* let the signal come earlier, record longer",
    ):
        on_recorded_path(times_longer, known)


def test_recorded_path_that_is_too_short_as_asked() -> None:
    with pytest.raises(pl.BadValue, match=r"the motion ends at 0\.5 s, .* needs it until 0\.55 s"):
        on_recorded_path(3.0, 0.8)


@pytest.mark.parametrize("efficiency", [1.0, 0.8])
def test_drive_that_is_too_weak_for_its_ramp_takes_longer(efficiency: float) -> None:
    """Deceleration ``(N T / eta + C) / (I + N^2 J / eta)``: losses help to brake."""
    gear: dict[str, Any] = {"gear_ratio": 20.0, "efficiency": efficiency, "rotor_inertia": 2e-3}
    by = on_axis(
        pl.safety.Chain(controller=0.02), drive_torque=0.25, coulomb=1.0, deceleration=9.0,
        dynamic_torque=50.0, short_circuit=0.1, **gear,
    )  # fmt: skip
    result = stop(wheel(2.0), -3.0, by, category=1)
    slower = (20 * 0.25 / efficiency + 1.0) / (2.0 + 400 * 2e-3 / efficiency)
    assert slower < 9.0
    one = stands(result, -0.06 - 4.5 / slower, 0.02 + 3.0 / slower)
    assert one.slips == 0 and result.outcome == "stopped"
    friction = 1.0 * (0.06 + 4.5 / slower)
    assert result.ledger.dissipated["dry friction"][0] == pytest.approx(friction, rel=1e-6)
    drive = -20 * 0.25 * 4.5 / slower + 0.06 * 1.0 / efficiency
    assert result.ledger.drive_work == pytest.approx(drive, rel=1e-6)


@pytest.mark.parametrize("share", [0.999, 1.001])
def test_drive_that_is_just_strong_enough_for_its_ramp(share: float) -> None:
    """The motor slows down its rotor by ``J d``, and the link through the gear by ``eta I d``."""
    link, rotor, eta, d, v = 2.0, 0.5, 0.8, 4.0, 3.0
    limit = share * (eta * link + rotor) * d
    by = on_axis(
        drive_torque=limit, deceleration=d, efficiency=eta, rotor_inertia=rotor, dynamic_torque=9.0
    )
    slower = d if share > 1 else limit / eta / (link + rotor / eta)
    assert slower <= d
    stands(stop(wheel(link), v, by, category=1), v**2 / (2 * slower), v / slower)


def test_drive_catches_up_with_its_ramp() -> None:
    """Train of two: the force on b slows down a less, until b stands; then a makes up for it."""
    heavy, light, limit = 3.0, 2.0, 32.0
    by = brakes(
        a={"drive_torque": limit, "deceleration": 5.0, "dynamic_torque": 90.0},
        b={"deceleration": 10.0, "dynamic_torque": 90.0},
    )
    result = stop(train(heavy, light), [2.0, 1.0], by, category=1)
    total = heavy + light
    first = (limit - light * 10.0) / total  # deceleration of a while b slows down
    assert first < 5.0
    left = 2.0 - first * 0.1
    # From then on it gives all it has until it has caught up with its ramp.
    more = limit / total
    meet = 0.1 + (left - (2.0 - 5.0 * 0.1)) / (more - 5.0)
    assert 0.1 < meet < 0.4
    fast = left - more * (meet - 0.1)
    way = (2.0 + left) / 2 * 0.1 + (left + fast) / 2 * (meet - 0.1) + fast**2 / 10.0
    stands(result, way, 0.4, "a")
    stands(result, 0.05, 0.1, "b")


def test_time_limit_of_a_controlled_stop() -> None:
    """Ramp of a weak drive; brakes commanded at the limit; power gone a little later."""
    by = on_axis(
        pl.safety.Chain(controller=0.02, drive_off=0.05), drive_torque=8.0, deceleration=10.0,
        dynamic_torque=6.0, delay=0.02,
    )  # fmt: skip
    result = stop(wheel(2.0), 3.0, by, category=pl.Category1(time_limit=0.3))
    angle, v, time = 0.06, 3.0, 0.02
    for duration, torque in ((0.32, 8.0), (0.03, 14.0)):
        left = v - torque / 2.0 * duration
        angle, v, time = angle + (v + left) / 2 * duration, left, time + duration
    stands(result, angle + 2.0 * v**2 / 12.0, time + 2.0 * v / 6.0)
    # In time, the limit changes nothing.
    early = stop(wheel(2.0), 3.0, by, category=pl.Category1(time_limit=2.0))
    never = stop(wheel(2.0), 3.0, by, category=1)
    assert early.joints == never.joints
    stands(never, 0.06 + 2 * 9.0 / 16.0, 0.02 + 6.0 / 8.0)


def test_drives_hold_until_the_brakes_do() -> None:
    """Slow brakes and a fault: no sag between ramp and brakes; without a brake it falls."""
    by = on_axis(
        pl.safety.Chain(controller=0.01, drive_off=0.02), dynamic_torque=60.0, deceleration=RAMP,
        delay=0.1, rise=0.2,
    )  # fmt: skip
    hoist = slider(2.0, UP)
    one = stands(stop(hoist, -0.9, by, category=1), -0.009 - 0.135, 0.31)
    assert one.margin == pytest.approx(60.0 / (2.0 * G)) and one.slips == 0
    falling = stop(hoist, -0.9, by.missing("axis"), category=1, until=1.0)
    assert falling.outcome == "does not hold" and falling.joints["axis"].state == "moving"
    assert falling.run.v[-1][0] < -1.0


@pytest.mark.parametrize("rotor", [0.0, 0.01])
@pytest.mark.parametrize("mass", [1.2, 1.3, 1.45])
def test_losses_hold_a_load_that_the_drive_cannot_lift(mass: float, rotor: float) -> None:
    """The weight is between ``eta S``, which rises, and ``S / eta``, against which it falls.

    It rises against a drive that is too weak for its slow ramp, and stands before the ramp ends;
    the heaviest one then falls.
    """
    limit, eta, v = 12.0, 0.9, 0.3
    by = on_axis(drive_torque=limit, efficiency=eta, deceleration=0.5, rotor_inertia=rotor)
    result = stop(slider(mass, UP), v, by, category=2, until=1.0)
    slower = (mass * G - eta * limit) / (mass + eta * rotor)
    top, at = v**2 / (2 * slower), v / slower
    assert at < 0.6
    if mass < 1.4:
        one = stands(result, top, at)
        assert result.outcome == "stopped" and one.margin == pytest.approx(limit / eta / (mass * G))
    else:
        faster = (mass * G - limit / eta) / (mass + rotor / eta)
        assert result.outcome == "does not hold"
        assert result.run.q[-1][0] == pytest.approx(top - faster * (1 - at) ** 2 / 2, rel=1e-7)
        assert result.ledger.relative_error < 1e-7


def test_tooth_while_the_drives_still_have_power() -> None:
    """Train of two: a is caught; b's drive keeps b going on a at its speed until its power goes.

    Over ground b loses the speed of a at once: impulse ``(m_a + m_b) v_a`` on the tooth.
    """
    heavy, light, va, vb = 3.0, 1.0, 2.0, 0.5
    by = brakes(
        pl.safety.Chain(drive_off=0.05),
        a={"kind": "tooth", "delay": 0.01},
        b={"dynamic_torque": 2.0, "delay": 0.1},
    )
    result = stop(train(heavy, light), [va, vb], by)
    one = stands(result, 0.01 * va, 0.01, "a")
    assert one.impulse == pytest.approx((heavy + light) * va)
    stands(result, 0.1 * vb + vb**2 / 4, 0.1 + vb / 2, "b")


@pytest.mark.parametrize("off", [0.05, 0.15])
def test_tooth_with_play_while_the_drive_still_has_power(off: float) -> None:
    """The pin falls into the gap from 0 to 0.1 at 10 ms; the wheel comes to its end at 70 ms."""
    by = on_axis(pl.safety.Chain(drive_off=off), kind="tooth", delay=0.01, pitch=0.1)
    one = stands(stop(wheel(2.0), 1.0, by, q=[0.03]), 0.07, 0.07)
    assert one.impulse == pytest.approx(2.0)


# -- power stays ------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1.0, 0.4])
def test_category_2_holds_by_its_drives(limit: float | None) -> None:
    """The brakes stay open; a drive holds with ``N T / eta`` and the friction of its joint."""
    mass, ratio, efficiency = 2.0, 25.0, 0.9
    by = on_axis(
        dynamic_torque=500.0, side="motor", gear_ratio=ratio, efficiency=efficiency,
        drive_torque=limit, deceleration=RAMP, coulomb=2.0,
    )  # fmt: skip
    result = stop(slider(mass, UP), -0.9, by, category=2, until=1.0)
    if limit == 0.4:  # 13.1 N against 19.6 N
        assert result.outcome == "does not hold"
        force = ratio * limit / efficiency + 2.0
        fast = 0.9 + (G - force / mass) * 1.0
        assert result.run.v[-1][0] == pytest.approx(-fast, rel=1e-7)
        assert result.joints["axis"].margin == pytest.approx(force / (mass * G))
        return
    one = stands(result, -0.135, 0.3)
    assert result.outcome == "stopped" and not result.ledger.dissipated["brake"].any()
    force = np.inf if limit is None else ratio * limit / efficiency + 2.0
    assert one.hold == pytest.approx(force) and one.margin == pytest.approx(force / (mass * G))


def test_controlled_stop_of_standing_joints() -> None:
    numbers = {"dynamic_torque": 5.0, "deceleration": RAMP}
    by = brakes(a=numbers, b=numbers)
    for category in (1, pl.Category1(on_path=True), 2, pl.Category2(on_path=True)):
        result = stop(carriages(2.0, 3.0), [0.0, 0.6], by, category=category)
        stands(result, 0.0, 0.0, "a")
        stands(result, 0.06, 0.2, "b")
        rest = stop(carriages(2.0, 3.0), [0.0, 0.0], by, category=category)
        assert rest.outcome == "stopped" and rest.stopping_time == 0.0


@pytest.mark.parametrize("category", [1, 2])
def test_controlled_stop_needs_decelerations(category: int) -> None:
    by = at_joint(on_axis(dynamic_torque=5.0), deceleration=None)
    with pytest.raises(pl.BadValue, match=r"axis.*deceleration|deceleration.*axis"):
        stop(wheel(), 1.0, by, category=category)


@pytest.mark.parametrize("numbers", [{"drive_torque": 0.1}, {"deceleration": 0.1}])
def test_numbers_of_drives_do_nothing_in_category_0(numbers: dict[str, Any]) -> None:
    """The hoist goes on evenly for 100 ms, though its drive could not carry it in a ramp."""
    by = on_axis(pl.safety.Chain(controller=0.05, drive_off=0.05), dynamic_torque=60.0, delay=0.05)
    result = stop(slider(2.0, UP), -0.8, at_joint(by, **numbers))
    slower = 60.0 / 2.0 - G
    stands(result, -0.08 - 0.8**2 / (2 * slower), 0.1 + 0.8 / slower)


def test_category_0_needs_none() -> None:
    by = replace(on_axis(dynamic_torque=4.0), chain=pl.safety.Chain(sensor=0.1))
    stands(stop(wheel(2.0), 3.0, by, category=pl.Category0()), 0.3 + 18 / 8, 0.1 + 1.5)
