"""Intervals of stops: against closed forms, against sampling, and what makes them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pinloop as pl
from pinloop.safety.brakes.estimates import NINE_OF_TEN, spreads
from pinloop.safety.stopping.uncertain_brakes import UncertainBrakes

from ...screw_tables import Array
from .robots_to_stop import LATE, UP, brakes, on_axis, pendulum, slider, two_links, wheel
from .robots_to_stop import stop as stopped

NUMBERS = {"dynamic_torque": 40.0, "delay": 0.03, "rise": 0.02, "rotor_inertia": 0.5}
INERTIA, SPEED = 2.0, 3.0
Z = 1.959964
MEASURED: Any = dict.fromkeys([*NUMBERS, "tolerance"], "measured")


def time_of(torque: Array | float, delay: Array | float, inertia: float = 2.5) -> Array:
    """A wheel at some speed until the brake acts, then ``I v / T``."""
    return np.asarray(delay + inertia * SPEED / torque)


def drawn(count: int) -> dict[str, Array]:
    """Guesses: nine of ten within their spread, logarithms normal."""
    rng, known = np.random.default_rng(1), spreads("strain wave")
    return {
        name: value * np.exp(rng.normal(0.0, np.log(known[name][1]) / NINE_OF_TEN, count))
        for name, value in NUMBERS.items()
    }


# -- guesses --------------------------------------------------------------------------------------


def test_the_band_of_guesses_of_a_wheel_is_that_of_samples() -> None:
    """Closed form: at speed v until the brake acts, a ramp of torque, then I v / T."""
    result = stopped(wheel(INERTIA), SPEED, on_axis(**NUMBERS))
    assert set(result.guesses.parameters) == set(NUMBERS)
    torque, delay, rise, rotor = drawn(20_000).values()
    # Half of the ramp counts, as long as the wheel still turns at its end.
    times = time_of(torque, delay + 0.5 * rise, INERTIA + rotor)  # type: ignore[arg-type]
    long = (INERTIA + rotor) * SPEED > 0.5 * torque * rise
    assert long.mean() > 0.97
    band = result.intervals["stopping_time"]
    # Logarithms of sums are not quite sums of logarithms: a fifth is what that makes.
    assert (band.low, band.high) == pytest.approx(
        tuple(np.quantile(times[long], (0.025, 0.975))), rel=0.2
    )
    assert 0.92 < np.mean((band.low < times[long]) & (times[long] < band.high)) < 0.98
    tenths = result.bands("stopping_time", level=0.9)["stopping_time"]
    assert band.low < tenths.low < result.stopping_time < tenths.high < band.high


@pytest.mark.parametrize("seed", [0, 1])
def test_the_band_of_an_arm_is_that_of_stops_made_again(seed: int) -> None:
    """Two links that fall, brakes with gravity against them, everything guessed or in tolerance."""
    joints = {"j1": {**NUMBERS, "dynamic_torque": 120.0, "tolerance": 0.2},
              "j2": {**NUMBERS, "dynamic_torque": 60.0, "wear": 0.3}}  # fmt: skip
    result = stopped(two_links(), [1.5, -1.0], brakes(**joints))
    names = ["stopping_time", "path", "angle:j1", "time:j2"]
    rows = pl.safety.sample_stop(result, names, 100, seed=seed)
    for name, values in zip(names, rows.T, strict=True):
        band = result.bands(name)[name]
        assert band.low < band.value < band.high
        # 95 % of 100: 88 to 99 nearly always.
        assert 88 <= sum(value in band for value in values) <= 100, name


# -- spreads --------------------------------------------------------------------------------------


def spread(by: pl.Brakes, **sizes: float) -> pl.Brakes:
    """Brakes with standard deviations of the axis."""
    return replace(by, joints={"axis": replace(by.joints["axis"], spreads=sizes)})


def test_spreads_add_up_as_squares() -> None:
    """d t / d T = -I v / T^2, d t / d delay = 1."""
    by = on_axis(dynamic_torque=40.0, delay=0.03, rotor_inertia=0.5, sources=MEASURED)
    result = stopped(wheel(INERTIA), SPEED, spread(by, dynamic_torque=0.4, delay=0.002))
    torque, delay = 0.4 * 2.5 * SPEED / 40.0**2, 0.002
    band = result.intervals["stopping_time"]
    half = Z * np.hypot(torque, delay)
    assert (band.low, band.high) == pytest.approx(
        (result.stopping_time - half, result.stopping_time + half), rel=1e-3
    )
    shares = dict(band.shares)
    assert shares["delay of axis (spread)"] == pytest.approx(delay**2 / (torque**2 + delay**2))
    assert sum(shares.values()) == pytest.approx(1.0)
    assert band.made_by.startswith("delay of axis (spread) 53 %")


@pytest.mark.parametrize("coefficient", [-1.0, -0.8, 0.5, 1.0])
def test_correlated_errors_cancel_or_add(coefficient: float) -> None:
    """A delay that is too long goes with a torque that is too large: their times cancel."""
    by = spread(on_axis(dynamic_torque=40.0, delay=0.03, rotor_inertia=0.5, sources=MEASURED),
                dynamic_torque=0.4, delay=0.002)  # fmt: skip
    pair = pl.safety.Correlation(("dynamic_torque:axis", "delay:axis"), coefficient)
    result = stopped(wheel(INERTIA), SPEED, replace(by, correlations=(pair,)))
    torque, delay = -0.4 * 2.5 * SPEED / 40.0**2, 0.002
    sigma = np.sqrt(torque**2 + delay**2 + 2.0 * coefficient * torque * delay)
    band = result.intervals["stopping_time"]
    assert 0.5 * (band.high - band.low) == pytest.approx(Z * sigma, rel=2e-2, abs=1e-6)
    rows = pl.safety.sample_stop(result, ["stopping_time"], 200, seed=3)
    assert float(np.std(rows)) == pytest.approx(sigma, rel=0.15, abs=1e-6)
    if sigma > 1e-3:  # each with its own variance and half of what both have together
        share = dict(band.shares)["delay of axis (spread)"]
        assert share == pytest.approx((delay**2 + coefficient * torque * delay) / sigma**2)


def test_times_of_the_chain_have_spreads() -> None:
    chain = replace(LATE, spreads={"controller": 0.004})
    by = on_axis(chain, dynamic_torque=40.0, rotor_inertia=0.5, sources=MEASURED)
    result = stopped(wheel(INERTIA), SPEED, by)
    band = result.intervals["angle:axis"]
    assert band.shares == (("controller (spread)", 1.0),)
    assert band.high - band.low == pytest.approx(2 * Z * 0.004 * SPEED, rel=1e-3)
    # A trigger that says how long the controller takes has no spread.
    other = stopped(wheel(INERTIA), SPEED, by, trigger=pl.safety.Trigger(controller=0.1))
    assert not other.intervals


def test_a_spread_is_that_of_both_torques() -> None:
    by = on_axis(dynamic_torque=40.0, static_torque=50.0, rotor_inertia=0.5, sources=MEASURED)
    result = stopped(pendulum(), 1.0, spread(by, dynamic_torque=4.0))
    uncertain = UncertainBrakes(result)
    other = uncertain.stop_at(np.array([-1.0]))
    assert other is not None
    brake = other.brakes.joints["axis"]
    assert (brake.dynamic_torque, brake.static_torque) == pytest.approx((36.0, 45.0))


def test_without_derivatives_weak_and_late_brakes_go_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Signs of what is usual are right, or torque and delay would cancel in part."""
    by = on_axis(dynamic_torque=40.0, delay=0.1, rotor_inertia=0.5, sources=MEASURED)
    result = stopped(wheel(INERTIA), SPEED, spread(by, dynamic_torque=1.0, delay=0.02))
    known = result.bands("stopping_time")["stopping_time"]

    def fail(*_: Any) -> None:
        raise pl.BadValue("no derivatives")

    monkeypatch.setattr(pl.StopResult, "sensitivity", fail)
    band = result.bands("stopping_time")["stopping_time"]
    assert band.high - band.low == pytest.approx(known.high - known.low, rel=0.1)


# -- even distributions ---------------------------------------------------------------------------


def test_a_torque_within_its_tolerance_stays_within() -> None:
    """One number alone: the ends of the interval are those of the tolerance."""
    by = on_axis(dynamic_torque=40.0, rotor_inertia=0.5, tolerance=0.2, sources=MEASURED)
    band = stopped(wheel(INERTIA), SPEED, by).intervals["stopping_time"]
    ends = [2.5 * SPEED / (40.0 * (1.0 + 0.2 * end)) for end in (1.0, -1.0)]
    assert (band.low, band.high) == pytest.approx(ends, rel=1e-9)
    assert band.made_by == "brake_torque of axis (tolerance) 100 %"
    # A place in the band that was chosen is no uncertainty, nor is a tolerance beside a spread.
    assert not stopped(wheel(INERTIA), SPEED, by.at_band(-1)).intervals
    known = stopped(wheel(INERTIA), SPEED, spread(by, dynamic_torque=0.4)).intervals
    assert known["stopping_time"].made_by == "dynamic_torque of axis (spread) 100 %"


def test_wear_only_takes() -> None:
    by = on_axis(dynamic_torque=40.0, rotor_inertia=0.5, wear=0.3, sources=MEASURED)
    result = stopped(wheel(INERTIA), SPEED, by)
    assert result.stopping_time == pytest.approx(2.5 * SPEED / 40.0)
    band = result.intervals["stopping_time"]
    ends = result.stopping_time, 2.5 * SPEED / (40.0 * 0.7)
    assert (band.low, band.high) == pytest.approx(ends, rel=1e-9)


def test_six_tolerances_are_less_than_all_at_their_ends() -> None:
    """Nobody has six brakes that are all at their low ends: squares add up, not sizes."""
    arm, by = pl.example("six_axis_arm"), pl.example_file("six_axis_arm.brakes.yaml")
    plain = pl.Brakes.from_yaml(by)
    joints = {
        name: replace(brake, sources=dict.fromkeys(brake.sources, "measured"))
        for name, brake in plain.joints.items()
    }
    known = replace(plain, joints=joints)
    q, v = np.array([0.0, -0.5, 0.7, 0.0, 0.3, 0.0]), np.full(6, 1.0)
    result = pl.stop(arm, q, v, brakes=known)
    band = result.bands("path")["path"]
    worst = pl.stop(arm, q, v, brakes=known.at_band(-1)).point().length
    assert band.value < band.high < worst
    rows = pl.safety.sample_stop(result, ["path"], 60, seed=5)[:, 0]
    assert 52 <= sum(value in band for value in rows) <= 60
    assert len(band.shares) == 6


# -- the values -----------------------------------------------------------------------------------


def test_intervals_are_values() -> None:
    result = stopped(wheel(INERTIA), SPEED, on_axis(**NUMBERS))
    bands = result.intervals
    assert pickle.loads(pickle.dumps(bands)) == bands
    assert [x.output for x in bands] == ["stopping_time", "time:axis", "angle:axis"]
    assert "path" not in bands  # the tool is on the axis
    with pytest.raises(pl.UnknownName, match="interval of a stop"):
        bands["path"]
    with pytest.raises(pl.BadValue, match="level of intervals is 1"):
        result.bands(level=1.0)
    text = " ".join(str(result.table()).split())
    assert "95 % intervals" in text and f"time:axis {bands['time:axis'].text}" in text


def test_where_a_robot_may_not_hold_there_is_no_longest_stop() -> None:
    """A carriage that hangs: 2 kg, 19.6 N."""
    by = on_axis(dynamic_torque=24.0, static_torque=26.0, sources=MEASURED)
    result = stopped(slider(2.0, UP), -1.0, spread(by, dynamic_torque=4.0))
    band = result.intervals["stopping_time"]
    assert result.holds and band.high == np.inf and band.text.endswith(" ms or more")
    assert next(iter(result.as_dict()["intervals"]))["high"] is None


@pytest.mark.parametrize(
    ("pairs", "part"),
    [
        ([("delay", "rise", 0.5)], "number with a spread 'rise:axis'"),
        ([("delay", "delay", 0.5)], "with itself"),
        ([("delay", "viscous", 0.9), ("delay", "coulomb", 0.9), ("viscous", "coulomb", -0.9)],
         "contradict each other"),
    ],
)  # fmt: skip
def test_correlations_that_cannot_be(pairs: list[tuple[str, str, float]], part: str) -> None:
    by = spread(on_axis(), delay=0.01, viscous=1.0, coulomb=1.0)
    chosen = [pl.safety.Correlation((f"{a}:axis", f"{b}:axis"), x) for a, b, x in pairs]
    with pytest.raises(pl.PinloopError, match=part):
        replace(by, correlations=tuple(chosen))


@pytest.mark.parametrize(
    ("sizes", "part"),
    [({"delay": 0.0}, "not a size above 0"), ({"nothing": 1.0}, "which is no parameter"),
     ({"band": 0.1}, "no stop depends on band smoothly")],
)  # fmt: skip
def test_spreads_that_cannot_be(sizes: dict[str, float], part: str) -> None:
    with pytest.raises(pl.BadValue, match=part):
        spread(on_axis(), **sizes)


def test_ends_are_quantiles() -> None:
    """An even distribution by draws of normal ones, and no number below zero."""
    even = pl.safety.ParameterDistribution("brake_torque", ("a",), "uniform", 1.0, 0.9, 0.1, "wear")
    tenths = np.atleast_1d(stats.norm.ppf([0.1, 0.9])).tolist()
    draws = np.array([even.value_at(even.deviations_of(x)) for x in tenths])
    assert draws == pytest.approx(0.9 + 0.1 * np.sqrt(3.0) * np.array([-0.8, 0.8]))
    plain = pl.safety.ParameterDistribution(
        "delay", ("a",), "normal", 0.01, 0.01, 0.01, "spread", relative=False
    )
    assert plain.value_at(-2.0) == 0.0 and plain.value_at(2.0) == pytest.approx(0.03)
