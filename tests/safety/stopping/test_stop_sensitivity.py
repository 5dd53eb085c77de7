"""What stops depend on: against closed forms, and against differences of stops computed again."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pinloop as pl

from ...states import URDF
from ...states import robot as loaded
from .robots_to_stop import brakes as brakes_of
from .robots_to_stop import carriages, on_axis, slider, stop, train, wheel
from .stops_again import Situation, measured

INERTIA, SPEED, TORQUE, DELAY = 2.0, 3.0, 9.0, 0.04
CHAIN = pl.safety.Chain(sensor=0.02, controller=0.03)


def of_wheel(**numbers: Any) -> pl.StopResult:
    given = {"dynamic_torque": TORQUE, "delay": DELAY} | numbers
    return stop(wheel(INERTIA), SPEED, on_axis(CHAIN, **given))


# -- one joint, closed forms ----------------------------------------------------------------------


def test_a_wheel_with_a_delay() -> None:
    """``t = D + I w / T``, ``angle = w D + I w^2 / 2 T``, all of the energy to the brake."""
    s = of_wheel().sensitivity(["stopping_time", "time:axis", "angle:axis", "energy:brake"])
    late, slow = DELAY + CHAIN.command, SPEED / TORQUE
    expected = {
        "speed:axis": (INERTIA / TORQUE, late + INERTIA * slow, INERTIA * SPEED),
        "brake_torque:axis": (-INERTIA * slow, -INERTIA * SPEED * slow / 2, 0.0),
        "delay:axis": (1.0, SPEED, 0.0),
        "sensor": (1.0, SPEED, 0.0),
        "controller": (1.0, SPEED, 0.0),
    }
    assert set(s.inputs) == set(expected) and s.warnings == ()
    for name, (time, angle, energy) in expected.items():
        own = [s[key, name] for key in s.outputs]
        np.testing.assert_allclose(own, [time, time, angle, energy], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("rise", [0.0, 0.02])
def test_a_rise_acts_like_half_as_much_delay(rise: float) -> None:
    """In the rise r the speed falls by ``T r / 2 I``: ``t = D + r / 2 + I w / T``.

    And ``angle = w D + I w^2 / 2 T + w r / 2 - T r^2 / 24 I``.
    """
    s = of_wheel(rise=rise).sensitivity(["stopping_time", "angle:axis"], ["rise:axis"])
    expected = [0.5, 0.5 * SPEED - TORQUE * rise / (12.0 * INERTIA)]
    np.testing.assert_allclose(s.matrix[:, 0], expected, rtol=1e-7)


def test_a_carriage_travels_as_far_as_its_path() -> None:
    by = on_axis(CHAIN, dynamic_torque=TORQUE)
    outputs = ["angle:axis", "path:carriage", "displacement:carriage"]
    s = stop(slider(INERTIA), SPEED, by).sensitivity(outputs, ["speed:axis", "sensor"])
    expected = [CHAIN.command + INERTIA * SPEED / TORQUE, SPEED]
    np.testing.assert_allclose(s.matrix, [expected] * 3, rtol=1e-7)


def test_viscous_friction() -> None:
    """The free wheel keeps ``w1 = w exp(-b D / I)``; ``t = ... + I / b ln(1 + b w1 / T)``.

    With ``x = b w1 / T`` the brake takes ``T (I / b) (w1 - T / b ln(1 + x))`` of the energy.
    """
    b = 1.5
    names = ["speed:axis", "dynamic_torque:axis", "delay:axis", "viscous:axis"]
    s = of_wheel(viscous=b).sensitivity(["stopping_time", "energy:brake"], names)
    w = SPEED * np.exp(-b * DELAY / INERTIA)
    x, log = b * w / TORQUE, np.log1p(b * w / TORQUE)
    by_w = INERTIA / TORQUE / (1 + x)
    by_b = INERTIA / b * (w / TORQUE / (1 + x) - log / b)
    times = [
        by_w * w / SPEED,
        -by_w * w / TORQUE,
        1.0 - by_w * b * w / INERTIA,
        by_b - by_w * w * DELAY / INERTIA,
    ]
    np.testing.assert_allclose(s.matrix[0], times, rtol=1e-7)
    heat_by_w = TORQUE * INERTIA / b * (1.0 - 1.0 / (1 + x))
    assert s["energy:brake", "speed:axis"] == pytest.approx(heat_by_w * w / SPEED, rel=1e-7)
    assert s["energy:brake", "delay:axis"] == pytest.approx(heat_by_w * -b * w / INERTIA, rel=1e-7)


def test_down_a_slope() -> None:
    """``a = F / m - g sin``; the payload adds to the mass. Free, the carriage gathers speed."""
    mass, slope, force, speed = 2.0, 0.4, 30.0, -1.5
    by = on_axis(dynamic_torque=force, delay=DELAY)
    s = stop(slider(mass, slope), speed, by, payload=0.5).sensitivity(
        ["stopping_time", "angle:axis"], ["speed:axis", "payload", "delay:axis"]
    )
    pull, whole = 9.81 * np.sin(slope), 2.5
    rate, fast = force / whole - pull, speed - pull * DELAY
    times = [-1.0 / rate, -fast / rate**2 * force / whole**2, 1.0 + pull / rate]
    ways = [
        DELAY - fast / rate,
        -(fast**2) / (2 * rate**2) * force / whole**2,
        fast * (1.0 + pull / rate),
    ]
    np.testing.assert_allclose(s.matrix[0], times, rtol=1e-7)
    np.testing.assert_allclose(s.matrix[1], ways, rtol=1e-7)


# -- against differences ---------------------------------------------------------------------------

OUTPUTS = (
    *("stopping_time", "path", "displacement", "energy:brake", "energy:dry friction"),
    *("energy:viscous friction", "energy:short circuit", "energy:gear losses", "energy:drives"),
)


def agrees(
    situation: Situation, names: list[str], more: list[str], tolerance: float = 1e-5
) -> pl.safety.StopSensitivity:
    """Assert that derivatives are those by differences; errors are parts of output over input."""
    made = situation.stop()
    s = made.sensitivity([*OUTPUTS, *more], names)
    values = measured(s.outputs)
    for k, name in enumerate(s.inputs):
        size = abs(s.input_values[k]) or 1.0
        expected = situation.difference(name, 1e-4 * size, values)
        scale = np.maximum(np.abs(expected), 0.05 * np.abs(values(made)) / size) + 1e-9
        error = np.abs(s.matrix[:, k] - expected) / scale
        assert error.max() < tolerance, (name, s.outputs[int(np.argmax(error))], error.max())
    return s


def of_arm(**more: Any) -> Situation:
    pose = {f"joint_{i}": x for i, x in enumerate((0.0, 0.6, -0.3, 0.0, 0.1, 0.0), 1)}
    speed = {f"joint_{i}": x for i, x in enumerate((2.0, 1.5, 1.0, 0.0, 0.0, 0.0), 1)}
    by = pl.Brakes.from_yaml(URDF / "six_axis_arm.brakes.yaml")
    load = pl.safety.Payload(10.0, (0.1, 0.02, 0.05))
    return Situation(loaded("six_axis_arm"), pose, speed, by, load, more)


def of_palletizer(**more: Any) -> Situation:
    pose = {"base_yaw": 0.2, "shoulder": 0.3, "elbow": -0.2, "wrist": 0.1}
    speed = {"base_yaw": 1.0, "shoulder": 0.8, "elbow": 0.3, "wrist": 0.5}
    by = pl.Brakes.from_yaml(URDF / "palletizer.brakes.yaml")
    return Situation(loaded("palletizer"), pose, speed, by, pl.safety.Payload(20.0), more)


def lossy(situation: Situation) -> Situation:
    """The same with losses in gears, Stribeck's friction, shorted motors, brakes without rise."""
    joints = {
        name: replace(
            brake,
            efficiency=0.8,
            rise=0.0,
            breakaway=1.3 * brake.coulomb,
            stribeck_speed=0.1,
            short_circuit=1e-3,
        )
        for name, brake in situation.brakes.joints.items()
    }
    return replace(situation, brakes=replace(situation.brakes, joints=joints))


def test_an_arm_whose_wrist_slips() -> None:
    names = ["speed:joint_2", "pose:joint_3", "payload", "brake_torque:joint_2", "delay:joint_2"]
    names += ["rotor_inertia:joint_1", "coulomb:joint_2", "drive_off", "rise"]
    more = ["angle:joint_5", "time:joint_5", "time:joint_3", "heat:joint_2"]
    s = agrees(of_arm(), names, more)
    assert of_arm().stop().joints["joint_5"].slips == 1
    # Two joints come to rest within a millisecond.
    assert any("change places" in sentence for sentence in s.warnings)


@pytest.mark.parametrize("make", [of_arm, of_palletizer])
def test_brakes_whose_torque_falls(make: Callable[[], Situation]) -> None:
    """With speed and heat, behind gears with losses; of those that rise, half of the rise heats."""
    situation = make()
    numbers: Any = {"fade_share": 0.3, "fade_speed": 100.0, "fade_heat": 600.0, "start_heat": 5.0}
    first, second = list(situation.brakes.joints)[:2]
    plain = [f"fade_heat:{first}", f"delay:{first}", "fade_share", "rise", f"speed:{second}"]
    behind = [f"fade_speed:{first}", "start_heat", f"brake_torque:{first}", "delay"]
    for whole, names in ((situation, plain), (lossy(situation), behind)):
        brakes = whole.brakes
        joints = {name: replace(each, **numbers) for name, each in brakes.joints.items()}
        agrees(replace(whole, brakes=replace(brakes, joints=joints)), names, [f"heat:{first}"])


def test_brakes_at_the_joint_whose_torque_falls() -> None:
    """Without a gear between, which the brakes of robots have."""
    falls: Any = {"fade_share": 0.5, "fade_speed": 2.0, "fade_heat": 8.0}
    by = brakes_of(a={"dynamic_torque": 6.0} | falls, b={"dynamic_torque": 3.0} | falls)
    situation = Situation(train(5.0, 1.0), {"a": 0.0, "b": 0.0}, {"a": 1.5, "b": 0.7}, by)
    agrees(situation, ["speed:a", "fade_heat:a", "brake_torque:b"], ["angle:a", "heat:a"])


def test_gears_with_losses_and_friction_that_falls() -> None:
    names = ["speed:joint_1", "efficiency:joint_2", "rotor_inertia:joint_2", "payload"]
    names += ["breakaway:joint_2", "stribeck_speed:joint_2", "short_circuit:joint_3", "controller"]
    agrees(lossy(of_arm()), names, ["angle:joint_2", "heat:joint_3"])


@pytest.mark.parametrize(
    "category",
    [1, 2, pl.Category1(on_path=True), pl.Category1(time_limit=0.1)],
    ids=["1", "2", "path", "limit"],
)
def test_controlled_stops(category: Any) -> None:
    names = ["speed:joint_1", "deceleration:joint_2", "sensor", "delay:joint_2"]
    agrees(of_arm(category=category), names, ["angle:joint_1"], 1e-8)


@pytest.mark.parametrize("category", [0, 1, pl.Category1(on_path=True)], ids=["0", "1", "path"])
def test_stops_of_recorded_motions(category: Any) -> None:
    """Where the signal comes decides pose and speed, and what drives follow until they stop."""
    t = np.linspace(0.0, 3.0, 13)
    values = np.zeros((len(t), 6))
    values[:, 0], values[:, 1] = 1.2 * np.sin(1.5 * t), 0.6 + 0.5 * np.sin(2.0 * t + 0.4)
    motion = pl.safety.JointTrajectory(tuple(loaded("six_axis_arm").joints), t, values)
    situation = of_arm(category=category, trigger=pl.safety.Trigger(motion, at=0.8))
    names = ["instant", "sensor", "deceleration:joint_1", "payload"]
    agrees(situation, names, ["angle:joint_1", "angle:joint_2", "time:joint_2"])


def test_drives_that_cannot_follow() -> None:
    arm = of_arm(category=1)
    joints = dict(arm.brakes.joints)
    joints["joint_2"] = replace(joints["joint_2"], drive_torque=10.0, tolerance=0.1, band=0.5)
    joints["joint_1"] = replace(joints["joint_1"], efficiency=0.8)
    situation = replace(arm, brakes=replace(arm.brakes, joints=joints))
    made = situation.stop()
    assert made.joints["joint_2"].time > 1.05 * arm.stop().joints["joint_2"].time
    names = ["drive_torque:joint_2", "gear_ratio:joint_2", "band:joint_2", "efficiency:joint_1"]
    names += ["deceleration:joint_2", "speed:joint_2"]
    agrees(situation, names, ["angle:joint_2", "time:joint_2"])


@pytest.mark.parametrize("category", [0, 1])
def test_loops(category: int) -> None:
    names = ["pose:elbow", "speed"]
    if category == 0:
        names += ["speed:shoulder", "payload", "brake_torque:elbow", "delay:shoulder"]
    agrees(of_palletizer(category=category), names, ["angle:elbow", "time:base_yaw"])


def test_a_delta_robot() -> None:
    pose, speed = {"arm_1": 0.3, "arm_2": 0.5, "arm_3": 0.4}, {"arm_1": 2.0, "arm_2": 1.0}
    by = pl.Brakes.from_yaml(URDF / "delta.brakes.yaml")
    more = {"method": pl.MuntheKaas(rtol=1e-10, atol=1e-11)}
    load = pl.safety.Payload(1.0)
    situation = Situation(loaded("delta"), pose, speed | {"arm_3": -1.5}, by, load, more)
    agrees(situation, ["payload", "speed:arm_1"], ["angle:arm_2", "time:arm_3"])


def test_what_breaks_away_from_the_one_below() -> None:
    """The upper carriage stops on the lower one, which brakes hard later and lets it slip again."""
    by = brakes_of(
        a={"dynamic_torque": 60.0, "delay": 0.2, "rise": 0.02},
        b={"dynamic_torque": 2.5, "static_torque": 3.0, "delay": 0.0},
    )
    situation = Situation(train(5.0, 1.0), {"a": 0.0, "b": 0.0}, {"a": 1.5, "b": 0.3}, by)
    assert situation.stop().joints["b"].slips == 1
    names = ["speed:a", "speed:b", "dynamic_torque:b", "static_torque:b", "delay:a", "rise:a"]
    agrees(situation, names, ["angle:b", "time:b", "heat:b"])


def test_teeth() -> None:
    """At the next tooth the velocities jump; loops and other joints follow."""
    arm = of_arm(method=pl.MuntheKaas(rtol=1e-12, atol=1e-13))
    tooth = pl.safety.JointBrake(kind="tooth", pitch=0.05, delay=0.02, gear_ratio=100.0)
    joints = {**arm.brakes.joints, "joint_1": replace(tooth, rotor_inertia=1.5e-3)}
    situation = replace(arm, brakes=replace(arm.brakes, joints=joints))
    assert situation.stop().run.transitions
    names = ["speed:joint_1", "speed:joint_2", "pose:joint_2", "payload", "rotor_inertia:joint_1"]
    agrees(situation, names, ["angle:joint_2", "time:joint_3", "angle:joint_5"])


# -- what has none ---------------------------------------------------------------------------------


def test_joints_at_rest_have_no_derivative_by_their_speed() -> None:
    s = of_arm().stop().sensitivity(["stopping_time"], ["speed:joint_4", "speed:joint_1"])
    assert np.isnan(s.matrix[0, 0]) and np.isfinite(s.matrix[0, 1])
    assert any("joint_4 is at rest at the signal" in sentence for sentence in s.warnings)


def test_brakes_that_come_at_once_but_not_in_one_order() -> None:
    """Two carriages that do not know each other: each has its own delay."""
    by = brakes_of(
        a={"dynamic_torque": 20.0, "delay": 0.05}, b={"dynamic_torque": 30.0, "delay": 0.05}
    )
    situation = Situation(carriages(2.0, 3.0), {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.7}, by)
    s = agrees(situation, ["delay:a", "delay:b", "delay"], ["angle:a", "angle:b"])
    assert s["angle:a", "delay:b"] == 0.0 and s["angle:b", "delay:b"] == pytest.approx(0.7)


@pytest.mark.parametrize("controller", [0.0, 0.01])
def test_brakes_that_come_with_the_power_or_with_the_signal(controller: float) -> None:
    """They cannot come before: derivatives are those to later."""
    arm = of_arm()
    joints = {
        name: replace(brake, rise=0.0, delay=0.0) for name, brake in arm.brakes.joints.items()
    }
    by = replace(arm.brakes, chain=pl.safety.Chain(0.0, controller), joints=joints)
    situation, names = replace(arm, brakes=by), ["delay:joint_1", "rise:joint_2"]
    made, h = situation.stop(), 1e-6
    s = made.sensitivity(["stopping_time", "angle:joint_1", "path", "energy:brake"], names)
    values = measured(s.outputs)
    for k, name in enumerate(names):
        expected = (values(situation.changed(name, h).stop()) - values(made)) / h
        np.testing.assert_allclose(s.matrix[:, k], expected, rtol=1e-3)


def test_stops_that_do_not_end_at_rest() -> None:
    down = stop(slider(2.0, 0.5), -1.0, on_axis(dynamic_torque=5.0), until=0.2)
    with pytest.raises(pl.BadValue, match="ends as 'does not hold': only stops that end at rest"):
        down.sensitivity()


@pytest.mark.parametrize("name", ["delay:nobody", "weather", "speed:nobody", "pose", "band:axis"])
def test_inputs_that_there_are_not(name: str) -> None:
    with pytest.raises(pl.PinloopError):
        of_wheel().sensitivity(to=[name])


def test_outputs_that_there_are_not() -> None:
    with pytest.raises(pl.PinloopError, match="stopping_time"):
        of_wheel().sensitivity(["stoping_time"])


# -- the value -------------------------------------------------------------------------------------


def test_the_table() -> None:
    s = of_wheel().sensitivity(["angle:axis"])
    assert pickle.loads(pickle.dumps(s)).table() == s.table()
    rows = s.block("angle:axis").rows
    names = [row[0].text for row in rows]
    assert names == ["speed:axis", "brake_torque:axis", "delay:axis", "controller", "sensor"]
    # 1 % of 3 rad/s: 0.03 (0.09 + 2/3) rad.
    by_speed = 0.03 * (DELAY + CHAIN.command + INERTIA * SPEED / TORQUE)
    assert s.per_percent()[0, s.inputs.index("speed:axis")] == pytest.approx(by_speed)
    # What rests has a table of rounding, which is none.
    matrix, values = np.vstack([s.matrix, 1e-12 * s.matrix]), np.append(s.output_values, 0.0)
    both = replace(
        s, outputs=("angle:axis", "rests"), output_units=("rad", "rad"), output_values=values,
        matrix=matrix,
    )  # fmt: skip
    assert both.table() == s.table() and not both.block("rests").rows


def test_names_that_are_none() -> None:
    stopped = of_wheel()
    with pytest.raises(pl.BadValue, match=r"to is 0 .* give names such as 'delay:JOINT'"):
        stopped.sensitivity(to=range(3))  # type: ignore[arg-type]
    with pytest.raises(pl.BadValue, match="of is None"):
        stopped.sensitivity(iter([None]))  # type: ignore[arg-type]
