"""Brakes whose torque falls with speed and heat, against closed forms, quadrature and balances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import erf

import pinloop as pl
from pinloop.dynamics.kernel_tables import HAS_KERNEL

from ...states import URDF
from ...states import robot as loaded
from .robots_to_stop import G, on_axis, pendulum, slider, stands, stop, wheel

INERTIA, SPEED, TORQUE = 2.0, 3.0, 9.0
ENERGY = 0.5 * INERTIA * SPEED**2


@pytest.mark.parametrize("make", [wheel, slider])
@pytest.mark.parametrize("way", [1, -1])
def test_torque_that_falls_with_heat(make: Callable[[float], pl.Mechanism], way: int) -> None:
    """``I w dw = -T exp(-E / H) ds`` with the energy ``E`` taken so far: a state in its own right.

    The angle is ``(H / T) (exp(K / H) - 1)``, the time an error function.
    """
    heat = 6.0
    result = stop(make(INERTIA), way * SPEED, on_axis(dynamic_torque=TORQUE, fade_heat=heat))
    angle = heat / TORQUE * np.expm1(ENERGY / heat)
    root = np.sqrt(INERTIA / (2 * heat))
    time = INERTIA / TORQUE * np.exp(ENERGY / heat) * np.sqrt(np.pi) / 2 / root * erf(root * SPEED)
    own = stands(result, way * angle, time)
    assert own.dissipated == pytest.approx(ENERGY, rel=1e-9)
    assert result.ledger.relative_error < 1e-9
    assert "python" in result.run.engine


def test_torque_that_falls_with_speed() -> None:
    """``dt = I dw / (T h(w))``; with all of it lost at high speed a sum of two elementary terms."""
    share, half = 0.4, 2.0
    brake = on_axis(dynamic_torque=TORQUE, fade_share=share, fade_speed=half, delay=0.1)
    result = stop(wheel(INERTIA), SPEED, brake)

    def left(w: float) -> float:
        return 1.0 - share * w / (w + half)

    time = quad(lambda w: INERTIA / TORQUE / left(w), 0.0, SPEED, epsrel=1e-12)[0]
    angle = quad(lambda w: w * INERTIA / TORQUE / left(w), 0.0, SPEED, epsrel=1e-12)[0]
    stands(result, SPEED * 0.1 + angle, 0.1 + time)
    if HAS_KERNEL:  # until the brake acts, and from then on
        assert result.run.engine == "native and python"
    all_lost = stop(
        wheel(INERTIA), SPEED, on_axis(dynamic_torque=TORQUE, fade_share=1.0, fade_speed=half)
    )
    assert all_lost.stopping_time == pytest.approx(
        INERTIA / TORQUE * (SPEED + SPEED**2 / (2 * half)), rel=1e-9
    )


def test_heat_at_the_signal_and_behind_a_gear() -> None:
    """What is warm at the signal has less torque throughout; a brake at the motor turns faster."""
    heat, warm, ratio = 8.0, 3.0, 50.0
    cold = on_axis(dynamic_torque=TORQUE / (1 + warm / heat), fade_heat=heat)
    hot = on_axis(dynamic_torque=TORQUE, fade_heat=heat, start_heat=warm)
    motor = on_axis(
        dynamic_torque=TORQUE / ratio, fade_heat=heat, start_heat=warm, side="motor",
        gear_ratio=ratio,
    )  # fmt: skip
    first = stop(wheel(INERTIA), SPEED, cold)  # 1 + (Q0 + T s) / H = (1 + Q0 / H) (1 + ...)
    for brake in (hot, motor):
        again = stop(wheel(INERTIA), SPEED, brake)
        assert again.stopping_time == pytest.approx(first.stopping_time, rel=1e-9)
    slow: dict[str, Any] = {"dynamic_torque": TORQUE, "fade_share": 0.3, "fade_speed": 2.0}
    fast = slow | {
        "dynamic_torque": TORQUE / ratio, "fade_speed": 2.0 * ratio, "side": "motor",
        "gear_ratio": ratio,
    }  # fmt: skip
    both = [stop(wheel(INERTIA), SPEED, on_axis(**x)).stopping_time for x in (slow, fast)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)


@pytest.mark.parametrize(
    ("start", "share", "rise", "tolerance"),
    [
        (-1.5, 0.0, 0.0, 1e-7),
        (-1.5, 0.0, 0.03, 5e-4),
        (-1.5, 0.25, 0.03, 3e-3),
        (-4.0, 0.25, 0.03, 0.025),
    ],
)
def test_heat_as_a_state_of_its_own(
    start: float, share: float, rise: float, tolerance: float
) -> None:
    """A beam that falls against its brake, beside SciPy with what the brake takes as a state.

    Heat is reckoned as a little more than that where torque rises or falls with speed.
    """
    mass, length, inertia, torque, heat, half = 2.0, 0.5, 0.6, 18.0, 60.0, 4.0

    def rates(t: float, y: Any) -> list[float]:
        q, v, taken = y
        brake = torque * np.exp(-taken / heat) * (1.0 - share * abs(v) / (abs(v) + half))
        brake *= min(t / rise, 1.0) if rise else 1.0
        return [v, (-mass * G * length * np.cos(q) + brake) / inertia, brake * abs(v)]

    def stands_still(t: float, y: Any) -> float:
        return float(y[1])

    stands_still.terminal = True  # type: ignore[attr-defined]
    numbers: dict[str, Any] = {"fade_share": share, "fade_speed": half, "fade_heat": heat}
    robot = pendulum(mass, length, inertia)
    result = stop(robot, start, on_axis(dynamic_torque=torque, rise=rise, **numbers))
    done = solve_ivp(
        rates, (0.0, 5.0), [0.0, start, 0.0], events=stands_still, rtol=1e-10, atol=1e-12,
        max_step=0.01,
    )  # fmt: skip
    own, angle = result.joints["axis"], abs(done.y[0, -1])
    assert angle * (1.0 - 1e-7) < abs(own.angle) < angle * (1.0 + tolerance)
    assert own.dissipated == pytest.approx(done.y[2, -1], rel=tolerance)
    assert result.ledger.relative_error < 1e-8
    plain = stop(robot, start, on_axis(dynamic_torque=torque, rise=rise)).joints["axis"]
    assert abs(own.angle) > (1.15 if share else 1.02) * abs(plain.angle)


def test_intervals_know_how_torque_falls() -> None:
    """Sampled: as many stops are within the interval as its level says."""
    spreads = {"fade_heat": 0.8, "fade_share": 0.04}
    brake = on_axis(
        dynamic_torque=TORQUE, fade_heat=6.0, fade_share=0.3, fade_speed=2.0, spreads=spreads,
        sources=dict.fromkeys(("dynamic_torque", *spreads), "measured"),
    )  # fmt: skip
    result = stop(wheel(INERTIA), SPEED, brake)
    band = result.intervals["stopping_time"]
    assert band.shares[0][0] == "fade_heat of axis (spread)" and len(band.shares) == 2
    times = pl.safety.sample_stop(result, ["stopping_time"], 200)[:, 0]
    assert 0.92 < np.mean([time in band for time in times]) < 0.98


def test_a_brake_that_is_too_hot_to_hold() -> None:
    """At rest both torques are less by the heat, and speed takes nothing."""
    load = 2.0 * G * 0.5
    enough: dict[str, Any] = {"dynamic_torque": 1.3 * load, "fade_share": 0.9, "fade_speed": 0.1}
    result = stop(pendulum(), -0.5, on_axis(**enough))
    assert result.holds
    own = stop(pendulum(), 0.0, on_axis(**enough, fade_heat=10.0, start_heat=2.0)).joints["axis"]
    assert own.hold == pytest.approx(1.3 * load / 1.2)
    hot = stop(pendulum(), -0.5, on_axis(**enough, fade_heat=10.0, start_heat=4.0))
    assert not hot.holds


@pytest.mark.parametrize("name", ["six_axis_arm", "palletizer"])
def test_energy_balances(name: str) -> None:
    """With gears, losses, loops and joints that slip again, as without."""
    robot, brakes = loaded(name), pl.Brakes.from_yaml(URDF / f"{name}.brakes.yaml")
    faded = fading(brakes)
    q = pl.assemble(robot, robot.neutral) if robot.loops else robot.configuration({})
    v = pl.consistent_velocity(
        robot, q, dict.fromkeys([n for n in robot.actuated if n in brakes.joints], 0.8)
    )
    plain, result = (pl.stop(robot, q, v, brakes=b) for b in (brakes, faded))
    assert result.outcome == "stopped" and result.ledger.relative_error < 1e-6
    assert result.stopping_time > plain.stopping_time
    assert "python" in result.run.engine
    assert plain.run.engine == "native" or not HAS_KERNEL


def fading(brakes: pl.Brakes) -> pl.Brakes:
    """The same brakes with torques that fall."""
    joints = {
        name: replace(brake, fade_share=0.3, fade_speed=100.0, fade_heat=60.0, start_heat=5.0)
        for name, brake in brakes.joints.items()
    }
    return replace(brakes, joints=joints)


def test_numbers_that_make_no_sense() -> None:
    with pytest.raises(pl.BadValue, match=r"fade_speed of a brake is .* above 0, as"):
        on_axis(dynamic_torque=1.0, fade_share=0.2)
    with pytest.raises(pl.BadValue, match="fade_share"):
        on_axis(dynamic_torque=1.0, fade_share=1.2, fade_speed=1.0)
