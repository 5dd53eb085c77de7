"""Controlled stops by each law: closed forms, energy, the equations of motion integrated anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import pinloop as pl
from pinloop.safety.brakes.laws import LAWS, StopLaw

from .robots_to_stop import G, at_joint, brakes, on_axis, pendulum, stands, stop, two_links, wheel
from .stops_again import Situation
from .test_stop_sensitivity import agrees, of_arm, of_palletizer

CHAIN = pl.safety.Chain(controller=0.02, drive_off=0.01)
NUMBERS = {"deceleration": 4.0, "ramp_time": 0.35, "jerk": 30.0, "time_constant": 0.12}
IN_TIME: tuple[StopLaw, ...] = (
    pl.safety.ConstantDeceleration(4.0),
    pl.safety.ConstantTime(0.35),
    pl.safety.JerkLimited(4.0, 30.0),
    pl.safety.FirstOrder(0.12, 0.35),
)
ALL = (*IN_TIME, pl.safety.DriveTorque(0.5))
each = pytest.mark.parametrize("law", IN_TIME, ids=lambda law: law.name)
every = pytest.mark.parametrize("law", ALL, ids=lambda law: law.name)


@each
@pytest.mark.parametrize("category", [pl.Category1, pl.Category2])
def test_a_joint_follows_its_ramp_whatever_pulls(law: StopLaw, category: Any) -> None:
    """The drive takes all energy: the kinetic one, and what gravity gives on the way."""
    v, ramp = -1.5, law.ramp(-1.5, 0.0, NUMBERS)
    by = on_axis(CHAIN, static_torque=80.0, dynamic_torque=60.0, delay=0.05)
    result = stop(pendulum(), v, by, category=category(law=law), q=[0.4])
    joint = stands(result, 0.02 * v + ramp.whole, 0.02 + ramp.end)
    for t in np.linspace(0.0, ramp.end, 7):
        _, q, run_v = result.run(0.02 + t)[:3] if t else (0.0, [0.4 + 0.02 * v], [v])
        assert q[0] == pytest.approx(0.4 + 0.02 * v + ramp.way(t), abs=1e-9)
        assert run_v[0] == pytest.approx(ramp.v(t), abs=1e-9)
    kinetic, drop = 0.5 * 0.6 * v**2, 2.0 * G * 0.5 * (np.sin(0.4) - np.sin(0.4 + joint.angle))
    assert result.ledger.kinetic_before == pytest.approx(kinetic)
    assert result.ledger.drive_work == pytest.approx(-(kinetic + drop), rel=1e-6)
    # The same law in the brakes file is the same stop; the numbers given are in the result.
    brake = result.brakes.joints["axis"]
    assert brake.law == law.name and {k: getattr(brake, k) for k in law.own} == law.own
    filed = at_joint(by, law=law.name, **law.own)
    same = stop(pendulum(), v, filed, category=category(), q=[0.4])
    assert same.run.t.tobytes() == result.run.t.tobytes()
    assert same.run.q.tobytes() == result.run.q.tobytes()


@each
def test_joints_by_themselves_and_together(law: StopLaw) -> None:
    """By themselves each has its own time, if the law has; together they stay on their path."""
    drive = {"dynamic_torque": 200.0}
    by = brakes(j1=drive, j2=drive)
    v = [1.0, -1.5]
    alone = stop(two_links(), v, by, category=pl.Category1(law=law), q=[0.3, 0.4])
    for name, speed in zip(("j1", "j2"), v, strict=True):
        own = law.ramp(speed, 0.0, NUMBERS)
        stands(alone, own.whole, own.end, name)
    category = pl.Category1(on_path=True, law=law)
    together = stop(two_links(), v, by, category=category, q=[0.3, 0.4])
    path = law.together([(x, NUMBERS) for x in v])
    for name, speed in zip(("j1", "j2"), v, strict=True):
        stands(together, speed * path.whole, path.end, name)
    moved = together.run.q - together.run.q[0]
    np.testing.assert_allclose(moved @ [1.5, 1.0], 0.0, atol=1e-9)


@each
def test_on_a_curved_path(law: StopLaw) -> None:
    """Where the recorded motion would have been at the way of the ramp, at any time."""

    def path(t: Any) -> Any:
        return np.stack((0.1 + 0.8 * t - 0.2 * t**2, 0.4 - 0.3 * t + 0.5 * t**3), axis=-1)

    times = np.linspace(0, 3, 13)
    trigger = pl.safety.Trigger(pl.safety.JointTrajectory(("j1", "j2"), times, path(times)), at=0.4)
    drive = {"dynamic_torque": 200.0}
    by = brakes(pl.safety.Chain(controller=0.1), j1=drive, j2=drive)
    category = pl.Category1(on_path=True, law=law)
    result = pl.stop(two_links(), brakes=by, category=category, trigger=trigger)
    speeds = (0.8 - 0.4 * 0.5, -0.3 + 1.5 * 0.5**2)
    ramp = law.together([(v, NUMBERS) for v in speeds])
    assert result.stopping_time == pytest.approx(0.1 + ramp.end)
    for t in np.linspace(0, ramp.end, 9):
        there = path(0.5 + ramp.way(t))
        np.testing.assert_allclose(result.run(0.1 + t).q, there, atol=1e-7)


def test_a_jerk_limited_stop_goes_on_from_the_acceleration_at_the_command() -> None:
    """From a recorded motion: no jump of the acceleration, and on beyond where it would turn."""
    times = np.linspace(0, 2, 41)
    values = 0.3 * times - 0.4 * times**3
    motion = pl.safety.JointTrajectory(("axis",), times, values[:, None])
    law = pl.safety.JerkLimited(4.0, 30.0)
    by = on_axis(CHAIN, dynamic_torque=60.0, coulomb=0.5)
    for at, turns in ((0.3, False), (0.47, True)):
        trigger = pl.safety.Trigger(motion, at)
        category = pl.Category1(law=law)
        result = pl.stop(wheel(2.0), brakes=by, category=category, trigger=trigger)
        s = at + 0.02
        ramp = law.ramp(0.3 - 1.2 * s**2, -2.4 * s, NUMBERS)
        way = ramp.whole + 0.3 * 0.02 - 0.4 * (s**3 - at**3)
        joint = stands(result, way, 0.02 + ramp.end)
        assert (joint.travel > abs(joint.angle) + 1e-5) == turns
        after, later = (result.run(0.02 + t).v[0] for t in (1e-5, 2e-5))
        assert (later - after) / 1e-5 == pytest.approx(-2.4 * s, abs=0.01)


# -- drives at a share of their torque -------------------------------------------------------------


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_wheel_at_a_share_of_its_torque(share: float) -> None:
    """``t = I w / T``, ``angle = w^2 I / 2 T``; the torque is that of the motor times the ratio."""
    by = on_axis(CHAIN, dynamic_torque=9.0, drive_torque=0.3, gear_ratio=20.0, rotor_inertia=0.001)
    law = pl.safety.DriveTorque(share)
    result = stop(wheel(2.0), 3.0, by, category=pl.Category1(law=law))
    time = (2.0 + 0.001 * 20.0**2) * 3.0 / (share * 6.0)
    joint = stands(result, 0.06 + 3.0 * time / 2, 0.02 + time)
    assert result.ledger.drive_work == pytest.approx(-0.5 * 2.4 * 9.0, rel=1e-7)
    assert joint.reaction_time == pytest.approx(0.02)
    assert not any(result.ledger.dissipated["brake"])


def test_a_pendulum_at_a_share_of_its_torque() -> None:
    """``0.6 a = T - m g l cos q`` up to rest, integrated by other means; then the drive holds."""
    by = on_axis(dynamic_torque=30.0, drive_torque=25.0)
    law, v0, q0 = pl.safety.DriveTorque(0.8), -2.0, 1.0

    def rates(_: float, y: Any) -> Any:
        return [y[1], (20.0 - 2.0 * G * 0.5 * np.cos(y[0])) / 0.6]

    def rest(_: float, y: Any) -> float:
        return float(y[1])

    rest.terminal = True  # type: ignore[attr-defined]
    fall = scipy.integrate.solve_ivp(rates, (0, 5), [q0, v0], events=rest, rtol=1e-11, atol=1e-13)
    result = stop(pendulum(), v0, by, category=pl.Category2(law=law), q=[q0])
    stands(result, float(fall.y[0, -1]) - q0, float(fall.t[-1]))


def test_a_torque_below_the_load_brings_nothing_to_rest() -> None:
    """Down it goes faster and faster, until the time limit cuts the power and brakes come."""
    by = on_axis(CHAIN, dynamic_torque=60.0, drive_torque=8.0)
    law = pl.safety.DriveTorque(0.5)
    late = stop(pendulum(), -0.5, by, category=pl.Category1(time_limit=0.3, law=law), q=[0.3])
    assert late.holds and late.joints["axis"].peak_speed > 0.5
    assert "time limit" in [name for _, name in late.events]
    never = stop(pendulum(), -0.5, by, category=pl.Category2(law=law), q=[0.3], until=0.5)
    assert not never.holds


def test_drives_without_a_known_torque_have_no_share_of_it() -> None:
    law = pl.safety.DriveTorque(0.5)
    with pytest.raises(
        pl.BadValue, match=r"needs the drive_torque of joint 'axis'.*drive_torque: "
    ):
        stop(wheel(), 3.0, on_axis(dynamic_torque=9.0), category=pl.Category1(law=law))
    by = brakes(j1={"drive_torque": 9.0}, j2={"drive_torque": 9.0})
    with pytest.raises(pl.BadValue, match="drive-torque; on the path all need one and the same"):
        stop(two_links(), [1.0, 1.0], by, category=pl.Category1(on_path=True, law=law))
    by = brakes(j1=NUMBERS | {"law": "first-order"}, j2=NUMBERS)
    with pytest.raises(pl.BadValue, match="first-order, constant-deceleration; on the path all"):
        stop(two_links(), [1.0, 1.0], by, category=pl.Category1(on_path=True))


# -- limits, faults, files -------------------------------------------------------------------------


@each
def test_a_drive_that_lacks_torque_lags_behind_and_catches_up(law: StopLaw) -> None:
    """Its torque is its largest until it meets its ramp, or has come to rest behind it."""
    v, limit = 3.0, 0.8 * 2.0 * abs(law.ramp(3.0, 0.0, NUMBERS).a(0.0))
    if law.name == "jerk-limited":
        limit = 0.8 * 2.0 * 4.0
    by = on_axis(CHAIN, dynamic_torque=60.0, drive_torque=limit)
    result = stop(wheel(2.0), v, by, category=pl.Category1(law=law))
    ramp = law.ramp(v, 0.0, NUMBERS)
    joint = result.joints["axis"]
    assert result.holds and result.ledger.relative_error < 1e-7
    assert joint.peak_torque == pytest.approx(limit)
    assert abs(joint.angle) > abs(0.02 * v + ramp.whole) + 1e-3
    assert any("axis" in text and "drive_torque" in text for text in result.warnings)


@each
def test_on_the_path_the_drives_take_as_long_as_their_torque_needs(law: StopLaw) -> None:
    """Torque of a wheel on its path: half of the torque needs twice the time, for all laws."""
    ramp = law.together([(3.0, NUMBERS)])
    rate = 3.0 * max(abs(ramp.a(t)) for t in np.linspace(0, ramp.end, 5001)[:-1])
    by = on_axis(CHAIN, dynamic_torque=60.0, drive_torque=0.5 * 2.0 * rate)
    category = pl.Category1(on_path=True, law=law)
    result = stop(wheel(2.0), 3.0, by, category=category)
    joint = result.joints["axis"]
    assert joint.time == pytest.approx(0.02 + 2.0 * ramp.end, rel=1e-5)
    assert joint.angle == pytest.approx(0.06 + 2.0 * 3.0 * ramp.whole, rel=1e-5)
    assert any("deceleration on the path reduced to 50 %" in name for _, name in result.events)


def test_what_is_written(tmp_path: Path) -> None:
    law = pl.safety.FirstOrder(0.12, 0.35)
    by = on_axis(CHAIN, dynamic_torque=60.0, deceleration=3.0, sources={"deceleration": "measured"})
    result = stop(wheel(2.0), 3.0, by, category=pl.Category1(law=law))
    document = json.loads(result.save_json(tmp_path / "stop.json").read_text(encoding="utf-8"))
    assert document["category"]["law"] == "first-order"
    numbers = document["brakes"]["joints"]["axis"]
    assert numbers["time_constant"]["value"] == 0.12 and "deceleration" not in numbers
    text = str(result.table())
    assert "exponentially" in text and "time_constant 120 ms" in text


# -- what they depend on ---------------------------------------------------------------------------


@every
def test_sensitivities_of_an_arm(law: StopLaw) -> None:
    names = ["speed:joint_1", "sensor", *(f"{name}:joint_2" for name in law.own)]
    names += ["payload", "drive_torque:joint_1"] if law.name == "drive-torque" else []
    arm = of_arm(category=1)
    by = at_joint(arm.brakes, law=law.name, **law.own)
    if law.name == "drive-torque":
        by = at_joint(by, drive_torque=40.0)
    if "ramp_time" in law.own:  # else all come to rest at once
        joints = {n: replace(b, ramp_time=0.3 + 0.02 * int(n[-1])) for n, b in by.joints.items()}
        by = replace(by, joints=joints)
    # A long time of the sensor, so that differences are above the rounding of paths.
    chain = replace(by.chain, sensor=0.1)
    situation = replace(arm, brakes=replace(by, chain=chain))
    agrees(situation, names, ["angle:joint_1", "angle:joint_2"], 3e-5)


@each
def test_sensitivities_of_loops_on_their_path(law: StopLaw) -> None:
    situation: Situation = of_palletizer(category=pl.Category1(on_path=True))
    by = at_joint(situation.brakes, law=law.name, drive_torque=None, **law.own)
    situation = replace(situation, brakes=by)
    agrees(situation, ["speed", "controller", next(iter(law.own))], ["angle:elbow"], 3e-5)


def test_what_ends_at_once_ends_later_for_all_or_not_at_all() -> None:
    """With one ramp time the stopping time has a kink in that of each, and none in all together."""
    made = of_arm(category=pl.Category1(law=pl.safety.ConstantTime(0.35))).stop()
    names = ["ramp_time:joint_1", "ramp_time:joint_2", "ramp_time", "sensor", "speed:joint_1"]
    s = made.sensitivity(["stopping_time", "time:joint_1"], names)
    np.testing.assert_allclose(s.matrix[0], [np.nan, np.nan, 0.35, 1.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(s.matrix[1], [1.0, 0.0, 0.35, 1.0, 0.0], atol=1e-9)
    assert any("joint_1, joint_2" in text and "at once" in text for text in s.warnings)


def test_every_law_is_tested_here() -> None:
    assert {law.name for law in ALL} == set(LAWS)
