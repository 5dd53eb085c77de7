"""Laws of controlled stops: closed forms, their definitions integrated, bounds that are met."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
import scipy

import pinloop as pl
from pinloop.safety.brakes.joint_brake import JOINT_PARAMETERS
from pinloop.safety.brakes.laws import LAWS, LawName, Ramp, StopLaw, law_by_name

NUMBERS = {
    "deceleration": 4.0,
    "ramp_time": 0.35,
    "jerk": 30.0,
    "time_constant": 0.12,
    "drive_torque": 3.0,
    "torque_share": 0.5,
}
CURVED = ("jerk-limited", "first-order")
IN_TIME = tuple(name for name in LAWS if name != "drive-torque")


def ramp(name: str, v: float, a: float = 0.0, **numbers: float) -> Ramp:
    return LAWS[name].ramp(v, a, NUMBERS | numbers)


def integrated(own: Ramp) -> tuple[float, float]:
    """Speed and way at the end, by steps over the rate of the ramp."""
    breaks = [*(segment.start for segment in own.segments), own.end]
    v, way = own.v(0.0), 0.0
    for begin, end in pairwise(breaks):
        grid = np.linspace(float(np.nextafter(begin, end)), float(np.nextafter(end, begin)), 20_001)
        rates = np.array([own.a(t) for t in grid])
        speeds = v + scipy.integrate.cumulative_simpson(rates, x=grid, initial=0.0)
        way += float(scipy.integrate.simpson(speeds, x=grid))
        v = float(speeds[-1])
    return v, way


def test_the_names_are_those_of_the_file() -> None:
    assert tuple(LAWS) == tuple(sorted(LAWS, key=get_args(LawName).index))
    assert set(LAWS) == set(get_args(LawName))
    for name, law in LAWS.items():
        assert law.name == name and law_by_name(name) is law and law.title
        assert set(law.numbers) <= set(JOINT_PARAMETERS)
        assert {field.name for field in fields(law)} <= set(law.numbers)
        assert law.own == {} and pickle.loads(pickle.dumps(law)) == law
    with pytest.raises(pl.BadValue, match=r"'at-once' is no law .* there are constant-decel"):
        law_by_name("at-once")
    assert pl.safety.ConstantTime(0.3).own == {"ramp_time": 0.3}
    with pytest.raises(pl.BadValue, match="ramp_time"):
        pl.safety.ConstantTime(-0.3)


@pytest.mark.parametrize("v", [1.5, -0.2, 0.05])
def test_times_and_ways_in_closed_form(v: float) -> None:
    size, most, jerk = abs(v), NUMBERS["deceleration"], NUMBERS["jerk"]
    end, constant = NUMBERS["ramp_time"], NUMBERS["time_constant"]
    full = size > most**2 / jerk  # the deceleration reaches its limit
    curve = size / most + most / jerk if full else 2.0 * np.sqrt(size / jerk)
    x = end / constant
    expected = {
        "constant-deceleration": (size / most, v * size / most / 2),
        "constant-time": (end, v * end / 2),
        "jerk-limited": (curve, v * curve / 2),
        "first-order": (end, v * end * (1 / x - 1 / np.expm1(x))),
        "drive-torque": (0.0, 0.0),
    }
    for name, (time, way) in expected.items():
        own = ramp(name, v)
        assert own.end == pytest.approx(time, rel=1e-12)
        assert own.whole == pytest.approx(way, rel=1e-11, abs=1e-15)
        assert own.v(own.end) == own.v(own.end + 1.0) == 0.0


@pytest.mark.parametrize("name", IN_TIME)
@pytest.mark.parametrize("v", [1.5, -0.3])
def test_ramps_are_the_integrals_of_their_rates(name: str, v: float) -> None:
    own = ramp(name, v)
    assert own.v(0.0) == v
    rest, way = integrated(own)
    assert rest == pytest.approx(0.0, abs=1e-9)
    assert own.whole == pytest.approx(way, rel=1e-8)
    half = 0.37 * own.end
    assert own.when(own.way(half)) == pytest.approx(half, rel=1e-9)
    inside = own.at(half)
    assert inside is not None
    later = inside.later(half)
    for t in np.linspace(0.0, 0.1 * own.end, 4):
        at = half + t - inside.start
        assert later.v(t) == pytest.approx(inside.v(at), rel=1e-12)
        assert later.a(t) == pytest.approx(inside.a(at), rel=1e-12)
        assert later.way(t) == pytest.approx(inside.way(at) - inside.way(half - inside.start))


def test_first_order_is_the_step_response_of_a_lag() -> None:
    """``T dv/dt = -(v + c)``, with the target -c for which v passes zero at the ramp time."""
    v0, end, constant = 1.5, NUMBERS["ramp_time"], NUMBERS["time_constant"]

    def response(target: float) -> tuple[float, float]:
        lag = scipy.integrate.solve_ivp(
            lambda t, y: [-(y[0] + target) / constant, y[0]], (0, end), [v0, 0.0], rtol=1e-11,
            atol=1e-13,
        )  # fmt: skip
        return float(lag.y[0, -1]), float(lag.y[1, -1])

    target = scipy.optimize.brentq(lambda c: response(c)[0], 0.0, 10.0, xtol=1e-13)
    assert ramp("first-order", v0).whole == pytest.approx(response(target)[1], rel=1e-8)
    # Without a ramp time: until the speed is below 1 % of what it was.
    long = LAWS["first-order"].ramp(v0, 0.0, {"time_constant": constant})
    assert long.end == pytest.approx(5.0 * constant)
    assert long.whole == pytest.approx(v0 * constant, rel=0.04)
    # A large time constant makes it even.
    even = ramp("first-order", v0, time_constant=1e5)
    assert even.whole == pytest.approx(ramp("constant-time", v0).whole, rel=1e-5)


@pytest.mark.parametrize(
    ("v", "a"),
    [(1.5, 0.0), (0.1, 0.0), (0.4, 3.0), (-0.4, 3.0), (0.05, -3.0), (0.5, -3.9), (0.9, -6.0),
     (0.0, 2.0), (0.3, -np.sqrt(18.0))],
)  # fmt: skip
def test_jerk_limited_ramps_keep_their_limits_and_are_the_fastest(v: float, a: float) -> None:
    """No ramp of steps with these limits is at rest earlier, but for the steps themselves."""
    most, jerk = NUMBERS["deceleration"], NUMBERS["jerk"]
    own = ramp("jerk-limited", v, a)
    assert own.a(0.0) == pytest.approx(a) and own.v(0.0) == v
    last = own.segments[-1]
    assert last.v(own.end - last.start) == pytest.approx(0.0, abs=1e-12)
    assert last.a(own.end - last.start) == pytest.approx(0.0, abs=1e-12)
    for before, after in pairwise(own.segments):
        t = after.start - before.start
        assert before.v(t) == pytest.approx(after.speed) and before.a(t) == pytest.approx(
            after.rate
        )
    times = np.linspace(0.0, own.end * (1 - 1e-12), 101)
    assert max(abs(own.a(t)) for t in times) <= max(most, abs(a)) * (1 + 1e-12)
    assert all(abs(float(segment.jerk)) <= jerk for segment in own.segments)
    if abs(a) <= most:
        assert not possible(v, a, 0.98 * own.end) and possible(v, a, 1.02 * own.end)


def possible(v: float, a: float, time: float, steps: int = 300) -> bool:
    """Whether some jerk, even in each step, brings the speed to rest within the limits."""
    h, lower = time / steps, np.tri(steps)
    by_speed = h**2 * (steps - np.arange(steps) - 0.5)
    limit = NUMBERS["deceleration"] * (1 + 1e-9)
    done = scipy.optimize.linprog(
        np.zeros(steps),
        A_ub=np.vstack([h * lower, -h * lower]),
        b_ub=np.append(np.full(steps, limit - a), np.full(steps, limit + a)),
        A_eq=np.array([np.full(steps, h), by_speed]),
        b_eq=[-a, -v - a * time],
        bounds=(-NUMBERS["jerk"], NUMBERS["jerk"]),
    )
    return bool(done.success)


@pytest.mark.parametrize("name", IN_TIME)
def test_a_ramp_over_another_time(name: str) -> None:
    """Speeds stay, at a part of the time that stays."""
    own = ramp(name, 1.2)
    slow = own.stretched(3.0 * own.end)
    for part in (0.0, 0.1, 0.5, 0.9):
        assert slow.v(part * slow.end) == pytest.approx(own.v(part * own.end))
        assert slow.a(part * slow.end) == pytest.approx(own.a(part * own.end) / 3.0)
        assert slow.way(part * slow.end) == pytest.approx(3.0 * own.way(part * own.end), abs=1e-15)


@pytest.mark.parametrize("name", IN_TIME)
def test_together_no_joint_passes_its_numbers(name: str) -> None:
    """The speed on the path times that of each joint; some joint has just what it may have."""
    law = LAWS[name]
    joints: list[tuple[float, Mapping[str, float]]] = [
        (1.5, NUMBERS),
        (-0.8, NUMBERS | {"deceleration": 1.0, "jerk": 20.0, "ramp_time": 0.2}),
        (0.1, NUMBERS | {"time_constant": 0.2}),
    ]
    path = law.together(joints)
    assert path.v(0.0) == 1.0 and path.v(path.end) == 0.0
    alone = [law.ramp(v, 0.0, numbers).end for v, numbers in joints]
    assert path.end >= max(alone) * (1 - 1e-12)
    if name != "jerk-limited":  # there one joint may limit the deceleration, another the jerk
        assert path.end == pytest.approx(max(alone))
    times = np.linspace(0.0, path.end * (1 - 1e-9), 201)
    if "deceleration" in law.numbers:
        shares = [
            max(abs(v * path.a(t)) for t in times) / numbers["deceleration"]
            for v, numbers in joints
        ]
        assert max(shares) == pytest.approx(1.0)


def test_a_law_of_ones_own_says_nothing_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        StopLaw().ramp(1.0, 0.0, {})


@pytest.mark.parametrize("name", IN_TIME)
def test_the_rate_at_the_end_is_the_last_one(name: str) -> None:
    own = ramp(name, 1.5)
    just_before = own.a(float(np.nextafter(own.end, 0.0)))
    assert own.a(own.end) == pytest.approx(just_before, abs=1e-9)
