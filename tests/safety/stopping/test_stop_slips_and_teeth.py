"""Tests of `pl.stop`: joints that stick, slip again, hit teeth or hold, in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import pinloop as pl

from .robots_to_stop import (
    UP,
    G,
    at_joint,
    brakes,
    carriages,
    lift_with_beam,
    on_axis,
    slider,
    stands,
    stop,
    train,
    two_links,
    wheel,
)

# -- static torque --------------------------------------------------------------------------------


def test_hoist_that_only_the_static_torque_holds() -> None:
    """Going up it stops and is held; going down nothing stops it."""
    mass, robot = 2.0, slider(2.0, UP)
    numbers = on_axis(dynamic_torque=0.5 * mass * G, static_torque=1.1 * mass * G)
    up = stop(robot, 1.0, numbers)
    one = stands(up, 1 / (3 * G), 1 / (1.5 * G))
    assert up.outcome == "stopped" and one.margin == pytest.approx(1.1)
    down = stop(robot, -1.0, numbers, until=0.4)
    assert down.outcome == "time-out" and not down.holds
    assert down.run.q[-1][0] == pytest.approx(-0.4 - 0.25 * G * 0.16, rel=1e-9)
    assert down.joints["axis"].state == "moving"
    rest = stop(robot, 0.0, numbers)
    assert rest.outcome == "stopped" and rest.joints["axis"].angle == 0.0


def test_rising_brake_of_one_joint_shakes_another_loose() -> None:
    """Train of two: b stands on a until ``m_b |a_a|`` passes its static torque, then slides."""
    heavy, light, force, rise = 3.0, 1.0, 60.0, 0.4
    static, dynamic, v = 4.0, 1.5, 2.0
    result = stop(
        train(heavy, light), [v, 0],
        brakes(
            a={"dynamic_torque": force, "rise": rise},
            b={"dynamic_torque": dynamic, "static_torque": static},
        ),
    )  # fmt: skip
    slope = force / rise
    loose = static / light * (heavy + light) / slope
    speed = v - slope * loose**2 / (2 * (heavy + light))
    # From there a feels its brake and what b drags it on with; b slides forward on it.
    until_loose = way_a = v * loose - slope * loose**3 / (6 * (heavy + light))
    roots = np.roots([slope / 2, -dynamic, dynamic * loose - slope * loose**2 / 2 - speed * heavy])
    rest = float(roots[roots > loose][0])
    assert loose < rest < rise
    s = rest - loose
    way_a += (
        speed * s
        + (dynamic * s**2 / 2 - slope * (rest**3 / 6 - loose**3 / 6 - loose**2 * s / 2)) / heavy
    )
    way_b = until_loose + speed**2 * light / (2 * dynamic)  # over ground
    time_b = loose + speed * light / dynamic
    assert time_b > rest
    stands(result, way_a, rest, "a")
    one = stands(result, way_b - way_a, time_b, "b")
    assert one.slips == 1 and result.joints["a"].slips == 0
    assert one.hold == pytest.approx(static)


def test_joint_that_another_one_held_up_slips_when_that_one_stands() -> None:
    """Lift with a beam on it: slowing down on the way up takes weight off the beam's brake.

    When the lift stands, the beam is too heavy for its brake, swings down against the dynamic
    torque, and is held where it stops: the end from the energies, the time by quadrature.
    """
    lift, mass, length, inertia, v = 5.0, 2.0, 0.5, 0.6, 2.0
    weight, moment = (lift + mass) * G, mass * G * length
    dynamic, static = 0.7 * moment, 0.9 * moment
    result = stop(
        lift_with_beam(lift, mass, length, inertia), [v, 0],
        brakes(
            lift={"dynamic_torque": 0.5 * weight, "static_torque": 3 * weight},
            beam={"dynamic_torque": dynamic, "static_torque": static},
        ),
    )  # fmt: skip
    top = v / (1.5 * G)
    stands(result, v**2 / (3 * G), top, "lift")
    angle = brentq(lambda x: moment * np.sin(x) - dynamic * x, 0.5, 3, xtol=1e-15)

    def rate(u: float) -> float:
        x = angle * (1 - u * u)
        return float(2 * angle * u / np.sqrt(2 * (moment * np.sin(x) - dynamic * x) / inertia))

    # From angle 0 on, the speed has a square root there too.
    half, _ = quad(rate, 0, np.sqrt(0.5), epsabs=1e-13, epsrel=1e-12)
    other, _ = quad(
        lambda u: 2 * u / np.sqrt(2 * (moment * np.sin(u * u) - dynamic * u * u) / inertia),
        0, np.sqrt(angle / 2), epsabs=1e-13, epsrel=1e-12,
    )  # fmt: skip
    one = stands(result, -angle, top + half + other, "beam")
    assert one.slips == 1 and one.reaction_time == 0.0
    assert one.margin == pytest.approx(static / (moment * np.cos(angle)), rel=1e-6)


# -- teeth ----------------------------------------------------------------------------------------


def test_tooth_keeps_the_momentum_of_what_stays_free() -> None:
    """Train of two: a is caught, b keeps its speed over ground and slides on; ``0.5 m_a v_a^2`` is
    destroyed."""
    heavy, light, va, vb = 3.0, 1.0, 2.0, -0.5
    result = stop(
        train(heavy, light), [va, vb],
        brakes(
            a={"kind": "tooth", "delay": 0.1, "impact_time": 2e-3},
            b={"dynamic_torque": 1.5, "delay": 0.3},
        ),
    )  # fmt: skip
    one = stands(result, 0.1 * va, 0.1, "a")
    assert result.reaction_time == pytest.approx(0.1)
    assert one.impulse == pytest.approx(heavy * va)
    assert one.peak_gear_torque == pytest.approx(heavy * va / 2e-3)
    assert one.hold == one.margin == np.inf
    assert result.ledger.impacts == pytest.approx(0.5 * heavy * va**2)
    slow = va + vb
    stands(result, 0.1 * vb + 0.2 * slow + slow**2 / 3, 0.3 + slow / 1.5, "b")


@pytest.mark.parametrize(
    ("bend", "v"), [(0.4, (1.5, 0.3)), (2.0, (-1.0, 2.5)), (-2.8, (2.0, -1.0))]
)
def test_tooth_in_an_arm(bend: float, v: tuple[float, float]) -> None:
    """Two rods, the first is caught: ``v2' = v2 + M12/M22 v1``, with the mass matrix by hand."""
    (m1, m2), (l1, l2), torque = (4.0, 3.0), (0.6, 0.5), 5.0
    M22 = m2 * l2**2 / 3
    M12 = M22 + m2 * l1 * l2 / 2 * np.cos(bend)
    M11 = m1 * l1**2 / 3 + m2 * l1**2 + 2 * M12 - M22
    robot = two_links((l1, l2), gravity=[0, 0, 0])
    by = brakes(j1={"kind": "tooth"}, j2={"dynamic_torque": torque})
    result = stop(robot, v, by, q=[0.3, bend])
    kicked = v[1] + M12 / M22 * v[0]
    stands(result, 0.0, 0.0, "j1")
    angle = np.sign(kicked) * M22 * kicked**2 / (2 * torque)
    stands(result, angle, M22 * abs(kicked) / torque, "j2")
    impulse = -M11 * v[0] + M12 * (kicked - v[1])
    assert result.joints["j1"].impulse == pytest.approx(abs(impulse))
    assert result.joints["j2"].impulse == 0.0
    jump = np.array([-v[0], kicked - v[1]])
    lost = 0.5 * jump @ np.array([[M11, M12], [M12, M22]]) @ jump
    assert result.ledger.impacts == pytest.approx(lost)


def test_teeth_at_the_same_instant_stop_everything() -> None:
    robot = two_links(gravity=[0, 0, 0])
    teeth = {"kind": "tooth", "delay": 0.2}
    result = stop(robot, [0.5, -1.0], brakes(j1=teeth, j2=teeth), q=[0.3, 0.8])
    assert result.outcome == "stopped" and result.stopping_time == pytest.approx(0.2)
    assert result.ledger.impacts == pytest.approx(result.ledger.kinetic_before)


@pytest.mark.parametrize(("way", "tooth"), [(1, 0.12), (-1, -0.18)])
def test_pin_falls_into_the_next_gap(way: int, tooth: float) -> None:
    """Teeth at 0.02 + 0.1 k; when the pin falls, the wheel is at 0.113 or -0.087."""
    numbers = on_axis(kind="tooth", pitch=0.1, tooth_offset=0.02, delay=0.05, rise=0.3)
    result = stop(wheel(2.0), way * 2.0, numbers, q=[0.013])
    one = stands(result, tooth - 0.013, abs(tooth - 0.013) / 2.0)
    assert one.reaction_angle == pytest.approx(way * 0.1)
    assert one.impulse == pytest.approx(4.0) and one.hold == np.inf
    assert not any("full torque" in text for _, text in result.events)
    assert result.outcome == "stopped"
    assert result.stopping_time == pytest.approx(abs(tooth - 0.013) / 2.0)


@pytest.mark.parametrize("way", [1, -1])
def test_pin_that_falls_onto_a_tooth(way: int) -> None:
    """It slips off the way the wheel turns, into the gap before the next one."""
    result = stop(wheel(2.0), way * 0.5, on_axis(kind="tooth", pitch=0.1, tooth_offset=-0.2))
    stands(result, way * 0.1, 0.2)


def test_friction_stops_between_two_teeth() -> None:
    numbers = on_axis(kind="tooth", pitch=0.5, coulomb=6.0)
    result = stop(wheel(2.0), 1.5, numbers, q=[0.05])
    one = stands(result, 0.375, 0.5)
    assert one.impulse == 0.0 and one.hold == pytest.approx(6.0)
    # Pushed onto the pin by gravity, turning round on the way.
    result = stop(slider(2.0, UP), 1.0, on_axis(kind="tooth", pitch=0.1, delay=0.02))
    fall = 0.5 / G
    one = stands(result, 0.0, 1 / G + np.sqrt(2 * fall / G))
    assert one.travel == pytest.approx(2 * fall) and one.excursion == pytest.approx(fall)
    assert one.impulse == pytest.approx(2.0 * 1.0)
    assert result.stopping_time == pytest.approx(one.time)


# -- holding --------------------------------------------------------------------------------------


def test_what_holds_each_joint_of_an_arm() -> None:
    """Stretched arm: gravity at the joints by hand; the elbow is too weak."""
    loads = 4 * G * 0.3 + 3 * G * 0.85, 3 * G * 0.25
    by = brakes(j1={"dynamic_torque": 2 * loads[0]}, j2={"dynamic_torque": 0.9 * loads[1]})
    result = stop(two_links(), [0, 0], by, until=0.1)
    assert result.outcome == "does not hold" and not result.holds
    assert result.joints["j1"].state == "held" and result.joints["j2"].state == "moving"
    by = at_joint(by, static_torque=2.5 * loads[0])
    result = stop(two_links(), [0, 0], by)
    assert result.outcome == "stopped" and result.stopping_time == 0.0
    for name, load in zip(("j1", "j2"), loads, strict=True):
        one = result.joints[name]
        assert one.load == pytest.approx(load) and one.hold == pytest.approx(2.5 * loads[0])
        assert one.margin == pytest.approx(2.5 * loads[0] / load)
        assert one.angle == one.time == one.peak_speed == 0.0


def test_standing_robot_is_not_held_until_its_brakes_come() -> None:
    """Power gone at once, brake after 0.1 s: it falls freely until then."""
    result = stop(slider(2.0, UP), 0.0, on_axis(dynamic_torque=60.0, delay=0.1))
    speed, slower = 0.1 * G, 30.0 - G
    stands(result, -0.005 * G - speed**2 / (2 * slower), 0.1 + speed / slower)
    assert result.joints["axis"].peak_speed == pytest.approx(speed)


def test_joints_that_stand_while_others_move() -> None:
    """Uncoupled, a standing carriage stays where it is; on a moving one it is carried along."""
    numbers = {"dynamic_torque": 6.0}
    result = stop(carriages(2.0, 3.0), [1.5, 0.0], brakes(a=numbers, b=numbers))
    stands(result, 2.25 / 6, 0.5, "a")
    assert stands(result, 0.0, 0.0, "b").travel == 0.0
    result = stop(train(2.0, 1.0), [1.5, 0.0], brakes(a=numbers, b={"dynamic_torque": 2.1}))
    stands(result, 2.25 / 4, 0.75, "a")
    assert stands(result, 0.0, 0.0, "b").slips == 0


def test_wheel_that_nothing_holds_is_free() -> None:
    """No friction, no load: it comes to rest nowhere, but at rest nothing moves it."""
    free = on_axis(kind="none")
    result = stop(wheel(2.0), 0.0, free)
    assert result.outcome == "stopped" and result.joints["axis"].state == "free"
    result = stop(wheel(2.0), 1.0, free, until=0.5)
    assert result.outcome == "time-out" and result.run.q[-1][0] == pytest.approx(0.5)
    # Thrown up, it turns round and falls: the way is longer than the distance.
    one = stop(slider(2.0, UP), 1.0, free, until=0.3).joints["axis"]
    up, down = 0.5 / G, 0.5 * G * (0.3 - 1 / G) ** 2
    assert one.angle == pytest.approx(up - down) and one.travel == pytest.approx(up + down)
    assert one.excursion == pytest.approx(max(up, down - up)) and one.state == "moving"


def test_a_brake_that_stops_at_once_takes_no_more_evaluations() -> None:
    """The step would go on for a second; only what lies before the end of the motion counts."""
    by = brakes(a={"dynamic_torque": 1e6, "delay": 0.5}, b={"dynamic_torque": 5.0})
    method = pl.MuntheKaas("dopri5")
    stop = pl.stop(carriages(1.0, 1.0), [0.0, 0.0], [1.0, 0.01], brakes=by, method=method)
    assert stop.stopping_time == pytest.approx(0.5 + 1e-6, abs=1e-12)
    assert stop.run.evaluations < 100
