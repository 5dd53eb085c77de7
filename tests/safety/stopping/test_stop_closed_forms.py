"""Tests of `pl.stop`: one joint, against closed forms or quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import pinloop as pl

from .robots_to_stop import UP, G, on_axis, pendulum, slider, stands, stop, wheel

ONE_JOINT = pytest.mark.parametrize(
    ("make", "way"), [(wheel, 1), (wheel, -1), (slider, 1), (slider, -1)]
)
"""A wheel and a carriage, both ways."""


def shape(one: pl.safety.JointStop) -> float:
    """Distance over that of the time at full speed."""
    return one.excursion / (one.peak_speed * one.time)


# -- a brake ------------------------------------------------------------------------------------


@ONE_JOINT
def test_constant_torque(make: Callable[[float], pl.Mechanism], way: int) -> None:
    """Time ``I v / T``, angle ``I v^2 / 2 T``."""
    result = stop(make(2.5), way * 3.0, on_axis(dynamic_torque=4.0))
    one = stands(result, way * 2.5 * 9.0 / 8.0, 2.5 * 3.0 / 4.0)
    assert result.outcome == "stopped" and result.holds
    assert result.stopping_time == pytest.approx(one.time, rel=1e-12)
    assert one.reaction_time == one.reaction_angle == one.slips == one.impulse == 0
    assert one.peak_speed == pytest.approx(3.0) and one.peak_torque == pytest.approx(4.0)
    assert one.travel == pytest.approx(one.excursion) and one.travel == pytest.approx(2.8125)
    assert one.dissipated == pytest.approx(0.5 * 2.5 * 9)
    assert result.ledger.dissipated["brake"][0] == pytest.approx(0.5 * 2.5 * 9)
    assert shape(one) == pytest.approx(0.5)


@ONE_JOINT
@pytest.mark.parametrize("v", [0.5, 3.0])
def test_delay_and_linear_rise(make: Callable[[float], pl.Mechanism], way: int, v: float) -> None:
    """In the rise ``v(s) = v0 - T s^2 / 2 r I``; the slow case stops within it."""
    inertia, torque, delay, rise = 2.0, 8.0, 0.1, 0.3
    result = stop(make(inertia), way * v, on_axis(dynamic_torque=torque, delay=delay, rise=rise))
    s = np.sqrt(2 * rise * inertia * v / torque)
    if s <= rise:
        angle, time = v * delay + 2 / 3 * v * s, delay + s
    else:
        left = v - torque * rise / (2 * inertia)
        angle = v * delay + v * rise - torque * rise**2 / (6 * inertia)
        angle, time = (
            angle + left**2 * inertia / (2 * torque),
            delay + rise + left * inertia / torque,
        )
    assert (s <= rise) == (v == 0.5)
    one = stands(result, way * angle, time)
    assert one.reaction_time == pytest.approx(delay) == result.reaction_time
    assert one.reaction_angle == pytest.approx(way * v * delay)
    assert one.braking_time == pytest.approx(time - delay)
    assert one.braking_angle == pytest.approx(way * (angle - v * delay))
    assert one.peak_torque == pytest.approx(min(s / rise, 1) * torque, rel=1e-6)
    assert shape(one) > 0.5


@ONE_JOINT
def test_viscous_friction(make: Callable[[float], pl.Mechanism], way: int) -> None:
    """``v + T/c`` falls exponentially; most of the way is gone early: less than half of v t."""
    inertia, torque, c, v = 2.0, 1.5, 3.0, 4.0
    result = stop(make(inertia), way * v, on_axis(dynamic_torque=torque, viscous=c))
    time = inertia / c * np.log1p(c * v / torque)
    angle = (inertia * v - torque * time) / c
    one = stands(result, way * angle, time)
    assert one.peak_torque == pytest.approx(torque + c * v)
    heat = result.ledger.dissipated
    assert heat["brake"][0] == pytest.approx(torque * angle, rel=1e-6)
    assert heat["viscous friction"][0] == pytest.approx(0.5 * inertia * v**2 - torque * angle)
    assert shape(one) < 0.5


@ONE_JOINT
def test_dry_friction_alone(make: Callable[[float], pl.Mechanism], way: int) -> None:
    result = stop(make(2.0), way * 3.0, on_axis(kind="none", dynamic_torque=99.0, coulomb=1.5))
    one = stands(result, way * 2.0 * 9.0 / 3.0, 2.0 * 3.0 / 1.5)
    assert result.ledger.dissipated["dry friction"][0] == pytest.approx(9.0)
    assert one.hold == pytest.approx(1.5) and one.reaction_time == pytest.approx(0.0)


@pytest.mark.parametrize(("breakaway", "vs"), [(3.0, 0.4), (9.0, 1.5)])
def test_stribeck_friction(breakaway: float, vs: float) -> None:
    """Against another integrator."""
    inertia, torque, coulomb, v = 2.0, 1.0, 2.0, 3.0

    def rate(_: float, y: Any) -> list[float]:
        dry = coulomb + (breakaway - coulomb) * np.exp(-((y[1] / vs) ** 2))
        return [y[1], -(torque + dry) / inertia]

    def speed(_: float, y: Any) -> float:
        return float(y[1])

    speed.terminal = True  # type: ignore[attr-defined]
    run = solve_ivp(rate, (0, 9), [0, v], "DOP853", events=speed, rtol=1e-12, atol=1e-13)
    numbers = on_axis(
        dynamic_torque=torque, coulomb=coulomb, breakaway=breakaway, stribeck_speed=vs
    )
    one = stands(stop(wheel(inertia), v, numbers), run.y[0, -1], run.t[-1])
    assert one.hold == pytest.approx(torque + breakaway)
    assert one.peak_torque == pytest.approx(torque + breakaway, rel=1e-6)


def test_friction_of_the_robots_file_counts_only_without_entry() -> None:
    text = """<robot name="hub"><link name="base"/><link name="disc"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="2" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="axis" type="continuous"><parent link="base"/><child link="disc"/>
      <axis xyz="0 0 1"/><dynamics damping="3" friction="1.5"/></joint></robot>"""
    robot = pl.load(text)
    one = stop(robot, 4.0, pl.Brakes({})).run
    time = 2.0 / 3.0 * np.log1p(3.0 * 4.0 / 1.5)
    assert one(time).q[0] == pytest.approx((2.0 * 4.0 - 1.5 * time) / 3.0, rel=1e-7)
    assert one.v[-1][0] == 0.0 and one.q[-1][0] == pytest.approx(one(time).q[0], rel=1e-7)
    stands(stop(robot, 4.0, on_axis(dynamic_torque=5.0)), 2.0 * 16 / 10, 2.0 * 4 / 5)


@pytest.mark.parametrize("band", [-1.0, -0.4, 0.0, 1.0])
def test_tolerance_band(band: float) -> None:
    torque = 4.0 * (1 + 0.25 * band)
    numbers = on_axis(dynamic_torque=4.0, static_torque=5.0, tolerance=0.25)
    one = stands(stop(wheel(2.0), 3.0, numbers.at_band(band)), 9 / torque, 6 / torque)
    assert one.hold == pytest.approx(5.0 * (1 + 0.25 * band))


def test_faults() -> None:
    """Missing: friction remains; late: more way at full speed; weak: less torque."""
    robot, good = wheel(2.0), on_axis(dynamic_torque=4.0, coulomb=1.0, delay=0.05)
    stands(stop(robot, 3.0, good.weak("axis", 0.5)), *_two_torques(2.0, 3.0, 0.05, 1.0, 3.0))
    late = stop(robot, 3.0, good.late("axis", 0.2))
    stands(late, *_two_torques(2.0, 3.0, 0.25, 1.0, 5.0))
    assert late.joints["axis"].reaction_time == pytest.approx(0.25)
    stands(stop(robot, 3.0, good.missing("axis")), 9.0, 6.0)
    stands(stop(robot, 3.0, good), *_two_torques(2.0, 3.0, 0.05, 1.0, 5.0))


def _two_torques(
    inertia: float, v: float, change: float, first: float, then: float
) -> tuple[float, float]:
    """Angle and time under one constant torque for a while, then another."""
    left = v - first * change / inertia
    angle = (v + left) / 2 * change + inertia * left**2 / (2 * then)
    return angle, change + inertia * left / then


# -- gravity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [UP, 0.5, 0.0, -0.3])
@pytest.mark.parametrize("way", [1, -1])
def test_rail_with_a_slope(slope: float, way: int) -> None:
    """Deceleration ``F/m`` with ``g sin(slope)`` on top uphill, taken off downhill."""
    mass, force, v = 2.0, 30.0, 1.2
    result = stop(slider(mass, slope), way * v, on_axis(dynamic_torque=force, delay=0.02))
    pull = way * G * np.sin(slope)
    left = v - pull * 0.02
    slower = force / mass + pull
    angle = (v + left) / 2 * 0.02 + left**2 / (2 * slower)
    one = stands(result, way * angle, 0.02 + left / slower)
    assert one.peak_speed == pytest.approx(max(v, left))
    assert one.load == pytest.approx(mass * G * np.sin(slope), abs=1e-9)
    if slope:
        assert one.margin == pytest.approx(force / abs(mass * G * np.sin(slope)))
    else:
        assert one.margin == np.inf
    drop = -mass * G * np.sin(slope) * way * angle
    assert result.ledger.potential_drop == pytest.approx(drop, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("q0", [0.0, 1.0, -1.2, 2.5])
@pytest.mark.parametrize("way", [1, -1])
def test_beam_in_gravity(q0: float, way: int) -> None:
    """The end from the energies, the time by quadrature."""
    mass, length, inertia, torque, v = 2.0, 0.5, 0.6, 14.0, 3.0

    def kinetic(angle: float) -> float:
        height = length * (np.sin(q0 + way * angle) - np.sin(q0))
        return float(0.5 * inertia * v**2 - torque * angle - mass * G * height)

    angle = brentq(kinetic, 0, 5, xtol=1e-15)
    # The speed has a square root at the end: angle (1 - u^2) takes it out.
    time, _ = quad(
        lambda u: 2 * angle * u / np.sqrt(2 * kinetic(angle * (1 - u * u)) / inertia), 0, 1,
        epsabs=1e-13, epsrel=1e-12,
    )  # fmt: skip
    result = stop(pendulum(mass, length, inertia), way * v, on_axis(dynamic_torque=torque), q=[q0])
    one = stands(result, way * angle, time)
    assert one.load == pytest.approx(mass * G * length * np.cos(q0 + way * angle), rel=1e-6)
    assert one.margin == pytest.approx(torque / abs(one.load))


# -- gear and rotor ------------------------------------------------------------------------------


def test_rotor_behind_the_gear_and_brake_on_either_side() -> None:
    """The rotor adds ``N^2 J``; on its side of the gear the brake counts N times."""
    gear: dict[str, Any] = {"gear_ratio": 50.0, "rotor_inertia": 4e-4, "dynamic_torque": 0.2}
    total = 0.3 + 2500 * 4e-4
    result = stop(wheel(0.3), 2.0, on_axis(side="motor", **gear))
    one = stands(result, total * 4 / 20, total * 2 / 10)
    assert one.hold == pytest.approx(10.0)
    assert result.ledger.kinetic_before == pytest.approx(0.5 * total * 4)
    assert one.peak_gear_torque == pytest.approx(0.3 * 10 / total)  # it slows down the link
    one = stands(stop(wheel(0.3), 0.2, on_axis(**gear)), total * 0.04 / 0.4, total * 0.2 / 0.2)
    assert one.peak_gear_torque == pytest.approx(1.0 * 0.2 / total)  # it slows down the rotor


@pytest.mark.parametrize(("rotor", "total"), [(None, 2.7), (0.0, 2.0), (0.1, 2.9)])
def test_rotor_of_the_brakes_file_replaces_the_armature(rotor: float | None, total: float) -> None:
    robot = pl.load(
        """<mujoco><worldbody><body name="disc"><joint name="axis" type="hinge" axis="0 0 1"
        armature="0.7"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 2"/></body></worldbody>
        </mujoco>"""
    )
    result = stop(robot, 3.0, on_axis(gear_ratio=3.0, rotor_inertia=rotor, dynamic_torque=4.0))
    stands(result, total * 9 / 8, total * 3 / 4)


LINK, ROTOR, RATIO, ETA = 0.4, 4e-4, 50.0, 0.7
REFLECTED = RATIO**2 * ROTOR
GEAR: dict[str, Any] = {"gear_ratio": RATIO, "efficiency": ETA, "rotor_inertia": ROTOR}


@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("rotor", [ROTOR, 0.0, None])
def test_losses_help_the_brake_of_the_motor(way: int, rotor: float | None) -> None:
    """The load drives the motor: torque ``N T / eta``, inertia ``I + N^2 J / eta``."""
    v, torque = 2.0, 0.2
    by = on_axis(side="motor", dynamic_torque=torque, **GEAR | {"rotor_inertia": rotor})
    result = stop(wheel(LINK), way * v, by)
    slower = RATIO * torque / ETA / (LINK + RATIO**2 * (rotor or 0.0) / ETA)
    angle = v**2 / (2 * slower)
    one = stands(result, way * angle, v / slower)
    heat = result.ledger.dissipated
    assert heat["brake"][0] == pytest.approx(RATIO * torque * angle, rel=1e-6)
    assert heat["gear losses"][0] == pytest.approx(0.5 * LINK * v**2 * (1 - ETA), rel=1e-6)
    assert one.hold == pytest.approx(RATIO * torque / ETA)
    assert one.peak_gear_torque == pytest.approx(LINK * slower, rel=1e-6)


@pytest.mark.parametrize("way", [1, -1])
def test_rotor_drives_a_link_that_is_braked_itself(way: int) -> None:
    """Power flows to the joint: the rotor counts with ``eta N^2 J``."""
    v, torque = 2.0, 10.0
    result = stop(wheel(LINK), way * v, on_axis(dynamic_torque=torque, **GEAR))
    slower = torque / (LINK + ETA * REFLECTED)
    angle = v**2 / (2 * slower)
    one = stands(result, way * angle, v / slower)
    heat = result.ledger.dissipated
    assert heat["brake"][0] == pytest.approx(torque * angle, rel=1e-6)
    assert heat["gear losses"][0] == pytest.approx(0.5 * REFLECTED * v**2 * (1 - ETA), rel=1e-6)
    assert one.peak_gear_torque == pytest.approx(ETA * REFLECTED * slower, rel=1e-6)


def test_power_through_the_gear_turns_round_while_the_brake_rises() -> None:
    """Friction at the link at first: the rotor drives, until ``N T = N^2 J C / I``."""
    v, friction, torque, rise = 6.0, 2.0, 0.4, 0.5
    gear = GEAR | {"coulomb": friction, "dynamic_torque": torque, "rise": rise}
    result = stop(wheel(LINK), v, on_axis(side="motor", **gear))
    turn = REFLECTED * friction / LINK / (RATIO * torque) * rise
    assert 0 < turn < rise

    def gone(inertia: float, gain: float, s0: float, s1: float) -> tuple[float, float]:
        """Loss of speed from s0 to s1, and loss of way within."""
        slope = gain * RATIO * torque / rise
        start = friction + slope * s0
        s = s1 - s0
        speed = (start * s + slope * s**2 / 2) / inertia
        return speed, (start * s**2 / 2 + slope * s**3 / 6) / inertia

    first, way = gone(LINK + ETA * REFLECTED, ETA, 0, turn)
    angle = v * turn - way
    second, way = gone(LINK + REFLECTED / ETA, 1 / ETA, turn, rise)
    angle += (v - first) * (rise - turn) - way
    left = v - first - second
    slower = (friction + RATIO * torque / ETA) / (LINK + REFLECTED / ETA)
    stands(result, angle + left**2 / (2 * slower), rise + left / slower)


@pytest.mark.parametrize("excess", [-1e-6, 1e-6])
def test_a_gear_with_losses_holds_more(excess: float) -> None:
    """At rest the load would drive the motor: ``N T_stat / eta``, and the breakaway torque."""
    numbers = on_axis(
        side="motor", gear_ratio=50.0, efficiency=0.8, rotor_inertia=1e-4, dynamic_torque=0.1,
        static_torque=0.2, coulomb=0.5, breakaway=1.5, stribeck_speed=0.1,
    )  # fmt: skip
    held = 50 * 0.2 / 0.8 + 1.5
    mass = held * (1 + excess) / G
    result = stop(slider(mass, UP), 0.0, numbers, until=1.0)
    one = result.joints["axis"]
    assert one.hold == pytest.approx(held, rel=1e-12) and one.load == pytest.approx(mass * G)
    assert one.margin == pytest.approx(1 / (1 + excess), rel=1e-9)
    if excess < 0:
        assert result.outcome == "stopped" and one.angle == 0.0 and result.stopping_time == 0.0
    else:
        assert result.outcome == "does not hold" and one.angle < 0 and one.state == "moving"


def test_falling_load_that_drives_the_motor_through_a_gear_with_losses() -> None:
    """``(m + N^2 J / eta) a = m g - N T / eta``, here with a brake that is too weak."""
    mass, torque = 3.0, 0.3
    gear = on_axis(side="motor", dynamic_torque=torque, **GEAR)
    result = stop(slider(mass, UP), 0.0, gear, until=0.5)
    faster = (mass * G - RATIO * torque / ETA) / (mass + REFLECTED / ETA)
    assert result.outcome == "does not hold"
    assert result.run.q[-1][0] == pytest.approx(-faster * 0.125, rel=1e-7)
    assert result.run.t[-1] == 0.5 and result.stopping_time == 0.5


# -- shorted motors -------------------------------------------------------------------------------


@pytest.mark.parametrize("efficiency", [1.0, 0.7])
def test_shorted_motor_brakes_when_the_power_has_gone(efficiency: float) -> None:
    """Exponential with ``N^2 k / eta``, from where it is switched off."""
    k, v, off, delay = 1.2e-3, 3.0, 0.1, 0.3
    numbers = on_axis(
        pl.safety.Chain(drive_off=off), short_circuit=k, dynamic_torque=2.0, delay=delay,
        **GEAR | {"efficiency": efficiency},
    )  # fmt: skip
    result = stop(wheel(LINK), v, numbers)
    run = result.run
    assert run(off).v[0] == pytest.approx(v) and run(off).q[0] == pytest.approx(v * off)
    c = RATIO**2 * k / efficiency
    driven = LINK + REFLECTED / efficiency
    decay = c / driven * (delay - off)
    left = v * np.exp(-decay)
    assert run(delay).v[0] == pytest.approx(left, rel=1e-7)
    angle = v * off + (v - left) * driven / c
    assert run(delay).q[0] == pytest.approx(angle, rel=1e-7)
    if efficiency == 1.0:
        time = driven / c * np.log1p(c * left / 2.0)
        stands(result, angle + (driven * left - 2.0 * time) / c, delay + time)
        brake = result.ledger.dissipated["brake"][0]
        shorted = result.ledger.dissipated["short circuit"][0]
        assert shorted == pytest.approx(0.5 * driven * v**2 - brake, rel=1e-6)


def test_a_stop_that_damping_makes_crawl_says_so() -> None:
    """0.6 kg m^2 with 6e5 N m s/rad: a time constant of 1e-6 s, of which a step may take 3.3."""
    brake = pl.safety.JointBrake(kind="none", viscous=6e5, drive_torque=1.0, deceleration=1.0)
    with pytest.warns(
        pl.PinloopWarning,
        match=r"'viscous friction' of joint 'axis' \(6e\+05 N m s/rad on 0.6 kg m\^2\) has a time "
        r"constant of 1e-06 s: about 6e\+03 steps of 'dopri5' are still to come; leave when_stiff",
    ):
        result = pl.stop(
            pendulum(), [0.0], [0.0], brakes=pl.Brakes({"axis": brake}), until=0.02,
            method=pl.MuntheKaas("dopri5", rtol=1e-4, atol=1e-4, when_stiff="warn"),
        )  # fmt: skip
    assert result.outcome in ("time-out", "does not hold")
    crawled = result.run
    # By default implicit steps take over from where it is noticed on.
    result = pl.stop(
        pendulum(), [0.0], [0.0], brakes=pl.Brakes({"axis": brake}), until=0.02,
        method=pl.MuntheKaas("dopri5", rtol=1e-4, atol=1e-4),
    )  # fmt: skip
    assert any(name.startswith("implicit steps") for _, name in result.run.events)
    assert len(result.run.t) < len(crawled.t) / 4
    assert result.run.q[-1, 0] == pytest.approx(crawled.q[-1, 0], rel=1e-4)
